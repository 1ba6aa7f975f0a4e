#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks that flows share a cap of 10M alike, and that a flow under the fair share does not
wait.

  requests    a request/response flow of 8 % of the cap beside four elephants
  flood       a stream beside datagrams of ten caps
  ecn         datagrams that can be marked beside those that can only be dropped

Each is tried in each way: out of the pod (edt), and into it (pace, police), where fq is there,
and else by police alone.
"""
import json
import os
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(__file__) + "/../harness/python")
from commands import sh
from ecn import have_netem
from limiters import Natra, bits
from meter import ETH_IPV4_TCP, ETH_IPV4_UDP
from rig import Rig
from script import run_script, some_of
from stream import Streams

RATE = "10M"
CAP = bits(RATE)
# The way of a lane says whether it leads into the pod, and natra's options for it.
WAYS = {"edt": (False, ("--edt-pacing", "on")),
        "pace": (True, ("--ingress-mode", "pace")),
        "police": (True, ("--ingress-mode", "police"))}
# Into the pod netem makes a distance: two segments of a policed TCP that is 50 us away are more
# in flight than the cap holds. Senders out of it are in the pod, and so is their queue.
RTT_MS = 10
UDP_PORT, RR_PORT = 5300, 5600
SECONDS = 3
# A flow that sends as much as makes it heavy changes sides in shorter runs.
REQUESTS_S, IDLE_S = 8, 1.5
REQUESTS_SHARE, REQUEST_BYTES, ELEPHANTS = 0.08, 34, 4
IDLE_FACTOR, IDLE_MORE_MS = 1.5, 5


class Lane:
    """A pair of a pod and a client, with natra's limit in the direction of a way."""

    def __init__(self, r, number, way, netem):
        self.r, self.number, self.way = r, number, way
        self.pod, self.client = r.pods[number], r.clients[number]
        self.into, options = WAYS[way]
        ends = (self.client, self.pod)
        self.src, self.dst = ends if self.into else ends[::-1]
        self.rtt_ms = RTT_MS if self.into and netem else 0
        if self.rtt_ms:
            r.netem(self.rtt_ms, [number])
        self.limiter = Natra(self.pod, *options)
        self.limiter.attach(*((RATE, None) if self.into else (None, RATE)))
        self.flows = []

    def close(self):
        for flow in self.flows:
            flow.close()
        self.limiter.detach()
        if self.rtt_ms:
            self.client.run("tc", "qdisc", "del", "dev", "eth0", "root")
            sh("tc", "qdisc", "del", "dev", self.client.host, "root")

    def streams(self, count):
        self.flows.append(Streams(self.src, self.dst, ["cubic"] * count))
        return self.flows[-1]

    def flood(self, caps, tos=0):
        self.flows.append(Flood(self.r, self.src, self.dst, UDP_PORT + tos, caps * CAP, tos))


class Flood:
    """Sends datagrams at a rate, even if they are dropped."""

    def __init__(self, r, src, dst, port, rate, tos):
        # Nobody reads: the counters of IP say what arrives. But without a socket there
        # would be an ICMP answer to each datagram.
        with dst:
            self._sink = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._sink.bind((dst.ip, port))
        self._src = src
        self._load = r.load(src, "udp-send", dst.ip, port, "--rate", rate, "--tos", tos,
                            "--seconds", 3600)

    def close(self):
        if self._load.poll() is not None:
            raise RuntimeError("the flood has ended by itself")
        self._src.stop(self._load)
        self._sink.close()


def settle(lanes):
    """Let flows share: the burst is used up by then, and far ones have left slow start."""
    time.sleep(2 + 0.06 * max(lane.rtt_ms for lane in lanes))


def flood(rep, lanes):
    for lane in lanes:
        lane.flood(10)
    streams = [lane.streams(1) for lane in lanes]
    settle(lanes)

    def now():
        return time.monotonic(), [s.wire_bytes()[0] for s in streams]
    (begin, before), _, (until, after) = now(), time.sleep(SECONDS), now()
    for lane, a, b in zip(lanes, before, after):
        part = (b - a) * 8 / (until - begin) / CAP
        rep.least(f"flood {lane.way}: TCP's part of the cap", part, 0.4)
        rep.most("  and the flood has the rest", part, 0.9)


def ecn(rep, lanes):
    for lane in lanes:
        for tos in (2, 0):
            lane.flood(1.5, tos)
    meters = [lane.r.into(lane.number, ETH_IPV4_UDP) if lane.into else
              lane.r.out_of(lane.number, ETH_IPV4_UDP) for lane in lanes]
    settle(lanes)
    before, _, after = ([m.counters() for m in meters], time.sleep(SECONDS),
                        [m.counters() for m in meters])
    for lane, a, b in zip(lanes, before, after):
        ect, other = (sum(b[k] - a[k] for k in names) for names in
                      (("InECT0Pkts", "InCEPkts"), ("InNoECTPkts",)))
        rep.near(f"ecn {lane.way}: ECT's part", ect / (ect + other), 0.5, 0.1)


def find_rr():
    return os.environ.get("NATRA_RR") or \
        os.path.dirname(os.environ["NATRACTL"]) + "/../../tests/net/rr"


def requests(rep, lanes):
    """The cap limits the requests, or out of the pod the answers. Two lanes would wait for
    each other's CPU."""
    lane, = lanes
    rr = find_rr()

    def ask(seconds):
        per_second = REQUESTS_SHARE * CAP / 8 / (REQUEST_BYTES + ETH_IPV4_TCP)
        p = lane.client.popen(rr, "client", lane.pod.ip, str(RR_PORT), str(REQUEST_BYTES),
                              f"{per_second:.1f}", str(seconds), stdout=subprocess.PIPE,
                              text=True)
        out, _ = p.communicate(timeout=seconds + 20)
        lane.client.stop(p)
        return json.loads(out)

    server = lane.pod.popen(rr, "server", str(RR_PORT))
    lane.r.wait_port(lane.pod, RR_PORT)
    idle = ask(IDLE_S)
    lane.streams(ELEPHANTS)
    settle(lanes)
    beside = ask(REQUESTS_S)
    lane.pod.stop(server)
    rep.shown(f"requests {lane.way}", f"p99 {beside['p99_ms']:.1f} ms, idle mean "
              f"{idle['mean_ms']:.1f} ms")
    rep.most("  mean", beside["mean_ms"], IDLE_FACTOR * idle["mean_ms"] + IDLE_MORE_MS, " ms")


SCENARIOS = {"requests": requests, "flood": flood, "ecn": ecn}


def measure(r, rep, scenario, ways, netem):
    lanes = [Lane(r, i, way, netem) for i, way in enumerate(ways)]
    scenario(rep, lanes)
    for lane in lanes:
        lane.close()


def main(rep, a):
    ways = list(WAYS) if Natra().json("probe")["fq"] else ["police"]
    netem = have_netem()
    with Rig(lanes=len(ways)) as r:
        for name in a.scenario:
            groups = [[way] for way in ways[:2]] if name == "requests" else [ways]
            for group in groups:
                rep.measure(f"{name} {' '.join(group)}", measure, r, rep, SCENARIOS[name],
                            group, netem)


if __name__ == "__main__":
    run_script(main, some_of("scenario", SCENARIOS),
               prepare=lambda _: sh("modprobe", "sch_netem", check=False))
