#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""natra-agent takes pods over from upstream's bandwidth plugin while streams wait in
that plugin's queues.

A stream with seconds of its rate in such a queue must go on at the cap, without a
pause, and nothing of upstream may stay. If the agent is killed while the queues drain,
the next one takes back what natra's limits have lent, and removes the rest.
"""
import json
import os
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "agent"))
from agent import Agent
from commands import sh
from isolation import BPFFS
from limiters import Natra, Upstream
from podnode import FakeNode
from report import skip
from rig import Rig
from script import run_script
from stream import Stream

MBIT = 1_000_000
CAP = 4 * MBIT
# The first pod's queue is to hold about 2 s of its cap.
QUEUE_BYTES = 1_000_000
# What is let out counts as before: the cap is to hold from here on.
SETTLE_SECONDS, SECONDS = 2, 5
WAYS = (("in",), ("out",), ("in", "out"))


class Lane:
    """A pod with streams, whose acknowledgements wait in the queue of the other
    direction if it has both."""

    def __init__(self, rig, i):
        self.pod, client = rig.pods[i], rig.clients[i]
        known = set(ifbs())
        # A connection is not made in time behind a full queue.
        self.streams = {way: Stream(client, self.pod, 4) if way == "in" else
                        Stream(self.pod, client, 4) for way in WAYS[i]}
        Upstream(self.pod).attach(str(CAP), str(CAP))
        self.ifb, = set(ifbs()) - known
        self.rows = []
        self.natra = Natra(self.pod, ident=f"net/{self.pod.name}/eth0")

    def is_waiting(self):
        """Return whether much waits in upstream's queue. The socket of a sender in the
        pod lets some 100 kB wait on this machine."""
        return held(self.pod.host) >= QUEUE_BYTES if "in" in self.streams else \
            held(self.ifb) >= 60000

    def read(self):
        self.rows.append((time.monotonic(), {
            way: s.wire_bytes() for way, s in self.streams.items()}))

    def _at(self, way, when):
        return [counts[way] for then, counts in self.rows if then <= when][-1]

    def rate(self, way, begin, end):
        return (self._at(way, end) - self._at(way, begin)) * 8 / (end - begin)

    def longest_pause(self, way, begin, end):
        """Return for how long nothing arrived."""
        changes, last = [begin], self._at(way, begin)
        for then, counts in self.rows:
            if begin < then <= end and counts[way] != last:
                last = counts[way]
                changes.append(then)
        return max(b - a for a, b in zip(changes, changes[1:] + [end]))


def ifbs():
    return [n["ifname"] for n in json.loads(sh("ip", "-j", "link"))
            if n["ifname"].startswith("bwp")]


def held(dev):
    """Return how many bytes wait in a tbf."""
    return sum(q["backlog"] for q in json.loads(
        sh("tc", "-s", "-j", "qdisc", "show", "dev", dev)) if q["kind"] == "tbf")


def upstream_objects():
    return [f"{q['kind']} {q['dev']}" for q in json.loads(sh("tc", "-j", "qdisc"))
            if q["kind"] in ("tbf", "ingress")] + ifbs()


def record(lanes, done):
    while not done.wait(0.02):
        for lane in lanes:
            lane.read()


def wait_queues(lanes, seconds=40):
    """Wait until all hold much at the same time: a stream that has just lost packets
    stands still by upstream's limits alone."""
    end = time.monotonic() + seconds
    while not all(lane.is_waiting() for lane in lanes):
        if time.monotonic() > end:
            raise RuntimeError("upstream's queues do not fill")
        time.sleep(0.05)


def start_agent(node):
    return Agent("--no-install", "--root", str(node.root), "--bpffs", BPFFS,
                 "--replace-bandwidth")


def wait_until(is_true, agent, seconds=20):
    end = time.monotonic() + seconds
    while not is_true():
        if time.monotonic() > end:
            raise RuntimeError(agent.log())
        time.sleep(0.01)


def kill_in_the_middle(node, report, lanes):
    """Kill the agent when it has let go of the first pod's queue."""
    agent = start_agent(node)
    wait_until(lambda: "10Gbit" in sh("tc", "qdisc", "show", "dev", lanes[0].pod.host),
               agent)
    agent.process.kill()
    agent.process.wait()
    report.least("killed: ifbs that are left", len(ifbs()), 1)


def check(report, lane, first):
    """Check streams from the time on at which natra's limits held."""
    begin = first + SETTLE_SECONDS
    for way in lane.streams:
        report.shown(f"{lane.pod.name} {way}, each second, of the cap", " ".join(
            f"{lane.rate(way, first + s, first + s + 1) / CAP:.2f}"
            for s in range(-1, SETTLE_SECONDS + SECONDS)))
        report.near(f"{lane.pod.name} {way}, {SETTLE_SECONDS} s later",
                    lane.rate(way, begin, begin + SECONDS) / MBIT, CAP / MBIT, 0.1,
                    " Mbit/s")
        report.most("  nothing arrived for",
                    lane.longest_pause(way, first, begin + SECONDS), 1, " s")


def take_over(report, killed):
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
            wait_queues(lanes)
            run(report, node, lanes, killed)
        finally:
            done.set()
            if recorder.ident:
                recorder.join()
            for lane in lanes:
                for stream in lane.streams.values():
                    stream.close()
                lane.natra.run("detach", lane.natra.id)
            for pod in rig.pods:
                sh("umount", str(node.netns(pod.name)), check=False)
            node.close()


def run(report, node, lanes, killed):
    if killed:
        kill_in_the_middle(node, report, lanes)
    with start_agent(node) as agent:
        wait_until(lambda: len(Natra().json("list")) == len(lanes), agent)
        first = time.monotonic()
        wait_until(lambda: not upstream_objects(), agent)
        report.most("upstream's limits are gone after natra's hold by",
                    time.monotonic() - first, 2, " s")
        agent.wait("looked at the running pods")
        agent.stop()
    for lane in lanes:
        report.equal(f"{lane.pod.name}: natractl check",
                     lane.natra.run("check", lane.natra.id).returncode, 0)
    end = first + SETTLE_SECONDS + SECONDS + 0.2
    time.sleep(0 if killed else max(0, end - time.monotonic()))
    # Without an agent what is lent may be used up before the senders have measured.
    for lane in lanes if not killed else ():
        check(report, lane, first)


def main(report, _):
    if not os.access(Upstream.PLUGIN, os.X_OK):
        skip("containernetworking's bandwidth plugin")
    for killed in (False, True):
        report.shown("the agent is killed in the middle", killed)
        report.measure("killed" if killed else "replaced", take_over, report, killed)


if __name__ == "__main__":
    run_script(main)
