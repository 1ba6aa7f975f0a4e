#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs the cells of a profile and writes every sample to OUT/results.json;
tools/bench calls it, and report_md.py after it. What OUT/results.json has already, of
the same build and machine, is not measured again."""
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

import machine
import plugin
from cells import RATES, Node, Unavailable
from limiters import Natra
from pods import Cluster, limiter, qdiscs_here
from statistic import Results
from workloads import SAMPLES, WORKLOADS, schedule

# What a run has to have in common with one that it goes on with.
SAME = ("kernel", "cpu", "cpus", "natra", "commit")


class Progress:
    """Prints one line per cell, with the time that the cells after it will take."""

    def __init__(self, plan):
        self.left = sum(self.seconds(c) for _, c in plan)
        self.count, self.done = len(plan), 0
        self.expected, self.begin = 0.0, time.monotonic()

    @staticmethod
    def seconds(cell):
        return 0 if cell.why_not else cell.seconds

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

    def __init__(self, cluster, samples=()):
        self.r = cluster
        # Cells that failed are tried again.
        self.samples = [s for s in samples if not s.get("error")]
        self.left_out = []
        self.wire = {}          # (flows, ways) -> Mbit/s of the slower way
        for s in self.samples:
            self.note_wire(s)

    def have(self, n, cell):
        return any((s["workload"], s["limiter"], s["params"], s["sample"]) ==
                   (cell.workload, cell.limiter, dict(cell.params), n)
                   for s in self.samples)

    def satisfied(self, cell):
        """Return whether more blocks of a workload would change nothing."""
        ask = getattr(WORKLOADS[cell.workload], "satisfied", None)
        return cell.blocks > 1 and ask and ask(Results({"samples": self.samples}))

    def fits(self, cell):
        """Raise Unavailable if the cell makes no sense on this machine, or if the wire
        carries too little without a limiter for the cell's rate."""
        if cell.why_not:
            raise Unavailable(cell.why_not)
        rate = RATES.get(dict(cell.params).get("rate"))
        if cell.workload != "sweep" or rate is None:
            return
        wire = self.wire.get((cell.param("flows"), cell.param("ways")),
                             self.wire.get((1, "in+out")))
        if wire is not None and wire < 1.5 * rate / 1e6:
            raise Unavailable(f"without a limiter the wire carries {wire:.0f} "
                              "Mbit/s, less than 1.5 times the cap")

    def note_wire(self, sample):
        if sample["workload"] == "sweep" and sample["limiter"] == "none":
            ways = [sample["values"][k] for k in ("wire_in", "wire_out")
                    if k in sample["values"]]
            params = sample["params"]
            self.wire[params["flows"], params["ways"]] = min(ways)

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
                raise Unavailable("the plugin is not installed "
                                  "(tools/install-deps cni)")
            sample["values"] = module.run(self.r, cell, lim)
            said = module.text(sample["values"])
            self.note_wire(sample)
        except Unavailable as e:
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


def kept(path, profile, about):
    """Return the earlier results there, or none. Those of something else end the
    script: figures of two builds or machines do not belong together."""
    try:
        with open(path) as f:
            data = json.load(f)
    except FileNotFoundError:
        return {"samples": [], "seconds": 0, "machine": about}
    earlier = dict(data["machine"], profile=data["profile"])
    for what in ("profile", *SAME):
        here = dict(about, profile=profile)[what]
        if earlier.get(what) != here:
            sys.exit(f"{path}: {what} {earlier.get(what)}, and {here} here; "
                     "--out may name another directory")
    return data


def save(path, samples, rest):
    """Write JSON with a line for each sample."""
    rows = ",\n".join(json.dumps(s, separators=(",", ":")) for s in samples)
    with open(path, "w") as f:
        f.write(f'{{\n"samples": [\n{rows}\n],\n'
                f'{json.dumps(rest, indent=1)[2:]}\n')


def print_plan(plan):
    """Print what each workload has, and its minutes without what setting up takes more."""
    rows = {}
    for _, cell in plan:
        if not cell.why_not:
            rows.setdefault(cell.workload, []).append(cell)
    for name, cells in [*rows.items(), ("all", [c for r in rows.values() for c in r])]:
        print(f"{name:<14} {len(set(cells)):4} cells {len(cells):5} samples "
              f"{sum(c.seconds for c in cells) / 60:6.1f} minutes")


def arguments():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--profile", choices=SAMPLES, default="ci")
    p.add_argument("--out", required=True)
    p.add_argument("--only", help="these workloads, by comma")
    p.add_argument("--match", default="", help="only cells in whose title this "
                   "regular expression is found")
    p.add_argument("--minutes", type=float, default=float("inf"),
                   help="begin no cell after so many")
    p.add_argument("--plan", action="store_true", help="measure nothing: print for each "
                   "workload how many cells there are and how long they should take")
    return p.parse_args()


def main():
    a = arguments()
    about = machine.describe()  # isolate() hides the list of packages
    plugin.isolate()
    path = f"{a.out}/results.json"
    earlier = kept(path, a.profile, about)
    node = Node(tuple(Natra.modes()), bool(Natra().json("probe")["fq"]), qdiscs_here())
    plan = [(n, c) for n, c in schedule(a.profile, node, a.only and a.only.split(","))
            if re.search(a.match, c.title())]
    if not plan:
        sys.exit("no such cell")
    if a.plan:
        print_plan(plan)
        return
    begin = time.monotonic()
    with Cluster() as r:
        run = Run(r, earlier["samples"])
        plan = [(n, c) for n, c in plan if not run.have(n, c)]
        progress, left = Progress(plan), 0
        planned = len(run.samples) + len(plan)
        for n, cell in plan:
            if time.monotonic() - begin > a.minutes * 60:
                left += 1
                continue
            if cell.workload != "slis":
                r.clear()       # the node that the SLIs have grown
            if run.satisfied(cell):
                progress.end(cell, "enough is known")
                planned -= 1
                continue
            progress.end(cell, run.one(n, cell))
            # Saved after each cell, so that a run that is stopped keeps its samples.
            save(path, run.samples, {
                    "format": 2, "profile": a.profile,
                    "machine": earlier["machine"], "planned": planned,
                    "seconds": earlier["seconds"] + round(time.monotonic() - begin),
                    "left_out": run.left_out})
    failed = sum("error" in s for s in run.samples)
    print(f"{len(run.samples)} samples, {failed} failed, in "
          f"{time.monotonic() - begin:.0f} s")
    if left:
        print(f"{left} cells left for the next call")
    sys.exit(0 if failed < max(1, len(run.samples)) else 1)


if __name__ == "__main__":
    main()
