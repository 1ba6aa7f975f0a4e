#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks that natra counts the bytes on the wire, with packets of known lengths.

Frames are built here and sent by packet sockets, GSO ones with a virtio header; this
file computes by itself what each must cost. Real TCP and UDP GSO transfers are compared
with the interface's counters. Frames go to a MAC address that nobody has, so that
nothing answers them.
"""
import os
import socket
import struct
import sys
import time

sys.path.insert(0, os.path.dirname(__file__) + "/../harness/python")
from commands import sh
from frames import GSO_UDP_L4, Sender, eth, ext6, frag6, ip4, ip6, tcp, udp
from limiters import Natra, total
from meter import Meter
from report import skip
from rig import Rig
from script import MODES, option, run_script

UDP_SEGMENT = 103
GSO_TCPV4, GSO_TCPV6 = 1, 4      # virtio_net.h
COPIES = 3

VLAN, QINQ = (0x8100, 5), (0x88a8, 6)


def jumbo(packet):
    """Return a frame with BIG TCP's header, which is shorter than BIG TCP."""
    return eth(0x86dd, ip6(0, struct.pack("!BBBBI", 6, 0, 0xc2, 4, len(packet) + 8) +
                           packet, len_=0))


PLAIN = {
        "IPv4 UDP, 1 byte": eth(0x800, ip4(17, udp(b"x"))),
        "IPv4 UDP, full": eth(0x800, ip4(17, udp(bytes(1472)))),
        "IPv4 with options": eth(0x800, ip4(17, udp(bytes(99)), 0, bytes(8))),
        "IPv4, a header and no more": eth(0x800, ip4(253, b"")),
        "ICMP": eth(0x800, ip4(1, b"\x08\0\0\0" + bytes(60))),
        "SCTP": eth(0x800, ip4(132, struct.pack("!HHII", 1, 2, 3, 4) +
                               bytes(200))),
        "UDP-Lite": eth(0x800, ip4(136, udp(bytes(100)))),
        "GRE": eth(0x800, ip4(47, bytes(90))),
        "IPv4 fragment, first": eth(0x800, ip4(17, udp(bytes(1400)), 0x2000)),
        "IPv4 fragment, last": eth(0x800, ip4(17, bytes(333), 176)),
        "IPv6 UDP": eth(0x86dd, ip6(17, udp(bytes(500)))),
        "IPv6, a header and no more": eth(0x86dd, ip6(59, b"")),
        "IPv6 hop-by-hop, destination, UDP":
                eth(0x86dd, ip6(0, ext6(60) + ext6(17) + udp(bytes(300)))),
        "IPv6 with four extension headers":
                eth(0x86dd, ip6(0, ext6(60) + ext6(60) + ext6(60) + ext6(17) +
                                udp(bytes(300)))),
        "IPv6 with six extension headers":
                eth(0x86dd, ip6(0, ext6(60) * 5 + ext6(17) +
                                udp(bytes(300)))),
        "IPv6 fragment, first":
                eth(0x86dd, ip6(44, frag6(17, 0, 1) + udp(bytes(1224)))),
        "IPv6 fragment, last": eth(0x86dd, ip6(44, frag6(17, 154, 0) +
                                               bytes(77))),
        "ICMPv6": eth(0x86dd, ip6(58, b"\x80\0\0\0" + bytes(60))),
        "VLAN": eth(0x800, ip4(17, udp(bytes(700))), VLAN),
        "VLAN in VLAN": eth(0x800, ip4(17, udp(bytes(700))), QINQ, VLAN),
        "VLAN, IPv6": eth(0x86dd, ip6(6, tcp(bytes(700))), VLAN),
        "for local experiments": eth(0x88b5, bytes(600)),
        "MPLS": eth(0x8847, bytes(600)),
        "PPPoE in VLAN in VLAN": eth(0x8864, bytes(600), QINQ, VLAN),
}
OTHER = {
        "ARP": eth(0x806, bytes(28)),
        "LLDP": eth(0x88cc, bytes(50)),
        "ARP in a VLAN": eth(0x806, bytes(28), VLAN),
}
GSO = {         # frame, headers, segment size, type, checksum offset
        "GSO TCP, IPv4": (eth(0x800, ip4(6, tcp(bytes(40000)))),
                          14 + 20 + 32, 1448, GSO_TCPV4, 16),
        "GSO TCP, 2 segments": (eth(0x800, ip4(6, tcp(bytes(1449)))),
                                14 + 20 + 32, 1448, GSO_TCPV4, 16),
        "GSO TCP, small segments": (eth(0x800, ip4(6, tcp(bytes(20000)))),
                                    14 + 20 + 32, 100, GSO_TCPV4, 16),
        "GSO TCP, IPv6": (eth(0x86dd, ip6(6, tcp(bytes(40000)))),
                          14 + 40 + 32, 1428, GSO_TCPV6, 16),
        "GSO TCP, IPv6 with extension header":
                (eth(0x86dd, ip6(60, ext6(6) + tcp(bytes(30000)))),
                 14 + 40 + 8 + 32, 1420, GSO_TCPV6, 16),
        "GSO TCP in a VLAN": (eth(0x800, ip4(6, tcp(bytes(40000))), VLAN),
                              18 + 20 + 32, 1448, GSO_TCPV4, 16),
        "GSO TCP, VLAN in VLAN":
                (eth(0x800, ip4(6, tcp(bytes(40000))), QINQ, VLAN),
                 22 + 20 + 32, 1448, GSO_TCPV4, 16),
        "GSO TCP, IPv6 with four extension headers":
                (eth(0x86dd, ip6(60, ext6(60) * 3 + ext6(6) + tcp(bytes(8000)))),
                 14 + 40 + 32 + 32, 40, GSO_TCPV6, 16),
        "GSO TCP, IPv6, what looks like BIG TCP": (jumbo(tcp(bytes(8000))),
                                                   14 + 40 + 8 + 32, 40, GSO_TCPV6, 16),
        "GSO TCP, more fragments": (eth(0x800, ip4(6, tcp(bytes(8000)), 0x2000)),
                                    14 + 20 + 32, 40, GSO_TCPV4, 16),
        "GSO TCP, an offset": (eth(0x800, ip4(6, tcp(bytes(8000)), 16)),
                               14 + 20 + 32, 40, GSO_TCPV4, 16),
        "GSO UDP, IPv4": (eth(0x800, ip4(17, udp(bytes(30000)))),
                          14 + 20 + 8, 1000, GSO_UDP_L4, 6),
        "GSO UDP, IPv6": (eth(0x86dd, ip6(17, udp(bytes(30000)))),
                          14 + 40 + 8, 1000, GSO_UDP_L4, 6),
}
# The parser does not find the headers of these.
HIDDEN = {
        "GSO TCP, IPv6 with five extension headers":
                (eth(0x86dd, ip6(60, ext6(60) * 4 + ext6(6) + tcp(bytes(8000)))),
                 14 + 40 + 40 + 32, 2000, GSO_TCPV6, 16),
        "GSO UDP, IPv6 with eight extension headers":
                (eth(0x86dd, ip6(60, ext6(60) * 7 + ext6(17) + udp(bytes(8000)))),
                 14 + 40 + 64 + 8, 2000, GSO_UDP_L4, 6),
        "GSO TCP, seven tags": (eth(0x800, ip4(6, tcp(bytes(8000))), *[VLAN] * 7),
                                14 + 28 + 20 + 32, 2000, GSO_TCPV4, 16),
}
# The kernel makes fragments of these datagrams: each has a copy of what is in front of
# layer 4, and over IPv6 a header of its own.
FRAGMENTED = {  # frame, layer 2 and 3, headers of a fragment
        f"GSO UDP, IPv{version}, fragments of {size}": (frame, before, header, size)
        for version, frame, before, header in (
                (4, eth(0x800, ip4(17, udp(bytes(3000)))), 34, 34),
                (6, eth(0x86dd, ip6(17, udp(bytes(3000)))), 54, 62))
        for size in (56, 1400)
}
GSO_UDP = 3                     # virtio_net.h


def settled(lim, direction):
    """Return the direction's counters, once nothing changes them any more."""
    last = lim.stats()[direction]
    end = time.monotonic() + 3
    while time.monotonic() < end:
        time.sleep(0.05)
        now = lim.stats()[direction]
        if now == last:
            break
        last = now
    return last


class Expect:
    """Compares what natra counted of a few packets with what they cost.

    Sent packets are counted when send() returns, or a softirq later, so waiting ends
    when the figure is as wanted. Bytes that are counted beyond it show in the next
    packet's figure.
    """

    def __init__(self, rep, lim, what, direction):
        self.rep, self.lim, self.what = rep, lim, what
        self.direction = direction
        self.last = self._read()

    def _read(self):
        d = self.lim.stats()[self.direction]
        return total(d) - d["other"]["bytes"], d["other"]["bytes"]

    def _sent(self, want, send, args):
        for _ in range(COPIES):
            send(*args)
        end = time.monotonic() + 1
        while True:
            now = self._read()
            got = tuple(b - a for a, b in zip(self.last, now))
            if got == want or time.monotonic() > end:
                break
        self.last = now
        return got

    def packets(self, name, wire, send, *args, other=0):
        want = (wire * COPIES, other * COPIES)
        self.rep.equal(f"{self.what} {self.direction} {name}: bytes, other",
                       self._sent(want, send, args), want)

    def hidden(self, name, wire, send, *args):
        self.rep.least(f"{self.what} {self.direction} {name}: bytes",
                       self._sent(None, send, args)[0], wire * COPIES)


def frames(rep, lim, what, direction, sender):
    expect = Expect(rep, lim, what, direction)
    for name, frame in PLAIN.items():
        expect.packets(name, len(frame), sender.plain.send, frame)
    for name, frame in OTHER.items():
        expect.packets(name, 0, sender.plain.send, frame, other=len(frame))
    for check, packets in (expect.packets, GSO), (expect.hidden, HIDDEN):
        for name, (frame, hdr, size, kind, csum) in packets.items():
            payload = len(frame) - hdr
            wire = payload + -(-payload // size) * hdr
            try:
                check(name, wire, sender.send_gso, frame, hdr, size, kind, csum)
            except OSError as e:
                rep.shown(f"{what} {direction} {name}", f"this kernel: {e}")
    for name, (frame, before, header, size) in FRAGMENTED.items():
        payload = len(frame) - before
        expect.packets(name, payload + -(-payload // size) * header, sender.send_gso,
                       frame, before + 8, size, GSO_UDP, 6, 8)


def sockets(r, rep, lim, what):
    """Send through real sockets in both directions: UDP GSO, fragments and TCP."""
    for direction, src, dst in (("ingress", r.client, r.pod),
                                ("egress", r.pod, r.client)):
        r.load(dst, "udp-sink", 5300)
        r.wait_port(dst, 5300, "udp")
        with src:
            s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        s.connect((dst.ip, 5300))
        expect = Expect(rep, lim, what, direction)
        # These are 5008 bytes in four fragments.
        expect.packets("socket, fragments", 5008 + 4 * 34, s.send,
                       bytes(5000))
        s.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, 1000)
        expect.packets("socket, UDP GSO", 30500 + 31 * 42, s.send,
                       bytes(30500))
        for version in (4, 6):
            stream(r, rep, lim, what, direction, src, dst, version)
        r.stop(None)


STREAM, TUNNEL_STREAM = 4000000, 1000000
# A stream's handshake and the resolution of its addresses carry no data and may take
# this many bytes.
TUNNEL_SLACK = 2000


def transfer(c, listener, size=STREAM):
    """Send that many bytes from one socket to the other, and close both."""
    s, _ = listener.accept()
    c.setblocking(False)
    left, got = size, 0
    while got < size:
        try:
            left -= c.send(bytes(min(left, 100000))) if left else 0
        except BlockingIOError:
            pass
        got += len(s.recv(1 << 20))
    for x in (c, s, listener):
        x.close()


# Each tunnel has the outer IP version, the options of `ip link`, and the bytes between
# the Ethernet header and the inner IP header.
TUNNELS = {
        "VXLAN": ("4", "type vxlan id 42 dstport 4789 dev eth0", 20 + 30),
        "VXLAN over IPv6": ("6", "type vxlan id 43 dstport 8472 dev eth0 "
                            "udp6zerocsumtx udp6zerocsumrx", 40 + 30),
        "Geneve": ("4", "type geneve id 44", 20 + 30),
        "IP in IP": ("4", "type ipip", 20),
        "GRE": ("4", "type gre", 20 + 4),
        "GRE with a key and frames": ("4", "type gretap key 5", 20 + 8 + 14),
        "IP in IPv6": ("6", "type ip6tnl mode any encaplimit none", 40),
}
INNER = {"client": "10.56.0.1", "pod": "10.56.0.2"}
# A packet to either end has one MPLS label.
LABEL, LABEL_LEN = {"client": "101", "pod": "102"}, 4


def add_tunnel(ns, peer, version, options, inner):
    """Return False if this kernel has no such device."""
    kind = options.split()[1]
    ends = ["remote", peer.ip6 if version == "6" else peer.ip]
    if kind not in ("vxlan", "geneve"):
        ends += ["local", ns.ip6 if version == "6" else ns.ip]
    try:
        ns.run("ip", "link", "add", "tun7", *options.split(), *ends)
    except RuntimeError:
        return False
    ns.run("ip", "addr", "add", f"{inner}/24", "dev", "tun7")
    ns.run("ip", "link", "set", "tun7", "up")
    return True


def add_mpls(r):
    """Return False if this kernel cannot put a label on the packets of a route."""
    for module in ("mpls_router", "mpls_iptunnel", "mpls_gso"):
        sh("modprobe", module, check=False)     # may be built in
    r.node.sysctl("net.mpls.platform_labels", "200")
    try:
        for end, ns in (("client", r.client), ("pod", r.pod)):
            other = "pod" if end == "client" else "client"
            ns.sysctl("net.mpls.platform_labels", "200")
            ns.sysctl("net.mpls.conf.eth0.input", "1")
            ns.run("ip", "addr", "add", INNER[end], "dev", "lo")
            ns.run("ip", "-f", "mpls", "route", "add", LABEL[end], "dev", "lo")
            ns.run("ip", "route", "add", INNER[other], "encap", "mpls", LABEL[other],
                   "via", "inet", ns.gw, "dev", "eth0", "src", INNER[end])
            r.node.sysctl(f"net.mpls.conf.{ns.host}.input", "1")
            r.node.run("ip", "-f", "mpls", "route", "add", LABEL[end], "as",
                       LABEL[end], "via", "inet", ns.ip, "dev", ns.host)
    except RuntimeError:
        return False
    return True


def segments_in(ns):
    return sum(n for k, n in Meter(ns).counters().items()
               if k in ("InNoECTPkts", "InECT0Pkts", "InECT1Pkts", "InCEPkts"))


def tunnels(r, rep, lim, what, segments):
    """Send TCP through the kernel's tunnels in both directions, with these sizes of
    segments (None: as large as they get). Return the types of devices that this kernel
    lacks."""
    missing = []
    ways = (("egress", r.pod, r.client, "client"), ("ingress", r.client, r.pod, "pod"))
    cases = [(*way, mss) for way in ways for mss in segments]
    for name, (version, options, overhead) in TUNNELS.items():
        ends = (("client", r.client, r.pod), ("pod", r.pod, r.client))
        if not all(add_tunnel(ns, peer, version, options, INNER[end])
                   for end, ns, peer in ends):
            missing.append(options.split()[1])
            rep.shown(f"{what} {name}", f"no {missing[-1]} on this kernel")
        else:
            for direction, src, dst, to, mss in cases:
                tunnelled(rep, lim, f"{what} {direction} {name}, MSS {mss}",
                          direction, src, dst, INNER[to], overhead, mss)
        for _, ns, _ in ends:
            ns.run("ip", "link", "del", "tun7", check=False)
    if not add_mpls(r):
        missing.append("mpls")
        rep.shown(f"{what} MPLS", "no mpls on this kernel")
    else:
        for direction, src, dst, to, mss in cases:
            tunnelled(rep, lim, f"{what} {direction} MPLS, MSS {mss}", direction,
                      src, dst, INNER[to], LABEL_LEN, mss, ip_headers=1)
    return missing


def tunnelled(rep, lim, what, direction, src, dst, address, overhead, mss,
              ip_headers=2):
    with dst:
        listener = socket.create_server(("", 5410))
    with src:
        c = socket.socket(socket.AF_INET)
    if mss:
        c.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, mss)
    before = total(settled(lim, direction)), segments_in(dst)
    c.connect((address, 5410))
    transfer(c, listener, TUNNEL_STREAM)
    bytes_ = total(settled(lim, direction)) - before[0]
    # ip_rcv counts each segment once for each of its IP headers.
    segments = (segments_in(dst) - before[1]) / ip_headers
    want = TUNNEL_STREAM + segments * (14 + overhead + 20 + 32)
    rep.near(f"{what}, {segments:.0f} segments", bytes_, want,
             TUNNEL_SLACK / want)


def stream(r, rep, lim, what, direction, src, dst, version):
    """Send 4 MB of TCP, with data one way and acknowledgements the other."""
    header = 14 + (20 if version == 4 else 40) + 32
    ms = {"ingress": r.into(header=header),
          "egress": r.out_of(header=header)}
    before = {d: (m.read()[1], total(settled(lim, d)))
              for d, m in ms.items()}
    with dst:
        listener = socket.create_server(
                ("::" if version == 6 else "", 5400 + version),
                family=socket.AF_INET6 if version == 6
                else socket.AF_INET)
    with src:
        c = socket.socket(socket.AF_INET6 if version == 6
                          else socket.AF_INET)
    c.connect((dst.ip if version == 4 else dst.ip6, 5400 + version))
    transfer(c, listener)
    time.sleep(0.3)
    for d, m in ms.items():
        rep.equal(f"{what} TCP over IPv{version}, {direction} data, "
                  f"{d} bytes", total(settled(lim, d)) - before[d][1],
                  m.read()[1] - before[d][0])


def main(rep, a):
    modes = a.mode.split(",") if a.mode else Natra.modes()
    missing = []
    # The headers of small segments are the larger part of what can be missed.
    segments = (200,) if a.quick else (None, 200)
    tunnel_modes = [m for m in modes if m in (modes[0], "tcx-hostside")]
    modes = modes[:1] if a.quick else tunnel_modes if a.tunnels else modes
    with Rig() as r:
        time.sleep(2.5)         # the kernel's multicast reports are out by then
        for mode in modes:
            lim = Natra(r.pod, "--attach-mode", mode).attach("10G", "10G")
            if not a.tunnels:
                frames(rep, lim, mode, "ingress", Sender(r.node, r.pod.host))
                frames(rep, lim, mode, "egress", Sender(r.pod, "eth0"))
                sockets(r, rep, lim, mode)
            if mode in tunnel_modes:
                missing = tunnels(r, rep, lim, mode, segments)
            lim.detach()
    if a.tunnels and missing and not rep.failed:
        skip(f"tunnels of type {', '.join(missing)}")


if __name__ == "__main__":
    run_script(main, MODES,
        option("--quick", action="store_true",
               help="one mode, and tunnels with small segments"),
        option("--tunnels", action="store_true",
               help="only those, and skip where the kernel lacks some"))
