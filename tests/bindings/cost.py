#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Measure what an attach and a detach take by each back end of the Go package, and in C.

The programs are kept loaded, as an agent's are. The back ends take turns in small lots, and
C between them, so that what else the machine does hits all of them.
"""
import re
import statistics
import subprocess
import tempfile

import gotest
import script
from namespaces import Pod

LOTS, COUNT = 6, 10
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
    found.setdefault("c", []).extend(int(n) for n in out.split())
    env = gotest.environment(arguments.library, NATRA_TEST_ISOLATED="1",
                             NATRA_TEST_COST=str(COUNT))
    out = subprocess.run([f"{arguments.tmp}/cost", "-test.run", "^TestCost$", "-test.v"],
                         text=True, check=True, env=env, stdout=subprocess.PIPE,
                         timeout=120).stdout
    for name, ns in re.findall(r"^cost (\w+) (\d+)$", out, re.M):
        found.setdefault(name, []).append(int(ns))


def compare(report, arguments, pod):
    found = {}
    for _ in range(LOTS):
        lot(arguments, pod, found)
    ms = {name: statistics.median(all_ns) / 1e6 for name, all_ns in found.items()}
    for name in ("c", "library", "natractl"):
        report.shown(f"attach and detach by {name}, ms (median of {len(found[name])})",
                     f"{ms[name]:.2f}  ({ms[name] - ms['c']:+.2f})")
    # With the library the same calls are made, each with a handle of its own.
    report.most("library by C", ms["library"] / ms["c"], 1.5)
    report.most("natractl above C, ms", ms["natractl"] - ms["c"], MOST_MS)


def main(report, arguments):
    pod = Pod("cost", 1)
    try:
        report.measure("cost", compare, report, arguments, pod)
    finally:
        subprocess.run(["rm", "-rf", arguments.tmp], check=True)
        pod.close()


if __name__ == "__main__":
    script.run_script(main, script.option("program", help="attach_cost of the build"),
                      prepare=prepare)
