#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks how far a tenant gets past its limit with what it can do.

  headers    one elephant whose packets look different each time
  flows      one elephant cut into many small flows
  net-admin  a pod that undoes its own interface's configuration
  bypass     packet and XDP sockets that go around the pod's egress hook
  ethertypes frames that are not IP
  link       what a link depends on, each kind of it under the threshold
  segments   a GSO packet with more headers than the charge could hold
  priority   datagrams that fq would once send at once
"""
import itertools
import os
import random
import socket
import struct
import sys
import time
from pathlib import Path

sys.path.insert(0, os.path.dirname(__file__) + "/../harness/python")
from commands import bpftool, sh
from frames import Sender, Taken, eth, ext6, frag6, ip4, ip6, udp
from isolation import BPFFS
from limiters import Natra, bits, total
from meter import ETH_IPV4_UDP, wire_rate, wire_rates
from namespaces import Ns
from neighbour import Neighbour, Site
from rig import Rig
from script import option, run_script
from xsk import XskSender

CAP = "10M"
OVER = 1.05
OFFERED = 100e6
# The packets that natra does not stop must be seen to pass, or the README is wrong.
PAST = 2
HASH_KEY_BYTES = 88
BODY = bytes(1200)


def vlan(type_, number):
    return type_, number & 0xfff


# Each makes a frame from a random number of 32 bits.
HEADERS = {
        "IPv4 options": lambda n: eth(0x800, ip4(
                17, udp(BODY), 0, struct.pack("!BBHI", 0x44, 8, n & 0xffff, n))),
        "IPv4 fragments, first": lambda n: eth(0x800, ip4(
                17, udp(BODY), 0x2000, ident=n & 0xffff)),
        "IPv4 fragments, others": lambda n: eth(0x800, ip4(
                17, BODY, 100 + n % 1000, ident=n & 0xffff)),
        "IPv6 extension headers": lambda n: eth(0x86dd, ip6(
                60, ext6(60, 4) * (n % 4) + ext6(17, 4) + udp(BODY))),
        "IPv6 with too many extension headers": lambda n: eth(0x86dd, ip6(
                60, ext6(60, 4) * (5 + n % 4) + ext6(17, 4) +
                struct.pack("!I", n) + BODY)),
        "IPv6 fragments": lambda n: eth(0x86dd, ip6(
                44, frag6(17, n % 1000, 1)[:4] + struct.pack("!I", n) + BODY)),
        "IPv6 flow labels": lambda n: relabel(n),
        "VLAN ids": lambda n: eth(0x800, ip4(17, udp(BODY)), vlan(0x8100, n)),
        "VLAN in VLAN": lambda n: eth(0x800, ip4(17, udp(BODY)),
                                      vlan(0x88a8, n), vlan(0x8100, n >> 12)),
        "three VLAN tags": lambda n: eth(
                0x800, ip4(17, struct.pack("!I", n) + BODY), vlan(0x88a8, n),
                vlan(0x8100, n >> 12), vlan(0x8100, n >> 20)),
        "ICMP echo ids": lambda n: eth(0x800, ip4(
                1, struct.pack("!BBHI", 8, 0, 0, n) + BODY)),
        "ICMPv6 echo ids": lambda n: eth(0x86dd, ip6(
                58, struct.pack("!BBHI", 128, 0, 0, n) + BODY)),
        "GRE keys": lambda n: eth(0x800, ip4(
                47, struct.pack("!HHI", 0x2000, 0x800, n) + BODY)),
        "ESP, SPI": lambda n: eth(0x800, ip4(
                50, struct.pack("!II", n, n) + BODY)),
        "IP in IP": lambda n: eth(0x800, ip4(
                4, ip4(17, struct.pack("!I", n) + BODY))),
        "IPv4 header of 4 to 16 bytes": lambda n: malformed(0x40 | 1 + n % 4, n),
        "IP version neither 4 nor 6": lambda n: malformed((n % 16 | 8) << 4, n),
        "tiny, 60 bytes": lambda n: eth(0x800, ip4(17, udp(bytes(18)))),
}


def relabel(n):
    frame = bytearray(eth(0x86dd, ip6(17, udp(BODY))))
    frame[14:18] = struct.pack("!I", 6 << 28 | n & 0xfffff)
    return bytes(frame)


def malformed(first, n):
    return eth(0x800, bytes([first]) + struct.pack("!III", n, n, n) + BODY)


def seconds_of(send, seconds, offered=OFFERED):
    """Send for a time and return the bytes per second that were offered."""
    begin = now = time.monotonic()
    sent = 0
    while now - begin < seconds:
        for _ in range(16):
            sent += send()
        now = time.monotonic()
        # A pause leaves some of the machine to others: ten times the cap does not need
        # it all.
        ahead = begin + sent * 8 / offered - now
        if ahead > 0:
            time.sleep(min(ahead, 0.01))
            now = time.monotonic()
    return sent / (now - begin)


def received(ifname):
    with open(f"/sys/class/net/{ifname}/statistics/rx_bytes") as f:
        return int(f.read())


def through(r, send, a):
    """Return (offered, passed) in bit/s, once the burst is used up."""
    seconds_of(send, a.settle)
    before, begin = received(r.pod.host), time.monotonic()
    offered = seconds_of(send, a.seconds)
    return offered * 8, (received(r.pod.host) - before) * 8 / (
            time.monotonic() - begin)


def frames(sock, make):
    rng = random.Random(1)

    def send():
        try:
            return sock.send(make(rng.getrandbits(32)))
        except OSError:                 # the hook dropped it
            return 1200
    return send


def verdict(rep, what, offered, passed, past=False):
    """Check the bit/s that passed. `past` means that natra does not claim to stop
    it."""
    cap = bits(CAP)
    text = f"{what}, {offered / 1e6:.0f} offered"
    if past:
        rep.least(f"{text} (documented)", passed / 1e6, PAST * cap / 1e6,
                  " Mbit/s")
    else:
        rep.most(text, passed / 1e6, OVER * cap / 1e6, " Mbit/s")


def headers(rep, a):
    with Rig() as r:
        Natra(r.pod, "--fast-pass", a.fast_pass).attach(None, CAP)
        sender = Sender(r.pod, "eth0").plain
        for name, make in HEADERS.items():
            rep.measure(name, lambda name=name, make=make: verdict(
                    rep, name, *through(r, frames(sender, make), a)))


def wire_out(r, a, src, *options):
    """Return the bit/s offered, and those that the client receives, of datagrams from
    the pod."""
    p = r.load(src, "udp-send", r.client.ip, 7000, "--rate", OFFERED,
               "--size", len(BODY),
               *options)
    meter = r.out_of(header=ETH_IPV4_UDP)
    r.wait_flow(meter)
    time.sleep(a.settle)
    rate = wire_rates([meter], a.seconds)[0]
    offered = r.load_end(p, src, now=True)["sent"]
    return offered, rate


def ports(r, rep, a, fast_pass):
    verdict(rep, f"{fast_pass}: one elephant from 2000 ports",
            *wire_out(r, a, r.pod, "--ports", 2000), past=fast_pass == "free")


def connections(r, rep, a, fast_pass):
    p = r.load(r.client, "http", r.pod.ip, 80, "/file", "--rps",
               OFFERED / 8 / 53000, "--seconds", a.settle + a.seconds + 1)
    r.wait_flow(r.out_of())
    time.sleep(a.settle)
    verdict(rep, f"{fast_pass}: connections of 50 kB", OFFERED,
            wire_rate(r.client, a.seconds), past=fast_pass == "free")
    r.stop([p])


def flows(rep, a):
    for fast_pass in ("free", "charged"):
        with Rig() as r:
            r.nginx(size=50000)
            Natra(r.pod, "--fast-pass", fast_pass).attach(CAP, CAP)
            rep.measure(f"{fast_pass}: ports", ports, r, rep, a, fast_pass)
            rep.measure(f"{fast_pass}: connections", connections, r, rep, a,
                        fast_pass)
            Natra(r.client).attach(CAP, CAP)
            keys = [k for k in hash_keys() if any(k)]
    rep.least("attached directions, by their keys of the hash",
              len(set(keys)), 4)
    rep.equal("keys that two of them share", len(keys) - len(set(keys)), 0)


def hash_keys():
    """Yield the end of each entry of this script's configurations, less the owner."""
    for path in Path(BPFFS).glob("natra/**/configs"):
        for e in bpftool("map", "dump", "pinned", str(path)):
            value = bytes(int(b, 16) for b in e["value"])
            yield value[-HASH_KEY_BYTES - 8:-8]


TENANT_DOES = ("nothing", "replace_qdisc", "change_mtu", "down_and_up",
               "accept_by_filter", "rename", "move")
# Hostside modes have nothing in the pod that a tenant could change.
HOSTSIDE_DOES = ("nothing", "move")
GETS_PAST = {"clsact-podside": ("delete_clsact", "accept_by_filter", "move"),
             "tcx-podside": ("accept_by_tcx",)}


class Tenant:
    """Does what root in the pod can do to eth0. Each method returns the namespace where
    eth0 then is."""

    def __init__(self, r):
        self.r, self.pod = r, r.pod
        self.run = r.pod.run
        self.name, self.links = "eth0", []
        self.inner = Ns("inner")

    def up(self, run, name):
        pod = self.pod
        run("ip", "link", "set", name, "up")
        run("ip", "addr", "replace", f"{pod.ip}/24", "dev", name)
        run("ip", "neigh", "replace", pod.gw, "lladdr", pod.host_mac, "dev",
            name, "nud", "permanent")
        run("ip", "route", "replace", "default", "via", pod.gw)

    def close(self):
        for fd in self.links + [self.inner.fd]:
            os.close(fd)
        sh("ip", "netns", "del", self.inner.name)

    def nothing(self):
        return self.pod

    def delete_clsact(self):
        self.run("tc", "qdisc", "del", "dev", "eth0", "clsact")
        return self.pod

    def replace_qdisc(self):
        self.run("tc", "qdisc", "replace", "dev", "eth0", "root", "pfifo")
        return self.pod

    def accept_by_filter(self):
        site = Site(self.r, "podside")
        site.tc("qdisc", "add", "clsact", check=False)
        site.clsact("ok")
        return self.pod

    def accept_by_tcx(self):
        """Put a program in front that accepts all packets; loading it also takes
        CAP_BPF."""
        self.links = Site(self.r, "podside").tcx("ok", before=True)
        return self.pod

    def change_mtu(self):
        self.run("ip", "link", "set", "eth0", "mtu", "1300")
        return self.pod

    def down_and_up(self):
        self.run("ip", "link", "set", "eth0", "down")
        self.up(self.run, "eth0")
        return self.pod

    def rename(self):
        self.run("ip", "link", "set", "eth0", "down")
        self.run("ip", "link", "set", "eth0", "name", "wan0")
        self.up(self.run, "wan0")
        self.name = "wan0"
        return self.pod

    def move(self):
        """Move eth0 to a namespace that the pod makes: qdiscs do not go with it."""
        self.run("ip", "link", "set", self.name, "netns", self.inner.path)
        self.up(self.inner.run, self.name)
        return self.inner


def net_admin(rep, a):
    """Test what a pod with CAP_NET_ADMIN can do."""
    Neighbour()
    for mode in Natra.modes():
        past = GETS_PAST.get(mode, ())
        does = HOSTSIDE_DOES if mode.endswith("hostside") else TENANT_DOES
        for group in [[w for w in does if w not in past],
                      *([w] for w in past)]:
            with Rig() as r:
                tenant = Tenant(r)
                Natra(r.pod, "--attach-mode", mode).attach(CAP, CAP)
                for what in group:
                    src = getattr(tenant, what)()
                    rep.measure(what, lambda what=what, src=src: verdict(
                            rep, f"{mode}: {what.replace('_', ' ')}",
                            *wire_out(r, a, src), past=what in past))
                tenant.close()


def bypass(rep, a):
    """Test what a pod can do with CAP_NET_RAW, which most runtimes give."""
    with Rig() as r:
        frame = routed(r)
        sender = Sender(r.pod, "eth0")
        sender.bypass_qdisc(True)
        xsk = XskSender(r.pod, "eth0", frame)
        ways = {"around the qdisc layer": lambda: sender.plain.send(frame),
                "by AF_XDP": xsk.send}
        for mode in Natra.modes():
            natra = Natra(r.pod, "--attach-mode", mode).attach(CAP, CAP)
            meter = r.out_of(header=ETH_IPV4_UDP)
            for way, send in ways.items():
                what = f"{mode}: {way}"
                seconds_of(send, a.settle)
                rep.measure(what, around, rep, a, what, meter, send,
                            mode.endswith("podside"))
            natra.detach()


def around(rep, a, what, meter, send, past):
    begin, before = meter.read()
    offered = seconds_of(send, a.seconds)
    end, after = meter.read()
    verdict(rep, what, offered * 8, (after - before) * 8 / (end - begin), past)


def routed(r):
    """Return a frame with a datagram from the pod to the client, as the pod would send
    it."""
    src, dst = (bytes(map(int, x.ip.split("."))) for x in (r.pod, r.client))
    macs = bytes.fromhex((r.pod.host_mac + r.pod.mac).replace(":", ""))
    return macs + eth(0x800, ip4(17, udp(BODY), src=src, dst=dst))[len(macs):]


# The types are one for local experiments, MPLS, and a session of PPPoE.
TYPES = (0x88b5, 0x8847, 0x8864)


def ethertypes(rep, a):
    with Rig() as r:
        ways = {"in": (Sender(r.node, r.pod.host), r.pod, "eth0"),
                "out": (Sender(r.pod, "eth0"), r.node, r.pod.host)}
        for mode in Natra.modes():
            natra = Natra(r.pod, "--attach-mode", mode).attach(CAP, CAP)
            for type_ in TYPES if mode == Natra.modes()[0] else TYPES[:1]:
                for way, (sender, *to) in ways.items():
                    what = f"{mode}: {type_:#06x} {way}"
                    rep.measure(what, frames_of_type, rep, a, what, sender,
                                Taken(*to, type_), type_)
            natra.detach()


def frames_of_type(rep, a, what, sender, taken, type_):
    frame = eth(type_, BODY)
    send = frames(sender.plain, lambda _: frame)
    seconds_of(send, a.settle)
    taken.count()
    begin = time.monotonic()
    offered = seconds_of(send, a.seconds)
    passed = taken.count() * len(frame) * 8 / (time.monotonic() - begin)
    verdict(rep, what, offered * 8, passed)


def discovery(type_):
    frame = bytearray(eth(0x86dd, ip6(58, struct.pack("!BBHI", type_, 0, 0, 0) + bytes(12))))
    frame[21] = 255                     # the hop limit
    return bytes(frame)


# ARP, LACP, IEEE 802.1X, LLDP, LLC, and solicitations of routers and neighbours.
LINK = (*(eth(type_, bytes(60)) for type_ in (0x806, 0x8809, 0x888e, 0x88cc, 60)),
        discovery(133), discovery(135))
LINK_OFFERED = 2e6                      # each kind is far under the threshold
# 64 of these frames, of 74 bytes, in a window of 2^30 ns.
LINK_ALLOWED = 64 * 74 * 8 / 1.0737


def link(rep, a):
    """What a link depends on passes uncharged, but not more of it if it is of many
    kinds."""
    for fast_pass in ("charged", "off"):
        with Rig() as r:
            lim = Natra(r.pod, "--fast-pass", fast_pass).attach(None, CAP)
            kinds = itertools.cycle(LINK)
            send = frames(Sender(r.pod, "eth0").plain, lambda _, kinds=kinds: next(kinds))
            rep.measure(fast_pass, uncharged, rep, a, fast_pass, lim, send)


def uncharged(rep, a, what, lim, send):
    def other():
        return lim.stats()["egress"]["other"]["bytes"]
    seconds_of(send, a.settle, LINK_OFFERED)
    before, begin = other(), time.monotonic()
    seconds_of(send, a.seconds, LINK_OFFERED)
    rate = (other() - before) * 8 / (time.monotonic() - begin)
    rep.near(f"{what}: uncharged of 2000 kbit/s that a link depends on", rate / 1e3,
             LINK_ALLOWED / 1e3, 0.1, " kbit/s")


# At this rate a byte takes 127 ns.
SEGMENTS_RATE = 63e6
GSO_TCPV4 = 1                   # virtio_net.h
FOLLOW_S = 0.005
# Some kernels make TCP segments at least this long, whatever size they are given.
SMALLEST_SEGMENT = 8


def segments(rep, a):
    """Check that all of 8 MB is charged: segments of 1 byte with headers of 134."""
    tcp = struct.pack("!HHIIBBHHH", 7001, 7002, 1, 1, 0xf0, 0x10, 1000, 0, 0)
    tcp += bytes([1]) * 40
    packet = eth(0x800, ip4(6, tcp + bytes(60000), options=bytes([1]) * 40))
    small = eth(0x800, ip4(6, tcp, options=bytes([1]) * 40))
    with Rig() as r:
        sender = Sender(r.pod, "eth0")
        for mode in Natra.modes():
            rep.measure(mode, segments_in, rep, r, mode, sender, packet, small)


def segments_in(rep, r, mode, sender, packet, small):
    lim = Natra(r.pod, "--attach-mode", mode, "--edt-pacing", "off", "--fast-pass", "off",
                "--egress-burst", "8k")
    lim.attach(None, str(int(SEGMENTS_RATE)))
    sender.send_gso(packet, len(small), 1, GSO_TCPV4, 16, l4=60)
    begin = time.monotonic()
    charged = total(lim.stats()["egress"])
    owed_s = charged * 8 / SEGMENTS_RATE
    sent = 0
    while time.monotonic() < begin + owed_s + 0.5:
        try:
            sender.plain.send(small)
        except OSError:                 # the hook dropped it
            pass
        sent += 1
        time.sleep(max(0, begin + sent * FOLLOW_S - time.monotonic()))
    refused = lim.stats()["egress"]["dropped_rate"]["packets"]
    lim.detach()
    rep.least(f"{mode}: bytes charged for 60 kB", charged,
              60000 / SMALLEST_SEGMENT * len(small))
    # On kernels with SMALLEST_SEGMENT the debt is so short that sending takes longer.
    if charged > 6e6:
        rep.near(f"{mode}: s until the next packet of the flow",
                 refused * FOLLOW_S, owed_s, 0.1)


SO_PRIORITY, TC_PRIO_CONTROL = 12, 7


def priority(rep, a):
    """With CAP_NET_RAW or CAP_NET_ADMIN a pod can ask for any priority. What fq would
    send at once is ahead of the rate by the horizon, 2 s."""
    with Rig() as r:
        lim = Natra(r.pod, "--attach-mode", "clsact-podside")
        lim.attach(None, CAP)
        if not lim.edt_active():
            return rep.shown("priority", "no fq on this kernel")
        with r.pod:
            s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        s.setsockopt(socket.SOL_SOCKET, SO_PRIORITY, TC_PRIO_CONTROL)
        s.setblocking(False)
        s.connect((r.client.ip, 7000))

        def send():
            try:
                return s.send(BODY)
            except OSError:             # the queue is full, or the client refuses
                return len(BODY)
        meter = r.out_of(header=ETH_IPV4_UDP)
        begin, before = meter.read()
        offered = seconds_of(send, a.settle)
        end, after = meter.read()
        # The bound is the elapsed time and the burst, 0.5 s of the rate.
        rep.most(f"priority 7, {offered * 8 / 1e6:.0f} offered: in s of the rate",
                 (after - before) * 8 / bits(CAP), 1.1 * (0.5 + end - begin))


def main(rep, a):
    parts = {"headers": headers, "flows": flows, "net-admin": net_admin,
             "bypass": bypass, "ethertypes": ethertypes,
             "link": link, "segments": segments, "priority": priority}
    for name in a.part or parts:
        parts[name](rep, a)


if __name__ == "__main__":
    run_script(main,
        option("part", nargs="*"),
        option("--seconds", type=float, default=0.8),
        option("--settle", type=float, default=0.5),
        option("--fast-pass", default="free", help="of natra in `headers`"))
