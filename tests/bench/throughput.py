# SPDX-License-Identifier: BSD-2-Clause
"""Measures what a cap that never binds costs: the bytes moved, and the CPU time of the
whole machine for them. Nothing else should run on it meanwhile."""
import os
import time

from cells import UNCAPPED
from limiters import bits
from pods import limiter

# There are many short samples, because samples of 2 s varied as much as those of 1 s,
# whether or not each process was bound to a CPU.
SETTLE_SECONDS = 0.5
SECONDS = 1
FLOWS = 2                       # each way


def busy_seconds():
    """Return the CPU time of all processors, without idle time and the time that other
    virtual machines took."""
    with open("/proc/stat") as f:
        words = f.readline().split()
    user, nice, system, _, _, irq, softirq = map(int, words[1:8])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def run(r, cell, lim=None):
    r.add("perf-server", lim or limiter(cell.limiter), bits(UNCAPPED))
    r.elephants(FLOWS)
    meters = r.meters()
    time.sleep(SETTLE_SECONDS)
    cpu, before = busy_seconds(), [m.read() for m in meters]
    time.sleep(SECONDS)
    cpu, after = busy_seconds() - cpu, [m.read() for m in meters]
    moved = sum(b1 - b0 for (_, b0), (_, b1) in zip(before, after))
    span = after[0][0] - before[0][0]
    values = {"gbit": moved * 8e-9 / span, "cpu_per_gb": cpu / (moved / 1e9)}
    values.update(r.natra_state(r.pod))
    return values, {}


def text(values):
    return (f"{values['gbit']:.2f} Gbit/s, {values['cpu_per_gb']:.3f} CPU "
            "seconds per GB")
