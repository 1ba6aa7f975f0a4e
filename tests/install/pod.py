#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The real libcni (cnitool) reads what natractl install writes: a pod is capped by the
list and by the drop-in, uninstall with the pod running keeps its limit and the plugin,
and nothing is left when the pod has ended. Needs root."""
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE + "/../harness/python", HERE + "/../cni"]
import plugin
from chain import CAP, LIMITS, Lan, ipam
from cnitool import Cnitool
from plugin import DEBIAN, attachment, attachments, find_natra, limits, newest, pins
from limiters import find_natractl
from namespaces import Ns


class Node:
    """A runtime's directories, with a list that somebody else owns."""

    def __init__(self, tmp):
        # The directory is beside the plugin's library, because that is not installed.
        self.net, self.bin = f"{tmp}/net.d", f"{tmp}/build/cni"
        os.mkdir(self.net)
        os.makedirs(self.bin)
        os.symlink(os.path.dirname(os.path.realpath(find_natra())) + "/../src",
                   f"{tmp}/build/src")
        self.text = json.dumps({
            "cniVersion": "1.0.0", "name": "installed", "plugins": [
                {"type": "ptp", "ipam": ipam("10.76.0.0/24", tmp)}]})
        with open(f"{self.net}/10-ptp.conflist", "w") as f:
            f.write(self.text)

    def natractl(self, verb, *options):
        p = subprocess.run(
            [find_natractl(), verb, "--net-dir", self.net, "--bin-dir",
             self.bin, *options], text=True, capture_output=True, timeout=30)
        return p.returncode, p.stdout, p.stderr

    def install(self, runtime):
        return self.natractl("install", "--plugin", find_natra(),
                             "--runtime-version", runtime)

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


def main(rep, _):
    tool = plugin.need(newest("cnitool"), "cnitool (tools/install-deps cni)")
    with Lan() as r:
        story(rep, tool, r, "containerd://1.6.20",
              ["00-natra-10-ptp.conflist", "10-ptp.conflist", "natra"])
        # cnitool is built with libcni 1.3, which reads drop-ins.
        story(rep, tool, r, "containerd://2.1.0",
              ["10-ptp.conflist", "installed", "natra"])


if __name__ == "__main__":
    plugin.run_script(main)
