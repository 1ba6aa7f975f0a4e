#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs natra beside the real flannel, its daemon and its plugin, which calls the bridge's."""
import json
import os
import shutil

import lab
from built import built
from lab import Neighbour, wait
from node import BIN_DIR, DEBIAN_CNI, NET_DIR, NEWEST_CNI, PODS, write

SUBNET = "/run/flannel/subnet.env"


class Flannel(Neighbour):
    name = "flannel 0.28.4"
    health = "http://127.0.0.1:10244/healthz"

    def __init__(self, cluster, _):
        super().__init__(cluster)
        self.programs = built("flannel", "nft")
        self.plugin = built("flannel-cni")

    def prepare(self):
        """Write what its chart has. There may be no br_netfilter, without which it takes
        nftables alone."""
        write(f"{NET_DIR}/10-flannel.conflist", json.dumps({
            "name": "cbr0", "cniVersion": "0.3.1", "plugins": [
                {"type": "flannel", "delegate": {"hairpinMode": True, "isDefaultGateway": True}},
                {"type": "portmap", "capabilities": {"portMappings": True}}]}))
        shutil.copy(f"{self.plugin}/flannel", BIN_DIR)
        for name in ("bridge", "portmap"):
            shutil.copy(next(path for path in (f"{NEWEST_CNI}/{name}", f"{DEBIAN_CNI}/{name}")
                             if os.path.exists(path)), BIN_DIR)
        self.conf = write("/etc/flannel.json", json.dumps({
            "Network": PODS, "EnableNFTables": True, "Backend": {"Type": "host-gw"}}))

    def start(self):
        self.give_range()
        if os.path.exists(SUBNET):
            os.unlink(SUBNET)
        self.run(f"{self.programs}/flannel", "--kube-subnet-mgr", "--ip-masq",
                 f"--net-config-path={self.conf}", "--healthz-port=10244",
                 f"--kubeconfig-file={self.node.admin_kubeconfig('flannel')}")
        self.wait_healthy(60)
        wait(lambda: self.program.running() and os.path.exists(SUBNET), self.log, 60)


if __name__ == "__main__":
    lab.run(Flannel)
