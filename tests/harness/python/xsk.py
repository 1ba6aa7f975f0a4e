# SPDX-License-Identifier: BSD-2-Clause
"""Sends frames by AF_XDP in copy mode, which a pod with CAP_NET_RAW can do without an
XDP program."""
import ctypes
import mmap
import socket
import struct

AF_XDP, SOL_XDP = 44, 283
XDP_MMAP_OFFSETS, XDP_TX_RING, XDP_UMEM_REG = 1, 3, 4
XDP_UMEM_FILL_RING, XDP_UMEM_COMPLETION_RING = 5, 6
XDP_COPY = 2
TX_RING_AT, COMPLETION_RING_AT = 0x80000000, 0x180000000
SLOTS, CHUNK = 64, 2048
_libc = ctypes.CDLL(None, use_errno=True)


def check(result):
    if result < 0:
        errno = ctypes.get_errno()
        raise OSError(errno, socket.errno.errorcode.get(errno, "?"))


class XskSender:
    """Sends the same frame again and again, through queue 0."""

    def __init__(self, ns, ifname, frame):
        self.frame = frame
        with ns:
            self.sock = socket.socket(AF_XDP, socket.SOCK_RAW, 0)
            ifindex = socket.if_nametoindex(ifname)
        self.umem = mmap.mmap(-1, SLOTS * CHUNK)
        for slot in range(SLOTS):
            self.umem[slot * CHUNK:slot * CHUNK + len(frame)] = frame
        at = ctypes.addressof(ctypes.c_char.from_buffer(self.umem))
        self._set(XDP_UMEM_REG, struct.pack("=QQIII4x", at, len(self.umem),
                                            CHUNK, 0, 0))
        for ring in (XDP_UMEM_FILL_RING, XDP_UMEM_COMPLETION_RING,
                     XDP_TX_RING):
            self._set(ring, struct.pack("=i", SLOTS))
        offsets = struct.unpack("=16Q", self.sock.getsockopt(
                SOL_XDP, XDP_MMAP_OFFSETS, 128))
        # Each ring has four offsets: producer, consumer, descriptors and flags.
        self.tx, self.done = offsets[4:8], offsets[12:16]
        self.tx_map = mmap.mmap(self.sock.fileno(), self.tx[2] + 16 * SLOTS,
                                offset=TX_RING_AT)
        self.done_map = mmap.mmap(self.sock.fileno(),
                                  self.done[2] + 8 * SLOTS,
                                  offset=COMPLETION_RING_AT)
        address = struct.pack("=HHIII", AF_XDP, XDP_COPY, ifindex, 0, 0)
        check(_libc.bind(self.sock.fileno(), address, len(address)))

    def _set(self, option, value):
        # All kernels accept this size; newer ones have 4 bytes more at the end.
        self.sock.setsockopt(SOL_XDP, option, value)

    @staticmethod
    def _get32(ring, at):
        return struct.unpack_from("=I", ring, at)[0]

    def send(self):
        """Send frames. Return how many bytes were handed over, 0 if the ring is
        full."""
        finished = self._get32(self.done_map, self.done[0])
        struct.pack_into("=I", self.done_map, self.done[1], finished)
        produced = self._get32(self.tx_map, self.tx[0])
        if produced - finished >= SLOTS // 2:
            self._kick()
            return 0
        struct.pack_into("=QII", self.tx_map,
                         self.tx[2] + produced % SLOTS * 16,
                         produced % SLOTS * CHUNK, len(self.frame), 0)
        struct.pack_into("=I", self.tx_map, self.tx[0], produced + 1)
        self._kick()
        return len(self.frame)

    def _kick(self):
        _libc.sendto(self.sock.fileno(), None, 0, socket.MSG_DONTWAIT, None, 0)
