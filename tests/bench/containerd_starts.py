#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Measures how many pods a real containerd starts per second on one node.

All pods start at the same time, without a limiter, with upstream's plugin and with natra;
natra is also measured where an earlier pod has loaded its programs. The run fails unless
each pod has the limits that it should have. The committed result is made by

    tests/bench/containerd_starts.py --result tests/bench/results/containerd-starts-6.18.txt

in a built tree (build/, or NATRA_BUILD names meson's directory); root.
"""
import glob
import json
import os
import re
import statistics
import time
from collections import Counter
from dataclasses import dataclass

import built_tree

built_tree.use("bindings", "cni", "kube", "harness/python",
               NATRACTL="tools/natractl/natractl", NATRA_KUBE_PAUSE="tests/kube/pause")
import containerd
import machine
from chain import NATRA
from commands import sh
from cputime import busy_seconds
from markdown import table
from namespaces import Ns
from node import bandwidth, wait, write_network
from place import isolate_node
from plugin import PINS, attachments, has_tcx, natractl, newest_bandwidth
from rcu import usual_rcu
from script import option, run_script
from static_build import static_natra

RATES = {"ingress": 10_000_000, "egress": 5_000_000}
ANNOTATIONS = [f"kubernetes.io/{way}-bandwidth={rate}" for way, rate in RATES.items()]
# The kernel goes on removing what belonged to the pods of before.
SETTLE_SECONDS = 2
MODES = ("auto", "tcx-podside", "clsact-podside")


@dataclass(frozen=True)
class Cell:
    """What limits the pods, and for natra the mode that its element asks for."""
    name: str
    mode: str = None
    loaded: bool = False

    def title(self):
        return self.name + ", programs loaded before" * self.loaded

    def elements(self):
        """Return what the list has after ptp."""
        return [{**NATRA, "attachMode": self.mode}] if self.mode else \
            [bandwidth()] if self.name == "upstream" else []

    def wanted(self, pods):
        """Return what limited() has to find when so many pods run."""
        if self.mode:
            mode = self.mode if self.mode != "auto" else \
                "tcx-podside" if has_tcx() else "clsact-podside"
            return {(self.mode, mode, *RATES.values()): pods}
        if self.elements():
            return {("tbf", "veth", RATES["ingress"]): pods,
                    ("tbf", "bwp", RATES["egress"]): pods}
        return {}


def cells():
    yield Cell("no limiter")
    yield Cell("upstream")
    for loaded in (False, True):
        for mode in MODES:
            if has_tcx() or mode != "tcx-podside":
                yield Cell(f"natra, {mode}", mode, loaded)


def limited():
    """Count what limits pods on this node: natra's attachments by the mode that was
    asked for, the mode and the rates; upstream's tbf by the kind of interface and the
    rate."""
    found = Counter((a["policy"]["attach_mode"], a["mode"],
                     *(a["effective"][f"{way}_rate_bits_per_sec"] for way in RATES))
                    for a in attachments())
    found.update(("tbf", re.match("veth|bwp|", q["dev"])[0], q["options"]["rate"] * 8)
                 for q in json.loads(sh("tc", "-j", "qdisc", "show"))
                 if q["kind"] == "tbf")
    return dict(found)


def links():
    """Return the names of the node's interfaces."""
    return [link["ifname"] for link in json.loads(sh("ip", "-j", "link", "show"))]


def empty(runtime):
    """Wait until the node has nothing of pods that were stopped. Upstream's plugin may
    leave its ifbs behind."""
    wait(lambda: not any(name.startswith("veth") for name in links()), runtime.program.tail)
    for name in links():
        if name.startswith("bwp"):
            sh("ip", "link", "del", name)
    wait(lambda: not limited(), lambda: str(limited()))


def others():
    """Return which part of the machine's CPU time is used while this script waits."""
    seconds = SETTLE_SECONDS / 2
    before = busy_seconds()
    time.sleep(seconds)
    return (busy_seconds() - before) / (seconds * os.cpu_count())


def sample(report, runtime, cell, count):
    """Start pods at the same time. Returns how many per second, the seconds of each, and
    what else used the CPUs just before."""
    write_network(*cell.elements())
    stays = [runtime.started("first", lambda _: limited() == cell.wanted(1), *ANNOTATIONS,
                             after=lambda: empty(runtime))]
    if not cell.loaded:
        stays.pop().stop()
        empty(runtime)
        natractl("gc")
        report.equal("programs of natra", glob.glob(f"{PINS}/abi*/engine_*"), [])
    time.sleep(SETTLE_SECONDS / 2)
    busy = others()
    with usual_rcu():
        seconds, pods = runtime.run_many(count, f"pod-{time.monotonic_ns()}-",
                                         *ANNOTATIONS)
    report.equal(f"{cell.title()}: limits", limited(), cell.wanted(count + len(stays)))
    runtime.stop_many(pods)
    for pod in stays:
        pod.stop()
    empty(runtime)
    print(f"     {cell.title()}: {count / seconds:.2f} pods per second", flush=True)
    return count / seconds, list(pods.values()), busy


def measure(report, runtime, arguments):
    """Return the samples of each cell. Every other turn goes the other way round."""
    order = list(cells())
    got = {cell: [] for cell in order}
    for turn in range(arguments.samples):
        for cell in order[::-1] if turn % 2 else order:
            got[cell].append(sample(report, runtime, cell, arguments.pods))
    return got


def head(arguments, got):
    busy = [one[2] for samples in got.values() for one in samples]
    said = sh("containerd", "--version").split()[2]
    return f"""\
Pods that start at the same time on one node, by a real containerd: {arguments.pods}, \
without containers.
{arguments.printed}
Machine: {machine.line()}, Linux {os.uname().release}. containerd {said},
runc {sh("runc", "--version").split()[2]}, ptp and host-local of Debian; natra is a static \
build, upstream's plugin
{machine.newest_plugins() or "Debian's"}.
Other work took {statistics.median(busy):.0%} of the CPUs (median; at most \
{max(busy):.0%}) in the second before each sample.

Each pod has limits in both directions, which were found after each sample. containerd sends
the placeholder 4294967295 as their burst; upstream's plugin takes it literally, and makes the
same qdiscs as with any other. Loaded before: a pod of the same mode runs already; else there
is none of natra's programs. Each figure is the median of the samples, of which there are \
{arguments.samples}:
every other time in the opposite order.
"""


def rows(got):
    for cell, samples in got.items():
        rates = [one[0] for one in samples]
        yield (cell.title(), f"{statistics.median(rates):.2f}",
               f"{min(rates):.2f} to {max(rates):.2f}",
               *(f"{statistics.median(of(one[1]) for one in samples):.2f}"
                 for of in (statistics.median, max)))


def compared(got):
    """Say what clsact would gain, in one line for each of both."""
    median = {(cell.mode, cell.loaded): statistics.median(one[0] for one in samples)
              for cell, samples in got.items()}
    for loaded in (False, True):
        if ("tcx-podside", loaded) in median:
            ratio = median["clsact-podside", loaded] / median["tcx-podside", loaded]
            yield (f"clsact-podside starts {ratio:.2f} times as many pods per second as "
                   f"tcx-podside{', programs loaded before' * loaded}.")


def prepare(arguments):
    arguments.upstream = newest_bandwidth()
    containerd.prepare(arguments)
    arguments.natra = static_natra()
    if arguments.result:
        arguments.printed = machine.printed_by(
                f"containerd_starts.py --pods {arguments.pods} --samples "
                f"{arguments.samples}")
        # The node would not see a file below the directories that are its own. What it
        # had stays until there is something else to write.
        arguments.out = open(arguments.result, "a")


def main(report, arguments):
    node = Ns()
    runtime = containerd.Runtime(arguments, {"natra": arguments.natra,
                                             "bandwidth": arguments.upstream})
    try:
        got = measure(report, runtime, arguments)
    except Exception:
        print(runtime.program.tail(40))
        raise
    finally:
        runtime.program.stop()
        os.close(node.fd)
    text = "\n".join([*table(
        ("", "pods per second", "lowest to highest", "start, median, s",
         "start, slowest, s"), list(rows(got))), *compared(got)])
    print(text)
    if arguments.result and not report.failed:
        arguments.out.truncate(0)
        print(head(arguments, got), text, sep="\n", file=arguments.out, flush=True)


if __name__ == "__main__":
    run_script(main,
               option("--pods", type=int, default=64),
               option("--samples", type=int, default=3),
               option("--result", help="write the table and how it was made to this file"),
               prepare=prepare, isolate=isolate_node)
