# SPDX-License-Identifier: BSD-2-Clause
"""Attaches the programs of tests/net/neighbour.bpf.c, as another owner, to the hooks
that natra uses."""
import json
import os
import sys

import bpfsys
from commands import sh
from isolation import BPFFS
from limiters import Natra, find_natractl

NAMES = ("next_in", "next_out", "ok_in", "ok_out", "redirect_in",
         "redirect_out", "peer_in", "peer_out")
PINS = f"{BPFFS}/neighbour"


def find_object():
    path = os.environ.get("NATRA_NEIGHBOUR") or os.path.join(
            os.path.dirname(find_natractl()), "../../tests/net/neighbour.bpf.o")
    if not os.path.exists(path):
        sys.exit(f"{path}: not found; NATRA_NEIGHBOUR may name it")
    return path


class Neighbour:
    """Loads the programs, which go away with the script's bpffs."""

    def __init__(self):
        sh("bpftool", "prog", "loadall", find_object(), PINS, "pinmaps",
           f"{PINS}-maps")
        self._seen = bpfsys.obj_get(f"{PINS}-maps/seen")
        self._target = bpfsys.obj_get(f"{PINS}-maps/target")
        self._hold_static_keys()

    def _hold_static_keys(self):
        """Keep a clsact qdisc and TCX programs on lo. With the first of either kind and
        after the last the kernel patches its code, and an emulated CPU with traffic has
        been seen to crash on that (int3)."""
        sh("tc", "qdisc", "add", "dev", "lo", "clsact")
        if Natra().json("probe")["tcx"]:
            prog = bpfsys.obj_get(f"{PINS}/next_in")
            self._links = [bpfsys.tcx_link(prog, 1, kind) for kind in
                           (bpfsys.TCX_INGRESS, bpfsys.TCX_EGRESS)]
            os.close(prog)

    def seen(self, name):
        """Return how many packets a program has counted."""
        return bpfsys.map_lookup(self._seen, NAMES.index(name), 8)

    def target(self, name, ifindex):
        """Set the interface to which a program redirects."""
        bpfsys.map_update(self._target, NAMES.index(name), ifindex, 4)


def ifindex(ns, dev):
    return json.loads(ns.run("ip", "-j", "link", "show", "dev", dev))[0]["ifindex"]


class Site:
    """An interface that has natra on its hooks: `eth0` in the pod, or its host side.

    `into` and `out_of` are the hooks that see the pod's ingress and egress. A redirect
    on either leads over a second veth between pod and node, which has the addresses of
    the first, so what is redirected arrives all the same.
    """

    def __init__(self, r, side):
        self.side = side
        if side == "podside":
            self.ns, self.dev, self.twin = r.pod, "eth0", "twin0"
            self.into, self.out_of = "ingress", "egress"
        else:
            self.ns, self.dev, self.twin = r.node, r.pod.host, "twin1"
            self.into, self.out_of = "egress", "ingress"
        self.ifindex = ifindex(self.ns, self.dev)

    @staticmethod
    def add_twins(r):
        sh("ip", "link", "add", "twin1", "address", r.pod.host_mac, "type",
           "veth", "peer", "name", "twin0", "address", r.pod.mac, "netns",
           r.pod.name)
        for ns, dev in ((r.node, "twin1"), (r.pod, "twin0")):
            ns.run("ip", "link", "set", dev, "up")
            ns.sysctl("net/ipv4/conf/all/rp_filter", "0")
            ns.sysctl(f"net/ipv4/conf/{dev}/rp_filter", "0")

    def aim(self, neighbour):
        """Make the redirects of both hooks lead to the twin."""
        for name in ("redirect_in", "redirect_out"):
            neighbour.target(name, ifindex(self.ns, self.twin))

    def tcx(self, verdict, before=False):
        """Link programs to both hooks, at the end or at the head, and return the links'
        fds, which the caller closes."""
        fds = []
        with self.ns:
            for hook, kind in (("in", bpfsys.TCX_INGRESS),
                               ("out", bpfsys.TCX_EGRESS)):
                prog = bpfsys.obj_get(f"{PINS}/{verdict}_{hook}")
                fds.append(bpfsys.tcx_link(prog, self.ifindex, kind,
                                           bpfsys.BEFORE if before else 0))
                os.close(prog)
        return fds

    def tc(self, what, verb, *args, **kw):
        return self.ns.run("tc", what, verb, "dev", self.dev, *args, **kw)

    def filters(self, hook):
        """Return the BPF filters of a hook in their order, as (priority, handle,
        name)."""
        rows = json.loads(self.ns.run("tc", "-j", "filter", "show", "dev",
                                      self.dev, hook) or "[]")
        return [(f["pref"], int(f["options"]["handle"], 16),
                 f["options"]["prog"]["name"])
                for f in rows if f.get("options", {}).get("prog")]

    def both_filters(self):
        return [self.filters(hook) for hook in ("ingress", "egress")]

    def clsact(self, verdict, verb="replace", priority=1, handle=1,
               protocol="all"):
        """Add filters on both hooks, by default where AWS's network policy agent has
        its own. The clsact qdisc is shared with natra."""
        self.tc("qdisc", "add", "clsact", check=False)
        for hook, suffix in (("ingress", "in"), ("egress", "out")):
            self.tc("filter", verb, hook, "protocol", protocol, "prio",
                    str(priority), "handle", hex(handle), "bpf",
                    "direct-action", "object-pinned",
                    f"{PINS}/{verdict}_{suffix}")

    def flush(self, priority=1):
        for hook in ("ingress", "egress"):
            self.tc("filter", "del", hook, "prio", str(priority), check=False)

    def delete_clsact(self):
        self.tc("qdisc", "del", "clsact")
