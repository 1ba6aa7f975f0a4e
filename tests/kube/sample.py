# SPDX-License-Identifier: BSD-2-Clause
"""Counts what natra, its agent and the pods' network hold on a node, and says whether it stays.

Nothing may start, end or be edited while it counts. Objects of BPF are opened by natra's own pins
only: bpftool opens all that the machine has, see bpfsys.exists().
"""
import json
import os
import re
import socket
import statistics
import time

import bpfsys
from commands import sh
from isolation import NETNS_DIR
from memory import kernel_kib
from plugin import PINS, attachments, natractl, pins

# These figures are the same whenever the same pods are there.
EXACT = ("descriptors", "threads", "pins", "maps", "programs", "links", "memlock KiB", "groups",
         "files", "netns", "interfaces", "results", "addresses", "tasks")
# Of these an attachment has one for each leg, and a leg whose limit an edit took away stays.
OF_LEGS = ("pins", "programs", "links")
# These must be nought whenever the node is at rest: the kernel may still have objects of attachments
# that went, and natra files that it began to write.
NONE = ("objects of before", "half-written files")
KERNEL = ("SUnreclaim", "VmallocUsed", "Percpu")
# A new bank has so many slots (src/state/engine.c), and is loaded when all others are taken: more
# that nobody uses are banks that should have gone.
BANK_SLOTS = 24
# The agent keeps the pages of its largest moment, which comes early; what is kept of each pod goes on.
RSS_GROWTH = 0.03
# The smallest map or program takes a page of the kernel's. The machine does other things as well,
# so that less than so many pods say nothing.
PAGE_KIB, ENOUGH_PODS = 4, 500
FREED_SECONDS = 20
FILES = ("/var/lib/natra", "/run/natra", "/etc/cni/net.d", "/opt/cni/bin")
LOGS = "/var/log"
LEGS = ("ingress", "egress", "host")
RESULTS, ADDRESSES = "/var/lib/cni/results", "/var/lib/cni/networks"
TASKS = "/run/containerd/io.containerd.runtime.v2.task/k8s.io"
COMPLAINTS = re.compile(r"WARNING:|BUG:|\bleak|refcount|unregister_netdevice|Call Trace|blocked for more|"
                        r"rcu.*stall|Out of memory|general protection", re.I)


def entries(*directories):
    """Return the paths of all files below these directories."""
    return [f"{d}/{f}" for top in directories for d, _, files in os.walk(top) for f in files]


def listed(path):
    return os.listdir(path) if os.path.isdir(path) else []


def pinned(path):
    """Return the kind of what is pinned there, its id, the bytes that it takes, and, of a map, what
    it has room for and the ids of the programs in it."""
    fd = bpfsys.obj_get(path)
    try:
        with open(f"/proc/self/fdinfo/{fd}") as f:
            info = dict(line.split(":", 1) for line in f if ":" in line)
        for kind in ("link", "map", "prog"):
            if f"{kind}_id" in info:
                break
        called = set()
        if info.get("map_type", "").strip() == "3" and path.endswith("/programs"):
            called = {bpfsys.map_lookup(fd, 0, 4)}
        return (kind, int(info[f"{kind}_id"]), int(info.get("memlock", 0)),
                int(info.get("max_entries", 0)), called)
    finally:
        os.close(fd)


def programs_of(some):
    """Return the programs of attachments, as `natractl list` shows them."""
    return {("prog", a[f"{leg}_prog_id"]) for a in some for leg in LEGS if a[f"{leg}_prog_id"]}


class Objects:
    """The programs, maps and links that attachments hold, now and ever."""

    def __init__(self):
        self.ever = set()

    def note(self, some):
        """Remember the programs of attachments, also of such as will not be there at the next count."""
        self.ever |= programs_of(some)

    def count(self):
        """Return what there is now, and how many slots of the shared banks nobody uses."""
        some = attachments()
        self.note(some)
        shared, own, memlock, slots = set(), programs_of(some), 0, 0
        legs = len(own)
        used = sum(len(a["classes"]) + 1 for a in some
                   for leg in LEGS if a[f"{leg}_prog_id"])
        for path in entries(PINS):
            kind, number, size, room, called = pinned(path)
            if "/engine_" in path:
                shared |= {(kind, number), *(("prog", c) for c in called)}
                slots += room if path.endswith("/configs") else 0
            else:
                own.add((kind, number))
                memlock += size
        self.ever |= own | shared
        left = bpfsys.left(sorted(self.ever - own - shared), FREED_SECONDS)
        return {"legs": legs, "maps": sum(kind == "map" for kind, _ in own),
                "programs": sum(kind == "prog" for kind, _ in own),
                "links": sum(kind == "link" for kind, _ in own),
                "memlock KiB": memlock // 1024, "objects of before": len(left),
                "banks": sum(path.endswith("/configs") for path in entries(PINS)),
                "engines": sum("engine_" in d for abi in listed(PINS)
                               for d in listed(f"{PINS}/{abi}")),
                "spare slots": slots - used}

    def left(self):
        """Return what of all that there ever was the kernel still has."""
        return bpfsys.left(sorted(self.ever), FREED_SECONDS)


def children(pid):
    found = []
    for task in listed(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{task}/children") as f:
                found += f.read().split()
        except OSError:
            pass
    return found


def process(pid):
    """Return what a process holds, once it has no children."""
    end, quiet = time.monotonic() + 15, 0
    while quiet < 3 and time.monotonic() < end:
        quiet = 0 if children(pid) else quiet + 1
        time.sleep(0.1)
    with open(f"/proc/{pid}/status") as f:
        status = dict(line.rstrip("\n").split(":", 1) for line in f)
    return {"rss KiB": int(status["VmRSS"].split()[0]), "threads": int(status["Threads"]),
            "descriptors": len(os.listdir(f"/proc/{pid}/fd"))}


def descriptors(pid):
    """Return what a process has open, for whoever asks why it is more than before."""
    found = []
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            found.append(os.readlink(f"/proc/{pid}/fd/{fd}"))
        except OSError:
            pass
    return sorted(re.sub(r"\d{4,}", "N", text) for text in found)


def files():
    return [path for path in entries(*FILES) if not is_half(path)]


def is_half(path):
    """Whether natra writes it and renames it then, as the file that is there."""
    return os.path.basename(path).startswith(".natra")


def node():
    """Return what pods leave when their end is not complete."""
    return {"files": len(files()),
            "half-written files": sum(is_half(path) for path in entries(*FILES)),
            "netns": len(listed(NETNS_DIR)), "interfaces": len(socket.if_nameindex()),
            "results": len(listed(RESULTS)),
            "addresses": sum(name[0].isdigit() for path in entries(ADDRESSES)
                             for name in [os.path.basename(path)]),
            "tasks": len(listed(TASKS))}


def sample(pid, objects):
    """Return all figures, by their names. The agent has this pid."""
    return {**process(pid), **objects.count(), **node(), "pins": len(pins()),
            "groups": len(json.loads(natractl("group", "show", "--json"))),
            **{name + " KiB": kib for name, kib in kernel_kib(KERNEL).items()}}


def complaints():
    """Return the kernel's complaints so far, or None if its log cannot be read."""
    try:
        return [line for line in sh("dmesg").splitlines() if COMPLAINTS.search(line)]
    except (OSError, RuntimeError):
        return None


def thirds(rows):
    """Return the first and the last third."""
    count = max(1, len(rows) // 3)
    return rows[:count], rows[-count:]


def median(rows, name):
    return statistics.median(row[name] for row in rows)


def judge_rss(report, rows):
    """Compare the first with the last third of each agent's samples."""
    for life in sorted({row["life"] for row in rows}):
        first, last = thirds([row for row in rows if row["life"] == life])
        report.most(f"agent {life}: RSS grew to, of its first third's",
                    median(last, "rss KiB") / median(first, "rss KiB"), 1 + RSS_GROWTH)


def judge_kernel(report, rows):
    first, last = thirds(rows)
    pods = max(1, median(last, "pods") - median(first, "pods"))
    for name in KERNEL:
        # Other processes take memory for a while, which adds to some of the samples.
        least = [min(row[f"{name} KiB"] for row in some) for some in (first, last)]
        each = (least[1] - least[0]) / pods
        if pods >= ENOUGH_PODS:
            report.most(f"{name}, KiB for each of {pods:.0f} pods that came", each, PAGE_KIB)
        else:
            report.shown(f"{name}, KiB for each of {pods:.0f} pods that came", f"{each:.1f}")


def judge(report, rows):
    """Check the samples of a time in which the same number of pods was there, without its begin."""
    rows = rows[max(1, len(rows) // 10):]
    for name in EXACT:
        less = "legs" if name in OF_LEGS else None
        values = sorted({row[name] - row.get(less, 0) for row in rows})
        report.equal(f"{name}{' - legs' if less else ''}, in {len(rows)} samples", values, values[:1])
    for name in NONE:
        report.equal(name, max(row[name] for row in rows), 0)
    worst = max(rows, key=lambda row: row["spare slots"] / max(1, row["engines"]))
    report.check(f"slots that nobody uses, of {worst['engines']} engines", worst["spare slots"],
                 f"<= {worst['engines'] * BANK_SLOTS}",
                 worst["spare slots"] <= worst["engines"] * BANK_SLOTS)
    judge_rss(report, rows)
    judge_kernel(report, rows)
