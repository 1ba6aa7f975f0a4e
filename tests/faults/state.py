# SPDX-License-Identifier: BSD-2-Clause
"""The state that the kernel holds for a pod's interface: pins, hooks, qdiscs, the size of
GSO packets, objects."""
import ctypes
import errno
import os
import socket
import struct
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../harness/python")
import bpfsys
import rtnl
from isolation import BPFFS

PROG_QUERY = 16
SETTLE_SECONDS = 5
# BPF objects are freed after RCU grace periods, one after the other.
FREE_SECONDS = 60


def tcx_programs(ifindex):
    """Return the ids on both TCX hooks of an interface in the thread's namespace."""
    found = []
    for hook in (bpfsys.TCX_INGRESS, bpfsys.TCX_EGRESS):
        ids = (ctypes.c_uint32 * 64)()
        attr = ctypes.create_string_buffer(struct.pack(
                "=IIIIQI", ifindex, hook, 0, 0, ctypes.addressof(ids), 64), 64)
        try:
            bpfsys.bpf(PROG_QUERY, attr.raw)
        except OSError as e:
            if e.errno != errno.EINVAL:     # the kernel has no TCX
                raise
        found.append([i for i in ids if i])
    return found


class Tc:
    """Reads qdiscs and filters of one interface by rtnetlink, because starting tc(8)
    takes longer than the rest of a case."""

    NEWQDISC, DELQDISC, GETQDISC = 36, 37, 38
    NEWFILTER, GETFILTER = 44, 46
    KIND, OPTIONS = 1, 2
    CLSACT = 0xfffffff1
    HOOKS = 0xfffffff2, 0xfffffff3      # ingress and egress

    def __init__(self, dev):
        self.ifindex = socket.if_nametoindex(dev)
        self.sock = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
        self.sock.settimeout(5)

    def ask(self, kind, flags, parent, handle=0):
        """Yield (type, payload) of the answers to a request."""
        body = struct.pack("=BxxxiIII", 0, self.ifindex, handle, parent, 0)
        self.sock.send(struct.pack("=IHHII", 16 + len(body), kind,
                                   1 | flags, 1, 0) + body)
        while True:
            data = self.sock.recv(1 << 18)
            while data:
                length, kind = struct.unpack_from("=IH", data)
                if kind in (2, 3):              # an error or ACK, DONE
                    return
                yield kind, data[16:length]
                data = data[(length + 3) & ~3:]

    def entries(self, what, parent):
        found = []
        for _, data in self.ask(what, 0x300, parent):    # NLM_F_DUMP
            _, ifindex, handle, at, info = struct.unpack_from("=BxxxiIII",
                                                              data)
            attrs, rest = {}, data[20:]
            while len(rest) >= 4:
                length, kind = struct.unpack_from("=HH", rest)
                attrs[kind] = rest[4:length]
                rest = rest[(length + 3) & ~3:]
            kind = attrs.get(self.KIND, b"").rstrip(b"\0").decode()
            if ifindex == self.ifindex and kind != "clsact":
                # The counters are in other attributes, which must not be compared.
                found.append(f"{kind} {handle:x} at {at:x} info {info:x} "
                             f"{attrs.get(self.OPTIONS, b'').hex()}")
        return found

    def snapshot(self):
        return self.entries(self.GETQDISC, 0) + [
                f for hook in self.HOOKS
                for f in self.entries(self.GETFILTER, hook)]

    def forget_clsact(self):
        """Delete clsact, if there is one."""
        list(self.ask(self.DELQDISC, 4, self.CLSACT, 0xffff0000))


def pins(root=f"{BPFFS}/natra", directories=True):
    """List the pins, without the locks of namespaces and the directory of the ABI, which
    stays. A lock's empty directory that
    could not be removed is used by the next attach or removed by gc; see
    tests/api/test_locks.c."""
    return sorted(os.path.join(d, f) for d, dirs, files in os.walk(root)
                  for f in files + (dirs if directories else [])
                  if not f.startswith(("netns_", "abi")))


class Watch:
    """Takes snapshots of all that natra could have changed for one pod."""

    def __init__(self, pod):
        self.pod = pod
        self.ends = {"host": Tc(pod.host)}
        with pod:
            self.ends["pod"] = Tc("eth0")

    def snapshot(self, directories=True):
        """Return the state without clsact: natra makes it where there is none, but must
        not delete it, because others may have begun to share it."""
        state = {"pins": pins(directories=directories)}
        for name, end in self.ends.items():
            state[name] = end.snapshot()
        state["tcx host"] = tcx_programs(socket.if_nametoindex(self.pod.host))
        with self.pod:
            state["tcx pod"] = tcx_programs(socket.if_nametoindex("eth0"))
            state["gso_max_segs"] = [rtnl.gso_max_segs("eth0")]
        return state

    def forget_clsact(self):
        for end in self.ends.values():
            end.forget_clsact()

    def settle(self, wanted, directories=True):
        """Wait until the state is `wanted`. Returns the differences as text."""
        end = time.monotonic() + SETTLE_SECONDS
        while True:
            now = self.snapshot(directories)
            if now == wanted:
                return ""
            # Only hooks change with a delay; wrong pins stay wrong.
            if now["pins"] != wanted["pins"] or time.monotonic() > end:
                return differences(wanted, now)
            time.sleep(0.02)


def left_of(objects):
    """Return which of the BPF objects, [(kind, id)], the kernel still has."""
    return bpfsys.left(objects, FREE_SECONDS)


def differences(wanted, now):
    text = []
    for key, value in wanted.items():
        for word, some in (("has", [x for x in now[key] if x not in value]),
                           ("lacks", [x for x in value if x not in now[key]])):
            if some:
                text.append(f"{key} {word} {some[-1]}" + (
                    f" and {len(some) - 1} more" if len(some) > 1 else ""))
    return "; ".join(text) or "another order"
