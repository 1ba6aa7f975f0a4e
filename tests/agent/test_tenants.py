#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What the pods of one tenant ask for does not keep natra-agent from those of another."""
import os
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import parallel
from podnode import wait_until
from test_live import IN, PLUGINS, Case, has_live


class Tenants(Case):
    def events_of(self, name):
        return sum(e["involvedObject"]["name"] == f"pod-{name}"
                   for _, e in self.api.events)

    def test_one_pod_has_one_place(self):
        """Edits of a pod are merged while a job works, and hold up no other pod's."""
        for name in "ab":
            self.node.attached(f"net/{name}/eth0", 1000000, 0)
            self.pod(name)
        self.start()
        hold = self.node.touch("hold-configure")
        for n in range(3000):
            self.api.put("a", {IN: f"{2 + n % 7}M"})
        self.api.put("b", {IN: "5M"})
        self.api.put("a", {IN: "9M"})
        time.sleep(1)
        hold.unlink()
        self.until("b", (5000000, 0))
        self.until("a", (9000000, 0))
        self.assertLess(len(self.calls("configure")), 20)

    def test_large_annotations(self):
        """Go writes '<' in six bytes: 180 kB of them are over 1 MiB of JSON, twice."""
        junk = "\\u003c" * 180000
        path = self.node.pod("a", {"ingressRate": 10000000}, PLUGINS, {"junk": "@"})
        with open(path) as f:
            text = f.read().replace("@", junk)
        with open(path, "w") as f:
            f.write(text)
        self.start()
        self.until("a", (10000000, 0))
        raw = self.api.raw
        self.api.raw = lambda text: raw(text.replace("@", junk))
        self.api.put("a", {IN: "1M", "junk": "@"})
        self.until("a", (1000000, 0))

    def test_many_bad_values(self):
        """Events are bounded for each pod, so that others' are sent; the log has all."""
        self.pod()
        self.start()
        for n in range(20):
            self.api.put("a", {IN: f"bad{n}"})
            self.agent.wait(f"bad{n}'")
        self.node.attached("net/b/eth0", 1000000, 0)
        self.pod("b")
        self.api.put("b", {IN: "10 Mbit"})
        wait_until(lambda: self.events_of("b"), self.agent.log)
        time.sleep(0.5)
        self.assertEqual(self.events_of("a"), 8)


if __name__ == "__main__":
    if not has_live():
        print("natra-agent was built without libcurl")
        sys.exit(77)
    parallel.main()
