# SPDX-License-Identifier: BSD-2-Clause
"""Puts frames together byte by byte and sends them as they are by packet sockets.

The frames go to a MAC address that nobody has, so that nothing answers them.
"""
import os
import socket
import struct

SOL_PACKET, PACKET_STATISTICS = 263, 6
PACKET_VNET_HDR, PACKET_QDISC_BYPASS = 15, 20
GSO_UDP_L4 = 5                  # virtio_net.h
MACS = bytes.fromhex("0277ffffffff" "0277fffffffe")
SRC4, DST4 = bytes([10, 99, 0, 1]), bytes([10, 99, 0, 2])
SRC6, DST6 = bytes(15) + b"\1", bytes(15) + b"\2"


def checksum(data):
    if len(data) % 2:
        data += b"\0"
    n = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while n >> 16:
        n = (n & 0xffff) + (n >> 16)
    return ~n & 0xffff


def eth(proto, payload, *tags):
    """Return an Ethernet frame. Each tag is (ethertype, VLAN id), the outer one
    first."""
    vlan = b"".join(struct.pack("!HH", t, v) for t, v in tags)
    return MACS + vlan + struct.pack("!H", proto) + payload


def ip4(proto, payload, frag=0, options=b"", ident=77, src=SRC4, dst=DST4):
    hlen = 20 + len(options)
    h = struct.pack("!BBHHHBBH4s4s", 0x40 | hlen // 4, 0,
                    hlen + len(payload), ident, frag, 64, proto, 0,
                    src, dst) + options
    return h[:10] + struct.pack("!H", checksum(h)) + h[12:] + payload


def ip6(proto, payload, len_=None):
    return struct.pack("!IHBB", 6 << 28, len(payload) if len_ is None else len_, proto,
                       64) + SRC6 + DST6 + payload


def udp(payload):
    return struct.pack("!HHHH", 7001, 7002, 8 + len(payload), 0) + payload


def tcp(payload):
    """Return a segment with ACK and PSH; its header has 32 bytes with the timestamp
    option."""
    return struct.pack("!HHIIBBHHH", 7001, 7002, 1, 1, 0x80, 0x18, 1000, 0,
                       0) + b"\1\1\x08\x0a" + bytes(8) + payload


def ext6(following, options=4):
    """Return an IPv6 extension header of 8 bytes, whose option is a PadN."""
    return struct.pack("!BBBB", following, 0, 1, options) + bytes(4)


def frag6(following, offset, more):
    return struct.pack("!BBHI", following, 0, offset << 3 | more, 7)


class Taken:
    """Counts frames of an EtherType that get past the ingress hooks of an
    interface."""

    def __init__(self, ns, ifname, proto):
        with ns:
            self.sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW,
                                      socket.htons(proto))
            self.sock.bind((ifname, proto))
        # Nobody reads, and what finds no room is counted.
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 0)
        self.count()

    def count(self):
        """Return how many frames came since the last call, whether read or not."""
        return struct.unpack("=II", self.sock.getsockopt(
                SOL_PACKET, PACKET_STATISTICS, 8))[0]


class Sender:
    """Sends frames from packet sockets on one interface, in front of one hook."""

    def __init__(self, ns, ifname):
        with ns:
            self.plain = socket.socket(socket.AF_PACKET,
                                       socket.SOCK_RAW, 0)
            self.vnet = socket.socket(socket.AF_PACKET,
                                      socket.SOCK_RAW, 0)
            self.vnet.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
            for s in (self.plain, self.vnet):
                s.bind((ifname, 0))

    def bypass_qdisc(self, on):
        """Set whether frames of `plain` go straight to the driver."""
        self.plain.setsockopt(SOL_PACKET, PACKET_QDISC_BYPASS, on)

    def send_gso(self, frame, hdr, size, kind, csum, l4=None):
        l4 = l4 or (32 if kind != GSO_UDP_L4 else 8)
        self.vnet.send(struct.pack("=BBHHHH", 1, kind, hdr, size,
                                   hdr - l4, csum) + frame)

    def send_nonlinear(self, frame):
        """Send a frame of which no more is linear than the device's header and its
        alignment, 16 bytes. The virtio header says how much is linear, and the kernel
        follows it only for what is larger than a page."""
        assert len(frame) > os.sysconf("SC_PAGESIZE")
        self.vnet.send(struct.pack("=BBHHHH", 0, 0, 0, 0, 0, 0) + frame)
