#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks on real traffic that a peer whose subnet is exempt is not held to the cap.

Another peer is held to it at the same time. Both kinds of list are tested, and both
directions. The packets to an exempt peer are as large as those to one of a class without
a rate, although a low cap makes those of the interface small.
"""
import json
import os
import sys
import time

sys.path.insert(0, os.path.dirname(__file__) + "/../harness/python")
from limiters import Natra, bits, dropped, stall, total
from meter import ETH_IPV4_TCP, ETH_IPV4_UDP, Meter, wire_rates
from rig import Rig
from script import option, run_script

RATE, OFFERED = "10M", "50M"
LOW_RATE = "100k"       # packets are small in each mode in the pod


def subnet(client):
    return f"{client.ip.rsplit('.', 1)[0]}.0/24"


def passed(stats):
    """Return the bytes of exempt packets, and of the others that got through."""
    free = stats["unlimited"]["bytes"]
    return free, total(stats) - free - dropped(stats, "bytes")


def both(r, rep, a, direction, kind):
    """Send datagrams to or from each client at five times the cap. The list has the
    first client's subnet."""
    lim = Natra(r.pod, f"--{kind}-subnet", subnet(r.clients[0]))
    lim.attach(*((RATE, None) if direction == "ingress" else (None, RATE)))
    lanes = [(c, r.pod) if direction == "ingress" else (r.pod, c)
             for c in r.clients]
    for i, (_, dst) in enumerate(lanes):
        r.load(dst, "udp-sink", 5300 + i)
        r.wait_port(dst, 5300 + i, "udp", 20)
    for i, (src, dst) in enumerate(lanes):
        r.load(src, "udp-send", dst.ip, 5300 + i, "--rate", bits(OFFERED))
    ends = [r.pod] if direction == "ingress" else r.clients
    meters = [Meter(ns, ETH_IPV4_UDP) for ns in ends]
    r.wait_flow(*meters)
    time.sleep(a.settle)
    before, start = passed(lim.stats()[direction]), time.monotonic()
    got = [g / 1e6 for g in wire_rates(meters, a.seconds)]
    after, end = passed(lim.stats()[direction]), time.monotonic()
    r.stop(None)
    free, capped = ((y - x) * 8 / (end - start) / 1e6
                    for x, y in zip(before, after))
    rate, offered = bits(RATE) / 1e6, bits(OFFERED) / 1e6
    what = f"{direction}, {kind} {subnet(r.clients[0])}"
    # A sender that was stalled catches up, also where nothing limits it. natractl, which
    # reads the counters, may also start late.
    tolerance = stall(a.seconds)
    rep.near(f"{what}: capped peer", capped, rate, tolerance, " Mbit/s")
    rep.near(f"{what}: exempt peer", free, offered, tolerance, " Mbit/s")
    if direction == "ingress":
        rep.near(f"{what}: arrived", got[0], rate + offered, tolerance, " Mbit/s")
    else:
        wanted = (rate, offered) if kind == "shaped" else (offered, rate)
        for client, g, w in zip(r.clients, got, wanted):
            rep.near(f"{what}: arrived at {client.ip}", g, w, tolerance, " Mbit/s")
    lim.detach()


def packet_sizes(r, rep, a):
    """TCP to the first client, which one list or another frees from the cap."""
    first, second = map(subnet, r.clients[:2])
    found = {}
    for what, options in (("capped", ()),
                          ("in a class without a rate", ("--class", f"free={first}")),
                          ("unshaped", ("--unshaped-subnet", first)),
                          ("not shaped", ("--shaped-subnet", second))):
        lim = Natra(r.pod, *options).attach(None, LOW_RATE)
        link = json.loads(r.pod.run("ip", "-d", "-j", "link", "show", "eth0"))[0]
        streams = r.elephant(r.pod, r.clients[0], 5400)
        meter = Meter(r.clients[0], ETH_IPV4_TCP)
        r.wait_flow(meter)
        time.sleep(a.settle)
        stats = lim.stats()
        sent = [c["egress"] for c in (stats, *stats.get("classes", ()))]
        size = sum(map(total, sent)) / sum(total(d, "packets") for d in sent)
        found[what] = link["gso_max_segs"], size
        rep.shown(f"{what}: most segments, bytes of a packet",
                  f"{link['gso_max_segs']}, {size:.0f}")
        r.stop(streams)
        lim.detach()
    rep.most("capped: segments", found["capped"][0], 100)
    wanted = found["in a class without a rate"]
    for what in ("unshaped", "not shaped"):
        rep.equal(f"{what}: segments", found[what][0], wanted[0])
        rep.least(f"{what}: bytes of a packet", found[what][1], 0.7 * wanted[1])


def main(rep, a):
    with Rig(lanes=2) as r:
        packet_sizes(r, rep, a)
        for direction in ("egress", "ingress"):
            for kind in ("unshaped", "shaped"):
                rep.measure(f"{direction}, {kind}", both, r, rep, a,
                            direction, kind)


if __name__ == "__main__":
    run_script(main,
        option("--seconds", type=float, default=1.5),
        option("--settle", type=float, default=1.0))
