# SPDX-License-Identifier: BSD-2-Clause
"""Makes rtnetlink requests that iproute2 of Debian 12 cannot: netkit and BIG TCP.

Calls apply to the network namespace of the calling thread (`with ns:`).
"""
import errno
import os
import socket
import struct

# linux/rtnetlink.h, linux/netlink.h
RTM_NEWLINK, RTM_GETLINK, NLMSG_ERROR = 16, 18, 2
REQUEST, ACK, EXCL, CREATE = 1, 4, 0x200, 0x400
HEADER_BYTES, IFINFO_BYTES = 16, 16
# linux/if_link.h
IFLA_IFNAME, IFLA_MTU, IFLA_LINKINFO, IFLA_NET_NS_FD = 3, 4, 18, 28
IFLA_GSO_MAX_SEGS, IFLA_GSO_MAX_SIZE, IFLA_GRO_MAX_SIZE = 40, 41, 58
IFLA_GSO_IPV4_MAX_SIZE, IFLA_GRO_IPV4_MAX_SIZE = 63, 64
INFO_KIND, INFO_DATA = 1, 2
NETKIT_PEER_INFO, NETKIT_MODE = 1, 5
NETKIT_MODES = {"l2": 0, "l3": 1}


def _attr(kind, payload):
    if isinstance(payload, str):
        payload = payload.encode() + b"\0"
    elif isinstance(payload, int):
        payload = struct.pack("=I", payload)
    size = 4 + len(payload)
    return struct.pack("=HH", size, kind) + payload + bytes(-size % 4)


def _request(kind, flags, attrs):
    """Send a request and return the kind and the payload of the answer."""
    body = bytes(IFINFO_BYTES) + attrs
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as s:
        s.send(struct.pack("=IHHII", HEADER_BYTES + len(body), kind,
                           REQUEST | ACK | flags, 1, 0) + body)
        reply = s.recv(65536)
    size, kind = struct.unpack_from("=IH", reply)
    if kind == NLMSG_ERROR:
        error, = struct.unpack_from("=i", reply, HEADER_BYTES)
        if error:
            raise OSError(-error, os.strerror(-error))
    return kind, reply[HEADER_BYTES:size]


def add_netkit(name, mode, mtu, netns_fd):
    """Make a netkit pair whose other end is eth0 in a namespace."""
    peer = bytes(IFINFO_BYTES) + _attr(IFLA_IFNAME, "eth0") + \
        _attr(IFLA_MTU, mtu) + _attr(IFLA_NET_NS_FD, netns_fd)
    info = _attr(INFO_KIND, "netkit") + _attr(
            INFO_DATA, _attr(NETKIT_MODE, NETKIT_MODES[mode]) +
            _attr(NETKIT_PEER_INFO, peer))
    _request(RTM_NEWLINK, EXCL | CREATE, _attr(IFLA_IFNAME, name) +
             _attr(IFLA_MTU, mtu) + _attr(IFLA_LINKINFO, info))


def _link_attrs(name):
    """Return the attributes of a link that are 32-bit numbers, by their type."""
    _, body = _request(RTM_GETLINK, 0, _attr(IFLA_IFNAME, name))
    found, at = {}, IFINFO_BYTES
    while at + 8 <= len(body):
        size, kind = struct.unpack_from("=HH", body, at)
        if size == 8:
            found[kind], = struct.unpack_from("=I", body, at + 4)
        at += max(4, size + -size % 4)
    return found


def gso_max_segs(name):
    return _link_attrs(name)[IFLA_GSO_MAX_SEGS]


def set_gso_max(name, size):
    """Let packets of a device be that large. Return the IP versions for which this
    kernel does it: 6 since 5.19, 4 since 6.3. An older one refuses over 64 kB."""
    wanted = {6: (IFLA_GSO_MAX_SIZE, IFLA_GRO_MAX_SIZE),
              4: (IFLA_GSO_IPV4_MAX_SIZE, IFLA_GRO_IPV4_MAX_SIZE)}
    try:
        _request(RTM_NEWLINK, 0, _attr(IFLA_IFNAME, name) + b"".join(
                _attr(kind, size) for kinds in wanted.values() for kind in kinds))
    except OSError as e:
        if e.errno != errno.EINVAL:
            raise
        return set()
    have = _link_attrs(name)
    return {version for version, kinds in wanted.items()
            if all(have.get(kind) == size for kind in kinds)}
