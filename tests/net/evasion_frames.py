# SPDX-License-Identifier: BSD-2-Clause
"""Frames by which evasion.py tries to get past a limit."""
import struct

from frames import eth, ext6, frag6, ip4, ip6, udp

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
        # natra looks behind two, and the kernel takes one off on the way in.
        "four VLAN tags": lambda n: eth(
                0x800, ip4(17, struct.pack("!I", n) + BODY), vlan(0x88a8, n),
                vlan(0x8100, n >> 12), vlan(0x8100, n >> 20), vlan(0x8100, n >> 8)),
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


# The types are one for local experiments, MPLS, and a session of PPPoE.
TYPES = (0x88b5, 0x8847, 0x8864)
# So many that none has the threshold of a heavy flow.
TYPE_MANY, MANY = range(0x9000, 0x9100), "256 EtherTypes"


def discovery(type_, dscp=0):
    frame = bytearray(eth(0x86dd, ip6(58, struct.pack("!BBHI", type_, 0, 0, 0) + bytes(12))))
    frame[14:16] = struct.pack("!H", 6 << 12 | dscp << 6)
    frame[21] = 255                     # the hop limit
    return bytes(frame)


# ARP, LACP, IEEE 802.1X, LLDP, LLC, and solicitations of routers and neighbours, the latter also
# of so many classes.
LINK_CLASSES = range(1, 9)
LINK = (*(eth(type_, bytes(60)) for type_ in (0x806, 0x8809, 0x888e, 0x88cc, 60)),
        discovery(133), *(discovery(135, dscp) for dscp in (0, *LINK_CLASSES)))
# A tag is taken off on the way, so a frame with two arrives as one of a tag.
ARRIVE_AS = (0x800, 0x86dd, 0x8100, 0x88a8, 0x806, 0x8809, 0x888e, 0x88cc, 4)
