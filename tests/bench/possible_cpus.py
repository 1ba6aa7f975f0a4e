#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Prints what a limited pod takes of the kernel's memory with natra, with upstream's
plugin and without a limiter, with 2, 64 and 255 possible CPUs.

Runs the benchmark's cells of memory in VMs whose possible CPUs mostly do not run, one
VM after the other; root, in a built tree (build/, or NATRACTL and NATRA_CNI name
another's programs). What DIR has already, of the same build, is not measured again. The
committed result is made by

    tests/bench/possible_cpus.py DIR >tests/bench/results/possible-cpus.txt

255 is the most that QEMU 7.2 emulates: one more CPU has number 255, which needs an
x2APIC, and without KVM it has none.
"""
import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

import bench                    # noqa: F401, finds the harness
import footprint
import machine
from cells import LIMITERS
from markdown import figure, name_of, ranked, table
from statistic import Results

ROOT = Path(__file__).resolve().parent.parent.parent
KERNEL = "6.12"
CPUS = (2, 64, 255)
PODS = (1, 8, footprint.MEMLOCK_PODS)
COLUMNS = ("all_kib", "slab_kib", "VmallocUsed_kib", "Percpu_kib", "memlock_kib")
HEAD = ("possible CPUs", "", "pods", "all", "slab, stacks and page tables", "vmalloc",
        "per-CPU", "memlock")


def measure(cpus, out, pods, about):
    """Let bench.py measure in a VM what `out` does not have yet."""
    env = {"NATRACTL": f"{ROOT}/build/tools/natractl/natractl",
           "NATRA_CNI": f"{ROOT}/build/cni/natra", **os.environ,
           "NATRA_COMMIT": about, "PYTHONDONTWRITEBYTECODE": "1"}
    # The VM gets those whose names begin with NATRA_ by itself.
    inside = [f"{k}={env[k]}" for k in ("NATRACTL", "PYTHONDONTWRITEBYTECODE")]
    cells = f"^memory ({'|'.join(LIMITERS)}) pods=({'|'.join(map(str, pods))})$"
    command = [f"{ROOT}/tests/vm/run", "--timeout", "3600", "--possible-cpus", str(cpus),
               "--rwdir", out, KERNEL, "--", "env", *inside, "/usr/bin/python3",
               f"{ROOT}/tests/bench/bench.py", "--profile", "full", "--only", "memory",
               "--match", cells, "--out", out]
    # Standard output is for the result alone.
    r = subprocess.run(command, cwd=ROOT, env=env, stdout=sys.stderr, check=False)
    if r.returncode:
        sys.exit(f"the VM with {cpus} possible CPUs: exit {r.returncode}")


def load(path, cpus):
    """Return a VM's results. All must be there, of a kernel with so many CPUs."""
    with open(path) as f:
        res = Results(json.load(f))
    have = res.data["machine"].get("possible_cpus")
    if have != cpus:
        sys.exit(f"{path}: possible_cpus is {have}, not {cpus}")
    for cell, why in res.errors():
        sys.exit(f"{path}: {cell}: {why}")
    for x in res.data["left_out"]:
        sys.exit(f"{path}: {x['cell']}: {x['why']}")
    return res


def rows(cpus, res):
    """Return the table's rows of one VM, ordered by pods and then as LIMITERS are."""
    found = sorted(res.find("memory"), key=lambda k: (
            dict(k[2])["pods"], LIMITERS.index(k[1])))
    return [(cpus, name_of(key[1]), dict(key[2])["pods"],
             *(figure(res.stat(key, c)) for c in COLUMNS)) for key in found]


def judged(cpus, res):
    """Return who takes less with the most pods, and whether natra reached its goal."""
    pods = max(dict(k[2])["pods"] for k in res.find("memory"))
    took = {name: res.mean("memory", name, "all_kib", pods=pods) for name in LIMITERS}
    (target,) = (t for t in footprint.targets(res) if "all kinds" in t.name)
    return (f"- {cpus} possible CPUs, {pods} pods: {ranked(took, '{:.1f} KiB')}. "
            f"At most upstream's: {target.judged}.")


def text(found, about):
    """Return the lines of the result, from a VM's results by its possible CPUs."""
    kernels = {res.data["machine"]["kernel"] for res in found.values()}
    return ["Kernel memory of a pod with limits in both directions: means, in KiB.",
            machine.printed_by("possible_cpus.py", about),
            f"Machine: {machine.line()}. VMs: QEMU without KVM, 2 CPUs run, Linux "
            f"{', '.join(sorted(kernels))}.", "",
            "all: what limiting the pods took of the machine's memory by /proc/meminfo, "
            "the sum",
            "of the three columns after it. memlock: what the kernel charges for natra's "
            "programs",
            "and maps, which are in all.", "",
            *table(HEAD, [row for cpus, res in found.items() for row in rows(cpus, res)]),
            *(judged(cpus, res) for cpus, res in found.items())]


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    p.add_argument("dir", metavar="DIR", help="where each VM's results are kept")
    p.add_argument("--pods", type=int, action="append", choices=PODS,
                   help="only cells with so many pods; can be repeated")
    a = p.parse_args()
    if os.geteuid():
        sys.exit("needs root")
    about, found = machine.commit(), {}
    if about.endswith("-dirty"):
        sys.exit(f"{about}: commit the changes first, so that the result can name its tree")
    for cpus in CPUS:
        out = os.path.abspath(f"{a.dir}/{cpus}")
        os.makedirs(out, exist_ok=True)
        measure(cpus, out, a.pods or PODS, about)
        found[cpus] = load(f"{out}/results.json", cpus)
    print("\n".join(text(found, about)))


if __name__ == "__main__":
    main()
