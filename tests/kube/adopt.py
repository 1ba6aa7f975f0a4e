#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Installs the agent on a node whose pods upstream's bandwidth plugin limits.

All pods have traffic in both directions meanwhile, which waits for seconds in that
plugin's queues. Upstream's limits of a pod must be gone 2 s after natra's hold, the
streams be at their caps 2 s later, no connection may end or stand still, and nothing of
upstream may stay.
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
AT_CAP_SECONDS, SPAN_SECONDS, SPANS, BEFORE_SECONDS = 2, 4, 2, 1
# So many of the streams at least. One in 40 has been seen to wait for a timeout that was
# measured in a longer queue than the one that is let out.
MOST = 0.9
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
    """Check the streams' rates, and show the one farthest from its cap."""
    worst = max(got, key=lambda k: abs(got[k] / cap(k) - 1))
    report.least(f"{what} {len(got)}, at their caps +-10 %",
                 sum(abs(rate / cap(k) - 1) <= 0.1 for k, rate in got.items()),
                 MOST * len(got))
    report.shown(f"    the farthest, {'-'.join(worst)}, Mbit/s", f"{got[worst] / MBIT:.2f}")


def capped_by_upstream():
    """Return how many pods have upstream's tbf."""
    return sum(q["kind"] == "tbf" and not q["dev"].startswith("bwp")
               for q in json.loads(sh("tc", "-j", "qdisc", "show")))


def replace(cluster, count):
    """Install the agent. Return when each pod got natra's limits, and when each lost
    upstream's, both in order: the agent does one pod after the other."""
    begun, ended = [], []
    done = threading.Event()

    def look():
        while not done.wait(0.02) and len(ended) < count:
            ended.extend([time.monotonic()] *
                         (count - capped_by_upstream() - len(ended)))
            begun.extend([time.monotonic()] * (len(attachments()) - len(begun)))
    watcher = threading.Thread(target=look, daemon=True)
    watcher.start()
    agent = Agent.install(cluster, "--replace-bandwidth")
    watcher.join(60)
    done.set()
    if len(ended) < count:
        raise RuntimeError(f"{len(begun)} of {count} pods, left "
                           f"{upstream_objects()[:4]}: {agent.log()}")
    return agent, begun, ended


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
    _, begun, ended = replace(cluster, count)
    last = ended[-1]
    time.sleep(max(0, last + AT_CAP_SECONDS + SPANS * SPAN_SECONDS + 0.5 -
                   time.monotonic()))
    recorder.stop()
    report.shown("first pod to last, s", f"{last - begun[0]:.1f}")
    report.most("natra's limits to the end of upstream's, of any pod",
                max(e - b for b, e in zip(begun, ended)), AT_CAP_SECONDS, " s")
    # A stream that has lost much in upstream's queue waits for a timeout as long as the
    # queue. Until that has passed, nothing can help it.
    waiting = {k for k, rate in recorder.span(begun[0] - BEFORE_SECONDS,
                                              BEFORE_SECONDS).items() if not rate}
    report.shown("streams that stood still before", len(waiting))
    for n in range(SPANS):
        begin = AT_CAP_SECONDS + n * SPAN_SECONDS
        got = recorder.span(last + begin, SPAN_SECONDS)
        report.shown(f"{begin} to {begin + SPAN_SECONDS} s after the last, of those that "
                     "stood still, they move", sum(got[k] > 0 for k in waiting))
        at_cap(report, "  of the others", {k: r for k, r in got.items()
                                           if k not in waiting})
    for name, way in [k for k, rate in got.items() if not rate][:4]:
        sender, to = (cluster.client, pods[name]) if way == "in" else \
            (pods[name], cluster.client)
        report.shown(f"socket that sends nothing, {name} {way}, each second", " ".join(
            f"{recorder.span(begun[0] + s, 1)[name, way] / cap((name, way)):.2f}"
            for s in range(-2, int(last - begun[0]) + 5)) +
            sender.run("ss", "-tinH", "dst", to.ip).strip())
    report.most("most in any second after the last, of the cap", recorder.most(last, 1, cap),
                FIRST_SECOND)
    pauses = [p for k, p in recorder.longest_pauses(last).items() if k not in waiting]
    report.least(f"of the others {len(pauses)}, never 1 s without a packet after the last",
                 sum(p <= 1 for p in pauses), MOST * len(pauses))
    report.shown("    the longest, s", f"{max(pauses):.1f}")
    moving = recorder.span(recorder.rows[-1][0] - 1, 0.8)
    report.least("connections that move in the end", sum(r > 0 for r in moving.values()),
                 MOST * 2 * count)
    report.equal("connections that have ended", traffic.ended(), [])
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
