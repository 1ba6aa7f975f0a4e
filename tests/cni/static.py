#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests the plugin as a node needs it: one file that depends on no other."""
import os
import shutil
import subprocess
import tempfile
import time

import plugin
from plugin import Veth, attachment, call, limits, malformed, pins, programs
from commands import sh
from static_build import static_natra

BYTES_LIMIT = 2_500_000
CONF = {"cniVersion": "1.0.0", "name": "alone", "type": "natra",
        "runtimeConfig": {"bandwidth": {"ingressRate": 10_000_000,
                                        "egressRate": 20_000_000}}}


def alone(rep, natra, pod, root):
    """Run the plugin in a root directory with nothing but the kernel's file systems."""
    shutil.copy(natra, f"{root}/natra")
    for name in ("proc", "sys"):
        os.mkdir(f"{root}/{name}")
        sh("mount", "--rbind", f"/{name}", f"{root}/{name}")
    argv = ["chroot", root, "/natra"]
    a = call(argv, "VERSION", b"")
    rep.check("VERSION in an empty root", str(a)[:50], "an answer",
              not malformed(a, "VERSION"))
    # This root has no /run, so the pod's namespace is given as that of a process, once
    # nsenter has entered it.
    sleeper = pod.popen("sleep", "60")
    env = {"CNI_NETNS": f"/proc/{sleeper.pid}/ns/net"}
    for _ in range(100):
        if os.stat(env["CNI_NETNS"]).st_ino == os.stat(pod.path).st_ino:
            break
        time.sleep(0.02)
    conf = dict(CONF, prevResult=pod.prev_result())
    a = call(argv, "ADD", conf, **env)
    rep.check("ADD in an empty root", str(a)[:200], "the prevResult",
              a.code == 0 and a.json == conf["prevResult"])
    rep.equal("limits", (limits(attachment(pod.path)) or (0,))[:2],
              (10_000_000, 20_000_000))
    a = call(argv, "CHECK", conf, **env)
    rep.check("CHECK in an empty root", str(a)[:100], "nothing", not a.code)
    a = call(argv, "DEL", conf, **env)
    rep.check("DEL in an empty root", str(a)[:100], "nothing", not a.code)
    rep.equal("left", (programs(pod), pins()), ([0, 0], []))
    pod.stop(sleeper)


def build(a):
    a.natra = static_natra()


def main(rep, a):
    natra = a.natra
    hardening = subprocess.run(
            [f"{plugin.HERE}/../check/hardening",
             f"{os.path.dirname(natra)}/cni/natra"],
            text=True, stdout=subprocess.PIPE)
    rep.equal("hardening", (hardening.returncode, hardening.stdout.strip()),
              (0, "1 checked, 0 problems"))
    rep.equal("interpreter", "INTERP" in sh("readelf", "-lW", natra), False)
    rep.equal("libraries", "NEEDED" in sh("readelf", "-dW", natra), False)
    rep.most("size, stripped", os.path.getsize(natra) / 1e6,
             BYTES_LIMIT / 1e6, " MB")
    pod = Veth("alone", "valone")
    with tempfile.TemporaryDirectory(prefix="natra-root-") as root:
        sh("mount", "-t", "tmpfs", "tmpfs", root)
        try:
            alone(rep, natra, pod, root)
        finally:
            sh("umount", "-R", root)
    pod.close()


if __name__ == "__main__":
    plugin.run_script(main, prepare=build)
