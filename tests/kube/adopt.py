#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Installs the agent on a node whose pods upstream's bandwidth plugin limits.

All pods have traffic in both directions meanwhile, and upstream's queues are full. Each
must be at its cap 2 s after the agent turned to it, no connection may end or stand still,
and nothing of upstream may stay.
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
AT_CAP_SECONDS, SPAN_SECONDS = 2, 8
PAUSE_MAX_SECONDS = 1
# Streams that upstream's limits alone bring to a stand are no measure of what the agent
# does; so many must move when it begins.
BEFORE_SECONDS, MOVED_MIN = 4, 0.75
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


def with_upstreams_tbf():
    """Return the host-side interfaces that upstream's plugin limits."""
    return {q["dev"] for q in json.loads(sh("tc", "-j", "qdisc", "show"))
            if q["kind"] == "tbf" and not q["dev"].startswith("bwp")}


def wait_at_cap(traffic, seconds=90):
    """Wait until upstream's buckets are empty: containerd asks for some of 4 Gbit."""
    end = time.monotonic() + seconds
    while True:
        got = traffic.rates(1)
        fast = sum(rate > 2 * cap(k) for k, rate in got.items())
        if not fast:
            return
        if time.monotonic() > end:
            raise RuntimeError(f"{fast} streams are over upstream's limits")


def replace(cluster, pods):
    """Install the agent. Return it, and for each pod when the agent turned to it and when
    upstream's limits were gone. It does one pod after the other, so it turned to a pod
    when it was done with the one before, or when natra had loaded its programs."""
    spans, known = {}, {pod.host: name for name, pod in pods.items()}
    done = threading.Event()

    def look():
        begin = None
        while not done.wait(0.02) and known:
            now = time.monotonic()
            if begin is None and attachments():
                begin = now - 0.1
            for dev in set(known) - with_upstreams_tbf():
                spans[known.pop(dev)] = (begin or now, time.monotonic())
                begin = now
    watcher = threading.Thread(target=look, daemon=True)
    watcher.start()
    agent = Agent.install(cluster, "--replace-bandwidth")
    watcher.join(60)
    done.set()
    if known:
        raise RuntimeError(f"{len(attachments())} of {len(pods)} pods, left "
                           f"{upstream_objects()[:4]}: {agent.log()}")
    return agent, spans


def check_streams(report, recorder, spans):
    """Check each stream from 2 s after the begin of its pod's replacement on."""
    first = min(begin for begin, _ in spans.values())
    moved = {k for k, rate in recorder.span(first - BEFORE_SECONDS,
                                            BEFORE_SECONDS).items() if rate}
    streams = set(recorder.rows[0][1])
    # Else the run says little about connections that go on.
    report.least(f"of {len(streams)} streams, moved in the {BEFORE_SECONDS} s before",
                 len(moved), MOVED_MIN * len(streams))
    at = {k: spans[k[0]][0] + AT_CAP_SECONDS for k in streams}
    got = {k: recorder.rate(k, at[k], SPAN_SECONDS) / cap(k) for k in streams}
    paused = {k: recorder.longest_pause(k, at[k] - AT_CAP_SECONDS) for k in streams}
    for what, some in (("moved before", moved), ("stood still", streams - moved)):
        if not some:
            continue
        worst = max(some, key=lambda k: abs(got[k] - 1))
        report.near(f"{what}: {AT_CAP_SECONDS} s later, of the cap, worst of {len(some)} "
                    f"({'-'.join(worst)})", got[worst], 1, 0.1)
        report.shown("  it, each second from the begin on", " ".join(
            f"{recorder.rate(worst, at[worst] - AT_CAP_SECONDS + s, 1) / cap(worst):.2f}"
            for s in range(AT_CAP_SECONDS + SPAN_SECONDS)))
        report.shown("  of the cap, median", f"{sorted(got[k] for k in some)[len(some) // 2]:.3f}")
        report.shown("  within a tenth", sum(abs(got[k] - 1) <= 0.1 for k in some))
        report.most("  nothing arrived for, at most", max(paused[k] for k in some),
                    PAUSE_MAX_SECONDS, " s")
    early = {k: recorder.rate(k, at[k] - AT_CAP_SECONDS, AT_CAP_SECONDS) / 4e6
             for k in streams}
    report.shown("passed in these 2 s, MB: median and most of a stream",
                 f"{sorted(early.values())[len(early) // 2]:.1f} {max(early.values()):.1f}")
    report.most("most in any second after the last, of the cap",
                recorder.most(max(end for _, end in spans.values()), 1, cap),
                FIRST_SECOND)


def main(cluster, arguments):
    report, count = cluster.report, arguments.pods
    write_network(bandwidth())
    cluster.node.start()
    report.shown("versions", cluster.node.versions())
    pods = cluster.pods.start({f"pod{i}": rates(f"{IN_MBIT}M", f"{OUT_MBIT}M")
                               for i in range(count)})
    report.least("upstream's objects before", len(upstream_objects()), 3 * count)
    traffic = Traffic(cluster.client, pods)
    wait_at_cap(traffic)
    recorder = Recorder(traffic)
    time.sleep(BEFORE_SECONDS)
    _, spans = replace(cluster, pods)
    last = max(end for _, end in spans.values())
    time.sleep(max(0, last + AT_CAP_SECONDS + SPAN_SECONDS + 1 - time.monotonic()))
    recorder.stop()
    took = sorted(end - begin for begin, end in spans.values())
    report.shown("seconds for a pod, median", f"{took[len(took) // 2]:.2f}")
    report.most("seconds for a pod, at most", took[-1], AT_CAP_SECONDS, " s")
    report.shown("seconds for all", f"{last - min(b for b, _ in spans.values()):.1f}")
    check_streams(report, recorder, spans)
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
