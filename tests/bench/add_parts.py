#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Measures which part of an ADD's time the plugin works, the kernel works for it, and it
waits.

Upstream's plugin and natra take turns, see tests/cni/cost.py. Each has a cgroup, whose
CPU time the kernel divides by the ticks of its clock over all calls; those of one call
are too few. The committed result is made by

    tests/bench/add_parts.py --result tests/bench/results/add-parts-6.18.txt

in a built tree (build/, or NATRA_BUILD names meson's directory); root.
"""
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = os.environ.get("NATRA_BUILD", str(ROOT / "build"))
for variable, built in (("NATRACTL", "tools/natractl/natractl"),
                        ("NATRA_LAUNCH", "tests/cni/launch")):
    os.environ.setdefault(variable, f"{BUILD}/{built}")
sys.path += [f"{ROOT}/tests/{part}" for part in ("cni", "harness/python")]
import cost
import machine
import plugin
from commands import sh
from markdown import table
from plugin import DEBIAN, Veth, newest
from possible_cpus import commit
from script import option
from static_build import static_natra

NAMES = ("upstream", "natra clsact", "natra tcx")

class Cgroups:
    """A cgroup for each name, in the hierarchy of version 2."""

    def __init__(self, names):
        self.top = tempfile.mkdtemp(prefix="natra-cgroup-")
        sh("mount", "-t", "cgroup2", "cgroup2", self.top)
        with open("/proc/self/cgroup") as f:
            own, = (line.rstrip("\n")[3:] for line in f if line.startswith("0::"))
        self.paths = {name: f"{self.top}{own}/natra-{os.getpid()}-{i}"
                      for i, name in enumerate(names)}
        for path in self.paths.values():
            os.mkdir(path)

    def cpu_ms(self, name):
        """Return the CPU time in user mode and in the kernel until now."""
        with open(f"{self.paths[name]}/cpu.stat") as f:
            found = dict(line.split() for line in f)
        return [int(found[f"{mode}_usec"]) / 1e3 for mode in ("user", "system")]

    def remove(self):
        for path in self.paths.values():
            os.rmdir(path)
        sh("umount", self.top)
        os.rmdir(self.top)


def measure(arguments, cgroups):
    """Return the wall and the CPU time of each ADD in ms by the plugin's name."""
    pods = [Veth(f"n{i}", f"v{i}") for i in range(arguments.pods)]
    for path in (arguments.upstream, arguments.natra):   # modules and caches
        cost.launch(path, pods[0])
        cost.delete(path, pods[0])
    got = {}
    for _ in range(arguments.lots):
        # Upstream's DEL leaves qdiscs on which its next ADD fails.
        cost.renew(pods)
        for name, adds in cost.turns(arguments.natra, arguments.upstream, pods,
                                     arguments.pods, cgroups.paths).items():
            got.setdefault(name, []).extend(adds)
    for pod in pods:
        pod.close()
    return got


def check(report, name, adds, cpu_ms):
    """The cgroup must have counted what wait4() says of the processes, except for the
    moment before they enter it."""
    report.near(f"{name}: CPU of the cgroup, ms", sum(cpu_ms),
                sum(add[1] for add in adds), 0.2)


def rows(got, cpu_ms):
    for name, (user, system) in cpu_ms.items():
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


def head(arguments, got):
    return f"""\
What one ADD takes, in ms: medians of {len(got["upstream"])} ADDs of each by turns.
Printed by tests/bench/add_parts.py --lots {arguments.lots} --pods {arguments.pods} at commit \
{arguments.commit} on {time.strftime("%Y-%m-%d", time.gmtime())}.
Machine: {machine.cpu()}, {os.cpu_count()} cores, {machine.memory_gib():.0f} GiB, Linux \
{os.uname().release}. natra is
a static build, upstream's plugin {machine.newest_plugins() or "Debian's"}. Load before: \
{arguments.load:.2f}.

user and system: the CPU time of an ADD, divided as that of all its ADDs. waiting: the wall
time less the CPU time; less than nothing if a plugin's threads use both CPUs at once.
"""


def prepare(arguments):
    arguments.upstream = plugin.need(newest("bandwidth") or (
        f"{DEBIAN}/bandwidth" if os.path.exists(f"{DEBIAN}/bandwidth") else None),
        "upstream's bandwidth plugin (tools/install-deps cni)")
    arguments.natra = static_natra()
    arguments.load = os.getloadavg()[0]
    if arguments.result:
        arguments.commit = commit()
        arguments.out = open(arguments.result, "w")


def main(report, arguments):
    cgroups = Cgroups(NAMES)
    try:
        got = measure(arguments, cgroups)
        cpu_ms = {name: cgroups.cpu_ms(name) for name in NAMES if name in got}
    finally:
        cgroups.remove()
    for name, parts in cpu_ms.items():
        check(report, name, got[name], parts)
    text = "\n".join([*table(("", "wall", "user", "system", "waiting"),
                            list(rows(got, cpu_ms))), *links(got)])
    print(text)
    if arguments.result:
        print(head(arguments, got), text.rstrip(), sep="\n", file=arguments.out,
              flush=True)


if __name__ == "__main__":
    plugin.run_script(main,
                      option("--lots", type=int, default=4),
                      option("--pods", type=int, default=150,
                             help="interfaces in each lot"),
                      option("--result",
                             help="write the table and how it was made to this file"),
                      prepare=prepare)
