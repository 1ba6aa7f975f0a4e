#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks that small requests do not notice the cap that binds elephants beside them.

25 clients open 20 connections a second each and get 6 kB a response from a pod with 10M
each way and an elephant in each direction. At the same time 25 others do the same with
a second pod, which has neither.
"""
import os
import statistics
import sys
import time

sys.path.insert(0, os.path.dirname(__file__) + "/../harness/python")
from limiters import Natra
from percentiles import judge_latency
from rig import Rig
from script import option, run_script

CAP = "10M"
CLIENTS = 25


def one(r, urls, lim, a):
    """Return hey's figures for the pod with elephants, with its rates on the wire, and
    for the other."""
    lim.attach(CAP, CAP)
    elephants = r.elephants()
    time.sleep(a.settle)
    meters = r.meters()
    before = [m.read() for m in meters]
    got, other = r.on_lanes(lambda lane: r.hey(urls[lane], a.seconds, CLIENTS, lane=lane))
    after = [m.read() for m in meters]
    got["in"], got["out"] = ((b1 - b0) * 8 / (t1 - t0) / 1e6
                             for (t0, b0), (t1, b1) in zip(before, after))
    r.stop(elephants)
    lim.detach()
    return got, other


def show(rep, name, got, other):
    rep.shown(name, f"{got['rps']:.0f} requests/s, p50 {got['p50_ms']:.1f} "
              f"p99 {got['p99_ms']:.1f} ms, wire in {got['in']:.2f} "
              f"out {got['out']:.2f} Mbit/s")
    rep.shown("  the other pod", f"{other['rps']:.0f} requests/s, "
              f"p50 {other['p50_ms']:.1f} p99 {other['p99_ms']:.1f} ms")


def beside(r, rep, urls, lim, a):
    runs = [one(r, urls, lim, a) for _ in range(a.rounds)]
    for run in runs:
        show(rep, lim.name, *run)
    capped, other = ({key: statistics.median(figures[key] for figures in pod)
                      for key in ("rps", "p50_ms", "p99_ms", "p999_ms")}
                     for pod in zip(*runs))
    # A client asks again when it has its answer, so a moment's stall of one pod's clients is
    # lost to them, and a median of one round has it in full.
    rep.least(f"{lim.name}: requests/s", capped["rps"], 0.85 * other["rps"])
    judge_latency(rep, lim.name, capped, other)


def main(rep, a):
    with Rig(lanes=2) as r:
        urls = [r.nginx(pod=pod) for pod in r.pods]
        lim = Natra(r.pod)
        rep.measure("requests beside elephants", beside, r, rep, urls, lim, a)


if __name__ == "__main__":
    run_script(main,
        option("--seconds", type=int, default=8),
        option("--settle", type=float, default=2),
        option("--rounds", type=int, default=3))
