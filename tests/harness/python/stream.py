# SPDX-License-Identifier: BSD-2-Clause
"""Sends TCP streams between two namespaces and counts the bytes that each takes on the
wire.

Children of the script send and receive. The script keeps the sockets, so it can read the
kernel's counts of them at any time.
"""
import os
import signal
import socket
import struct
import threading

ETHERNET = 14
TCP_TIMESTAMPS = 32             # the TCP header of a data segment
IP_HEADER = {4: 20, 6: 40}
CHUNK_BYTES = 1 << 18
# struct tcp_info of linux/tcp.h
TCPI_BYTES = 160
TCP_ESTABLISHED = 1             # of net/tcp_states.h, the first byte of it
BYTES_RECEIVED_AT, DATA_SEGS_IN_AT = 128, 152
SO_MAX_PACING_RATE = 47         # of asm-generic/socket.h


def header_bytes(version):
    """Return how many bytes the headers of layers 2 to 4 take in each data segment."""
    return ETHERNET + IP_HEADER[version] + TCP_TIMESTAMPS


def _send(s):
    data = bytes(CHUNK_BYTES)
    while True:
        s.sendall(data)


def _receive(s):
    data = bytearray(CHUNK_BYTES)
    while s.recv_into(data):
        pass


def connected(src, dst, version=4, congestion="cubic"):
    """Return a connection's sockets in src and in dst."""
    family = socket.AF_INET if version == 4 else socket.AF_INET6
    with dst:
        listener = socket.socket(family)
    with src:
        out = socket.socket(family)
    listener.bind(("", 0))
    listener.listen()
    out.settimeout(5)
    out.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, congestion.encode())
    out.connect((dst.ip if version == 4 else dst.ip6, listener.getsockname()[1]))
    out.settimeout(None)
    into, _ = listener.accept()
    listener.close()
    return out, into


def wire_bytes(s, header):
    """Return the wire bytes of the data segments that a socket received, only good for
    differences. Segments that came twice count without their data."""
    info = s.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, TCPI_BYTES)
    received, = struct.unpack_from("=Q", info, BYTES_RECEIVED_AT)
    segments, = struct.unpack_from("=I", info, DATA_SEGS_IN_AT)
    return received + segments * header


def reset(s):
    """Close a connection at once, and drop data that is not sent yet."""
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    s.close()


def child(work, *args):
    """Call work(*args) in a child of this process and return its pid, for end()."""
    pid = os.fork()
    if pid:
        return pid
    try:
        # The script's own handler would raise an exception in here.
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        work(*args)
    finally:
        os._exit(0)


def end(*pids):
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


class Stream:
    """Sends data from src to dst as fast as it goes, until close().

    If a CPU is given, both ends run on it: the throughput then depends on what that CPU
    can do, and not on how two of them work together.
    """

    def __init__(self, src, dst, version, cpu=None):
        self._cpu = cpu
        self.header = header_bytes(version)
        self._out, self._in = connected(src, dst, version)
        self._children = [child(self._pinned, _receive, self._in),
                          child(self._pinned, _send, self._out)]

    def _pinned(self, work, s):
        if self._cpu is not None:
            os.sched_setaffinity(0, {self._cpu})
        work(s)

    def wire_bytes(self):
        return wire_bytes(self._in, self.header)

    def send_at_most(self, bits):
        """Have TCP send no more than this in a second."""
        self._out.setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE,
                             struct.pack("=Q", int(bits) // 8))

    def is_established(self):
        return all(s.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] ==
                   TCP_ESTABLISHED for s in (self._out, self._in))

    def close(self):
        end(*self._children)
        reset(self._out)
        self._in.close()


def _all_at_once(work, sockets):
    threads = [threading.Thread(target=work, args=(s,), daemon=True) for s in sockets]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


class Streams:
    """Sends several streams over IPv4, one for each name of a congestion control. Two
    processes are enough for all of them.
    """

    def __init__(self, src, dst, congestion):
        self.header = header_bytes(4)
        pairs = [connected(src, dst, 4, name) for name in congestion]
        self._out, self._in = [p[0] for p in pairs], [p[1] for p in pairs]
        for s in self._in:
            # A receiver that waits for this much wakes up seldom, and leaves the CPU to
            # others.
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, CHUNK_BYTES // 4)
        self._children = [child(_all_at_once, _receive, self._in),
                          child(_all_at_once, _send, self._out)]

    def wire_bytes(self):
        """Return the wire bytes of each stream so far."""
        return [wire_bytes(s, self.header) for s in self._in]

    def close(self):
        end(*self._children)
        for s in self._out:
            reset(s)
        for s in self._in:
            s.close()
