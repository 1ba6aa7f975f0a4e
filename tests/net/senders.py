#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks that egress is paced for senders of every kind, and not only for local TCP.

The pod has a container of its own behind a second veth, whose packets it forwards: they
have no socket by the time that they reach natra. `forwarded` sends from there, `queues`
sends datagrams that share fq's queues by their hash, in `answers` the kernel itself
is the sender, and in `rates` sockets that set how fast fq lets them go. In `server` one on the
node has clients in two pods.
"""
import contextlib
import os
import re
import socket
import struct
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(__file__) + "/../harness/python")
from commands import ip_batch, sh
from frames import checksum
from limiters import Natra, bits, dropped, total
from meter import ETH_IPV4_UDP, wire_rates
from namespaces import Ns
from report import skip
from rig import Rig
from script import chosen, option, run_script

RATE = "10M"
PACE_LIMIT_MS = 50
# The emulated CPU of a VM puts off a receiver by this much, and now and then by more.
PUT_OFF_MS = 15
# A mouse that shares an elephant's queue waits for 50 ms on average.
SHARED_MS = 40
PORT, MOUSE_PORT = 5300, 5301
ELEPHANTS, MICE = 100, 1000
# Sockets that fill fq's 100000 packets with what a socket buffer holds. Linux names this option 47.
SLOW, SO_MAX_PACING_RATE = 500, 47
# 200 bytes and headers.
ANSWER_BITS = 8 * 242
IP_TOS_ECT0 = 2


class Nested(Ns):
    """A container in the pod, with a veth of its own and an address behind the pod."""

    def __init__(self, r):
        super().__init__("nested")
        self.pod = r.pod
        self.ip, gw = "10.78.0.2", "10.78.0.1"
        pod = r.pod
        ip_batch(["link add in0 type veth peer name eth0 netns nested",
                  f"addr add {gw}/24 dev in0", "link set in0 up"], pod.name)
        ip_batch([f"addr add {self.ip}/24 dev eth0", "link set eth0 up",
                  f"route add default via {gw}"], "nested")
        sh("ip", "route", "replace", "10.78.0.0/24", "via", pod.ip, "dev", pod.host)

    def close(self):
        self.stop(*list(self._procs))
        self.pod.run("ip", "link", "del", "in0", check=False)
        os.close(self.fd)
        sh("ip", "netns", "del", self.name, check=False)


def received(r, sink):
    return r.load_end(sink, r.client, now=True)


def flood(r, source, tos, seconds):
    """Send datagrams at three times the rate. Return the rate that arrived after a
    second, how long the datagrams took, and natra's counters."""
    lim = Natra(r.pod).attach(None, RATE, "--egress-burst", "512k")
    sink = r.load(r.client, "udp-recv", PORT, "--late", PACE_LIMIT_MS + PUT_OFF_MS)
    r.wait_port(r.client, PORT, "udp")
    meter = r.out_of(0, ETH_IPV4_UDP)
    sender = r.load(source, "udp-spread", r.client.ip, PORT, "--rate",
                    3 * bits(RATE), "--tos", tos)
    r.wait_flow(meter)
    time.sleep(1)
    rate = wire_rates([meter], seconds)[0]
    r.load_end(sender, source, now=True)
    time.sleep(0.2)
    stats = lim.stats()["egress"]
    got = received(r, sink)
    lim.detach()
    return rate, got, stats


def forwarded(r, rep, a):
    nested = Nested(r)
    try:
        for tos, name in ((0, "no ECN"), (IP_TOS_ECT0, "ECN")):
            rate, got, stats = flood(r, nested, tos, a.seconds)
            rep.near(f"forwarded, {name}: the rate", rate / 1e6,
                     bits(RATE) / 1e6, 0.05, " Mbit/s")
            rep.most(f"  took more than {PACE_LIMIT_MS + PUT_OFF_MS} ms",
                     100 * got["late"] / got["count"], 5, " %")
            rep.shown("  marked, dropped", f"{stats['marked']['packets']}, "
                      f"{dropped(stats)}")
            if tos:
                rep.least("  marked", stats["marked"]["packets"], 100)
            rep.least("  dropped by natra", dropped(stats), 100)
    finally:
        nested.close()


def hosts(r, third):
    """Give the client the addresses 10.79.THIRD.0/22 beside its own. Return the first."""
    first = f"10.79.{third}.0"
    sh("ip", "route", "replace", f"{first}/22", "via", r.client.ip, "dev", r.client.host)
    r.client.run("ip", "route", "replace", "local", f"{first}/22", "dev", "lo")
    return first


def spread_mice(r, first, count, per_second):
    """Send that many datagrams of as many flows, and return what the receiver
    reports."""
    sink = r.load(r.client, "udp-recv", MOUSE_PORT, "--late", SHARED_MS)
    r.wait_port(r.client, MOUSE_PORT, "udp")
    mice = r.load(r.pod, "udp-spread", first, MOUSE_PORT, "--hosts", 1000, "--rate",
                  per_second * 142 * 8, "--size", 100, "--count", count)
    r.load_end(mice, r.pod)
    time.sleep(0.5)
    return received(r, sink)


def queues(r, rep, a):
    """Before Linux 6.7 a mouse in the queue of an elephant waits until that one's next
    packet may leave, which is a tenth of a second with so many of them."""
    lim = Natra(r.pod).attach(None, RATE, "--heavy-hitter-threshold", "2k")
    r.load(r.client, "udp-sink", PORT)
    r.wait_port(r.client, PORT, "udp")
    meter = r.out_of(0, ETH_IPV4_UDP)
    elephants = r.load(r.pod, "udp-spread", hosts(r, 0), PORT, "--hosts", ELEPHANTS,
                       "--rate", 1.2 * bits(RATE))
    r.wait_flow(meter)
    time.sleep(2)
    got = spread_mice(r, hosts(r, 4), MICE, 250)
    told = r.load_end(elephants, r.pod, now=True)
    rep.shown(f"{ELEPHANTS} heavy flows: offered", f"{told['sent'] / 1e6:.1f} Mbit/s")
    rep.shown("  packets of theirs that waited",
              lim.stats()["egress"]["paced"]["packets"])
    rep.equal(f"  {MICE} mice: arrive", got["count"], MICE)
    rep.most(f"  took more than {SHARED_MS} ms", 100 * got["late"] / MICE, 3, " %")
    r.stop(None)
    lim.detach()


class Asks:
    """Packets from a namespace to an address that its kernel answers, on the CPU that sends."""

    def __init__(self, ns, ip, protocol):
        with ns:
            self.sock = socket.socket(socket.AF_INET, socket.SOCK_RAW, protocol)
        self.sock.connect((ip, 0))
        self.sock.setblocking(False)
        self.sent = self.answered = 0

    def send(self):
        self.sock.send(self.packet())
        self.sent += 1
        try:
            while self.sock.recv(2048):
                self.answered += 1
        except BlockingIOError:
            pass


class Pings(Asks):
    frame, at_once = 1442, 1

    def __init__(self, ns, ip):
        super().__init__(ns, ip, socket.IPPROTO_ICMP)

    def packet(self):
        rest = struct.pack(">HH", 1, self.sent & 0xffff) + bytes(1400)
        return b"\x08\0" + struct.pack(">H", checksum(b"\x08\0\0\0" + rest)) + rest


class Connects(Asks):
    """SYNs to a port that is closed, and resets."""
    frame, at_once = 54, 4

    def __init__(self, ns, ip):
        super().__init__(ns, ip, socket.IPPROTO_TCP)
        self.addresses = b"".join(map(socket.inet_aton, (self.sock.getsockname()[0], ip)))

    def packet(self):
        segment = struct.pack(">HHIIBBHHH", 1000, PORT, self.sent, 0, 5 << 4, 2, 1024, 0, 0)
        pseudo = self.addresses + struct.pack(">HH", socket.IPPROTO_TCP, len(segment))
        return segment[:16] + struct.pack(">H", checksum(pseudo + segment)) + segment[18:]


def answers(r, rep, a):
    """Ask a pod with a limit several times as often as it can answer, and another one without a
    limit. The kernel's answers of a protocol have one socket for each CPU, which all namespaces
    share."""
    for kind, rate in (Pings, "1M"), (Connects, "200k"):
        os.sched_setaffinity(0, {0})
        lim = Natra(r.pod).attach(None, rate)
        flood, other = kind(r.client, r.pod.ip), kind(r.clients[1], r.pods[1].ip)
        ends = threading.Event()

        def send():
            while not ends.wait(0.0005):
                for _ in range(kind.at_once):
                    flood.send()
        thread = threading.Thread(target=send)
        thread.start()
        try:
            time.sleep(1)
            begun = flood.sent
            for _ in range(200):
                other.send()
                time.sleep(0.01)
            asked = (flood.sent - begun) * 8 * kind.frame / 2
        finally:
            ends.set()
            thread.join()
        os.sched_setaffinity(0, range(os.cpu_count()))
        rep.least(f"{kind.__name__} of a pod with {rate}, of its rate", asked / bits(rate), 2)
        rep.least("  another pod's answers", 100 * other.answered / other.sent, 95, " %")
        rep.least("  its own, of its rate",
                  100 * flood.answered * 8 * kind.frame / (3 * bits(rate)), 70, " %")
        lim.detach()


def rates(r, rep, a):
    """Send to a pod beside sockets of the node's that have asked for a packet in a second. What fq held
    for them would fill the queue, which all have who send to the pod."""
    lim = Natra(r.pod).attach("100M", None, "--ingress-mode", "pace")
    r.load(r.pod, "udp-sink", PORT)
    r.wait_port(r.pod, PORT, "udp")
    sent, socks = 0, []
    for _ in range(SLOW):
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        s.setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, 1)
        s.connect((r.pod.ip, PORT))
        socks.append(s)
        with contextlib.suppress(BlockingIOError):
            for _ in range(300):
                s.send(b"x")
                sent += 1
    time.sleep(1)
    backlog = re.search(r"backlog \S+ (\d+)p", sh("tc", "-s", "qdisc", "show", "dev", r.pod.host))
    other = Pings(r.client, r.pod.ip)
    for _ in range(100):
        for s in socks:
            with contextlib.suppress(BlockingIOError):
                s.send(b"x")
        other.send()
        time.sleep(0.01)
    for s in socks:
        s.close()
    r.stop(None)
    rep.shown(f"{SLOW} slow sockets: datagrams", sent)
    rep.most("  packets in fq after a second", int(backlog[1]), 1000)
    rep.least("  pings answered", 100 * other.answered / other.sent, 95, " %")
    lim.detach()


def server(r, rep, a):
    """Answer a pod with a limit at twice its rate, and another one, as a server on the node does by one
    socket."""
    rate = "4M"
    lim = Natra(r.pod).attach(rate, None, "--ingress-mode", "pace")
    for pod in r.pods:
        r.load(pod, "udp-sink", PORT)
        r.wait_port(pod, PORT, "udp")
    sent, tried = [0, 0], 0
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 20000)

        def answer(number):
            with contextlib.suppress(BlockingIOError):
                s.sendto(bytes(200), (r.pods[number].ip, PORT))
                sent[number] += 1
        begun = time.monotonic()
        for _ in range(200):
            while tried * ANSWER_BITS < 2 * bits(rate) * (time.monotonic() - begun):
                answer(0)
                tried += 1
            answer(1)
            time.sleep(0.01)
        seconds = time.monotonic() - begun
    r.stop(None)
    got = lim.stats()["ingress"]
    passed = 8 * total(got, "bytes", ("mice", "admitted", "paced", "marked"))
    rep.least(f"server: what it sends to a pod with {rate}, of its rate",
              tried * ANSWER_BITS / seconds / bits(rate), 1.5)
    rep.least("  answers to another pod that its socket takes", sent[1] / 2, 95, " %")
    rep.near("  the pod gets", passed / seconds / 1e6, bits(rate) / 1e6, 0.3, " Mbit/s")
    lim.detach()


def main(rep, a):
    parts = {"forwarded": forwarded, "queues": queues, "answers": answers, "rates": rates,
             "server": server}
    if not Natra().json("probe")["fq"]:
        skip("CONFIG_NET_SCH_FQ")
    for name, part in chosen(parts, a.only).items():
        with Rig(lanes=2) as r:
            rep.measure(name, part, r, rep, a)


if __name__ == "__main__":
    run_script(main,
        option("--only", help="of the above, by comma"),
        option("--seconds", type=float, default=3))
