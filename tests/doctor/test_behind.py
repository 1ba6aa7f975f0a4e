#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""natractl doctor names what a pod with CAP_NET_ADMIN puts behind natra's programs on its own
interface."""
import unittest

from test_pods import TBF, States, has_fq, isolate, run


def below_mq(p):
    p.inside("ethtool", "-L", "eth0", "tx", "2")
    p.attach("--edt-pacing", "off")
    p.inside("tc", "qdisc", "add", "dev", "eth0", "root", "handle", "1:", "mq")
    assert not p.find()
    p.inside("tc", "qdisc", "add", "dev", "eth0", "parent", "1:2", *TBF)


def add_filter(p, priority):
    p.inside("tc", "filter", "add", "dev", "eth0", "egress", "pref", str(priority), "protocol",
             "ip", "u32", "match", "u32", "0", "0", "flowid", "1:1")


def behind_a_link(p):
    p.attach("--attach-mode", "tcx-podside", "--edt-pacing", "off")
    p.inside("tc", "qdisc", "add", "dev", "eth0", "clsact")
    assert not p.find()
    add_filter(p, 1)


def behind_a_filter(p):
    p.attach("--attach-mode", "clsact-podside", "--edt-pacing", "off")
    add_filter(p, 7)


def change_fq(p, *words):
    p.attach("--edt-pacing", "on")
    p.inside("tc", "qdisc", "change", "dev", "eth0", "root", "fq", *words)


# As in test_pods.
STATES = (
    ("pod-qdisc", True, below_mq),
    ("pod-filter", False, behind_a_link),
    ("pod-filter", False, behind_a_filter),
)
FQ_STATES = (
    ("fq-replaced", True, lambda p: change_fq(p, "flow_limit", "1")),
    ("fq-replaced", True, lambda p: change_fq(p, "pacing")),
    ("fq-replaced", True, lambda p: change_fq(p, "horizon", "1ms")),
)


class Behind(States):
    def test_states(self):
        self.states(STATES)

    def test_states_of_fq(self):
        if not has_fq():
            self.skipTest("this kernel has no fq")
        self.states(FQ_STATES)

    def test_before_the_host_side(self):
        """What filters in the pod do comes before the limit."""
        p = self.patient()
        p.attach("--attach-mode", "tcx-hostside", "--edt-pacing", "off")
        p.inside("tc", "qdisc", "add", "dev", "eth0", "clsact")
        add_filter(p, 1)
        self.assertEqual(p.find(), {})


if __name__ == "__main__":
    isolate()
    run("ip", "link", "set", "lo", "up")
    unittest.main()
