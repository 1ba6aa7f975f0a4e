#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks that the cap holds without departure times, where natra drops what is over.

The wire rate of TCP and UDP is compared with the limit; edt.py does so with departure
times. Each run measures both directions at once, in a lane each. The runs have each mode, rate
and number of flows once at least.
"""
import os
import sys
import time

sys.path.insert(0, os.path.dirname(__file__) + "/../harness/python")
from limiters import COUNTERS, Natra, bits, forgiven, stall
from meter import ETH_IPV4_TCP, ETH_IPV4_UDP, wire_rates
from rig import Rig
from script import MODES, option, run_script

ALL_CARRY = 1e9         # bit/s; each machine carries lower rates


def attach(r, mode, rate):
    lims = [Natra(pod, "--edt-pacing", "off", "--attach-mode", mode) for pod in r.pods]
    for lim in lims:
        lim.attach(rate, rate)
    return lims


def detach(r, lims):
    r.stop(None)
    for lim in lims:
        lim.detach()


def lanes(r, header=ETH_IPV4_TCP):
    """Return (way, sender, receiver, meter) of each lane."""
    return (("in", r.clients[0], r.pods[0], r.into(0, header)),
            ("out", r.pods[1], r.clients[1], r.out_of(1, header)))


def elephants(r, flows):
    """Start streams in each lane, and return their meters once all are running."""
    meters = []
    for _, src, dst, meter in lanes(r):
        r.elephant(src, dst, 5201, flows)
        meters.append(meter)
    r.wait_flow(*meters)
    return meters


def tcp(r, rep, a, mode, rate, flows):
    lims = attach(r, mode, rate)
    meters = elephants(r, flows)
    # The burst and the slow start after its end take less than this.
    time.sleep(a.settle)
    start, before = time.monotonic(), counters(lims)
    got = wire_rates(meters, a.seconds)
    span, after = time.monotonic() - start, counters(lims)
    for way, value, was, now in zip(("in", "out"), got, before, after):
        rep.near(f"tcp {mode} {rate} {flows} flows {way}", value / 1e6, bits(rate) / 1e6,
                 forgiven(bits(rate), a.seconds), " Mbit/s")
        rep.shown("  natra, Mbit/s", ", ".join(
            f"{k} {(now[k] - was[k]) * 8e-6 / span:.2f}" for k in now if now[k] > was[k]))
    detach(r, lims)


def counters(lims):
    """Return natra's bytes by outcome, for ingress and egress."""
    return [{k: lim.stats()[d][k]["bytes"] for k in COUNTERS}
            for lim, d in zip(lims, ("ingress", "egress"))]


def udp(r, rep, a, mode, rate):
    lims = attach(r, mode, rate)
    used = lanes(r, ETH_IPV4_UDP)
    for _, _, dst, _ in used:
        r.load(dst, "udp-sink", 5300)
        r.wait_port(dst, 5300, "udp")
    # The senders end when they are told to, because a slow machine starts one of them
    # seconds before the other.
    senders = [r.load(src, "udp-send", dst.ip, 5300, "--rate", 3 * bits(rate))
               for _, src, dst, _ in used]
    meters = [lane[3] for lane in used]
    r.wait_flow(*meters)
    # Datagrams do not swing, so this can be shorter.
    time.sleep(min(a.settle, 1.5))
    seconds = min(a.seconds, 2)
    got = wire_rates(meters, seconds)
    for (way, src, _, _), sender, value in zip(used, senders, got):
        rep.near(f"udp {mode} {rate} x3 {way}", value / 1e6, bits(rate) / 1e6,
                 stall(seconds), " Mbit/s")
        s = r.load_end(sender, src, now=True)
        rep.shown("  the sender", f"sent {s['sent'] / 1e6:.1f} Mbit/s, refused "
                  f"{s['refused'] / 1e6:.1f}, blocked {s['blocked']:.0%} of the time")
    detach(r, lims)


def carried(r, rep, flows):
    """Return the bit/s that this machine carries in that many streams without a
    limit."""
    most = min(wire_rates(elephants(r, flows), 1))
    r.stop(None)
    rep.shown(f"no limiter, {flows} flows", f"{most / 1e6:.0f} Mbit/s each way")
    return most


def main(rep, a):
    modes = a.mode.split(",") if a.mode else Natra.modes()
    flows, rates = [int(f) for f in a.flows.split(",")], a.rates.split(",")
    with Rig(lanes=2) as r:
        # To see what is carried takes all CPUs, and others run beside a test of lower
        # rates.
        fast = any(bits(rate) >= ALL_CARRY for rate in rates)
        most = {n: carried(r, rep, n) for n in flows if fast}
        for i in range(max(len(modes), len(rates), len(flows))):
            mode, rate, n = (some[i % len(some)] for some in (modes, rates, flows))
            if most.get(n, 1e99) < 1.5 * bits(rate):
                rep.shown("left out, too much for this machine", f"{rate} {n} flows")
                continue
            rep.measure(f"tcp {mode} {rate} {n}", tcp, r, rep, a, mode, rate, n)
            if i < max(len(modes), len(rates)):
                rep.measure(f"udp {mode} {rate}", udp, r, rep, a, mode, rate)


if __name__ == "__main__":
    run_script(main, MODES,
        option("--rates", default="10M,100M,1G"),
        option("--flows", default="1,4,8,16"),
        option("--seconds", type=float, default=8),
        option("--settle", type=float, default=3))
