#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks paced ingress: TCP waits in fq on the host-side veth instead of being dropped.

In each cell the same streams from beyond the node run under `police` and under `pace`,
one after the other: pace must hold the rate, with few of police's retransmissions and
with a bounded delay, which a probe measures that is itself heavy. Then come requests
beside a paced stream, and a datapath that goes past the host-side veth, where only the
pod-side backstop is left to limit. What shall not wait is compared with the same at the
same time into a second pod without a limit.
"""
import os
import socket
import struct
import sys
import time
from types import SimpleNamespace

sys.path.insert(0, os.path.dirname(__file__) + "/../harness/python")
from commands import sh
from limiters import Natra, bits, check_delays, dropped, stall, total
from load import SO_TIMESTAMPNS, Http
from meter import ETH_IPV4_UDP, wire_rates
from neighbour import PINS, Neighbour, ifindex
from percentiles import TICK_MS, most_ms, percentile
from report import skip
from rig import Rig
from script import option, run_script

PACE_LIMIT_MS = 50              # natra's default
# This covers the clock of the last tick, timers and softirqs.
SLACK_MS = TICK_MS + 4
# A stream hears of its queue from 5 ms on, so that is about as long. This part of police's
# retransmissions is allowed, where the queue holds at least ROOM_PACKETS of each flow. With
# smaller windows more are lost, whoever limits: 16 flows at 10M have one packet each, and a GSO
# packet that is dropped is half of a window of 20.
QUEUE_MS = 20
RETRANSMITTED, ROOM_PACKETS = 0.05, 100
MICE_PER_SECOND = 25            # to each pod
PROBE_SIZE, MOUSE_SIZE = 1400, 60
PROBE_WIRE = PROBE_SIZE + ETH_IPV4_UDP
# The probe sends this part of the rate. A flow is heavy from 0.1 s of the rate on, and
# stays so with an eighth of that a second.
PROBE_SHARE, PROBE_BURST_SECONDS = 0.03, 0.2


class Way:
    """Sends datagrams that measure how long the way into the pod takes.

    The kernel notes the arrival, because on a busy CPU a reader wakes up later.
    """

    def __init__(self, r, lane, port, size):
        pod = r.pods[lane]
        with pod:
            self.into = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.into.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        self.into.bind((pod.ip, port))
        self.into.setblocking(False)
        with r.client:
            self.out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.out.connect((pod.ip, port))
        self.size, self.delays_ms, self.sent = size, [], 0

    def close(self):
        self.into.close()
        self.out.close()

    def send(self):
        self.out.send(struct.pack("=Q", time.time_ns()).ljust(self.size))
        self.sent += 1

    def receive(self):
        while True:
            try:
                data, notes, _, _ = self.into.recvmsg(PROBE_SIZE, 64)
            except BlockingIOError:
                return
            sec, ns = struct.unpack("=qq", notes[0][2])
            sent, = struct.unpack_from("=Q", data)
            self.delays_ms.append((sec * 10**9 + ns - sent) / 1e6)

    def forget(self):
        self.receive()
        self.delays_ms, self.sent = [], 0

    def percentile(self, p):
        return percentile(sorted(self.delays_ms), p)


class Probe:
    """Sends a heavy flow, and with each of its packets one of a mouse and one to the
    other pod. Only other load of this machine delays the latter."""

    def __init__(self, r):
        self.ways = (Way(r, 0, 5400, PROBE_SIZE), Way(r, 0, 5401, MOUSE_SIZE),
                     Way(r, 1, 5402, MOUSE_SIZE))
        self.heavy, self.mouse, self.other = self.ways

    def close(self):
        for way in self.ways:
            way.close()

    def become_heavy(self, rate):
        for _ in range(int(PROBE_BURST_SECONDS * bits(rate) / 8 / PROBE_WIRE)):
            self.heavy.send()

    def run(self, rate, seconds):
        every = PROBE_WIRE * 8 / (PROBE_SHARE * bits(rate))
        for way in self.ways:
            way.forget()
        start = time.monotonic()
        while self.heavy.sent * every < seconds:
            due = start + self.heavy.sent * every
            time.sleep(max(0, due - time.monotonic()))
            for way in self.ways:
                way.send()
                way.receive()


def retransmitted(ns):
    with ns.netfile("snmp") as f:
        names, values = [s.split() for s in f if s.startswith("Tcp:")]
    return int(values[names.index("RetransSegs")])


def limit(r, rate, ingress_mode):
    return Natra(r.pod, "--ingress-mode", ingress_mode).attach(rate, rate)


def deltas(after, before):
    """Return the differences between counters as natractl reports them."""
    return {k: deltas(v, before[k]) if isinstance(v, dict) else v - before[k]
            for k, v in after.items() if not isinstance(v, (str, list))}


class Account:
    """Compares natra's counters with what the pod received over a whole run. The bytes
    are read while nothing is sent, so it does not matter when."""

    def __init__(self, natra, meter):
        self.natra, self.meter = natra, meter
        self.before, self.bytes = natra.stats(), meter.read()[1]

    def close(self):
        """Wait until what was on its way has arrived, and read the counters again."""
        end, now = -1, self.meter.read()[1]
        while end != now:
            time.sleep(0.1)
            end, now = now, self.meter.read()[1]
        self.bytes = end - self.bytes
        now = self.natra.stats()
        self.delays, self.stats = now["ingress"], deltas(now, self.before)

    def passed(self, rep, what, direction):
        s = self.stats[direction]
        rep.near(f"{what}: passed by natra's count, {direction}",
                 (total(s) - dropped(s, "bytes")) / 1e6, self.bytes / 1e6, 0.005,
                 " MB")

    def paced(self, rep, what, limit_ms):
        """Check the pacer's counters, and those of the backstop behind it."""
        s = self.stats["ingress"]
        held = s["paced"]["packets"] + s["marked"]["packets"]
        mean_ms = s["delay_sum_ns"] / 1e6 / max(held, 1)
        rep.check(f"{what}: mean delay by natra's count", f"{mean_ms:.1f}",
                  f"> 0, <= {limit_ms}", 0 < mean_ms <= limit_ms, " ms",
                  exact=False)
        check_delays(rep, what, self.delays)
        self.passed(rep, what, "ingress")
        if "backstop" in self.stats:
            self.passed(rep, what, "backstop")
            rep.equal(f"{what}: dropped by the backstop",
                      dropped(self.stats["backstop"]), 0, exact=False)


def streams(r, a, rate, flows, ingress_mode):
    """Return what a run shows: rate, retransmissions, delays, natra's counters."""
    natra, meter = limit(r, rate, ingress_mode), r.into()
    probe, account = Probe(r), Account(natra, meter)
    probe.become_heavy(rate)
    begin = retransmitted(r.client)
    r.elephant(r.client, r.pod, 5201, flows)
    r.wait_flow(meter)
    probe.run(rate, a.settle)
    lost, (t0, b0) = retransmitted(r.client), meter.read()
    probe.run(rate, a.seconds)
    t1, b1 = meter.read()
    got = {"rate": (b1 - b0) * 8 / (t1 - t0), "probe": probe,
           "lost": retransmitted(r.client) - lost, "at_start": lost - begin,
           "account": account}
    r.stop(None)
    account.close()
    probe.close()
    natra.detach()
    return got


def show(rep, what, got):
    s = got["account"].stats["ingress"]
    rep.shown(what, f"{got['rate'] / 1e6:.2f} Mbit/s, retransmitted "
              f"{got['lost']} (before: {got['at_start']}); in all paced "
              f"{s['paced']['packets']}, marked {s['marked']['packets']}, "
              f"dropped {dropped(s)}")
    probe = got["probe"]
    for name, way in (("heavy probe", probe.heavy), ("mouse", probe.mouse),
                      ("mouse to the other pod", probe.other)):
        rep.shown(f"  {name}", f"{len(way.delays_ms)} of {way.sent}, p50 "
                  f"{way.percentile(50):.1f}, p99 {way.percentile(99):.1f}, max "
                  f"{way.percentile(100):.1f} ms")


def most_retransmitted(rate, flows, police):
    room = QUEUE_MS / 1e3 * bits(rate) / 8 / 1514 / flows
    return police * min(1, RETRANSMITTED * max(1, ROOM_PACKETS / room))


def cell(r, rep, a, rate, flows):
    what = f"{rate} {flows} flows"
    police = streams(r, a, rate, flows, "police")
    show(rep, f"{what} police", police)
    pace = streams(r, a, rate, flows, "pace")
    show(rep, f"{what} pace", pace)
    rep.near(f"{what}: rate", pace["rate"] / 1e6, bits(rate) / 1e6, 0.02,
             " Mbit/s")
    rep.least(f"{what}: retransmissions with police", police["lost"], 100)
    rep.most(f"{what}: retransmissions", pace["lost"],
             most_retransmitted(rate, flows, police["lost"]))
    probe = pace["probe"]
    # The 99th percentile of a few dozen probes is the one with the worst luck.
    rep.most(f"{what}: delay of the heavy probe, p95", probe.heavy.percentile(95),
             PACE_LIMIT_MS + SLACK_MS + probe.other.percentile(99), " ms")
    rep.most(f"{what}: delay of the mouse, p50", probe.mouse.percentile(50),
             most_ms(probe.other.percentile(50)), " ms")
    pace["account"].paced(rep, what, PACE_LIMIT_MS)


def requests(r, seconds, lane):
    """Open connections on a clock. Return p50 and p99 in ms, and how many failed."""
    http = Http(SimpleNamespace(ip=r.pods[lane].ip, port=80, path="/file", timeout=3))
    with r.clients[lane]:
        http.run(MICE_PER_SECOND, seconds)
    times = sorted(http.times)
    return [percentile(times, p) * 1e3 for p in (50, 99)] + [http.failed]


def mice(r, rep, a):
    """Compare fresh connections beside paced streams with those to the other pod, which
    has no limit and no streams."""
    r.on_lanes(lambda lane: requests(r, 0.3, lane))
    natra = limit(r, "10M", "pace")
    r.elephant(r.client, r.pod, 5201, flows=4)
    r.wait_flow(r.into())
    time.sleep(a.settle)
    before = natra.stats()
    beside, other = r.on_lanes(lambda lane: requests(r, a.seconds, lane))
    held = deltas(natra.stats(), before)["ingress"]["paced"]["packets"]
    r.stop(None)
    natra.detach()
    rep.shown("mice in the other pod", f"p50 {other[0]:.1f}, p99 {other[1]:.1f} ms")
    rep.least("mice: packets of streams paced meanwhile", held, 100)
    rep.equal("mice: failed", beside[2], 0)
    # A request that waited as the streams do would do so twice, with its SYN and with
    # its data. An emulated CPU that has streams to carry takes some ms as well.
    rep.most("mice: p50", beside[0], other[0] + PACE_LIMIT_MS / 5, " ms")
    rep.most("mice: p99", beside[1], other[1] + PACE_LIMIT_MS, " ms")


def datagrams(r, a, natra, rate):
    """Send twice the rate for a while. Return the rate that arrived, and natra's
    account."""
    meter = r.into(0, ETH_IPV4_UDP)
    account = Account(natra, meter)
    sender = r.load(r.client, "udp-send", r.pod.ip, 5300, "--rate",
                    2 * bits(rate))
    r.wait_flow(meter)
    # The burst is over by then, and that of the backstop as well.
    time.sleep(a.settle)
    got, = wire_rates([meter], a.seconds)
    r.stop([sender])
    account.close()
    return got / 1e6, account


def bypass(r, rep, a):
    """Test datagrams that are paced, and then a datapath that takes them from the
    client's veth right into the pod, as Cilium's host routing does."""
    rate, neighbour = "10M", Neighbour()
    neighbour.target("peer_in", ifindex(r.node, r.pod.host))
    natra = limit(r, rate, "pace")
    r.load(r.pod, "udp-sink", 5300)
    r.wait_port(r.pod, 5300, "udp")
    rep.measure("udp, paced", through_pacer, r, rep, a, natra, rate)
    sh("tc", "qdisc", "add", "dev", r.client.host, "clsact")
    sh("tc", "filter", "add", "dev", r.client.host, "ingress", "prio", "1",
       "handle", "1", "bpf", "direct-action", "object-pinned",
       f"{PINS}/peer_in")
    rep.measure("udp, past the host veth", past_pacer, r, rep, a, natra, rate,
                neighbour)
    r.stop(None)
    natra.detach()


def through_pacer(r, rep, a, natra, rate):
    got, account = datagrams(r, a, natra, rate)
    what = "udp, paced"
    rep.near(f"{what}: rate", got, bits(rate) / 1e6, 0.02, " Mbit/s")
    account.paced(rep, what, PACE_LIMIT_MS)


def past_pacer(r, rep, a, natra, rate, neighbour):
    seen = neighbour.seen("peer_in")
    got, account = datagrams(r, a, natra, rate)
    what = "udp, past the host veth"
    rep.near(f"{what}: rate", got, bits(rate) / 1e6, stall(a.seconds), " Mbit/s")
    backstop = account.stats["backstop"]
    rep.equal(f"{what}: packets that the pacer saw",
              total(account.stats["ingress"], "packets"), 0)
    rep.equal(f"{what}: packets that the backstop saw",
              total(backstop, "packets"), neighbour.seen("peer_in") - seen)
    account.passed(rep, what, "backstop")
    rep.least(f"{what}: dropped by the backstop", dropped(backstop), 100)


def stamps(r, rep):
    """Send few datagrams whose sender, beyond the pacer, asks for a late departure."""
    natra = limit(r, "10M", "pace")
    sink = r.load(r.pod, "udp-recv", 5300)
    r.wait_port(r.pod, 5300, "udp")
    sender = r.load(r.client, "udp-send", r.pod.ip, 5300, "--rate", 1e6, "--size", 100,
                    "--count", 100, "--clock", "monotonic", "--ahead", 4)
    sent = r.load_end(sender, r.client)["count"]
    time.sleep(0.5)
    got = r.load_end(sink, r.pod, now=True)
    natra.detach()
    rep.equal("a neighbour's stamps 4 s ahead: all arrive", got["count"], sent)
    rep.most("  as soon as the rate lets them", got["most_ms"], 200, " ms")


def cells(a):
    rates, flows = a.rates.split(","), [int(n) for n in a.flows.split(",")]
    return [(rates[i % len(rates)], n) for i, n in enumerate(flows, 1)]


def main(rep, a):
    if not Natra().json("probe")["fq"]:
        skip("CONFIG_NET_SCH_FQ")
    with Rig(lanes=2) as r:
        for rate, flows in cells(a):
            rep.measure(f"{rate} {flows} flows", cell, r, rep, a, rate, flows)
        for pod in r.pods:
            r.nginx(pod=pod)
        rep.measure("mice", mice, r, rep, a)
        rep.measure("stamps", stamps, r, rep)
        bypass(r, rep, a)


if __name__ == "__main__":
    run_script(main,
        option("--rates", default="10M,100M"),
        option("--flows", default="1,4,16"),
        option("--seconds", type=float, default=3),
        option("--settle", type=float, default=2))
