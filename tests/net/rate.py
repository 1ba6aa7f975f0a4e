#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks that the cap holds without departure times, where natra drops what is over.

The wire rate of TCP and UDP is compared with the limit; edt.py does so with departure
times. Each run measures both directions at once, in a lane each; --way measures only
one of them, for rates that the machine cannot carry twice. By default the runs cover
each mode, rate and number of flows, and each rate with each number of flows, but not
every combination of the three; --full runs them all. Windows are long because one
policed flow swings around its cap for seconds.
"""
import itertools
import math
import os
import sys
import time

sys.path.insert(0, os.path.dirname(__file__) + "/../harness/python")
from limiters import COUNTERS, Natra, bits, limiter
from meter import ETH_IPV4_TCP, ETH_IPV4_UDP, wire_rates
from rig import Rig
from script import LIMITER, MODES, QUICK, option, run_script

RATES = ["10M", "100M", "1G"]
FLOWS = [1, 4, 8, 16]
WAYS = ("in", "out")
ALL_CARRY = 1e9         # bit/s; each machine carries lower rates


def attach(r, a, mode, rate):
    options = ["--edt-pacing", "off"] + (["--attach-mode", mode] if mode else [])
    capped = str(int(bits(rate) * a.skew))
    lims = [limiter(a.limiter, pod, *options, *a.option) for pod in r.pods]
    for lim in lims:
        lim.attach(capped, capped)
    return lims


def detach(r, lims):
    r.stop(None)
    for lim in lims:
        lim.detach()


def lanes(r, a, header=ETH_IPV4_TCP):
    """Return (index of WAYS, sender, receiver, meter) of each lane that is asked
    for."""
    both = ((0, r.clients[0], r.pods[0], r.into(0, header)),
            (1, r.pods[1], r.clients[1], r.out_of(1, header)))
    return [lane for lane in both if a.way in (None, WAYS[lane[0]])]


def elephants(r, a, flows):
    """Start streams in each lane, and return their meters once all are running."""
    meters = []
    for _, src, dst, meter in lanes(r, a):
        r.elephant(src, dst, 5201, flows)
        meters.append(meter)
    r.wait_flow(*meters)
    return meters


def tcp(r, rep, a, mode, rate, flows):
    lims = attach(r, a, mode, rate)
    meters = elephants(r, a, flows)
    # The burst and the slow start after its end take less than this.
    time.sleep(a.settle)
    start, before = time.monotonic(), counters(a, lims)
    got = wire_rates(meters, a.seconds)
    span, after = time.monotonic() - start, counters(a, lims)
    for (i, *_), value in zip(lanes(r, a), got):
        rep.near(f"tcp {mode or a.limiter} {rate} {flows} flows {WAYS[i]}",
                 value / 1e6, bits(rate) / 1e6, 0.05, " Mbit/s")
        if before:
            rep.shown("  natra, Mbit/s", ", ".join(
                f"{k} {(after[i][k] - before[i][k]) * 8e-6 / span:.2f}"
                for k in after[i] if after[i][k] > before[i][k]))
    detach(r, lims)


def counters(a, lims):
    """Return natra's bytes by outcome, for ingress and egress; [] if another
    limiter runs."""
    if a.limiter != "natra":
        return []
    return [{k: lim.stats()[d][k]["bytes"] for k in COUNTERS}
            for lim, d in zip(lims, ("ingress", "egress"))]


def udp(r, rep, a, mode, rate):
    lims = attach(r, a, mode, rate)
    offered = 3 * bits(rate)
    used = lanes(r, a, ETH_IPV4_UDP)
    for _, _, dst, _ in used:
        r.load(dst, "udp-sink", 5300)
        r.wait_port(dst, 5300, "udp")
    # The senders end when they are told to, because a slow machine starts one of them
    # seconds before the other.
    senders = [r.load(src, "udp-send", dst.ip, 5300, "--rate", offered)
               for _, src, dst, _ in used]
    meters = [lane[3] for lane in used]
    r.wait_flow(*meters)
    time.sleep(a.settle)
    got = wire_rates(meters, a.seconds)
    for (i, src, _, _), sender, value in zip(used, senders, got):
        rep.near(f"udp {mode or a.limiter} {rate} x3 {WAYS[i]}",
                 value / 1e6, bits(rate) / 1e6, 0.02, " Mbit/s")
        s = r.load_end(sender, src, now=True)
        rep.shown("  the sender", f"offered {offered / 1e6:.0f}, sent "
                  f"{s['sent'] / 1e6:.1f} Mbit/s, refused "
                  f"{s['refused'] / 1e6:.1f}, blocked "
                  f"{s['blocked']:.0%} of the time")
        if a.limiter == "natra":
            account(rep, lims[i].stats()[("ingress", "egress")[i]])
    detach(r, lims)


def account(rep, d):
    """Show where the packets went, by natra's own counters."""
    rep.shown("  natra", ", ".join(
            f"{k} {d[k]['packets']}" for k in COUNTERS
            if d[k]["packets"]))


def subset(modes, rates, flows):
    """Return each rate with each number of flows; the modes take turns."""
    cells = itertools.product(rates, flows)
    return [(modes[(i + i // len(flows)) % len(modes)], *cell)
            for i, cell in enumerate(cells)]


def diagonal(modes, rates, flows):
    """Return runs that have each value once at least, in as few runs as that takes."""
    n = max(len(modes), len(rates), len(flows))
    return [(modes[i % len(modes)], rates[i % len(rates)],
             flows[i % len(flows)]) for i in range(n)]


def carried(r, rep, a, flows):
    """Return the bit/s that this machine carries in that many streams without a
    limit."""
    meters = elephants(r, a, flows)
    most = min(wire_rates(meters, 1))
    r.stop(None)
    rep.shown(f"no limiter, {flows} flows", f"{most / 1e6:.0f} Mbit/s each way")
    return most


def fitting(rep, most, runs):
    """Yield the runs for which this machine carries 1.5 times the rate; `most` has what
    it carries, by the number of flows, or nothing."""
    for run in runs:
        flows = run[2] if len(run) > 2 else min(most, default=None)
        if most.get(flows, math.inf) >= 1.5 * bits(run[1]):
            yield run
        else:
            rep.shown("left out, too much for this machine",
                      " ".join(map(str, run)))


def named(kind, run):
    return " ".join(map(str, (kind, *run)))


def main(rep, a):
    if a.limiter != "natra":
        modes = [None]
    else:
        modes = a.mode.split(",") if a.mode else Natra.modes()
    flows = [int(f) for f in a.flows.split(",")]
    if a.quick:
        a.seconds, a.settle, flows = 3, 2, flows[:1]
    with Rig(lanes=2, offloads=not a.no_offloads) as r:
        rates = a.rates.split(",")
        # To see what is carried takes all CPUs, and others run beside a test of lower
        # rates.
        fast = any(bits(rate) >= ALL_CARRY for rate in rates)
        most = {n: carried(r, rep, a, n) for n in flows if fast}
        runs = [(modes[0], rates[0], flows[0])] if a.quick else \
                itertools.product(modes, rates, flows) if a.full else \
            diagonal(modes, rates, flows) if a.brief else \
                subset(modes, rates, flows)
        udp_runs = [(modes[i % len(modes)], rates[i % len(rates)])
                    for i in range(1 if a.quick else
                                   max(len(modes), len(rates)))]
        if a.only != "udp":
            for run in fitting(rep, most, runs):
                rep.measure(named("tcp", run), tcp, r, rep, a, *run)
        # Datagrams do not swing, so these runs can be shorter.
        a.settle, a.seconds = min(a.settle, 1.5), min(a.seconds, 2)
        if a.only != "tcp":
            for run in fitting(rep, most, udp_runs):
                rep.measure(named("udp", run), udp, r, rep, a, *run)


if __name__ == "__main__":
    run_script(main, MODES, QUICK, LIMITER,
        option("--rates", default=",".join(RATES)),
        option("--flows", default=",".join(map(str, FLOWS))),
        option("--seconds", type=float, default=8),
        option("--settle", type=float, default=3),
        option("--only", choices=["tcp", "udp"]),
        option("--way", choices=WAYS),
        option("--full", action="store_true"),
        option("--brief", action="store_true",
               help="each mode, rate and number of flows once"),
        option("--no-offloads", action="store_true"),
        option("--skew", type=float, default=1,
               help="cap this times the rate, to see the test fail"),
        option("--option", action="append", default=[],
               help="one more word for natractl attach"))
