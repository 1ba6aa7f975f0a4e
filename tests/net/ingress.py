#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Shows what a pod has of --ingress-mode pace beside police, by turns: what decides which of
them `ingressMode` is by default. The rows are those of busy.py and inner.py into the pod. This
needs fq and netem, the tunnel WireGuard, and the figures a machine with nothing else to do.
"""
import os
import statistics
import sys

sys.path.insert(0, os.path.dirname(__file__) + "/../harness/python")
from busy import CAP, RTTS_MS, WINDOWS, busy_once
from inner import forwarded, quic, tunnel
from limiters import Natra
from report import skip
from rig import Rig
from script import option, run_script

MODES = ("police", "pace")


def by_turns(r, rep, what, measure, rounds):
    got = {mode: [] for mode in MODES}
    for _ in range(rounds):
        for mode, rows in got.items():
            lim = Natra(r.pod, "--ingress-mode", mode).attach(CAP, None)
            rows.append(measure())
            r.stop(None)
            lim.detach()
    for mode, rows in got.items():
        p50, p99, rate = (statistics.median(column) for column in zip(*rows))
        rep.shown(f"{what}, {mode}: p50, p99 ms, Mbit/s", f"{p50:.1f}, {p99:.1f}, {rate:.2f}")


def one(r, rep, part, a):
    def measure():
        p50, p99, rate = part(r, r.client, r.pod, a.seconds)
        return p50, p99, rate / 1e6
    by_turns(r, rep, part.__name__, measure, a.rounds)


def busy(r, rep, rtt, a):
    r.netem(rtt)
    for name, window in WINDOWS.items():
        by_turns(r, rep, f"busy, {rtt} ms, {name}",
                 lambda w=window: busy_once(r, w, r.client, r.pod, a), a.rounds)


def main(rep, a):
    if not Natra().json("probe")["fq"]:
        skip("CONFIG_NET_SCH_FQ")
    for rtt in RTTS_MS:
        with Rig() as r:
            rep.measure(f"busy {rtt}", busy, r, rep, rtt, a)
    for part in (tunnel, quic, forwarded):
        with Rig() as r:
            rep.measure(part.__name__, one, r, rep, part, a)


if __name__ == "__main__":
    run_script(main,
        option("--rounds", type=int, default=3),
        option("--settle", type=float, default=3),
        option("--seconds", type=float, default=6))
