#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks how far a tenant gets past its limit with what it can do.

  headers    one elephant whose packets look different each time
  flows      one elephant cut into many small flows
  net-admin  a pod that undoes its own interface's configuration
  sibling    a pod that makes another interface beside its own
  ifb        a pod that sends through an ifb
  duplicate  a pod whose qdisc sends each packet twice
  bypass     packet and XDP sockets that go around the pod's hooks
  ethertypes frames that are not IP
  link       what a link depends on, each kind of it under the threshold
  segments   a GSO packet with more headers than the charge could hold
  priority   datagrams that fq would once send at once

With --table each way is tried in each attach mode and both directions, and FILE gets
what passed, for tests/bench/results.
"""
import contextlib
import itertools
import os
import random
import socket
import struct
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, os.path.dirname(__file__) + "/../harness/python")
from commands import bpftool, sh
from evasion_frames import (ARRIVE_AS, BODY, HEADERS, LINK, LINK_CLASSES, MANY, TYPE_MANY,
                            TYPES)
from frames import Sender, Taken, eth, ip4, udp
from isolation import BPFFS
from limiters import Natra, bits, total
from meter import ETH_IPV4_UDP, Meter, wire_rates
from namespaces import Ns
from neighbour import Neighbour, Site
from rig import Rig
from script import option, run_script
from wirings import Wiring
from xsk import XskSender

CAP = "10M"
OVER = 1.05
OFFERED = 100e6
# The packets that natra does not stop must be seen to pass, or the README is wrong.
PAST = 1.9
WAYS = "in", "out"
ETH_P_ALL = 3
HASH_KEY_BYTES = 88
BEHIND_KEYS = 80


def seconds_of(send, seconds, offered=OFFERED):
    """Send for a time and return the bytes per second that were offered."""
    begin = now = time.monotonic()
    sent = 0
    while now - begin < seconds:
        for _ in range(16):
            sent += send()
        now = time.monotonic()
        # A pause leaves some of the machine to others: ten times the cap does not need all.
        ahead = begin + sent * 8 / offered - now
        if ahead > 0:
            time.sleep(min(ahead, 0.01))
            now = time.monotonic()
    return sent / (now - begin)


def frames(sock, make):
    rng = random.Random(1)

    def send():
        try:
            return sock.send(make(rng.getrandbits(32)))
        except OSError:                 # the hook dropped it
            return 1200
    return send


def verdict(rep, a, mode, way, what, offered, passed, past=False, times=1):
    """Check the bit/s that passed, and keep them for the table. `past` means that natra
    does not claim to stop it, `times` how often it lets the rate pass."""
    cap = bits(CAP)
    text = f"{mode} {way}: {what}, {offered / 1e6:.0f} offered"
    a.passed.setdefault((what, way), {})[mode] = (passed / cap, past)
    if past:
        rep.least(f"{text} (documented)", passed / 1e6, PAST * cap / 1e6,
                  " Mbit/s")
    else:
        rep.most(text, passed / 1e6, OVER * times * cap / 1e6, " Mbit/s")


def write_table(path, parts, passed):
    modes = Natra.modes()
    commit = sh("git", "-C", Path(__file__).parent, "rev-parse", "--short", "HEAD",
                check=False).strip()
    with open(path, "w", encoding="utf-8") as f:
        print("What passes of ten times the rate, as a multiple of it: tests/net/evasion.py "
              f"--table FILE {' '.join(parts)}.", file=f)
        print(f"Linux {os.uname().release}, {os.cpu_count()} CPUs; {commit}.\n", file=f)
        print(f"| way | direction | {' | '.join(modes)} |", file=f)
        print("|---" * (2 + len(modes)) + "|", file=f)
        for (what, way), row in passed.items():
            cells = [f"{row[m][0]:.1f}{' past' if row[m][1] else ''}" if m in row else "–"
                     for m in modes]
            print(f"| {what} | {way} | {' | '.join(cells)} |", file=f)


def cross(rep, a, kinds_of, modes, ways, past=()):
    """Send frames of each kind through each mode and way, and count those behind the
    hook. They are from a packet socket, to an address that nobody has."""
    with Rig() as r:
        ends = {"in": (Sender(r.node, r.pod.host), r.pod, "eth0"),
                "out": (Sender(r.pod, "eth0"), r.node, r.pod.host)}
        for mode in modes:
            natra = Natra(r.pod, "--fast-pass", "free", "--attach-mode",
                          mode).attach(CAP, CAP)
            for way in ways:
                sender, *to = ends[way]
                for name, make in kinds_of(mode).items():
                    types = TYPE_MANY if name == MANY else ARRIVE_AS + TYPES
                    rep.measure(f"{mode} {way}: {name}", frames_through, rep, a, mode,
                                way, name, frames(sender.plain, make),
                                [Taken(*to, t) for t in types],
                                sum(len(make(n)) for n in range(8)) / 8, name in past)
            natra.detach()


def frames_through(rep, a, mode, way, name, send, taken, size, past):
    seconds_of(send, a.settle)
    for t in taken:
        t.count()
    begin = time.monotonic()
    offered = seconds_of(send, a.seconds)
    passed = sum(t.count() for t in taken) * size * 8 / (time.monotonic() - begin)
    verdict(rep, a, mode, way, name, offered * 8, passed, past)


def headers(rep, a):
    modes = Natra.modes()
    cross(rep, a, lambda _: HEADERS, modes if a.table else modes[:1],
          WAYS if a.table else ["out"])


def datagrams(r, a, ns, *options, ways=WAYS):
    """Return {way: (bit/s offered, bit/s received)} of datagrams into and out of the pod,
    whose eth0 is in ns."""
    ends = {"in": (r.client, r.pod.ip, ns), "out": (ns, r.client.ip, r.client)}
    sinks, senders, meters = [], {}, {}
    for way in ways:
        src, ip, dst = ends[way]
        # A port that is closed would answer each datagram.
        with dst:
            sinks.append(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        sinks[-1].bind(("", 7000))
        meters[way] = Meter(dst, ETH_IPV4_UDP)
        senders[way] = src, r.load(src, "udp-send", ip, 7000, "--rate", OFFERED,
                                   "--size", len(BODY), *options)
    r.wait_flow(*meters.values())
    time.sleep(a.settle)
    rates = wire_rates(list(meters.values()), a.seconds)
    offered = [r.load_end(p, src, now=True)["sent"] for src, p in senders.values()]
    for s in sinks:
        s.close()
    return dict(zip(ways, zip(offered, rates)))


# How often the rate passes as many small flows.
FAST_PASSES = {"free": 10, "strict": 1}


def ports(r, rep, a, mode, fast_pass, ways):
    rates = datagrams(r, a, r.pod, "--ports", 2000, ways=ways)
    for way, rate in rates.items():
        verdict(rep, a, mode, way, f"{fast_pass}: one heavy flow from 2000 ports", *rate,
                past=fast_pass == "free", times=FAST_PASSES[fast_pass])
    if fast_pass == "free":     # each connect() gives the socket's packets another hash
        rate, = datagrams(r, a, r.pod, "--reconnect", ways=["out"]).values()
        verdict(rep, a, mode, "out", "free: connect() before each datagram", *rate)


def connections(r, rep, a, mode, fast_pass, ways):
    for way in ways:
        src, dst = (r.pod, r.client) if way == "out" else (r.client, r.pod)
        meter = Meter(dst)
        p = r.load(dst, "http", src.ip, 80, "/file", "--rps",
                   OFFERED / 8 / 53000, "--seconds", a.settle + a.seconds + 1)
        r.wait_flow(meter)
        time.sleep(a.settle)
        verdict(rep, a, mode, way, f"{fast_pass}: connections of 50 kB", OFFERED,
                wire_rates([meter], a.seconds)[0], past=fast_pass == "free",
                times=FAST_PASSES[fast_pass])
        r.stop([p])


def flows(rep, a):
    modes = Natra.modes() if a.table else Natra.modes()[:1]
    ways = WAYS if a.table else ["out"]
    for fast_pass in FAST_PASSES if a.table else ("free", "strict"):
        for mode in modes:
            with Rig() as r:
                for pod in (r.pod, r.client):
                    r.nginx(size=50000, pod=pod)
                Natra(r.pod, "--fast-pass", fast_pass, "--attach-mode",
                      mode).attach(CAP, CAP)
                for cell in (ports, connections):
                    rep.measure(f"{mode}, {fast_pass}: {cell.__name__}", cell, r, rep, a,
                                mode, fast_pass, ways)
                Natra(r.client).attach(CAP, CAP)
                keys = Counter(k for k in hash_keys() if any(k))
    # Egress, ingress on the host side, and in the podside modes its backstop.
    rep.equal("places that have the keys of each of two pods", sorted(keys.values()),
              [2 if modes[-1].endswith("hostside") else 3, 3])


def hash_keys():
    """Yield the keys of the hash of each of this script's slots: behind them are the
    owner, the number of the class, and what is reserved."""
    for path in Path(BPFFS).glob("natra/**/configs"):
        for e in bpftool("map", "dump", "pinned", str(path)):
            value = bytes(int(b, 16) for b in e["value"])
            yield value[-HASH_KEY_BYTES - BEHIND_KEYS:-BEHIND_KEYS]


TENANT_DOES = ("nothing", "replace_qdisc", "change_mtu", "down_and_up",
               "delete_clsact", "accept_by_filter", "accept_by_tcx", "rename", "move")
# Hostside modes have nothing in the pod that a tenant could change.
HOSTSIDE_DOES = ("nothing", "move")
# Ingress is judged on the host side as well.
GETS_PAST = {"clsact-podside": ("delete_clsact", "accept_by_filter", "accept_by_tcx",
                                "move"),
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
        self.run("tc", "qdisc", "del", "dev", "eth0", "clsact", check=False)
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
    modes = Natra.modes()
    for mode in modes:
        does = [w for w in TENANT_DOES if
                (a.table or mode.endswith("podside") or w in HOSTSIDE_DOES) and
                (w != "accept_by_tcx" or "tcx-podside" in modes)]
        past = GETS_PAST.get(mode, ())
        for group in [[w for w in does if w not in past],
                      *([w] for w in does if w in past)]:
            with Rig() as r:
                tenant = Tenant(r)
                Natra(r.pod, "--attach-mode", mode).attach(CAP, CAP)
                for what in group:
                    rep.measure(what, undone, r, rep, a, mode, what,
                                getattr(tenant, what)(), ["out"] if what in past else ())
                tenant.close()


def undone(r, rep, a, mode, what, ns, past):
    for way, rates in datagrams(r, a, ns).items():
        verdict(rep, a, mode, way, what.replace("_", " "), *rates, past=way in past)


TWIN = "02:77:00:00:77:77"


class Stacked(Rig):
    """A pod and a client that are macvlans of one parent."""

    def __init__(self):
        [(self.pod, self.client)] = Wiring("macvlan", [1500]).pairs


def sibling(rep, a):
    """Test a pod whose eth0 is a macvlan: with CAP_NET_ADMIN it makes another one of the
    same parent, which natra does not know."""
    r = Stacked()
    pod, client = r.pod, r.client
    for mode in (m for m in Natra.modes() if m.endswith("podside")):
        natra = Natra(pod, "--attach-mode", mode).attach(CAP, CAP)
        rep.measure(mode, undone, r, rep, a, mode, "a macvlan", pod, ())
        pod.run("ip", "link", "add", "link", "eth0", "name", "twin0", "address", TWIN,
                "type", "macvlan", "mode", "bridge")
        pod.run("ip", "link", "set", "twin0", "up")
        pod.run("ip", "route", "replace", f"{client.ip}/32", "dev", "twin0")
        client.run("ip", "neigh", "replace", pod.ip, "lladdr", TWIN, "dev", "eth0", "nud",
                   "permanent")
        rep.measure(f"{mode}: twin", undone, r, rep, a, mode, "another macvlan", pod, WAYS)
        client.run("ip", "neigh", "del", pod.ip, "dev", "eth0")
        pod.run("ip", "link", "del", "twin0")
        natra.detach()
    for ns in (pod, client):
        sh("ip", "netns", "del", ns.name)


def ifb(rep, a):
    """Test a pod that sends through an ifb: with CAP_NET_ADMIN its packets get a flag
    there with which the host side of a veth leaves out its hooks, once. An action that
    sees them again on the way out would take it off."""
    for mode in Natra.modes():
        with Rig() as r:
            lim = Natra(r.pod, "--attach-mode", mode, "--fast-pass", "strict").attach(None, CAP)
            # A pod can do this, but not load the modules by their names.
            for module in ("ifb", "cls_u32", "act_mirred", "act_skbedit"):
                sh("modprobe", module, check=False)
            r.pod.run("ip", "link", "add", "ifb0", "up", "type", "ifb")
            r.pod.run("tc", "qdisc", "add", "dev", "eth0", "clsact", check=False)
            try:
                r.pod.run("tc", "filter", "add", "dev", "eth0", "egress", "prio", "5",
                          "protocol", "all", "u32", "match", "mark", "0", "0xffffffff",
                          "action", "skbedit", "mark", "1", "pipe", "action", "mirred",
                          "egress", "redirect", "dev", "ifb0")
            except RuntimeError as e:
                return rep.shown("ifb", f"this kernel lacks what it needs: {e}")
            rep.measure(mode, through_ifb, r, rep, a, mode, lim)


def through_ifb(r, rep, a, mode, lim):
    offered, got = datagrams(r, a, r.pod, ways=["out"])["out"]
    verdict(rep, a, mode, "out", "through an ifb", offered, got, past=mode.endswith("hostside"))
    rep.least("  of what was sent natra has judged", 8 * total(lim.stats()["egress"]) /
              (offered * a.seconds), int(mode.endswith("podside")))


def duplicate(rep, a):
    """Test a pod that has netem repeat its packets: with CAP_NET_ADMIN it can have any
    qdisc, and these are behind the hook on its own side."""
    sh("modprobe", "sch_netem", check=False)
    for mode in Natra.modes():
        with Rig() as r:
            Natra(r.pod, "--attach-mode", mode, "--fast-pass", "strict").attach(None, CAP)
            try:
                r.pod.run("tc", "qdisc", "replace", "dev", "eth0", "root", "netem",
                          "duplicate", "100%", "limit", "10000")
            except RuntimeError as e:
                return rep.shown("duplicate", f"this kernel lacks what it needs: {e}")
            rep.measure(mode, repeated, r, rep, a, mode)


def repeated(r, rep, a, mode):
    verdict(rep, a, mode, "out", "repeated by netem",
            *datagrams(r, a, r.pod, ways=["out"])["out"], past=mode.endswith("podside"))


def bypass(rep, a):
    """Test what a pod can do with CAP_NET_RAW, which most runtimes give."""
    with Rig() as r:
        frame = routed(r)
        sender, node = Sender(r.pod, "eth0"), Sender(r.node, r.pod.host)
        sender.bypass_qdisc(True)
        xsk = XskSender(r.pod, "eth0", frame)
        ways = {"around the qdisc layer": lambda: sender.plain.send(frame),
                "by AF_XDP": xsk.send}
        for mode in Natra.modes():
            past = mode.endswith("podside")
            natra = Natra(r.pod, "--attach-mode", mode).attach(CAP, CAP)
            meter = r.out_of(header=ETH_IPV4_UDP)
            for way, send in ways.items():
                seconds_of(send, a.settle)
                rep.measure(f"{mode}: {way}", around, rep, a, mode, way, meter, send,
                            past)
            what, make = "packet socket", HEADERS["ICMP echo ids"]
            rep.measure(f"{mode}: {what}", frames_through, rep, a, mode, "in", what,
                        frames(node.plain, make), [Taken(r.pod, "eth0", ETH_P_ALL)],
                        len(make(0)), False)
            natra.detach()


def around(rep, a, mode, what, meter, send, past):
    begin, before = meter.read()
    offered = seconds_of(send, a.seconds)
    end, after = meter.read()
    verdict(rep, a, mode, "out", what, offered * 8, (after - before) * 8 / (end - begin),
            past)


def routed(r):
    """Return a frame with a datagram from the pod to the client, as the pod would send
    it."""
    src, dst = (bytes(map(int, x.ip.split("."))) for x in (r.pod, r.client))
    macs = bytes.fromhex((r.pod.host_mac + r.pod.mac).replace(":", ""))
    return macs + eth(0x800, ip4(17, udp(BODY), src=src, dst=dst))[len(macs):]


def ethertypes(rep, a):
    first = Natra.modes()[0]

    def kinds(mode):
        all_ = a.table or mode == first
        found = {f"EtherType {t:#06x}": lambda _, t=t: eth(t, BODY)
                 for t in (TYPES if all_ else TYPES[:1])}
        if a.table:
            found["link protocols"] = lambda n: LINK[n % len(LINK)]
        if all_:
            found[MANY] = lambda n: eth(TYPE_MANY[n % len(TYPE_MANY)], BODY)
        return found
    cross(rep, a, kinds, Natra.modes(), WAYS,
          past=[MANY])


LINK_OFFERED = 2e6                      # each kind is far under the threshold
# 64 of these frames, of 74 bytes, in a window of 2^30 ns.
LINK_ALLOWED = 64 * 74 * 8 / 1.0737


def link(rep, a):
    """What a link depends on passes uncharged, but not more of it if it is of many kinds, nor
    if it is of many classes of peers."""
    classes = [word for i in LINK_CLASSES
               for word in ("--class", f"c{i}=dscp={i},egress-rate={CAP}")]
    for fast_pass, more in (("strict", classes), ("off", ())):
        with Rig() as r:
            lim = Natra(r.pod, "--fast-pass", fast_pass, *more).attach(None, CAP)
            kinds = itertools.cycle(LINK)
            send = frames(Sender(r.pod, "eth0").plain, lambda _, kinds=kinds: next(kinds))
            rep.measure(fast_pass, uncharged, rep, a, fast_pass, lim, send)


def uncharged(rep, a, what, lim, send):
    def other():
        stats = lim.stats()
        return sum(c["egress"]["other"]["bytes"] for c in (stats, *stats.get("classes", ())))
    seconds_of(send, a.settle, LINK_OFFERED)
    before, begin = other(), time.monotonic()
    seconds_of(send, a.seconds, LINK_OFFERED)
    rate = (other() - before) * 8 / (time.monotonic() - begin)
    rep.near(f"{what}: uncharged of 2000 kbit/s that a link depends on", rate / 1e3,
             LINK_ALLOWED / 1e3, 0.1, " kbit/s")


SEGMENTS_RATE = 6.3e6
GSO_TCPV4 = 1                   # virtio_net.h
FOLLOW_S = 0.005
# With these headers of 134 bytes the wire carries 3.2 times the packet, and for a segment of
# 1 byte 135 times, which no stack sends.
SEGMENT = 60
# The least burst, by which one whole GSO packet may always go.
LEAST_BURST = 65536


def segments(rep, a):
    """Check that headers of segments are charged, and that a packet which would be charged
    as 8 MB is dropped and costs nothing."""
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
    with contextlib.suppress(OSError):  # the hook drops it
        sender.send_gso(packet, len(small), 1, GSO_TCPV4, 16, l4=60)
    crafted = lim.stats()["egress"]["dropped_rate"]
    sender.send_gso(packet, len(small), SEGMENT, GSO_TCPV4, 16, l4=60)
    begin = time.monotonic()
    charged = total(lim.stats()["egress"]) - crafted["bytes"]
    owed_s = (charged - LEAST_BURST) * 8 / SEGMENTS_RATE
    sent = 0
    while time.monotonic() < begin + owed_s + 0.5:
        try:
            sender.plain.send(small)
        except OSError:                 # the hook dropped it
            pass
        sent += 1
        time.sleep(max(0, begin + sent * FOLLOW_S - time.monotonic()))
    refused = lim.stats()["egress"]["dropped_rate"]["packets"] - crafted["packets"]
    lim.detach()
    rep.equal(f"{mode}: segments of 1 byte, dropped as", (crafted["packets"], crafted["bytes"]),
              (1, len(packet)))
    rep.near(f"{mode}: bytes charged for 60 kB", charged,
             60000 / SEGMENT * (SEGMENT + len(small)), 0.02)
    rep.near(f"{mode}: s until the next packet of the flow", refused * FOLLOW_S, owed_s, 0.15)


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
        # The bound is the elapsed time and the burst, 0.5 s of the rate; a busy machine
        # reads the counter later than the clock.
        rep.most(f"priority 7, {offered * 8 / 1e6:.0f} offered: in s of the rate",
                 (after - before) * 8 / bits(CAP), 1.2 * (0.5 + end - begin))


def main(rep, a):
    parts = {"headers": headers, "flows": flows, "net-admin": net_admin,
             "sibling": sibling, "ifb": ifb, "duplicate": duplicate, "bypass": bypass,
             "ethertypes": ethertypes, "link": link, "segments": segments,
             "priority": priority}
    a.passed = {}
    for name in a.part or parts:
        parts[name](rep, a)
    if a.table:
        write_table(a.table, a.part or parts, a.passed)


if __name__ == "__main__":
    run_script(main,
        option("part", nargs="*"),
        option("--seconds", type=float, default=0.8),
        option("--settle", type=float, default=0.5),
        option("--table", metavar="FILE"))
