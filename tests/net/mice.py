#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks that small requests do not notice the cap that binds elephants beside them.

50 clients open 20 connections a second each and get 6 kB a response: alone, and beside
an elephant in each direction with 10M each way, in turns. The figures without a limit
and with upstream's plugin are shown for comparison.
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

CAP = "10M"


def one(r, url, lim, a, idle=False):
    """Return hey's figures and the rates on the wire of one run, which is beside
    elephants unless `idle`."""
    if lim:
        lim.attach(CAP, CAP)
    elephants = [] if idle else r.elephants()
    time.sleep(0 if idle else a.settle)
    meters = r.meters()
    before = [m.read() for m in meters]
    got = r.hey(url, a.seconds)
    after = [m.read() for m in meters]
    got["in"], got["out"] = ((b1 - b0) * 8 / (t1 - t0) / 1e6
                             for (t0, b0), (t1, b1) in zip(before, after))
    if lim and lim.name == "natra":
        got["stats"] = lim.stats()
    r.stop(elephants)
    if lim:
        lim.detach()
    return got


def show(rep, name, got):
    rep.shown(name, f"{got['rps']:.0f} requests/s, p50 {got['p50_ms']:.1f} "
              f"p99 {got['p99_ms']:.1f} ms, wire in {got['in']:.2f} "
              f"out {got['out']:.2f} Mbit/s")


def median(runs, key):
    return statistics.median(g[key] for g in runs)


def beside(r, rep, url, lim, a):
    idle, capped = [], []
    for _ in range(a.rounds):
        idle.append(one(r, url, None, a, idle=True))
        show(rep, "no elephants", idle[-1])
        capped.append(one(r, url, lim, a))
        show(rep, lim.name, capped[-1])
    rep.least(f"{lim.name}: requests/s, median", median(capped, "rps"),
              0.95 * median(idle, "rps"))
    rep.most(f"{lim.name}: p99, median", median(capped, "p99_ms"),
             p99_limit_ms(median(idle, "p99_ms")), " ms")


def main(rep, a):
    if a.quick:
        a.seconds, a.rounds, a.no_upstream = 3, 1, True
    with Rig() as r:
        url = r.nginx()
        options = ["--mode", a.mode] if a.mode else []
        lim = limiter(a.limiter, r.pod, *options)
        rep.measure("requests beside elephants", beside, r, rep, url, lim, a)
        if not a.no_upstream and os.access(Upstream.PLUGIN, os.X_OK):
            show(rep, "no limiter", one(r, url, None, a))
            for name, burst in (("containerd's burst", 4294967295),
                                ("burst of 1 Mbit", 1000000)):
                up = Upstream(r.pod, burst_bits=burst)
                show(rep, f"upstream, {name}",
                     one(r, url, up, a))


if __name__ == "__main__":
    run_script(main, MODE, QUICK, LIMITER,
        option("--seconds", type=int, default=8),
        option("--settle", type=float, default=2),
        option("--rounds", type=int, default=3),
        option("--no-upstream", action="store_true"))
