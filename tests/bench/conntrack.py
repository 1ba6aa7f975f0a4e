# SPDX-License-Identifier: BSD-2-Clause
"""Times TCP connections by the events of the node's connection tracking: when SYN,
SYN-ACK and the first FIN passed.

Linux 6.14 and later stamp each event; on older kernels the time at which an event is
read here stands in for the stamp.
"""
import os
import select
import socket
import struct
import threading
import time

NETLINK_NETFILTER, SOL_NETLINK, ADD_MEMBERSHIP = 12, 270, 1
GROUP_NEW, GROUP_UPDATE = 1, 2
SUBSYS_CTNETLINK, MSG_NEW = 1, 0
TUPLE_ORIG, PROTOINFO, TIMESTAMP_EVENT = 1, 4, 27
TUPLE_IP, TUPLE_PROTO, V4_DST = 1, 2, 2
PROTO_SPORT, PROTO_DPORT = 2, 3
PROTOINFO_TCP, TCP_STATE = 1, 1
SYN_SENT, SYN_RECV, FIN_WAIT = 1, 2, 4
SYSCTL = "/proc/sys/net/netfilter/nf_conntrack_timestamp"


def attributes(data):
    """Return {type: bytes} of the netlink attributes."""
    found, at = {}, 0
    while at + 4 <= len(data):
        length, kind = struct.unpack_from("=HH", data, at)
        if length < 4:
            break
        found[kind & 0x3fff] = data[at + 4:at + length]
        at += (length + 3) & ~3
    return found


def nested(attrs, *kinds):
    """Return the bytes under a path of types, or b"" if the path ends early."""
    for kind in kinds[:-1]:
        attrs = attributes(attrs.get(kind, b""))
    return attrs.get(kinds[-1], b"")


def parse(message):
    """Return the connection of an event (destination address and port, source port),
    the TCP state it changed to, and the kernel's stamp in ns or None. Return None for
    messages that are no such event."""
    attrs = attributes(message)
    state = nested(attrs, PROTOINFO, PROTOINFO_TCP, TCP_STATE)
    sport = nested(attrs, TUPLE_ORIG, TUPLE_PROTO, PROTO_SPORT)
    dport = nested(attrs, TUPLE_ORIG, TUPLE_PROTO, PROTO_DPORT)
    ip = nested(attrs, TUPLE_ORIG, TUPLE_IP, V4_DST)
    if len(ip) != 4 or len(sport) != 2 or not state:
        return None
    stamp = attrs.get(TIMESTAMP_EVENT)
    return ((socket.inet_ntoa(ip), *struct.unpack("!HH", dport + sport)),
            state[0], struct.unpack("!Q", stamp)[0] if stamp else None)


def messages(data):
    """Yield what follows nfgenmsg in each netlink message about a connection."""
    at = 0
    while at + 20 <= len(data):
        length, kind = struct.unpack_from("=IH", data, at)
        if length < 20 or at + length > len(data):
            break
        if kind == SUBSYS_CTNETLINK << 8 | MSG_NEW:
            yield data[at + 20:at + length]
        at += (length + 3) & ~3


class Connections:
    """Listens in the caller's network namespace until end()."""

    def __init__(self):
        try:
            with open(SYSCTL, "w") as f:
                f.write("1")
        except OSError:
            pass                # no stamps then
        self.stamped = False
        self.times = {}         # connection -> {state: ns}
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW,
                                     NETLINK_NETFILTER)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        # Without an address the kernel takes the socket for its own and sends it nothing.
        self._socket.bind((0, 0))
        for group in (GROUP_NEW, GROUP_UPDATE):
            self._socket.setsockopt(SOL_NETLINK, ADD_MEMBERSHIP, group)
        self._stop = os.pipe()
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def _listen(self):
        while True:
            ready, _, _ = select.select([self._socket, self._stop[0]], [], [])
            if self._stop[0] in ready:
                return
            try:
                data = self._socket.recv(1 << 16)
            except OSError:     # too many at once: some are missing
                continue
            now = time.time_ns()
            for m in messages(data):
                event = parse(m)
                if event:
                    who, state, stamp = event
                    self.stamped = self.stamped or stamp is not None
                    self.times.setdefault(who, {}).setdefault(
                            state, stamp or now)

    def end(self):
        """Return the ms from SYN to SYN-ACK and from SYN to FIN, both sorted."""
        os.write(self._stop[1], b"x")
        self._thread.join(5)
        self._socket.close()
        for fd in self._stop:
            os.close(fd)
        return [sorted((t[state] - t[SYN_SENT]) / 1e6
                       for t in self.times.values()
                       if SYN_SENT in t and state in t)
                for state in (SYN_RECV, FIN_WAIT)]
