#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs the cells of twovms.py in two VMs (tests/vm/pair KERNEL KERNEL -- pair_run.py
...). The first VM has the client, the second one the pods; it writes OUT/results.json."""
import argparse
import sys
import time

import bench                    # finds the harness
import machine
from cells import Node
from statistic import Results
from workloads import SAMPLES, schedule

# The modules here and in the harness take precedence.
sys.path.append(f"{bench.HERE}/../vm")
import crosskernel
from namespaces import Ns


class Site(crosskernel.Site):
    """The pods, and the client in the other VM."""

    def __init__(self, node, me, peer, far):
        super().__init__(node, me.pods)
        self.far, self.peer, self.servers = far, peer, []
        for pod in self.pods:
            self.nginx(pod=pod)
        self.servers = list(self.pod._procs)

    def streams(self, way):
        return crosskernel.streams(self, self.far, self.peer, way)

    def end_streams(self):
        self.far.stop()
        self.stop([p for p in self.pod._procs if p not in self.servers])

    def clear(self):
        self.end_streams()


def measure(a, about, me, peer, node):
    far, begin = crosskernel.Far(peer), time.monotonic()
    about["client_kernel"] = far.release()
    plan = schedule(a.profile, Node(), ["pair"])
    with Site(node, me, peer, far) as r:
        run = bench.Run(r)
        progress = bench.Progress(plan)
        for n, cell in plan:
            progress.end(cell, run.one(n, cell))
            bench.save(f"{a.out}/results.json", run.samples, {
                    "format": 2, "profile": a.profile, "machine": about,
                    "planned": len(plan),
                    "seconds": round(time.monotonic() - begin),
                    "left_out": run.left_out})
    far.close()
    return Results({"samples": run.samples}).errors()


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--profile", choices=SAMPLES, default="ci")
    p.add_argument("--out", required=True)
    a = p.parse_args()
    about = machine.describe()
    me, peer = crosskernel.places()
    crosskernel.isolate_with_card()
    node = Ns()
    crosskernel.join(crosskernel.find_card(me.mac), me, peer)
    if me.index == 0:
        crosskernel.serve(me, node)
        return 0
    return 1 if measure(a, about, me, peer, node) else 0


if __name__ == "__main__":
    sys.exit(main())
