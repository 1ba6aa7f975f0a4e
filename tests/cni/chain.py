#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs natra behind Debian's ptp, bridge and macvlan, called in libcni's order.

The script measures traffic in both directions and checks a live change, DEL twice and the time
of STATUS. unit-cni-command has the lists of GC, api-state what goes by them, and cnitool.py calls
it by libcni."""
import os
import statistics
import tempfile
import time

import plugin
from libcni import Container, Failed, Libcni
from plugin import (DEBIAN, attachment, attachments, find_natra, limits, natractl,
                    pins, qdiscs)
from commands import sh
from meter import Meter, wire_rates
from namespaces import Ns
from report import skip
from rig import Rig
from script import option

CAP = 10_000_000
# These are the rates in bit/s in and out and the bursts in bits. The plugin takes
# 0.5 s of the rate as burst, whatever burst a runtime sends.
LIMITS = (CAP, CAP, CAP // 2, CAP // 2)
# containerd passes this for an annotation of 10M in each direction.
CAPABILITIES = {
        "bandwidth": {"IngressRate": CAP, "IngressBurst": 4294967295,
                      "EgressRate": CAP, "EgressBurst": 4294967295},
        "io.kubernetes.cri.pod-annotations": {
                "kubernetes.io/ingress-bandwidth": "10M",
                "kubernetes.io/egress-bandwidth": "10M"}}


ARGS = {"IgnoreUnknown": "1", "K8S_POD_NAMESPACE": "shop",
        "K8S_POD_NAME": "web-0", "K8S_POD_INFRA_CONTAINER_ID": "x",
        "K8S_POD_UID": "u"}


NATRA = {"type": "natra", "capabilities": {
        "bandwidth": True, "io.kubernetes.cri.pod-annotations": True}}


def ipam(subnet, tmp):
    return {"type": "host-local", "subnet": subnet, "dataDir": tmp,
            "routes": [{"dst": "0.0.0.0/0"}]}


def mains(tmp):
    """Return the configurations of the main plugins, and the peer of their pods."""
    return {"ptp": ({"type": "ptp", "ipam": ipam("10.71.0.0/24", tmp)},
                    "10.71.0.1", "node"),
            "bridge": ({"type": "bridge", "bridge": "cni0", "isGateway": True,
                        "ipam": ipam("10.72.0.0/24", tmp)},
                       "10.72.0.1", "node"),
            "macvlan": ({"type": "macvlan", "master": "uplink",
                         "mode": "bridge",
                         "ipam": ipam("10.73.0.0/24", tmp)},
                        "10.73.0.1", "lan")}


class Lan(Rig):
    """A node with a namespace on its uplink; the main plugins make the pods."""

    def __init__(self):
        self.node, self.pods = Ns(), []
        lan = Ns("lan")
        sh("ip", "link", "add", "uplink", "up", "type", "veth", "peer",
           "name", "eth0", "netns", "lan")
        lan.run("ip", "link", "set", "eth0", "up")
        lan.run("ip", "addr", "add", "10.73.0.1/24", "dev", "eth0")
        self.clients = [lan]
        self.tmp = tempfile.TemporaryDirectory(prefix="natra-cni-")
        self.bin = f"{self.tmp.name}/bin"
        os.mkdir(self.bin)
        os.symlink(find_natra(), f"{self.bin}/natra")

    def __exit__(self, *_):
        self.stop(None)
        self.tmp.cleanup()

    def libcni(self, name, plugins, version="1.0.0", path=DEBIAN):
        conflist = {"cniVersion": version, "name": name, "plugins": plugins}
        return Libcni(conflist, [self.bin, path], self.tmp.name)

    def peer(self, which):
        return {"node": self.node, "lan": self.clients[0]}[which]

    def rates(self, pod, pod_ip, peer, peer_ip, settle, seconds):
        """Return the bit/s into and out of the pod with four streams in each direction
        at once: the rate of one policed stream swings around its cap for longer than
        this measurement takes."""
        pod.ip, peer.ip = pod_ip, peer_ip
        meters = [Meter(pod), Meter(peer)]
        procs = self.elephant(peer, pod, 5201, 4) + \
            self.elephant(pod, peer, 5202, 4)
        self.wait_flow(*meters)
        time.sleep(settle)
        got = wire_rates(meters, seconds)
        self.stop(procs)
        return got

    def capped(self, rep, what, pod, pod_ip, peer, peer_ip, a):
        """Check that the cap holds in both directions."""
        got = self.rates(pod, pod_ip, peer, peer_ip, a.settle, a.seconds)
        for way, rate in zip(("in", "out"), got):
            rep.near(f"{what}: cap {way}", rate / 1e6, CAP / 1e6, 0.10,
                     " Mbit/s")


def fails(rep, what, call, *args, words=(), by="natra"):
    """Check that this call fails in that plugin, with these words in the error."""
    try:
        call(*args)
    except Failed as e:
        text = e.answer.text()
        rep.check(what, f"{e.plugin}: {text[:70]}", f"{by}, {words}",
                  e.plugin == by and all(w in text for w in words))
        return
    rep.check(what, "success", "failure", False)


def chain(r, rep, kind, a):
    main, peer_ip, peer = mains(r.tmp.name)[kind]
    cni = r.libcni(f"net-{kind}", [main, NATRA])
    pod = Ns(f"pod-{kind}")
    r.pods.append(pod)
    c = Container(f"{kind}-0123456789", pod.path, args=ARGS,
                  capability_args=CAPABILITIES)
    result = cni.add(c)
    rep.equal(f"{kind}: result is the main plugin's",
              result == cni.answers[kind].json, True)
    was = qdiscs(pod.run, "eth0")
    cni.check(c)
    info = attachment(c.netns)
    rep.equal(f"{kind}: limits", limits(info), LIMITS)
    rep.equal(f"{kind}: network and label", (info["network"], info["label"]),
              (f"net-{kind}", "shop/web-0"))
    pod_ip = result["ips"][0]["address"].split("/")[0]
    what = f"{kind}, {info['mode']}"
    rep.measure(what, r.capped, rep, what, pod, pod_ip, r.peer(peer), peer_ip, a)
    natractl("set", info["id"], "--ingress-rate", "20M", "--egress-rate", "7M")
    cni.check(c)
    rep.equal(f"{kind}: CHECK leaves what was set live",
              limits(attachment(c.netns))[:2], (20_000_000, 7_000_000))
    rep.equal(f"{kind}: qdiscs", qdiscs(pod.run, "eth0"), was)
    cni.delete(c)
    rep.equal(f"{kind}: left after DEL", (attachments(), pins()), ([], []))
    # The runtime calls DEL a second time, without a prevResult.
    cni.delete(c)
    gone = Container(c.id, "", capability_args=CAPABILITIES)
    cni.delete(gone)
    rep.equal(f"{kind}: DEL three times", cni.answers["natra"].code, 0)


def status_time(natra, rep, a):
    """Compare STATUS, by turns, with VERSION, which only starts the plugin. The quicker of
    the calls count, because other processes delay some of either."""
    took = {"VERSION": [], "STATUS": []}
    for _ in range(41):
        for command, times in took.items():
            times.append(natra._run(NATRA, command, None).seconds)
    version_ms, status_ms = (statistics.quantiles(t)[0] * 1e3 for t in took.values())
    rep.most("STATUS, lower quartile", status_ms, version_ms + a.status_ms, " ms")


def status(r, rep, a):
    """Check that STATUS is fast enough for a node's readiness, beside pods."""
    natra = r.libcni("net-status", [NATRA], "1.1.0")
    pods = [plugin.Veth(f"st{i}", f"vst{i}") for i in range(8)]
    cs = [Container(f"st-{i}", p.path, capability_args=CAPABILITIES)
          for i, p in enumerate(pods)]
    for c, p in zip(cs, pods):
        natra._run(NATRA, "ADD", c, p.prev_result("1.1.0"))
    rep.measure("STATUS", status_time, natra, rep, a)
    for c in cs:
        natra.delete(c)
    for p in pods:
        p.close()


def main(rep, a):
    if not os.access(f"{DEBIAN}/ptp", os.X_OK):
        skip("containernetworking-plugins are not installed")
    with Lan() as r:
        if a.only != "status":
            for kind in "ptp", "bridge", "macvlan":
                chain(r, rep, kind, a)
        if a.only != "chains":
            status(r, rep, a)


if __name__ == "__main__":
    plugin.run_script(main,
        option("--only", choices=["chains", "status"],
               help="status: the time of STATUS; chains: all else"),
        option("--seconds", type=float, default=3),
        option("--settle", type=float, default=2),
        option("--status-ms", type=float, default=5))
