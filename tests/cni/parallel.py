#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Adds and deletes 64 pods at once, as kubelet does when a node starts: each pod has
its own limits, and after DEL the kernel holds what it held before."""
import json
import os
import subprocess
import sys
import time

import plugin
from plugin import (ENV, HERE, Veth, attachments, find_natra, limits, natractl,
                    pins, programs)
import bpfsys
from commands import bpftool, called_programs, sh
from script import option

sys.path.insert(0, HERE + "/../net")
from memory import settled

PODS = 64
WAYS = ("ingress", "egress")
# Slab, vmalloc and per-CPU memory vary by this much without natra.
SLACK_KIB = 1024


def conf(i, pod):
    """Return a configuration with rates that no other pod has."""
    return {"cniVersion": "1.0.0", "name": "parallel", "type": "natra",
            "runtimeConfig": {"bandwidth": {"ingressRate": 10**6 + i,
                                            "egressRate": 2 * 10**6 + i}},
            "prevResult": pod.prev_result()}


def all_at_once(natra, command, pods, times=1):
    """Run the command for all pods. Returns outputs with exit codes, and the
    seconds."""
    begin = time.monotonic()
    procs = []
    for i, pod in list(enumerate(pods)) * times:
        env = dict(ENV, CNI_COMMAND=command, CNI_CONTAINERID=f"c{i}",
                   CNI_NETNS=pod.path)
        p = subprocess.Popen([natra], env=env, stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        p.stdin.write(json.dumps(conf(i, pod)).encode())
        p.stdin.close()
        procs.append(p)
    said = [(p.stdout.read(), p.wait(timeout=60)) for p in procs]
    return said, time.monotonic() - begin


def objects(infos):
    """Return the ids of the attachments' own programs and links, and of what they may
    share with others: the programs that these call, and the maps."""
    own = {a[f"{way}_prog_id"] for a in infos for way in WAYS} - {0}
    progs, maps = bpftool("prog", "show"), bpftool("map", "show")
    used = {m for p in progs if p["id"] in own for m in p.get("map_ids", [])}
    shared = {c for m in maps if m["id"] in used and m["type"] == "prog_array"
              for c in called_programs(m["id"])}
    used |= {m for p in progs if p["id"] in shared
             for m in p.get("map_ids", [])}
    links = {x["id"] for x in bpftool("link", "show")
             if x.get("prog_id") in own}
    return {"prog": own, "link": links}, {"prog": shared, "map": used}


def left(objs):
    """Return how many of them the kernel still has; it frees them after RCU."""
    return len(bpfsys.left([(kind, i) for kind, ids in objs.items()
                            for i in ids], 5))


def mounts():
    """Return the ids and places of all mounts. Some may disappear meanwhile: a mount
    that was copied when this test's namespace was made is also removed here when its
    mount point is removed there."""
    with open("/proc/self/mountinfo") as f:
        return {(line.split()[0], line.split()[4]) for line in f}


def round_(rep, natra, pods, name):
    """Add all pods twice, side by side, and delete all of them twice."""
    before = mounts()
    said, seconds = all_at_once(natra, "ADD", pods)
    rep.shown(f"{name}: {len(pods)} ADDs", f"{seconds:.2f} s")
    bad = [s for s in said if s[1]]
    rep.check(f"{name}: ADDs that failed", str(bad[:1])[:200], "none", not bad)
    said, _ = all_at_once(natra, "ADD", pods)
    rep.check(f"{name}: ADDs again that failed",
              str([s for s in said if s[1]][:1]), "none",
              not any(code for _, code in said))
    infos = attachments()
    own, shared = objects(infos)
    got = {a["netns_inode"]: limits(a)[:2] for a in infos}
    want = {os.stat(p.path).st_ino: (10**6 + i, 2 * 10**6 + i)
            for i, p in enumerate(pods)}
    rep.check(f"{name}: each pod's limits are its own", str(len(got)),
              len(want), got == want)
    rep.equal(f"{name}: programs in the kernel",
              {tuple(programs(p)) for p in pods}, {(1, 1)})
    said, seconds = all_at_once(natra, "DEL", pods, times=2)
    rep.shown(f"{name}: {2 * len(pods)} DELs, two of each",
              f"{seconds:.2f} s")
    bad = [s for s in said if s != (b"", 0)]
    rep.check(f"{name}: DELs that failed", str(bad[:1])[:200], "none", not bad)
    rep.equal(f"{name}: pins left", pins(), [])
    rep.check(f"{name}: programs and links left",
              f"{left(own)} of {sum(map(len, own.values()))}", "none",
              not left(own) and len(own["prog"]) == 2 * len(pods))
    rep.equal(f"{name}: mounts left", sorted(mounts() - before), [])
    return shared


def main(rep, a):
    natra = find_natra()
    pods = [Veth(f"p{i}", f"v{i}") for i in range(a.pods)]
    # The first round fills caches, mounts bpffs and loads modules, which stay. A leak
    # grows in every round; other activity of the machine grows only in some.
    round_(rep, natra, pods, "first")
    grown = []
    while len(grown) < 4 and min(grown, default=SLACK_KIB + 1) > SLACK_KIB:
        before = settled()
        shared = round_(rep, natra, pods, f"round {len(grown) + 2}")
        after = settled()
        grown.append(sum(after[k] - before[k] for k in before))
    rep.most(f"kernel memory that {len(pods)} pods leave behind", min(grown),
             SLACK_KIB, " KiB")
    natractl("gc")
    rep.equal("shared programs and maps left after gc", left(shared), 0)
    rep.equal("files left after gc",
              [f for _, _, files in os.walk(plugin.PINS) for f in files], [])
    # A namespace disappears when the last reference to it does.
    inodes = {os.stat(p.path).st_ino for p in pods}
    for pod in pods:
        pod.close()
    rep.equal("network namespaces held", sorted(inodes & alive()), [])


def alive():
    """Return the inodes of the network namespaces that still have a process or a
    mount."""
    found = set()
    for line in sh("lsns", "-t", "net", "-n", "-r", "-o", "NS").splitlines():
        found.add(int(line))
    return found


if __name__ == "__main__":
    plugin.run_script(main, option("--pods", type=int, default=PODS))
