#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Prints what it costs to pace ingress instead of policing it: the kernel's memory for a
pod, and the time of natractl attach, both with 10 Mbit/s in either direction.

The two take turns. Needs fq, so the committed result is made in a VM, where the CPU is
emulated and only the ratio of the times means something:

    tests/vm/run 6.12 -- env NATRACTL=BUILD/tools/natractl/natractl \\
        tests/bench/pace_cost.py | grep -v ^vm: >tests/bench/results/pace-cost-6.12.txt
"""
import os
import resource
import statistics
import sys
import time

sys.path[:0] = [os.path.join(os.path.dirname(__file__), "..", part)
                for part in ("harness/python", "net")]
from commands import sh
from isolation import isolate
from limiters import Natra
from memory import held, memlock_kib, settled
from namespaces import Ns

PODS, ROUNDS = 32, 4
KINDS = ("police", "pace")


def attach(natra, number, kind):
    natra.ok("attach", f"p{number}", "--netns", "pods", "--id", f"m{number}",
             "--ingress-rate", "10M", "--egress-rate", "10M", "--ingress-mode", kind)


def cpu_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def times(natra):
    """Return the wall and CPU times of each kind, in ms. The first two pods load the
    programs and stay."""
    got = {kind: [] for kind in KINDS}
    for number, kind in enumerate(KINDS):
        attach(natra, number, kind)
    for turn in range(ROUNDS):
        for number in range(2, PODS):
            kind = KINDS[(number + turn) % 2]
            wall, cpu = time.monotonic(), cpu_seconds()
            attach(natra, number, kind)
            got[kind].append(((time.monotonic() - wall) * 1e3,
                              (cpu_seconds() - cpu) * 1e3))
        for number in range(2, PODS):
            natra.ok("detach", f"m{number}")
    for number in range(2):
        natra.ok("detach", f"m{number}")
    return {kind: [statistics.median(column) for column in zip(*rows)]
            for kind, rows in got.items()}


def memory(natra, kind):
    """Return memlock, slab and vmalloc of a pod, in KiB."""
    before = settled()
    for number in range(PODS):
        attach(natra, number, kind)
    after = settled()
    programs, maps = held(natra.json("list"))
    for number in range(PODS):
        natra.ok("detach", f"m{number}")
    return [memlock_kib(programs + maps) / PODS] + [
            (after[k] - before[k]) / PODS for k in ("SUnreclaim", "VmallocUsed")]


def main():
    isolate()
    Ns("pods")
    for i in range(PODS):
        sh("ip", "link", "add", f"h{i}", "up", "type", "veth", "peer", "name", f"p{i}",
           "netns", "pods")
    natra = Natra()
    time_of = times(natra)
    # The second round counts, because the first fills the kernel's caches.
    for _ in range(2):
        memory_of = {kind: memory(natra, kind) for kind in KINDS}
    print(f"A pod with ingress and egress of 10 Mbit/s, Linux {os.uname().release}: "
          f"medians of {ROUNDS * (PODS - 2) // 2}\nattaches of each kind by turns, and "
          f"the mean memory of {PODS} pods. Printed by tests/bench/pace_cost.py.\n")
    print("| ingress | attach, wall | attach, CPU | memlock | slab | vmalloc |\n"
          "|---|---|---|---|---|---|")
    for kind in KINDS:
        wall, cpu = time_of[kind]
        sizes = " | ".join(f"{kib:.1f} KiB" for kib in memory_of[kind])
        print(f"| {kind} | {wall:.1f} ms | {cpu:.1f} ms | {sizes} |")
    rows = [time_of[kind] + memory_of[kind] for kind in KINDS]
    print("| pace by police | " +
          " | ".join(f"{pace / police:.2f}" for police, pace in zip(*rows)) + " |")


if __name__ == "__main__":
    main()
