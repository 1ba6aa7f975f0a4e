#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs two versions of natra whose pinned layouts differ: this one, and the same source
built as the next ABI (-Dnext_abi=true), whose records, limits and states are others from
the first byte behind the records' prefix.

Each lists, names and detaches what the other has attached, and replaces it while packets
come without a moment in which nothing limits them. GC by each leaves the other's.
"""
import json
import os
import socket
import subprocess
import sys
import threading
import time

sys.path.append(f"{os.path.dirname(os.path.abspath(__file__))}/../bench")
import machine
import plugin
import script
from plugin import PINS, Veth, call, find_natra, pins, programs
import bpfsys
from commands import sh
from limiters import find_natractl
from other_build import build
from report import skip
from flood import NODE_IP, POD_IP, Stream

ID = "next/c0ffee/eth0"
LABEL = "shop/web-0"
RATE = 10_000_000
OFFERED = 20 * RATE
BURST_BITS = 80_000
WINDOW_S = 0.5
SHORT_S = 0.01                  # in which a moment without any limit would show
# What both have to say of an attachment.
KNOWN = ("id", "label", "network", "ifname", "ifindex", "netns_inode", "mode", "reason",
         "ingress_prog_id", "egress_prog_id", "abi", "unshaped", "interface_gone",
         "edt_active", "pin_path")
ROWS = []                       # of the table that --table writes
MODES = ("tcx-podside", "clsact-podside")


class Version:
    """natra's programs with the library of one ABI."""

    def __init__(self, name, library):
        self.name = name
        self.env = dict(os.environ, LD_LIBRARY_PATH=library)
        self.abi = json.loads(self.ctl("probe", "--json").stdout)["abi"]

    def ctl(self, *args):
        return subprocess.run([find_natractl(), *args], text=True, timeout=20, env=self.env,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE)

    def list(self):
        return json.loads(self.ctl("list", "--json").stdout)

    def add(self, pod, mode, **env):
        conf = {"cniVersion": "1.0.0", "name": "next", "type": "natra",
                "attachMode": mode, "fastPass": "off", "edtPacing": "off",
                "runtimeConfig": {"bandwidth": {
                        "ingressRate": RATE, "ingressBurst": BURST_BITS,
                        "egressRate": 2 * RATE, "egressBurst": BURST_BITS}},
                "prevResult": pod.prev_result()}
        return self.call("ADD", conf, pod, **env)

    def call(self, command, conf, pod, **env):
        env = {"CNI_NETNS": pod.path, "CNI_ARGS": "K8S_POD_NAMESPACE=shop;K8S_POD_NAME=web-0",
               "LD_LIBRARY_PATH": self.env["LD_LIBRARY_PATH"], **env}
        return call(find_natra(), command, conf, **env)

    def engines(self):
        return sorted(os.listdir(f"{PINS}/abi{self.abi}")) if os.path.exists(
                f"{PINS}/abi{self.abi}") else []


class Hooks(threading.Thread):
    """Asks the kernel all the time how many programs are on a pod's TCX hooks."""

    def __init__(self, pod):
        super().__init__()
        self.pod, self.stop = pod, False
        self.asked, self.fewest = 0, 2
        self.start()

    def run(self):
        with self.pod:
            index = socket.if_nametoindex("eth0")
            while not self.stop:
                for kind in (bpfsys.TCX_INGRESS, bpfsys.TCX_EGRESS):
                    self.fewest = min(self.fewest, bpfsys.tcx_count(index, kind))
                self.asked += 1

    def end(self):
        self.stop = True
        self.join()


def known(attachment):
    return {key: attachment[key] for key in KNOWN}


def is_known(rep, who, by):
    """Check that the one names what the other has attached."""
    [own], [seen] = by.list(), who.list()
    rep.equal(f"  {who.name} lists it", known(seen), known(own))
    rep.equal("    with its id and label", (seen["id"], seen["label"]), (own["id"], LABEL))
    rep.equal("    as another ABI's", (seen["other_abi"], own["other_abi"], own["abi"]),
              (True, False, by.abi))
    rep.equal("    with its rates", [seen["policy"][f"{way}_rate_bits_per_sec"]
                                      for way in ("ingress", "egress")], [RATE, 2 * RATE])
    text = who.ctl("list").stdout + who.ctl("show", own["id"]).stdout
    rep.true("    in words", f"ABI {by.abi}" in text and LABEL in text)
    for command in ("check", "upgrade", "stats"):
        p = who.ctl(command, own["id"])
        rep.check(f"    {command}", p.stderr.strip()[-80:], f"names ABI {by.abi}",
                  p.returncode == 1 and f"ABI {by.abi}" in p.stderr)
    p = by.ctl("check", own["id"])
    rep.equal("    its own check", (p.returncode, p.stdout), (0, "ok\n"))
    return own["id"]


def replaced(rep, pod, mode, who, stream):
    """Let one replace what the other has attached, and check what passed meanwhile."""
    hooks = Hooks(pod) if mode.startswith("tcx") else None
    since = time.monotonic()
    a = who.add(pod, mode)
    time.sleep(2 * WINDOW_S)
    rep.check(f"  {who.name} replaces it", str(a)[:60], "success", not a.code)
    if hooks:
        end = time.monotonic() + 20
        while hooks.asked < 200 and time.monotonic() < end:
            time.sleep(WINDOW_S)
        hooks.end()
        rep.least("    the hooks were asked, times", hooks.asked, 200)
        rep.equal("    fewest programs on a hook", hooks.fewest, 1)
    rep.equal("    programs now", programs(pod), [1, 1])
    rep.equal("    its ABI", [x["abi"] for x in who.list()], [who.abi])
    short = stream.most(since, SHORT_S) / RATE
    # Each of the two has a burst; on a busy machine up to 0.1 s of the rate came at once.
    rep.most("    most in any 10 ms, of the cap", short,
             (2 * BURST_BITS + 0.1 * RATE) / SHORT_S / RATE + 1)
    ROWS.append(f"{mode:16} {'to ' + who.name:18} {short:8.1f}")
    # Each of the two has a burst. A gap of 10 ms would let 2 Mbit pass.
    most = stream.most(since, WINDOW_S)
    rep.most("    most in any 0.5 s", most / 1e6,
             (1.2 * RATE + 2 * BURST_BITS / WINDOW_S) / 1e6, " Mbit/s")
    rep.least("    and something came", most / 1e6, RATE * 0.5 / 1e6, " Mbit/s")


def there_and_back(rep, pod, mode, first, second):
    print(f"{mode}: {first.name}, {second.name} and back:")
    free, since = Stream(pod, OFFERED), time.monotonic()
    time.sleep(0.3)
    free.end()
    # It must show what is bounded below.
    short = free.most(since, SHORT_S) / RATE
    rep.least("  without natra: most in any 10 ms, of the cap", short, 0.75 * OFFERED / RATE)
    ROWS.append(f"{mode:16} {'without natra':18} {short:8.1f}")
    a = first.add(pod, mode)
    rep.check(f"  {first.name} attaches", str(a)[:60], "success", not a.code)
    is_known(rep, second, first)
    stream = Stream(pod, OFFERED)
    time.sleep(0.5)
    replaced(rep, pod, mode, second, stream)
    name = is_known(rep, first, second)
    replaced(rep, pod, mode, first, stream)
    stream.end()
    p = second.ctl("detach", name)
    rep.equal(f"  {second.name} detaches it", (p.returncode, programs(pod)), (0, [0, 0]))
    rep.equal("    pins", pins(), [])
    a = first.add(pod, mode)
    conf = {"cniVersion": "1.0.0", "name": "next", "type": "natra"}
    b = second.call("DEL", conf, pod)
    rep.equal("  DEL by the other", (a.code, b.code, programs(pod), pins()),
              (0, 0, [0, 0], []))
    for version in (first, second):
        p = version.ctl("gc")
        rep.equal(f"  gc by {version.name}", p.returncode, 0)
    rep.equal("  engines left", [[e for e in v.engines() if e.startswith("engine_")]
                                 for v in (first, second)], [[], []])


def side_by_side(rep, pod, other, first, second):
    print("side by side:")
    first.add(pod, "tcx-podside")
    second.add(other, "tcx-podside", CNI_CONTAINERID="second")
    engines = [v.engines() for v in (first, second)]
    rep.true("  each has an engine", all(
            any(e.startswith("engine_") for e in list_) for list_ in engines))
    before = pins()
    for version in (first, second):
        p = version.ctl("gc", "--json")
        rep.equal(f"  gc by {version.name} removes", json.loads(p.stdout), {"removed": 0})
        rep.equal("    pins and engines", (pins(), [v.engines() for v in (first, second)]),
                  (before, engines))
    for version in (first, second):
        [own] = [a for a in version.list() if not a["other_abi"]]
        rep.equal(f"  {version.name} checks its own",
                  version.ctl("check", own["id"]).returncode, 0)
    sh("ip", "link", "del", other.host)
    p = first.ctl("gc", "--json")
    rep.equal("  gc removes the other's that is gone", json.loads(p.stdout), {"removed": 1})
    rep.equal("    and its engine", [e for e in second.engines()
                                      if e.startswith("engine_")], [])
    other.link()
    second.ctl("detach", first.list()[0]["id"])
    for version in (first, second):
        version.ctl("gc")
    rep.equal("  pins left", pins(), [])


def prepare(a):
    a.next = build("NATRA_NEXT_BUILD", "src/libnatra.so.0.1.0", "-Dnext_abi=true")
    if a.table:
        a.printed = machine.printed_by("cni/next_abi.py")


def main(rep, a):
    if not plugin.has_tcx():
        skip("TCX")
    own = os.path.realpath(f"{os.path.dirname(find_natra())}/../src")
    this, other = Version("this version", own), Version("the next one",
                                                        os.path.dirname(a.next))
    rep.equal("the next ABI", other.abi, this.abi + 1)
    pod, second = Veth("next", "vnext"), Veth("beside", "vbeside")
    pod.run("ip", "addr", "add", f"{POD_IP}/24", "dev", "eth0")
    sh("ip", "addr", "add", f"{NODE_IP}/24", "dev", pod.host)
    for mode in MODES:
        rep.measure(f"{mode}, upgrade", there_and_back, rep, pod, mode, this, other)
        rep.measure(f"{mode}, downgrade", there_and_back, rep, pod, mode, other, this)
    side_by_side(rep, pod, second, this, other)
    if a.table:
        with open(a.table, "w") as f:
            print(a.printed, f"The most of the cap in any 10 ms, with a burst of {BURST_BITS} bit.\n",
                  *ROWS, sep="\n", file=f)
    pod.close()
    second.close()


if __name__ == "__main__":
    plugin.run_script(main, script.option("--table", help="write what passed to this file"),
                      prepare=prepare)
