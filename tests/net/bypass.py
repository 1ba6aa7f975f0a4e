#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks that a limit which does not hold is found by counting.

  aws       the calls of AWS's network policy agent: its filters, at its start and restart
  cilium    those of Cilium with TCX, which redirects to the other end of a veth
  filters   those of Cilium without TCX, which redirects likewise
  felix     those of Calico's Felix: TCX, and then the clsact qdisc removed
  pod       what a pod can do by itself: a socket that goes around the hook

For each neighbour bulk traffic passes beside it in each attach mode. Where that is over the
limit, natractl check, list, show, doctor and metrics have to say so, with the share; where it is
not, they must not. quiet.py has more traffic of which nothing may be said.
"""
import os
import re
import sys
import time

sys.path.insert(0, os.path.dirname(__file__) + "/../harness/python")
import bpfsys
from commands import sh
from frames import PACKET_QDISC_BYPASS, SOL_PACKET, Sender, eth, ip4, udp
from limiters import Natra, bits, total
from meter import ETH_IPV4_UDP, wire_rates
from neighbour import PINS, Neighbour, ifindex
from rig import Rig
from script import option, run_script, some_of

CAP = "10M"
OFFERED = 120e6
PORT = 5300
WAYS = {"in": "ingress", "out": "egress"}
# Beside the datagrams the interface carries next to nothing.
SHARE_TOLERANCE = 8
# What passes the limit beside who redirects, by TCX or not.
LOST = {True: {"tcx-hostside": ["in"], "clsact-hostside": ["in", "out"]},
        False: {"tcx-hostside": ["in"], "clsact-hostside": ["in"]}}
REDIRECT_PEER = 155             # BPF_FUNC_redirect_peer
AWS = {"ingress": "handle_ingress", "egress": "handle_egress"}


class Scene:
    def __init__(self, r, rep, a):
        self.r, self.rep, self.a = r, rep, a
        self.meters = []
        self.doctor = ""        # what doctor said last

    def udp(self):
        """Send datagrams both ways, at many times the limit."""
        r = self.r
        self.meters = [r.into(0, ETH_IPV4_UDP), r.out_of(0, ETH_IPV4_UDP)]
        for src, dst in ((r.client, r.pod), (r.pod, r.client)):
            r.load(dst, "udp-sink", PORT)
            r.wait_port(dst, PORT, "udp", seconds=20)
            r.load(src, "udp-send", dst.ip, PORT, "--rate", OFFERED)
        r.wait_flow(*self.meters)

    def attach(self, mode, *options):
        return Natra(self.r.pod, "--attach-mode", mode, "--fast-pass", "off",
                     *options).attach(CAP, CAP)

    def settle(self, natra):
        """Let traffic pass, and return per way what share of its bytes is over the limit."""
        before = natra.stats()
        rates = wire_rates(self.meters, self.a.seconds)
        after = natra.stats()
        shares = {}
        for (way, direction), rate in zip(WAYS.items(), rates):
            carried = rate * self.a.seconds / 8
            seen = total(after[direction]) - total(before[direction])
            shares[way] = 100 * max(0, 1 - seen / carried) if rate > 2 * bits(CAP) else 0
        return shares

    def told(self, natra):
        """Return per way what each command says, in percent."""
        r, rep = self.r, self.rep
        check = natra.run("check", natra.id)
        found = {way: int(m.group(1)) if (m := re.search(
                rf"{d} of 'eth0' is bypassed: (\d+) %", check.stderr)) else 0
            for way, d in WAYS.items()}
        show = natra.show()
        shown = {way: show[f"{d}_bypassed_percent"] for way, d in WAYS.items()}
        # check names the first direction of the two.
        first = next((w for w in WAYS if shown[w]), None)
        rep.equal("  check fails", check.returncode, 3 if first else 0)
        rep.true("  check tells what show does", not first or
                 abs(found[first] - shown[first]) <= 3, f"{found} {shown}")
        state = natra.ok("list").splitlines()[1]
        rep.true("  list says it", ("bypassed" in state) == bool(first), state[-60:])
        metrics = natra.ok("metrics")
        ratios = {way: float(re.search(
            rf'natra_bypassed_ratio{{[^}}]*direction="{d}"}} (\S+)', metrics).group(1))
            for way, d in WAYS.items()}
        rep.true("  metrics agree", all(abs(ratios[w] * 100 - shown[w]) <= 3 for w in WAYS),
                 f"{ratios}")
        self.doctor = natra.run("doctor", natra.id).stdout
        rep.equal("  doctor names it", "is bypassed" in self.doctor, bool(first))
        return shown, check.stderr

    def judge(self, what, natra, neighbour=None):
        """Compare what is told with what passes the limit."""
        return self.rep.measure(what, self._judge, what, natra, neighbour)

    def _judge(self, what, natra, neighbour):
        shares = self.settle(natra)
        shown, text = self.told(natra)
        for way, share in shares.items():
            if share:
                self.rep.near(f"{what}: {way}, bypassed", shown[way], share,
                              SHARE_TOLERANCE / 100, " %")
            else:
                self.rep.equal(f"{what}: {way}, bypassed", shown[way], 0, " %",
                               exact=False)
        if neighbour and any(shares.values()):
            self.rep.true(f"{what}: check names {neighbour}", neighbour in text, text[:90])
        return shares


def load_aws():
    """Load AWS's programs, which have no name, and accept all."""
    for name in AWS.values():
        fd = bpfsys.load([(0xb7, 0, 0, 0), (0x95, 0, 0, 0)], b"")
        bpfsys.pin(fd, f"{PINS}/{name}")
        os.close(fd)


def aws_starts(r):
    """The calls of AWS's agent for a pod, at its start and at each restart: the qdisc, which
    may be there, and for each direction a filter of priority 1 and handle 1. If that is there
    it deletes it, and adds it again, which puts it in front of all others of its priority."""
    dev = r.pod.host
    sh("tc", "qdisc", "add", "dev", dev, "clsact", check=False)
    for hook, name in AWS.items():
        add = ("tc", "filter", "add", "dev", dev, hook, "protocol", "all", "prio", "1",
               "handle", "1", "bpf", "direct-action", "object-pinned", f"{PINS}/{name}")
        where = ("dev", dev, hook, "protocol", "all", "prio", "1", "handle", "1", "bpf")
        if not os.system(" ".join(add) + " 2>/dev/null"):
            continue
        sh("tc", "filter", "del", *where)
        sh(*add)


def part_aws(s):
    s.udp()
    load_aws()
    aws_starts(s.r)
    for mode in Natra.modes():
        natra = s.attach(mode)
        s.judge(f"{mode} beside aws", natra)
        # This begins to count anew.
        natra.attach(CAP, CAP)
        aws_starts(s.r)
        shares = s.judge(f"{mode}, aws restarts", natra, "handle_")
        s.rep.equal(f"{mode}, aws restarts: passed in, out", past(shares),
                    ["in", "out"] if mode == "clsact-hostside" else [])
        natra.detach()


def past(shares):
    return [way for way, share in shares.items() if share]


def load_peer(dev, name):
    """Load a program that redirects to the other end of an interface's veth."""
    return bpfsys.load([(0xb7, 1, 0, dev), (0xb7, 2, 0, 0), (0x85, 0, 0, REDIRECT_PEER),
                        (0x95, 0, 0, 0)], name)


class Endpoints:
    """What Cilium or Felix has on the host side of the pod and of the client: on what these
    send, a program that redirects to the other one, and on what they get, one that accepts.
    Without TCX these are filters, of which there is none on what they get."""

    def __init__(self, r, prefix, by_tcx=True):
        self.r, self.prefix, self.by_tcx, self.links = r, prefix, by_tcx, []

    def links_of(self, pod, other):
        dev = ifindex(self.r.node, pod.host)
        for kind, fd in (
                (bpfsys.TCX_INGRESS, load_peer(ifindex(self.r.node, other.host),
                                               self.prefix + b"from_wl")),
                (bpfsys.TCX_EGRESS, bpfsys.load([(0xb7, 0, 0, 0), (0x95, 0, 0, 0)],
                                                self.prefix + b"to_wl"))):
            yield bpfsys.tcx_link(fd, dev, kind)
            os.close(fd)

    def add_filter(self, pod, other):
        fd = load_peer(ifindex(self.r.node, other.host), self.prefix + b"from_wl")
        bpfsys.pin(fd, f"{PINS}/{pod.host}")
        os.close(fd)
        sh("tc", "qdisc", "add", "dev", pod.host, "clsact")
        sh("tc", "filter", "add", "dev", pod.host, "ingress", "prio", "1", "handle", "1", "bpf",
           "direct-action", "object-pinned", f"{PINS}/{pod.host}")

    def begin(self):
        pods = self.r.pod, self.r.client
        for pod, other in zip(pods, reversed(pods)):
            if self.by_tcx:
                self.links += self.links_of(pod, other)
            else:
                self.add_filter(pod, other)

    def flush(self):
        """Cilium removes all filters of an endpoint's interface when it makes its programs
        anew, after its own are linked. Without TCX it does so where it has none."""
        for hook in ("ingress", "egress") if self.by_tcx else ("egress",):
            sh("tc", "filter", "del", "dev", self.r.pod.host, hook, check=False)

    def remove_qdisc(self):
        """Felix removes the qdisc, after its programs are linked."""
        sh("tc", "qdisc", "del", "dev", self.r.pod.host, "clsact", check=False)

    def end(self):
        for fd in self.links:
            os.close(fd)
        self.links = []


def redirected(s, prefix, undo, by_tcx=True):
    """Test beside an owner that redirects into the pod, and then `undo`es filters. That he does
    so by filters matters to what is judged on the host side alone."""
    modes = Natra.modes()
    if by_tcx and "tcx-podside" not in modes:
        return
    if not by_tcx:
        modes = [m for m in modes if m.endswith("hostside")][:1]
    s.udp()
    neighbour = Endpoints(s.r, prefix, by_tcx)
    neighbour.begin()
    for mode in modes:
        lost = LOST[by_tcx].get(mode, [])
        natra = s.attach(mode)
        what = f"{mode} behind {prefix.decode()}*"
        shares = s.judge(what, natra)
        s.rep.equal(f"{what}: passed", past(shares), lost)
        said = f"does not limit {' and '.join(WAYS[way] for way in lost)} beside" if lost else None
        s.rep.equal(f"{what}: doctor says that the mode does not hold",
                    (said or "does not limit") in s.doctor, bool(lost))
        getattr(neighbour, undo)()
        check = natra.run("check", natra.id)
        if mode.startswith("clsact"):
            s.rep.true(f"{what}, {undo}: check says so",
                       check.returncode == 3 and "is not on" in check.stderr, check.stderr)
        elif mode.endswith("podside"):
            s.rep.equal(f"{what}, {undo}: check", check.returncode, 0)
        natra.detach()
    neighbour.end()


def part_cilium(s):
    redirected(s, b"cil_", "flush")


def part_filters(s):
    redirected(s, b"cil_", "flush", by_tcx=False)
    if Natra().json("probe")["fq"]:
        paced_group(s)


def paced_group(s):
    """The pacer alone charges a group, and all that is redirected comes past it. In a group
    that has no rate in this direction, the backstop holds the pod's own, if it has one."""
    natra = Natra(s.r.pod, "--attach-mode", "clsact-podside", "--ingress-mode", "pace", "--group",
                  "team")
    for rate, own, lost in (("--ingress-rate", None, True), ("--egress-rate", None, False),
                            ("--egress-rate", CAP, False)):
        natra.ok("group", "set", "team", rate, CAP)
        natra.attach(own, CAP)
        what = f"paced for a group with {rate[2:]}, {own or 'none'} itself"
        if lost or own:
            shares = s.judge(what, natra)
            s.rep.equal(f"{what}: passed", past(shares), ["in"] if lost else [])
        else:
            # A direction without a limit has none to be passed, however much goes around the hook.
            s.settle(natra)
            shown, _ = s.told(natra)
            s.rep.equal(f"{what}: bypassed", shown, {"in": 0, "out": 0})
        s.rep.equal(f"{what}: doctor says that it does not hold",
                    "does not limit ingress of the pod's group beside" in s.doctor, lost)
        natra.detach()
        natra.ok("group", "remove", "team")


def part_felix(s):
    redirected(s, b"cali_", "remove_qdisc")


def part_pod(s):
    """A pod that sends by a packet socket around its own hook."""
    sock = Sender(s.r.pod, "eth0").plain
    sock.setsockopt(SOL_PACKET, PACKET_QDISC_BYPASS, 1)
    frame = eth(0x0800, ip4(17, udp(bytes(1200))))
    for mode in Natra.modes():
        natra = s.attach(mode)
        end = time.monotonic() + s.a.seconds
        sent = 0
        while time.monotonic() < end:
            sent += sock.send(frame)
            if sent > 20e6:
                break
        time.sleep(max(0, end - time.monotonic()))
        s.rep.least(f"{mode}, socket: MB sent", sent / 1e6, 4)
        shown, _ = s.told(natra)
        s.rep.true(f"{mode}, socket: out", (shown["out"] >= 95) ==
                   mode.endswith("podside") and not shown["in"], str(shown))
        natra.detach()


PARTS = {"aws": part_aws, "cilium": part_cilium, "filters": part_filters, "felix": part_felix,
         "pod": part_pod}


def main(rep, a):
    Neighbour()
    for part in a.part:
        with Rig() as r:
            PARTS[part](Scene(r, rep, a))


if __name__ == "__main__":
    run_script(main, some_of("part", PARTS),
               option("--seconds", type=float, default=1.5))
