#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Makes DIR/report.md and its charts from DIR/results.json."""
import argparse
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
# The workloads' modules measure, too, and need the harness for it.
for part in ("harness/python", "cni", "net"):
    sys.path.append(f"{HERE}/../{part}")

import causes
import compare
from markdown import table
from page import page
from statistic import CONFIDENCE, ENOUGH, Results
from workloads import MODULES, targets


def by_cause(res, some):
    """Return the lines of targets that were missed, those with the same cause together."""
    found = {}
    for t in some:
        found.setdefault(causes.of(res, t), []).append(t.text())
    for why, texts in found.items():
        if len(texts) == 1:
            yield f"- {texts[0]}; {why}"
        else:
            yield f"- {why[:1].upper()}{why[1:]}:"
            yield from (f"  - {text}" for text in texts)


def verdict(res):
    """Return how many targets were missed, cannot be told, failed and were not run, as a line; what
    was missed or failed, as lines; and the targets."""
    found = targets(res)
    by = {v: [t for t in found if t.verdict == v]
          for v in ("met", "missed", "cannot tell")}
    count = sum(map(len, by.values()))
    bad, open_, failed = by["missed"], by["cannot tell"], res.errors()
    line = "This run measured nothing that has a target." if not count else \
        f"**{len(bad)} of {count} targets missed.**" if bad else \
        f"All {count} targets that this run measured were met." if not open_ else \
        f"None of {count} targets missed."
    if open_:
        line += f" {len(open_)} cannot be told from this run."
    if failed:
        line += f" **{len(failed)} measurements failed.**"
    done = len(res.data["samples"]) + len(res.data["left_out"])
    planned = res.data.get("planned", done)
    if done < planned:
        line += f" **Stopped after {done} of {planned} measurements.**"
    lines = [*by_cause(res, bad),
             *(f"- failed: {cell}: {' '.join(text.split())}" for cell, text in failed)]
    return line, lines and ["### What is missed, and why?", "", *lines, ""], found


def target_table(found):
    """List the targets. An interval compares with what is demanded, so it also holds
    what is uncertain of that."""
    if not any(t.met is not None for t in found):
        return []
    rows = []
    for t in found:
        rows.append((t.name,
                     "" if t.value is None else t.show(t.value), t.between(),
                     "" if t.bound is None else
                     f"{'≤' if t.sense == 'most' else '≥'} {t.show(t.bound)}",
                     t.judged.replace("missed", "**missed**")))
    return ["## Targets", "",
            f"*Interval* is where the figure lies by {CONFIDENCE:.0%} of the resampled "
            "runs (bootstrap), relative to what is demanded. With at least "
            f"{ENOUGH} samples it decides; with fewer the figure itself does.", "",
            *table(("", "measured", "interval", "demanded", ""), rows)]


def changed(res, old):
    why = compare.comparable(old, res)
    if why:
        return [f"Not compared with the earlier run: {why}.", ""], 0
    found = compare.changes(old, res)
    bad = [c for c in found if c.worse]
    open_ = sum(c.verdict == "cannot tell" for c in found)
    lines = [f"{len(bad)} of {len(found)} comparisons with the run of "
             f"{old.data['machine']['date']} are worse by their intervals"
             f"{f', and {open_} cannot be told' if open_ else ''}.", "",
             *(f"- **worse**: {c.text()}" for c in bad), ""]
    return lines, len(bad)


def machine(res):
    about = res.data["machine"]
    return ["## Machine", "", *table(("", ""), [
            (k, v) for k, v in about.items() if v is not None])]


def left_out(res):
    """Return a line for each reason, with the cells that were left out for it."""
    cells = {}
    for x in res.data["left_out"]:
        cells.setdefault(x["why"], {})[x["cell"]] = 0
    return ["## Left out", "", *(
            f"- {', '.join(names)}: {why}" for why, names in cells.items()), ""] \
        if cells else []


def write(res, old=None, charts=None):
    """Return the report's text and how many figures are worse than in `old`."""
    about = res.data["machine"]
    first, bad, found = verdict(res)
    where = f"Linux {about['kernel']}" + (
            " in an emulated VM" if about.get("emulated") else
            " in a VM" if about.get("vm") else "")
    compared, worse = changed(res, old) if old else ([], 0)
    lines = [f"# natra's benchmark: {where}", "", first, "", *compared,
             f"Profile `{res.data['profile']}`, {about['date']}, "
             f"{res.data['seconds']} s, {about['cpus']} CPUs ({about['cpu']}).",
             *(["The CPU is emulated: compare a figure with the others of this "
                "run only."] if about.get("emulated") else []),
             "Where there are several samples, a figure is their mean, ± their "
             "standard deviation.", "",
             *page(res, charts or {}, bad), *target_table(found)]
    for module in MODULES:
        lines += module.report(res)
    lines += left_out(res) + machine(res)
    return "\n".join(lines).rstrip() + "\n", worse


def load(path):
    with open(path) as f:
        return Results(json.load(f))


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("dir")
    p.add_argument("--compare", metavar="OLD.json")
    a = p.parse_args()
    import charts               # what is above needs no matplotlib

    res = load(f"{a.dir}/results.json")
    text, worse = write(res, load(a.compare) if a.compare else None,
                        charts.draw(res, a.dir))
    with open(f"{a.dir}/report.md", "w") as f:
        f.write(text)
    print(text.split("\nProfile")[0].split("\n", 2)[2].strip())
    sys.exit(1 if worse else 0)


if __name__ == "__main__":
    main()
