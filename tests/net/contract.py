#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks what requests have where all that a pod sends keeps to its cap.

The measurement is that of tools/quickstart, with fq: a client asks for small files 1000 times in
a second, each on a new connection, which is several caps, beside a stream in each direction.
natra with `strict`, htb with fq_codel, upstream's plugin, and natra with `free`, whose requests
need not keep to the cap, take turns, and the medians are rows of a table.
"""
import os
import statistics
import sys

sys.path.insert(0, os.path.dirname(__file__) + "/../harness/python")
from demo import BURST_BITS, CAP, measure
from limiters import FqCodel, Natra, Upstream, bits
from report import skip
from rig import Rig
from script import option, run_script

LEAST_PER_S, P99_MS = 145, 97
STREAM_LEAST = 0.18             # a fifth, but for the noise of some seconds
MOST = 1.05                     # times the cap
STRICT = "natra, strict"
LIMITERS = {
        STRICT: lambda pod: Natra(pod, "--fast-pass", "strict"),
        "htb + fq_codel": FqCodel,
        "upstream": lambda pod: Upstream(pod, burst_bits=BURST_BITS),
        "natra, free": Natra}
COLUMNS = {"rps": "requests/s", "p99_ms": "their p99, ms", "in": "stream in, Mbit/s",
           "out": "stream out", "all out": "all out"}


def contract(r, rep, url, a):
    got = {name: [] for name in LIMITERS}
    for _ in range(a.rounds):
        for name, limiter in LIMITERS.items():
            got[name].append(measure(r, url, limiter(r.pod), a.seconds)[0])
    median = {name: {k: statistics.median(row[k] for row in rows) for k in COLUMNS}
              for name, rows in got.items()}
    rep.shown(f"|  | {' | '.join(COLUMNS.values())} |", "")
    rep.shown("|" + "---|" * (1 + len(COLUMNS)), "")
    for name, row in median.items():
        rep.shown(f"| {name} | {' | '.join(f'{f:.1f}' for f in row.values())} |", "")
    cap, strict = bits(CAP) / 1e6, median[STRICT]
    rep.least("requests in a second, strict", strict["rps"], LEAST_PER_S)
    rep.most("  their p99", strict["p99_ms"], P99_MS, " ms")
    rep.most("  all traffic out of the pod", strict["all out"], MOST * cap, " Mbit/s")
    for way in ("in", "out"):
        rep.least(f"  the stream {way}", strict[way], STREAM_LEAST * cap, " Mbit/s")


def main(rep, a):
    if not Natra().json("probe")["fq"]:
        skip("CONFIG_NET_SCH_FQ")
    with Rig() as r:
        contract(r, rep, r.nginx(), a)


if __name__ == "__main__":
    run_script(main,
        option("--rounds", type=int, default=1),
        option("--seconds", type=int, default=5))
