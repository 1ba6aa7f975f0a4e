#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks the latency of requests beside a saturating stream each way at 100M.

sockperf sends 500 requests a second over TCP. Beside the streams the median and the
99th percentile may be 1.5 times what they are without them, under the same limiter. The
figures without a limiter and with upstream's plugin are only shown.
"""
import os
import statistics
import sys
import time

sys.path.insert(0, os.path.dirname(__file__) + "/../harness/python")
from limiters import Upstream, limiter
from percentiles import p99_limit_ms
from rig import Rig
from script import LIMITER, MODE, QUICK, option, run_script

CAP = "100M"
# Two cores serve streams and requests, and the median moves by this much with the core
# on which a process is woken, which may have slept. A queue adds milliseconds.
NOISE_US = 100


def sockperf(r, seconds):
    """Return the median and the 99th percentile of the round trips, in us."""
    got = r.sockperf(seconds)
    return got[50], got[99]


def one(r, a, lim):
    """Return (idle, loaded), the medians of the rounds' medians, in us."""
    if lim:
        lim.attach(CAP, CAP)
    runs = []
    for _ in range(a.rounds):
        idle = sockperf(r, a.seconds)
        elephants = r.elephants()
        time.sleep(a.settle)
        runs.append((idle, sockperf(r, a.seconds)))
        r.stop(elephants)
        time.sleep(0.5)
    if lim:
        lim.detach()
    return [[statistics.median(run[i][j] for run in runs)
             for j in range(2)] for i in range(2)]


def compare(r, rep, a, name, lim, judged):
    (idle, idle99), (beside, beside99) = one(r, a, lim)
    rep.shown(name, f"idle {idle:.0f} us (p99 {idle99:.0f}), "
              f"beside streams {beside:.0f} (p99 {beside99:.0f})")
    if judged:
        rep.most(f"{name}: median beside streams", beside,
                 max(1.5 * idle, idle + NOISE_US), " us")
        rep.most(f"{name}: p99 beside streams", beside99 / 1e3,
                 p99_limit_ms(idle99 / 1e3), " ms")


def main(rep, a):
    if a.quick:
        a.seconds, a.rounds, a.alone = 2, 1, True
    with Rig() as r:
        r.sockperf_server()
        options = ["--mode", a.mode] if a.mode else []
        tested = limiter(a.limiter, r.pod, *options)
        lims = [tested]
        if not a.alone:
            lims = [None, tested]
            if os.access(Upstream.PLUGIN, os.X_OK):
                lims.append(Upstream(r.pod, burst_bits=1000000))
        for lim in lims:
            name = lim.name if lim else "no limiter"
            rep.measure(name, compare, r, rep, a, name, lim, lim is tested)


if __name__ == "__main__":
    run_script(main, MODE, QUICK, LIMITER,
        option("--seconds", type=int, default=4),
        option("--settle", type=float, default=2),
        option("--rounds", type=int, default=3),
        option("--alone", action="store_true", help="nothing beside natra's figures"))
