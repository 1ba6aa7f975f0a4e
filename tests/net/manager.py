#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Limits a pod by natra and by the calls of Cilium's bandwidth manager, of manager.bpf.c.

Both read the pod's annotations, so they have the same rates. Streams pass in both directions, with
small requests beside them. Of two limits the smaller one has to hold, and out of the pod be used
up. A table says what passed, in Mbit/s, and what a request waited: the manager has one queue for
all of a pod's packets, also for the acknowledgements of what comes in. It needs fq and TCX.
"""
import json
import os
import struct
import sys
import time

sys.path.insert(0, os.path.dirname(__file__) + "/../harness/python")
import bpfsys
from commands import sh
from fair import find_rr
from isolation import BPFFS
from limiters import Natra, bits, find_natractl
from meter import wire_rates
from neighbour import ifindex
from report import skip
from rig import Rig
from script import MODES, option, run_script

PINS = f"{BPFFS}/manager"
THROTTLE = "tc/globals/cilium_throttle"     # in a bpffs it says that Cilium's is on
RATE, SMALLER = "10M", "4M"
# (natra's, the manager's): alone, both the same, and each the smaller one.
PAIRS = ((RATE, None), (RATE, RATE), (SMALLER, RATE), (RATE, SMALLER))
HORIZON_NS = 2_000_000_000
POD, EGRESS = 1, 1
HEAD = ("mode", "natra", "manager", "in", "out", "a request, median ms", "p99 ms")
PORT, REQUESTS = 5600, 25       # per second


def update(name, key, value):
    """Write an element of the manager's map."""
    def in_hex(data):
        return [f"0x{byte:02x}" for byte in data]
    sh("bpftool", "map", "update", "pinned", f"{PINS}-maps/{name}", "key", *in_hex(key), "value",
       *in_hex(value))


class Manager:
    """Has the programs where Cilium has them: on the host side of the pod's interface, and on
    the interface by which packets leave the node."""

    def __init__(self, r):
        path = os.environ.get("NATRA_MANAGER") or os.path.join(
                os.path.dirname(find_natractl()), "../../tests/net/manager.bpf.o")
        sh("bpftool", "prog", "loadall", path, PINS, "pinmaps", f"{PINS}-maps")
        sh("tc", "qdisc", "replace", "dev", r.client.host, "root", "fq", "buckets", "32768")
        self.links = [self._link(r, dev, name, kind) for dev, name, kind in (
            (r.pod.host, "cil_from_container", bpfsys.TCX_INGRESS),
            (r.client.host, "reference", bpfsys.TCX_EGRESS),
            (r.client.host, "cil_from_netdev", bpfsys.TCX_INGRESS))]

    @staticmethod
    def _link(r, dev, name, kind):
        prog = bpfsys.obj_get(f"{PINS}/{name}")
        link = bpfsys.tcx_link(prog, ifindex(r.node, dev), kind)
        os.close(prog)
        return link

    @staticmethod
    def limit(rate):
        """Set both limits; None lets all pass."""
        per_second = bits(rate) // 8 if rate else 0
        update("bucket", struct.pack("=I", 0), struct.pack("=QQQ", per_second, 0, 0))
        update("limits", struct.pack("=II", POD, EGRESS),
               struct.pack("=QQQ", per_second or bits("100G"), 0, HORIZON_NS))


def judge(rep, what, rates, limits, client, pod, seconds, tolerance=0.1):
    """Compare the rates in and out with the limits that hold, of which None is none, and let small
    requests pass over one connection to the pod. Return a row's cells."""
    for way, rate, limit in zip(("in", "out"), rates, limits):
        if limit:
            rep.most(f"{what}: {way}, of the limit", rate / bits(limit), 1 + tolerance)
        else:
            rep.least(f"{what}: {way}, without a limit, in 10M", rate / bits("10M"), 3)
    # What comes in waits for its acknowledgements, which are in the manager's queue.
    rep.least(f"{what}: out, of the limit", rates[1] / bits(limits[1]), 1 - tolerance)
    waited = json.loads(client.run(find_rr(), "client", pod.ip, str(PORT), "64", str(REQUESTS),
                                   str(seconds), timeout=seconds + 60))
    rep.least(f"{what}: requests that were answered", waited["answered"], 1)
    return [*(f"{rate / 1e6:.1f}" for rate in rates), *(f"{waited[key]:.0f}" for key in (
        "p50_ms", "p99_ms"))]


def smaller(*rates):
    return min(filter(None, rates), key=bits)


def cell(r, rep, a, what, least):
    return judge(rep, what, wire_rates(r.meters(), a.seconds), [least] * 2, r.client, r.pod,
                 int(a.seconds))


def show(*cells):
    print(f"| {' | '.join(cells)} |", flush=True)


def mode_of(found):
    return f"{found['mode']}{', paced' if found['edt_active'] else ''}"


def told(rep, natra, what):
    """Look what natra says of it."""
    check = natra.run("check", natra.id)
    rep.equal(f"{what}: check", (check.returncode, check.stderr), (0, ""))
    doctor = natra.run("doctor").stdout
    rep.true("  doctor says that two limits hold", "two limits hold" in doctor)


def play(r, rep, a, manager, mode):
    for own, its in PAIRS:
        natra = Natra(r.pod, "--attach-mode", mode).attach(own, own)
        manager.limit(its)
        elephants = r.elephants()
        time.sleep(a.settle)
        what = f"{mode}, natra {own}, manager {its or 'off'}"
        show(mode_of(natra.show()), own, its or "off", *rep.measure(
            what, cell, r, rep, a, what, smaller(own, its)))
        if its == own:
            told(rep, natra, what)
        r.stop(elephants)
        natra.detach()


def main(rep, a):
    probe = Natra().json("probe")
    if not probe["fq"] or not probe["tcx"]:
        skip("a kernel with fq and TCX")
    with Rig() as r:
        manager = Manager(r)
        r.pod.popen(find_rr(), "server", str(PORT))
        r.wait_port(r.pod, PORT)
        throttle = f"{BPFFS}/{THROTTLE}"
        os.makedirs(os.path.dirname(throttle))
        sh("bpftool", "map", "pin", "pinned", f"{PINS}-maps/limits", throttle)
        manager.limit(RATE)
        elephants = r.elephants()
        time.sleep(a.settle)
        show(*HEAD)
        show(*["---"] * len(HEAD))
        show("–", "off", RATE, *rep.measure("manager alone", cell, r, rep, a, "manager alone", RATE))
        r.stop(elephants)
        for mode in a.mode.split(",") if a.mode else Natra.modes():
            play(r, rep, a, manager, mode)


if __name__ == "__main__":
    run_script(main, MODES, option("--seconds", type=float, default=4),
               option("--settle", type=float, default=5))
