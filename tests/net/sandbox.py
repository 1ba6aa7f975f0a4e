#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Limits pods whose processes are in a virtual machine, which a sandbox connects to eth0.

  tcfilter  what Kata and tc-redirect-tap do: an `ingress` qdisc on eth0 and on the tap, each
            with a filter that redirects all to the other
  macvtap   Kata's other way: an interface on top of eth0 that has its address

The guest is a namespace. Its interface is a veth in place of a tap, and a macvlan in place of
a macvtap, which is one with a character device. A clsact qdisc has the place of `ingress`, so
in mode clsact-podside the first kind cannot start; once the pod's limits are gone, it can.
"""
import os
import sys
import time

sys.path.insert(0, os.path.dirname(__file__) + "/../harness/python")
from commands import ip_batch
from limiters import Natra, bits, stall
from meter import ETH_IPV4_UDP, Meter, wire_rates
from namespaces import Ns, Pod
from rig import Rig
from script import MODES, option, run_script, some_of

CAP, OFFERED, PORT = "10M", 40e6, 5300
REDIRECT = ("parent", "ffff:", "protocol", "all", "u32", "match", "u8", "0", "0",
            "action", "mirred", "egress", "redirect", "dev")


class CannotStart(Exception):
    """The sandbox cannot put its objects on eth0."""


class Guest(Ns):
    """What runs in the sandbox of a pod, with the pod's addresses."""

    def __init__(self, pod, kind):
        super().__init__(f"guest-{pod.name}")
        self.pod, self.ip = pod, pod.ip
        try:
            {"tcfilter": self._tcfilter, "macvtap": self._macvtap}[kind]()
        except RuntimeError as e:
            self.close()
            raise CannotStart(str(e)) from e
        ip_batch([*Pod._up("eth0", pod.ip, pod.ip6, pod.gw, pod.gw6, pod.host_mac),
                  f"route add 0.0.0.0/0 via {pod.gw} dev eth0"], self.name)

    def _tcfilter(self):
        pod = self.pod
        pod.run("tc", "qdisc", "add", "dev", "eth0", "ingress")
        ip_batch([f"link add tap0 type veth peer name eth0 address {pod.mac} netns {self.name}",
                  "link set tap0 up"], pod.name)
        pod.run("tc", "qdisc", "add", "dev", "tap0", "ingress")
        for src, dst in (("eth0", "tap0"), ("tap0", "eth0")):
            pod.run("tc", "filter", "add", "dev", src, *REDIRECT, dst)

    def _macvtap(self):
        ip_batch(["link set eth0 address 02:77:00:00:99:99",
                  f"link add link eth0 name tap0 address {self.pod.mac} type macvlan mode bridge",
                  f"link set tap0 netns {self.name} name eth0"], self.pod.name)

    def close(self):
        pod = self.pod
        pod.run("ip", "link", "del", "tap0", check=False)
        self.run("ip", "link", "del", "eth0", check=False)
        pod.run("tc", "qdisc", "del", "dev", "eth0", "ingress", check=False)
        pod.run("ip", "link", "set", "eth0", "address", pod.mac)
        os.close(self.fd)
        ip_batch([f"netns del {self.name}"])


def send(r, src, dst):
    r.load(dst, "udp-sink", PORT)
    r.wait_port(dst, PORT, "udp")
    r.load(src, "udp-send", dst.ip, PORT, "--rate", OFFERED)


def measure(r, rep, a, what, guests, paced):
    meters = [Meter(guests[0], ETH_IPV4_UDP), r.out_of(1, ETH_IPV4_UDP)]
    # The meters of the rig stop its own namespaces' processes alone.
    r.pods += guests
    try:
        send(r, r.clients[0], guests[0])
        send(r, guests[1], r.clients[1])
        r.wait_flow(*meters)
        time.sleep(a.settle)
        for way, rate in zip(("in", "out"), wire_rates(meters, a.seconds)):
            rep.near(f"{what}: {way}", rate / 1e6, bits(CAP) / 1e6,
                     0.02 if paced and way == "out" else stall(a.seconds), " Mbit/s")
    finally:
        r.stop(None)
        del r.pods[-2:]


def scene(r, rep, a, kind, mode):
    what = f"{kind}, {mode}"
    limits = [Natra(pod, "--attach-mode", mode, "--fast-pass", "off").attach(CAP, CAP)
              for pod in r.pods]
    guests = []
    try:
        guests = [Guest(pod, kind) for pod in r.pods]
    except CannotStart as e:
        rep.shown(what, f"cannot start: {e}"[-100:])
    starts = mode != "clsact-podside" or kind != "tcfilter"
    rep.equal(f"{what}: starts", bool(guests), starts)
    if guests:
        rep.measure(what, measure, r, rep, a, what, guests, limits[1].edt_active())
    for guest in guests:
        guest.close()
    for limit in limits:
        limit.detach()
    for pod in r.pods:
        if not starts:
            Guest(pod, kind).close()
        left = [line for line in pod.run("tc", "qdisc", "show", "dev", "eth0").splitlines()
                if "clsact" in line or "ingress" in line]
        rep.equal(f"{what}: qdiscs left in {pod.name}", left, [])


def main(rep, a):
    with Rig(lanes=2) as r:
        for kind in a.kind:
            for mode in a.mode.split(",") if a.mode else Natra.modes():
                scene(r, rep, a, kind, mode)


if __name__ == "__main__":
    run_script(main, some_of("kind", ("tcfilter", "macvtap")), MODES,
               option("--seconds", type=float, default=2),
               option("--settle", type=float, default=2))
