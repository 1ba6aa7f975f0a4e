#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs natra on each kind of interface that a pod may have: veth, macvlan, ipvlan or
netkit. It checks ADD, CHECK, the cap in both directions by traffic, and DEL."""

import plugin
from chain import CAPABILITIES, Lan
from plugin import attachment, call, find_natra, has_tcx, pins, programs, qdiscs
from commands import sh
from namespaces import Ns
from report import skip
from script import option
from wirings import Missing, add_link, add_netkit

# The values are the pod's address and its peer: the node, or the LAN on its uplink.
KINDS = {"veth": ("10.74.0.2", "10.74.0.1", "node"),
         "netkit": ("10.74.0.2", "10.74.0.1", "node"),
         "macvlan": ("10.73.0.2", "10.73.0.1", "lan"),
         "ipvlan": ("10.73.0.2", "10.73.0.1", "lan")}


def wire(kind, pod):
    """Make eth0 of that kind in the pod, with its address."""
    ip, peer_ip, peer = KINDS[kind]
    if peer == "lan":
        mode = "bridge" if kind == "macvlan" else "l2"
        add_link(kind, f"link uplink name eth0 netns {pod.name} type {kind} "
                 f"mode {mode}")
    elif kind == "veth":
        add_link(kind, f"host0 type veth peer name eth0 netns {pod.name}")
    else:
        add_netkit("host0", "l3", 1500, pod)
    pod.run("ip", "link", "set", "eth0", "up")
    if peer == "node":
        sh("ip", "addr", "add", f"{peer_ip}/24", "dev", "host0")
        sh("ip", "link", "set", "host0", "up")
    pod.run("ip", "addr", "add", f"{ip}/24", "dev", "eth0")


def conf(kind, pod, **keys):
    ip, peer_ip, _ = KINDS[kind]
    return dict({
            "cniVersion": "1.0.0", "name": "wiring", "type": "natra",
            "runtimeConfig": CAPABILITIES, "prevResult": {
                    "cniVersion": "1.0.0",
                    "interfaces": [{"name": "eth0", "sandbox": pod.path}],
                    "ips": [{"address": f"{ip}/24", "gateway": peer_ip,
                             "interface": 0}]}}, **keys)


def story(r, rep, kind, pod, mode, a):
    natra = find_natra()
    ip, peer_ip, peer = KINDS[kind]
    was = qdiscs(pod.run, "eth0")
    stdin = conf(kind, pod, attachMode=mode)

    def do(command):
        got = call(natra, command, stdin, CNI_NETNS=pod.path)
        good = not got.code and (command != "ADD" or
                                 got.json == stdin["prevResult"])
        rep.check(f"{kind} {mode}: {command}", str(got)[:60], "success", good)

    do("ADD")
    do("CHECK")
    info = attachment(pod.path)
    rep.shown(f"{kind} {mode}", f"{info['mode']}, EDT {info['edt_active']}")
    what = f"{kind} {mode}"
    rep.measure(what, r.capped, rep, what, pod, ip, r.peer(peer), peer_ip, a)
    do("CHECK")
    do("DEL")
    do("DEL")
    rep.equal(f"{kind} {mode}: left", (programs(pod), pins(),
                                       qdiscs(pod.run, "eth0")),
              ([0, 0], [], was))


def main(rep, a):
    with Lan() as r:
        pod = Ns("wired")
        r.pods.append(pod)
        try:
            wire(a.kind, pod)
        except Missing as e:
            skip(str(e))
        modes = ("auto",) + ("clsact-podside",) * has_tcx()
        for mode in (a.mode,) if a.mode else modes:
            story(r, rep, a.kind, pod, mode, a)


if __name__ == "__main__":
    plugin.run_script(main,
        option("kind", choices=KINDS),
        option("--mode", help="one attach mode; default: auto and clsact"),
        option("--seconds", type=float, default=3),
        option("--settle", type=float, default=2))
