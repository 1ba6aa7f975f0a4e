# SPDX-License-Identifier: BSD-2-Clause
"""Times TCP connections by the events of the node's connection tracking: when SYN,
SYN-ACK and the first FIN passed, and how many bytes each had when it was forgotten.

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
SO_RCVBUFFORCE = 33             # asm-generic/socket.h
GROUP_NEW, GROUP_UPDATE, GROUP_DESTROY = 1, 2, 3
SUBSYS_CTNETLINK, MSG_NEW, MSG_DELETE = 1, 0, 2
NLM_F_REQUEST = 1
TUPLE_ORIG, PROTOINFO, COUNTERS_REPLY, TIMESTAMP_EVENT = 1, 4, 10, 27
COUNTERS_BYTES = 2
TUPLE_IP, TUPLE_PROTO, V4_DST = 1, 2, 2
PROTO_SPORT, PROTO_DPORT = 2, 3
PROTOINFO_TCP, TCP_STATE = 1, 1
SYN_SENT, SYN_RECV, FIN_WAIT = 1, 2, 4
SYSCTLS = "/proc/sys/net/netfilter/nf_conntrack_"
# The kernel sends the events of all connections at once when they are forgotten.
BUFFER_BYTES = 1 << 28
QUIET_SECONDS = 0.3


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


def connection(attrs):
    """Return the connection of an event: destination address and port, source port."""
    sport = nested(attrs, TUPLE_ORIG, TUPLE_PROTO, PROTO_SPORT)
    dport = nested(attrs, TUPLE_ORIG, TUPLE_PROTO, PROTO_DPORT)
    ip = nested(attrs, TUPLE_ORIG, TUPLE_IP, V4_DST)
    if len(ip) != 4 or len(sport) != 2 or len(dport) != 2:
        return None
    return (socket.inet_ntoa(ip), *struct.unpack("!HH", dport + sport))


def parse(message):
    """Return the connection of an event, the TCP state it changed to, and the kernel's
    stamp in ns or None. Return None for messages that are no such event."""
    attrs = attributes(message)
    who = connection(attrs)
    state = nested(attrs, PROTOINFO, PROTOINFO_TCP, TCP_STATE)
    if not who or not state:
        return None
    stamp = attrs.get(TIMESTAMP_EVENT)
    return who, state[0], struct.unpack("!Q", stamp)[0] if stamp else None


def parse_end(message):
    """Return the connection that was forgotten and the bytes that its server had sent,
    from the IP header on, or None."""
    attrs = attributes(message)
    who = connection(attrs)
    count = nested(attrs, COUNTERS_REPLY, COUNTERS_BYTES)
    return (who, struct.unpack("!Q", count)[0]) if who and len(count) == 8 else None


def messages(data, wanted=MSG_NEW):
    """Yield what follows nfgenmsg in each netlink message of that kind."""
    at = 0
    while at + 20 <= len(data):
        length, kind = struct.unpack_from("=IH", data, at)
        if length < 20 or at + length > len(data):
            break
        if kind == SUBSYS_CTNETLINK << 8 | wanted:
            yield data[at + 20:at + length]
        at += (length + 3) & ~3


def collect(notes, port=None):
    """Return what `notes`, of the time of reading and the data, say of each connection
    to that port: the ns of each state, and `bytes` if its end was seen. A new SYN
    between the same ports begins another connection."""
    found, last, stamped = [], {}, False
    for now, data in notes:
        for m in messages(data):
            event = parse(m)
            if event and port in (None, event[0][1]):
                who, state, stamp = event
                stamped |= stamp is not None
                if state == SYN_SENT or who not in last:
                    last[who] = {}
                    found.append(last[who])
                last[who].setdefault(state, stamp or now)
        for m in messages(data, MSG_DELETE):
            event = parse_end(m)
            if event and event[0] in last:
                last.pop(event[0])["bytes"] = event[1]
    return found, stamped


def spans_ms(found, state):
    """Return the ms from SYN to a state, sorted."""
    return sorted((t[state] - t[SYN_SENT]) / 1e6 for t in found
                  if SYN_SENT in t and state in t)


def mbits(found):
    """Return what each server sent from SYN to FIN, in Mbit/s of IP packets, sorted."""
    return sorted(t["bytes"] * 8e3 / (t[FIN_WAIT] - t[SYN_SENT]) for t in found
                  if t.get("bytes") and t.get(FIN_WAIT, 0) > t.get(SYN_SENT, 1 << 64))


class Connections:
    """Listens in the caller's network namespace until end(). With `accounting` it also
    notes the bytes of each connection."""

    def __init__(self, accounting=False):
        self.accounting = accounting
        for name in ("timestamp", *(("acct",) if accounting else ())):
            try:
                with open(SYSCTLS + name, "w") as f:
                    f.write("1")
            except OSError:
                pass            # no stamps or bytes then
        self.stamped, self.lost = False, 0
        self.found = []         # see collect()
        # Events are parsed at the end: that would take the CPU from what is measured.
        self._notes, self._read_at = [], time.monotonic()
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW,
                                     NETLINK_NETFILTER)
        self._socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER_BYTES)
        # Without an address the kernel takes the socket for its own and sends it nothing.
        self._socket.bind((0, 0))
        for group in (GROUP_NEW, GROUP_UPDATE, *((GROUP_DESTROY,) if accounting else ())):
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
                self.lost += 1
                continue
            self._notes.append((time.time_ns(), data))
            self._read_at = time.monotonic()

    def _forget_all(self):
        """Let the kernel forget all connections and tell their bytes."""
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_NETFILTER) as s:
            s.bind((0, 0))
            s.send(struct.pack("=IHHIIBBH", 20, SUBSYS_CTNETLINK << 8 | MSG_DELETE,
                               NLM_F_REQUEST, 1, 0, 0, 0, 0))
        self._read_at = time.monotonic()
        while time.monotonic() - self._read_at < QUIET_SECONDS:
            time.sleep(QUIET_SECONDS / 4)

    def end(self, port=None):
        """Return the ms from SYN to SYN-ACK and from SYN to FIN, both sorted."""
        if self.accounting:
            self._forget_all()
        os.write(self._stop[1], b"x")
        self._thread.join(5)
        self._socket.close()
        for fd in self._stop:
            os.close(fd)
        self.found, self.stamped = collect(self._notes, port)
        return [spans_ms(self.found, state) for state in (SYN_RECV, FIN_WAIT)]
