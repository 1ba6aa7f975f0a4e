#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Offers or receives traffic that the usual tools cannot, and prints one JSON object.

  udp-send IP PORT --rate BIT/S   sends datagrams on a clock, with --tos in the IP
                                  header and from --ports source ports in turn, --segments in a
                                  call, with --no-wait
                                  not waiting for a socket that is full; with --burst N
                                  as many calls at once each --every S, for which
                                  sockets have room; SIGTERM
                                  ends it early; with --clock and --ahead S
                                  each asks for a departure time (SO_TXTIME) that
                                  far from now; with --reconnect they look like WireGuard's
                                  and each follows a connect()
  udp-spread IP PORT --hosts N    sends datagrams from a socket that is not connected
                                  to N addresses from IP on, in turn;
                                  the socket may have any number of them on the way
  udp-sink PORT                   binds a socket and reads nothing
  udp-recv PORT                   counts datagrams, and how long each took, until
                                  SIGTERM ends it; late are those over --late ms
  seq-send IP PORT --rate BIT/S   sends numbered datagrams
  seq-recv PORT                   prints the time, number and wire bytes of each
  tcp-send IP PORT                sends a stream
  tcp-recv PORT                   prints the time and the bytes received so far
  http IP PORT PATH --rps N       opens connections on a clock, whatever becomes of
                                  the earlier ones
"""
import argparse
import itertools
import json
import resource
import select
import signal
import socket
import struct
import sys
import time

SO_SNDBUFFORCE = 32             # asm-generic/socket.h
UDP_SEGMENT = 103               # linux/udp.h
SO_RCVBUFFORCE, SO_TIMESTAMPNS, SO_TXTIME = 33, 35, 61  # asm-generic/socket.h
UDP_HEADERS = 14 + 20 + 8       # Ethernet, IPv4, UDP
WIREGUARD_DATA = b"\4\0\0\0"


CLOCKS = {"monotonic": time.CLOCK_MONOTONIC, "tai": time.CLOCK_TAI,
          "realtime": time.CLOCK_REALTIME}


def sender(s, a, data):
    """Return a function that sends a datagram, with a departure time if one is asked
    for."""
    if a.reconnect:
        def again():
            s.connect((a.ip, a.port))
            return s.send(WIREGUARD_DATA + data[4:])
        return again
    if not a.clock:
        return lambda: s.send(data)
    clock, ahead_ns = CLOCKS[a.clock], int(a.ahead * 1e9)
    s.setsockopt(socket.SOL_SOCKET, SO_TXTIME, struct.pack("iI", clock, 0))

    def send():
        depart = struct.pack("Q", time.clock_gettime_ns(clock) + ahead_ns)
        # udp_recv reads from the datagram when it was sent.
        return s.sendmsg([struct.pack("d", time.monotonic()), data[8:]],
                         [(socket.SOL_SOCKET, SO_TXTIME, depart)])
    return send


def allow_files(files=0):
    """Allow as many open files as there may be, and at least `files`, for which the hard
    limit may have to be raised: in a VM it is 4096."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = max(hard, files)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def udp_send(a):
    # Some are open already.
    allow_files(a.ports + 64)
    # If the rate needs it, one call sends several datagrams.
    segments = a.segments or max(1, min(40, int(a.rate / 8 / a.size / 2000)))
    senders = []
    for _ in range(a.ports):
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        s.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, a.tos)
        s.connect((a.ip, a.port))
        if a.burst:
            s.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, 1 << 29)
        s.setblocking(not a.no_wait)
        if segments > 1:
            s.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, a.size)
        senders.append(sender(s, a, bytes(a.size * segments)))
    turns = itertools.cycle(senders)
    wire = (a.size + UDP_HEADERS) * segments * 8
    sent = refused = n = calls = 0
    blocked = 0.0
    stop = []
    signal.signal(signal.SIGTERM, lambda *_: stop.append(True))
    start = now = time.monotonic()

    def is_early():
        if a.burst:
            return calls >= a.burst * (1 + (now - start) // a.every)
        return sent + refused > (now - start) * a.rate
    while not stop and now - start < a.seconds and n < a.count:
        if is_early():
            time.sleep(0.0005)
            now = time.monotonic()
            continue
        calls += 1
        try:
            next(turns)()
            sent += wire
            n += 1
        except OSError:         # ENOBUFS: the qdisc dropped it
            refused += wire
        was, now = now, time.monotonic()
        if now - was > 0.001:
            blocked += now - was
    print(json.dumps({"count": n, "sent": sent / (now - start),
                      "refused": refused / (now - start),
                      "blocked": blocked / (now - start)}))


def udp_spread(a):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, 1 << 29)
    s.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, a.tos)
    first = int.from_bytes(socket.inet_aton(a.ip), "big")
    hosts = [socket.inet_ntoa((first + i).to_bytes(4, "big")) for i in range(a.hosts)]
    data = bytearray(a.size)
    wire, n, refused, stop = (a.size + UDP_HEADERS) * 8, 0, 0, []
    signal.signal(signal.SIGTERM, lambda *_: stop.append(True))
    start = now = time.monotonic()
    while not stop and now - start < a.seconds and n < a.count:
        if n * wire > (now - start) * a.rate:
            time.sleep(0.0005)
        else:
            struct.pack_into("d", data, 0, now)
            try:
                s.sendto(data, (hosts[n % a.hosts], a.port))
            except OSError:     # ENOBUFS: the qdisc dropped it
                refused += 1
            n += 1
        now = time.monotonic()
    print(json.dumps({"count": n, "refused": refused,
                      "sent": n * wire / (now - start)}))


def udp_sink(a):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind(("", a.port))
    time.sleep(a.seconds)


def udp_recv(a):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    # The kernel notes the arrival, because on a busy CPU this process wakes up later.
    s.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    ahead = time.time() - time.monotonic()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
    s.bind(("", a.port))
    s.settimeout(0.1)
    stop, took_ms = [], []
    signal.signal(signal.SIGTERM, lambda *_: stop.append(True))
    while True:
        try:
            data, notes, _, _ = s.recvmsg(65536, 64)
        except TimeoutError:
            # Datagrams that were there when the signal came are counted, too.
            if stop:
                break
            continue
        sec, ns = struct.unpack("=qq", notes[0][2])
        sent = struct.unpack_from("d", data)[0]
        took_ms.append((sec + ns / 1e9 - ahead - sent) * 1e3)
    print(json.dumps({"count": len(took_ms), "least_ms": min(took_ms, default=0),
                      "most_ms": max(took_ms, default=0),
                      "late": sum(ms > a.late for ms in took_ms)}))


def seq_send(a):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.connect((a.ip, a.port))
    start = time.monotonic()
    wire = (a.size + UDP_HEADERS) * 8
    for n in range(int(a.seconds * a.rate / wire)):
        wait = start + n * wire / a.rate - time.monotonic()
        if wait > 0:
            time.sleep(wait)
        try:
            s.send(n.to_bytes(8, "big") + bytes(a.size - 8))
        except OSError:         # ENOBUFS: the qdisc dropped it
            pass


def seq_recv(a):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    # Nothing must be lost while this process waits for a CPU.
    s.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 8 << 20)
    # The kernel notes the arrival, for the same reason.
    s.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    ahead = time.time() - time.monotonic()
    s.bind(("", a.port))
    while True:
        data, notes, _, _ = s.recvmsg(65536, 64)
        sec, ns = struct.unpack("=qq", notes[0][2])
        print(sec + ns / 1e9 - ahead, int.from_bytes(data[:8], "big"),
              len(data) + UDP_HEADERS)


def tcp_send(a):
    s = socket.create_connection((a.ip, a.port))
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"cubic")
    data = bytes(65536)
    while True:
        s.sendall(data)


def tcp_recv(a):
    listener = socket.create_server(("", a.port))
    s, _ = listener.accept()
    got, tick = 0, 0.0
    while True:
        got += len(s.recv(262144))
        now = time.monotonic()
        if now - tick > 0.05:
            print(now, got, flush=True)
            tick = now


class Http:
    """Opens requests on a clock. The time of each counts from its tick, so a server or
    a path that stalls cannot hide behind a waiting client."""

    def __init__(self, a):
        self.to = (a.ip, a.port)
        self.request = f"GET {a.path} HTTP/1.0\r\n\r\n".encode()
        self.timeout = a.timeout
        self.poll = select.epoll()
        self.open = {}          # fd -> (socket, due), oldest first
        self.times, self.failed = [], 0

    def start(self, due):
        try:
            s = socket.socket()
            s.setblocking(False)
            s.connect_ex(self.to)
        except OSError:         # too many open files
            self.failed += 1
            return
        self.open[s.fileno()] = (s, due, [0])
        self.poll.register(s, select.EPOLLOUT)

    def end(self, fd, good, now=0.0):
        s, due, _ = self.open.pop(fd)
        self.poll.unregister(fd)
        s.close()
        if good:
            self.times.append(now - due)
        else:
            self.failed += 1

    def event(self, fd, mask):
        s, _, got = self.open[fd]
        try:
            if mask & select.EPOLLOUT:
                s.send(self.request)
                self.poll.modify(fd, select.EPOLLIN)
            elif mask & select.EPOLLIN:
                n = len(s.recv(65536))
                got[0] += n
                if not n:
                    self.end(fd, got[0] > 1000,
                             time.monotonic())
            else:
                self.end(fd, False)
        except BlockingIOError:
            pass
        except OSError:
            self.end(fd, False)

    def expire(self, now):
        for fd, (_, due, _) in list(self.open.items()):
            if now - due < self.timeout:
                break
            self.end(fd, False)

    def run(self, rps, seconds):
        start = now = time.monotonic()
        n, total = 0, int(rps * seconds)
        while n < total or self.open:
            while n < total and start + n / rps <= now:
                self.start(start + n / rps)
                n += 1
            due = start + n / rps if n < total else now + 0.05
            for fd, mask in self.poll.poll(max(0, min(0.05,
                                                      due - now))):
                self.event(fd, mask)
            now = time.monotonic()
            self.expire(now)


def percentile(values, p):
    return values[min(len(values) - 1, int(len(values) * p / 100))]


def http(a):
    # At five times the cap thousands of connections are open at once.
    allow_files()
    h = Http(a)
    h.run(a.rps, a.seconds)
    # A request that failed counts as slower than any that was answered.
    times = sorted(h.times) + [a.timeout] * h.failed
    print(json.dumps({"offered": a.rps, "done": len(h.times) / a.seconds,
                      "failed": h.failed,
                      "p50_ms": percentile(times, 50) * 1e3,
                      "p99_ms": percentile(times, 99) * 1e3,
                      "p999_ms": percentile(times, 99.9) * 1e3}))


def main(words=None):
    p = argparse.ArgumentParser()
    does = {"udp-send": udp_send, "udp-spread": udp_spread,
            "udp-sink": udp_sink, "udp-recv": udp_recv,
            "seq-send": seq_send, "seq-recv": seq_recv, "tcp-send": tcp_send,
            "tcp-recv": tcp_recv, "http": http}
    p.add_argument("what", choices=does)
    p.add_argument("args", nargs="+")
    p.add_argument("--seconds", type=float, default=600)
    p.add_argument("--rate", type=float, default=1e6)
    p.add_argument("--size", type=int, default=1400)
    p.add_argument("--tos", type=int, default=0)
    p.add_argument("--ports", type=int, default=1)
    p.add_argument("--no-wait", action="store_true")
    p.add_argument("--segments", type=int, default=0)
    p.add_argument("--hosts", type=int, default=1)
    p.add_argument("--late", type=float, default=0)
    p.add_argument("--clock", choices=CLOCKS)
    p.add_argument("--ahead", type=float, default=0)
    p.add_argument("--reconnect", action="store_true")
    p.add_argument("--burst", type=int)
    p.add_argument("--every", type=float, default=1)
    p.add_argument("--count", type=float, default=float("inf"))
    p.add_argument("--rps", type=float, default=100)
    p.add_argument("--timeout", type=float, default=3)
    a = p.parse_args(words)
    if a.what in ("udp-sink", "udp-recv", "seq-recv", "tcp-recv"):
        a.port = int(a.args[0])
    else:
        a.ip, a.port = a.args[0], int(a.args[1])
        a.path = a.args[2] if len(a.args) > 2 else "/"
    does[a.what](a)


if __name__ == "__main__":
    try:
        main()
    except (KeyboardInterrupt, ConnectionError):
        sys.exit(1)
