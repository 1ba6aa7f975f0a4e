#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Prints what a pod takes of the kernel's memory with 2, 64 and 200 possible CPUs.

Runs tests/net/memory.py --count 15 here and in VMs whose possible CPUs mostly do not
run, one after the other; root. The committed result is made by

    tests/bench/possible_cpus.py >tests/bench/results/possible-cpus.txt

in a built tree (build/, or NATRACTL names another tree's natractl).
"""
import os
import re
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path += [f"{ROOT}/tests/{part}" for part in ("cni", "harness/python")]
import machine

KERNEL = "6.12"
CPUS = (2, 64, 200)
COUNT = 15
# The test shows the slab, too, but a guest frees as much of it for other reasons after
# its boot.
FIGURES = (rf"ok +memlock, mean of {COUNT} attachments +([\d.]+) KiB",
           r" +attaching took, KiB each .* VmallocUsed (-?[\d.]+)",
           r" +attaching took, KiB each .* Percpu (-?[\d.]+)")
GUEST = (f"uname -r; cat /sys/devices/system/cpu/possible; "
         f"exec tests/net/memory.py --count {COUNT}")


def commit():
    """The commit of this tree, marked if the tree has other changes."""
    r = subprocess.run(["git", "-c", "safe.directory=*", "describe", "--always",
                        "--dirty", "--abbrev=10"], cwd=ROOT, text=True,
                       stdout=subprocess.PIPE, check=True)
    return r.stdout.strip()


def run(*wrap):
    """Return the lines that the memory test wrote; it must have passed."""
    env = {"NATRACTL": str(ROOT / "build/tools/natractl/natractl"), **os.environ,
           "PYTHONDONTWRITEBYTECODE": "1"}
    inside = ["env", *(f"{k}={env[k]}" for k in ("NATRACTL",
                                                 "PYTHONDONTWRITEBYTECODE"))]
    command = [*map(str, wrap), *inside, "sh", "-c", GUEST]
    r = subprocess.run(command, cwd=ROOT, env=env, text=True,
                       stdout=subprocess.PIPE, check=False)
    if r.returncode:
        sys.exit(f"{r.stdout}\n{' '.join(command)}: exit {r.returncode}")
    return [line for line in r.stdout.splitlines() if not line.startswith("vm:")]


def row(name, lines):
    """A row of the table from what `run` returned."""
    cells = [name, lines[0], str(int(lines[1].rpartition("-")[2]) + 1)]
    for figure in FIGURES:
        (value,) = (m[1] for line in lines if (m := re.match(figure, line)))
        cells.append(f"{float(value):.1f} KiB")
    return f"| {' | '.join(cells)} |"


def main():
    if os.geteuid():
        sys.exit("needs root")
    print(f"""\
Kernel memory of an attachment with limits in both directions: the mean of {COUNT}.
Printed by tests/bench/possible_cpus.py at commit {commit()} on \
{time.strftime("%Y-%m-%d", time.gmtime())}.
Machine: {machine.cpu()}, {os.cpu_count()} cores, {machine.memory_gib():.0f} GiB. \
VMs: QEMU without KVM, 2 CPUs run.

memlock: what bpftool says of programs and maps. vmalloc, per-CPU: what attaching took
of the machine's, by /proc/meminfo; the first has the maps and programs in it.

|  | kernel | possible CPUs | memlock | vmalloc | per-CPU |
|---|---|---|---|---|---|""")
    print(row("native", run()), flush=True)
    for cpus in CPUS:
        print(row("VM", run(ROOT / "tests/vm/run", "--possible-cpus", str(cpus),
                            KERNEL, "--")), flush=True)


if __name__ == "__main__":
    main()
