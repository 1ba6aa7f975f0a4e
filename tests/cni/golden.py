#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Feeds the plugin what containerd sent to upstream's `bandwidth` plugin in a pod's life, byte
for byte: the network namespaces and interfaces that the captures name are made under the
same names. After each command the kernel's state is compared, and after DEL nothing may
be left.

cni-chain and cni-cnitool have the results of other main plugins and libcni's own calls,
unit-cni-command and unit-cni-conf the errors of each command and version.
"""
import copy
import json
import os

import plugin
from plugin import (HERE, VERSIONS, Veth, attachment, call, find_natra, limits, malformed,
                    number, parse, pins, programs)

M10 = 10_000_000
# natra uses 0.5 s of the rate in place of the placeholder bursts that runtimes send.
BURST = M10 // 2
ADD, AGAIN, GONE = "ctrd1.6-ADD", "ctrd1.6-DEL-again-no-prevResult", "ctrd1.6-DEL-netns-gone"
SINCE = {"CHECK": "0.4.0", "GC": "1.1.0", "STATUS": "1.1.0"}


def literal(name):
    with open(f"{HERE}/captures/{name}.json", "rb") as f:
        return f.read()


def environment(name):
    """Return the variables that the runtime set, but for the command."""
    with open(f"{HERE}/captures/{name}.env") as f:
        env = dict(s.rstrip("\n").split("=", 1) for s in f)
    del env["CNI_COMMAND"]
    return env


def with_version(conf, version):
    """Return the conf as libcni would send it, with the prevResult in the same
    version."""
    conf = copy.deepcopy(conf)
    conf["cniVersion"] = conf["prevResult"]["cniVersion"] = version
    if version.startswith("0."):
        for ip in conf["prevResult"]["ips"]:
            ip["version"] = "4"
    return conf


def pod_of(conf):
    """Make the captured pod: its network namespace, with the interfaces that it had."""
    links = conf["prevResult"]["interfaces"]
    pod, = [i for i in links if "sandbox" in i]
    host, = [i for i in links if i["name"].startswith("veth")]
    return Veth(os.path.basename(pod["sandbox"]), host["name"], pod["mac"], host["mac"])


class Pod:
    """A captured pod, and the calls for it."""

    def __init__(self, rep, natra, conf, env):
        self.rep, self.natra, self.env = rep, natra, env
        self.pod = pod_of(conf)
        self.env["CNI_NETNS"] = self.pod.path

    def feed(self, what, command, stdin, code=0, **env):
        a = call(self.natra, command, stdin, **{**self.env, **env})
        self.rep.check(f"{what}: {command}", str(a)[:90], code,
                       not malformed(a, command) and a.error() == code)
        return a

    def holds(self, what, want):
        """Check that the kernel has these rates and bursts, or nothing at all."""
        ways = [int(bool(rate)) for rate in want[:2]] if want else [0, 0]
        got = (limits(attachment(self.pod.path)), programs(self.pod))
        self.rep.equal(f"{what}: limits and programs", got, (want, ways))
        if not want:
            self.rep.equal(f"{what}: pins", pins(), [])

    def life(self, what, stdin, want):
        conf = parse(stdin) if isinstance(stdin, bytes) else stdin
        version = conf["cniVersion"]
        for _ in range(2):
            a = self.feed(what, "ADD", stdin)
        self.rep.true(f"{what}: the result is the prevResult", a.json == parse(json.dumps(
            conf["prevResult"])))
        self.holds(f"{what}: ADD", want)
        for command, since in SINCE.items():
            self.feed(what, command, stdin, int(number(version) < number(since)))
        self.holds(f"{what}: CHECK and others", want)
        # Runtimes call DEL once more when the sandbox has gone.
        for netns in self.pod.path, "":
            self.feed(what, "DEL", stdin, CNI_NETNS=netns)
            self.holds(f"{what}: DEL", None)


def story_of_a_pod(rep, natra):
    conf = parse(literal(ADD))
    p = Pod(rep, natra, conf, environment(ADD))
    both = (M10, M10, BURST, BURST)
    p.life("as captured", literal(ADD), both)
    for version in VERSIONS:
        p.life(version, with_version(conf, version), both)
    runtime = conf["runtimeConfig"]
    for what, given, want in (
            ("into it only", {**runtime, "bandwidth": {**runtime["bandwidth"], "EgressRate": 0,
                                                       "EgressBurst": 0}}, (M10, 0, BURST, 0)),
            ("no rate", {"io.kubernetes.cri.pod-annotations": None}, None),
            ("no capability", None, None)):
        p.life(what, {**conf, "runtimeConfig": given}, want)
    # The second DEL has no prevResult, and an ADD would need one.
    p.feed("removed twice", "ADD", literal(ADD))
    for netns in p.pod.path, "":
        p.feed("removed twice", "DEL", literal(AGAIN), CNI_NETNS=netns)
        p.holds("removed twice", None)
    p.feed("no prevResult", "ADD", literal(AGAIN), 7)
    # DEL finds the attachment by its name, wherever CNI_NETNS points.
    for path, code in (("/run/netns/nosuch", 0), ("/etc/hostname", 0), ("/proc/self/ns/net", 8)):
        p.feed(path, "ADD", literal(ADD))
        p.holds(path, both)
        p.feed(path, "DEL", literal(ADD), code, CNI_NETNS=path)
        p.holds(path, None)


def story_of_a_pod_that_is_gone(rep, natra):
    """The sandbox dies first. The input of the ADD is derived from the captured DEL."""
    conf = parse(literal(GONE))
    conf["prevResult"]["interfaces"].pop()
    env = environment(GONE)
    p = Pod(rep, natra, conf, env)
    p.feed("gone", "ADD", conf)
    rep.equal("gone: attached", programs(p.pod), [1, 1])
    p.pod.close()
    # The last one has no ADD before it.
    for _ in range(3):
        p.feed("gone", "DEL", literal(GONE), CNI_NETNS="")
        rep.equal("gone: left", pins(), [])


def main(rep, _):
    natra = find_natra()
    for command in None, "":
        told = call(natra, command, b"")
        rep.true("called by hand, it says what it is", not told.code and not told.out and
                 VERSIONS[-1] in told.err, str(told)[:80])
    story_of_a_pod(rep, natra)
    story_of_a_pod_that_is_gone(rep, natra)


if __name__ == "__main__":
    plugin.run_script(main)
