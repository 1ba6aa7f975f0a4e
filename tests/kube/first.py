#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Measures the CPU time of ADD for the first pods of a node after the agent is ready.

Upstream's plugin limits pods of the same node afterwards. Either plugin runs behind a
program that measures it. That takes natra's place when the agent has got ready and has
ended, because the agent would put natra back.
"""
import os
import shutil
import statistics

import kube
from agentpod import Agent
from limiters import find_natractl
from commands import sh
from node import BIN_DIR, bandwidth, write_network
from pods import cached_results, plugins_of, rates

LATER = 5


def measure(name):
    """Put the program that measures in place of a plugin."""
    os.rename(f"{BIN_DIR}/{name}", f"{BIN_DIR}/{name}.measured")
    shutil.copy(os.environ["NATRA_KUBE_COST"], f"{BIN_DIR}/{name}")


def stop_measuring(name):
    os.rename(f"{BIN_DIR}/{name}.measured", f"{BIN_DIR}/{name}")


def costs(name):
    """Return the CPU time of each ADD of a plugin in ms."""
    with open(f"/run/kube/cost.{name}") as f:
        rows = [line.split() for line in f]
    return [int(us) / 1000 for command, us, code in rows
            if command == "ADD" and code == "0"]


def some_pods(cluster, plugin, name):
    """Start pods one after the other, and return the CPU time of each ADD in ms."""
    measure(plugin)
    names = [f"{name}{i}" for i in range(1 + LATER)]
    for one in names:
        cluster.pods.start({one: rates("10M", "5M")})
    made_by = plugins_of(cached_results()[names[0]])
    cluster.pods.end(names)
    stop_measuring(plugin)
    got = costs(plugin)
    cluster.report.equal(f"{name}: pods limited by it", (len(got), plugin in made_by),
                         (1 + LATER, True))
    cluster.report.shown("  its chain", " ".join(made_by))
    cluster.report.shown("  first ADD, CPU ms", f"{got[0]:.2f}")
    cluster.report.shown(f"  median of the next {LATER}, CPU ms",
                         f"{statistics.median(got[1:]):.2f}")
    return got


def main(cluster, _):
    report = cluster.report
    write_network()
    cluster.node.start()
    report.shown("versions", cluster.node.versions())
    agent = Agent.install(cluster)
    agent.stop()
    natra = some_pods(cluster, "natra", "natra")
    sh(find_natractl(), "uninstall")
    write_network(bandwidth())
    upstream = some_pods(cluster, "bandwidth", "upstream")
    report.most("natra's first ADD beside upstream's first, CPU",
                natra[0] / upstream[0], 1)


if __name__ == "__main__":
    kube.run_script(main)
