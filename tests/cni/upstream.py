#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Feeds the same input to natra and to upstream's bandwidth plugin.

A row demands either that both do the same, or that they differ for one of the reasons
at the end of this text. Each call gets interfaces of its own. natra is also called on
interfaces that upstream's plugin has limited before; cni-integration calls it by
upstream's name.

A1   a rate is a number only                A5   a rate needs a burst
A6   bursts over 4 GB are refused
A11  rates under 8 bit/s are refused         C2   another's clsact is in the way
C17  only veths                             C19  prevResult must have interfaces
E1   CHECK without limits crashes           E2   CHECK does not miss the limiter
E3   CHECK without limits wants interfaces  E4   ADD of nothing crashes
E5   DEL is refused for a bad burst         E6   DEL leaves qdiscs
E7   a second ADD fails                     E8   GC and STATUS do nothing
live CHECK accepts what `natractl set` changed
"""
import copy
import os
import tempfile
from dataclasses import dataclass, field

import plugin
from plugin import (DEBIAN, Veth, attachment, call, find_natra, limits,
                    natractl, newest, pins, programs)
from commands import bpftool, sh
from namespaces import Ns

M10 = 10_000_000
CONTAINERD = {"IngressRate": M10, "IngressBurst": 4294967295,
              "EgressRate": M10, "EgressBurst": 4294967295}
STATIC = {"ingressRate": M10, "ingressBurst": 8000000,
          "egressRate": M10, "egressBurst": 8000000}
OK, FAILS, CRASHES = "ok", "fails", "crashes"
# A plugin may define codes from here on.
OWN = 100
# This version and 1.5.0 limit by an htb.
HTB_VERSION = "1.5.1"


@dataclass
class Row:
    name: str
    runtime: dict = None        # runtimeConfig.bandwidth
    static: dict = field(default_factory=dict)
    command: str = "ADD"
    want: str = OK              # of both plugins, unless:
    differs: str = ""           # why natra does otherwise, and
    upstream: str = None        # what upstream does; a dict: by version
    words: str = ""             # in the error texts of both
    code: int = 0               # natra's error code, and upstream's if that
                                # is not the general one
    version: str = "1.0.0"
    prev: object = True         # False: none; or a function that changes it
    added: bool = False         # after an ADD of the same plugin
    before: object = None       # a function of the pod, after that ADD
    env: dict = field(default_factory=dict)


def no_interfaces(prev):
    prev["interfaces"] = []


def no_host(prev):
    del prev["interfaces"][0]
    prev["ips"][0]["interface"] = 0


def clsact(pod, _):
    sh("tc", "qdisc", "add", "dev", pod.host, "clsact")


def break_limiter(pod, name):
    """Take the ingress limiter away behind the plugin's back."""
    if name != "natra":
        sh("tc", "qdisc", "replace", "dev", pod.host, "root", "pfifo")
        return
    links = bpftool("link", "show")
    ident = attachment(pod.path)["ingress_prog_id"]
    for x in links:
        if x.get("prog_id") == ident:
            sh("bpftool", "link", "detach", "id", str(x["id"]))
    pod.run("tc", "filter", "del", "dev", "eth0", "ingress", check=False)


ADDS = [
        *(Row(f"containerd, {v}", CONTAINERD, version=v)
          for v in ("0.3.0", "0.3.1", "0.4.0", "1.0.0")),
        Row("static", None, STATIC),
        Row("static over runtime", CONTAINERD, {"ingressRate": M10,
                                                "ingressBurst": 8000000}),
        Row("one way", {"EgressRate": M10, "EgressBurst": 8000000}),
        Row("all zero", dict.fromkeys(CONTAINERD, 0)),
        Row("nothing configured"),
        Row("no prevResult", CONTAINERD, prev=False, want=FAILS, code=7,
            words="must be called as chained plugin"),
        Row("burst without rate", {"IngressBurst": 8000000}, want=FAILS,
            code=7, words="if burst is set, rate must also be set"),
        Row("a rate in words", {"IngressRate": "10M"}, differs="A1",
            upstream=FAILS),
        Row("a rate under zero", None, {"ingressRate": -5}, want=FAILS,
            code=7),
        Row("rate without burst", {"IngressRate": M10}, differs="A5",
            upstream=FAILS),
        Row("burst of CRI-O before 1.20", {"ingressRate": M10, "ingressBurst":
                                           34359738360}, differs="A6",
            upstream=FAILS),
        Row("an operator's burst of 8 GB", None,
            {"egressRate": 10**11, "egressBurst": 2**36}, differs="A6",
            upstream=FAILS),
        Row("4 bit/s", {"IngressRate": 4, "IngressBurst": 8000},
            differs="A11", upstream=FAILS),
        Row("999 bit/s", {"IngressRate": 999, "IngressBurst": 8000}),
        Row("no interfaces", CONTAINERD, prev=no_interfaces, differs="C19",
            upstream=FAILS),
        Row("host interface not named", CONTAINERD, prev=no_host,
            differs="C19", upstream=FAILS),
        Row("beside another's clsact", CONTAINERD, before=clsact,
            differs="C2", upstream=FAILS),
        Row("added twice", CONTAINERD, added=True, differs="E7",
            upstream=FAILS),
        Row("no prevResult, nothing configured", prev=False, want=FAILS,
            differs="E4", upstream=CRASHES, code=7),
        Row("no such netns", CONTAINERD, env={"CNI_NETNS": "/nosuch"},
            want=FAILS, code=8),
        Row("no such interface", CONTAINERD, env={"CNI_IFNAME": "net7"},
            want=FAILS, code=OWN),
]
OTHERS = [
        Row("CHECK after ADD", STATIC, command="CHECK", added=True),
        Row("CHECK before ADD", STATIC, command="CHECK", want=FAILS, code=OWN,
            differs="E2", upstream=FAILS),
        Row("CHECK without limits", command="CHECK", differs="E1",
            upstream={"1.1.1": CRASHES, "1.9.1": OK}),
        Row("CHECK without limits and interfaces", command="CHECK",
            prev=no_interfaces, differs="E3", upstream=FAILS),
        Row("CHECK, the limiter is gone", {"IngressRate": M10, "IngressBurst":
                                           8000000},
            command="CHECK", added=True, before=break_limiter, want=FAILS,
            code=OWN, differs="E2", upstream=OK),
        Row("CHECK with other rates", dict(STATIC, ingressRate=5 * M10),
            command="CHECK", added=STATIC, differs="live", upstream=FAILS),
        Row("CHECK, 0.3.1", STATIC, command="CHECK", version="0.3.1",
            want=FAILS, code=1, words="config version does not allow CHECK"),
        Row("DEL after ADD", CONTAINERD, command="DEL", added=True),
        Row("DEL before ADD", CONTAINERD, command="DEL"),
        Row("DEL without prevResult", CONTAINERD, command="DEL", added=True,
            prev=False),
        Row("DEL without netns", CONTAINERD, command="DEL", added=True,
            env={"CNI_NETNS": ""}),
        Row("DEL, no such netns", CONTAINERD, command="DEL", added=True,
            env={"CNI_NETNS": "/nosuch"}),
        Row("DEL with a bad burst", {"IngressBurst": 5}, command="DEL",
            added=CONTAINERD, differs="E5", upstream=FAILS),
        Row("DEL with a bad rate", None, {"ingressRate": "x"}, command="DEL",
            added=CONTAINERD, differs="E5", upstream=FAILS),
        Row("GC", command="GC", version="1.1.0", added=CONTAINERD,
            upstream={"1.1.1": FAILS, "1.9.1": OK}),
        Row("STATUS", command="STATUS", version="1.1.0",
            upstream={"1.1.1": FAILS, "1.9.1": OK}),
        Row("ADD, 1.1.0", CONTAINERD, version="1.1.0",
            upstream={"1.1.1": FAILS, "1.9.1": OK}),
        Row("GC, 1.0.0", command="GC", want=FAILS, code={"1.1.1": None,
                                                         "1.9.1": 1}),
        Row("unknown command", command="PING", want=FAILS, code=4,
            words="unknown CNI_COMMAND: PING"),
        Row("no container", CONTAINERD, env={"CNI_CONTAINERID": "",
                                             "CNI_IFNAME": ""},
            want=FAILS, code=4, words="required env variables "
            "[CNI_CONTAINERID,CNI_IFNAME] missing"),
        Row("a bad container", CONTAINERD, env={"CNI_CONTAINERID": "a/b"},
            want=FAILS, code=4, words="invalid characters in containerID"),
        Row("a bad interface", CONTAINERD, env={"CNI_IFNAME": "x" * 16},
            want=FAILS, code=4, words="interface name is too long"),
        Row("an unknown version", CONTAINERD, version="9.9.9", want=FAILS,
            code=1, words="incompatible CNI versions"),
        Row("an old version", CONTAINERD, version="0.2.0", want=FAILS,
            code=1, words="incompatible CNI versions"),
        Row("no network name", None, {"name": ""}, want=FAILS, code=7,
            words="missing network name"),
        Row("a bad network name", None, {"name": "a b"}, want=FAILS, code=7,
            words="invalid characters found in network name"),
]


class Pair:
    """Makes new interfaces for each call."""

    def __init__(self, rep, pod):
        self.rep, self.pod = rep, pod

    def conf(self, row, runtime, static):
        prev = self.pod.prev_result(row.version)
        if callable(row.prev):
            row.prev(prev)
        conf = {"cniVersion": row.version, "name": "pair", "type": "bandwidth"}
        if row.prev:
            conf["prevResult"] = prev
        if runtime:
            conf["runtimeConfig"] = {"bandwidth": runtime}
        return dict(conf, **static)

    def renew(self):
        """Make the interfaces anew, as if nobody had touched them."""
        sh("ip", "link", "del", self.pod.host, check=False)
        for line in sh("ip", "-br", "link").splitlines():
            if line.startswith("bwp"):
                sh("ip", "link", "del", line.split()[0])
        self.pod.link()

    def one(self, path, name, row):
        env = dict({"CNI_NETNS": self.pod.path}, **row.env)
        self.renew()
        if row.added:
            values = (row.runtime, row.static) if row.added is True else \
                (row.added, {})
            good = copy.copy(row)
            good.prev = True
            a = call(path, "ADD", self.conf(good, *values),
                     CNI_NETNS=self.pod.path)
            if a.code and not isinstance(row.upstream, dict):
                raise RuntimeError(f"{row.name}, {name}, first ADD: {a}")
        if row.before:
            row.before(self.pod, name)
        return call(path, row.command, self.conf(row, row.runtime, row.static),
                    **env)

    def compare(self, row, version, path, natra):
        up = self.one(path, version, row)
        ours = self.one(natra, "natra", row)
        call(natra, "DEL", self.conf(row, None, {"name": "pair"}),
             CNI_NETNS=self.pod.path)
        want_up = row.upstream or row.want
        if isinstance(want_up, dict):
            want_up = want_up[version]
        problems = []
        for who, a, want in ((version, up, want_up), ("natra", ours, row.want)):
            if outcome(a) != want:
                problems.append(f"{who} {outcome(a)}, not {want}: {a}")
        code = row.code[version] if isinstance(row.code, dict) else row.code
        if ours.code and not problems:
            problems += same_failure(up, ours, row, code)
        if not ours.code and not up.code and not same_result(up, ours):
            problems.append(f"result {ours}, not {up}")
        why = f"differs: {row.differs}" if row.differs else "same"
        self.rep.check(f"{version}: {row.name}", f"natra {outcome(ours)}",
                       why, not problems)
        for p in problems:
            print(f"       {p[:500]}")


def outcome(a):
    """Return what happened; the Go runtime exits with 2 when upstream's plugin
    crashes."""
    return OK if not a.code else FAILS if a.code == 1 else CRASHES


def same_failure(up, ours, row, code):
    problems = []
    if code and min(ours.error(), OWN) != code:
        problems.append(f"natra's code {ours.error()}, not {code}")
    if outcome(up) != FAILS:
        return problems
    if code and code != up.error() != 999:
        problems.append(f"upstream's code {up.error()}, not {code}")
    for who, a in (("upstream", up), ("natra", ours)):
        if row.words not in a.text():
            problems.append(f"{who}: {a.text()!r} without {row.words!r}")
    return problems


def same_result(up, ours):
    """Compare results without the ifb that upstream appends; an empty dns may be left
    out."""
    if not (up.out.strip() and ours.out.strip()):
        return up.out.strip() == ours.out.strip()
    results = [up.json, ours.json]
    for r in results:
        r["interfaces"] = [i for i in r.get("interfaces", ())
                           if not i["name"].startswith("bwp")]
        if not r.get("dns"):
            r.pop("dns", None)
    return results[0] == results[1]


def versions(rep, binaries, natra):
    """Check the supported versions; Debian's plugin is older than 1.1.0."""
    ours = call(natra, "VERSION", b"").json
    for version, path in binaries.items():
        theirs = call(path, "VERSION", b'{"cniVersion":"1.0.0"}').json
        rep.check(f"{version}: VERSION", str(theirs["supportedVersions"]),
                  "a part of natra's", set(theirs["supportedVersions"]) <=
                  set(ours["supportedVersions"]))


def macvlan(rep, binaries, natra):
    """Check C17: upstream's plugin refuses an interface without a veth, natra limits
    it."""
    pod = Ns("mac")
    sh("ip", "link", "add", "up0", "up", "type", "veth")
    sh("ip", "link", "add", "mv0", "link", "up0", "type", "macvlan", "mode",
       "bridge")
    sh("ip", "link", "set", "mv0", "netns", "mac", "name", "eth0")
    conf = {"cniVersion": "1.0.0", "name": "pair", "type": "bandwidth",
            "runtimeConfig": {"bandwidth": CONTAINERD}, "prevResult": {
                    "cniVersion": "1.0.0", "interfaces": [
                            {"name": "eth0", "sandbox": pod.path}]}}
    for name, path in dict(binaries, natra=natra).items():
        a = call(path, "ADD", conf, CNI_NETNS=pod.path)
        rep.check(f"{name}: macvlan", str(a)[:60], "only natra: C17",
                  bool(a.code) == (name != "natra"))
    call(natra, "DEL", conf, CNI_NETNS=pod.path)
    sh("ip", "link", "del", "up0")


def remains(rep, pair, binaries, natra):
    """Check E6 and E8: upstream's limits are still there after DEL, and after a GC of
    all."""
    row = Row("", CONTAINERD)
    env = {"CNI_NETNS": pair.pod.path}
    for name, path in dict(binaries, natra=natra).items():
        for command, keys in (("DEL", {}), ("GC", {
                "cniVersion": "1.1.0", "cni.dev/valid-attachments": []})):
            if (name, command) == ("1.1.1", "GC"):
                continue        # this plugin is older than GC
            pair.renew()
            conf = pair.conf(row, CONTAINERD, {})
            call(path, "ADD", conf, **env)
            a = call(path, command, dict(conf, **keys), **env)
            host = sh("tc", "qdisc", "show", "dev", pair.pod.host)
            there = "tbf" in host or programs(pair.pod) != [0, 0]
            rep.equal(f"{name}: limited after {command}", (a.code, there),
                      (0, name != "natra"))


def ifbs():
    """List the ifbs of upstream's plugin, which outlive the pod's interface."""
    return [s for s in sh("ip", "-br", "link").splitlines()
            if s.startswith("bwp")]


def leftovers(rep, pair, path, version, natra, tmp):
    """Check that natra takes over an interface that upstream's plugin has limited. ADD
    removes those limits only if it is configured to, and so does DEL."""
    pod, log = pair.pod, f"{tmp}/log-{version}"
    kind = "htb" if version == HTB_VERSION else "tbf"
    row = Row("", CONTAINERD)
    conf = pair.conf(row, CONTAINERD, {"name": "k8s-pod-network",
                                       "logFile": log})
    env = {"CNI_NETNS": pod.path}
    for replace in (False, True):
        pair.renew()
        a = call(path, "ADD", conf, **env)
        rep.equal(f"{version}: limits first", a.code, 0)
        a = call(natra, "ADD", dict(conf, replaceBandwidth=replace), **env)
        rep.equal(f"{version}: natra's ADD after it, replace {replace}",
                  a.code, 0)
        host = sh("tc", "qdisc", "show", "dev", pod.host)
        found = ifbs()
        if replace:
            rep.check(f"{version}: replaced", str((host.split()[1], found)),
                      "nothing of it", not found and kind not in host and
                      "ingress" not in host)
            rep.equal(f"{version}: natra's limits",
                      limits(attachment(pod.path))[:2], (M10, M10))
        else:
            rep.check(f"{version}: left alone", str(len(found)), f"{kind}, ifb",
                      len(found) == 1 and kind in host)
            with open(log) as f:
                text = f.read()
            rep.check(f"{version}: reported in the log", text[-90:].strip(),
                      f"warn, {kind}, bandwidth", "level=warn" in text and
                      kind in text and "bandwidth" in text)
            shown = natractl("show", attachment(pod.path)["id"])
            rep.check(f"{version}: reported by natractl show", "", kind,
                      kind in shown)
        a = call(natra, "DEL", dict(conf, replaceBandwidth=True), **env)
        rep.equal(f"{version}: left of natra and of upstream",
                  (a.code, programs(pod), pins(), ifbs()), (0, [0, 0], [], []))


def htb_plugin(rep):
    """Return the version that leaves an htb instead of a tbf, whose answers are not
    compared: its keys and messages are those of the newest one."""
    path = newest(f"bandwidth-{HTB_VERSION}")
    if not path:
        rep.shown(f"upstream's {HTB_VERSION}", "not there (tools/install-deps cni)")
    return {HTB_VERSION: path} if path else {}


def main(rep, a):
    natra = find_natra()
    binaries = {"1.1.1": f"{DEBIAN}/bandwidth", "1.9.1": newest("bandwidth")}
    binaries = {v: path for v, path in binaries.items()
                if path and os.access(path, os.X_OK)}
    plugin.need(binaries, "containernetworking's bandwidth plugin")
    if "1.9.1" not in binaries:
        rep.shown("upstream's 1.9.1", "not there (tools/install-deps cni)")
    pair = Pair(rep, Veth("pair", "vpair"))
    for version, path in binaries.items():
        for row in ADDS + OTHERS:
            pair.compare(row, version, path, natra)
    versions(rep, binaries, natra)
    macvlan(rep, binaries, natra)
    remains(rep, pair, binaries, natra)
    with tempfile.TemporaryDirectory(prefix="natra-cni-") as tmp:
        for version, path in {**binaries, **htb_plugin(rep)}.items():
            leftovers(rep, pair, path, version, natra, tmp)


if __name__ == "__main__":
    plugin.run_script(main)
