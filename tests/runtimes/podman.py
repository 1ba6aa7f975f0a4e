#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Limits containers of Debian's podman by natractl hook and by natractl attach --pid.

A container with annotations has its limits from its first packet until it is gone. What
is wrong never makes a container fail, unless the hook's file says so, and stands in the
system's log in one line.
"""
import json
import os

from containers import (CAPS, IN, OUT, ROOTFS, Journal, Runtime, capped, need,
                        nothing_left)
from commands import sh
from place import isolate_node
from plugin import attachments, natractl
from report import Report
from script import arguments

SHARED = "/usr/share/containers"
HOOKS = f"{SHARED}/oci/hooks.d"
LIMITED = (f"--annotation={IN}=10M", f"--annotation={OUT}=6M")


class Podman(Runtime):
    """podman with its usual directories, which are this node's own."""

    gateway = "10.88.0.1"

    def __init__(self):
        super().__init__()
        for name in ("upper", "work"):
            os.mkdir(f"/mnt/containers-{name}")
        sh("mount", "-t", "overlay", "-o", f"lowerdir={SHARED},"
           "upperdir=/mnt/containers-upper,workdir=/mnt/containers-work", "overlay",
           SHARED)
        os.makedirs(HOOKS, exist_ok=True)
        self.hook()

    def hook(self, *args, always=False):
        """Install the hook's file with natractl's path in this build."""
        with open(os.environ["NATRA_HOOK"]) as f:
            hook = json.load(f)
        hook["hook"]["path"] = os.path.realpath(os.environ["NATRACTL"])
        hook["hook"]["args"] += args
        if always:
            hook["when"] = {"always": True}
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

    def netns(self, name):
        return os.path.basename(self.inspect(name, ".NetworkSettings.SandboxKey"))


def life(rep, p, journal):
    ident = p.run("limited", *LIMITED)
    a, = attachments()
    rep.equal("id and limits", (a["id"], a["policy"]["ingress_rate_bits_per_sec"],
                                a["policy"]["egress_rate_bits_per_sec"]),
              (f"oci/{ident}/eth0", *CAPS))
    rep.measure("limited", capped, rep, p, "limited")
    rep.equal("natractl check", natractl("check", a["id"], check=False).returncode, 0)
    p.run("other")
    rep.equal("a container without annotations", len(attachments()), 1)
    p.remove("other")
    p.remove("limited")
    nothing_left(rep, journal)


def without_annotations(rep, p, journal):
    p.hook("--ingress-rate", "10M", "--egress-rate", "6M", always=True)
    p.run("plain")
    rep.equal("rates of the hook's file", [
        (a["policy"]["ingress_rate_bits_per_sec"], a["policy"]["egress_rate_bits_per_sec"])
        for a in attachments()], [CAPS])
    p.remove("plain")
    nothing_left(rep, journal)
    p.hook()


def only_told(rep, p, journal):
    """What is wrong is told in one line, and the container starts."""
    ident = p.run("wrong", f"--annotation={IN}=10Q")
    rep.equal("started", p.inspect("wrong", ".State.Running"), "true")
    rep.equal("not limited", attachments(), [])
    rep.equal("log", journal.lines(), [
        f"hook: {ident}: annotation {IN}: '10Q': is not a rate from 1k to 1P"])
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
    nothing_left(rep, journal)


def by_pid(rep, p, journal):
    p.run("pid")
    pid = p.inspect("pid", ".State.Pid")
    natractl("attach", "eth0", "--pid", pid, "--ingress-rate", "10M", "--egress-rate", "6M")
    rep.measure("by pid", capped, rep, p, "pid")
    p.remove("pid")
    rep.equal("gc", natractl("gc"), "removed 1\n")
    nothing_left(rep, journal)


def main():
    arguments()
    need("podman", "crun", "busybox")
    isolate_node()
    report, journal, p = Report(), Journal(), Podman()
    try:
        life(report, p, journal)
        without_annotations(report, p, journal)
        only_told(report, p, journal)
        told_to_fail(report, p, journal)
        by_pid(report, p, journal)
    finally:
        p.podman("rm", "-f", "-a", "-t", "0", check=False)
        natractl("gc", check=False)
    report.end()


if __name__ == "__main__":
    main()
