#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""natra runs in other mount namespaces than pid 1's: either a limit that it reports is
pinned where pid 1 sees it, or there is an error."""
import json
import os
import subprocess

import plugin
from plugin import (ENV, PINS, Answer, Veth, attachment, attachments,
                    find_natra, malformed, natractl, pins, programs)
from commands import sh
from limiters import find_natractl
from namespaces import Ns

BANDWIDTH = {"ingressRate": 10_000_000, "egressRate": 20_000_000}
NO_PTRACE = ("setpriv", "--bounding-set=-sys_ptrace", "--inh-caps=-sys_ptrace")
NOT_REACHED = "is not the one that pid 1 sees"


def conf(pod):
    return json.dumps({"cniVersion": "1.1.0", "name": "mounts",
                       "type": "natra",
                       "runtimeConfig": {"bandwidth": BANDWIDTH},
                       "prevResult": pod.prev_result("1.1.0")})


def run(*argv, stdin="", **env):
    p = subprocess.run(argv, input=stdin, text=True, timeout=20,
                       env=dict(os.environ, **env),
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    return Answer(p.returncode, p.stdout, p.stderr, 0)


class Elsewhere:
    """Runs commands in another mount namespace."""

    def __init__(self, *prefix):
        self.prefix = prefix

    def cni(self, command, pod):
        return run(*self.prefix, find_natra(), stdin=conf(pod),
                   **dict(ENV, CNI_COMMAND=command, CNI_NETNS=pod.path,
                          PATH=os.environ["PATH"]))

    def ctl(self, *args):
        return run(*self.prefix, find_natractl(), *args)

    def listed(self, *options):
        a = self.ctl(*options, "list", "--json")
        return a.json if a.code == 0 else str(a)


def bpffs_mounts():
    """Count the mounts of bpffs, also those that another mount of /sys hides."""
    with open("/proc/self/mountinfo") as f:
        return sum(line.split()[4] == "/sys/fs/bpf" and " - bpf " in line
                   for line in f)


def life(rep, name, there, pod):
    """Check that an attachment made in `there` is the same one everywhere."""
    a = there.cni("ADD", pod)
    rep.check(f"{name}: ADD", str(a)[:60], "success",
              a.code == 0 and not malformed(a, "ADD"))
    info = attachment(pod.path)
    rep.true(f"{name}: pid 1 sees it", info)
    rep.equal(f"{name}: programs", programs(pod), [1, 1])
    path = (info or {}).get("pin_path", "-")
    rep.true(f"{name}: its pins are where pid 1 sees them",
             path.startswith(PINS + "/") and os.path.isdir(path), path[:24])
    rep.true(f"{name}: natractl list there", there.listed() == attachments())
    rep.equal(f"{name}: CHECK", there.cni("CHECK", pod).error(), 0)
    rep.equal(f"{name}: DEL", there.cni("DEL", pod).error(), 0)
    rep.equal(f"{name}: left", (attachments(), pins(), programs(pod)),
              ([], [], [0, 0]))


def refused(rep, name, there, pod):
    """Check that each command fails with one clear line and changes nothing."""
    a = there.cni("ADD", pod)
    rep.check(f"{name}: ADD", a.text()[:60], NOT_REACHED,
              a.code == 1 and not malformed(a, "ADD") and
              NOT_REACHED in a.text())
    a = there.cni("STATUS", pod)
    rep.check(f"{name}: STATUS", a.text()[:60], NOT_REACHED,
              NOT_REACHED in a.text())
    a = there.ctl("list")
    rep.check(f"{name}: natractl list", a.err.strip()[:60], "one line",
              a.code == 1 and a.err.count("\n") == 1 and NOT_REACHED in a.err)
    rep.equal(f"{name}: left", (attachments(), pins(), programs(pod)),
              ([], [], [0, 0]))


def main(rep, _):
    pod, node = Veth("mounts", "h-mounts"), Ns("othernode")
    exec_ = Elsewhere("ip", "netns", "exec", node.name)
    private = Elsewhere("unshare", "--mount", "--propagation", "private")

    life(rep, "the same", Elsewhere(), pod)
    life(rep, "the same, without CAP_SYS_PTRACE", Elsewhere(*NO_PTRACE), pod)
    life(rep, "ip netns exec", exec_, pod)
    life(rep, "shared bpffs", private, pod)
    life(rep, "shared bpffs, without CAP_SYS_PTRACE",
         Elsewhere(*private.prefix, *NO_PTRACE), pod)
    refused(rep, "ip netns exec, without CAP_SYS_PTRACE",
            Elsewhere(*exec_.prefix, *NO_PTRACE), pod)

    # natra does not change a path that is given: here it is in the other /sys.
    natractl("attach", "eth0", "--netns", pod.path, "--id", "mounts",
             "--ingress-rate", "10M")
    rep.equal("--bpffs: its own", exec_.listed("--bpffs", "/sys/fs/bpf"), [])
    rep.true("--bpffs: that of pid 1",
             exec_.listed("--bpffs", "/proc/1/root/sys/fs/bpf") ==
             attachments())
    # In a container pid 1 is the container's own, and natra sees only what that sees.
    container = Elsewhere(
            "unshare", "--pid", "--fork", "--mount", "--propagation",
            "private", "--mount-proc", "sh", "-c",
            'umount /sys/fs/bpf; mount -t bpf bpf /sys/fs/bpf; "$@"', "-")
    rep.equal("container: list", container.listed(), [])
    # This one has no /proc, so natra cannot compare its mounts with pid 1's.
    bare = Elsewhere("unshare", "--mount", "--propagation", "private", "sh",
                     "-c", 'mount -t tmpfs none /proc; "$@"', "-")
    # A program with sanitizers does not start there.
    if "ASAN_OPTIONS" not in os.environ:
        rep.equal("without /proc: status", bare.ctl("list").code, 0)
    natractl("detach", "mounts")

    sh("umount", "/sys/fs/bpf")
    hidden = bpffs_mounts()
    a = exec_.cni("STATUS", pod)
    rep.check("ip netns exec, no bpffs: STATUS", str(a)[:60], "success",
              a.code == 0)
    no_chroot = Elsewhere(*exec_.prefix, "setpriv", "--bounding-set=-sys_chroot",
                          "--inh-caps=-sys_chroot")
    a = no_chroot.cni("ADD", pod)
    rep.check("the same without CAP_SYS_CHROOT: ADD", str(a)[:300], "an error",
              a.code == 1 and not malformed(a, "ADD"))
    rep.equal("it mounts", bpffs_mounts() - hidden, 0)
    life(rep, "ip netns exec, no bpffs", exec_, pod)
    life(rep, "ip netns exec, again", exec_, pod)
    rep.equal("it mounts", bpffs_mounts() - hidden, 1)


if __name__ == "__main__":
    plugin.run_script(main)
