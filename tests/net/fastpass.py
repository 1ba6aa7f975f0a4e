#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks what small flows can take together in each mode of the fast pass.

Datagrams come from many ports, each a flow of 4 % of the cap, which is under the
threshold. With `strict` they get the cap and no more, or their ceiling and the fifth that
is kept for heavy flows, if the ceiling is over the cap. Requests under it pass as fast as to
a second pod at the same time, which has neither a limit nor streams beside them.
"""
import os
import sys
import time

sys.path.insert(0, os.path.dirname(__file__) + "/../harness/python")
from strict import one, request_size, show
from limiters import Natra, bits
from meter import ETH_IPV4_UDP, wire_rates
from percentiles import judge_latency
from rig import Rig
from script import option, run_script

CAP = "1M"
CEILING = 2                     # caps, for requests
SHARE = 0.04
OVER = 1.05
PORT = 7000
# The caps that pass at most, and natra's options.
MODES = {"free": (None, ("--fast-pass", "free")),
         "strict at 180 %": (2, ("--fast-pass", "strict", "--fast-pass-share", 180)),
         "strict": (1, ("--fast-pass", "strict")),
         "off": (1, ("--fast-pass", "off"))}
# Whether the way leads into the pod, and natra's options for it.
WAYS = {"in, policed": (True, ()),
        "out, policed": (False, ("--edt-pacing", "off")),
        "in, paced": (True, ("--ingress-mode", "pace")),
        "out, paced": (False, ("--edt-pacing", "on"))}
# The options for both directions at once.
KINDS = {"policed": ("--edt-pacing", "off"),
         "paced": ("--ingress-mode", "pace", "--edt-pacing", "on")}


def passed(r, a, way, mode, flows):
    """Return how many caps are offered and how many pass."""
    into, options = WAYS[way]
    cap = bits(CAP)
    src, dst = (r.client, r.pod) if into else (r.pod, r.client)
    meter = (r.into if into else r.out_of)(header=ETH_IPV4_UDP)
    lim = Natra(r.pod, *options, *MODES[mode][1])
    lim.attach(*((CAP, None) if into else (None, CAP)))
    p = r.load(src, "udp-send", dst.ip, PORT, "--ports", flows, "--rate",
               flows * SHARE * cap, "--no-wait", "--segments", 1)
    r.wait_flow(meter)
    time.sleep(a.settle)
    rate = wire_rates([meter], a.seconds)[0]
    got = r.load_end(p, src, now=True)
    lim.detach()
    return (got["sent"] + got["refused"]) / cap, rate / cap


def ceiling(r, rep, a, way, mode, flows):
    offered, caps = passed(r, a, way, mode, flows)
    what = f"{way}, {mode}, {flows} flows"
    most = MODES[mode][0]
    if most is None:
        rep.least(f"{what}: caps of {offered:.0f} (documented)", caps, 1.5)
        return
    rep.most(f"{what}: caps of {offered:.0f}", caps, OVER * most)
    rep.least("  and", caps, 0.9 * most)


def size_of_requests(r):
    for pod in r.pods:
        r.nginx(pod=pod)
    return request_size(r)


def ways(a):
    fq = Natra().json("probe")["fq"]
    return [w for w in WAYS if (fq or "policed" in w) and (not a.way or w in a.way)]


def kinds(a):
    """Return those of KINDS that the ways have, with their options."""
    return {kind: options for kind, options in KINDS.items()
            if any(way.endswith(kind) for way in ways(a))}


def requests(r, rep, a, rps, lim, kind):
    """Send requests whose answers are half of the cap beside streams."""
    cap = bits(a.cap)
    got = one(r, a, rps, lim, True, a.cap)
    what = f"{kind}, 0.5 x cap"
    show(rep, what, got)
    check_served(rep, what, got)
    judge_latency(rep, what, got, got["other"])
    # Streams keep a fifth, and what mice leave of the rest. If mice crowd out the
    # acknowledgements, the stream into the pod does not fill its part.
    rep.least(f"{what}: stream out", got["elephant"][1] / 1e6,
              0.9 * (1 - 0.4 / CEILING) * cap / 1e6, " Mbit/s")


def check_served(rep, what, got):
    """The times of requests that nobody answers say nothing."""
    for name, of in ((what, got), (f"{what}, the other pod", got["other"])):
        rep.most(f"{name}: failed of {of['done'] + of['failed']}", of["failed"],
                 0.01 * of["done"])


def cases(way):
    """Return the modes and numbers of flows that are measured in a way. Those behind the first
    only show that their direction is strict as well."""
    if way:
        return [("strict", 1000)]
    return [("free", 100), ("strict", 100), ("strict", 1000), ("strict at 180 %", 1000)]


def main(rep, a):
    with Rig(lanes=2) as r:
        r.load(r.pod, "udp-sink", PORT)
        r.load(r.client, "udp-sink", PORT)
        for ns in (r.pod, r.client):
            r.wait_port(ns, PORT, "udp")
        for i, way in enumerate(ways(a)):
            for mode, flows in cases(i):
                rep.measure(f"{way}, {mode}, {flows}", ceiling, r, rep, a, way, mode,
                            flows)
        size = size_of_requests(r)
        for kind, options in kinds(a).items():
            lim = Natra(r.pod, *options, "--fast-pass", "strict", "--fast-pass-share",
                        100 * CEILING)
            rep.measure(f"{kind}, requests of half a cap", requests, r, rep, a,
                        bits(a.cap) / 16 / size, lim, kind)


if __name__ == "__main__":
    run_script(main,
        option("--cap", default="10M", help="of the pod with requests; a VM can do less"),
        option("--way", action="append", help="only this one of " + "; ".join(WAYS)),
        option("--seconds", type=float, default=4),
        option("--settle", type=float, default=3))
