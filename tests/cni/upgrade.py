#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs natra where another version was before or comes after it.

What ABI 1 pinned is detached and replaced, a plugin that is swapped under a live pod
keeps its limits, and what a newer ABI pinned is left alone with a message that names
both.

State of ABI 1 is made twice: by the last commit that pinned it, and by this file. Where
there is no history to build that commit from, the rest is tested, and if nothing
failed, the script is skipped; in CI that is a failure.
"""
import ctypes
import glob
import json
import os
import re
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

import plugin
from plugin import (HERE, PINS, Veth, attachment, call, find_natra, malformed,
                    natractl, pins, programs)
import bpfsys
from commands import sh
from limiters import find_natractl
from report import skip

ABI, OLD_ABI, NEWER_ABI = 6, 1, 7
SIZE, OLD_SIZE = 2816, 1256      # sizes of their records in bytes
COMMON_SIZE = 152               # bytes at the beginning that all ABIs share
OLD_COMMIT = "cc81bc7"
SOURCE = os.path.realpath(f"{HERE}/../..")
ID = "upgrade/c0ffee/eth0"
RATE = 10_000_000
OFFERED = 8 * RATE
POD_IP, NODE_IP = "10.76.0.2", "10.76.0.1"
MAGIC = 0x6e617472
FNV_BASIS = 0xcbf29ce484222325
MODES = {"tcx-podside": 1, "clsact-podside": 2}
UNKNOWN_STATE = 104
SO_NETNS_COOKIE = 71


def conf(pod, **keys):
    return dict({"cniVersion": "1.0.0", "name": "upgrade", "type": "natra",
                 "runtimeConfig": {"bandwidth": {"ingressRate": RATE,
                                                 "egressRate": RATE}},
                 "prevResult": pod.prev_result()}, **keys)


def old_natractl():
    """Build and return the natractl of the commit that pinned ABI 1, or return None."""
    git = ["git", "-c", "safe.directory=*", "-C", SOURCE]
    if subprocess.run([*git, "cat-file", "-e", f"{OLD_COMMIT}^{{commit}}"],
                      stderr=subprocess.DEVNULL).returncode:
        return None
    build = os.environ.get("NATRA_OLD_BUILD", f"{SOURCE}/build-old")
    path = f"{build}/build/tools/natractl/natractl"
    if not os.path.exists(path):
        os.makedirs(f"{build}/source", exist_ok=True)
        tree = subprocess.run([*git, "archive", OLD_COMMIT], check=True,
                              stdout=subprocess.PIPE).stdout
        subprocess.run(["tar", "-xC", f"{build}/source"], input=tree,
                       check=True)
        sh("meson", "setup", f"{build}/build", f"{build}/source",
           "-Dtests=disabled", "-Dman=disabled", timeout=60)
        sh("ninja", "-C", f"{build}/build", "tools/natractl/natractl",
           timeout=240)
    return path


def key_of(name):
    """Return the 128-bit FNV-1a hash."""
    h = 0x6c62272e07bb014262b821756295c58d
    for c in name.encode():
        h = (h ^ c) * ((1 << 88) + 0x13b) % (1 << 128)
    return f"{h:032x}"


def old_record(pod, mode, prog_ids):
    """Return the beginning of ABI 1's record; no other version reads the rest."""
    with pod:
        index = socket.if_nametoindex("eth0")
        s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        cookie = s.getsockopt(socket.SOL_SOCKET, SO_NETNS_COOKIE, 8)
        s.close()
    link = struct.pack("=Q8sII16s", os.stat(pod.path).st_ino, cookie, index, 0,
                       b"eth0")
    hook = 1 if mode.startswith("tcx") else 2
    halves = b"".join(struct.pack("=4I", hook, 0, ingress, prog_id)
                      for ingress, prog_id in zip((1, 0), prog_ids))
    return struct.pack("=6I", MAGIC, OLD_ABI, OLD_SIZE, 1, MODES[mode], 0) + \
        link + bytes(40) + halves + bytes(16)


def prog_id(fd):
    info = ctypes.create_string_buffer(64)
    bpfsys.bpf(15, struct.pack("=IIQ", fd, 64, ctypes.addressof(info)))
    return struct.unpack_from("=I", info.raw, 4)[0]


def read_record(size):
    fd = bpfsys.obj_get(f"{PINS}/{key_of(ID)}/1/meta")
    value = bpfsys.map_lookup(fd, 0, size)
    os.close(fd)
    return value.to_bytes(size, sys.byteorder)


def write_record(fd, record):
    bpfsys.map_update(fd, 0, int.from_bytes(record, sys.byteorder),
                      len(record))


def make_array(name, size):
    return bpfsys.bpf(0, struct.pack("=5I", 2, 4, size, 1, 0) + bytes(8) +
                      struct.pack("=16s", name))


def pin_old_state(pod, mode):
    """Pin state as ABI 1 did: maps of each direction beside the record, and no
    engine."""
    path = f"{PINS}/{key_of(ID)}/1"
    os.makedirs(path, mode=0o700)
    ids = []
    for leg, kind, name in (("ingress", bpfsys.TCX_INGRESS, b"natra_rx"),
                             ("egress", bpfsys.TCX_EGRESS, b"natra_tx")):
        prog = bpfsys.load_pass(name)
        ids.append(prog_id(prog))
        for suffix in ("config", "state", "counters"):
            fd = make_array(suffix.encode(), 512)
            bpfsys.pin(fd, f"{path}/{leg}_{suffix}")
            os.close(fd)
        if mode == "tcx-podside":
            with pod:
                link = bpfsys.tcx_link(prog, socket.if_nametoindex("eth0"),
                                       kind)
            bpfsys.pin(link, f"{path}/{leg}_link")
            os.close(link)
        else:
            bpfsys.pin(prog, f"{PINS}/prog")
            pod.run("tc", "qdisc", "replace", "dev", "eth0", "clsact")
            pod.run("tc", "filter", "add", "dev", "eth0", leg, "prio", "2",
                    "bpf", "da", "object-pinned", f"{PINS}/prog")
            os.unlink(f"{PINS}/prog")
        os.close(prog)
    record = make_array(b"natra_meta", OLD_SIZE)
    write_record(record, old_record(pod, mode, ids).ljust(OLD_SIZE, b"\0"))
    bpfsys.pin(record, f"{path}/meta")
    os.close(record)


def attach_by_old(path, pod, mode):
    sh(path, "attach", "eth0", "--netns", pod.path, "--id", ID, "--ingress-rate",
       "10M", "--egress-rate", "10M", "--attach-mode", mode,
       # meson's LD_LIBRARY_PATH would replace the library that belongs to it.
       env={"PATH": os.environ["PATH"]})


def refused(rep, what, argv, *words):
    """Check that the command fails with one line that has all these words."""
    p = subprocess.run([find_natractl(), *argv], text=True, timeout=20,
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    rep.check(what, p.stderr.strip()[-60:], words, p.returncode == 1 and
              p.stderr.count("\n") == 1 and all(w in p.stderr for w in words))


def old_state(rep, pod, make, mode):
    def names():
        return (f"ABI {OLD_ABI}", f"this is {ABI}")

    def gone(what):
        rep.equal(f"  after {what}", (pins(), programs(pod)), ([], [0, 0]))

    make(pod, mode)
    rep.equal("  programs of the old one", programs(pod), [1, 1])
    refused(rep, "  natractl show", ("show", ID), *names())
    refused(rep, "  natractl upgrade", ("upgrade", ID), f"ABI {OLD_ABI}",
            "attach it again")
    rep.true("  natractl list knows of it", "unknown ABI 1" in natractl("list"))
    natractl("detach", ID)
    gone("natractl detach")

    make(pod, mode)
    a = call(find_natra(), "CHECK", conf(pod), CNI_NETNS=pod.path)
    rep.check("  CHECK", str(a)[:80], UNKNOWN_STATE,
              not malformed(a, "CHECK") and a.error() == UNKNOWN_STATE)
    a = call(find_natra(), "DEL", conf(pod), CNI_NETNS=pod.path)
    rep.check("  DEL", str(a)[:80], "success", not a.code)
    gone("DEL")

    make(pod, mode)
    a = call(find_natra(), "ADD", conf(pod, attachMode=mode),
             CNI_NETNS=pod.path)
    rep.check("  ADD", str(a)[:40], "success", not a.code)
    info = attachment(pod.path)
    rep.equal("  its ABI", info and info["abi"], ABI)
    rep.equal("  programs, the old ones' are gone", programs(pod), [1, 1])
    rep.equal("  pins of ABI 1", [p for p in pins() if "_state" in p], [])
    a = call(find_natra(), "CHECK", conf(pod), CNI_NETNS=pod.path)
    rep.check("  CHECK", str(a)[:80], "success", not a.code)
    call(find_natra(), "DEL", conf(pod), CNI_NETNS=pod.path)
    gone("DEL")


def test_old(rep, pod, natractl_old):
    for mode in MODES:
        if natractl_old:
            print(f"{mode}, by {OLD_COMMIT}:")
            old_state(rep, pod, lambda *a: attach_by_old(natractl_old, *a),
                      mode)
            # This file has to pin what that commit pins.
            attach_by_old(natractl_old, pod, mode)
            real = pins()
            record = read_record(OLD_SIZE)
            ids = [struct.unpack_from("=I", record, 104 + 16 * i + 12)[0]
                   for i in range(2)]
            rep.true("  the record is this file's",
                     record[:COMMON_SIZE] == old_record(pod, mode, ids))
            natractl("detach", ID)
            pin_old_state(pod, mode)
            rep.equal("  and so are the pins", pins(), real)
            natractl("detach", ID)
        print(f"{mode}, by this file:")
        old_state(rep, pod, pin_old_state, mode)


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


def other_formula(directory):
    """Make the default burst 0.4 s of the rate instead of 0.5 s."""
    return other_build(directory, *[(n.to_bytes(4, "little"), m.to_bytes(4, "little"))
                                    for n, m in [(500_000_000, 400_000_000)]],
                       (u64(object_id()), u64(object_id() ^ 3)))


def pinned_value(path, size):
    fd = bpfsys.obj_get(path)
    value = bpfsys.map_lookup(fd, 0, size)
    os.close(fd)
    return value


def engine_programs():
    """Return the program ids in the arrays of all banks."""
    return {path: pinned_value(path, 4)
            for path in glob.glob(f"{PINS}/engine_*/*/programs")}


def bursts_ns():
    """Return the bursts in the active limits of the first slot of each bank."""
    words = [struct.unpack_from("=34Q", pinned_value(path, 656).to_bytes(
                 656, sys.byteorder))
             for path in glob.glob(f"{PINS}/engine_*/*/configs")]
    return {w[3] if w[0] % 2 == 0 else w[33] for w in words}


def counted(path):
    """Return the number of packets into the pod that passed, and of those that passed
    unjudged."""
    into = json.loads(natractl("stats", attachment(path)["id"], "--json"))[
            "ingress"]
    return (sum(into[k]["packets"] for k in ("mice", "admitted", "marked",
                                             "unlimited", "other")),
            into["unlimited"]["packets"])


class Stream:
    """Sends UDP from the node into the pod, at far more than the limit."""

    def __init__(self, pod):
        with pod:
            self.sink = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.sink.bind((POD_IP, 9000))
        self.sink.settimeout(0.2)
        self.seen = []                  # (time, bytes)
        self.stop = False
        self.threads = [threading.Thread(target=f)
                        for f in (self.send, self.receive)]
        for t in self.threads:
            t.start()

    def send(self):
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        begin, sent = time.monotonic(), 0
        while not self.stop:
            while sent * 8 < (time.monotonic() - begin) * OFFERED:
                s.sendto(bytes(1400), (POD_IP, 9000))
                sent += 1400
            time.sleep(0.002)
        s.close()

    def receive(self):
        while not self.stop:
            try:
                self.seen.append((time.monotonic(), len(self.sink.recv(2000))))
            except TimeoutError:
                pass

    def end(self):
        self.stop = True
        for t in self.threads:
            t.join()
        self.sink.close()

    def most(self, since, seconds):
        """Return the highest rate over any window of this length."""
        seen = [(t, n) for t, n in self.seen if t >= since]
        best = total = first = 0
        for t, n in seen:
            total += n
            while seen[first][0] < t - seconds:
                total -= seen[first][1]
                first += 1
            best = max(best, total)
        return best * 8 / seconds


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


def test_swap(rep, pod, natractl_old):
    """Check how much extra traffic a replaced program lets pass: it begins with a full
    burst, 0.5 s of the rate, and does not know yet which flow is heavy, 0.1 s of the
    rate."""
    print("another layout under a live pod:")
    with tempfile.TemporaryDirectory() as directory:
        other, found = other_layout(directory)
        rep.true("  the other build has another engine", found)
        plugins = (find_natra(), other)
        if natractl_old:
            attach_by_old(natractl_old, pod, "tcx-podside")
        else:
            call(other, "ADD", conf(pod), CNI_NETNS=pod.path)
        stream = Stream(pod)
        # By then the first burst is used up and the flow is known to be heavy.
        time.sleep(1.5)
        since = time.monotonic()
        for step in range(3):
            added(rep, f"swap {step + 1}", plugins[step % 2], pod)
            rep.equal("    programs", programs(pod), [1, 1])
            time.sleep(0.7)
        stream.end()
        rep.most("  most in any 0.5 s", stream.most(since, 0.5) / 1e6,
                 RATE * 2.3 / 1e6, " Mbit/s")
        rep.least("  and something came", stream.most(since, 0.5) / 1e6,
                  RATE * 0.5 / 1e6, " Mbit/s")
        # A pod that comes now gets the other engine, and both engines work.
        second = Veth("second", "vsecond")
        added(rep, "a second pod", other, second, CNI_CONTAINERID="second")
        engines = [d for d in os.listdir(PINS) if d.startswith("engine_")]
        rep.equal("  engines of two builds", len(engines), 2)
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
        stream = Stream(pod)
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
        rep.most("  most in any 0.5 s", stream.most(since, 0.5) / 1e6,
                 RATE * 1.15 / 1e6, " Mbit/s")
        rep.least("  and something came", stream.most(since, 0.5) / 1e6,
                  RATE * 0.5 / 1e6, " Mbit/s")
        deleted(rep, find_natra(), pod)
        natractl("gc")


def test_formula(rep, pod):
    print("another default burst in the build before:")
    with tempfile.TemporaryDirectory() as directory:
        other, found = other_formula(directory)
        rep.true("  the other build has it", found)
        added(rep, "the other build", other, pod)
        rep.equal("  burst, ns", bursts_ns(), {400_000_000})
        a = call(find_natra(), "CHECK", conf(pod), CNI_NETNS=pod.path)
        rep.check("  CHECK by this one", str(a)[:120], "success", not a.code)
        natractl("upgrade")
        rep.equal("  burst after natractl upgrade, ns", bursts_ns(),
                  {500_000_000})
        for path in (find_natra(), other):
            a = call(path, "CHECK", conf(pod), CNI_NETNS=pod.path)
            rep.check("  CHECK by either", str(a)[:120], "success", not a.code)
        deleted(rep, find_natra(), pod)
        natractl("gc")


def set_abi(number):
    record = bytearray(read_record(SIZE))
    struct.pack_into("=I", record, 4, number)
    fd = bpfsys.obj_get(f"{PINS}/{key_of(ID)}/1/meta")
    write_record(fd, record)
    os.close(fd)


def test_newer(rep, pod):
    print("after a downgrade:")
    natra = find_natra()
    words = (f"ABI {NEWER_ABI}", f"this is {ABI}")
    natractl("gc")
    call(natra, "ADD", conf(pod), CNI_NETNS=pod.path)
    set_abi(NEWER_ABI)
    before = pins()
    for command in ("ADD", "CHECK"):
        a = call(natra, command, conf(pod), CNI_NETNS=pod.path)
        rep.check(f"  {command}", a.text()[-60:], (UNKNOWN_STATE, *words),
                  not malformed(a, command) and a.error() == UNKNOWN_STATE and
                  all(w in a.text() for w in words))
    refused(rep, "  natractl detach", ("detach", ID), *words)
    refused(rep, "  natractl gc", ("gc",), *words)
    log = "/var/log/natra.log"
    a = call(natra, "DEL", conf(pod, logFile=log), CNI_NETNS=pod.path)
    rep.check("  DEL", str(a)[:60], "success", not a.code)
    with open(log, encoding="utf-8") as f:
        text = f.read()
    rep.true("  and its log says what is left", all(w in text for w in words))
    rep.equal("  nothing was touched", (pins() == before, programs(pod)),
              (True, [1, 1]))
    set_abi(ABI)
    a = call(natra, "DEL", conf(pod), CNI_NETNS=pod.path)
    rep.equal("  the right one removes it", (a.code, pins(), programs(pod)),
              (0, [], [0, 0]))


def build(a):
    a.natractl_old = old_natractl()


def main(rep, a):
    natractl_old = a.natractl_old
    if not plugin.has_tcx():
        skip("TCX")
    os.makedirs(PINS, mode=0o700, exist_ok=True)
    pod = Veth("upgrade", "vupgrade")
    test_old(rep, pod, natractl_old)
    pod.run("ip", "addr", "add", f"{POD_IP}/24", "dev", "eth0")
    sh("ip", "addr", "add", f"{NODE_IP}/24", "dev", pod.host)
    rep.measure("another layout", test_swap, rep, pod, natractl_old)
    rep.measure("in place", test_in_place, rep, pod)
    test_formula(rep, pod)
    test_newer(rep, pod)
    pod.close()
    if not natractl_old and os.environ.get("CI") == "true":
        rep.true(f"the history has {OLD_COMMIT} (fetch-depth: 0)", False)
    elif not natractl_old and not rep.failed:
        skip(f"no git history: {OLD_COMMIT}, which pins ABI {OLD_ABI}, is "
             "missing")


if __name__ == "__main__":
    plugin.run_script(main, prepare=build)
