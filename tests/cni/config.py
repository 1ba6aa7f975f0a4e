#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks natra's own keys with a real pod: what they do, and what a pod may ask for by
annotations. unit-cni-settings, unit-cni-bandwidth, unit-cni-classes and unit-annotation have
the values that are good and bad and the precedence of rates, and unit-cni-command what
each command makes of a bad one."""
import fcntl
import glob
import json
import os
import re
import socket
import tempfile

import plugin
from plugin import (Veth, attachment, call, find_natra, limits, malformed,
                    natractl, pins, programs)
from commands import sh
from namespaces import Ns, Pod
from script import option

M = 1_000_000
ANNOTATIONS = "io.kubernetes.cri.pod-annotations"

class Bench:
    """One pod, whose attachment is removed at the end of the `with` block."""

    def __init__(self, rep, pod, tmp):
        self.natra, self.rep, self.pod = find_natra(), rep, pod
        self.tmp = tmp

    def conf(self, runtime=None, annotations=None, **keys):
        conf = {"cniVersion": "1.0.0", "name": "config", "type": "natra",
                "logFile": "", "prevResult": self.pod.prev_result()}
        runtime = {"bandwidth": runtime} if runtime else {}
        if annotations is not None:
            runtime[ANNOTATIONS] = annotations
        if runtime:
            conf["runtimeConfig"] = runtime
        return dict(conf, **keys)

    def run(self, command, conf, **env):
        return call(self.natra, command, conf,
                    **{"CNI_NETNS": self.pod.path, **env})

    def add(self, *args, env=None, **keys):
        """Return the answer to an ADD, and the attachment that it made or None; DEL
        follows."""
        conf = self.conf(*args, **keys)
        a = self.run("ADD", conf, **(env or {}))
        info = attachment(self.pod.path) if not a.code else None
        bad = malformed(a, "ADD")
        if bad:
            self.rep.check("answer", bad, "", False)
        d = self.run("DEL", conf)
        if d.code or d.out or pins() or programs(self.pod) != [0, 0]:
            self.rep.check("DEL", f"{d}: {pins()}", "nothing left", False)
        return a, info

    def refused(self, what, *args, words=(), codes=(7,), **keys):
        a, _ = self.add(*args, **keys)
        text = a.text() if a.code else "success"
        self.rep.check(what, text[:80], f"{codes}, {words}",
                       a.error() in codes and all(
                               w.lower() in text.lower() for w in words))


RATES = {"ingressRate": 10 * M, "egressRate": 20 * M}


# annotation, value, the field that reports it, the reported value, and a bad value
ASKED = [
        ("fast-pass-share", "150", "fast_pass_share_percent", 150, "0"),
        ("sli", "on", "sli", "on", "1"),
]


def annotations(b):
    default = b.add(RATES)[1]["policy"]
    for name, value, told, want, wrong in ASKED:
        full = f"natra.io/{name}"
        for allowed, asked, as_told in (
                (None, value, default[told]), ([], value, default[told]),
                (["natra.io/fast-pass", full], value, want),
                ([full], None, default[told]), (None, wrong, default[told])):
            keys = {} if allowed is None else {"allowAnnotations": allowed}
            a, info = b.add(RATES, {} if asked is None else {full: asked},
                            **keys)
            got = info and info["policy"][told]
            b.rep.check(f"{name} {asked!r}, {allowed} allowed",
                        str(got) if info else str(a)[:90], as_told,
                        got == as_told)
        b.refused(f"{name} {wrong!r}", RATES, {full: wrong},
                  allowAnnotations=[full], words=(full, wrong))
        a, info = b.add(RATES, {full: wrong}, allowAnnotations=[full],
                        onError="continue")
        b.rep.check(f"{name} {wrong!r}, onError continue", str(a)[:60],
                    "limits without it", info and info["policy"] == default)
    full = "natra.io/fast-pass"
    a, info = b.add(RATES, {full: "off"}, allowAnnotations=[full],
                    fastPass="strict")
    b.rep.equal("an annotation over the conf",
                info and info["policy"]["fast_pass"], "off")
    full = "natra.io/egress-burst"
    b.refused("a hundredth of a bit/s", {"ingressRate": "10m"}, words=("ingressRate", "10m"))
    b.refused("a burst where there is no rate", {"ingressRate": 10 * M},
              {full: "8M"}, allowAnnotations=[full], words=(full, "rate"))
    calico = "qos.projectcalico.org/egressBandwidth"
    conf = b.conf({}, {calico: "5M"}, allowAnnotations=[calico])
    b.run("ADD", conf)
    one = attachment(b.pod.path)
    b.rep.equal("a rate of Calico's, CHECK", (limits(one)[:2], b.run("CHECK", conf).error()),
                ((0, 5 * M), 0))
    natractl("set", one["id"], "--egress-rate", "6M")
    b.rep.equal("  and after an edit", b.run("CHECK", conf).error(), 0)
    natractl("detach", one["id"])
    b.rep.equal("  and when it is lost", b.run("CHECK", conf).error(), 110)
    a, info = b.add({}, {"natra.io/fast-pass": "off"},
                    allowAnnotations=["natra.io/fast-pass"])
    b.rep.equal("no limits, an annotation", (a.code, info), (0, None))


def subnets(b):
    for key, told in (("shapedSubnets", "shaped_subnets"),
                      ("unshapedSubnets", "unshaped_subnets")):
        nets = ["10.0.0.0/8", "192.0.2.7/32", "fd00::/8", "0.0.0.0/0"]
        conf = b.conf(RATES, **{key: nets})
        a = b.run("ADD", conf)
        info = attachment(b.pod.path)
        got = info and json.loads(natractl(
                "show", info["id"], "--json")).get(told)
        b.rep.check(key, str(got or a)[:80], nets,
                    got is not None and sorted(got) == sorted(nets))
        c = b.run("CHECK", conf)
        b.rep.equal(f"CHECK with {key}", c.error(), 0)
        b.run("DEL", conf)
        a, info = b.add(dict(RATES, **{key: nets[:1]}))
        b.rep.check(f"{key} from the runtime", str(a)[:60], "accepted or "
                    "ignored", info is not None)


def classes(b):
    """Classes of peers, of the configuration or asked for by the pod."""
    key, full = [{"name": "lan", "subnets": ["10.0.0.0/8"], "ingressRate": "1G"}], \
        "natra.io/classes"
    asked = "web=192.0.2.0/24,2001:db8::/32,egress-rate=5M; voice=dscp=46-47,ingress-rate=2M"
    ours, pods = [("lan", 10**9, 0, ["10.0.0.0/8"], [])], [
        ("web", 0, 5 * M, ["192.0.2.0/24", "2001:db8::/32"], []),
        ("voice", 2 * M, 0, [], [46, 47])]

    def made(conf):
        b.run("ADD", conf)
        info = attachment(b.pod.path)
        return info and [
            (c["name"], c["ingress_rate_bits_per_sec"], c["egress_rate_bits_per_sec"],
             c["subnets"], c["dscps"])
            for c in json.loads(natractl("show", info["id"], "--json"))["classes"]]

    for what, rates, keys, want in (
            ("of the configuration", RATES, {"classes": key}, ours),
            ("asked for, not allowed", RATES, {"classes": key}, ours),
            ("asked for", RATES, {"classes": key, "allowAnnotations": [full]}, pods),
            ("asked for, beside subnets", RATES,
             {"unshapedSubnets": ["198.51.100.0/24"], "allowAnnotations": [full]}, pods),
            ("asked for, without other limits", {},
             {"allowAnnotations": ["classes"]}, pods)):
        path = f"{b.tmp}/{what}.log"
        conf = b.conf(rates, {full: asked} if "asked" in what else {}, **keys)
        b.rep.equal(f"classes {what}", made(conf), want)
        b.rep.equal("  CHECK", b.run("CHECK", dict(
            conf, logFile=path, logLevel="debug")).error(), 0)
        b.rep.true("  it has looked", any(b"as it was set" in s for s in lines(path)))
        if not rates:
            natractl("detach", attachment(b.pod.path)["id"])
            b.rep.equal("  CHECK when they are lost", b.run("CHECK", conf).error(), 110)
            conf = b.conf(rates, {}, **keys)
            b.rep.equal("  CHECK of a pod that has none", b.run("CHECK", conf).error(), 0)
        b.run("DEL", conf)
        b.rep.equal("  left after DEL", pins(), [])
    conf = b.conf(RATES, {full: "web=x"}, classes=key, allowAnnotations=[full],
                  onError="continue")
    b.rep.equal("a bad value, onError continue", made(conf), ours)
    b.run("DEL", conf)


def lines(path):
    try:
        with open(path, "rb") as f:
            return f.read().split(b"\n")
    except FileNotFoundError:
        return [b""]


def environment(b):
    """Check that variables in a runtime's environment replace `auto` on that node."""
    mode, edt = "NATRA_ATTACH_MODE", "NATRA_EDT_PACING"
    hostside = {mode: "clsact-hostside"}
    for what, keys, env, want in (
            ("nothing said", {}, hostside, "clsact-hostside"),
            ("attachMode auto", {"attachMode": "auto"}, hostside,
             "clsact-hostside"),
            ("attachMode wins", {"attachMode": "clsact-podside"}, hostside,
             "clsact-podside")):
        a, info = b.add(RATES, env=env, **keys)
        b.rep.check(f"{mode}: {what}", str(info and info["mode"] or a), want,
                    bool(info) and info["mode"] == want)
    a, info = b.add(RATES, env={edt: "off"})
    b.rep.check(f"{edt}: off", str(info and info["reason"] or a),
                "edt is off", bool(info) and "edt is off" in info["reason"])
    for name in (mode, edt):
        a, info = b.add(RATES, env={name: "sometimes"})
        b.rep.check(f"{name}: nonsense", str(a)[:90], "an error that names it",
                    a.code != 0 and name in a.text() and info is None)


def engines():
    return glob.glob(f"{plugin.PINS}/abi*/engine_*")


def kept(b):
    """Check that the programs stay for the next pod after DEL, until `natractl gc`
    removes them."""
    b.add(RATES)
    b.rep.least("programs that stay after DEL", len(engines()), 1)
    natractl("gc")
    b.rep.equal("  and after natractl gc", engines(), [])


def root_kind(dev):
    return json.loads(sh("tc", "-j", "qdisc", "show", "dev", dev, "root"))[0][
        "kind"]


def pace(b):
    """Check that fq on the host side paces ingress, and that without fq the pod does
    not start as if it were limited."""
    before = root_kind(b.pod.host)
    if not json.loads(natractl("probe", "--json"))["fq"]:
        b.refused("ingressMode pace without fq", RATES, ingressMode="pace",
                  words=("pace", "fq"), codes=(101,))
        return
    keys = {"ingressMode": "pace", "paceLimit": "20ms", "fastPass": "off"}
    rates = {"ingressRate": M, "egressRate": 10 * M}
    conf = b.conf(rates, **keys)
    a = b.run("ADD", conf)
    b.rep.equal("ingressMode pace: ADD", a.error(), 0)
    info = attachment(b.pod.path)
    b.rep.equal("  paced, with natra's own fq on the host side", (
        info["pace_active"], info["host_fq_is_ours"],
        info["policy"]["pace_limit_ns"], root_kind(b.pod.host)),
        (True, True, 20 * M, "fq"))
    hooks = json.loads(natractl("show", info["id"], "--json"))["hooks"]
    b.rep.equal("  where the pacer stands", [
        (h["ifname"], h["hook_side"]) for h in hooks
        if h["prog_name"] == "natra_edt" and h["ifname"] == b.pod.host],
        [(b.pod.host, "egress")])
    b.rep.equal("  CHECK", b.run("CHECK", conf).error(), 0)
    sh("ip", "route", "add", "203.0.113.1", "dev", b.pod.host)
    sh("ip", "neigh", "add", "203.0.113.1", "lladdr", "02:00:00:00:00:01", "dev", b.pod.host)
    Ns()    # forwards
    far = Pod("far", 99)
    with far, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        # The pod does not answer what is for another address. At this rate a datagram, in six
        # fragments, takes 67 ms, which is longer than an emulated CPU on a busy machine takes to
        # send one; the burst and the longest wait are 20 ms.
        for _ in range(20):
            s.sendto(bytes(8000), ("203.0.113.1", 9))
    far.close()
    told = json.loads(natractl("stats", info["id"], "--json"))
    paced, lost = (told["ingress"][k]["packets"]
                   for k in ("paced", "dropped_horizon"))
    b.rep.check("  of 120 fragments at once paced, dropped", f"{paced}, {lost}",
                "some of each, the last ones", paced >= 1 and lost >= 5)
    b.rep.equal("  the mean delay is within the limit",
                0 < told["ingress"]["mean_delay_ns"] <= 20 * M, True)
    a = b.run("DEL", conf)
    b.rep.equal("  DEL, the root qdisc after it",
                (a.error(), root_kind(b.pod.host), pins()), (0, before, []))
    full = "natra.io/ingress-mode"
    a, info = b.add(rates, {full: "pace"}, allowAnnotations=[full])
    b.rep.check("pace by annotation", str(a)[:60], "paced",
                bool(info) and info["pace_active"])


def on_error(b):
    """Check that a pod that starts without its limits is reported in every place."""
    b.pod.run("tc", "qdisc", "add", "dev", "eth0", "root", "pfifo")
    path = f"{b.tmp}/error.log"
    busy = {"edtPacing": "on", "logFile": path}
    a, info = b.add(RATES, **busy)
    b.rep.check("edtPacing on, a foreign qdisc", str(a)[:80],
                "an error that names it", a.error() not in (0, 1, 4, 6) and
                ("pfifo" in a.text() or "fq" in a.text()))
    b.rep.equal("attached by it", info, None)
    os.unlink(path)
    conf = b.conf(RATES, onError="continue", **busy)
    a = b.run("ADD", conf)
    b.rep.check("with onError continue", str(a)[:60], "the prevResult",
                not a.code and a.json == conf["prevResult"])
    b.rep.equal("programs", programs(b.pod), [0, 0])
    got = attachment(b.pod.path)
    b.rep.check("natractl list", str(got and got.get("unshaped")),
                "unshaped", bool(got and got.get("unshaped")))
    b.rep.true("natractl list in words: unshaped",
               "unshaped" in natractl("list"))
    b.rep.true("log has it", any(
            b"error" in s and b"config" in s for s in lines(path)))
    c = b.run("CHECK", conf)
    b.rep.equal("CHECK of it", (c.code, c.out), (0, ""))
    b.pod.run("tc", "qdisc", "del", "dev", "eth0", "root")
    # EKS gives a pod of an IPv6 cluster a second interface.
    for name, sandbox in (("v4if0", b.pod.path), ("vethb", None), ("eth1", "/run/netns/x")):
        conf["prevResult"]["interfaces"].append(
            {"name": name, **({"sandbox": sandbox} if sandbox else {})})
    a = b.run("ADD", dict(conf, edtPacing="auto"))
    b.rep.equal("log of another interface", [
        s.split(b'msg="')[1].split(b'"')[0] for s in lines(path) if b"not at" in s],
        [b"the pod has limits at eth0, but not at v4if0"])
    got = attachment(b.pod.path)
    b.rep.equal("ADD again when nothing is in the way",
                (a.code, limits(got)[:2] if got else None, bool(
                        got and got.get("unshaped"))),
                (0, (10 * M, 20 * M), False))
    a = b.run("DEL", conf)
    b.rep.equal("DEL", (a.code, a.out, pins()), (0, "", []))


def locked(b):
    """Check that DEL waits once for a lock that another process has for too long."""
    conf = b.conf(RATES)
    b.run("ADD", conf)
    directory, = [p for p in glob.glob(f"{plugin.PINS}/**", recursive=True)
                  if re.fullmatch("[0-9a-f]{32}", os.path.basename(p))]
    fd = os.open(directory, os.O_RDONLY)
    fcntl.flock(fd, fcntl.LOCK_EX)
    a = b.run("DEL", dict(conf, replaceBandwidth=True))
    os.close(fd)
    b.rep.equal("DEL of what is locked", a.error(), 11)
    b.rep.check("  s", f"{a.seconds:.1f}", "under 9", a.seconds < 9)
    a = b.run("DEL", conf)
    b.rep.equal("DEL", (a.code, pins()), (0, []))


def main(rep, a):
    pod = Veth("config", "vconfig")
    with tempfile.TemporaryDirectory(prefix="natra-cni-") as tmp:
        b = Bench(rep, pod, tmp)
        for story in (annotations, subnets, classes, environment, kept,
                      pace, on_error, locked):
            if a.only in (None, story.__name__):
                story(b)
    pod.close()


if __name__ == "__main__":
    plugin.run_script(main,
        option("--only", help="one of the stories, by its function"))
