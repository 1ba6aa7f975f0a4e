#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Takes away each capability that natra needs, and tries what input must not do.

Input must not reach a file by its name, forge a line of the log, or loosen a mode
through the umask.
"""
import json
import os
import re
import socket
import stat
import subprocess

import plugin
from plugin import (ENV, PINS, Answer, Veth, attachment, find_natra, malformed,
                    natractl, pins, programs)
import bpfsys
from commands import sh
from limiters import find_natractl
from namespaces import Ns
from script import some_of

# These are needed for an interface in another network namespace. In the kernel
# CAP_SYS_ADMIN implies CAP_BPF and CAP_PERFMON.
ALL = ("bpf", "net_admin", "sys_admin")
# These are enough in the caller's own namespace; without CAP_PERFMON the verifier
# allows no arithmetic on the addresses of packets.
OWN = ("bpf", "net_admin", "perfmon")
NOT_AVAILABLE, NO_PERMISSION, DIFFERS = 50, 103, 110
LOG = "/var/log/natra.log"
# plugin.isolate() has given these directories to this test alone.
OWN_PLACES = ("/sys/fs/bpf", "/run/netns", "/var/log", "/var/lib")
BANDWIDTH = {"ingressRate": 10_000_000, "egressRate": 20_000_000}


def conf(pod, **keys):
    return dict({"cniVersion": "1.1.0", "name": "privilege", "type": "natra",
                 "runtimeConfig": {"bandwidth": BANDWIDTH},
                 "prevResult": pod.prev_result("1.1.0")}, **keys)


def run(argv, caps=ALL, umask=None, stdin="", **env):
    """Run a command with exactly these capabilities."""
    only = ",".join(["-all", *(f"+{c}" for c in caps)])
    p = subprocess.run(
            ["setpriv", f"--bounding-set={only}", "--inh-caps=-all", *argv],
            input=stdin, text=True, env={k: v for k, v in env.items()
                                         if v is not None}, timeout=20,
            umask=-1 if umask is None else umask,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    return Answer(p.returncode, p.stdout, p.stderr, 0)


def cni(command, stdin, pod, caps=ALL, umask=None, **env):
    return run([find_natra()], caps, umask, json.dumps(stdin),
               **dict(ENV, CNI_COMMAND=command, CNI_NETNS=pod.path, **env))


def ctl(*args, caps=ALL, umask=None):
    return run([find_natractl(), *args], caps, umask, PATH=ENV["PATH"])


def show(answer):
    return " ".join(str(answer).split())[:80]


def says_what(text):
    """Return whether the text is one line that names missing privileges."""
    return text.count("\n") == 1 and text.strip().isprintable() and (
            "not permitted" in text or "lacks CAP_" in text or
            "Permission denied" in text)


def cni_with(rep, pod, caps, errors):
    """Run the plugin with these capabilities. `errors` has the codes of the commands
    that must fail."""
    name = " ".join(caps) or "none"
    # The owner of a TCX link's pin can remove the link without any capability, so the
    # test uses filters.
    stdin = conf(pod, attachMode="clsact-podside")
    valid = {"cni.dev/valid-attachments":
             [{"containerID": ENV["CNI_CONTAINERID"], "ifname": "eth0"}]}
    for command, more in (("STATUS", {}), ("ADD", {}), ("CHECK", {}),
                          ("GC", valid), ("DEL", {})):
        if command == "CHECK" and "ADD" in errors:
            rep.equal("  left", (pins(), programs(pod)), ([], [0, 0]))
            cni("ADD", stdin, pod)
        a = cni(command, dict(stdin, **more), pod, caps)
        rep.check(f"{command} with {name}", show(a),
                  errors.get(command, "success"),
                  not malformed(a, command) and not a.err and
                  a.error() == errors.get(command, 0))
        if a.code:
            rep.true("  says what it may not",
                     says_what(a.json["msg"] + "\n"), a.json["msg"][:80])
        if command == "GC":
            # The attachment is whole, although other commands were refused.
            rep.equal("  natractl check", natractl(
                    "check", attachment(pod.path)["id"]).strip(), "ok")
    if "DEL" in errors:
        rep.true("  still pinned", pins())
        cni("DEL", stdin, pod)
    rep.equal("  left", (pins(), programs(pod)), ([], [0, 0]))


def ctl_with(rep, attach, caps, refused=()):
    """Run natractl with these capabilities; the commands in `refused` must fail."""
    name = " ".join(caps) or "none"
    steps = {"attach": attach, "list": (), "check": ("it",),
             "detach": ("it",)}
    for step, args in steps.items():
        a = ctl(step, *args, caps=caps)
        rep.check(f"natractl {step} with {name}", show(a),
                  "one line" if step in refused else "success",
                  a.code == 1 and says_what(a.err) and not a.out
                  if step in refused else not a.code and not a.err)
        if step == "attach" and step in refused:
            ctl(step, *args)
    ctl("detach", "it")
    rep.equal("  left", pins(), [])


def test_caps(rep, pod):
    cni_with(rep, pod, ALL, {})
    cni_with(rep, pod, ("net_admin", "sys_admin"), {})
    denied = {"STATUS": NOT_AVAILABLE, "ADD": NO_PERMISSION,
              "DEL": NO_PERMISSION}
    # Reading filters does not need the capability to change them.
    cni_with(rep, pod, ("bpf", "sys_admin"), denied)
    # The node's end of the veth shows GC that the pod is there.
    denied.update(CHECK=NO_PERMISSION)
    cni_with(rep, pod, ("bpf", "net_admin"), denied)
    cni_with(rep, pod, (), denied)
    mode = ("--attach-mode", "clsact-podside", "--id", "it", "--egress-rate", "10M")
    there = ("eth0", "--netns", pod.path, *mode)
    ctl_with(rep, there, ALL)
    all_but_list = ("attach", "check", "detach")
    ctl_with(rep, there, OWN, all_but_list)
    ctl_with(rep, there, (), all_but_list)
    here = (pod.host, *mode)
    ctl_with(rep, here, OWN)
    ctl_with(rep, here, ("net_admin", "perfmon"), ("attach",))
    ctl_with(rep, here, ("bpf", "perfmon"), ("attach", "detach"))
    ctl_with(rep, here, ("bpf", "net_admin"), ("attach",))


def snapshot(*roots):
    """Return every name under these directories."""
    return {os.path.join(d, f) for root in roots for d, dirs, files in
            os.walk(root) for f in dirs + files}


def modes():
    """Return the modes of all pins and of their directories."""
    found = {"directory": set(), "pin": set()}
    for d, _, files in os.walk(PINS):
        found["directory"].add(oct(stat.S_IMODE(os.stat(d).st_mode)))
        for f in files:
            found["pin"].add(oct(stat.S_IMODE(os.stat(f"{d}/{f}").st_mode)))
    return found


def test_modes(rep, pod):
    for umask in (0, 0o077, 0o777):
        natractl("gc")
        a = cni("ADD", conf(pod, logFile=LOG), pod, umask=umask)
        rep.check(f"ADD under umask {umask:03o}", show(a), "success",
                  not a.code or umask == 0o777)
        if umask != 0o777:
            rep.equal("  modes", modes(),
                      {"directory": {"0o700"}, "pin": {"0o600"}})
            rep.equal("  mode of the log",
                      oct(stat.S_IMODE(os.stat(LOG).st_mode)), "0o600")
        a = cni("DEL", conf(pod), pod)
        rep.check("  DEL", show(a), "success", not a.code)
        if os.path.exists(LOG):
            os.unlink(LOG)


def test_names(rep, pod):
    """Check that ids become no part of a file name: a container id, whose characters
    are restricted, and an id of natractl, which may have any."""
    before = snapshot(*OWN_PLACES)
    for ok, name in ((False, "../../../tmp/evil"), (False, "a/b"),
                     (False, ".."), (False, ".hidden"), (False, "a\nb"),
                     (False, "-rf"), (False, "x" * 5000), (True, "a..b"), (True, "c.0-f_e"),
                     (True, "x" * 200)):
        for command in ("ADD", "DEL"):
            a = cni(command, conf(pod), pod, CNI_CONTAINERID=name)
            # DEL succeeds for an id that is too long for any attachment.
            good = ok or (command == "DEL" and name == "x" * 5000)
            rep.check(f"{command} of container {name[:20]!r}", show(a),
                      "success" if good else "refused",
                      not malformed(a, command) and (not a.code) == good)
            strange = [p for p in snapshot(PINS) if not re.fullmatch(
                    r"abi1(/events(/ring)?)?|"
                    r"([0-9a-f]{32}|abi1/engine_[0-9a-f]{16})"
                    r"(/\d+(/[a-z_]+)?)?", os.path.relpath(p, PINS))]
            if strange:
                rep.equal("  names on bpffs", strange, [])
    for name in ("../../../tmp/evil", "a/b", ".", "a\nb\x1b[2J", "-"):
        a = ctl("attach", "eth0", "--netns", pod.path, f"--id={name}",
                "--egress-rate", "10M")
        rep.check(f"natractl attach --id {name!r}", show(a), "success",
                  a.code == 0)
        a = ctl("list")
        rep.true("  list is printable", all(
                s.isprintable() for s in a.out.split("\n")))
        ctl("detach", "--", name)
    for ifname in ("../eth0", "a/b", "..", "eth0\n", "x" * 16):
        a = cni("ADD", conf(pod), pod, CNI_IFNAME=ifname)
        rep.check(f"ADD of interface {ifname!r}", show(a), "refused",
                  not malformed(a, "ADD") and a.code == 1)
    natractl("gc")
    after = snapshot(*OWN_PLACES)
    # The programs' directories stay when the pods are deleted.
    rep.equal("files that came", sorted(
            p for p in after - before if not p.startswith(PINS)), [])
    rep.equal("outside", os.path.exists("/tmp/evil"), False)
    rep.equal("attachments left", pins(), [])


def test_log(rep, pod):
    """Check the log with hostile names: the tenant chooses the pod's name, and a client
    of the API server might get more characters through than it should."""
    forged = "time=2026-01-01T00:00:00.000Z level=info msg=forged"
    args = f"K8S_POD_NAMESPACE=a\n{forged};K8S_POD_NAME=\x1b[2J\r\t\"\\\x7f"
    annotations = {"natra.io/fast-pass": f"off\n{forged}\x1b[2J"}
    stdin = conf(pod, logFile=LOG, logLevel="debug",
                 allowAnnotations=["natra.io/fast-pass"], onError="continue")
    stdin["runtimeConfig"]["io.kubernetes.cri.pod-annotations"] = annotations
    for command in ("ADD", "CHECK", "DEL"):
        a = cni(command, stdin, pod, CNI_ARGS=args)
        rep.check(f"{command} with newlines in it", show(a), "success",
                  not a.code and not malformed(a, command))
        if command == "ADD":
            label = attachment(pod.path)["label"]
            rep.true("  natractl list is printable", all(
                    s.isprintable() for s in natractl("list").split("\n")),
                    repr(label)[:40])
    with open(LOG, newline="", encoding="utf-8") as f:
        lines = f.read().split("\n")
    rep.equal("  ends with a newline", lines.pop(), "")
    rep.least("  lines", len(lines), 3)
    rep.true("  each is printable ASCII", all(
            s.isascii() and s.isprintable() for s in lines))
    rep.true("  each is natra's own", all(
            re.match(r"time=\S+ level=\w+ command=(ADD|CHECK|DEL) ", s)
            for s in lines))
    rep.equal("  forged", sum(s.startswith(forged[:20]) for s in lines), 0)
    # natra writes only to plain files.
    os.unlink(LOG)
    os.symlink("/var/log/target", LOG)
    a = cni("ADD", conf(pod, logFile=LOG), pod)
    rep.check("ADD with a link in place of the log", show(a), "success",
              not a.code)
    rep.equal("  what it points to", os.path.exists("/var/log/target"), False)
    os.unlink(LOG)
    cni("DEL", conf(pod), pod)


def test_pod(rep, pod):
    """Check that root in the pod, even with all capabilities there, cannot remove a TCX
    link. It can remove a filter, and then CHECK reports it."""
    cni("ADD", conf(pod), pod)
    if attachment(pod.path)["mode"].startswith("tcx"):
        with pod:
            refused = [bpfsys.tcx_detach_first(socket.if_nametoindex("eth0"), kind)
                       for kind in (bpfsys.TCX_INGRESS, bpfsys.TCX_EGRESS)]
        rep.equal("BPF_PROG_DETACH in the pod", refused, ["EBUSY", "EBUSY"])
        for what in ("replace", "del"):
            pod.run("tc", "qdisc", what, "dev", "eth0", "clsact")
        rep.equal("  programs", programs(pod), [1, 1])
        a = cni("CHECK", conf(pod), pod)
        rep.check("  CHECK", show(a), "success", not a.code)
    cni("DEL", conf(pod), pod)
    stdin = conf(pod, attachMode="clsact-podside")
    cni("ADD", stdin, pod)
    pod.run("tc", "filter", "del", "dev", "eth0", "egress")
    a = cni("CHECK", stdin, pod)
    rep.check("CHECK without the pod's filter", show(a), DIFFERS,
              a.error() == DIFFERS)
    a = cni("DEL", stdin, pod)
    rep.equal("  DEL, and what is left", (a.code, pins(), programs(pod)),
              (0, [], [0, 0]))


def test_decoy(rep, pod):
    """Check that an interface that root in the pod puts in the place of eth0 gets no
    programs, whatever the plugin does then."""
    index = pod.run("ip", "-o", "link", "show", "eth0").split(":")[0]
    inner = Ns("inner")
    modes = ("clsact-podside", "clsact-hostside", *(
        ("tcx-podside", "tcx-hostside") if json.loads(natractl("--json", "probe"))["tcx"]
        else ()))
    for mode in modes:
        stdin = conf(pod, attachMode=mode, onError="continue")
        cni("ADD", stdin, pod)
        before = attachment(pod.path)
        pod.run("ip", "link", "set", "eth0", "netns", inner.path)
        pod.run("ip", "link", "add", "eth0", "index", index, "type", "veth", "peer", "name",
                "nobody")
        a = cni("CHECK", stdin, pod)
        rep.check(f"{mode}: CHECK", show(a), DIFFERS, a.error() == DIFFERS)
        # Another setting, which needs other programs.
        a = cni("ADD", dict(stdin, sli="on"), pod)
        rep.check("  ADD goes on", show(a), "success", not a.code)
        rep.equal("  what is attached, and on the decoy",
                  (attachment(pod.path), programs(pod)), (before, [0, 0]))
        pod.run("ip", "link", "del", "eth0")
        inner.run("ip", "link", "set", "eth0", "netns", pod.path)
        cni("DEL", stdin, pod)
    sh("ip", "netns", "del", inner.name)


TESTS = {"caps": (test_caps,), "pod": (test_pod, test_decoy),
         "escape": (test_modes, test_names, test_log)}


def main(rep, a):
    pod = Veth("least", "vleast")
    for name in a.test:
        for test in TESTS[name]:
            print(f"{test.__name__}:")
            test(rep, pod)
    pod.close()


if __name__ == "__main__":
    plugin.run_script(main, some_of("test", TESTS))
