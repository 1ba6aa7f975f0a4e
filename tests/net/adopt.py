#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""natra-agent takes pods over from upstream's bandwidth plugin while streams wait in
that plugin's queues.

A stream with seconds of its rate in such a queue must go on at the cap, without a long
pause, and nothing of upstream may stay. If the agent is killed while a queue drains,
upstream's limits hold at the same rate, and the next agent finishes it. If somebody removes
upstream's limits by hand meanwhile, the next agent lets natra's hold.
"""
import json
import os
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
for part in ("agent", "cni", "harness/python"):
    sys.path.append(os.path.join(os.path.dirname(HERE), part))
from agent import Agent
from commands import sh
from isolation import BPFFS
from limiters import Natra, Upstream
from podnode import FakeNode, wait_until
from report import skip
from rig import Rig
from script import option, run_script
from stream import Stream

MBIT = 1_000_000
CAP = 4 * MBIT
# The first pod's queue is to hold about 2 s of its cap.
QUEUE_BYTES = 1_000_000
# A stream's window is less than this, and fits into upstream's queue (4 MB): one that loses
# most of a larger window waits for its timers, some for more than a minute.
RMEM_BYTES = 3_000_000
FILL_SECONDS = 120              # mostly 5 to 30, once 45
# The cap is to hold so long after the begin. What passes before is bounded by what
# containerd asks upstream's plugin for when a pod starts, and the cap, with what natra
# lets pass at the begin.
SETTLE_SECONDS, SECONDS = 2, 5
PASS_MAX_BYTES = (1 << 29) + (SETTLE_SECONDS + 1) * CAP / 8
PAUSE_MAX_SECONDS = 1
WAYS = (("in",), ("out",), ("in", "out"))
BY_HAND = "by-hand"
CASES = ("SIGKILL", BY_HAND)
CASE = option("--case", choices=CASES, help="what follows the first agent; default: all")


class Lane:
    """A pod with streams, whose acknowledgements wait in the queue of the other
    direction if it has both."""

    def __init__(self, rig, i):
        self.pod, client = rig.pods[i], rig.clients[i]
        known = set(ifbs())
        for ns in (self.pod, client):
            ns.sysctl("net.ipv4.tcp_rmem", f"4096 131072 {RMEM_BYTES}")
        # A connection is not made in time behind a full queue.
        self.streams = {way: Stream(client, self.pod, 4) if way == "in" else
                        Stream(self.pod, client, 4) for way in WAYS[i]}
        Upstream(self.pod).attach(str(CAP), str(CAP))
        self.ifb, = set(ifbs()) - known
        # The queue that is deep.
        self.queue = self.pod.host if "in" in self.streams else self.ifb
        self.rows, self.waited = [], 0
        self.natra = Natra(self.pod, ident=f"net/{self.pod.name}/eth0")

    def is_waiting(self):
        """Return whether much waited in upstream's queue a moment ago, and moves. The
        socket of a sender in the pod lets some 100 kB wait on this machine."""
        now = time.monotonic()
        if self.backlog() >= (QUEUE_BYTES if "in" in self.streams else 60000):
            self.waited = now
        return now - self.waited < 1 and all(
            0 < rate < 1.5 * CAP for rate in self.rates().values())

    def told(self):
        """Return what is_waiting looks at, as a text."""
        rates = ", ".join(f"{way} {rate / MBIT:.2f} Mbit/s"
                          for way, rate in self.rates().items())
        return f"{self.pod.name}: backlog {self.backlog()}, {rates}"

    def backlog(self):
        return limiting(self.queue)["backlog"]

    def rates(self):
        """Return the rate of each stream in the last seconds."""
        now = time.monotonic()
        return {way: self.rate(way, now - 3, now) for way in self.streams}

    def read(self):
        self.rows.append((time.monotonic(), {
            way: s.wire_bytes() for way, s in self.streams.items()}))

    def bytes(self, way, when):
        return next((counts[way] for then, counts in reversed(self.rows)
                     if then <= when), 0)

    def rate(self, way, begin, end):
        return (self.bytes(way, end) - self.bytes(way, begin)) * 8 / (end - begin)

    def begin(self, start):
        """Return when its queue began to drain."""
        return next(then for then, _ in list(self.rows) if then >= start and any(
            self.rate(way, then - 0.1, then) > 5 * CAP for way in self.streams)) - 0.1

    def longest_pause(self, way, begin, end):
        """Return for how long nothing arrived."""
        changes, last = [begin], self.bytes(way, begin)
        for then, counts in list(self.rows):
            if begin < then <= end and counts[way] != last:
                last = counts[way]
                changes.append(then)
        return max(b - a for a, b in zip(changes, changes[1:] + [end]))


def ifbs():
    return [n["ifname"] for n in json.loads(sh("ip", "-j", "link"))
            if n["ifname"].startswith("bwp")]


def limiting(dev):
    """Return the qdisc of upstream's that limits what passes there, or None once it or
    its interface is gone."""
    text = sh("tc", "-s", "-j", "qdisc", "show", "dev", dev, check=False) or "[]"
    return next((q for q in json.loads(text) if q["kind"] == "tbf"), None)


def upstream_objects():
    return [f"{q['kind']} {q['dev']}" for q in json.loads(sh("tc", "-j", "qdisc"))
            if q["kind"] in ("tbf", "ingress")] + ifbs()


def record(lanes, done):
    while not done.wait(0.02):
        for lane in lanes:
            lane.read()


def start_agent(node):
    return Agent("--no-install", "--root", str(node.root), "--bpffs", BPFFS,
                 "--replace-bandwidth")


def end_in_the_middle(node, report, lanes):
    """Kill the agent while a queue drains: upstream's limits hold, and natra's are on
    record. Return False if the queue was empty before this test saw it drain, as it can be
    on a busy machine."""
    was = {lane: limiting(lane.queue)["bytes"] for lane in lanes}
    agent = start_agent(node)
    lane = wait_for_drain(lanes, was)
    agent.process.kill()
    agent.process.wait()
    # The process that it had forked for this has ended with it.
    time.sleep(0.2)
    qdisc = lane and limiting(lane.queue)
    if not report.equal("  its limit is there", bool(qdisc), True, exact=False):
        return False
    report.equal("  upstream's rate", qdisc["options"]["rate"] * 8, CAP)
    report.equal("  natractl show, check",
                 [lane.natra.run(what, lane.natra.id).returncode
                  for what in ("show", "check")], [0, 3])
    return True


def remove_upstream(lanes):
    for lane in lanes:
        sh("tc", "qdisc", "del", "dev", lane.pod.host, "root")
        sh("tc", "qdisc", "del", "dev", lane.pod.host, "ingress")
        sh("ip", "link", "del", lane.ifb)


def run_by_hand(report, node, lanes):
    """What natra has lifted for the drain holds again, though nothing is left to drain."""
    remove_upstream(lanes)
    with start_agent(node) as agent:
        agent.wait("looked at the running pods")
        agent.stop()
    for lane in lanes:
        report.equal(f"{lane.pod.name}: natractl check",
                     lane.natra.run("check", lane.natra.id).returncode, 0)
    time.sleep(SETTLE_SECONDS + SECONDS + 0.2)
    now = time.monotonic()
    for lane in lanes:
        for way in lane.streams:
            report.most(f"  {way}", lane.rate(way, now - SECONDS, now) / MBIT,
                        1.1 * CAP / MBIT, " Mbit/s")


def wait_for_queues(lanes):
    """A stream that has just lost packets stands still by upstream's limits alone, and so
    does one whose acknowledgements suddenly wait for seconds: its timer has not known it."""
    # A list, because each lane must notice when its queue is full.
    wait_until(lambda: all([lane.is_waiting() for lane in lanes]),
               lambda: "upstream's queues do not fill: " + "; ".join(
                   lane.told() for lane in lanes), FILL_SECONDS)


def wait_for_drain(lanes, was, seconds=20):
    """Return the pod of which more has passed than its cap allows, or None if its limit
    is gone already."""
    begin = time.monotonic()
    while time.monotonic() < begin + seconds:
        for lane in lanes:
            took = time.monotonic() - begin + 1
            qdisc = limiting(lane.queue)
            if not qdisc:
                return None
            if qdisc["bytes"] - was[lane] > 5 * took * CAP / 8:
                return lane
    raise RuntimeError("no queue drains")


def check(report, lane, start):
    """Check streams from the time on at which the agent turned to the pod."""
    first = lane.begin(start)
    begin = first + SETTLE_SECONDS
    for way in lane.streams:
        report.shown(f"{lane.pod.name} {way}, each second, of the cap", " ".join(
            f"{lane.rate(way, first + s, first + s + 1) / CAP:.2f}"
            for s in range(-1, SETTLE_SECONDS + SECONDS)))
        report.most("  passed meanwhile", (lane.bytes(way, begin) -
                                           lane.bytes(way, first)) / 1e6,
                    PASS_MAX_BYTES / 1e6, " MB")
        report.near(f"  {SETTLE_SECONDS} s later",
                    lane.rate(way, begin, begin + SECONDS) / MBIT, CAP / MBIT, 0.1,
                    " Mbit/s")
        report.most("  nothing arrived for",
                    lane.longest_pause(way, first, begin + SECONDS),
                    PAUSE_MAX_SECONDS, " s")
        report.equal("  is established", lane.streams[way].is_established(), True)


def take_over(report, name):
    node, lanes, done = FakeNode(), [], threading.Event()
    recorder = threading.Thread(target=record, args=(lanes, done), daemon=True)
    with Rig(lanes=len(WAYS)) as rig:
        try:
            for i, pod in enumerate(rig.pods):
                node.pod(pod.name, {"ingressRate": CAP, "egressRate": CAP},
                         ["ptp", "bandwidth"])
                sh("mount", "--bind", pod.path, str(node.netns(pod.name)))
                lanes.append(Lane(rig, i))
            recorder.start()
            run(report, node, lanes, name)
        finally:
            done.set()
            if recorder.ident:
                recorder.join()
            for lane in lanes:
                for stream in lane.streams.values():
                    stream.close()
                lane.natra.run("detach", lane.natra.id)
            # These are upstream's, where no agent has removed them.
            for ifb in ifbs():
                sh("ip", "link", "del", ifb)
            for pod in rig.pods:
                sh("umount", str(node.netns(pod.name)), check=False)
            node.close()


def run(report, node, lanes, name):
    wait_for_queues(lanes)
    if not end_in_the_middle(node, report, lanes):
        return
    if name == BY_HAND:
        run_by_hand(report, node, lanes)
        return
    wait_for_queues(lanes)
    start = time.monotonic()
    with start_agent(node) as agent:
        wait_until(lambda: not upstream_objects(), agent.log)
        agent.wait("looked at the running pods")
        agent.stop()
    last = time.monotonic()
    report.most(f"seconds for {len(lanes)} pods",
                last - min(lane.begin(start) for lane in lanes), SETTLE_SECONDS * len(lanes))
    for lane in lanes:
        report.equal(f"{lane.pod.name}: natractl check",
                     lane.natra.run("check", lane.natra.id).returncode, 0)
    time.sleep(max(0, last + SETTLE_SECONDS + SECONDS + 0.2 - time.monotonic()))
    for lane in lanes:
        check(report, lane, start)


def main(report, arguments):
    if not os.access(Upstream.PLUGIN, os.X_OK):
        skip("containernetworking's bandwidth plugin")
    for name in CASES:
        if arguments.case in (None, name):
            report.shown("the first agent", name)
            report.measure(name, take_over, report, name)


if __name__ == "__main__":
    run_script(main, CASE)
