#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks that the table of heavy flows has the largest one, however many there are.

The pod sends datagrams to many addresses in turn, at more than its limit, beside a flow
of four times the rate of each of these.
"""
import os
import sys
import time

sys.path.insert(0, os.path.dirname(__file__) + "/../harness/python")
from commands import sh
from limiters import Natra
from meter import ETH_IPV4_UDP
from rig import Rig
from script import option, run_script

PORT, PORT_OF_LARGEST = 5300, 5301
SIZE, HEADERS = 500, 14 + 20 + 8
OFFERED, TIMES = 8e6, 4


def hosts(r):
    """Give the client a thousand addresses beside its own. Return the first."""
    sh("ip", "route", "replace", "10.79.0.0/22", "via", r.client.ip, "dev", r.client.host)
    r.client.run("ip", "route", "replace", "local", "10.79.0.0/22", "dev", "lo")
    return "10.79.0.0"


def largest_of(r, rep, count, seconds):
    lim = Natra(r.pod).attach(None, "4M", "--heavy-hitter-threshold", "1k", "--edt-pacing", "off")
    others = r.load(r.pod, "udp-spread", hosts(r), PORT, "--hosts", count - 1, "--rate",
                    OFFERED, "--size", SIZE)
    largest = r.load(r.pod, "udp-send", r.client.ip, PORT_OF_LARGEST, "--rate",
                     TIMES * OFFERED / (count - 1), "--size", SIZE)
    r.wait_flow(r.out_of(0, ETH_IPV4_UDP))
    time.sleep(seconds)
    sent = r.load_end(largest, r.pod, now=True)["count"] * (SIZE + HEADERS)
    r.load_end(others, r.pod, now=True)
    flows = lim.json("top", lim.id, "--direction", "egress", "-n", "256")["egress"]
    noted = sum(f["bytes"] for f in flows if f["dport"] == PORT_OF_LARGEST)
    rep.shown(f"{count} heavy flows: in the table", len(flows))
    rep.least("  of the largest's bytes", 100 * noted / sent, 90, " %")
    rep.most("  of the largest's bytes", 100 * noted / sent, 100, " %")
    lim.detach()


def main(rep, a):
    with Rig() as r:
        r.load(r.client, "udp-sink", PORT)
        r.load(r.client, "udp-sink", PORT_OF_LARGEST)
        for port in (PORT, PORT_OF_LARGEST):
            r.wait_port(r.client, port, "udp")
        for count in (16, 40, 64, 200):
            rep.measure(f"{count} flows", largest_of, r, rep, count, a.seconds)


if __name__ == "__main__":
    run_script(main, option("--seconds", type=float, default=2))
