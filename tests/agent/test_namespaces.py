#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Limits follow the file of namespaces: the plugin has a copy of it, running pods change, and a
pod that asks for more than the maximum gets that and an Event."""
import errno
import json
import threading
import time

import parallel
from podnode import wait_until
from test_live import IN, Case


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
        # What is read again is the same file, and edits are still lowered by it.
        self.write({"max": {"ingressRate": "6M", "egressRate": "3M"}})
        time.sleep(0.3)
        self.api.put("a", {IN: "8M"})
        self.until_event("BandwidthOverMaximum", "pod-a", "8000000 is over")
        self.assertEqual(self.node.limits("a")[0], 6000000)
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

    def until_old(self, is_old):
        wait_until(lambda: f"natra_unreadable_namespaces_file {is_old}\n" in self.agent.get("/metrics")[1],
                   self.agent.log)

    def test_copy_that_cannot_be_written(self):
        """Running pods have what was read; those that start would have none, so the agent is not
        ready, which is told once as long as it lasts."""
        self.copy.parent.write_text("")
        self.pod("a", {IN: "900M"}, bandwidth={"ingressRate": 900000000})
        self.follow({"max": {"ingressRate": "1M"}})
        self.until("a", (1000000, 0))
        for rate in ("2M", "3M"):
            self.write({"max": {"ingressRate": rate}})
            self.until("a", (int(rate[0]) * 1000000, 0))
        self.assertEqual(self.agent.count("pods that start have no maximum"), 1)
        self.assertIn("[-] namespaces: /var/lib/natra/namespaces.json: Not a directory",
                      self.agent.wait_ready(False))
        self.until_old(1)
        self.copy.parent.unlink()
        self.write({"max": {"ingressRate": "4M"}})
        self.agent.wait_ready()
        self.assertIn("4M", self.copy.read_text())
        self.until_old(0)
        # An older copy is told, and holds.
        self.write('{"shop": ')
        self.until_old(1)
        self.agent.wait("is not JSON at byte 9 of 9: the namespaces keep what they have")
        self.assertEqual(self.agent.get("/readyz")[0], 200)

    def test_nothing_to_read(self):
        """A node without a copy, such as a new one, has no maximum before the file was read once:
        no pod is limited until then, and the agent is not ready."""
        self.pod("a", {IN: "900M"}, bandwidth={"ingressRate": 900000000})
        self.node.attached("net/b/eth0", 1000000, 0)
        self.pod("b", {IN: "900M"})
        self.start("--namespaces", str(self.file), wait=False)
        for text, why in ((None, "No such file"), ('{"shop": {"max": {"ingressRate": "2M"', "JSON"),
                          ("", "is not JSON"), ({"max": {}, "new": 1}, "new: 1 is no key")):
            if text is not None:
                self.write(text)
            wait_until(lambda why=why: why in self.agent.get("/readyz")[1], self.agent.log)
            status, body = self.agent.get("/readyz")
            self.assertEqual((status, body.count("[-] namespaces: ")), (503, 1), body)
        self.until_old(1)
        self.assertEqual((self.node.limits("a"), self.node.limits("b")), (None, (1000000, 0)))
        self.write({"max": {"ingressRate": "2M"}})
        self.until("a", (2000000, 0))
        self.until("b", (2000000, 0))
        self.agent.wait_ready()
        self.until_old(0)
        # The copy stands in for the file when the agent is started again.
        self.write("")
        self.agent.stop()
        self.pod("c", {IN: "900M"}, bandwidth={"ingressRate": 900000000})
        self.start("--namespaces", str(self.file))
        self.until("c", (2000000, 0))
        self.agent.wait_ready()
        self.until_old(1)

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

    def test_a_directory_that_keeps_changing(self):
        self.node.attached("net/a/eth0", 10000000, 0)
        self.pod("a", {IN: "10M"})
        self.follow({"max": {"ingressRate": "5M"}})
        self.until("a", (5000000, 0))
        ends = threading.Event()

        def change():
            while not ends.wait(0.005):
                self.file.with_name("other").touch()
                self.file.with_name("other").unlink()
        thread = threading.Thread(target=change)
        thread.start()
        try:
            self.write({"max": {"ingressRate": "4M"}})
            self.until("a", (4000000, 0), 10)
        finally:
            ends.set()
            thread.join()

    def test_edits_that_are_held(self):
        self.node.attached("net/a/eth0", 10000000, 0)
        self.pod("a", {IN: "10M"})
        self.follow({}, "--edits", "none")
        self.write({"max": {"ingressRate": "5M"}})
        self.until("a", (5000000, 0))

    def test_without_a_file(self):
        """What an earlier agent has copied does not hold, but lists may still need the copy."""
        self.start()
        self.assertFalse(self.copy.parent.exists())
        self.agent.stop()
        self.copy.parent.mkdir()
        self.copy.write_text('{"shop": {"max": {"ingressRate": "1M"}}}')
        self.start()
        self.assertEqual(self.copy.read_text(), "{}")
        self.agent.stop()
        # An agent does not take that copy for a file that was read once.
        self.start("--namespaces", str(self.file), wait=False)
        self.assertIn("[-] namespaces: ", self.agent.wait_ready(False))


if __name__ == "__main__":
    parallel.main(live=True)
