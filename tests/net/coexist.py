#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks natra beside other owners of the same hooks: both must do their work.

Detach must leave the other owner's programs as they were. The parts are tcx, clsact
(programs on the same hook), ingress (a qdisc of that name), peer (bpf_redirect_peer
past the host), service (DNAT) and upstream (its bandwidth plugin on the same pod).

UDP at three times the limit runs both ways all the time, so that a limit that does not
hold shows within a second.
"""
import os
import re
import sys
import time

sys.path.insert(0, os.path.dirname(__file__) + "/../harness/python")
from commands import sh
from limiters import Natra, Upstream, total
from meter import ETH_IPV4_UDP, Meter, wire_rates
from neighbour import PINS, Neighbour, Site, ifindex
from report import skip
from rig import Rig
from script import option, run_script, some_of

CAP, CAP_MBIT = "5M", 5
OFFERED = 15e6
PORT = 5300
TOLERANCE = 0.12
WAYS = ("in", "out")
# If a packet goes elsewhere, no fq keeps its departure time: with a short horizon that
# soon ends in drops. With small bursts the rate is measured and not the burst.
OPTIONS = ("--ingress-burst", "160k", "--egress-burst", "160k",
           "--heavy-hitter-threshold", "20k", "--horizon", "100ms")


class Scene:
    """Holds the rig, another owner's programs and the traffic."""

    def __init__(self, r, rep, neighbour, a):
        self.r, self.rep, self.seconds = r, rep, a.seconds
        self.neighbour = neighbour
        self.modes = [m for m in Natra.modes() if m.endswith("podside")]
        Site.add_twins(r)
        self.sites = {side: Site(r, side) for side in ("podside", "hostside")}
        self.meters = []

    def udp(self, pod_ip=None, client_ip=None):
        """Start datagrams both ways, over the limit."""
        r = self.r
        self.meters = [r.into(0, ETH_IPV4_UDP), r.out_of(0, ETH_IPV4_UDP)]
        for src, dst, ip in ((r.client, r.pod, pod_ip),
                             (r.pod, r.client, client_ip)):
            r.load(dst, "udp-sink", PORT)
            r.wait_port(dst, PORT, "udp", seconds=20)
            r.load(src, "udp-send", ip or dst.ip, PORT, "--rate", OFFERED)
        r.wait_flow(*self.meters)

    def tcp(self, pod_ip=None, client_ip=None):
        """Start a stream each way."""
        r = self.r
        self.meters = r.meters()
        for src, dst, ip in ((r.client, r.pod, pod_ip),
                             (r.pod, r.client, client_ip)):
            r.load(dst, "tcp-recv", PORT)
            r.wait_port(dst, PORT, seconds=20)
            r.load(src, "tcp-send", ip or dst.ip, PORT)
        r.wait_flow(*self.meters)

    def silence(self):
        self.r.stop(None)

    def site(self, mode):
        site = self.sites[mode.split("-")[1]]
        site.aim(self.neighbour)
        return site

    def natra(self, mode, options=OPTIONS):
        return Natra(self.r.pod, "--attach-mode", mode, *options)

    def rates(self, settle=0.4, seconds=None):
        time.sleep(settle)
        return [rate / 1e6 for rate in
                wire_rates(self.meters, seconds or self.seconds)]

    def held(self, what, limits=(CAP_MBIT, CAP_MBIT), tolerance=TOLERANCE, **kw):
        """Check that each direction carries its limit."""
        self.rep.measure(what, self.near, what, limits, tolerance, **kw)

    def near(self, what, limits, tolerance, **kw):
        for way, rate, limit in zip(WAYS, self.rates(**kw), limits):
            self.rep.near(f"{what}: {way}", rate, limit, tolerance, " Mbit/s")

    def not_held(self, what):
        """Check that nothing limits the traffic, which gives the other checks their
        meaning."""
        self.rep.measure(what, self.over, what)

    def over(self, what):
        for way, rate in zip(WAYS, self.rates()):
            self.rep.least(f"{what}: {way}", rate, 0.8 * OFFERED / 1e6, " Mbit/s")

    def unchanged(self, what, before, now):
        self.rep.true(f"{what} as before", now == before,
                      "same" if now == before else f"{before} -> {now}")

    def works(self, what, verdict):
        """Check that the other owner's programs see traffic in both directions now."""
        self.rep.measure(what, self.counts, what, verdict)

    def counts(self, what, verdict):
        names = [f"{verdict}_{way}" for way in WAYS]
        before = [self.neighbour.seen(n) for n in names]
        time.sleep(0.2)
        packets = [self.neighbour.seen(n) - b for n, b in zip(names, before)]
        self.rep.check(f"{what}: {verdict} counts", str(packets), "each > 20",
                       min(packets) > 20, exact=False)

    def idle(self, what, natra):
        """Check that natra's programs on these hooks see nothing. In the podside modes
        ingress is judged on the host side before."""
        before = natra.stats()
        ingress = "backstop" if "backstop" in before else "ingress"
        time.sleep(0.3)
        after = natra.stats()
        packets = [total(after[d], "packets") - total(before[d], "packets")
                   for d in (ingress, "egress")]
        self.rep.equal(f"{what}: natra's packets", packets, [0, 0])

    def order(self, what, natra, site, want):
        """Check what show reports of both hooks, and that its text says the same."""
        show = natra.show()
        text = natra.ok("show", natra.id)
        for hook in (site.into, site.out_of):
            entries = sorted((h for h in show["hooks"]
                              if (h["ifname"], h["hook_side"]) == (site.dev, hook)),
                             key=lambda h: h["position"])
            mine = next((h["position"] for h in entries if h["is_ours"]), -1)
            suffix = "_in" if hook == "ingress" else "_out"
            names = ["natra" if h["is_ours"] else
                     h["prog_name"].removesuffix(suffix) for h in entries]
            good = names == want and \
                [h["position"] for h in entries] == list(range(len(want))) and \
                all(h["is_before_ours"] == (h["position"] < mine)
                    for h in entries)
            for h in entries:
                mark = " (this)" if h["is_ours"] else \
                    " (before this)" if h["is_before_ours"] else ""
                good = good and re.search(
                        rf" {site.dev} {h['hook']} {hook} {h['position']}: "
                        rf"program {h['prog_id']} {h['prog_name']}\b.*"
                        rf"{re.escape(mark)}\n", text)
            self.rep.check(f"{what}: show, {hook}", " ".join(names),
                           " ".join(want), bool(good))

    def checked(self, what, natra, code=0, warns=0, names=""):
        """Check the exit code of natractl check, and that it warns of each program in
        front of natra, on both hooks."""
        p = natra.run("check", natra.id)
        lines = p.stderr.splitlines()
        good = p.returncode == code and names in p.stderr and \
            sum("runs before natra" in s for s in lines) == warns
        self.rep.check(f"{what}: check",
                       f"exit {p.returncode}: {p.stderr.strip()[:60]}",
                       f"exit {code}, {warns} warnings {names}", good)


def tcx_chain(s, mode, before, after, order):
    """Test one owner before natra and another behind it; natra takes the head."""
    what = f"{mode} {'+'.join([*before, 'natra', *after])}"
    site, natra = s.site(mode), s.natra(mode)
    fds = [site.tcx(v) for v in before]
    natra.attach(CAP, CAP)
    fds += [site.tcx(v) for v in after]
    s.held(what)
    others = order[1:]
    # A program that accepts or redirects is the last one that runs.
    others = others[:[v != "next" for v in others].index(True) + 1]
    for verdict in others:
        s.works(what, verdict)
    s.order(what, natra, site, order)
    s.checked(what, natra)
    natra.detach()
    for verdict in others:
        s.works(f"{what}, detached", verdict)
    for pair in fds:
        for fd in pair:
            os.close(fd)


def tcx_front(s, mode, verdict):
    """An owner that comes later and asks for the head gets it."""
    what = f"{mode} {verdict} in front"
    site, natra = s.site(mode), s.natra(mode)
    natra.attach(CAP, CAP)
    fds = site.tcx(verdict, before=True)
    s.order(what, natra, site, [verdict, "natra"])
    s.checked(what, natra, warns=2)
    if verdict == "next":
        s.held(what)
    else:
        # natra does not see packets that the program in front accepts or redirects.
        s.idle(what, natra)
    s.works(what, verdict)
    # Attaching anew puts natra at the head again.
    natra.detach()
    natra.attach(CAP, CAP)
    s.order(f"{what}, attached anew", natra, site, ["natra", verdict])
    s.held(f"{what}, attached anew")
    natra.detach()
    s.works(f"{what}, detached", verdict)
    for fd in fds:
        os.close(fd)


def part_tcx(s):
    if not Natra().json("probe")["tcx"]:
        return "TCX (Linux 6.6)"
    s.udp()
    s.not_held("no limiter")
    for mode in [m for m in s.modes if m.startswith("tcx")]:
        tcx_chain(s, mode, ["next"], ["ok"], ["natra", "next", "ok"])
        tcx_chain(s, mode, ["ok"], ["next"], ["natra", "ok", "next"])
        tcx_chain(s, mode, ["redirect"], [], ["natra", "redirect"])
    for verdict in ("ok", "redirect"):
        tcx_front(s, "tcx-podside", verdict)
    return None


def clsact_first(s, mode):
    """The other owner works as AWS's agent does: priority 1, handle 1, and OK for
    packets that it allows."""
    what = f"{mode} behind clsact ok"
    site, natra = s.site(mode), s.natra(mode)
    site.clsact("ok")
    before = site.both_filters()
    natra.attach(CAP, CAP)
    s.held(what)
    s.works(what, "ok")
    s.order(what, natra, site, ["natra", "ok"])
    s.checked(what, natra)
    # The owner replaces its program by a new version.
    site.clsact("next")
    site.clsact("ok")
    s.order(f"{what}, replaced", natra, site, ["natra", "ok"])
    natra.detach()
    s.works(f"{what}, detached", "ok")
    s.unchanged(f"{what}: filters", before, site.both_filters())
    site.delete_clsact()


def clsact_later(s, mode):
    """The same owner comes after natra and takes priority 1."""
    what = f"{mode}, then clsact ok"
    site, natra = s.site(mode), s.natra(mode)
    natra.attach(CAP, CAP)
    mine = sum(site.both_filters(), [])
    s.rep.true(f"{what}: natra leaves priority 1 and handle 1 to others",
               all(prio != 1 and handle != 1 for prio, handle, _ in mine))
    site.clsact("ok")
    before = [[f for f in hook if f not in mine] for hook in site.both_filters()]
    s.works(what, "ok")
    if mode.startswith("tcx"):
        s.order(what, natra, site, ["natra", "ok"])
        s.checked(what, natra)
    else:
        s.order(what, natra, site, ["ok", "natra"])
        s.checked(what, natra, warns=2)
        s.idle(what, natra)
        natra.detach()
        natra.attach(CAP, CAP)
        s.order(f"{what}, attached anew", natra, site, ["natra", "ok"])
    s.held(what)
    natra.detach()
    s.unchanged(f"{what}: filters", before, site.both_filters())
    site.delete_clsact()


def clsact_recreated(s, mode):
    """The owner flushes its priority, and then it deletes the qdisc."""
    what = f"{mode}, recreated"
    tcx = mode.startswith("tcx")
    site, natra = s.site(mode), s.natra(mode)
    natra.attach(CAP, CAP)
    site.clsact("next")
    site.flush()
    s.checked(f"{what} by flush", natra)
    site.clsact("next")
    s.held(f"{what} by flush")
    s.works(f"{what} by flush", "next")
    site.delete_clsact()
    site.clsact("ok")
    if tcx:
        s.checked(f"{what} with clsact", natra)
    else:
        s.checked(f"{what} with clsact", natra, code=3, names="is not on")
        # Attaching again repairs it.
        natra.attach(CAP, CAP)
        s.order(f"{what} with clsact", natra, site, ["natra", "ok"])
        site.flush()
        s.checked(f"{what}, the front flushed", natra, code=3, names="is not on")
        site.clsact("ok")
        natra.attach(CAP, CAP)
        s.checked(f"{what} and repaired", natra)
    s.held(f"{what} and repaired")
    s.works(f"{what} and repaired", "ok")
    natra.detach()
    site.delete_clsact()


def clsact_other_protocol(s, mode):
    """A priority holds filters of one protocol, so behind one for IPv6 natra is
    second."""
    what = f"{mode}, priority 1 for IPv6"
    site, natra = s.site(mode), s.natra(mode)
    site.clsact("ok", protocol="ipv6")
    natra.attach(CAP, CAP)
    s.order(what, natra, site, ["ok", "natra"])
    s.checked(what, natra, warns=2)
    s.held(what)
    natra.detach()
    site.delete_clsact()


def part_clsact(s):
    s.udp()
    for mode in s.modes:
        clsact_first(s, mode)
        clsact_later(s, mode)
        clsact_recreated(s, mode)
    clsact_other_protocol(s, "clsact-podside")


def part_ingress(s):
    """Another owner has a qdisc `ingress` with a filter of its own, where clsact would
    be."""
    modes = Natra.modes()
    s.udp()
    for mode in modes:
        what = f"{mode}, ingress qdisc"
        site, natra = s.site(mode), s.natra(mode)
        site.tc("qdisc", "add", "ingress")
        site.tc("filter", "add", "ingress", "protocol", "all", "prio", "1",
                "handle", "1", "bpf", "direct-action", "object-pinned",
                f"{PINS}/ok_in")
        before = site.tc("qdisc", "show"), site.filters("ingress")
        if mode.startswith("tcx"):
            natra.attach(CAP, CAP)
            s.held(what)
            hooks = [(h["hook"], h["hook_side"], h["is_ours"])
                     for h in natra.show()["hooks"] if h["ifname"] == site.dev]
            s.rep.equal(f"{what}: shown", hooks, [
                    ("tcx", "ingress", True), ("clsact", "ingress", False),
                    ("tcx", "egress", True)])
            natra.detach()
        else:
            p = natra.run("attach", "eth0", "--netns", s.r.pod.path, "--id",
                          natra.id, "--attach-mode", mode, "--ingress-rate", CAP)
            s.rep.check(f"{what}: refused", f"exit {p.returncode}: "
                        f"{p.stderr.strip()}", "exit 1, one line",
                        p.returncode == 1 and "'ingress'" in p.stderr and
                        len(p.stderr.splitlines()) == 1)
        counted = s.neighbour.seen("ok_in")
        end = time.monotonic() + 5
        while s.neighbour.seen("ok_in") == counted and time.monotonic() < end:
            time.sleep(0.1)
        s.rep.true(f"{what}: its filter counts",
                   s.neighbour.seen("ok_in") > counted)
        s.unchanged(f"{what}: qdisc and filter", before,
                    (site.tc("qdisc", "show"), site.filters("ingress")))
        # `auto` takes the other side where there is no TCX.
        if mode == "clsact-podside" and "tcx-podside" not in modes:
            natra = s.natra("auto").attach(CAP, CAP)
            s.rep.equal(f"{what}: auto takes", natra.show()["mode"],
                        "clsact-hostside")
            s.held(f"{what}, auto")
            natra.detach()
            s.sites["hostside"].delete_clsact()
        site.tc("qdisc", "del", "ingress")


def peer_out(s, mode):
    """Packets that peer redirection puts into the pod do not leave by the host-side
    veth, so natra limits egress only."""
    rates = s.rates()
    s.rep.shown(f"{mode}, peer: in, past natra", f"{rates[0]:.3f} Mbit/s")
    s.rep.near(f"{mode}, peer: out", rates[1], CAP_MBIT, TOLERANCE, " Mbit/s")


def part_peer(s):
    """Test a datapath that takes packets from one host-side veth right into the pod
    behind the other, as Cilium's host routing does."""
    r = s.r
    s.udp()
    tos = {"peer_in": (r.client, r.pod), "peer_out": (r.pod, r.client)}
    for name, (src, dst) in tos.items():
        s.neighbour.target(name, ifindex(r.node, dst.host))
        sh("tc", "qdisc", "add", "dev", src.host, "clsact")
        sh("tc", "filter", "add", "dev", src.host, "ingress", "prio", "1",
           "handle", "1", "bpf", "direct-action", "object-pinned",
           f"{PINS}/{name}")
    s.works("peer", "peer")
    before = [sh("tc", "filter", "show", "dev", src.host, "ingress")
              for src, _ in tos.values()]
    node = Meter(r.node)
    for mode in Natra.modes():
        natra = s.natra(mode)
        natra.attach(CAP, CAP)
        forwarded = node.counters()["ForwDatagrams"]
        if mode.endswith("podside"):
            s.held(f"{mode}, peer")
        else:
            s.rep.measure(f"{mode}, peer", peer_out, s, mode)
        s.works(f"{mode}", "peer")
        s.rep.equal(f"{mode}, peer: packets that the host forwarded",
                    node.counters()["ForwDatagrams"] - forwarded, 0)
        natra.detach()
    s.unchanged("peer: filters", before, [
            sh("tc", "filter", "show", "dev", src.host, "ingress")
            for src, _ in tos.values()])
    s.not_held("peer, detached")


SERVICES = ("10.96.0.1", "10.96.0.2")   # the pod's, and the client's
IPTABLES = ("-t", "nat")


def dnat(tool, backends):
    """Translate requests to the services into requests to the backends. Return a
    function that counts the connections translated, and one that ends the
    translation."""
    if tool == "nft":
        sh("nft", "-f", "-", input="table ip services {\nchain prerouting {\n"
           "type nat hook prerouting priority dstnat;\n" +
           "".join(f"ip daddr {vip} counter dnat to {ip}\n"
                   for vip, ip in zip(SERVICES, backends)) + "}\n}\n")
        return (lambda: [int(n) for n in re.findall(
                    r"packets (\d+)", sh("nft", "list", "table", "services"))],
                lambda: sh("nft", "delete", "table", "services"))
    for vip, ip in zip(SERVICES, backends):
        sh(tool, *IPTABLES, "-A", "PREROUTING", "-d", vip, "-j", "DNAT",
           "--to-destination", ip)
    return (lambda: [int(line.split()[0]) for line in sh(
                tool, *IPTABLES, "-nvxL", "PREROUTING").splitlines()[2:]],
            lambda: sh(tool, *IPTABLES, "-F", "PREROUTING"))


def part_service(s):
    """The node translates traffic on its way to the pod and from it."""
    r, modes, missing = s.r, s.modes, []
    for i, tool in enumerate(("nft", "iptables-nft", "iptables-legacy")):
        mode = modes[i % len(modes)]
        what = f"{mode}, {tool}"
        try:
            counted, undo = dnat(tool, (r.pod.ip, r.client.ip))
        except (RuntimeError, FileNotFoundError) as e:
            s.rep.shown(f"{what}: skip", str(e).splitlines()[0])
            missing.append(tool)
            continue
        natra = s.natra(mode, ())
        natra.attach(CAP, CAP)
        s.tcp(*SERVICES)
        # Policed streams swing, and each way also carries the other's acknowledgements.
        s.held(f"{what}, tcp", tolerance=0.15, settle=2, seconds=4)
        s.silence()
        s.udp(*SERVICES)
        s.held(f"{what}, udp")
        packets = counted()
        s.rep.check(f"{what}: connections translated", str(packets), "2 each",
                    packets == [2, 2])
        natra.detach()
        s.silence()
        s.udp(*SERVICES)
        s.not_held(f"{what}, detached")
        s.silence()
        undo()
    return f"NAT by {', '.join(missing)}" if len(missing) == 3 else None


def part_upstream(s):
    """Upstream's bandwidth plugin stays on a pod that natra limits too."""
    pod = s.r.pod
    upstream = Upstream(pod, burst_bits=400000)
    if not os.access(upstream.PLUGIN, os.X_OK):
        return upstream.PLUGIN
    try:
        upstream.attach("8M", "8M")
    except RuntimeError as e:
        return f"upstream's plugin ({e})"
    s.udp()
    s.held("upstream alone", (8, 8))
    before = sh("tc", "qdisc", "show", "dev", pod.host)
    for mode in s.modes:
        natra = s.natra(mode)
        what = f"{mode} and upstream"
        if mode == "clsact-hostside":
            p = natra.run("attach", "eth0", "--netns", pod.path, "--attach-mode", mode,
                          "--ingress-rate", CAP)
            s.rep.check(f"{what}: refused", f"exit {p.returncode}: "
                        f"{p.stderr.strip()}", "exit 1, 'ingress'",
                        p.returncode == 1 and "'ingress'" in p.stderr)
            continue
        natra.attach(CAP, CAP)
        s.held(f"{what}, natra lower")
        natra.ok("set", natra.id, "--ingress-rate", "30M", "--egress-rate", "30M")
        s.held(f"{what}, upstream lower", (8, 8))
        s.checked(what, natra)
        natra.detach()
        s.unchanged(f"{what}: its qdiscs", before,
                    sh("tc", "qdisc", "show", "dev", pod.host))
    s.held("upstream, natra detached", (8, 8))
    if Natra().json("probe")["fq"]:
        p = s.natra("auto").run("attach", "eth0", "--netns", pod.path,
                                "--ingress-rate", CAP, "--ingress-mode", "pace")
        s.rep.check("upstream and pace: refused", f"exit {p.returncode}: "
                    f"{p.stderr.strip()}", "exit 1, 'tbf'",
                    p.returncode == 1 and "'tbf'" in p.stderr)
    return None


PARTS = {"tcx": part_tcx, "clsact": part_clsact, "ingress": part_ingress,
         "peer": part_peer, "service": part_service, "upstream": part_upstream}


def main(rep, a):
    missing = []
    neighbour = Neighbour()
    for part in a.part:
        with Rig() as r:
            feature = PARTS[part](Scene(r, rep, neighbour, a))
        if feature:
            missing.append(feature)
            rep.shown(f"{part}: skip", feature)
    if not rep.checked:
        skip(", ".join(missing))


if __name__ == "__main__":
    run_script(main,
        some_of("part", PARTS),
        option("--seconds", type=float, default=1))
