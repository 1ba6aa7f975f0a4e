#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks how long the queue inside of one flow is, where packets are held.

  tunnel     requests beside a bulk stream in one WireGuard tunnel
  quic       datagrams with a congestion control of their own
  forwarded  the same from a container inside of the pod, whose packets have no socket

Each is measured out of the pod with departure times, and into it with --ingress-mode pace,
beside htb with fq_codel by turns. An emulated CPU delays what it runs, so the bounds have
room for that. This needs fq, and the tunnel needs WireGuard.
"""
import json
import os
import sys
import time

sys.path.insert(0, os.path.dirname(__file__) + "/../harness/python")
from commands import ip_batch, sh
from limiters import Natra, bits, forgiven
from report import skip
from rig import Rig
from script import chosen, option, run_script
from senders import Nested
from turns import NATRA, OPTIONS, POLICED, Turns

PORT, REQUEST_PORT, QUIC_PORT = 5201, 5300, 5301
REQUESTS_PER_S, REQUEST_SIZE = 40, 100
# At a cap of 10 Mbit/s: what a median and a 99th percentile may be.
P50_MS, P99_MS = 15, 30
CAP = "10M"
# The burst of a stream's start is over, and its window has been cut to what the path carries.
SETTLE_S = 5


def quic(r, source, sink, seconds):
    server = sink.popen(os.environ["NATRA_QUIC"], "server", str(QUIC_PORT))
    r.wait_port(sink, QUIC_PORT, "udp")
    got = json.loads(source.run(os.environ["NATRA_QUIC"], "client", sink.ip, str(QUIC_PORT),
                                str(seconds), timeout=seconds + 20))
    sink.stop(server)
    return got["p50_ms"], got["p99_ms"], got["bits_per_sec"] / 1e6


class End:
    """An end of the tunnel, with its address there."""

    def __init__(self, ns, number, key):
        self.ns, self.ip, self.key = ns, f"10.91.0.{number}", key
        self.popen, self.run, self.stop = ns.popen, ns.run, ns.stop
        self.name, self.netfile = ns.name, ns.netfile

    def set_up(self, other):
        ip_batch(["link add wg0 type wireguard"], self.name)
        public = sh("wg", "pubkey", input=other.key).strip()
        self.run("wg", "set", "wg0", "listen-port", "51820", "private-key", "/dev/stdin",
                 "peer", public, "allowed-ips", f"{other.ip}/32",
                 "endpoint", f"{other.ns.ip}:51820", input=self.key)
        ip_batch([f"addr add {self.ip}/24 dev wg0", "link set wg0 mtu 1420 up"], self.name)


def tunnel(r, source, sink, seconds):
    """Requests go in the direction of the bulk stream; the answers come back alone."""
    a, b = (End(ns, i, sh("wg", "genkey")) for i, ns in enumerate((source, sink), 1))
    a.set_up(b)
    b.set_up(a)
    try:
        bulk = r.stream_server(b, PORT)
        rr = b.popen(os.environ["NATRA_RR"], "server", str(REQUEST_PORT))
        r.wait_port(b, REQUEST_PORT)
        stream = r.stream_client(a, b, PORT)
        time.sleep(SETTLE_S)
        before, begin = received(b), time.monotonic()
        got = json.loads(a.run(os.environ["NATRA_RR"], "client", b.ip, str(REQUEST_PORT),
                               str(REQUEST_SIZE), str(REQUESTS_PER_S), str(seconds),
                               timeout=seconds + 30))
        rate = (received(b) - before) * 8 / (time.monotonic() - begin) / 1e6
        r.stop([stream, bulk, rr])
        return got["p50_ms"], got["p99_ms"], rate
    finally:
        for end in (a, b):
            end.run("ip", "link", "del", "wg0", check=False)


def received(end):
    link, = json.loads(end.run("ip", "-s", "-j", "link", "show", "dev", "eth0"))
    return link["stats64"]["rx"]["bytes"]


def forwarded(r, source, sink, seconds):
    nested = Nested(r)
    try:
        if source is r.pod:
            return quic(r, nested, sink, seconds)
        return quic(r, source, nested, seconds)
    finally:
        nested.close()


def one(r, rep, turns, name, part, a):
    rows = turns.medians(r, name, CAP,
                         lambda source, sink: part(r, source, sink, a.seconds))
    p50, p99, rate = rows[NATRA]
    rep.most("  p50", p50, P50_MS, " ms")
    rep.most("  p99", p99, P99_MS, " ms")
    rep.least("  rate", rate, 0.85 * bits(CAP) / 1e6, " Mbit/s")
    rep.most("  rate at most", rate, 1.05 * bits(CAP) / 1e6, " Mbit/s")
    if POLICED in rows:
        rep.most("  policed", rows[POLICED][2],
                 (1 + forgiven(bits(CAP), a.seconds)) * bits(CAP) / 1e6, " Mbit/s")


def main(rep, a):
    parts = {"tunnel": tunnel, "quic": quic, "forwarded": forwarded}
    if not Natra().json("probe")["fq"]:
        skip("CONFIG_NET_SCH_FQ")
    if a.rounds > 1:
        rep.tries = 1           # the median of several rounds needs no second try
    for out in (True, False):
        turns = Turns(rep, out, a)
        for name, part in chosen(parts, a.only).items():
            with Rig() as r:
                rep.measure(name, one, r, rep, turns, name, part, a)


if __name__ == "__main__":
    run_script(main,
        option("--only", help="of the above, by comma"), *OPTIONS,
        option("--seconds", type=float, default=6))
