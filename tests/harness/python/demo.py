#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Shows what tools/quickstart prints: a capped pod's streams and requests before and
after natra limits it."""
import argparse
import os
import sys
import time

from isolation import isolate
from limiters import Natra, Upstream
from rig import Elephant, Rig

CAP = "10M"
SETTLE = 2.5


def measure(r, url, lim, seconds):
    """Return the rate of the elephant each way in Mbit/s, and hey's figures beside
    them."""
    if lim:
        lim.attach(CAP, CAP)
    elephants = [Elephant(r, r.client, r.pod, 5401, "in"),
                 Elephant(r, r.pod, r.client, 5402, "out")]
    r.wait_flow(*r.meters())
    time.sleep(SETTLE)
    start = time.monotonic()
    got = r.hey(url, seconds)
    end = time.monotonic()
    got["in"], got["out"] = (e.rate(start, end) / 1e6 for e in elephants)
    r.stop([p for e in elephants for p in e.procs])
    text = lim.show() if lim and lim.name == "natra" else None
    if lim:
        lim.detach()
    return got, text


def row(name, got):
    wide = [f"{got[k]:.1f}" if got[k] < 100 else f"{got[k]:.0f}"
            for k in ("in", "out")]
    p99 = f"{got['p99_ms']:.1f} ms" if got["rps"] else "none"
    print(f"{name:<34} {wide[0]:>9} {wide[1]:>9} {got['rps']:>11.0f} "
          f"{p99:>11}")


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--seconds", type=int, default=5,
                   help="that each row is measured for (5)")
    seconds = p.parse_args().seconds
    isolate()
    with Rig() as r:
        url = r.nginx()
        print("\nPod `pod0` serves 6 kB files; `client0` asks for 1000 "
              "of them a second, each on a new\nconnection, while one "
              f"TCP stream each way takes what it can. Cap: {CAP}bit/s "
              "each way.\n")
        print(f"{'':<34} {'stream in':>9} {'and out':>9} "
              f"{'requests/s':>11} {'their p99':>11}")
        print(f"{'':<34} {'Mbit/s':>9} {'Mbit/s':>9}")
        row("before: no limit", measure(r, url, None, seconds)[0])
        if os.access(Upstream.PLUGIN, os.X_OK):
            row("upstream's bandwidth plugin (tbf)",
                measure(r, url, Upstream(r.pod), seconds)[0])
        got, show = measure(r, url, Natra(r.pod), seconds)
        row("after: natra", got)
        print(f"\nnatra: mode {show['mode']}, egress "
              f"{'paced by fq' if show['edt_active'] else 'policed'}"
              f" ({show['reason']}).")
    sys.exit(0)


if __name__ == "__main__":
    main()
