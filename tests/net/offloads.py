#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks that no offload gets a pod past its limit, by what is on the wire behind it.

  headers  GSO packets behind many IPv6 extension headers, out of the pod (CAP_NET_RAW)
  gro      small segments behind one long extension header, which GRO joins, into the pod
  wrap     more segments than the kernel's number of them has room for (CAP_NET_ADMIN)
  tunnel   TCP in small segments through VXLAN on a port of its own (CAP_NET_ADMIN)

The limiter stands on the host side. Behind it GSO packets are cut into their segments,
which are counted.
"""
import os
import socket
import struct
import sys
import time

sys.path.insert(0, os.path.dirname(__file__) + "/../harness/python")
from commands import sh
from frames import Sender, checksum
from limiters import Natra, bits
from rig import Rig
from script import option, run_script, some_of

CAP, OVER = "10M", 1.1
PACKET_RATE = 10000
GSO_TCPV4, GSO_TCPV6 = 1, 4             # virtio_net.h
ETH, IP4, IP6, TCP = 14, 20, 40, 20
ENOBUFS = 105                           # what natra drops of a packet socket's


def padded(following, length):
    """Return an IPv6 extension header of options that say nothing."""
    body = b""
    while len(body) < length - 2:
        n = min(length - 2 - len(body), 200)
        n -= length - 2 - len(body) - n == 1
        body += struct.pack("!BB", 1, n - 2) + bytes(n - 2)
    return struct.pack("!BB", following, length // 8 - 1) + body


def tcp(seq, check=0):
    return struct.pack("!HHIIBBHHH", 7001, 7002, seq & 0xffffffff, 1, 0x50, 0x10, 1000,
                       check, 0)


def macs(ns):
    return bytes.fromhex((ns.host_mac + ns.mac).replace(":", ""))


def ipv6(src, dst, following, body):
    ends = b"".join(socket.inet_pton(socket.AF_INET6, x.ip6) for x in (src, dst))
    return macs(src) + b"\x86\xdd" + struct.pack("!IHBB", 6 << 28, len(body), following,
                                                 64) + ends + body


def counted(r):
    """Return the packets and bytes that the node has for the client, which may drop
    some."""
    def read(name):
        with open(f"/sys/class/net/{r.client.host}/statistics/{name}",
                  encoding="ascii") as f:
            return int(f.read())
    return read("tx_packets") + read("tx_dropped"), read("tx_bytes")


def into(ns):
    """Return the segments over IPv6 that have reached a namespace."""
    with ns.netfile("snmp6") as f:
        found = dict(line.split() for line in f)
    return sum(int(found[f"Ip6In{k}Pkts"]) for k in ("NoECT", "ECT0", "ECT1", "CE"))


def send_for(seconds, send, pause):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            send()
        except OSError as e:
            if e.errno != ENOBUFS:
                raise
        time.sleep(pause)


def measured(rep, a, what, send, pause, read, unit, limit):
    """Send, and check what read() counts, in units of so many bits (or packets)."""
    send_for(a.settle, send, pause)
    before, begin = read(), time.monotonic()
    send_for(a.seconds, send, pause)
    rate = (read() - before) * unit / (time.monotonic() - begin)
    rep.most(f"{what}, as a multiple of the limit", rate / limit, OVER)


def headers(r, rep, a):
    chain = padded(60, 8) * 4 + padded(6, 1352) + tcp(1)
    frame = ipv6(r.pod, r.client, 60, chain + bytes(800))
    sender = Sender(r.pod, "eth0")
    measured(rep, a, "extension headers",
             lambda: sender.send_gso(frame, ETH + IP6 + len(chain), 8, GSO_TCPV6, 16,
                                     l4=TCP),
             0.005, lambda: counted(r)[1], 8, bits(CAP))


GRO_HEADER, GRO_PAYLOAD = 1352, 8


def gro(r, rep, a):
    # A network card polls by itself; these have a veth wait for more packets as one does.
    sh("ethtool", "-K", r.client.host, "gro", "on")
    for name, value in (("gro_flush_timeout", 2000000), ("napi_defer_hard_irqs", 50)):
        with open(f"/sys/class/net/{r.client.host}/{name}", "w", encoding="ascii") as f:
            f.write(str(value))
    sender = Sender(r.client, "eth0")
    seq = 1

    def send():
        nonlocal seq
        for _ in range(64):
            pseudo = b"".join(socket.inet_pton(socket.AF_INET6, x.ip6)
                              for x in (r.client, r.pod))
            pseudo += struct.pack("!II", TCP + GRO_PAYLOAD, 6)
            frame = ipv6(r.client, r.pod, 60, padded(6, GRO_HEADER) +
                         tcp(seq, checksum(pseudo) ^ 0xffff) + bytes(GRO_PAYLOAD))
            seq += GRO_PAYLOAD
            # The checksum is left to the device.
            sender.vnet.send(struct.pack("=BBHHHH", 1, 0, 0, 0, ETH + IP6 + GRO_HEADER,
                                         16) + frame)
    size = ETH + IP6 + GRO_HEADER + TCP + GRO_PAYLOAD
    measured(rep, a, "segments that GRO has joined", send, 0.005, lambda: into(r.pod),
             size * 8, bits(CAP))


WRAP_SIZE, IFLA_GSO_IPV4_MAX_SIZE, GSO_MAX = 3, 63, 524280


def wrap(r, rep, a):
    r.pod.run("ip", "link", "set", "eth0", "gso_max_size", str(GSO_MAX))
    with r.pod:
        nl = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
        index = socket.if_nametoindex("eth0")
    nl.send(struct.pack("=IHHIIBxHiII", 40, 16, 5, 1, 0, 0, 0, index, 0, 0) +
            struct.pack("=HHI", 8, IFLA_GSO_IPV4_MAX_SIZE, GSO_MAX))
    if struct.unpack_from("=i", nl.recv(4096), 16)[0]:
        return rep.shown("wrap", "this kernel has no BIG TCP over IPv4")
    # The header of BIG TCP has no length.
    ip = struct.pack("!BBHHHBBH", 0x45, 0, 0, 7, 0, 64, 6, 0) + \
            socket.inet_aton(r.pod.ip) + socket.inet_aton(r.client.ip)
    frame = macs(r.pod) + b"\x08\0" + ip[:10] + struct.pack("!H", checksum(ip)) + \
            ip[12:] + tcp(1) + bytes(65537 * WRAP_SIZE - 1)
    sender = Sender(r.pod, "eth0")
    sender.vnet.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)

    def send():
        sender.send_gso(frame, ETH + IP4 + TCP, WRAP_SIZE, GSO_TCPV4, 16, l4=TCP)
    # The first packet may owe itself.
    send_for(0.1, send, 0.02)
    # So many packets are less than the rate as well.
    measured(rep, a, "segments that wrap", send, 0.02, lambda: counted(r)[0], 1,
             PACKET_RATE)


MSS = 88


def tunnel(r, rep, a):
    for ns, peer, n in ((r.pod, r.client, 1), (r.client, r.pod, 2)):
        try:
            ns.run("ip", "link", "add", "tun7", "type", "vxlan", "id", "42", "dstport",
                   "4790", "remote", peer.ip)
        except RuntimeError as e:
            return rep.shown("tunnel", f"this kernel: {e}")
        ns.run("ip", "addr", "add", f"10.56.0.{n}/24", "dev", "tun7")
        ns.run("ip", "link", "set", "tun7", "up")
    with r.client:
        listener = socket.create_server(("", 5410))
    with r.pod:
        c = socket.socket()
    c.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, MSS)
    c.connect(("10.56.0.2", 5410))
    s, _ = listener.accept()
    c.setblocking(False)
    s.setblocking(False)

    def send():
        for step in (lambda: c.send(bytes(65536)), lambda: s.recv(1 << 20)):
            try:
                step()
            except BlockingIOError:
                pass
    measured(rep, a, f"VXLAN on port 4790, MSS {MSS}", send, 0.002,
             lambda: counted(r)[1], 8, bits(CAP))
    for x in (c, s, listener):
        x.close()
    for ns in (r.pod, r.client):
        ns.run("ip", "link", "del", "tun7")


PARTS = {"headers": headers, "gro": gro, "wrap": wrap, "tunnel": tunnel}


def main(rep, a):
    mode = [m for m in Natra.modes() if m.endswith("hostside")][0]
    for name in a.part:
        with Rig() as r:
            sh("ethtool", "-K", r.client.host, "tso", "off", "gso", "off",
               "tx-udp-segmentation", "off", "tx-udp_tnl-segmentation", "off",
               "tx-udp_tnl-csum-segmentation", "off", check=False)
            r.client.run("ethtool", "-K", "eth0", "tso", "off")
            packets = ["--egress-packet-rate", str(PACKET_RATE)] if name == "wrap" else []
            lim = Natra(r.pod, "--attach-mode", mode, "--fast-pass", "strict", *packets)
            lim.attach(CAP, CAP)
            rep.measure(name, PARTS[name], r, rep, a)
            lim.detach()


if __name__ == "__main__":
    run_script(main, some_of("part", PARTS), option("--seconds", type=float, default=2),
               option("--settle", type=float, default=1.5))
