#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs natra beside the real kube-router, its bridge and its policies."""
import json
import os
import shutil

import lab
from built import built
from lab import Neighbour
from node import BIN_DIR, DEBIAN_CNI, NAME, NET_DIR, NEWEST_CNI, write

LIST = f"{NET_DIR}/10-kuberouter.conflist"


class KubeRouter(Neighbour):
    name, policies = "kube-router 2.1.0", True
    health = "http://127.0.0.1:20244/healthz"

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
        self.give_range()
        os.environ["KUBE_ROUTER_CNI_CONF_FILE"] = LIST
        self.run(f"{self.programs}/kube-router", "--run-router=true", "--run-firewall=true",
                 "--run-service-proxy=false", "--enable-ipv6=false", "--enable-overlay=false",
                 f"--hostname-override={NAME}", "--kubeconfig",
                 self.node.admin_kubeconfig("kube-router"))
        self.wait_healthy(90)


if __name__ == "__main__":
    lab.run(KubeRouter)
