#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Limits containers of Debian's Docker by the runtime of tools/examples, which calls
natractl hook, and by natractl attach --pid.

A container of that runtime has its limits before its process starts and until it is
gone. What is wrong never makes a container fail, unless the daemon's configuration says
so.
"""
import json
import os
import subprocess
import time

from containers import (CAPS, HERE, OUT, ROOTFS, Journal, Runtime, capped, need,
                        nothing_left)
from commands import sh
from place import isolate_node
from plugin import attachments, natractl
from report import Report
from script import arguments, option

RUNTIME = os.path.realpath(f"{HERE}/../../tools/examples/docker-runtime")
NATRACTL = os.path.realpath(os.environ["NATRACTL"])
RATES = ("--ingress-rate", "10M", "--egress-rate", "6M")
# A runc that notes what is attached when it starts a process.
LOOKING = "/run/looking-runc"
SEEN = "/run/seen"
# The runtimes of the daemon: the options of natractl hook, and natractl.
RUNTIMES = {
    "limited": (RATES, NATRACTL),
    "wrong": (("--egress-rate", "10Q"), NATRACTL),
    "strict": (("--on-error", "fail", "--egress-rate", "6M", "eth7"), NATRACTL),
    "without": (RATES, "/nonexistent/natractl"),
    "strict-without": ((*RATES, "--on-error=fail"), "/nonexistent/natractl"),
}
SECONDS = 60
# The API of Docker 24, which is the first that hands annotations to the runtime.
ANNOTATIONS_API = (1, 43)


class Docker(Runtime):
    """A daemon with files of this node's own, and the image `busybox`."""

    gateway = "10.89.0.1"

    def __init__(self):
        super().__init__()
        os.makedirs("/etc/docker", exist_ok=True)
        with open("/etc/docker/daemon.json", "w") as f:
            json.dump({
                "bip": f"{self.gateway}/24", "data-root": "/run/docker-data",
                "exec-root": "/run/docker", "storage-driver": "vfs",
                "iptables": False, "ip6tables": False, "ip-masq": False,
                "userland-proxy": False,
                "runtimes": {name: {"path": self.script(name, program),
                                    "runtimeArgs": [*args, "--", LOOKING]}
                             for name, (args, program) in RUNTIMES.items()},
            }, f)
        self.write(LOOKING, f"""case " $* " in
*" start "*) {NATRACTL} --json list >{SEEN} ;;
esac
exec runc "$@"
""")
        self.log = open("/run/dockerd.log", "w+")
        self.daemon = subprocess.Popen(["dockerd"], stdin=subprocess.DEVNULL,
                                       stdout=self.log, stderr=self.log)
        self.wait()
        tar = subprocess.run(["tar", "-C", ROOTFS, "-c", "."], check=True,
                             stdout=subprocess.PIPE).stdout
        subprocess.run(["docker", "import", "-", "busybox"], input=tar, check=True,
                       stdout=subprocess.DEVNULL, timeout=SECONDS)

    @staticmethod
    def write(path, text):
        with open(path, "w") as f:
            f.write(f"#!/bin/sh\n{text}")
        os.chmod(path, 0o755)
        return path

    def script(self, name, program):
        """Return a program that calls the runtime with this natractl."""
        return self.write(f"/run/docker-runtime-{name}",
                          f'NATRACTL={program} exec {RUNTIME} "$@"\n')

    def wait(self):
        end = time.monotonic() + SECONDS
        while subprocess.run(["docker", "info"], stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL, timeout=SECONDS).returncode:
            if self.daemon.poll() is not None or time.monotonic() > end:
                self.log.seek(0)
                raise RuntimeError(f"dockerd: {self.log.read()[-3000:]}")
            time.sleep(0.1)

    @staticmethod
    def docker(*args, check=True):
        return sh("docker", *args, check=check, timeout=SECONDS)

    def run(self, name, *options):
        """Start a container and return its id."""
        return self.docker("run", "-d", "--name", name, *options, "busybox",
                           "/bin/busybox", "sleep", "1000").strip()

    def inspect(self, name, what):
        return self.docker("inspect", "-f", "{{" + what + "}}", name).strip()

    def netns(self, name):
        return os.path.relpath(self.inspect(name, ".NetworkSettings.SandboxKey"),
                               "/var/run/netns")

    def remove(self, name):
        self.docker("rm", "-f", name)

    def end(self):
        for name in self.docker("ps", "-aq").split():
            self.remove(name)
        self.daemon.terminate()
        self.daemon.wait(timeout=SECONDS)


def life(rep, d, journal):
    ident = d.run("limited", "--runtime", "limited")
    a, = attachments()
    rep.equal("id and limits", (a["id"], a["policy"]["ingress_rate_bits_per_sec"],
                                a["policy"]["egress_rate_bits_per_sec"]),
              (f"oci/{ident}/eth0", *CAPS))
    with open(SEEN) as f:
        rep.equal("before its process started", [b["id"] for b in json.load(f)], [a["id"]])
    rep.measure("limited", capped, rep, d, "limited")
    rep.equal("natractl check", natractl("check", a["id"], check=False).returncode, 0)
    d.run("other")
    rep.equal("a container of another runtime", len(attachments()), 1)
    d.remove("other")
    d.docker("exec", "limited", "/bin/busybox", "true")
    d.docker("restart", "-t", "0", "limited")
    rep.equal("after a restart", [a["id"] for a in attachments()], [f"oci/{ident}/eth0"])
    d.docker("stop", "-t", "0", "limited")
    nothing_left(rep, journal)
    d.remove("limited")


def own_rates(rep, d):
    api = d.docker("version", "-f", "{{.Server.APIVersion}}").strip()
    if tuple(map(int, api.split("."))) < ANNOTATIONS_API:
        rep.shown("annotations", f"this Docker has the API {api} and none")
        return
    d.run("own", "--runtime", "limited", f"--annotation={OUT}=4M")
    rep.equal("a container's own rate", [
        (a["policy"]["ingress_rate_bits_per_sec"], a["policy"]["egress_rate_bits_per_sec"])
        for a in attachments()], [(CAPS[0], 4_000_000)])
    d.remove("own")


def only_told(rep, d, journal):
    """What is wrong is told in one line, and the container starts."""
    for name, options, said in (
            ("wrong", (), "hook: arguments: are wrong, so no container is limited"),
            ("host", ("--network", "host"),
             "hook: {}: it uses the host's network, which is not limited"),
            ("without", (), None)):
        runtime = "limited" if name == "host" else name
        ident = d.run(name, "--runtime", runtime, *options)
        rep.equal(f"{name}: started", d.inspect(name, ".State.Running"), "true")
        rep.equal(f"{name}: not limited, and the log", (attachments(), journal.lines()),
                  ([], [said.format(ident)] if said else []))
        d.remove(name)
        journal.lines()


def told_to_fail(rep, d, journal):
    for name in ("strict", "strict-without"):
        p = subprocess.run(["docker", "run", "-d", "--name", name, "--runtime", name,
                            "busybox", "/bin/busybox", "sleep", "1000"], text=True,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                           timeout=SECONDS)
        rep.true(f"{name}: fails", p.returncode != 0, p.stderr.strip()[-100:])
        rep.equal(f"{name}: running", d.inspect(name, ".State.Running"), "false")
        d.remove(name)
    rep.equal("not limited", attachments(), [])
    journal.lines()


def by_pid(rep, d, journal):
    d.run("pid")
    natractl("attach", "eth0", "--pid", d.inspect("pid", ".State.Pid"), *RATES)
    rep.measure("by pid", capped, rep, d, "pid")
    d.remove("pid")
    rep.equal("gc", natractl("gc"), "removed 1\n")
    nothing_left(rep, journal)


def main():
    a = arguments(option("--programs", metavar="DIR", default="/usr/sbin",
                         help="a dockerd, docker and containerd before Debian's"))
    # Debian's client is as old as its daemon; another's may be in front of it. Where the
    # user's own directory in /run is not there, runc must not use it.
    os.environ["PATH"] = f"{a.programs}:/usr/sbin:/usr/bin:/sbin:/bin:{os.environ['PATH']}"
    os.environ.pop("XDG_RUNTIME_DIR", None)
    need("dockerd", "docker", "runc", "busybox")
    isolate_node()
    report, journal, d = Report(), Journal(), Docker()
    try:
        life(report, d, journal)
        own_rates(report, d)
        only_told(report, d, journal)
        told_to_fail(report, d, journal)
        by_pid(report, d, journal)
    finally:
        d.end()
    report.end()


if __name__ == "__main__":
    main()
