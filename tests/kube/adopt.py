#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Installs the agent on a node whose pods upstream's bandwidth plugin limits.

All pods have traffic in both directions meanwhile. Each must be at its cap within 2 s
of the first replacement, no connection may end, and nothing of upstream may stay.
"""
import json
import threading
import time

import kube
from agentpod import Agent
from commands import sh
from node import bandwidth, write_network
from pods import rates
from plugin import attachments
from script import option
from traffic import Recorder, Traffic

PODS = option("--pods", type=int, default=20, help="pods; default: 20")
MBIT = 1_000_000
IN_MBIT, OUT_MBIT = 4, 3
AT_CAP_SECONDS, SPAN_SECONDS = 2, 4
# An attachment begins with a full burst, half a second of the rate, on top of which the
# stream's heavy phase may go unseen for a tenth of a second.
FIRST_SECOND = 1.9


def cap(stream):
    return (IN_MBIT if stream[1] == "in" else OUT_MBIT) * MBIT


def upstream_objects():
    """Return what upstream's plugin keeps in the kernel."""
    qdiscs = [q for q in json.loads(sh("tc", "-j", "qdisc", "show"))
              if q["kind"] in ("tbf", "ingress")]
    links = [n for n in json.loads(sh("ip", "-d", "-j", "link", "show"))
             if n.get("linkinfo", {}).get("info_kind") == "ifb"]
    return [f"{q['kind']} {q.get('dev')}" for q in qdiscs] + \
        [f"ifb {n['ifname']}" for n in links]


def at_cap(report, what, got):
    """Check the streams' rates; the figure is the one farthest from its cap."""
    worst = max(got, key=lambda k: abs(got[k] / cap(k) - 1))
    report.near(f"{what}, worst of {len(got)} streams ({'-'.join(worst)})",
                got[worst] / MBIT, cap(worst) / MBIT, 0.1, " Mbit/s")


def replace(cluster, recorder, count):
    """Install the agent, and return when it replaced the first limits and the last."""
    times = []
    done = threading.Event()

    def look():
        while not done.wait(0.02):
            got = len(attachments())
            if got and not times:
                times.append(time.monotonic())
            if got >= count and not upstream_objects():
                times.append(time.monotonic())
                return
    watcher = threading.Thread(target=look, daemon=True)
    watcher.start()
    agent = Agent.install(cluster, "--replace-bandwidth")
    watcher.join(30)
    done.set()
    if len(times) < 2:
        raise RuntimeError(f"{len(attachments())} of {count} pods, left "
                           f"{upstream_objects()[:4]}: {agent.log()}")
    return agent, times[0], times[1]


def main(cluster, arguments):
    report, count = cluster.report, arguments.pods
    write_network(bandwidth())
    cluster.node.start()
    report.shown("versions", cluster.node.versions())
    pods = cluster.pods.start({f"pod{i}": rates(f"{IN_MBIT}M", f"{OUT_MBIT}M")
                               for i in range(count)})
    report.least("upstream's objects before", len(upstream_objects()), 3 * count)
    traffic = Traffic(cluster.client, pods)
    # containerd asks upstream's plugin for a bucket of 4 Gbit, which takes minutes to
    # empty, so these streams are faster than the caps.
    got = traffic.rates(2)
    report.shown("with upstream's plugin, all streams, Mbit/s",
                 f"{sum(got.values()) / MBIT:.0f}")
    recorder = Recorder(traffic)
    time.sleep(1)
    agent, first, last = replace(cluster, recorder, count)
    time.sleep(max(0, first + AT_CAP_SECONDS + 4 * SPAN_SECONDS + 0.5 - time.monotonic()))
    recorder.stop()
    for n in range(4):
        begin = AT_CAP_SECONDS + n * SPAN_SECONDS
        got = recorder.span(first + begin, SPAN_SECONDS)
        report.shown(f"streams that move, {begin} to {begin + SPAN_SECONDS} s later",
                     sum(rate > 0 for rate in got.values()))
    for name, way in [k for k, rate in got.items() if not rate][:3]:
        sender, to = (cluster.client, pods[name]) if way == "in" else \
            (pods[name], cluster.client)
        report.shown(f"socket that sends nothing, {name} {way}",
                     sender.run("ss", "-tinH", "dst", to.ip).strip())
    report.most("from the first replacement to the last", last - first, AT_CAP_SECONDS,
                " s")
    at_cap(report, f"from {AT_CAP_SECONDS} s after the first replacement",
           recorder.span(first + AT_CAP_SECONDS, SPAN_SECONDS))
    report.most("most in any second after the last, of the cap", recorder.most(last, 1, cap),
                FIRST_SECOND)
    moving = recorder.span(recorder.rows[-1][0] - 1, 0.8)
    report.equal("connections that still move",
                 sum(rate > 0 for rate in moving.values()), 2 * count)
    report.equal("upstream's objects left", upstream_objects(), [])
    report.equal("limits", set(cluster.rates().values()),
                 {(IN_MBIT * MBIT, OUT_MBIT * MBIT)})
    cluster.pods.start({"later": rates("8M", "8M")})
    report.equal("a pod that comes later", cluster.rates().get("later"),
                 (8 * MBIT, 8 * MBIT))
    report.equal("  upstream's objects", upstream_objects(), [])
    traffic.close()


if __name__ == "__main__":
    kube.run_script(main, PODS)
