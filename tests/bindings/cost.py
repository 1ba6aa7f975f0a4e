#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Measure what an attach and a detach take by each back end of the Go package, and in C.

The programs are kept loaded, as an agent's are. The back ends take turns in small lots, and
C between them, so that what else the machine does hits all of them. The table that it
prints, of --lots 30, is in tests/bench/results.
"""
import os
import re
import statistics
import subprocess
import tempfile

import gotest
import script
from namespaces import Pod

COUNT = 10
BACK_ENDS = {"c": "C", "library": "Go with cgo", "natractl": "Go with natractl"}
# What natractl's process, its start and its JSON may add to a pair of calls.
MOST_MS = 40


def prepare(arguments):
    arguments.tmp = tempfile.mkdtemp(prefix="natra-cost-", dir="/var/tmp")
    arguments.library = gotest.install()
    gotest.go(gotest.PACKAGE, "test", "-c", "-o", f"{arguments.tmp}/cost",
              library=arguments.library)


def lot(arguments, pod, found):
    out = subprocess.run([arguments.program, pod.path, str(COUNT)], text=True, check=True,
                         stdout=subprocess.PIPE, timeout=120).stdout
    found["c"] += re.findall(r"^(\d+) (\d+)$", out, re.M)
    env = gotest.environment(arguments.library, NATRA_TEST_ISOLATED="1",
                             NATRA_TEST_COST=str(COUNT))
    out = subprocess.run([f"{arguments.tmp}/cost", "-test.run", "^TestCost$", "-test.v"],
                         text=True, check=True, env=env, stdout=subprocess.PIPE,
                         timeout=120).stdout
    for name, *ns in re.findall(r"^cost (\w+) (\d+) (\d+)$", out, re.M):
        found[name].append(ns)


def compare(report, arguments, pod):
    found = {name: [] for name in BACK_ENDS}
    for _ in range(arguments.lots):
        lot(arguments, pod, found)
    # Most of the wall time are grace periods of RCU, which differ from lot to lot.
    ms, cpu = ({name: statistics.median(int(pair[i]) for pair in found[name]) / 1e6
                for name in BACK_ENDS} for i in (0, 1))
    print(f"Limits of 10 Mbit/s each way, Linux {os.uname().release}: medians of "
          f"{len(found['c'])} pairs of calls by turns.\n\n"
          "| back end | attach and detach | CPU | above C |\n|---|---|---|---|")
    for name, title in BACK_ENDS.items():
        print(f"| {title} | {ms[name]:.1f} ms | {cpu[name]:.2f} ms | "
              f"{cpu[name] - cpu['c']:+.2f} ms |")
    # With the library the same calls are made, each with a handle of its own.
    report.most("library by C", ms["library"] / ms["c"], 1.5)
    report.most("natractl above C, ms", ms["natractl"] - ms["c"], MOST_MS)
    report.least("CPU of natractl by that of C", cpu["natractl"] / cpu["c"], 1)


def main(report, arguments):
    pod = Pod("cost", 1)
    try:
        report.measure("cost", compare, report, arguments, pod)
    finally:
        subprocess.run(["rm", "-rf", arguments.tmp], check=True)
        pod.close()


if __name__ == "__main__":
    script.run_script(main, script.option("program", help="attach_cost of the build"),
                      script.option("--lots", type=int, default=6), prepare=prepare)
