#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Attaches and detaches in each attach mode. What becomes of interfaces and names,
and of the programs of others, is in the suite api.

After each story the machine must be as before: qdiscs, filters and pins are the same,
and none of the programs, maps and links that natra made are left.
"""
import os
import sys
import time

sys.path.insert(0, os.path.dirname(__file__) + "/../harness/python")
import bpfsys
from commands import bpftool, called_programs, sh
from isolation import BPFFS
from limiters import Natra, total
from rig import Rig
from script import run_script

LIMITS = ("--ingress-rate", "10M", "--egress-rate", "10M")


def tree(path):
    """Return all pins; empty directories and lock files of natra do not count."""
    return sorted(os.path.join(d, f) for d, _, files in os.walk(path)
                  for f in files)


def network(r):
    """Return the qdiscs and filters of both ends of the veth, without counters.

    clsact is left out: natra makes it where there is none and must not delete it, since
    another owner may have come to share it.
    """
    state = []
    for run, dev in ((sh, r.pod.host), (r.pod.run, "eth0")):
        qdiscs = run("tc", "-d", "qdisc", "show", "dev", dev)
        state += [q for q in qdiscs.splitlines() if "clsact" not in q]
        for hook in ("ingress", "egress"):
            state.append(run("tc", "filter", "show", "dev", dev,
                             hook, check=False))
    return state


def maps_of(progs):
    return {m for p in bpftool("prog", "show") if p["id"] in progs
            for m in p.get("map_ids", [])}


def objects(show):
    """Return the ids of the attachment's programs, of those that they call, of the maps
    of both, and of the links."""
    progs = {show[k] for k in ("ingress_prog_id", "egress_prog_id",
                               "host_prog_id")} - {0}
    arrays = maps_of(progs)
    progs |= {c for a in arrays for c in called_programs(a)}
    maps = maps_of(progs)
    links = {x["id"] for x in bpftool("link", "show")
             if x.get("prog_id") in progs}
    return {"prog": progs, "map": maps, "link": links}


def left(objs):
    """Return which of the objects the kernel still has; it frees them after RCU."""
    have = {}
    for kind, i in bpfsys.left([(kind, i) for kind, ids in objs.items()
                                for i in ids], 10):
        have.setdefault(kind, set()).add(i)
    return have


class Story:
    """One sequence on one pod; nothing may remain at its end."""

    def __init__(self, r, rep, name, mode=None):
        self.r, self.rep, self.name = r, rep, name
        self.mode = ["--attach-mode", mode] if mode else []
        self.natra = Natra(r.pod, *self.mode)
        self.objs = {"prog": set(), "map": set(), "link": set()}

    def __enter__(self):
        self.before = network(self.r), tree(BPFFS)
        return self

    def __exit__(self, kind, *_):
        if kind:
            return
        self.same("qdiscs, filters and pins as before", self.before)
        self.rep.equal(f"{self.name}: objects left", left(self.objs),
                       {})

    def same(self, what, before):
        now = network(self.r), tree(BPFFS)
        self.rep.true(f"{self.name}: {what}", now == before,
                      "same" if now == before else f"{before} -> {now}")

    def note(self):
        """Remember what the kernel holds for the attachment. bpftool opens what it
        lists, and an object that natra has just given up would then stay, see
        bpfsys.exists(); so there is a pause before it."""
        time.sleep(0.1)
        show = self.natra.show()
        for kind, ids in objects(show).items():
            self.objs[kind] |= ids
        return show

    def attach(self, *more, **kw):
        self.natra.ok("attach", "eth0", "--netns", self.r.pod.path,
                      "--id", self.natra.id, *LIMITS, *self.mode, *more,
                      **kw)
        return self.note()


def twice(r, rep, mode):
    with Story(r, rep, f"{mode} twice", mode) as s:
        first = s.attach()
        rep.equal(f"{mode}: mode as asked", first["mode"], mode)
        r.client.popen("hey", "-n", "50", "-c", "5",
                       f"http://{r.pod.ip}/file").wait(timeout=20)
        counted = total(s.natra.stats()["ingress"])
        rep.check(f"{mode}: traffic counted", str(counted), "> 0",
                  counted > 0)
        s.attach()
        rep.least(f"{mode}: counters kept by the second attach",
                  total(s.natra.stats()["ingress"]), counted)
        rep.equal(f"{mode}: listed", [a["id"] for a in
                                      s.natra.json("list")],
                  [s.natra.id])
        s.natra.detach()
        rep.equal(f"{mode}: second detach",
                  s.natra.run("detach", s.natra.id).returncode, 1)


def array_held(r, rep, mode):
    """Another process has the array of programs open, as bpftool for a moment has what
    it lists. The programs and their state go away all the same."""
    with Story(r, rep, f"{mode} array held", mode) as s:
        show = s.attach()
        arrays = maps_of({show["ingress_prog_id"], show["egress_prog_id"]})
        called = {c for a in arrays for c in called_programs(a)}
        fds = [bpfsys.map_by_id(a) for a in arrays]
        s.natra.detach()
        rep.equal(f"{mode} array held: programs left of {len(called)}",
                  left({"prog": called}), {})
        for fd in fds:
            os.close(fd)


def environment(r, rep, modes):
    with Story(r, rep, "environment") as s:
        show = s.attach(env={"NATRA_ATTACH_MODE": modes[0], "NATRA_EDT_PACING": "off"})
        rep.equal("the environment's mode, and EDT", (show["mode"], show["edt_active"]),
                  (modes[0], False))
        s.natra.detach()
        show = s.attach("--attach-mode", modes[-1], env={"NATRA_ATTACH_MODE": modes[0]})
        rep.equal("an explicit mode wins", show["mode"], modes[-1])
        s.natra.detach()


def main(rep, a):
    modes = Natra.modes()
    with Rig() as r:
        r.nginx()
        environment(r, rep, modes)
        for mode in modes:
            twice(r, rep, mode)
            array_held(r, rep, mode)


if __name__ == "__main__":
    run_script(main)
