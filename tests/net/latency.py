#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks the latency of requests beside a saturating stream each way at 100M.

sockperf sends 500 requests a second over TCP to the pod that is limited and has the
streams, and at the same time as many to a second pod that has neither. What else runs on
the machine delays both, and a queue of the limiter the first alone.
"""
import os
import statistics
import sys
import time

sys.path.insert(0, os.path.dirname(__file__) + "/../harness/python")
from limiters import Upstream, limiter
from percentiles import judge_latency
from rig import Rig
from script import LIMITER, option, run_script

CAP = "100M"
PERCENTILES = {"p50_ms": 50, "p99_ms": 99, "p999_ms": 99.9}
# A burst of 10 ms, because containerd's lets 4 Gbit pass before it limits.
UPSTREAM_BURST_BITS = 1000000


def one(r, a, lim):
    """Return the percentiles of the requests to both pods."""
    lim.attach(CAP, CAP)
    elephants = r.elephants()
    time.sleep(a.settle)
    runs = [r.on_lanes(lambda lane: r.sockperf(a.seconds, lane=lane))
            for _ in range(a.rounds)]
    r.stop(elephants)
    lim.detach()
    return [{key: statistics.median(run[lane][p] for run in runs) / 1e3
             for key, p in PERCENTILES.items()} for lane in range(2)]


def compare(r, rep, a, name, lim):
    limited, other = one(r, a, lim)
    for pod, got in ((name, limited), ("  the other pod", other)):
        rep.shown(pod, ", ".join(f"p{p} {got[key]:.2f} ms"
                                 for key, p in PERCENTILES.items()))
    judge_latency(rep, name, limited, other)


def main(rep, a):
    with Rig(lanes=2) as r:
        for lane in range(2):
            r.sockperf_server(lane=lane)
        upstream = Upstream(r.pod, burst_bits=UPSTREAM_BURST_BITS)
        tested = upstream if a.limiter == upstream.name else \
            limiter(a.limiter, r.pod)
        rep.measure(tested.name, compare, r, rep, a, tested.name, tested)


if __name__ == "__main__":
    run_script(main, LIMITER,
        option("--seconds", type=int, default=4),
        option("--settle", type=float, default=2),
        option("--rounds", type=int, default=3))
