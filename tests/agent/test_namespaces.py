#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Limits follow the file of namespaces: the plugin has a copy of it, running pods change, and a
pod that asks for more than the maximum gets that and an Event."""
import errno
import json
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import parallel
from podnode import wait_until
from test_live import IN, Case, has_live


class Namespaces(Case):
    def setUp(self):
        super().setUp()
        self.file = self.node.root / "conf" / "namespaces.json"
        self.file.parent.mkdir()
        self.copy = self.node.root / "var/lib/natra/namespaces.json"

    def write(self, rules):
        new = self.file.with_suffix(".new")
        new.write_text(rules if isinstance(rules, str) else json.dumps({"shop": rules}))
        new.rename(self.file)

    def follow(self, rules, *options):
        self.write(rules)
        self.start("--namespaces", str(self.file), *options)

    def until_event(self, *words):
        wait_until(lambda: any(all(w in json.dumps(e) for w in words) for _, e in self.api.events),
                   lambda: f"{self.api.events}\n{self.agent.log()}")

    def test_edits_of_the_file(self):
        for name in "ab":
            self.node.attached(f"net/{name}/eth0", 10000000, 0)
        self.pod("a", {IN: "10M"})
        self.pod("b", {IN: "1M"})
        self.follow({"max": {"ingressRate": "5M"}, "default": {"egressRate": "2M"}})
        self.until("a", (5000000, 2000000))
        self.until("b", (1000000, 2000000))
        self.until_event("BandwidthOverMaximum", "pod-a", "10000000 is over")
        self.assertEqual(self.copy.read_text(), self.file.read_text())
        self.write({"max": {"ingressRate": "6M", "egressRate": "3M"}})
        self.until("a", (6000000, 3000000))
        # A wrong file changes nothing, and is told once.
        for rate in ("fast", "fast", "quick"):
            self.write({"max": {"ingressRate": rate}})
            self.agent.wait(f"'shop': max.ingressRate: '{rate}' is not a rate such as 10M: "
                            "the namespaces keep what they have")
            # Changes that come together are one.
            time.sleep(0.2)
        self.assertEqual(self.agent.count("'fast' is not a rate"), 1)
        self.assertIn("6M", self.copy.read_text())
        self.api.put("a", {IN: "20M"})
        self.write({})
        self.until("a", (20000000, 0))

    def test_what_cannot_be_read(self):
        """A wrong annotation does not keep a pod over a maximum that is lowered since."""
        self.node.attached("net/a/eth0", 10000000, 0)
        self.pod("a", {IN: "10M"})
        self.follow({"max": {"ingressRate": "50M"}})
        self.api.put("a", {IN: "fast"})
        self.until_event("BandwidthNotChanged", "fast")
        self.write({"max": {"ingressRate": "5M"}})
        self.until("a", (5000000, 0))

    def test_copy_that_cannot_be_written(self):
        """It is told once as long as it lasts."""
        self.copy.parent.write_text("")
        self.follow({})
        for rate in ("1M", "2M"):
            self.write({"max": {"ingressRate": rate}})
            time.sleep(0.2)
        self.assertEqual(self.agent.count("the namespaces keep what they have"), 1)
        self.copy.parent.unlink()
        self.write({"max": {"ingressRate": "3M"}})
        wait_until(lambda: self.copy.exists() and "3M" in self.copy.read_text(), self.agent.log)

    def test_maximum_that_cannot_be_written(self):
        """The maximum is told when it holds, not before."""
        self.node.attached("net/a/eth0", 10000000, 0)
        self.pod("a", {IN: "10M"})
        self.node.fail("configure", errno.EIO)
        self.follow({"max": {"ingressRate": "5M"}})
        self.until_event("BandwidthNotChanged", "pod-a")
        self.agent.wait("the pod keeps the limits that it has")
        self.assertEqual(self.agent.count("the maximum of the pod's namespace holds"), 0)
        (self.node.state / "error-configure").unlink()
        self.until("a", (5000000, 0))
        self.until_event("BandwidthOverMaximum", "pod-a", "10000000 is over")

    def test_edits_that_are_held(self):
        self.node.attached("net/a/eth0", 10000000, 0)
        self.pod("a", {IN: "10M"})
        self.follow({}, "--edits", "none")
        self.write({"max": {"ingressRate": "5M"}})
        self.until("a", (5000000, 0))

    def test_without_a_file(self):
        self.copy.parent.mkdir()
        self.copy.write_text("{}")
        self.start()
        self.assertFalse(self.copy.exists())


if __name__ == "__main__":
    if not has_live():
        print("natra-agent was built without libcurl")
        sys.exit(77)
    parallel.main()
