#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Does to a limited pod what KubeVirt does for a virtual machine with a bridge binding.

The pod's eth0 is renamed and becomes a port of a bridge, behind which the virtual machine
has the pod's address, and a dummy gets the name eth0. The cap, CHECK, edits of limits by
natractl and by natra-agent, and DEL must be those of the interface that was renamed.
"""
import os
import sys

import plugin
from chain import ARGS, CAP, CAPABILITIES, LIMITS, NATRA, Lan, fails, mains
from libcni import Container
from plugin import HERE, attachment, attachments, natractl, pins, programs, qdiscs
from commands import bpftool, sh
from namespaces import Ns
from report import skip
from script import option

sys.path.insert(0, f"{HERE}/../agent")
from apiserver import ApiServer
from podnode import FakeNode

NAME, NETWORK = "vm", "net"
ID = f"{NETWORK}/{NAME}/eth0"
NIC = "eth0-nic"
# An edit of this word makes the agent attach the pod anew.
FIXED = "natra.io/edt-pacing"
ELEMENT = dict(NATRA, allowAnnotations=[FIXED])
IN, OUT = "kubernetes.io/ingress-bandwidth", "kubernetes.io/egress-bandwidth"
MBIT = 1_000_000


def stand_in():
    """Return the kind of the interface that gets the name; not every kernel has
    dummies."""
    try:
        sh("ip", "link", "add", "try", "type", "dummy")
    except RuntimeError:
        return "type veth peer name nobody"
    sh("ip", "link", "del", "try")
    return "type dummy"


def become_virtual(pod, guest, result):
    """Do what virt-handler does when it prepares a pod's network, and start the guest,
    which has a veth for a tap device."""
    address, = [ip["address"] for ip in result["ips"]]
    mac, = [i["mac"] for i in result["interfaces"] if i.get("sandbox")]
    pod.sysctl("net.ipv4.conf.all.arp_ignore", "1")
    for command in (
            "link set eth0 down", "addr flush dev eth0", f"link set eth0 name {NIC}",
            f"link set {NIC} address 02:00:00:00:00:07",
            "link add k6t-eth0 type bridge", f"link set {NIC} up master k6t-eth0",
            "link set k6t-eth0 up",
            f"link add eth0 address {mac} up {stand_in()}", f"addr add {address} dev eth0",
            f"link add tap0 type veth peer name eth0 address {mac} netns {guest.name}",
            "link set tap0 up master k6t-eth0"):
        pod.run("ip", *command.split())
    for command in ("link set eth0 up", f"addr add {address} dev eth0"):
        guest.run("ip", *command.split())


def detach_egress(pod, a):
    """Take the program off the hook behind natra's back."""
    if "tcx" in a["mode"]:
        ident, = [x["id"] for x in bpftool("link", "show")
                  if x.get("prog_id") == a["egress_prog_id"]]
        sh("bpftool", "link", "detach", "id", str(ident))
    else:
        pod.run("tc", "filter", "del", "dev", NIC, "egress")


class Machine:
    """The pod, and what a runtime and natra-agent know of it."""

    def __init__(self, r, rep, a):
        self.r, self.rep, self.a = r, rep, a
        main, self.peer_ip, _ = mains(r.tmp.name)["ptp"]
        self.cni = r.libcni(NETWORK, [main, ELEMENT])
        self.pod, self.guest = Ns("pod-vm"), Ns("guest")
        r.pods += [self.pod, self.guest]
        self.c = Container(NAME, self.pod.path, args=ARGS, capability_args=CAPABILITIES)

    def check(self):
        self.cni._run(ELEMENT, "CHECK", self.c, self.cni.cached(self.c))

    def caps(self, what, *wanted):
        got = self.r.rates(self.guest, self.address, self.r.node, self.peer_ip,
                           self.a.settle, self.a.seconds)
        for way, rate, cap in zip(("in", "out"), got, wanted):
            self.rep.near(f"{what}: cap {way}", rate / MBIT, cap / MBIT, 0.10,
                          " Mbit/s")

    def holds(self, what, *caps):
        """Check the limits of the interface that was eth0, on real packets."""
        self.check()
        info = attachment(self.c.netns)
        self.rep.equal(f"{what}: interface", info["ifindex"], self.ifindex)
        self.rep.equal(f"{what}: programs of {NIC} and of the dummy",
                       (programs(self.pod, NIC), programs(self.pod)),
                       ([1, 1], [0, 0]))
        self.rep.measure(what, self.caps, what, *caps)

    def start(self):
        result = self.cni.add(self.c)
        self.address = result["ips"][0]["address"].split("/")[0]
        info = attachment(self.c.netns)
        self.ifindex = info["ifindex"]
        self.rep.equal("limits", plugin.limits(info), LIMITS)
        become_virtual(self.pod, self.guest, result)

    def broken(self):
        """Let CHECK find what is missing where the packets are."""
        detach_egress(self.pod, attachment(self.c.netns))
        fails(self.rep, "CHECK without the egress program", self.check,
              words=("egress",))
        self.cni._run(ELEMENT, "ADD", self.c, self.cni.cached(self.c))
        self.check()


def follow_edits(m):
    """Let natra-agent follow the pod's annotations."""
    node, api = FakeNode(), ApiServer()
    annotations = CAPABILITIES["io.kubernetes.cri.pod-annotations"]
    node.pod(NAME, CAPABILITIES["bandwidth"], ["ptp", ELEMENT], annotations)
    sh("mount", "--bind", m.pod.path, str(node.netns(NAME)))
    token = node.root / "token"
    token.write_text("secret\n")
    api.put(NAME, annotations)
    try:
        from agent import Agent
        with Agent("--no-install", "--root", str(node.root), "--node", "n",
                   "--api-server", api.url, "--token-file", str(token),
                   "--ca-file", "") as agent:
            agent.wait("msg=ready part=api")
            for times, edit in enumerate(({IN: "20M", OUT: "4M"},
                                          {IN: "8M", OUT: "6M", FIXED: "off"}), 1):
                api.put(NAME, edit)
                agent.wait("limits follow the pod's annotations", times)
            agent.stop()
    finally:
        api.close()
        sh("umount", str(node.netns(NAME)), check=False)
        node.close()
    # The agent may have been stopped while it was loading programs for later pods.
    natractl("gc")
    m.rep.equal("departure times after the last edit", attachment(m.c.netns)["edt_active"],
                False)


def main(rep, a):
    if not os.access(f"{plugin.DEBIAN}/ptp", os.X_OK):
        skip("containernetworking-plugins are not installed")
    with Lan() as r:
        m = Machine(r, rep, a)
        m.start()
        m.holds("renamed", CAP, CAP)
        natractl("set", ID, "--ingress-rate", "0")
        natractl("set", ID, "--ingress-rate", "12M", "--egress-rate", "5M")
        natractl("upgrade", ID)
        m.check()
        m.broken()
        follow_edits(m)
        m.holds("edited", 8 * MBIT, 6 * MBIT)
        m.cni.delete(m.c)
        rep.equal("left after DEL", (attachments(), pins(), programs(m.pod, NIC)),
                  ([], [], [0, 0]))
        rep.equal("qdiscs", [q for q in qdiscs(m.pod.run, NIC) if "noqueue" not in q], [])


if __name__ == "__main__":
    plugin.run_script(main,
        option("--seconds", type=float, default=3),
        option("--settle", type=float, default=2))
