#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The real libcni (cnitool) reads what natractl install writes: a pod is capped by the
list and by the drop-in, uninstall with the pod running keeps its limit and the plugin,
and nothing is left when the pod has ended; upstream's plugin comes back under a pod, and
ends it. Needs root."""
import filecmp
import json
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE + "/../harness/python", HERE + "/../cni"]
import plugin
from chain import CAP, LIMITS, Lan, ipam
from cnitool import Cnitool
from plugin import (DEBIAN, attachment, attachments, find_natra, limits, newest,
                    newest_bandwidth, pins)
from limiters import find_natractl
from namespaces import Ns


class Node:
    """A runtime's directories, with a list that somebody else owns."""

    def __init__(self, tmp, *more):
        # The directory is beside the plugin's library, because that is not installed.
        self.net, self.bin = f"{tmp}/net.d", f"{tmp}/build/cni"
        os.mkdir(self.net)
        os.makedirs(self.bin)
        os.symlink(os.path.dirname(os.path.realpath(find_natra())) + "/../src",
                   f"{tmp}/build/src")
        self.text = json.dumps({
            "cniVersion": "1.0.0", "name": "installed", "plugins": [
                {"type": "ptp", "ipam": ipam("10.76.0.0/24", tmp)}, *more]})
        with open(f"{self.net}/10-ptp.conflist", "w") as f:
            f.write(self.text)

    def natractl(self, verb, *options):
        p = subprocess.run(
            [find_natractl(), verb, "--net-dir", self.net, "--bin-dir",
             self.bin, *options], text=True, capture_output=True, timeout=30)
        return p.returncode, p.stdout, p.stderr

    def install(self, runtime, *options):
        return self.natractl("install", "--plugin", find_natra(),
                             "--runtime-version", runtime, *options)

    def files(self):
        return sorted(os.listdir(self.net)) + sorted(os.listdir(self.bin))


def story(rep, tool, r, runtime, files):
    """Follow one pod's life, while natra is installed and removed."""
    with tempfile.TemporaryDirectory(prefix="natra-install-") as tmp:
        node = Node(tmp)
        code, out, err = node.install(runtime)
        rep.check(f"{runtime}: install", f"{code} {err.strip()}", "0",
                  code == 0)
        rep.equal(f"{runtime}: files", node.files(), files)
        pod = Ns(f"pod{len(r.pods)}")
        r.pods.append(pod)
        cni = Cnitool(tool, "installed", pod.path, f"{node.bin}:{DEBIAN}",
                      node.net)
        p = cni("add")
        rep.check(f"{runtime}: add", p.stderr.strip()[:200], "success",
                  not p.returncode)
        address = json.loads(p.stdout)["ips"][0]["address"].split("/")[0]
        rep.equal(f"{runtime}: limits", limits(attachment(pod.path)), LIMITS)
        for way, rate in zip(("in", "out"), r.rates(
                pod, address, r.node, "10.76.0.1", 2, 2)):
            rep.check(f"{runtime}: rate {way}", f"{rate / 1e6:.1f}",
                      f"near {CAP / 1e6}", 0.3 * CAP < rate < 1.3 * CAP,
                      " Mbit/s")
        code, out, err = node.natractl("uninstall")
        rep.check(f"{runtime}: uninstall with the pod", f"{code} {err}",
                  "3, a pod is limited", code == 3 and "1 pod is" in err)
        rep.equal(f"{runtime}: files", node.files(),
                  ["10-ptp.conflist", "natra"])
        rep.equal(f"{runtime}: limits stay", limits(attachment(pod.path)),
                  LIMITS)
        p = cni("del")
        rep.check(f"{runtime}: del", p.stderr.strip()[:200], "success",
                  not p.returncode)
        code, out, err = node.natractl("uninstall")
        rep.check(f"{runtime}: uninstall", f"{code} {err}", "0", code == 0)
        rep.equal(f"{runtime}: left", (node.files(), attachments(), pins()),
                  (["10-ptp.conflist"], [], []))
        with open(f"{node.net}/10-ptp.conflist") as f:
            rep.true(f"{runtime}: the list is as it was",
                     f.read() == node.text)


def back(rep, tool, r):
    """Upstream's plugin has its name back while a pod of natra's runs, and ends that pod."""
    what = "bandwidth"
    with tempfile.TemporaryDirectory(prefix="natra-install-") as tmp:
        node = Node(tmp, {"type": what, "capabilities": {what: True}})
        program = shutil.copy(newest_bandwidth(), f"{node.bin}/{what}")
        code, out, err = node.install("containerd://2.1.0", "--mode", what)
        rep.check(f"{what}: install", f"{code} {err.strip()}", "0", code == 0)
        pod = Ns(f"pod{len(r.pods)}")
        r.pods.append(pod)
        cni = Cnitool(tool, "installed", pod.path, f"{node.bin}:{DEBIAN}", node.net)
        p = cni("add")
        rep.check(f"{what}: add", p.stderr.strip()[:200], "success", not p.returncode)
        rep.equal(f"{what}: limits", limits(attachment(pod.path)), LIMITS)
        code, out, err = node.natractl("uninstall")
        rep.check(f"{what}: uninstall with the pod", f"{code} {err}", "0, a pod is limited",
                  code == 0 and "1 pod is" in err and "natractl gc" in err)
        rep.true(f"{what}: upstream's is back", filecmp.cmp(
            program, newest_bandwidth(), shallow=False))
        rep.equal(f"{what}: files", node.files(), ["10-ptp.conflist", what])
        rep.equal(f"{what}: limits stay", limits(attachment(pod.path)), LIMITS)
        # This is why it is not back under CRI-O, which calls CHECK when it starts.
        p = cni("check")
        rep.check(f"{what}: check", p.stderr.strip()[:200], "upstream's limits are not there",
                  p.returncode)
        p = cni("del")
        rep.check(f"{what}: del", p.stderr.strip()[:200], "success", not p.returncode)
        plugin.natractl("gc")
        rep.equal(f"{what}: left", (attachments(), pins()), ([], []))


def main(rep, _):
    tool = plugin.need(newest("cnitool"), "cnitool (tools/install-deps cni)")
    with Lan() as r:
        story(rep, tool, r, "containerd://1.6.20",
              ["00-natra-10-ptp.conflist", "10-ptp.conflist", "natra"])
        # cnitool is built with libcni 1.3, which reads drop-ins.
        story(rep, tool, r, "containerd://2.1.0",
              ["10-ptp.conflist", "installed", "natra"])
        back(rep, tool, r)


if __name__ == "__main__":
    plugin.run_script(main)
