#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks that a stream with ECN, on Linux 7 with AccECN, has its share beside one without, where
packets are held.

It is measured out of the pod with departure times, and into it with --ingress-mode pace. This
needs fq.
"""
import json
import os
import sys
import time

sys.path.insert(0, os.path.dirname(__file__) + "/../harness/python")
from limiters import Natra
from report import skip
from rig import Rig
from script import option, run_script
from turns import ends, limited, natra, way

PORT = 5201
CAP = "10M"
SHARE, SHARE_BY = 0.5, 0.2      # 0.5 +- 0.1
# The kernel's sysctl tcp_ecn.
ECN_OFF, ECN_CLASSIC, ECN_ACCURATE = 0, 1, 3


def carried(client, out):
    link, = json.loads(client.run("ip", "-s", "-j", "link", "show", "dev", "eth0"))
    return link["stats64"]["rx" if out else "tx"]["bytes"]


def first_of_two(r, out, a):
    """Return the part of the stream between the first pair of what two of them carry."""
    procs = [*r.elephant(*ends(r, out), PORT), *r.elephant(*ends(r, out, 1), PORT + 1)]
    time.sleep(a.settle)
    before = [carried(client, out) for client in r.clients]
    time.sleep(a.seconds)
    rates = [carried(client, out) - b for client, b in zip(r.clients, before)]
    r.stop(procs)
    return rates[0] / sum(rates)


def accecn(r, rep, out, a):
    """Two streams, of which the second one's other end knows no ECN."""
    word = ECN_ACCURATE if int(os.uname().release.split(".")[0]) >= 7 else ECN_CLASSIC
    for ns, ecn in ((r.pod, word), (r.clients[0], word), (r.clients[1], ECN_OFF)):
        ns.sysctl("net.ipv4.tcp_ecn", str(ecn))
    lim = limited(r, natra(out), CAP, out)
    share = first_of_two(r, out, a)
    marked = lim.stats()["egress" if out else "ingress"]["marked"]["packets"]
    lim.detach()
    rep.near(f"accecn, {way(out)}: its part of both", share, SHARE, SHARE_BY)
    if not out:                 # backpressure leaves a local sender hardly any to mark
        rep.least("  packets marked", marked, 1)


def main(rep, a):
    if not Natra().json("probe")["fq"]:
        skip("CONFIG_NET_SCH_FQ")
    for out in (True, False):
        with Rig(lanes=2) as r:
            rep.measure("accecn", accecn, r, rep, out, a)


if __name__ == "__main__":
    run_script(main,
        option("--settle", type=float, default=3),
        option("--seconds", type=float, default=5))
