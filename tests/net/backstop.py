#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks the two places where the podside modes judge ingress.

  passed   the backstop in the pod drops nothing that the host side has passed
  past     what comes past the host side is held to the limit by the backstop: another's
           program puts it into the pod, or natra's program there was removed
"""
import os
import socket
import sys
import time
from pathlib import Path

sys.path.insert(0, os.path.dirname(__file__) + "/../harness/python")
from commands import sh
from isolation import BPFFS
from limiters import Natra, bits, dropped, stall, total
from meter import ETH_IPV4_UDP, Meter, wire_rates
from neighbour import PINS, Neighbour, ifindex
from rig import Rig
from script import option, run_script

PORT = 5300
OFFERED = 4                     # times the rate
GSO_SEGMENTS = 40
STRAY = 10                      # of IPv6 and ARP


def bulk(flows):
    def run(r, rate, seconds):
        del rate
        r.elephant(r.client, r.pod, 5201, flows)
        time.sleep(seconds)
        r.stop(None)
    return run


def small_flows(r, rate, seconds):
    """Answers that are small flows, to requests of the pod."""
    size = min(20000, bits(rate) // 8 // 20)
    r.nginx(size=size, pod=r.client)
    http = r.load(r.pod, "http", r.client.ip, 80, "/file", "--rps",
                  min(300, OFFERED * bits(rate) / 8 / (size + 1000)), "--seconds", seconds)
    time.sleep(seconds)
    r.stop([http])
    r.stop(None)


def datagrams(r, rate, seconds, *options):
    with r.pod:
        sink = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sink.bind(("", PORT))
    sender = r.load(r.client, "udp-send", r.pod.ip, PORT, "--rate",
                    min(OFFERED * bits(rate), 2e9), *options)
    time.sleep(seconds)
    r.stop([sender])
    sink.close()


def gso(r, rate, seconds):
    datagrams(r, rate, seconds, "--segments", GSO_SEGMENTS)


LOADS = {"1 stream": bulk(1), "16 streams": bulk(16), "small flows": small_flows,
         "datagrams": datagrams, "GSO datagrams": gso}


def passed(rep, a):
    """All that reaches the pod came over its host side."""
    modes = [m for m in Natra.modes() if m.endswith("podside")]
    cells = [(modes[0], rate, "free", load) for rate in a.rates.split(",")
             for load in LOADS]
    cells += [(m, "10M", word, load) for m in modes for word in filter(None, a.words.split(","))
              for load in ("16 streams", "small flows", "datagrams")]
    for mode, rate, word, load in dict.fromkeys(cells):
        rep.measure(f"{mode} {rate} {word}: {load}", account, rep, a, mode, rate, word, load)


def account(rep, a, mode, rate, word, load):
    what = f"{mode} {rate} {word}: {load}"
    with Rig() as r:
        natra = Natra(r.pod, "--attach-mode", mode, "--fast-pass",
                      word).attach(rate, None)
        LOADS[load](r, rate, a.seconds)
        time.sleep(0.2)
        stats = natra.stats()
        host, backstop = stats["ingress"], stats["backstop"]
        rep.least(f"{what}, packets", total(host, "packets"), 8)
        rep.equal(f"{what}, dropped or marked by the backstop",
                  dropped(backstop) + backstop["marked"]["packets"], 0)
        # The backstop is there a moment earlier.
        rep.near(f"{what}, packets that the host side passed and the backstop saw",
                 total(backstop, "packets"), total(host, "packets") - dropped(host), 0.01)
        natra.detach()


def past(rep, a):
    """The datagrams of one sender are over the rate by ten times."""
    neighbour = Neighbour()
    for mode in (m for m in Natra.modes() if m.endswith("podside")):
        for how in (by_neighbour, by_removal):
            with Rig() as r:
                rep.measure(f"{mode}, {how.__name__}", how, r, rep, a, mode, neighbour)


def held(r, rep, a, what, natra):
    """Return the packets that the host side and the backstop judged meanwhile."""
    rate, meter = bits("10M"), Meter(r.pod, ETH_IPV4_UDP)
    with r.pod:
        sink = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sink.bind(("", PORT))
    before = natra.stats()
    sender = r.load(r.client, "udp-send", r.pod.ip, PORT, "--rate", 10 * rate)
    r.wait_flow(meter)
    time.sleep(a.settle)
    rep.near(f"{what}: rate", wire_rates([meter], a.seconds)[0] / 1e6, rate / 1e6,
             stall(a.seconds), " Mbit/s")
    r.stop([sender])
    sink.close()
    after = natra.stats()
    return [total(after[k], "packets") - total(before[k], "packets")
            for k in ("ingress", "backstop")] + [
            dropped(after["backstop"]) - dropped(before["backstop"])]


def by_neighbour(r, rep, a, mode, neighbour):
    """Test a datapath that takes packets from one host-side veth right into the pod
    behind the other, as Cilium's host routing does."""
    what = f"{mode}, another's bpf_redirect_peer"
    neighbour.target("peer_in", ifindex(r.node, r.pod.host))
    natra = Natra(r.pod, "--attach-mode", mode).attach("10M", None)
    sh("tc", "qdisc", "add", "dev", r.client.host, "clsact")
    sh("tc", "filter", "add", "dev", r.client.host, "ingress", "prio", "1", "handle", "1",
       "bpf", "direct-action", "object-pinned", f"{PINS}/peer_in")
    host, backstop, lost = held(r, rep, a, what, natra)
    rep.most(f"{what}: packets that the host side judged", host, STRAY)
    rep.least(f"{what}: packets that the backstop judged", backstop, 1000)
    rep.least(f"{what}: dropped by the backstop", lost, 1000)
    top = natra.json("top", natra.id, "--direction", "ingress")["ingress"]
    rep.equal(f"{what}: ports of the flows in top", [f["dport"] for f in top], [PORT])
    natra.ok("check", natra.id)
    natra.detach()


def by_removal(r, rep, a, mode, _neighbour):
    what = f"{mode}, natra's hook on the host side removed"
    natra = Natra(r.pod, "--attach-mode", mode).attach("10M", None)
    for pin in Path(BPFFS).glob("natra/**/host_link"):
        pin.unlink()
    sh("tc", "qdisc", "del", "dev", r.pod.host, "clsact", check=False)
    host, _, lost = held(r, rep, a, what, natra)
    rep.most(f"{what}: packets that the host side judged", host, STRAY)
    rep.least(f"{what}: dropped by the backstop", lost, 1000)
    rep.equal(f"{what}: natractl check's exit code", natra.run("check", natra.id).returncode,
              3)
    # The same order mends it.
    natra.attach("10M", None)
    natra.ok("check", natra.id)
    rep.least(f"{what}: judged by the host side after another attach",
              held(r, rep, a, f"{what}, attached again", natra)[0], 1000)
    natra.detach()


PARTS = {"passed": passed, "past": past}


def main(rep, a):
    for name in a.parts or PARTS:
        PARTS[name](rep, a)


if __name__ == "__main__":
    run_script(main, option("parts", nargs="*", choices=[[], *PARTS]),
               option("--rates", default="1M,10M,1G"),
               option("--words", default="strict,off"),
               option("--seconds", type=float, default=1.2),
               option("--settle", type=float, default=2))
