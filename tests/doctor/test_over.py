#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests what `natractl doctor` says of small flows that exceed a pod's limit together: real
ones, and within the limit, and where they are charged."""
import sys
import unittest

from test_pods import Case, Patient, isolate, run

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
                         r" (2\.[5-9]|3\.\d) times the limit passed egress ")
        p.mend(found["over-limit"]["mend"])
        self.assertEqual(p.find(), {})

    def test_strict(self):
        p = Patient()
        self.addCleanup(p.close)
        p.attach("--egress-rate", "1M", "--fast-pass", "strict")
        self.flood(p, 900)
        self.assertEqual(p.find(), {})


if __name__ == "__main__":
    isolate()
    run("ip", "link", "set", "lo", "up")
    unittest.main()
