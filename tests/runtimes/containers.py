# SPDX-License-Identifier: BSD-2-Clause
"""What the tests of podman and Docker share: a log, a root directory, rates."""
import os
import re
import shutil
import socket
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [f"{HERE}/../kube", f"{HERE}/../cni"]
from commands import sh
from meter import Meter, wire_rates
from namespaces import Ns
from plugin import attachments, pins
from report import skip
from rig import Rig

IN, OUT = "kubernetes.io/ingress-bandwidth", "kubernetes.io/egress-bandwidth"
ROOTFS = "/run/rootfs"
BUSYBOX = "/bin/busybox"
CAPS = (10_000_000, 6_000_000)


def need(*programs):
    for program in programs:
        if not shutil.which(program):
            skip(f"{program} is not installed (tools/install-deps runtimes)")


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
            # The hook writes <PRIORITY>NAME[PID]: TEXT, without the time, which journald does not need.
            if line := re.match(r"<\d+>natractl\[\d+\]: (.*)", text, re.S):
                found.append(line[1])


class Runtime(Rig):
    """Containers beside which nothing else runs on the node. A subclass says how they are
    started, inspected and removed, and has the node's address in `gateway`."""

    def __init__(self):
        self.node, self.pods, self.clients = Ns(), [], []
        os.makedirs(f"{ROOTFS}/bin")
        shutil.copy(BUSYBOX, f"{ROOTFS}/bin/busybox")

    def rates(self, name, settle=2, seconds=4):
        """Return the bit/s into and out of a container."""
        ns = Ns(self.netns(name), exists=True)
        ns.ip = self.inspect(name, ".NetworkSettings.IPAddress")
        self.node.ip = self.gateway
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


def capped(rep, runtime, name, caps=CAPS):
    for way, rate, cap in zip(("in", "out"), runtime.rates(name), caps):
        rep.near(f"{name}: cap {way}", rate / 1e6, cap / 1e6, 0.10, " Mbit/s")


def nothing_left(rep, journal):
    rep.equal("left of it", (attachments(), pins(), journal.lines()), ([], [], []))
