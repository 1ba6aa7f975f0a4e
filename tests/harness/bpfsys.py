# SPDX-License-Identifier: BSD-2-Clause
"""Just enough of bpf(2) to be another owner on a hook: a program that lets
everything go on, pinned, and a TCX link to it."""
import ctypes
import errno
import os
import platform
import struct

_NR = {"x86_64": 321, "aarch64": 280}.get(platform.machine(), 280)
_libc = ctypes.CDLL(None, use_errno=True)
PROG_LOAD, OBJ_PIN, PROG_QUERY, LINK_CREATE = 5, 6, 16, 28
SCHED_CLS = 3
TCX_INGRESS, TCX_EGRESS = 46, 47


def bpf(cmd, attr):
    return _bpf(cmd, ctypes.create_string_buffer(attr, max(len(attr), 128)))


def _bpf(cmd, buf):
    r = _libc.syscall(_NR, cmd, buf, len(buf))
    if r < 0:
        e = ctypes.get_errno()
        raise OSError(e, os.strerror(e))
    return r


def load_pass(name=b"neighbour"):
    """r0 = -1 (TC_ACT_UNSPEC); exit. The program's fd."""
    code = struct.pack("<BBhiBBhi", 0xb7, 0, 0, -1, 0x95, 0, 0, 0)
    insns = ctypes.create_string_buffer(code, len(code))
    licence = ctypes.create_string_buffer(b"GPL")
    attr = struct.pack("=IIQQIIQII16s", SCHED_CLS, 2,
                       ctypes.addressof(insns), ctypes.addressof(licence),
                       0, 0, 0, 0, 0, name)
    return bpf(PROG_LOAD, attr)


def pin(fd, path):
    name = ctypes.create_string_buffer(path.encode())
    bpf(OBJ_PIN, struct.pack("=QII", ctypes.addressof(name), fd, 0))


def tcx_link(prog_fd, ifindex, kind):
    """An fd; the link goes when it is closed."""
    return bpf(LINK_CREATE, struct.pack("=IIII", prog_fd, ifindex, kind, 0))


def tcx_count(ifindex, kind):
    """Programs on a TCX hook of the caller's network namespace."""
    buf = ctypes.create_string_buffer(
            struct.pack("=IIIIQI", ifindex, kind, 0, 0, 0, 0), 128)
    try:
        _bpf(PROG_QUERY, buf)
    except OSError as e:
        if e.errno in (errno.ENOENT, errno.EINVAL):
            return 0            # nothing there; a kernel without TCX
        raise
    return struct.unpack_from("=I", buf, 24)[0]
