#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks what small flows can take together in each mode of the fast pass.

Datagrams come from many ports, each a flow of 4 % of the cap, which is under the
threshold. With `guarded` they get the cap and the ceiling and no more. Requests under
the ceiling pass as fast as to a second pod at the same time, which has neither a limit nor
streams beside them.

--full prints the table of tests/bench/results/fast-pass-*.txt, for instance:

  tests/vm/run 6.12 -- tests/net/guarded.py --full --natractl BUILD/.../natractl
"""
import os
import sys
import time
from statistics import median

sys.path.insert(0, os.path.dirname(__file__) + "/../harness/python")
from charged import one, request_size, show
from limiters import Natra, bits
from meter import ETH_IPV4_UDP, wire_rates
from percentiles import judge_latency
from rig import Rig
from script import QUICK, option, run_script

# 10000 flows of 4 % are 400 caps.
CAP = "1M"
SHARE = 0.04
OVER = 1.05
PORT = 7000
MODES = {"free": (None, ("--fast-pass", "free")),
         "guarded": (1, ("--fast-pass", "guarded")),
         "guarded at 10 %": (0.1, ("--fast-pass", "guarded",
                                   "--fast-pass-guard", bits(CAP) // 10)),
         "charged": (0, ("--fast-pass", "charged")),
         "off": (0, ("--fast-pass", "off"))}
# Whether the way leads into the pod, and natra's options for it.
WAYS = {"in, policed": (True, ()),
        "out, policed": (False, ("--edt", "off")),
        "in, paced": (True, ("--ingress-mode", "pace")),
        "out, paced": (False, ("--edt", "on"))}


def passed(r, a, way, mode, flows, width=0):
    """Return how many caps are offered and how many pass, and what natra counted as
    over the ceiling."""
    into, options = WAYS[way]
    cap = bits(CAP)
    src, dst = (r.client, r.pod) if into else (r.pod, r.client)
    meter = (r.into if into else r.out_of)(header=ETH_IPV4_UDP)
    lim = Natra(r.pod, *options, *MODES[mode][1],
                *(("--sketch-width", width) if width else ()))
    lim.attach(*((CAP, None) if into else (None, CAP)))
    p = r.load(src, "udp-send", dst.ip, PORT, "--ports", flows, "--rate",
               flows * SHARE * cap, "--no-wait", "--segments", 1)
    r.wait_flow(meter)
    time.sleep(a.settle)
    rate = wire_rates([meter], a.seconds)[0]
    got = r.load_end(p, src, now=True)
    stats = lim.stats()["ingress" if into else "egress"]
    lim.detach()
    return (got["sent"] + got["refused"]) / cap, rate / cap, stats


def ceiling(r, rep, a, way, mode, flows):
    # So many flows would all be heavy in the standard sketch, and have no ceiling.
    width = 65536 if flows == 10000 else 0
    offered, caps, stats = passed(r, a, way, mode, flows, width)
    if width:
        rep.least(f"{way}: caps that {flows} flows offer", offered, 100)
    what = f"{way}, {mode}, {flows} flows"
    guard = MODES[mode][0]
    if guard is None:
        rep.least(f"{what}: caps of {offered:.0f} (documented)", caps, 1.5)
        return
    rep.most(f"{what}: caps of {offered:.0f}", caps, OVER * (1 + guard))
    rep.least("  and", caps, 0.9)
    if guard:
        rep.least("  packets over the ceiling", stats["guarded"]["packets"], 1)
    else:
        rep.equal("  packets over the ceiling", stats["guarded"]["packets"], 0)


def table(r, rep, a):
    """Print the caps that pass, a row for each way and number of flows, and how long
    requests take beside streams."""
    print(f"Caps of {CAP}bit/s that pass of flows of {SHARE:.0%} of the cap each\n")
    print("| way | flows | offered |", " | ".join(MODES), "|")
    print("|---|---|---|" + "---|" * len(MODES))
    for way in ways(a):
        for flows, width in ((100, 0), (1000, 0), (10000, 0), (10000, 65536)):
            got = [passed(r, a, way, mode, flows, width) for mode in MODES]
            cells = f", {width} cells" if width else ""
            print(f"| {way} | {flows}{cells} | {got[0][0]:.0f} |",
                  " | ".join(f"{caps:.2f}" for _, caps, _ in got), "|", flush=True)
    print("\nRequests for half of 10Mbit/s beside streams: p50 and p99 in ms\n")
    print("| | without limit or streams |", " | ".join(MODES), "|")
    print("|---|---|" + "---|" * len(MODES))
    rps = 0.5 * bits("10M") / 8 / size_of_requests(r)
    got = [one(r, a, rps, Natra(r.pod, *options), True) for _, options in MODES.values()]
    for p in ("p50_ms", "p99_ms"):
        print(f"| {p[:3]} | {median([g['other'][p] for g in got]):.1f} |",
              " | ".join(f"{g[p]:.1f}" for g in got), "|")
    rep.true("all were measured", True)


def size_of_requests(r):
    for pod in r.pods:
        r.nginx(pod=pod)
    return request_size(r)


def ways(a):
    fq = Natra().json("probe")["fq"]
    return [w for w in WAYS if (fq or "policed" in w) and (not a.way or w in a.way)]


def requests(r, rep, a, m, rps, lim):
    """Send requests whose answers are `m` times the cap beside streams."""
    cap = bits("10M")
    got = one(r, a, rps, lim, m < 1)
    show(rep, f"{m:g} x cap", got)
    for i, way in enumerate(("in", "out")):
        rep.most(f"{m:g} x cap: sum {way}", got["wire"][i] / 1e6, OVER * 2 * cap / 1e6,
                 " Mbit/s")
    if m < 1:
        judge_latency(rep, f"{m:g} x cap", got, got["other"])
        # Mice under the ceiling take nothing of the rate of the streams.
        rep.least(f"{m:g} x cap: stream out", got["elephant"][1] / 1e6, 0.9 * cap / 1e6,
                  " Mbit/s")


def cases(a, way):
    """Return the modes and numbers of flows that are measured in a way. The second of
    --quick is only to show that its direction has the ceiling as well."""
    if a.quick and way:
        return [("guarded", 1000)]
    return [("free", 100), ("guarded", 100), ("guarded", 1000), ("guarded", 10000),
            ("guarded at 10 %", 1000), ("charged", 1000)]


def main(rep, a):
    with Rig(lanes=2) as r:
        r.load(r.pod, "udp-sink", PORT)
        r.load(r.client, "udp-sink", PORT)
        for ns in (r.pod, r.client):
            r.wait_port(ns, PORT, "udp")
        if a.full:
            table(r, rep, a)
            return
        for i, way in enumerate(ways(a)):
            for mode, flows in cases(a, i):
                rep.measure(f"{way}, {mode}, {flows}", ceiling, r, rep, a, way, mode,
                            flows)
        size = size_of_requests(r)
        lim = Natra(r.pod, "--fast-pass", "guarded")
        for m in (0.5,) if a.quick else (0.5, 5):
            rep.measure(f"requests of {m:g} caps", requests, r, rep, a, m,
                        m * bits("10M") / 8 / size, lim)


def prepare(a):
    if a.natractl:
        os.environ["NATRACTL"] = a.natractl


if __name__ == "__main__":
    run_script(main, QUICK,
        option("--full", action="store_true", help="print the whole table"),
        option("--natractl", metavar="PATH", help="natra's, instead of NATRACTL's"),
        option("--way", action="append", help="only this one of " + "; ".join(WAYS)),
        option("--seconds", type=float, default=4),
        option("--settle", type=float, default=3),
        prepare=prepare)
