# SPDX-License-Identifier: BSD-2-Clause
"""Gives a Kubernetes node a place of its own on this machine, and takes it away again.

The node has network, mount, pid and cgroup namespaces. What it writes to /etc, /opt,
/run and /var goes to memory. The process that stays outside removes the cgroups, and
checks that the machine is as it was.
"""
import glob
import os
import signal
import sys
import tempfile
import time

from commands import bpftool, sh
from isolation import (NETNS_DIR, PR_SET_PDEATHSIG, isolate, libc, mount, need_root)
from report import Report

CLONE_NEWCGROUP = 0x2000000
MS_REC, MS_SHARED = 0x4000, 0x100000
PREFIX = "natra-kube-"
CGROUPS = "/sys/fs/cgroup"
WRITTEN = ("etc", "opt", "var")
# An overlay cannot be the upper directory of another, so what containerd unpacks goes
# to a file system of its own.
IN_MEMORY = ("/run", "/var/lib/containerd", "/var/lib/kubelet", "/var/lib/etcd",
             "/var/lib/cni", "/var/log")
# A node keeps these directories when the power goes. Its control plane has files in /etc/kubernetes,
# which are in /run/kube here.
KEPT = ("/etc/cni", "/etc/containerd", "/etc/kubernetes", "/opt/cni", "/run/kube", "/var/lib/cni",
        "/var/lib/containerd", "/var/lib/etcd", "/var/lib/kubelet", "/var/lib/natra", "/var/log")
# Where a node mounts; the tests of packages and images mount below /tmp and /var/tmp.
NODE_DIRS = tuple(f"/{name}/" for name in ("etc", "mnt", "opt", "run", "sys", "var/lib", "var/log"))
GONE_SECONDS = 30


def hierarchies():
    """Return the mounted cgroup hierarchies: (mount point, type, options)."""
    with open("/proc/mounts") as f:
        rows = [line.split() for line in f]
    return [(r[1], r[2], r[3]) for r in rows if r[2] in ("cgroup", "cgroup2")]


def own_cgroup(options, kind):
    """Return the path of this process's cgroup in a hierarchy."""
    with open("/proc/self/cgroup") as f:
        rows = [line.rstrip("\n").split(":", 2) for line in f]
    for _, names, path in rows:
        if kind == "cgroup2" and not names:
            return path
        if kind == "cgroup" and names and set(names.split(",")) <= \
                set(options.split(",")):
            return path
    return "/"


class Cgroups:
    """A directory in each hierarchy, for the node and all that runs on it."""

    def __init__(self):
        self.dirs = [f"{point}{own_cgroup(options, kind)}/{PREFIX}{os.getpid()}"
                     for point, kind, options in hierarchies()]
        for path in self.dirs:
            os.mkdir(path)
            # A new cpuset has no CPU to run on.
            for name in ("cpuset.cpus", "cpuset.mems"):
                self._copy(os.path.dirname(path), path, name)

    @staticmethod
    def _copy(parent, path, name):
        try:
            with open(f"{parent}/{name}") as f:
                value = f.read()
            if value.strip():
                with open(f"{path}/{name}", "w") as f:
                    f.write(value)
        except OSError:
            pass                # the hierarchy has another controller

    def enter(self):
        """Make the directories the roots that this process and its children see."""
        for path in self.dirs:
            with open(f"{path}/cgroup.procs", "w") as f:
                f.write("0")
        libc("unshare", CLONE_NEWCGROUP)
        # With cgroup2 a cgroup that hands on controllers may have no processes.
        for path in self.dirs:
            os.mkdir(f"{path}/node")
            self._copy(path, f"{path}/node", "cpuset.cpus")
            self._copy(path, f"{path}/node", "cpuset.mems")
            with open(f"{path}/node/cgroup.procs", "w") as f:
                f.write("0")

    def remove(self):
        """Remove the directories when their processes are gone."""
        end = time.monotonic() + GONE_SECONDS
        for path in self.dirs:
            while os.path.isdir(path):
                for directory, _, _ in os.walk(path, topdown=False):
                    try:
                        os.rmdir(directory)
                    except OSError:
                        pass
                if time.monotonic() > end:
                    return
                time.sleep(0.05)


def remove_abandoned():
    """Remove the cgroups of nodes whose process was killed."""
    for point, kind, options in hierarchies():
        for path in glob.glob(f"{point}{own_cgroup(options, kind)}/{PREFIX}*"):
            if not os.path.exists(f"/proc/{path.rpartition('-')[2]}"):
                for directory, _, _ in os.walk(path, topdown=False):
                    os.rmdir(directory)


def traces():
    """Return what a node could leave on the machine, in places where nobody else writes while it runs.

    Of BPF programs these are the ones on the machine's own interfaces: others load programs for pods
    of theirs all the time, and net/lifecycle.py counts what is left of a pod's.
    """
    found = {f"cgroup {d}" for point, _, _ in hierarchies()
             for d, _, _ in os.walk(point) if f"{PREFIX}{os.getpid()}" in d or
             PREFIX not in d and ("/k8s.io" in d or "/kubepods" in d)}
    with open("/proc/mounts") as f:
        points = [line.split()[1] for line in f]
    found |= {f"mount {point}" for point in points if point.startswith(NODE_DIRS)}
    [by_kind] = bpftool("net")
    found |= {f"BPF program {p.get('id', p.get('prog_id'))} at {p['devname']}"
              for p in by_kind["xdp"] + by_kind["tc"]}
    # containerd gives the namespaces of its pods these names.
    found |= {f"file {path}" for pattern in ("/run/netns/cni-*", *(
            f"{directory}{end}" for directory in (
                "/etc/cni", "/opt/cni", "/var/lib/cni", "/var/lib/kubelet", "/var/lib/containerd",
                "/var/lib/etcd", "/run/containerd", "/sys/fs/bpf") for end in ("", "/*")))
              for path in glob.glob(pattern)}
    return found


def new_traces(before):
    """Return what is there that was not, after waiting for what the kernel frees
    late. What comes or goes meanwhile is of others."""
    end = time.monotonic() + GONE_SECONDS
    left = traces() - before
    while left and time.monotonic() < end:
        time.sleep(0.2)
        left &= traces()
    return sorted(left)


def private_files():
    """Let the node write to the machine's directories without changing them."""
    mount("tmpfs", "/mnt")
    for name in WRITTEN:
        upper, work = f"/mnt/{name}-upper", f"/mnt/{name}-work"
        os.mkdir(upper)
        os.mkdir(work)
        sh("mount", "-t", "overlay", "-o",
           f"lowerdir=/{name},upperdir={upper},workdir={work}", "overlay", f"/{name}")
    for path in IN_MEMORY:
        os.makedirs(path, exist_ok=True)
        mount("tmpfs", path)
    os.makedirs(NETNS_DIR)
    tempfile.tempdir = "/run"


def keep(directory):
    """Have what a node keeps in a directory, where the next boot of it finds it."""
    for path in KEPT:
        os.makedirs(f"{directory}{path}", exist_ok=True)
        os.makedirs(path, exist_ok=True)
        sh("mount", "--bind", f"{directory}{path}", path)


def private_cgroups(mounted):
    """Mount the hierarchies again: isolate() has hidden them, and the mounts of before
    show directories above the namespace's root."""
    if not any(point == CGROUPS for point, _, _ in mounted):
        mount("tmpfs", CGROUPS)
    for point, kind, options in mounted:
        os.makedirs(point, exist_ok=True)
        keep = [o for o in options.split(",") if o not in ("rw", "relatime")]
        sh("mount", "-t", kind, *(["-o", ",".join(keep)] if keep else []), "cgroup",
           point)


def enter(cgroups, mounted, kept):
    libc("prctl", PR_SET_PDEATHSIG, signal.SIGKILL)
    cgroups.enter()
    # This returns in a child that is process 1 of its pid namespace.
    isolate()
    private_cgroups(mounted)
    private_files()
    if kept:
        keep(kept)
    # The kubelet gives pods mounts of the node that follow it, which needs this.
    libc("mount", b"none", b"/", b"none", MS_REC | MS_SHARED, None)


def isolate_node(kept=None):
    """Return in the node's namespaces, where the node has its state in the directory `kept` or in
    memory. The caller stays behind, waits, cleans up, and exits with the code of its child, or with 1
    if something is left."""
    need_root()
    remove_abandoned()
    # isolate() makes this one where no namespace has ever had a name.
    os.makedirs(NETNS_DIR, exist_ok=True)
    before = traces()
    mounted = hierarchies()
    cgroups = Cgroups()
    sys.stdout.flush()
    child = os.fork()
    if not child:
        enter(cgroups, mounted, kept)
        return

    def end(*_):
        os.kill(child, signal.SIGKILL)

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    cgroups.remove()
    left = new_traces(before)
    report = Report()
    report.check("left on the machine", len(left), 0, not left)
    for what in left[:20]:
        print(f"     {what}")
    if code:
        sys.exit(code if code > 0 else 128 - code)
    report.end()
