#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs the cells of a profile and writes every sample to OUT/results.json;
tools/bench calls it, and report_md.py after it."""
import argparse
import json
import os
import re
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
# These come after this directory, whose modules take precedence.
for part in ("harness/python", "cni", "net"):
    sys.path.append(f"{HERE}/../{part}")

import cells
import footprint
import latency
import machine
import mixed
import plugin
import slis
import sweep
import throughput
from cells import RATES
from limiters import Natra
from pods import Cluster, limiter

WORKLOADS = {"sweep": sweep, "mixed": mixed, "latency": latency,
             "slis": slis, "throughput": throughput,
             "per-packet": footprint, "add": footprint, "memory": footprint}


class LeftOut(Exception):
    """This machine cannot run the cell; the text says why."""


class Progress:
    """Prints one line per cell, with the time that the cells after it will take."""

    def __init__(self, plan):
        self.left = sum(self.seconds(c) for _, c in plan)
        self.count, self.done = len(plan), 0
        self.expected, self.begin = 0.0, time.monotonic()

    @staticmethod
    def seconds(cell):
        return 0 if cells.senseless(cell) else cell.seconds

    def end(self, cell, text):
        self.done += 1
        self.left -= self.seconds(cell)
        self.expected += self.seconds(cell)
        # The cells so far say how much slower than expected this machine is.
        spent = time.monotonic() - self.begin
        left = self.left * spent / max(1, self.expected)
        print(f"[{self.done:3}/{self.count} {int(left) // 60:2}:"
              f"{int(left) % 60:02} left] {cell.title():<44} {text}",
              flush=True)


class Run:
    """Holds the samples of a run, and what the wire carries without a limiter."""

    def __init__(self, cluster):
        self.r = cluster
        self.samples, self.left_out = [], []
        self.wire = {}          # (flows, ways) -> Mbit/s of the slower way

    def fits(self, cell):
        """Raise LeftOut if the cell makes no sense on this machine, or if the wire
        carries too little without a limiter for the cell's rate."""
        why = cells.senseless(cell)
        if why:
            raise LeftOut(why)
        rate = RATES.get(dict(cell.params).get("rate"))
        if cell.workload != "sweep" or rate is None:
            return
        wire = self.wire.get((cell.param("flows"), cell.param("ways")),
                             self.wire.get((1, "in+out")))
        if wire is not None and wire < 1.5 * rate / 1e6:
            raise LeftOut(f"without a limiter the wire carries {wire:.0f} "
                          "Mbit/s, less than 1.5 times the cap")

    def note_wire(self, cell, values):
        if cell.workload == "sweep" and cell.limiter == "none":
            ways = [values[k] for k in ("wire_in", "wire_out") if k in values]
            self.wire[cell.param("flows"), cell.param("ways")] = min(ways)

    def one(self, n, cell, lim=None):
        """Run a cell, with another limiter than its own if one is given. Return the
        text to print for it."""
        sample = {"workload": cell.workload, "limiter": cell.limiter,
                  "params": dict(cell.params), "sample": n, "values": {}}
        module = WORKLOADS[cell.workload]
        begin = time.monotonic()
        try:
            self.fits(cell)
            if cell.limiter != "both" and not limiter(cell.limiter):
                raise LeftOut("the plugin is not installed "
                              "(tools/install-deps cni)")
            sample["values"], series = module.run(self.r, cell, lim)
            if series:
                sample["series"] = series
            said = module.text(sample["values"])
            self.note_wire(cell, sample["values"])
        except (LeftOut, footprint.Unavailable) as e:
            self.left_out.append({"cell": cell.title(), "why": str(e)})
            return f"left out: {e}"
        except Exception as e:  # one cell must not end the run: it is reported
            sample["error"] = said = f"{type(e).__name__}: {e}"[:300]
        finally:
            if cell.workload != "slis":
                self.r.clear()
        sample["seconds"] = round(time.monotonic() - begin, 1)
        self.samples.append(sample)
        return said


def save(path, samples, rest):
    """Write JSON with a line for each sample."""
    rows = ",\n".join(json.dumps(s, separators=(",", ":")) for s in samples)
    with open(path, "w") as f:
        f.write(f'{{\n"samples": [\n{rows}\n],\n'
                f'{json.dumps(rest, indent=1)[2:]}\n')


def arguments():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--profile", choices=cells.SAMPLES, default="ci")
    p.add_argument("--out", required=True)
    p.add_argument("--only", help="these workloads, by comma")
    p.add_argument("--match", default="", help="only cells in whose title this "
                   "regular expression is found")
    return p.parse_args()


def main():
    a = arguments()
    about = machine.describe()  # isolate() hides the list of packages
    plugin.isolate()
    plan = [(n, c) for n, c in cells.schedule(
                a.profile, Natra.modes(), Natra().json("probe")["fq"],
                a.only and a.only.split(","))
            if re.search(a.match, c.title())]
    if not plan:
        sys.exit("no such cell")
    begin = time.monotonic()
    progress = Progress(plan)
    with Cluster() as r:
        run = Run(r)
        for n, cell in plan:
            if cell.workload != "slis":
                r.clear()       # the node that the SLIs have grown
            progress.end(cell, run.one(n, cell))
            # Saved after each cell, so that a run that is stopped keeps its samples.
            save(f"{a.out}/results.json", run.samples, {
                    "format": 1, "profile": a.profile, "machine": about,
                    "planned": len(plan), "seconds": round(time.monotonic() - begin),
                    "left_out": run.left_out})
    failed = sum("error" in s for s in run.samples)
    print(f"{len(run.samples)} samples, {failed} failed, in "
          f"{time.monotonic() - begin:.0f} s")
    sys.exit(0 if failed < len(run.samples) else 1)


if __name__ == "__main__":
    main()
