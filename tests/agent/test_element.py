#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""natra-agent where others have put natra's element into their list: pods that were made
before have the configuration of that element."""
import json
import os
import re
import time

import parallel
from test_live import IN, Case


class Element(Case):
    def setUp(self):
        super().setUp()
        self.net = self.node.root / "etc/cni/net.d"
        for path in (self.net, self.node.root / "opt/cni/bin"):
            path.mkdir(parents=True)

    def begin(self):
        """Start an agent that installs, and that finds no list yet."""
        self.agent = self.node.agent(
            "--plugin", os.environ["NATRA_CNI"], "--runtime-version",
            "containerd://1.6.20", "--node", "node-1", "--api-server", self.api.url,
            "--token-file", str(self.token), "--ca-file", "")
        self.addCleanup(self.agent.__exit__)
        self.agent.wait("has no list of a network plugin yet")

    def write(self, **keys):
        (self.net / "10-it.conflist").write_text(json.dumps({
            "cniVersion": "1.0.0", "name": "it",
            "plugins": [{"type": "ptp"}, {"type": "natra", **keys}]}))

    def test_element_that_cannot_be_kept(self):
        """What was repaired meanwhile is counted, and what was not is not."""
        self.pod(plugins=["ptp"])
        self.begin()
        self.write(ingressRate=1000000, capabilities={"bandwidth": True})
        self.agent.wait("msg=ready part=install")
        self.agent.wait("msg=ready part=pods")
        plugin = self.node.root / "opt/cni/bin/natra"

        def repairs():
            return int(re.search(r"\nnatra_conflist_repairs_total (\d+)",
                                 self.agent.get("/metrics")[1])[1])
        # The directories are watched from the second look on.
        time.sleep(1)
        written = self.agent.count("msg=written")
        fault = self.node.touch("element-unwritable")
        plugin.unlink()
        self.agent.wait("natra's element of the list: File too large")
        self.assertFalse(plugin.exists())
        fault.unlink()
        self.agent.wait("msg=repaired")
        self.assertEqual((self.agent.count("msg=written"), repairs()), (written, 1))
        time.sleep(1)
        fault = self.node.touch("element-unreadable")
        plugin.unlink()
        self.agent.wait("element of the list cannot be read: Input/output error")
        self.agent.wait("msg=repaired", 2)
        self.assertEqual(repairs(), 2)
        # Pods may have started without the plugin.
        self.node.pod("b", None, ["ptp"])
        fault.unlink()
        self.until("b", (1000000, 0))

    def test_edits(self):
        self.node.attached("net/a/eth0", 1000000, 0)
        self.pod(plugins=["ptp"])
        self.begin()
        # Without a list, its configuration is not known.
        time.sleep(0.5)
        self.assertEqual(self.api.watches, [])
        self.write(ingressRate=1000000, precedence="runtime",
                   capabilities={"bandwidth": True})
        self.agent.wait("msg=ready part=api")
        self.api.put("a", {IN: "3M"})
        self.until("a", (3000000, 0))
        # The pod's limit was right when the agent first saw it.
        self.assertEqual(len(self.calls("configure")), 1)
        self.api.put("a", {})
        self.until("a", (1000000, 0))

    def test_long_element(self):
        """Where natra takes 1024 blocks, a pod that was made before has the rates, too."""
        self.pod(plugins=["ptp"], annotations={})
        self.begin()
        blocks = [f"2001:db8:{n:x}:ffff:ffff:ffff:ffff:0/112" for n in range(1024)]
        self.write(ingressRate=1000000, capabilities={"bandwidth": True},
                   unshapedSubnets=blocks)
        self.until("a", (1000000, 0))
        # The next look replaces all of it.
        self.write(ingressRate=1000000, logFile="/its.log")
        self.agent.wait("'/its.log'")

    def test_log(self):
        """The plugin writes its log where that element says."""
        self.begin()
        self.write(logFile="/its.log")
        self.agent.wait("'/its.log'")
        for n, name in enumerate(("its.log", "var/log/natra-cni.log")):
            path = self.node.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"refused {n}\n")
        self.agent.wait("refused 0")
        time.sleep(1.2)
        self.assertEqual(self.agent.count("refused 1"), 0)
        self.write(logFile="")
        self.agent.wait("plugin's log: ''")


if __name__ == "__main__":
    parallel.main(live=True)
