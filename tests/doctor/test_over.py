#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests what `natractl doctor` says of small flows that exceed a pod's limit together: real
ones, and within the limit, and over that of a class and of a group."""
import sys
import unittest

from test_pods import BPFFS, Case, Patient, isolate, run

# Each of a hundred sockets is a small flow, and its datagrams are a factor of the limit.
FLOOD = """
import socket, sys, time
sockets = [socket.socket(type=socket.SOCK_DGRAM) for _ in range(100)]
end = time.monotonic() + 7
while time.monotonic() < end:
    for s in sockets:
        s.sendto(bytes(int(sys.argv[1])), ("10.99.0.1", 9))
    time.sleep(0.25)
"""

FACTOR = r" (2\.[5-9]|3\.\d)"


class Over(Case):
    def flood(self, p, size):
        p.inside(sys.executable, "-c", FLOOD, str(size))

    def test_small_flows_over_the_limit(self):
        p = Patient()
        self.addCleanup(p.close)
        p.attach("--egress-rate", "1M")
        self.flood(p, 150)
        self.assertEqual(p.find(), {})
        self.flood(p, 900)
        found = p.find()
        self.assertEqual(list(found), ["over-limit"])
        self.assertRegex(found["over-limit"]["text"],
                         FACTOR + " times the limit passed egress ")
        p.mend(found["over-limit"]["mend"])
        self.assertEqual(p.find(), {})

    def test_over_the_limits_of_a_class_and_of_a_group(self):
        p = Patient()
        self.addCleanup(p.close)
        p.tool("group", "set", "tenant", "--egress-rate", "1M")
        self.addCleanup(p.tool, "group", "remove", "tenant")
        self.addCleanup(p.detach)
        p.attach("--group", "tenant", "--class", "near=10.99.0.1/32,egress-rate=1M")
        self.flood(p, 900)
        found = p.doctor("--json", bare=False, bpffs=BPFFS).json["findings"]
        self.assertEqual([f["check"] for f in found], ["over-limit"] * 2)
        for f, of in zip(found, ("class 'near'", "group 'tenant'")):
            self.assertRegex(f["text"], FACTOR + f" times the limit of {of} passed egress ")
        self.assertRegex(p.tool("group", "show", "tenant"),
                         FACTOR + r" times the limit passed in a second, \d+ s ago\n")
        p.mend(found[0]["mend"])
        self.assertEqual(p.find(), {})


if __name__ == "__main__":
    isolate()
    run("ip", "link", "set", "lo", "up")
    unittest.main()
