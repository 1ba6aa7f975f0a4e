#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Limits containers of Debian's podman by natractl hook and by natractl attach --pid.

A container with annotations has its limits from its first packet until it is gone. What
is wrong never makes a container fail, unless the hook's file says so, and stands in the
system's log in one line.
"""
import json
import os
import shutil
import socket
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [f"{HERE}/../kube", f"{HERE}/../cni"]
from commands import sh
from meter import Meter, wire_rates
from namespaces import Ns
from place import isolate_node
from plugin import attachments, natractl, pins
from report import Report, skip
from rig import Rig
from script import arguments

IN, OUT = "kubernetes.io/ingress-bandwidth", "kubernetes.io/egress-bandwidth"
SHARED = "/usr/share/containers"
HOOKS = f"{SHARED}/oci/hooks.d"
ROOTFS = "/run/rootfs"
BUSYBOX = "/bin/busybox"
GATEWAY = "10.88.0.1"
CAPS = (10_000_000, 6_000_000)
LIMITED = (f"--annotation={IN}=10M", f"--annotation={OUT}=6M")


class Journal:
    """What programs say by syslog(3): /dev gets a log of the test's own."""

    def __init__(self):
        os.mkdir("/run/dev")
        for name in ("null", "zero", "full", "random", "urandom", "tty"):
            open(f"/run/dev/{name}", "w").close()
            sh("mount", "--bind", f"/dev/{name}", f"/run/dev/{name}")
        for name in ("pts", "shm"):
            os.mkdir(f"/run/dev/{name}")
            sh("mount", "--rbind", f"/dev/{name}", f"/run/dev/{name}")
        os.symlink("pts/ptmx", "/run/dev/ptmx")
        for name, target in (("fd", "/proc/self/fd"), ("stdin", "/proc/self/fd/0"),
                             ("stdout", "/proc/self/fd/1"),
                             ("stderr", "/proc/self/fd/2")):
            os.symlink(target, f"/run/dev/{name}")
        sh("mount", "--rbind", "/run/dev", "/dev")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind("/dev/log")
        self.socket.setblocking(False)

    def lines(self):
        """Return the hook's lines since the last call, from "hook:" on."""
        found = []
        while True:
            try:
                text = self.socket.recv(65536).decode()
            except BlockingIOError:
                return found
            if " natractl[" in text:
                found.append(text.partition("]: ")[2])


class Podman(Rig):
    """podman with its usual directories, which are this node's own."""

    def __init__(self):
        self.node, self.pods, self.clients = Ns(), [], []
        os.makedirs(f"{ROOTFS}/bin")
        shutil.copy(BUSYBOX, f"{ROOTFS}/bin/busybox")
        for name in ("upper", "work"):
            os.mkdir(f"/mnt/containers-{name}")
        sh("mount", "-t", "overlay", "-o", f"lowerdir={SHARED},"
           "upperdir=/mnt/containers-upper,workdir=/mnt/containers-work", "overlay",
           SHARED)
        os.makedirs(HOOKS, exist_ok=True)
        self.hook()

    def hook(self, *args):
        """Install the hook's file with natractl's path in this build."""
        with open(os.environ["NATRA_HOOK"]) as f:
            hook = json.load(f)
        hook["hook"]["path"] = os.path.realpath(os.environ["NATRACTL"])
        hook["hook"]["args"] += args
        with open(f"{HOOKS}/natra.json", "w") as f:
            json.dump(hook, f)

    @staticmethod
    def podman(*args, check=True):
        return sh("podman", "--cgroup-manager", "cgroupfs", "--events-backend", "none",
                  "--storage-driver", "vfs", *args, check=check, timeout=60)

    def run(self, name, *options):
        """Start a container and return its id."""
        return self.podman("run", "-d", "--name", name, "--cgroups", "disabled", *options,
                           "--rootfs", ROOTFS, "/bin/busybox", "sleep", "1000").strip()

    def inspect(self, name, what):
        return self.podman("inspect", "-f", "{{" + what + "}}", name).strip()

    def remove(self, name):
        self.podman("rm", "-f", "-t", "0", name)

    def rates(self, name, settle=2, seconds=4):
        """Return the bit/s into and out of a container."""
        path = self.inspect(name, ".NetworkSettings.SandboxKey")
        ns = Ns(os.path.basename(path), exists=True)
        ns.ip = self.inspect(name, ".NetworkSettings.IPAddress")
        self.node.ip = GATEWAY
        meters = [Meter(ns), Meter(self.node)]
        procs = self.elephant(self.node, ns, 5201, 4) + self.elephant(ns, self.node, 5202, 4)
        self.pods.append(ns)
        try:
            self.wait_flow(*meters)
            wire_rates(meters, settle)
            return wire_rates(meters, seconds)
        finally:
            self.stop(None)
            self.pods.remove(ns)
            os.close(ns.fd)


def capped(rep, p, name, caps):
    for way, rate, cap in zip(("in", "out"), p.rates(name), caps):
        rep.near(f"{name}: cap {way}", rate / 1e6, cap / 1e6, 0.10, " Mbit/s")


def life(rep, p, journal):
    ident = p.run("limited", *LIMITED)
    a, = attachments()
    rep.equal("id and limits", (a["id"], a["policy"]["ingress_rate_bits_per_sec"],
                                a["policy"]["egress_rate_bits_per_sec"]),
              (f"oci/{ident}/eth0", *CAPS))
    rep.measure("limited", capped, rep, p, "limited", CAPS)
    rep.equal("natractl check", natractl("check", a["id"], check=False).returncode, 0)
    p.run("other")
    rep.equal("a container without annotations", len(attachments()), 1)
    p.remove("other")
    p.remove("limited")
    rep.equal("left of it", (attachments(), pins()), ([], []))
    rep.equal("log", journal.lines(), [])


def only_told(rep, p, journal):
    """What is wrong is told in one line, and the container starts."""
    ident = p.run("wrong", f"--annotation={IN}=10Q")
    rep.equal("started", p.inspect("wrong", ".State.Running"), "true")
    rep.equal("not limited", attachments(), [])
    rep.equal("log", journal.lines(), [
        f"hook: {ident}: annotation {IN}: '10Q' is not a rate from 1k to 1P"])
    p.remove("wrong")
    ident = p.run("host", *LIMITED, "--network", "host")
    rep.equal("network of the host", (p.inspect("host", ".State.Running"), attachments(),
                                      journal.lines()),
              ("true", [], [f"hook: {ident}: it uses the host's network, which is not "
                            "limited"]))
    p.remove("host")
    p.hook("--bogus")
    p.run("typo", *LIMITED)
    rep.equal("typing error in the hook's file",
              (p.inspect("typo", ".State.Running"), attachments(), journal.lines()),
              ("true", [], ["hook: arguments: are wrong, so no container is limited"]))
    p.remove("typo")
    journal.lines()


def told_to_fail(rep, p, journal):
    p.hook("--on-error", "fail")
    try:
        p.run("strict", f"--annotation={IN}=10Q")
        said = "it started"
    except RuntimeError as e:
        said = str(e)
    rep.true("--on-error fail", "hook" in said and "it started" not in said, said[-200:])
    rep.equal("log", len(journal.lines()), 1)
    p.podman("rm", "-f", "-t", "0", "strict", check=False)
    p.run("strict", *LIMITED)
    rep.equal("a good one", len(attachments()), 1)
    p.remove("strict")
    rep.equal("left of it", (attachments(), pins(), journal.lines()), ([], [], []))


def by_pid(rep, p):
    p.run("pid")
    pid = p.inspect("pid", ".State.Pid")
    natractl("attach", "eth0", "--pid", pid, "--ingress", "10M", "--egress", "6M")
    rep.measure("by pid", capped, rep, p, "pid", CAPS)
    p.remove("pid")
    rep.equal("gc", natractl("gc"), "removed 1\n")
    rep.equal("left of it", (attachments(), pins()), ([], []))


def main():
    arguments()
    for program in ("podman", "crun", "busybox"):
        if not shutil.which(program):
            skip(f"{program} is not installed (tools/install-deps runtimes)")
    isolate_node()
    report, journal, p = Report(), Journal(), Podman()
    try:
        life(report, p, journal)
        only_told(report, p, journal)
        told_to_fail(report, p, journal)
        by_pid(report, p)
    finally:
        p.podman("rm", "-f", "-a", "-t", "0", check=False)
        natractl("gc", check=False)
    report.end()


if __name__ == "__main__":
    main()
