#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs natra where another build of the same ABI was before or comes after it: a plugin
that is swapped under a live pod keeps its limits.
"""
import glob
import json
import os
import re
import shutil
import sys
import tempfile
import time

import plugin
from plugin import PINS, Veth, attachment, call, find_natra, natractl, pins, programs
import bpfsys
from commands import sh
from report import skip
from flood import NODE_IP, POD_IP, Stream

RATE = 10_000_000
OFFERED = 8 * RATE
FNV_BASIS = 0xcbf29ce484222325


def conf(pod, **keys):
    return dict({"cniVersion": "1.0.0", "name": "upgrade", "type": "natra",
                 "runtimeConfig": {"bandwidth": {"ingressRate": RATE,
                                                 "egressRate": RATE}},
                 "prevResult": pod.prev_result()}, **keys)


def u64(number):
    return number.to_bytes(8, sys.byteorder)


def object_id():
    with open(f"{os.path.dirname(find_natra())}/../bpf/natra_object_id.h") as f:
        return int(re.search("0x([0-9a-f]{16})ULL", f.read())[1], 16)


def other_build(directory, *changes):
    """Make the plugin look as if it were built from another source: each constant in
    the library that `changes` has as bytes (before, after) is replaced. The second
    result says whether all were found."""
    natra = find_natra()
    library = os.path.realpath(f"{os.path.dirname(natra)}/../src/libnatra.so.0")
    for name in ("cni", "src"):
        os.makedirs(f"{directory}/{name}")
    shutil.copy(natra, f"{directory}/cni/natra")
    with open(library, "rb") as f:
        text = f.read()
    found = all(before in text for before, _ in changes)
    for before, after in changes:
        text = text.replace(before, after)
    with open(f"{directory}/src/libnatra.so.0", "wb") as f:
        f.write(text)
    return f"{directory}/cni/natra", found


def other_object(directory):
    return other_build(directory, (u64(object_id()), u64(object_id() ^ 1)))


def other_layout(directory):
    """Change the number with which the hash that names an engine begins."""
    return other_build(directory, (u64(FNV_BASIS), u64(FNV_BASIS ^ 1)),
                       (u64(object_id()), u64(object_id() ^ 2)))


def pinned_value(path, size):
    fd = bpfsys.obj_get(path)
    value = bpfsys.map_lookup(fd, 0, size)
    os.close(fd)
    return value


def engine_programs():
    """Return the program ids in the arrays of all banks."""
    return {path: pinned_value(path, 4)
            for path in glob.glob(f"{PINS}/abi*/engine_*/*/programs")}


def counted(path):
    """Return the number of packets into the pod that passed, and of those that passed
    unjudged."""
    into = json.loads(natractl("stats", attachment(path)["id"], "--json"))[
            "ingress"]
    return (sum(into[k]["packets"] for k in ("mice", "admitted", "marked",
                                             "unlimited", "other")),
            into["unlimited"]["packets"])


def added(rep, what, path, pod, **env):
    """Check that ADD and CHECK by a plugin succeed."""
    env = {"CNI_NETNS": pod.path, **env}
    a, b = (call(path, command, conf(pod), **env)
            for command in ("ADD", "CHECK"))
    rep.check(f"  {what}: ADD, CHECK", f"{a.code}, {b.code}", "0, 0",
              not a.code and not b.code)


def deleted(rep, path, pod, **env):
    a = call(path, "DEL", conf(pod), CNI_NETNS=pod.path, **env)
    rep.check("  DEL", str(a)[:80], "success", not a.code)
    rep.equal("    programs left", programs(pod), [0, 0])


def test_swap(rep, pod):
    """Check how much extra traffic a replaced program lets pass: it begins with a full
    burst, 0.5 s of the rate, and does not know yet which flow is heavy, 0.1 s of the
    rate."""
    print("another layout under a live pod:")
    with tempfile.TemporaryDirectory() as directory:
        other, found = other_layout(directory)
        rep.true("  the other build has another engine", found)
        plugins = (find_natra(), other)
        call(other, "ADD", conf(pod), CNI_NETNS=pod.path)
        stream = Stream(pod, OFFERED)
        # By then the first burst is used up and the flow is known to be heavy.
        time.sleep(1.5)
        since = time.monotonic()
        for step in range(3):
            added(rep, f"swap {step + 1}", plugins[step % 2], pod)
            rep.equal("    programs", programs(pod), [1, 1])
            time.sleep(0.7)
        stream.end()
        # Rate, burst and threshold are 2.2 times the rate. Policing forgives 1/32 of the
        # rate and 67 ms of it, 0.17 in 0.5 s.
        rep.most("  most in any 0.5 s", stream.most(since, 0.5) / 1e6,
                 RATE * 2.5 / 1e6, " Mbit/s")
        rep.least("  and something came", stream.most(since, 0.5) / 1e6,
                  RATE * 0.5 / 1e6, " Mbit/s")
        # A pod that comes now gets the other engine, and both engines work.
        second = Veth("second", "vsecond")
        added(rep, "a second pod", other, second, CNI_CONTAINERID="second")
        rep.equal("  engines of two builds", len(glob.glob(f"{PINS}/abi*/engine_*")), 2)
        # `natractl upgrade` is the other way to upgrade; an attachment of another
        # layout is attached again.
        natractl("upgrade")
        rep.equal("  all are current", {a["program_is_current"]
                                        for a in plugin.attachments()}, {True})
        rep.equal("  and CHECK is green", call(
                find_natra(), "CHECK", conf(second), CNI_NETNS=second.path,
                CNI_CONTAINERID="second").code, 0)
        deleted(rep, other, pod)
        deleted(rep, other, second, CNI_CONTAINERID="second")
        second.close()
        rep.equal("  pins left", pins(), [])
        natractl("gc")


SWAPS = 6


def test_in_place(rep, pod):
    """Check that only the program changes under the pod: there is no new burst, and
    every packet is counted."""
    print("another object under a live pod:")
    with tempfile.TemporaryDirectory() as directory:
        other, found = other_object(directory)
        rep.true("  the other build has another object", found)
        added(rep, "this build", find_natra(), pod)
        stream = Stream(pod, OFFERED)
        time.sleep(1.5)
        before, since = attachment(pod.path), time.monotonic()
        was, seen = counted(pod.path), 0
        ids = [engine_programs()]
        for step in range(SWAPS):
            if step % 2 == 0:
                added(rep, f"swap {step + 1}", other, pod)
                rep.equal("    this build sees", attachment(pod.path)[
                        "program_is_current"], False)
            else:
                natractl("upgrade", before["id"])
                rep.equal(f"  swap {step + 1}, by natractl upgrade", attachment(
                        pod.path)["program_is_current"], True)
            ids.append(engine_programs())
            now = counted(pod.path)
            rep.least("    packets counted", now[0], was[0])
            was = now
            time.sleep(0.3)
        stream.end()
        now, after = counted(pod.path), attachment(pod.path)
        seen = len(stream.seen)
        rep.true("  each time all programs changed", all(
                old.keys() == new.keys() and
                all(old[path] != new[path] for path in old)
                for old, new in zip(ids, ids[1:])))
        rep.equal("  on the hooks are the same", [after[k] for k in (
                "ingress_prog_id", "egress_prog_id", "pin_path")],
                  [before[k] for k in ("ingress_prog_id", "egress_prog_id",
                                       "pin_path")])
        # More packets may be counted because the node also sends ARP for the pod's
        # address.
        rep.most("  packets that came", seen, now[0])
        rep.equal("  unlimited ones", now[1], 0)
        # Policing forgives 1/32 of the rate and 67 ms of it, 0.17 in 0.5 s, and a sender
        # that stalls for 0.1 s sends 0.2 later. A swap that forgets everything shows 2.2.
        rep.most("  most in any 0.5 s", stream.most(since, 0.5) / 1e6,
                 RATE * 1.4 / 1e6, " Mbit/s")
        rep.least("  and something came", stream.most(since, 0.5) / 1e6,
                  RATE * 0.5 / 1e6, " Mbit/s")
        deleted(rep, find_natra(), pod)
        natractl("gc")


def main(rep, _):
    if not plugin.has_tcx():
        skip("TCX")
    os.makedirs(PINS, mode=0o700, exist_ok=True)
    pod = Veth("upgrade", "vupgrade")
    pod.run("ip", "addr", "add", f"{POD_IP}/24", "dev", "eth0")
    sh("ip", "addr", "add", f"{NODE_IP}/24", "dev", pod.host)
    rep.measure("another layout", test_swap, rep, pod)
    rep.measure("in place", test_in_place, rep, pod)
    pod.close()


if __name__ == "__main__":
    plugin.run_script(main)
