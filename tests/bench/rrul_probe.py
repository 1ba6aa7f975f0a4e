# SPDX-License-Identifier: BSD-2-Clause
"""Asks a host at even intervals, by UDP in some DSCP classes and by ICMP, and prints how
long the answers took, as one JSON object."""
import json
import os
import select
import socket
import struct
import time

PORT = 5301
PER_SECOND = 20
PATIENCE_SECONDS = 2            # for the last answers
ECHO_REQUEST, ECHO_REPLY = 8, 0
ICMP_HEAD = "!BBHHH"            # type, code, checksum, identifier, number
IP_BYTES = 20


def echo():
    """Answer each datagram in its own class, until the process is ended."""
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.setsockopt(socket.IPPROTO_IP, socket.IP_RECVTOS, 1)
    s.bind(("", PORT))
    while True:
        data, notes, _, sender = s.recvmsg(256, 64)
        s.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, notes[0][2][0])
        s.sendto(data, sender)


def checksum(data):
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    total = (total >> 16) + (total & 0xffff)
    return ~(total + (total >> 16)) & 0xffff


class Probe:
    """Counts what was sent, and notes (when it was sent, the ms until the answer)."""

    def __init__(self, ip, tos):
        self.icmp = tos is None
        self.socket = socket.socket(socket.AF_INET, *(
                (socket.SOCK_RAW, socket.IPPROTO_ICMP) if self.icmp
                else (socket.SOCK_DGRAM,)))
        self.socket.connect((ip, 0 if self.icmp else PORT))
        if not self.icmp:
            self.socket.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, tos)
        self.socket.setblocking(False)
        self.ident = os.getpid() & 0xffff
        self.sent, self.times, self.answers = 0, {}, []

    def send(self):
        number = self.sent
        self.sent += 1
        self.times[number] = time.monotonic()
        try:
            self.socket.send(self.message(number))
        except OSError:
            pass                # a full queue: it is lost

    def message(self, number):
        if not self.icmp:
            return struct.pack("!I", number) + bytes(60)
        head = [ECHO_REQUEST, 0, 0, self.ident, number]
        head[2] = checksum(struct.pack(ICMP_HEAD, *head) + bytes(56))
        return struct.pack(ICMP_HEAD, *head) + bytes(56)

    def number_of(self, data):
        """Return which message this answers, or None. A raw socket also gets what is
        for others."""
        if not self.icmp:
            return struct.unpack_from("!I", data)[0]
        kind, _, _, ident, number = struct.unpack_from(ICMP_HEAD, data, IP_BYTES)
        return number if (kind, ident) == (ECHO_REPLY, self.ident) else None

    def receive(self):
        try:
            data = self.socket.recv(512)
        except OSError:
            return
        sent = self.times.pop(self.number_of(data), None)
        if sent is not None:
            self.answers.append((sent, (time.monotonic() - sent) * 1e3))


def probe(ip, marks, seconds):
    """`marks` has the IP_TOS of each class, None for ICMP."""
    probes = {name: Probe(ip, tos) for name, tos in marks.items()}
    by_socket = {p.socket: p for p in probes.values()}
    begin, sent, count = time.monotonic(), 0, int(seconds * PER_SECOND)
    end = begin + seconds + PATIENCE_SECONDS
    while time.monotonic() < end and (sent < count or
                                      any(p.times for p in probes.values())):
        due = begin + sent / PER_SECOND if sent < count else end
        if due <= time.monotonic():
            for p in probes.values():
                p.send()
            sent += 1
            continue
        ready, _, _ = select.select(by_socket, [], [], max(0, due - time.monotonic()))
        for s in ready:
            by_socket[s].receive()
    for s in by_socket:
        s.close()
    print(json.dumps({name: {"sent": p.sent, "answers": p.answers}
                      for name, p in probes.items()}))
