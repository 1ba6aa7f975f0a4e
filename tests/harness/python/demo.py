#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Shows what tools/quickstart prints: a capped pod's streams and requests before and
after natra limits it."""
import argparse
import os
import sys
import time

from isolation import isolate
from limiters import Natra, Upstream, bits
from rig import Elephant, Rig

CAP = "10M"
# natra's own: half a second. containerd sends half a gigabyte for any rate, of which
# upstream's plugin can still have some when the measurement begins.
BURST_BITS = bits(CAP) // 2
SETTLE = 2.5
# That ask for files; each asks a whole number of times in a second.
CLIENTS = 50
REQUESTS = 1000


def measure(r, url, lim, seconds, requests=REQUESTS):
    """Return the rate of the elephant each way in Mbit/s, and hey's figures beside
    them."""
    if lim:
        lim.attach(CAP, CAP)
    elephants = [Elephant(r, r.client, r.pod, 5401, "in"),
                 Elephant(r, r.pod, r.client, 5402, "out")]
    r.wait_flow(*r.meters())
    time.sleep(SETTLE)
    meters = r.meters()
    start, before = time.monotonic(), [m.read() for m in meters]
    got = r.hey(url, seconds, CLIENTS, requests // CLIENTS)
    end, after = time.monotonic(), [m.read() for m in meters]
    got["in"], got["out"] = (e.rate(start, end) / 1e6 for e in elephants)
    got["all in"], got["all out"] = ((b1 - b0) * 8e-6 / (t1 - t0) for
                                     (t0, b0), (t1, b1) in zip(before, after))
    r.stop([p for e in elephants for p in e.procs])
    text = lim.show() if lim and lim.name == "natra" else None
    if lim:
        lim.detach()
    return got, text


def line(name, *columns):
    figures = " ".join(f"{c:>9}" for c in columns[1:])
    print(f"{name:<28} {columns[0]:<10} {figures}".rstrip())


def row(name, keeps, got):
    """Print what was measured of a limiter, and what it keeps within the cap."""
    wide = [f"{got[k]:.1f}" if got[k] < 100 else f"{got[k]:.0f}"
            for k in ("in", "out", "all in", "all out")]
    line(name, keeps, *wide, f"{got['rps']:.0f}",
         f"{got['p99_ms']:.1f} ms" if got["rps"] else "none")


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--seconds", type=int, default=5,
                   help="that each row is measured for (5)")
    p.add_argument("--requests", type=int, default=REQUESTS,
                   help=f"a second, a multiple of {CLIENTS} ({REQUESTS})")
    options = p.parse_args()
    if options.requests < CLIENTS or options.requests % CLIENTS:
        p.error(f"--requests: {options.requests} is not a multiple of {CLIENTS}")
    each = options.seconds, options.requests
    isolate()
    with Rig() as r:
        url = r.nginx()
        print(f"\nPod `pod0` serves 6 kB files; `client0` asks for {options.requests} "
              "of them a second, each on a new\nconnection, while one "
              f"TCP stream each way takes what it can. Cap: {CAP}bit/s "
              "each way.\n")
        line("", "within", "stream in", "and out", "all in", "all out", "requests",
             "their p99")
        line("", "the cap", *["Mbit/s"] * 4, "a second", "")
        row("before: no limit", "nothing", measure(r, url, None, *each)[0])
        if os.access(Upstream.PLUGIN, os.X_OK):
            row("upstream's plugin (tbf)", "everything",
                measure(r, url, Upstream(r.pod, burst_bits=BURST_BITS), *each)[0])
        got, show = measure(r, url, Natra(r.pod), *each)
        row("after: natra", "streams", got)
        row("after: natra, strict", "everything",
            measure(r, url, Natra(r.pod, "--fast-pass", "strict"), *each)[0])
        print(f"\nnatra: mode {show['mode']}, egress "
              f"{'paced by fq' if show['edt_active'] else 'policed'}"
              f" ({show['reason']}).")
    sys.exit(0)


if __name__ == "__main__":
    main()
