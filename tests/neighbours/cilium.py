#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs natra beside the real Cilium, with and without TCX and its replacement of kube-proxy. It
removes the lists of others, as it does by default: natra is in by a drop-in."""
import os
import shutil
import urllib.request
from pathlib import Path

import yaml

import lab
from built import built
from commands import sh
from lab import BOTH, CRDS, Neighbour
from node import BIN_DIR, IP, NET_DIR, PODS, write
from script import option

AGENT = "/run/cilium-bin/cilium-agent"
# What natra says that loses its limit beside it, by whether it has TCX: it does not see whether
# Cilium replaces kube-proxy, with which it redirects past the host side.
SAID = {"on": {"tcx-hostside": ("in",), "clsact-hostside": BOTH},
        "off": {"tcx-hostside": ("in",), "clsact-hostside": ("in",)}}
# What does so, by that and by whether it replaces kube-proxy.
LOST = {("on", "off"): {"clsact-hostside": ("out",)}, ("on", "on"): SAID["on"],
        ("off", "on"): SAID["off"]}


def one_bpffs():
    """Take away the machine's own bpffs, which is out of sight below the node's /sys: Cilium
    refuses to run where there are two."""
    with open("/proc/self/mounts") as f:
        if sum(line.split()[1] == "/sys/fs/bpf" for line in f) < 2:
            return
    os.makedirs("/run/sys")
    # A mount that is shared cannot be moved.
    sh("mount", "--make-rprivate", "/")
    sh("mount", "--move", "/sys", "/run/sys")
    sh("umount", "/sys/fs/bpf")
    sh("mount", "--move", "/run/sys", "/sys")
    sh("mount", "--make-rshared", "/")


class Cilium(Neighbour):
    policies = True
    health = urllib.request.Request("http://127.0.0.1:9879/healthz", headers={"brief": "true"})

    def __init__(self, cluster, arguments):
        super().__init__(cluster)
        self.tcx, self.replace = arguments.tcx, arguments.replace
        self.name = f"Cilium 1.18.3, TCX {self.tcx}, replaces kube-proxy: {self.replace}"
        self.said = SAID[self.tcx]
        self.lost = LOST.get((self.tcx, self.replace), {})
        self.gaps = ("clsact-hostside",)
        # It ends the hook before filters, or redirects past it.
        if self.replace == "on":
            self.backstop = ("tcx-podside", "clsact-podside")
        elif self.tcx == "on":
            self.backstop = ("clsact-podside",)
        self.programs = built("cilium", "clang-19", "iptables")

    def prepare(self):
        for path in sorted(Path(self.programs).glob("pkg/**/crds/*/*.yaml")):
            self.api.create(CRDS, yaml.safe_load(path.read_text()))
        shutil.copy(f"{self.programs}/cilium-cni", BIN_DIR)
        one_bpffs()
        # A node that kubeadm prepares has it.
        write("/proc/sys/net/ipv4/ip_forward", "1")
        # Its agent is one by this name alone, and compiles its programs by what is called clang.
        os.makedirs("/run/cilium-bin")
        os.symlink(f"{self.programs}/daemon", AGENT)
        os.symlink(shutil.which("clang-19"), "/run/cilium-bin/clang")
        os.environ["PATH"] = f"/run/cilium-bin:{os.environ['PATH']}"
        # It writes to its home directory otherwise, which is the machine's.
        os.environ["GOPS_CONFIG_DIR"] = "/run/cilium-gops"

    def start(self):
        switch = {"on": "true", "off": "false"}
        self.give_range()
        self.run(AGENT, f"--lib-dir={self.programs}",
                 "--state-dir=/run/cilium", "--ipam=kubernetes", "--routing-mode=native",
                 f"--ipv4-native-routing-cidr={PODS}", "--enable-ipv6=false",
                 "--identity-allocation-mode=crd", "--enable-l7-proxy=false",
                 "--enable-health-checking=false", "--enable-endpoint-health-checking=false",
                 "--enable-hubble=false", "--enable-ipv4-masquerade=false",
                 # The client is beyond the second one.
                 f"--devices=node0,{self.cluster.client.host}", f"--ipv4-node={IP}",
                 f"--enable-tcx={switch[self.tcx]}",
                 f"--kube-proxy-replacement={switch[self.replace]}",
                 "--cni-exclusive=true",
                 f"--write-cni-conf-when-ready={NET_DIR}/05-cilium.conflist")
        self.wait_healthy(180)


if __name__ == "__main__":
    lab.run(Cilium,
            option("--tcx", choices=("on", "off"), default="on"),
            option("--replace", choices=("on", "off"), default="off",
                   help="whether it replaces kube-proxy"))
