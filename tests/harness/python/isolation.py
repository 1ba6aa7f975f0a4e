# SPDX-License-Identifier: BSD-2-Clause
"""Gives a script network, mount and pid namespaces of its own.

Nothing then touches the machine's network, and when the script ends or is
killed, the kernel ends its children and removes interfaces, qdiscs, mounts and
pins with the namespaces. The network namespace that the script runs in is the
"node" of its tests.
"""
import ctypes
import os
import signal
import sys

from report import skip

CLONE_NEWNS, CLONE_NEWPID, CLONE_NEWNET = 0x20000, 0x20000000, 0x40000000
MS_REC, MS_PRIVATE = 0x4000, 0x40000
PR_SET_PDEATHSIG = 1
NETNS_DIR = "/run/netns"
BPFFS = "/tmp/natra-bpffs"

_libc = ctypes.CDLL(None, use_errno=True)


def libc(name, *args):
    if getattr(_libc, name)(*args):
        e = ctypes.get_errno()
        raise OSError(e, f"{name}: {os.strerror(e)}")


def mount(kind, target, flags=0):
    libc("mount", kind.encode(), target.encode(), kind.encode(), flags, None)


def need_root():
    if os.geteuid():
        skip("not root")


def isolate():
    """Give the script namespaces of its own; call it first. It forks, because
    starting Python a second time takes seconds in a VM."""
    need_root()
    libc("unshare", CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWPID)
    sys.stdout.flush()
    child = os.fork()
    if child:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        os._exit(code if code >= 0 else 128 - code)
    # Ctrl-C and meson's timeout reach the parent. When that ends, this process must
    # end, too, and the pid namespace with it.
    libc("prctl", PR_SET_PDEATHSIG, signal.SIGKILL)
    sys.stdout.reconfigure(line_buffering=True)
    # The kernel ignores a signal to pid 1, which this process is, unless it has a
    # handler.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    mount("none", "/", MS_REC | MS_PRIVATE)
    mount("proc", "/proc")
    os.makedirs(NETNS_DIR, exist_ok=True)
    mount("tmpfs", NETNS_DIR)
    os.makedirs(BPFFS, exist_ok=True)
    mount("bpf", BPFFS)
    # /sys shows the network namespace that it was mounted from.
    mount("sysfs", "/sys")
    mount("bpf", "/sys/fs/bpf")
