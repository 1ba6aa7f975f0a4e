#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Measures which part of an ADD's time the plugin works, the kernel works for it, and it
waits.

Upstream's plugin and natra take turns, see tests/cni/cost.py. The ADDs of each run in a
cgroup of its own, whose CPU time the kernel splits into user and system by what the ticks
of its clock hit. One call is too short for that, so the split is that of all calls. The
committed result is made by

    tests/bench/add_parts.py --result tests/bench/results/add-parts-6.18.txt

in a built tree (build/, or NATRA_BUILD names meson's directory); root.
"""
import contextlib
import os
import statistics
import subprocess
import tempfile

import built_tree

built_tree.use("cni", "kube", "harness/python", NATRACTL="tools/natractl/natractl",
               NATRA_LAUNCH="tests/cni/launch")
import adds
import cost
import plugin
from markdown import table
from place import own_cgroup
from plugin import Veth
from report import skip
from script import option

NAMES = ("upstream", "natra clsact", "natra tcx")
# Here the script has a file system of its own.
HIERARCHY = "/var/lib/natra-cgroup2"


@contextlib.contextmanager
def cgroups():
    """Yield the directory of a cgroup for each name. It is the hierarchy of version 2, which
    this process's namespace alone sees there."""
    os.mkdir(HIERARCHY)
    if subprocess.run(["mount", "-t", "cgroup2", "cgroup2", HIERARCHY], check=False,
                      stderr=subprocess.DEVNULL).returncode:
        skip("cgroups of version 2")
    parent, paths = HIERARCHY + own_cgroup("", "cgroup2"), {}
    try:
        for name in NAMES:
            paths[name] = tempfile.mkdtemp(prefix="natra-add-", dir=parent)
        yield paths
    finally:
        for path in paths.values():
            os.rmdir(path)


def cpu_ms(path):
    """Return the CPU time of a cgroup in user mode and in the kernel until now."""
    with open(f"{path}/cpu.stat") as f:
        found = dict(line.split() for line in f)
    return [int(found[f"{mode}_usec"]) / 1e3 for mode in ("user", "system")]


def measure(arguments, paths):
    """Return the wall and the CPU time of each ADD in ms by the plugin's name."""
    pods = [Veth(f"n{i}", f"v{i}") for i in range(arguments.pods)]
    adds.load_modules(arguments, pods[0])
    got = {}
    for _ in range(arguments.lots):
        # Upstream's DEL leaves qdiscs on which its next ADD fails.
        cost.renew(pods)
        for name, turn in cost.turns(arguments.natra, arguments.upstream, pods,
                                     arguments.pods, paths).items():
            got.setdefault(name, []).extend(turn)
    for pod in pods:
        pod.close()
    return got


def rows(got, parts):
    for name, (user, system) in parts.items():
        wall, cpu = (statistics.median(add[i] for add in got[name]) for i in (0, 1))
        waits = statistics.median(add[0] - add[1] for add in got[name])
        share = user / (user + system)
        yield (name, f"{wall:.2f}", f"{cpu * share:.2f}", f"{cpu * (1 - share):.2f}",
               f"{waits:.2f}")


def links(got):
    """Say what the kernel alone takes for the two TCX links of a pod."""
    if "two links" in got:
        ms = statistics.median(add[0] for add in got["two links"])
        yield f"Two TCX links of an empty program take {ms:.2f} ms."


def prepare(arguments):
    adds.prepare(arguments, f"add_parts.py --lots {arguments.lots} --pods {arguments.pods}")


def main(report, arguments):
    with cgroups() as paths:
        got = measure(arguments, paths)
        parts = {name: cpu_ms(path) for name, path in paths.items() if name in got}
    for name, both in parts.items():
        # wait4() counts the same processes.
        report.near(f"{name}: CPU of the cgroup, ms", sum(both),
                    sum(add[1] for add in got[name]), 0.05)
    text = "\n".join([*table(("", "wall", "user", "system", "waiting"),
                            list(rows(got, parts))), *links(got)])
    print(text)
    if not report.failed:
        adds.write(arguments, f"""\
What one ADD takes, in ms: medians of {len(got["upstream"])} ADDs of each by turns.
user and system: the CPU time of an ADD, divided as that of all its ADDs. waiting: the wall
time less the CPU time; less than nothing if a plugin's threads use both CPUs at once.""",
                   text.rstrip())


if __name__ == "__main__":
    plugin.run_script(main,
                      option("--lots", type=int, default=4),
                      option("--pods", type=int, default=150,
                             help="interfaces in each lot"),
                      option("--result",
                             help="write the table and how it was made to this file"),
                      prepare=prepare)
