#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs natra behind the real Multus, thin or thick."""
import glob
import json
import os
import shutil
import time

import lab
from built import built
from lab import CRDS, Neighbour, wait
from node import BIN_DIR, NET_DIR, WORK, write, write_network
from script import option

PRIMARY = "10-kube.conflist"


class Multus(Neighbour):
    def __init__(self, cluster, arguments):
        super().__init__(cluster)
        self.thick = arguments.kind == "thick"
        self.name = f"Multus, {arguments.kind}"
        self.programs = built("multus")
        self.master = None

    def prepare(self):
        # Multus 4.2 puts brackets around the host, which Go takes for IPv6 alone.
        os.environ["KUBERNETES_SERVICE_HOST"] = f"::ffff:{self.api.host}"
        write_network()
        name = "multus-shim" if self.thick else "multus"
        shutil.copy(f"{self.programs}/{name}", f"{BIN_DIR}/{name}")
        group, plural = "k8s.cni.cncf.io", "network-attachment-definitions"
        self.api.create(CRDS, {
            "metadata": {"name": f"{plural}.{group}"},
            "spec": {"group": group, "scope": "Namespaced", "names": {
                "plural": plural, "singular": plural[:-1], "kind": "NetworkAttachmentDefinition"},
                "versions": [{"name": "v1", "served": True, "storage": True, "schema": {
                    "openAPIV3Schema": {"type": "object", "properties": {"spec": {
                        "type": "object", "properties": {
                            "config": {"type": "string"}}}}}}}]}})

    def lists(self):
        return [name for name in os.listdir(NET_DIR) if name.startswith("00-multus.conf")]

    def start(self):
        """Multus' pod writes its list anew, of the first one that is there."""
        for name in self.lists():
            os.unlink(f"{NET_DIR}/{name}")
        if self.thick:
            conf = {"cniVersion": "1.0.0", "logLevel": "verbose", "logToStderr": True,
                    "cniConfigDir": NET_DIR, "multusAutoconfigDir": NET_DIR,
                    "multusConfigFile": "auto", "socketDir": "/run/multus"}
            if self.master:
                conf["multusMasterCNI"] = self.master
            self.run(f"{self.programs}/multus-daemon", "--config", write(
                f"{WORK}/multus-daemon.json", json.dumps(conf)))
        else:
            self.run(f"{self.programs}/thin_entrypoint", f"--cni-conf-dir={NET_DIR}",
                     f"--multus-autoconfig-dir={NET_DIR}", f"--cni-bin-dir={BIN_DIR}",
                     f"--multus-bin-file={self.programs}/multus",
                     *([f"--multus-master-cni-file-name={self.master}"] if self.master else []))
        wait(lambda: self.program.running() and self.lists(), self.log, 60)

    def stop(self):
        super().stop()
        # A pod's next one takes a while, and natra's agent sees that Multus' list has gone.
        time.sleep(2)

    def natra_is_there(self):
        """Pods get natra from the next start of Multus on."""
        self.master = None
        self.restart()

    def natra_goes(self):
        """natra's copy stays while Multus names it, until the administrator has Multus take
        the other list."""
        self.master = PRIMARY
        self.restart()

    def pods_are_gone(self):
        """Remove the results that Multus leaves where a DEL of it failed, and natra's uninstall
        names."""
        left = glob.glob("/var/lib/cni/multus/results/*")
        self.cluster.report.shown("  results of pods that Multus left", len(left))
        for path in left:
            os.unlink(path)


if __name__ == "__main__":
    lab.run(Multus, option("kind", choices=["thin", "thick"]))
