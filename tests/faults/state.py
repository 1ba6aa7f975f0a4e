# SPDX-License-Identifier: BSD-2-Clause
"""What the kernel holds for a pod's interface: pins, hooks, qdiscs, objects."""
import ctypes
import errno
import os
import socket
import struct
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../harness")
import bpfsys
from rig import BPFFS

PROG_QUERY = 16
GET_FD_BY_ID = {"prog": 13, "map": 14, "link": 30}
SETTLE_SECONDS = 5      # the kernel frees BPF objects after RCU


def tcx_programs(ifindex):
    """Ids on both TCX hooks of an interface in the thread's namespace."""
    found = []
    for hook in (bpfsys.TCX_INGRESS, bpfsys.TCX_EGRESS):
        ids = (ctypes.c_uint32 * 64)()
        attr = ctypes.create_string_buffer(struct.pack(
                "=IIIIQI", ifindex, hook, 0, 0, ctypes.addressof(ids), 64), 64)
        try:
            bpfsys.bpf(PROG_QUERY, attr.raw)
        except OSError as e:
            if e.errno != errno.EINVAL:     # a kernel without TCX
                raise
        found.append([i for i in ids if i])
    return found


def exists(kind, number):
    try:
        fd = bpfsys.bpf(GET_FD_BY_ID[kind], struct.pack("=II", number, 0))
    except OSError as e:
        # EAGAIN: the link is being freed.
        return e.errno not in (errno.ENOENT, errno.EAGAIN)
    os.close(fd)
    return True


def tc(netns, *lines):
    """Run tc commands in one go; errors of single ones are no matter."""
    where = ["-n", netns] if netns else []
    return subprocess.run(["tc", *where, "-force", "-b", "-"], text=True,
                          input="\n".join(lines) + "\n", timeout=20,
                          stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL).stdout


def pins(root=f"{BPFFS}/natra", directories=True):
    return sorted(os.path.join(d, f) for d, dirs, files in os.walk(root)
                  for f in files + (dirs if directories else []))


class Watch:
    """One pod: snapshots of all that natra could have changed."""

    def __init__(self, pod):
        self.pod = pod
        self.ends = ((None, pod.host), (pod.name, "eth0"))

    def snapshot(self, directories=True):
        """clsact is left out: natra makes it where there is none, and may not
        delete what others may have come to share."""
        state = {"pins": pins(directories=directories)}
        for netns, dev in self.ends:
            lines = tc(netns, f"qdisc show dev {dev}",
                       f"filter show dev {dev} ingress",
                       f"filter show dev {dev} egress").splitlines()
            state[dev] = [x for x in lines if "qdisc clsact" not in x]
        state["tcx host"] = tcx_programs(socket.if_nametoindex(self.pod.host))
        with self.pod:
            state["tcx pod"] = tcx_programs(socket.if_nametoindex("eth0"))
        return state

    def forget_clsact(self):
        for netns, dev in self.ends:
            tc(netns, f"qdisc del dev {dev} clsact")

    def settle(self, wanted, directories=True):
        """Wait until the state is `wanted`; what differs, as text."""
        end = time.monotonic() + SETTLE_SECONDS
        while True:
            now = self.snapshot(directories)
            if now == wanted:
                return ""
            # Pins do not change by themselves.
            if now["pins"] != wanted["pins"] or time.monotonic() > end:
                return differences(wanted, now)
            time.sleep(0.02)


def left_of(objects):
    """Which of the BPF objects, [(kind, id)], the kernel still has."""
    end = time.monotonic() + SETTLE_SECONDS
    while True:
        objects = [o for o in objects if exists(*o)]
        if not objects or time.monotonic() > end:
            return objects
        time.sleep(0.05)


def differences(wanted, now):
    text = []
    for key, value in wanted.items():
        for word, some in (("has", [x for x in now[key] if x not in value]),
                           ("lacks", [x for x in value if x not in now[key]])):
            if some:
                text.append(f"{key} {word} {some[-1]}" + (
                    f" and {len(some) - 1} more" if len(some) > 1 else ""))
    return "; ".join(text) or "another order"
