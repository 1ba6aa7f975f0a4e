#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks that nothing is told to be bypassed where all traffic passes natra's programs.

Streams with offloads and without them and with BIG TCP, peers that are exempt, classes, small
packets, a pod that sends to itself by a service, a qdisc that holds seconds of traffic behind
the hook, and an attach under load: each in each attach mode.
"""
import os
import sys
import time

sys.path.insert(0, os.path.dirname(__file__) + "/../harness/python")
from bypass import PORT, Scene
from commands import sh
from limiters import Natra
from rig import Rig
from rtnl import set_gso_max
from script import option, run_script


def says_nothing(s, what, natra):
    shown, _ = s.told(natra)
    s.rep.equal(f"{what}: bypassed", shown, {"in": 0, "out": 0}, " %")


def nothing(s, what, natra, least_mb):
    """Check that nothing is said, and how much was carried."""
    with open(f"/proc/{os.getpid()}/net/dev") as f:
        line = next(x for x in f if x.strip().startswith(f"{s.r.pod.host}:")).split()
    carried = int(line[1]) + int(line[9])
    s.rep.least(f"{what}: MB carried", (carried - s.carried) / 1e6, least_mb)
    s.carried = carried
    says_nothing(s, what, natra)


def quiet_streams(s, mode):
    """Bulk of TCP, with offloads and without them, and with BIG TCP."""
    r = s.r
    for name, (size, word) in OFFLOADS.items():
        for pod in (r.pod, r.client):
            with pod:
                set_gso_max("eth0", size)
            set_gso_max(pod.host, size)
            pod.run("ethtool", "-K", "eth0", "tso", word, "gso", word, "gro", word)
        natra = Natra(r.pod, "--attach-mode", mode).attach("2G", "2G")
        procs = r.elephants(2)
        time.sleep(s.a.seconds)
        nothing(s, f"{mode}, {name}", natra, 20)
        r.stop(procs)
        natra.detach()


def quiet_exempt(s, mode):
    natra = Natra(s.r.pod, "--attach-mode", mode, "--unshaped-subnet",
                  f"{s.r.client.ip}/32").attach("1M", "1M")
    s.udp()
    time.sleep(s.a.seconds)
    nothing(s, f"{mode}, exempt peers", natra, 20)
    s.r.stop(None)
    natra.detach()


def quiet_classes(s, mode):
    natra = Natra(s.r.pod, "--attach-mode", mode, "--class",
                  f"c={s.r.client.ip}/32,ingress-rate=300M,egress-rate=300M",
                  ).attach("1M", "1M")
    procs = s.r.elephants()
    time.sleep(s.a.seconds)
    nothing(s, f"{mode}, a class", natra, 20)
    s.r.stop(procs)
    natra.detach()


def quiet_small(s, mode):
    """Datagrams of 60 bytes, of which a tag or a checksum would be much."""
    r = s.r
    natra = Natra(r.pod, "--attach-mode", mode).attach("200M", "200M")
    procs = []
    for src, dst in ((r.client, r.pod), (r.pod, r.client)):
        procs.append(r.load(dst, "udp-sink", PORT))
        r.wait_port(dst, PORT, "udp", seconds=20)
        procs.append(r.load(src, "udp-send", dst.ip, PORT, "--rate", 30e6, "--size", 18))
    time.sleep(s.a.seconds)
    nothing(s, f"{mode}, small packets", natra, 2)
    r.stop(procs)
    natra.detach()


def quiet_hairpin(s, mode):
    """The pod sends to itself by a service's address."""
    r = s.r
    sh("nft", "-f", "-", input=f"""table ip hairpin {{
chain pre {{
type nat hook prerouting priority dstnat
ip daddr 10.96.0.9 dnat to {r.pod.ip}
}}
chain post {{
type nat hook postrouting priority srcnat
ip saddr {r.pod.ip} ip daddr {r.pod.ip} masquerade
}}
}}
""")
    natra = Natra(r.pod, "--attach-mode", mode).attach("500M", "500M")
    procs = [r.stream_server(r.pod, 5207)]
    procs.append(r.pod.popen("iperf3", "-c", "10.96.0.9", "-p", "5207", "-t", "60"))
    time.sleep(s.a.seconds)
    nothing(s, f"{mode}, hairpin", natra, 20)
    r.stop(procs)
    natra.detach()
    sh("nft", "delete", "table", "ip", "hairpin")


def quiet_waits(s, mode):
    """A qdisc behind the hook holds seconds of traffic when the counting begins, which is
    carried when nothing is judged any more."""
    r = s.r
    r.pod.run("tc", "qdisc", "replace", "dev", "eth0", "root", "tbf", "rate", "16mbit",
              "burst", "20k", "limit", "100m")
    natra = Natra(r.pod, "--attach-mode", mode).attach("1G", "1G")
    r.load_end(r.load(r.pod, "udp-send", r.client.ip, PORT, "--rate", 160e6, "--ports", 60,
                      "--seconds", 0.5), r.pod)
    natra.attach("1G", "1G")
    time.sleep(3)
    nothing(s, f"{mode}, what waited", natra, 2)
    natra.detach()
    r.pod.run("tc", "qdisc", "del", "dev", "eth0", "root")


def quiet_begins(s, mode):
    """It is attached, and attached again, under load; and a pod ends at once."""
    r = s.r
    procs = r.elephants(2)
    natra = Natra(r.pod, "--attach-mode", mode).attach("1G", "1G")
    for rate in ("500M", "1G"):
        natra.ok("set", natra.id, "--ingress-rate", rate)
        natra.attach(rate, "1G")
    time.sleep(s.a.seconds)
    nothing(s, f"{mode}, attached under load", natra, 20)
    natra.detach()
    r.stop(procs)
    natra.attach("1M", "1M")
    r.load_end(r.load(r.client, "udp-send", r.pod.ip, PORT, "--rate", 1e6, "--seconds",
                      0.2), r.client)
    says_nothing(s, f"{mode}, hardly any traffic", natra)
    natra.detach()


OFFLOADS = {"offloads": (65536, "on"), "BIG TCP": (196608, "on"), "no offloads": (65536, "off")}


CASES = (quiet_begins, quiet_exempt, quiet_classes, quiet_small, quiet_hairpin, quiet_waits,
         quiet_streams)


def main(rep, a):
    modes = Natra.modes()
    with Rig() as r:
        s = Scene(r, rep, a)
        s.carried = 0
        for mode in (modes[0], modes[-1]) if a.brief else modes:
            for case in CASES:
                case(s, mode)


if __name__ == "__main__":
    run_script(main, option("--brief", action="store_true",
                            help="the first mode and the last one"),
               option("--seconds", type=float, default=1.2))
