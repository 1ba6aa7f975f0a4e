# SPDX-License-Identifier: BSD-2-Clause
"""The workloads of the benchmark, and the order in which their cells run.

A workload is a module with

    NAMES           the names of its cells' workloads
    cells(node)     its cells, those of limiters that are compared next to each other
    run(r, cell, lim)   measures one: returns its figures;
                    `lim` replaces the cell's limiter where it is given
    text(values)    the figures in a line, for who watches
    targets(res)    yields what is demanded of natra (target.py)
    report(res)     the lines of its tables
    answers(res)    yields pairs of a question and who wins, in a sentence

and, if its cells are to be repeated until it is satisfied,

    satisfied(res)  says whether more blocks would change nothing

To add one, write the module and name it in MODULES.
"""
import footprint
import latency
import mixed
import scale
import slis
import starts
import stress
import sweep
import throughput
import web
import wired
from statistic import ENOUGH

MODULES = (mixed, sweep, latency, web, throughput, slis, stress, starts, scale, wired,
           footprint)
WORKLOADS = {name: module for module in MODULES for name in module.NAMES}
SAMPLES = {"ci": 1, "full": ENOUGH}


def everything(node):
    """Return all cells, in the order in which they run."""
    return [c for module in MODULES for c in module.cells(node)]


def turned(some):
    """Return cells with those that differ in their limiter only in reverse order."""
    found, group = [], []
    for c in some:
        if group and c.like() != group[0].like():
            found += group[::-1]
            group = []
        group.append(c)
    return found + group[::-1]


def schedule(profile, node, only=None):
    """Return (sample, cell) pairs: all cells of a sample before the next sample, so
    that a drift of the machine meets all limiters alike, and the limiters in turned
    order in every second sample. A cell of several blocks has as many samples in each
    round, and the cells of a block follow each other."""
    chosen = [c for c in everything(node)
              if (profile == "full" or c.ci) and
              (not only or c.workload in only)]
    plan = []
    for n in range(SAMPLES[profile]):
        rest = [c for c in chosen if n == 0 or not c.once]
        for name in dict.fromkeys(c.workload for c in rest):
            some = [c for c in rest if c.workload == name]
            for block in range(max(c.blocks for c in some)):
                count = {c: n * c.blocks + block for c in some if block < c.blocks}
                order = turned(count) if (n + block) % 2 else count
                plan += [(count[c], c) for c in order]
    return plan


def targets(res):
    return [t for module in MODULES for t in module.targets(res)]


def missed(found):
    return [t for t in found if t.verdict == "missed"]
