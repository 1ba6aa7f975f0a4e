# SPDX-License-Identifier: BSD-2-Clause
"""Calls bpf(2) as another owner of programs on a hook does: it loads and pins small
programs and links them to TCX."""
import ctypes
import errno
import os
import platform
import struct
import sys
import time

_NR = {"x86_64": 321, "aarch64": 280}.get(platform.machine(), 280)
_libc = ctypes.CDLL(None, use_errno=True)
MAP_LOOKUP, MAP_UPDATE = 1, 2
PROG_LOAD, OBJ_PIN, OBJ_GET, PROG_DETACH = 5, 6, 7, 9
PROG_QUERY, LINK_CREATE = 16, 28
PROG_GET_FD_BY_ID, MAP_GET_FD_BY_ID = 13, 14
NEXT_ID = {"prog": 11, "map": 12, "link": 31}
SCHED_CLS = 3
TCX_INGRESS, TCX_EGRESS = 46, 47
BEFORE = 1 << 3         # before all others, if no program is named


def bpf(cmd, attr):
    return _bpf(cmd, ctypes.create_string_buffer(attr, max(len(attr), 128)))


def _bpf(cmd, buf):
    r = _libc.syscall(_NR, cmd, buf, len(buf))
    if r < 0:
        e = ctypes.get_errno()
        raise OSError(e, os.strerror(e))
    return r


def load(insns, name):
    """Load a program and return its fd. Each of insns is (code, target | source << 4,
    offset, immediate)."""
    text = b"".join(struct.pack("<BBhi", *i) for i in insns)
    code = ctypes.create_string_buffer(text, len(text))
    licence = ctypes.create_string_buffer(b"GPL")
    attr = struct.pack("=IIQQIIQII16s", SCHED_CLS, len(insns),
                       ctypes.addressof(code), ctypes.addressof(licence),
                       0, 0, 0, 0, 0, name)
    return bpf(PROG_LOAD, attr)


def load_pass(name=b"neighbour"):
    """Load a program that lets every packet go on: r0 = -1 (TC_ACT_UNSPEC); exit."""
    return load([(0xb7, 0, 0, -1), (0x95, 0, 0, 0)], name)


def load_drop_linear(length, name=b"drop_linear"):
    """Load a program that drops packets whose first `length` bytes are in the linear
    area."""
    return load([
            (0x61, 0x12, 76, 0),        # r2 = skb->data
            (0x61, 0x13, 80, 0),        # r3 = skb->data_end
            (0xb7, 0x00, 0, -1),        # r0 = TC_ACT_UNSPEC
            (0x07, 0x02, 0, length),    # r2 += length
            (0x2d, 0x32, 1, 0),         # if r2 > r3 goto exit
            (0xb7, 0x00, 0, 2),         # r0 = TC_ACT_SHOT
            (0x95, 0x00, 0, 0)], name)  # exit


def exists(kind, number):
    """Return whether the kernel has an object, without opening it.

    bpftool opens what it shows. If it then closes the last descriptor of an array of
    programs whose clearing is already pending, the kernel (6.18 at least) takes a
    reference for a second clearing that never comes, because prog_array_map_clear()
    ignores the result of schedule_work(). The map then stays for good.
    """
    buf = ctypes.create_string_buffer(struct.pack("=III", number - 1, 0, 0), 128)
    try:
        _bpf(NEXT_ID[kind], buf)
    except OSError as e:
        if e.errno != errno.ENOENT:
            raise
        return False
    return struct.unpack_from("=I", buf, 4)[0] == number


def left(objects, seconds):
    """Return those of the objects, (kind, id), that the kernel still has after that
    many seconds. It frees them after an RCU grace period, one after the other."""
    end = time.monotonic() + seconds
    while True:
        objects = [o for o in objects if exists(*o)]
        if not objects or time.monotonic() > end:
            return objects
        time.sleep(0.05)


def pin(fd, path):
    name = ctypes.create_string_buffer(path.encode())
    bpf(OBJ_PIN, struct.pack("=QII", ctypes.addressof(name), fd, 0))


def tcx_count(ifindex, kind):
    """Return the number of programs on a TCX hook in the caller's network namespace."""
    buf = ctypes.create_string_buffer(
            struct.pack("=IIIIQI", ifindex, kind, 0, 0, 0, 0), 128)
    try:
        _bpf(PROG_QUERY, buf)
    except OSError as e:
        if e.errno in (errno.ENOENT, errno.EINVAL):
            return 0            # no program there, or a kernel without TCX
        raise
    return struct.unpack_from("=I", buf, 24)[0]


def obj_get(path):
    """Return the fd of the object that is pinned there."""
    name = ctypes.create_string_buffer(path.encode())
    return bpf(OBJ_GET, struct.pack("=QII", ctypes.addressof(name), 0, 0))


def map_by_id(number):
    """Return a descriptor of the map, which the caller closes."""
    return bpf(MAP_GET_FD_BY_ID, struct.pack("=I", number))


def prog_by_id(number):
    """Return a descriptor of the program, which the caller closes."""
    return bpf(PROG_GET_FD_BY_ID, struct.pack("=I", number))


def map_lookup(fd, key, size):
    """Return the value under a 32-bit key, as an integer of `size` bytes."""
    k = ctypes.create_string_buffer(struct.pack("=I", key), 4)
    v = ctypes.create_string_buffer(size)
    bpf(MAP_LOOKUP, struct.pack("=IxxxxQQQ", fd, ctypes.addressof(k),
                                ctypes.addressof(v), 0))
    return int.from_bytes(v.raw, sys.byteorder)


def map_update(fd, key, value, size):
    k = ctypes.create_string_buffer(struct.pack("=I", key), 4)
    v = ctypes.create_string_buffer(value.to_bytes(size, sys.byteorder), size)
    bpf(MAP_UPDATE, struct.pack("=IxxxxQQQ", fd, ctypes.addressof(k),
                                ctypes.addressof(v), 0))


def tcx_link(prog_fd, ifindex, kind, flags=0):
    """Link a program to a TCX hook and return the link's fd; closing it removes the
    link. Without flags the program runs last."""
    return bpf(LINK_CREATE, struct.pack("=IIII", prog_fd, ifindex, kind, flags))


def tcx_detach_first(ifindex, kind):
    """Detach the first program by BPF_PROG_DETACH and return the name of the error, or
    "0". The error is EBUSY if a link holds the program."""
    try:
        bpf(PROG_DETACH, struct.pack("=IIII", ifindex, 0, kind, BEFORE))
    except OSError as e:
        return errno.errorcode[e.errno]
    return "0"
