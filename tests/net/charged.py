#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks that with --fast-pass charged the cap holds for mice and elephants together.

A client opens connections on a clock, whatever becomes of the earlier ones, so that the
mice out of the pod are multiples of the 10M cap. An elephant runs beside them in each
direction.
"""
import os
import sys
import time

sys.path.insert(0, os.path.dirname(__file__) + "/../harness/python")
from limiters import bits, limiter
from meter import wire_rates
from percentiles import p99_limit_ms
from rig import Elephant, Rig
from script import LIMITER, MODE, QUICK, option, run_script

CAP = "10M"
SHARE = 0.8                     # natra's default fast-pass share


def request_size(r):
    """Measure and return the wire bytes out of the pod per request."""
    meter = r.out_of()
    before = meter.read()[1]
    p = r.load(r.client, "http", r.pod.ip, 80, "/file", "--rps", 200,
               "--seconds", 1)
    done = r.load_end(p, r.client)["done"]
    return (meter.read()[1] - before) / done


def opened(r):
    """Return how many connections the client has begun."""
    with r.client.netfile("snmp") as f:
        names, values = [s.split() for s in f if s.startswith("Tcp:")]
    return int(values[names.index("ActiveOpens")])


def alone(r, a, rps):
    """Send mice at `rps` with nothing beside them and without a limiter."""
    p = r.load(r.client, "http", r.pod.ip, 80, "/file", "--rps", rps,
               "--seconds", a.seconds)
    return r.load_end(p, r.client)


def one(r, a, rps, lim):
    """Send mice at `rps` beside elephants."""
    if lim:
        lim.attach(CAP, CAP)
    ins = Elephant(r, r.client, r.pod, 5401, "in")
    out = Elephant(r, r.pod, r.client, 5402, "out")
    r.wait_flow(*r.meters())
    time.sleep(a.settle)
    p = r.load(r.client, "http", r.pod.ip, 80, "/file", "--rps", rps,
               "--seconds", a.seconds + a.settle)
    opens, end = opened(r), time.monotonic() + 10
    while opened(r) - opens < 5 and time.monotonic() < end:
        time.sleep(0.02)
    time.sleep(a.settle)
    start = time.monotonic()
    rates = wire_rates(r.meters(), a.seconds - 0.2)
    end = time.monotonic()
    got = r.load_end(p, r.client)
    got["wire"] = rates
    got["elephant"] = [ins.rate(start, end), out.rate(start, end)]
    r.stop(ins.procs + out.procs)
    if lim:
        lim.detach()
    return got


def show(rep, name, got):
    rep.shown(name, f"mice {got['offered']:.0f}/s offered, "
              f"{got['done']:.0f} served, {got['failed']} failed, p99 "
              f"{got['p99_ms']:.1f} ms; wire in {got['wire'][0] / 1e6:.2f} "
              f"out {got['wire'][1] / 1e6:.2f}; elephants in "
              f"{got['elephant'][0] / 1e6:.2f} out "
              f"{got['elephant'][1] / 1e6:.2f} Mbit/s")


def offered(r, rep, a, m, rps, lim):
    """Send mice at `rps`, which is `m` times the cap."""
    cap = bits(CAP)
    idle = alone(r, a, rps) if m < SHARE else None
    got = one(r, a, rps, lim)
    show(rep, f"{m:g} x cap, {lim.name}", got)
    for i, way in enumerate(("in", "out")):
        # If mice crowd out the acknowledgements, the stream into the pod does not
        # have to fill its cap, but has to keep its part.
        rep.most(f"{m:g} x cap: sum {way}", got["wire"][i] / 1e6,
                 1.05 * cap / 1e6, " Mbit/s")
        if way == "out" or m < SHARE:
            rep.least(f"{m:g} x cap: sum {way}", got["wire"][i] / 1e6,
                      0.95 * cap / 1e6, " Mbit/s")
        rep.least(f"{m:g} x cap: elephant {way}", got["elephant"][i] / 1e6,
                  0.15 * cap / 1e6, " Mbit/s")
    if idle:
        rep.most(f"{m:g} x cap: p99", got["p99_ms"],
                 p99_limit_ms(idle["p99_ms"]), " ms")


def main(rep, a):
    if a.quick:
        a.seconds, a.settle, a.multiples = 3, 1.5, "0.5"
    cap = bits(CAP)
    with Rig() as r:
        r.nginx()
        size = request_size(r)
        rep.shown("wire bytes out of the pod per request",
                  f"{size:.0f}")
        options = ["--fast-pass", "charged"]
        options += ["--mode", a.mode] if a.mode else []
        lim = limiter(a.limiter, r.pod, *options)
        for m in map(float, a.multiples.split(",")):
            rep.measure(f"{m:g} x cap", offered, r, rep, a, m,
                        m * cap / 8 / size, lim)


if __name__ == "__main__":
    run_script(main, MODE, QUICK, LIMITER,
        option("--multiples", default="0.2,0.5,1,5"),
        option("--seconds", type=float, default=6),
        option("--settle", type=float, default=2))
