#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs each row of golden_rows.py with every command and every cniVersion.

The expected outcome follows from the rules below, which are those of the CNI
specification and of the library that other plugins are built on. After each command the
kernel's state is compared, and after DEL nothing may be left. Captures are fed byte for
byte: the network namespaces and interfaces that they name are made under the same
names.
"""
import json
from dataclasses import replace

import plugin
from golden_rows import (ANY, captures, environment, literal, rows,
                         sandbox)
from plugin import (VERSIONS, Veth, attachment, call, find_natra, limits,
                    malformed, number, parse, pins, programs)
from commands import sh
from script import option

REQUIRED = {"ADD": ("CNI_CONTAINERID", "CNI_NETNS", "CNI_IFNAME"),
            "CHECK": ("CNI_CONTAINERID", "CNI_NETNS", "CNI_IFNAME"),
            "DEL": ("CNI_CONTAINERID", "CNI_IFNAME"),
            "GC": ("CNI_PATH",)}
SINCE = {"CHECK": "0.4.0", "GC": "1.1.0", "STATUS": "1.1.0"}
OK = frozenset({0})


def expected(row, command, version, attached):
    """Return (codes, words): the outcomes that are right, and the words of the
    error."""
    if not command or command == "VERSION":
        return OK, ""
    if command in REQUIRED and "" in map(row.env.get, REQUIRED[command]):
        return {4}, "CNI_"
    if command not in (*REQUIRED, "STATUS"):
        return {4}, f"unknown CNI_COMMAND: {command}"
    if version not in VERSIONS or \
            number(version) < number(SINCE.get(command, "0.3.0")):
        return {1}, "version"
    if command == "ADD" and row.add:
        return row.add
    if command == "CHECK" and not attached and (row.limits or row.add):
        return ANY | (OK if not row.limits else set()), ""
    return OK, ""


class Run:
    """One row in one version; no other run uses this state of the plugin."""

    def __init__(self, natra, pods, row, version):
        self.natra, self.row, self.version = natra, row, version
        self.pod = pods[row.pod]
        self.stdin = row.stdin(version)
        self.attached = False
        self.problems = []

    def wrong(self, what):
        self.problems.append(what)

    def do(self, command, **env):
        """Run a command. Returns True if it succeeded."""
        row = self.row
        env = dict(row.env, **env)
        row = replace(row, env=env)
        codes, words = expected(row, command, self.version, self.attached)
        a = call(self.natra, command, self.stdin, **env)
        bad = malformed(a, command) if command else self.about(a)
        if bad:
            self.wrong(f"{command}: {bad}")
            return False
        if a.error() not in codes:
            self.wrong(f"{command}: {a}, not {short(codes)}")
        elif a.error() not in (0, 4) and words not in a.text() or \
                a.error() == 4 and codes == {4} and words not in a.text():
            self.wrong(f"{command}: {a.text()!r} does not say {words!r}")
        if command == "VERSION":
            self.versions(a)
        if command == "ADD" and not a.code:
            self.result(a)
        return not a.code

    @staticmethod
    def about(a):
        if a.code or a.out or not a.err:
            return f"{a}: nothing but text on stderr wanted"
        return ""

    def versions(self, a):
        if a.json.get("supportedVersions") != list(VERSIONS):
            self.wrong(f"VERSION: {a}")

    def result(self, a):
        """Check that the result is the prevResult, with only its version changed."""
        conf = {k.lower(): v for k, v in parse(self.stdin).items()}
        want = dict(conf.get("prevresult") or {},
                    cniVersion=conf["cniversion"])
        if a.json != want:
            self.wrong(f"ADD: result {difference(a.json, want)}")

    def state(self, after):
        """Check that the kernel holds what it should and nothing else."""
        row = self.row
        want = row.limits if self.attached else None
        if not want:
            if pins():
                self.wrong(f"{after}: pins {pins()}")
            if programs(self.pod) != [0, 0]:
                self.wrong(f"{after}: programs {programs(self.pod)}")
            return
        got = limits(attachment(self.pod.path))
        if not got or any(abs(g - w) > 1 for g, w in zip(got, want)):
            self.wrong(f"{after}: limits {got}, not {want}")
        ways = [int(bool(rate)) for rate in want[:2]]
        if programs(self.pod) != ways:
            self.wrong(f"{after}: programs {programs(self.pod)}")

    def all(self, first):
        """Run every command; those that do not depend on the version run only once."""
        if first:
            self.do("CHECK")
        self.attached = self.do("ADD") and bool(self.row.limits)
        self.state("ADD")
        if self.attached and first:
            self.do("ADD")
            self.state("second ADD")
        for command in ("CHECK", "STATUS", "GC") + \
                ("VERSION", "FROB", "add", "", None) * first:
            self.do(command)
        self.state("CHECK, STATUS and others")
        self.do("DEL")
        self.attached = False
        self.state("DEL")
        if self.version in VERSIONS:
            # Runtimes call DEL like this when the sandbox has gone.
            self.do("DEL", CNI_NETNS="")
            self.state("second DEL")
        return self.problems


def difference(got, want, path=""):
    """Return the first place where two values differ."""
    if isinstance(got, dict) and isinstance(want, dict):
        for key in {**want, **got}:
            if got.get(key, ...) != want.get(key, ...):
                return difference(got.get(key, ...), want.get(key, ...),
                                  f"{path}.{key}")
    if isinstance(got, list) and isinstance(want, list) and \
            len(got) == len(want):
        for i, pair in enumerate(zip(got, want)):
            if pair[0] != pair[1]:
                return difference(*pair, f"{path}[{i}]")
    return f"{path}: {got!r}, not {want!r}"


def short(codes):
    return sorted(codes) if len(codes) < 5 else "one of many codes"


def make_pods():
    """Make the captured namespaces with the interfaces that they had."""
    found = {"pod": (None, None)}
    for row in captures():
        pod = sandbox(row.conf)
        if pod:
            found[pod[0]] = pod[1:]
    pods = {}
    sh("ip", "link", "add", "uplink", "up", "type", "veth")
    for name, (link, host) in found.items():
        if link and not host:
            pods[name] = Macvlan(name, link["mac"])
        else:
            pods[name] = Veth(name, *(
                    (host["name"], link["mac"], host["mac"]) if link else
                    ("vethpod",)))
    return pods


class Macvlan(Veth):
    def __init__(self, name, mac):
        super().__init__(name, None, mac)

    def link(self):
        sh("ip", "link", "add", "mv0", "link", "uplink", "type", "macvlan",
           "mode", "bridge")
        sh("ip", "link", "set", "mv0", "address", self.mac, "netns",
           self.name, "name", "eth0")


def stories(natra, rep, pods):
    """Feed the captures of one pod's life in their order, byte for byte."""
    def feed(story, name, command, env, want):
        a = call(natra, command, literal(name), **env)
        rep.check(f"{story}: {name} {command}", str(a)[:60], want,
                  not malformed(a, command) and a.error() == want)

    gone = parse(literal("ctrd1.6-DEL-netns-gone"))
    gone_env = environment("ctrd1.6-DEL-netns-gone")
    for story, add, *dels in (
            ("removed twice", "ctrd1.6-ADD", "ctrd1.6-DEL-first",
             "ctrd1.6-DEL-again-no-prevResult"),
            ("0.3.1", "ctrd1.6-v0.3.1-ADD", "ctrd1.6-v0.3.1-DEL"),
            ("cnitool", "cnitool-v1.1.0-ADD", "cnitool-v1.1.0-DEL")):
        env = dict(plugin.ENV, **environment(add))
        env.pop("CNI_COMMAND", None)
        conf = parse(literal(add))
        name, link, _ = sandbox(conf)
        env["CNI_NETNS"] = link["sandbox"]
        feed(story, add, "ADD", env, 0)
        rep.equal(f"{story}: attached", programs(pods[name]), [1, 1])
        if story == "cnitool":
            feed(story, "cnitool-v1.1.0-CHECK", "CHECK", env, 0)
            feed(story, "cnitool-v1.1.0-GC", "GC", env, 0)
            rep.equal(f"{story}: gc without a list removes nothing",
                      programs(pods[name]), [1, 1])
        for d in dels:
            env["CNI_NETNS"] = environment(d).get("CNI_NETNS",
                                                  env["CNI_NETNS"])
            feed(story, d, "DEL", env, 0)
            rep.equal(f"{story}: left after DEL",
                      (programs(pods[name]), pins()), ([0, 0], []))
    # Here the sandbox dies first. The input of the ADD is derived from the
    # captured DEL.
    gone["prevResult"]["interfaces"].pop()
    name, link, _ = sandbox(gone)
    del gone_env["CNI_COMMAND"]
    a = call(natra, "ADD", gone, **dict(gone_env, CNI_NETNS=link["sandbox"]))
    rep.equal("netns gone: ADD", a.error(), 0)
    pods.pop(name).close()
    for _ in range(2):
        feed("netns gone", "ctrd1.6-DEL-netns-gone", "DEL", gone_env, 0)
        rep.equal("netns gone: left", pins(), [])
    # DEL finds the attachment by its name, wherever CNI_NETNS points.
    pod = pods["pod"]
    conf = dict(gone, prevResult=pod.prev_result())
    for path, code in (("/run/netns/nosuch", 0), ("/etc/hostname", 0),
                       ("", 0), ("/proc/self/ns/net", 8)):
        call(natra, "ADD", conf, **dict(gone_env, CNI_NETNS=pod.path))
        rep.equal("attached", programs(pod), [1, 1])
        a = call(natra, "DEL", conf, **dict(gone_env, CNI_NETNS=path))
        rep.equal(f"DEL with netns {path!r}",
                  (a.error(), programs(pod), pins()), (code, [0, 0], []))
    # This DEL has no ADD before it.
    feed("never added", "ctrd1.6-DEL-first", "DEL", gone_env, 0)


def main(rep, a):
    natra = a.plugin or find_natra()
    pods = make_pods()
    for row in rows():
        if a.row not in row.name:
            continue
        problems = []
        versions = row.versions[:1] if a.quick else row.versions
        for version in versions:
            problems += [f"{version} {text}" for text in Run(
                    natra, pods, row, version).all(version == versions[0])]
        rep.check(row.name[:50], f"{len(problems)} problems", "none",
                  not problems)
        for text in problems:
            print(f"       {text[:600]}")
    if not a.row:
        stories(natra, rep, pods)


if __name__ == "__main__":
    plugin.run_script(main,
        option("--row", default="", help="only rows with this in the name"),
        option("--plugin", help="another plugin, to see the test fail"),
        option("--quick", action="store_true", help="one version a row"))
