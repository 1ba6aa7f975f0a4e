# SPDX-License-Identifier: BSD-2-Clause
"""Reads the CPU time of the whole machine. Nothing else should run on it meanwhile."""
import os

KINDS = ("user", "system", "softirq")


def cpu_split():
    """Return the CPU seconds of all processors by KINDS, without idle time and the time
    that other virtual machines took. Hard interrupts count as softirq."""
    with open("/proc/stat") as f:
        words = f.readline().split()
    user, nice, system, _, _, irq, softirq = (
            int(w) / os.sysconf("SC_CLK_TCK") for w in words[1:8])
    return dict(zip(KINDS, (user + nice, system, irq + softirq)))


def cpu_since(before):
    """Return what cpu_split() grew by."""
    return {kind: now - before[kind] for kind, now in cpu_split().items()}


def busy_seconds():
    return sum(cpu_split().values())
