#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks limits of packets and of new connections in a second.

  packets      datagrams of 64 bytes, and GSO packets, into the pod and out of it
  connections  requests beyond the limit are refused, and those within it are answered
  flood        SYNs from a pod, while requests go to a second one
  hidden       SYNs behind more VLAN tags than natra reads, and in a tunnel
"""
import contextlib
import os
import socket
import struct
import sys
import time

sys.path.insert(0, os.path.dirname(__file__) + "/../harness/python")
from frames import MACS, Sender, checksum, eth, ip4
from limiters import Natra
from meter import Meter
from percentiles import most_ms
from rig import Rig
from script import option, run_script, some_of
from strict import request_size

PACKETS = 10000
CONNECTIONS = 100
PORT = 7000
FAST = "10G"                    # no limit of bytes binds


def packets_of(ns, seconds):
    """Return the packets in a second that a namespace receives, with GSO packets as
    their segments."""
    meter = Meter(ns)

    def read():
        c = meter.counters()
        return time.monotonic(), sum(v for k, v in c.items() if k in (
            "InNoECTPkts", "InECT0Pkts", "InECT1Pkts", "InCEPkts"))
    (t0, n0), _, (t1, n1) = read(), time.sleep(seconds), read()
    return (n1 - n0) / (t1 - t0)


def packets(r, rep, a, into, size, segments):
    src, dst = (r.client, r.pod) if into else (r.pod, r.client)
    way = "ingress" if into else "egress"
    lim = Natra(r.pod, f"--{way}-packet-rate", "10k")
    lim.attach(*((FAST, None) if into else (None, FAST)))
    p = r.load(src, "udp-send", dst.ip, PORT, "--size", size, "--segments", segments,
               "--rate", 3 * PACKETS * (size + 42) * 8, "--no-wait")
    time.sleep(a.settle)
    rate = packets_of(dst, a.seconds)
    sent = r.load_end(p, src, now=True)
    over = lim.stats()[way]["over_packets"]["packets"]
    lim.detach()
    what = f"{way}, {size} bytes x {segments}"
    rep.shown(what, f"{(sent['sent'] + sent['refused']) / 8 / (size + 42):.0f} offered")
    # A sender that was stalled catches up, by the gate's burst of 0.1 s at most. 10 ms are a tick.
    rep.near(f"{what}: packets/s", rate, PACKETS, (0.1 + 0.01) / a.seconds)
    rep.least("  dropped", over, 1)


def connections(r, rep, a):
    """A connection whose SYN is lost is tried again after a second, so what was answered at
    once counts."""
    lim = Natra(r.pod, "--ingress-connection-rate", CONNECTIONS).attach(FAST, FAST)
    for part, name in ((0.5, "within"), (5, "beyond")):
        time.sleep(1)
        before = lim.stats()["ingress"]["over_connections"]["packets"]
        got = r.load_end(r.load(r.client, "http", r.pod.ip, 80, "/file", "--rps",
                                part * CONNECTIONS, "--seconds", a.seconds,
                                "--timeout", 0.9), r.client)
        over = lim.stats()["ingress"]["over_connections"]["packets"] - before
        rep.shown(f"{name} the limit", f"{got['done']:.0f}/s answered, {got['failed']} "
                  f"failed, {over} SYNs dropped")
        if part < 1:
            # A client that stands still for a moment opens all that are due at once.
            rep.equal("  requests that failed", got["failed"], 0, exact=False)
            rep.equal("  SYNs that were dropped", over, 0, exact=False)
        else:
            rep.least("  answered in a second", got["done"], 0.95 * CONNECTIONS)
            # The burst is a tenth of a second.
            rep.most("  answered in a second", got["done"],
                     CONNECTIONS * (1.05 + 0.1 / a.seconds))
    lim.detach()


def syn(n):
    tcp = struct.pack("!HHIIBBHHH", 1024 + n % 60000, 80, n, 0, 5 << 4, 2, 1000, 0, 0)
    return eth(0x800, ip4(6, tcp))


def spin(seconds):
    """Take as much of a CPU as a flood does, without a packet."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


def flood(r, rep, a):
    """The first pod sends SYNs as fast as it can; they take the way of all packets, through
    the qdisc layer."""
    rps = 200
    lim = Natra(r.pod, "--egress-connection-rate", CONNECTIONS).attach(None, FAST)
    busy = r.pod.fork(spin, a.seconds + 1)
    quiet = r.load_end(r.load(r.clients[1], "http", r.pods[1].ip, 80, "/file", "--rps",
                              rps, "--seconds", a.seconds), r.clients[1])
    r.pod.stop(busy)
    sender = r.pod.fork(send_syns, a.seconds + 1)
    time.sleep(0.5)
    loud = r.load_end(r.load(r.clients[1], "http", r.pods[1].ip, 80, "/file", "--rps",
                             rps, "--seconds", a.seconds), r.clients[1])
    out, _ = sender.communicate(timeout=60)
    r.pod.stop(sender)
    stats = lim.stats()["egress"]
    lim.detach()
    rep.least("SYNs in a second", float(out), 100 * CONNECTIONS)
    rep.shown("a neighbour's p99 beside a busy process", f"{quiet['p99_ms']:.1f} ms")
    rep.most("a neighbour's p99", loud["p99_ms"], most_ms(quiet["p999_ms"]), " ms")
    rep.equal("  requests that failed", loud["failed"], 0)
    rep.least("SYNs dropped", stats["over_connections"]["packets"],
              0.9 * float(out) * a.seconds)
    rep.most("SYNs that passed", stats["mice"]["packets"] + stats["admitted"]["packets"],
             CONNECTIONS * (a.seconds + 3) * 1.1)


HIDDEN, HIDDEN_SYNS, HIDDEN_RATE = "02:77:00:00:66:66", 200, 10
INNER = bytes([192, 0, 2, 1]), bytes([192, 0, 2, 2])


def hidden(r, rep, a):
    """A pod takes these SYNs for what they are and refuses each connection. Tags with the
    id 0 say nothing but a priority, and hosts take off any number of them."""
    pod, src, dst = r.pod, *(bytes(map(int, x.ip.split("."))) for x in (r.client, r.pod))
    outer = bytes.fromhex((pod.mac + pod.host_mac).replace(":", ""))
    inner = bytes.fromhex(HIDDEN.replace(":", "") + "027700006667")

    def framed(macs, frame):
        return macs + frame[len(MACS):]

    def tags(n):
        return framed(outer, eth(0x800, refused_syn(src, dst, n), *[(0x8100, 0)] * 4))

    def vxlan(n):
        packet = framed(inner, eth(0x800, refused_syn(*INNER, n)))
        data = struct.pack("!II", 1 << 27, 42 << 8) + packet
        return framed(outer, eth(0x800, ip4(17, struct.pack(
                "!HHHH", 7001, 4789, 8 + len(data), 0) + data, src=src, dst=dst)))
    pod.run("ip", "link", "add", "vxlan0", "address", HIDDEN, "type", "vxlan", "id", "42",
            "dstport", "4789", "dev", "eth0")
    pod.run("ip", "addr", "add", "192.0.2.2/24", "dev", "vxlan0")
    pod.run("ip", "link", "set", "vxlan0", "up")
    send = Sender(r.node, pod.host).plain.send
    for name, make in (("four tags", tags), ("VXLAN", vxlan)):
        for limit in None, HIDDEN_RATE:
            lim = Natra(pod, *(["--ingress-connection-rate", limit] if limit else []))
            lim.attach(FAST, None)
            time.sleep(1)
            before, start = refusals(pod), time.monotonic()
            for n in range(HIDDEN_SYNS):
                with contextlib.suppress(OSError):  # the hook on the host side dropped it
                    send(make(n))
            time.sleep(0.1)
            refused, seconds = refusals(pod) - before, time.monotonic() - start
            lim.detach()
            what = f"{name}: SYNs of {HIDDEN_SYNS} that arrive"
            if limit:
                rep.most(what, refused, 5 + 1.1 * limit * seconds)
            else:
                rep.least(f"{what}, without a limit", refused, 0.9 * HIDDEN_SYNS)
    pod.run("ip", "link", "del", "vxlan0")


def refused_syn(src, dst, n):
    """Return an IP packet with a SYN for a port that is closed."""
    header = struct.pack("!HHIIBBHHH", 1024 + n, 9, n, 0, 5 << 4, 2, 1000, 0, 0)
    total = checksum(src + dst + struct.pack("!HH", 6, len(header)) + header)
    return ip4(6, header[:16] + struct.pack("!H", total) + header[18:], src=src, dst=dst)


def refusals(ns):
    """Return how many connections the namespace has refused."""
    names, values = (line.split() for line in ns.run("cat", "/proc/net/snmp").splitlines()
                     if line.startswith("Tcp:"))
    return int(values[names.index("OutRsts")])


def send_syns(seconds):
    """Send SYNs, and print how many in a second."""
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    s.bind(("eth0", 0))
    frames = [syn(n) for n in range(60000)]
    n, start = 0, time.monotonic()
    while time.monotonic() - start < seconds:
        for frame in frames[n % 60000:n % 60000 + 100]:
            try:
                s.send(frame)
            except OSError:             # the hook dropped it
                pass
        n += 100
    print(n / (time.monotonic() - start))


def main(rep, a):
    with Rig(lanes=2) as r:
        for ns in (r.pod, r.client):
            r.load(ns, "udp-sink", PORT)
            r.wait_port(ns, PORT, "udp")
        for into in (True, False) if "packets" in a.what else ():
            for size, segments in ((22, 1), (500, 40)):
                rep.measure(f"{into} {segments}", packets, r, rep, a, into, size, segments)
        for pod in r.pods:
            r.nginx(pod=pod)
        request_size(r)                 # what is new of a connection is warm then
        if "connections" in a.what:
            rep.measure("connections", connections, r, rep, a)
        if "flood" in a.what:
            rep.measure("flood", flood, r, rep, a)
        if "hidden" in a.what:
            rep.measure("hidden", hidden, r, rep, a)


if __name__ == "__main__":
    run_script(main,
        some_of("what", ("packets", "connections", "flood", "hidden")),
        option("--seconds", type=float, default=3),
        option("--settle", type=float, default=1))
