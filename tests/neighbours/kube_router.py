#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs natra beside the real kube-router, its bridge and its policies."""
import json
import os
import shutil
import urllib.request

import lab
from built import built
from lab import Neighbour, wait
from node import BIN_DIR, DEBIAN_CNI, NAME, NET_DIR, NEWEST_CNI, PODS, write

LIST = f"{NET_DIR}/10-kuberouter.conflist"
HEALTH = "http://127.0.0.1:20244/healthz"


class KubeRouter(Neighbour):
    name, policies = "kube-router 2.1.0", True

    def __init__(self, cluster, _):
        super().__init__(cluster)
        self.programs = built("kube-router", "iptables", "ipset")

    def prepare(self):
        """Do what its init container does; it fills in the node's range itself."""
        write(LIST, json.dumps({"cniVersion": "0.3.0", "name": "mynet", "plugins": [
            {"name": "kubernetes", "type": "bridge", "bridge": "kube-bridge",
             "isDefaultGateway": True, "ipam": {"type": "host-local"}}]}))
        bridge = next(path for path in (f"{NEWEST_CNI}/bridge", f"{DEBIAN_CNI}/bridge")
                      if os.path.exists(path))
        shutil.copy(bridge, BIN_DIR)

    def start(self):
        self.api.patch(f"/api/v1/nodes/{NAME}", {"spec": {
            "podCIDR": PODS, "podCIDRs": [PODS]}})
        os.environ["KUBE_ROUTER_CNI_CONF_FILE"] = LIST
        self.run(f"{self.programs}/kube-router", "--run-router=true", "--run-firewall=true",
                 "--run-service-proxy=false", "--enable-ipv6=false", "--enable-overlay=false",
                 f"--hostname-override={NAME}", "--kubeconfig",
                 self.node.admin_kubeconfig("kube-router"))
        wait(lambda: self.program.running() and self.healthy(), self.log, 90, 0.5)

    @staticmethod
    def healthy():
        try:
            with urllib.request.urlopen(HEALTH, timeout=2):
                return True
        except OSError:
            return False


if __name__ == "__main__":
    lab.run(KubeRouter)
