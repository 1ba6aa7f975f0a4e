# SPDX-License-Identifier: BSD-2-Clause
"""Sends one TCP stream between two namespaces and counts the bytes that it takes on the
wire."""
import os
import signal
import socket
import struct

ETHERNET = 14
TCP_TIMESTAMPS = 32             # the TCP header of a data segment
IP_HEADER = {4: 20, 6: 40}
CHUNK_BYTES = 1 << 18
# struct tcp_info of linux/tcp.h
TCPI_BYTES = 160
BYTES_RECEIVED_AT, DATA_SEGS_IN_AT = 128, 152


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


class Stream:
    """Sends data from src to dst as fast as it goes, until close().

    If a CPU is given, both ends run on it: the throughput then depends on what that CPU
    can do, and not on how two of them work together.
    """

    def __init__(self, src, dst, version, cpu=None):
        self._cpu = cpu
        family = socket.AF_INET if version == 4 else socket.AF_INET6
        self.header = header_bytes(version)
        with dst:
            listener = socket.socket(family)
        with src:
            self._out = socket.socket(family)
        listener.bind(("", 0))
        listener.listen()
        self._out.settimeout(5)
        self._out.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION,
                             b"cubic")
        self._out.connect((dst.ip if version == 4 else dst.ip6,
                           listener.getsockname()[1]))
        self._out.settimeout(None)
        self._in, _ = listener.accept()
        listener.close()
        self._children = [self._fork(_receive, self._in),
                          self._fork(_send, self._out)]

    def _fork(self, work, s):
        pid = os.fork()
        if pid:
            return pid
        try:
            if self._cpu is not None:
                os.sched_setaffinity(0, {self._cpu})
            work(s)
        finally:
            os._exit(0)

    def wire_bytes(self):
        """Return the wire bytes of the data segments that arrived, only good for
        differences. Segments that came twice count without their data."""
        info = self._in.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO,
                                   TCPI_BYTES)
        received, = struct.unpack_from("=Q", info, BYTES_RECEIVED_AT)
        segments, = struct.unpack_from("=I", info, DATA_SEGS_IN_AT)
        return received + segments * self.header

    def close(self):
        for pid in self._children:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        # This resets the connection at once, and data that is not sent yet is dropped.
        self._out.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                             struct.pack("ii", 1, 0))
        self._out.close()
        self._in.close()
