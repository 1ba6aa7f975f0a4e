#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The packages are clean by lintian and rpmlint, the same from two builds, and are
installed, upgraded and removed while a pod has limits and traffic.

The limits hold from the installation on to the end, also after the packages have gone.
"""
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE / "../harness/python")]
import machine
from isolation import isolate
from machine import SOURCE, note, run, within
from meter import wire_rates
from report import Report, skip
from rig import Elephant, Rig

MBIT = 1_000_000
RATE = 10 * MBIT
SECONDS = 3
NAMES = {"natractl", "natra-cni", "natra-agent", "libnatra0", "libnatra-dev"}
PROGRAMS = ("usr/sbin/natractl", "usr/sbin/natra-agent", "usr/libexec/natra/natra")
CAN_LEAVE = re.compile(r"/etc/systemd/system|/var/|/share/lintian|/etc/default$")


def another_build(tree):
    """Make programs that take their BPF programs for those of another build."""
    header = (tree.parent / "build/bpf/natra_object_id.h").read_text()
    number = int(re.search("0x([0-9a-f]{16})ULL", header)[1], 16)
    before, after = ((number ^ bit).to_bytes(8, "little") for bit in (0, 1))
    for name in PROGRAMS:
        content = (tree / name).read_bytes()
        if before not in content:
            raise RuntimeError(f"{name} does not have {number:#x}")
        (tree / name).write_bytes(content.replace(before, after))


def lint(report, debs, rpms):
    said = subprocess.run(
        ["lintian", "--allow-root", "--fail-on", "error,warning", "--tag-display-limit",
         "0", *map(str, debs)], text=True, capture_output=True)
    report.equal("lintian: errors and warnings",
                 [l for l in said.stdout.splitlines() if l[:2] in ("E:", "W:")], [])
    report.equal("lintian: exit code", said.returncode, 0)
    said = subprocess.run(
        ["rpmlint", "--config", SOURCE / "tools/package/rpmlint.toml", *map(str, rpms)],
        text=True, capture_output=True)
    last = said.stdout.strip().splitlines()[-1] if said.stdout else said.stderr
    report.shown("rpmlint", last)
    report.equal("rpmlint: errors and warnings",
                 [l for l in said.stdout.splitlines() if re.search(r": [EW]: ", l)], [])
    report.equal("rpmlint: exit code", said.returncode, 0)


def same_again(report, work, paths):
    again = machine.packages("amd64", work, 1)
    both = [{p.name: p.read_bytes() for p in found} for found in (paths, again)]
    report.equal("packages that differ when they are built again",
                 sorted(n for n in both[0] if both[0][n] != both[1].get(n)), [])


class Node:
    """A pod with a limit and a stream each way, on a machine with the packages."""

    def __init__(self, report, rig, root):
        self.report, self.rig, self.root = report, rig, root
        self.out = self.into = None

    def natractl(self, *args):
        return within(self.root, "/usr/sbin/natractl", *args)

    def limit(self):
        machine.share_pods(self.root)
        self.natractl("attach", "eth0", "--netns", "pod0", "--id", "shop/web",
                      "--ingress-rate", "10M", "--egress-rate", "10M")
        self.out = Elephant(self.rig, self.rig.pod, self.rig.client, 5201, "out")
        self.into = Elephant(self.rig, self.rig.client, self.rig.pod, 5202, "into")
        self.rig.wait_flow(*self.rig.meters())
        time.sleep(2)

    def holds(self, when):
        def cell():
            rates = wire_rates(self.rig.meters(), SECONDS)
            for way, rate in zip(("into", "out of"), rates):
                self.report.near(f"{when}: Mbit/s {way} the pod", rate / MBIT,
                                 RATE / MBIT, 0.1)
        self.report.measure(when, cell)

    def during(self, what, action):
        """Do something to the packages; no moment of it may be without the limit."""
        begin = time.monotonic()
        said = action()
        time.sleep(1)
        end = time.monotonic()
        for way, stream in (("into", self.into), ("out of", self.out)):
            self.report.most(f"{what}: Mbit/s {way} the pod meanwhile",
                             stream.rate(begin, end) / MBIT, 1.25 * RATE / MBIT)
        return said

    def is_current(self):
        return json.loads(self.natractl("show", "shop/web", "--json"))["program_is_current"]


def upgrade_programs(node):
    """Let the agent of the new packages do its work once, as its service would."""
    agent = subprocess.Popen(
        ["chroot", node.root, "/usr/sbin/natra-agent", "--no-install", "--no-adopt",
         "--listen", ""], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL)
    end = time.monotonic() + 30
    while not node.is_current() and time.monotonic() < end:
        time.sleep(0.2)
    agent.terminate()
    agent.wait(timeout=20)


def debian(report, rig, work):
    root = machine.make_root("debian", work)
    before = machine.files(root)

    def dpkg(*args):
        return within(root, "dpkg", *args)

    def install(revision):
        return dpkg("-i", *(f"/packages/packages-amd64-{revision}/{p.name}"
                            for p in sorted(Path(work, f"packages-amd64-{revision}")
                                            .glob("*.deb")) if "-dev_" not in p.name))

    install(1)
    status = dpkg("-l", *sorted(NAMES - {"libnatra-dev"}))
    report.equal("deb: packages installed", len(re.findall("^ii ", status, re.M)), 4)
    node = Node(report, rig, root)
    node.limit()
    node.holds("deb: installed")
    node.during("deb: upgrade", lambda: install(2))
    node.holds("deb: upgraded")
    report.true("deb: the pod's program is of the old build", not node.is_current())
    node.during("deb: the new agent", lambda: upgrade_programs(node))
    report.true("deb: the pod's program is of the new build", node.is_current())
    said = node.during("deb: removal", lambda: dpkg(
        "-r", "natra-agent", "natra-cni", "natractl"))
    for words in ("natractl: 1 interfaces keep their limits", "natra-cni: pods that run",
                  "natra-agent: pods that run"):
        report.true(f"deb: the removal says '{words}'", words in said)
    node.holds("deb: removed")
    dpkg("-P", "natra-agent", "natra-cni", "natractl", "libnatra0")
    left = {f for f in machine.files(root) - before if not CAN_LEAVE.search(f)}
    report.equal("deb: files left", sorted(left), [])
    lift(report, rig, work)


def lift(report, rig, work):
    """Another copy of natractl lifts what the packages left."""
    run(f"{work}/stage-amd64/tree/usr/sbin/natractl", "detach", "shop/web")
    rig.stop(None)


def rpm(report, rig, work):
    root = machine.make_root("rpm", work)
    before = machine.files(root)

    def rpm_(*args):
        # Debian's packages are not in RPM's data base, so it knows no library.
        return run("rpm", "--root", root, "--nodeps", *args)

    def packages(revision):
        return [p for p in sorted(Path(work, f"packages-amd64-{revision}").glob("*.rpm"))
                if "-devel-" not in p.name]

    rpm_("-i", *packages(1))
    report.equal("rpm: packages installed",
                 len(run("rpm", "--root", root, "-qa").split()), 4)
    node = Node(report, rig, root)
    node.limit()
    node.holds("rpm: installed")
    node.during("rpm: upgrade", lambda: rpm_("-U", *packages(2)))
    node.holds("rpm: upgraded")
    said = node.during("rpm: removal", lambda: rpm_(
        "-e", "natra-agent", "natra-cni", "natractl", "libnatra0"))
    report.true("rpm: the removal says that limits stay",
                "natractl: 1 interfaces keep their limits" in said)
    node.holds("rpm: removed")
    left = {f for f in machine.files(root) - before
            if not CAN_LEAVE.search(f) and "/rpm/" not in f}
    report.equal("rpm: files left", sorted(left), [])
    lift(report, rig, work)


def main():
    machine.need()
    for tool in ("lintian", "rpmlint", "rpmbuild"):
        if not shutil.which(tool):
            skip(f"{tool} (tools/install-deps release)")
    report = Report()
    with tempfile.TemporaryDirectory(prefix="natra-packages-", dir="/var/tmp") as work:
        isolate()
        paths = machine.packages("amd64", work)
        debs = [p for p in paths if p.suffix == ".deb"]
        report.equal("deb packages", {p.name.split("_")[0] for p in debs}, NAMES)
        lint(report, debs, [p for p in paths if p.suffix == ".rpm"])
        same_again(report, work, paths)
        machine.packages("amd64", work, 2, another_build)
        for test in (debian, rpm):
            with Rig() as rig:
                test(report, rig, work)
        note(f"{sum(p.stat().st_size for p in debs)} bytes of deb packages")
    report.end()


if __name__ == "__main__":
    main()
