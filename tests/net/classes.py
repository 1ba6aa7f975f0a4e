#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks classes of peers on real traffic.

  rates    two classes at 10 and 100 Mbit/s and a class by DSCP at the same time,
           in each direction
  counts   the counters of each class are what a capture at the peer has seen, and events
           have the class of their flow
  change   lists of 1024 prefixes change while numbered datagrams pass
"""
import json
import os
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(__file__) + "/../harness/python")
from isolation import BPFFS
from limiters import Natra, bits, dropped, find_natractl, total
from load import SO_RCVBUFFORCE
from meter import ETH_IPV4_TCP, ETH_IPV4_UDP, Meter, wire_rates
from rig import Rig
from script import option, run_script, some_of

PORT = 5300
VOICE = 46                      # a DSCP
REST, RATES = "20M", ("10M", "100M", "5M")


def subnet(client):
    return f"{client.ip.rsplit('.', 1)[0]}.0/24"


def classes(r, *more):
    """Return the options for a class of the first client, one of the second one, and one
    of a DSCP."""
    words = [f"slow={subnet(r.clients[0])},fd77:20::/64",
             f"fast={subnet(r.clients[1])}", f"voice=dscp={VOICE}"]
    rates = [f",ingress-rate={rate},egress-rate={rate}" for rate in RATES]
    return [w for pair in zip(words, rates) for w in ("--class", "".join(pair))] + \
        list(more)


def by_class(lim):
    """Return the counters of each class by its name, and those of the rest as 'rest'."""
    stats = lim.stats()
    return {"rest": stats, **{c["name"]: c for c in stats["classes"]}}


def watch(lim, way, seconds):
    """Return a function that waits for the rates by the counters, over a span that
    natractl itself has measured, since it may start slowly."""
    p = subprocess.Popen([find_natractl(), "--bpffs", BPFFS, "stats", lim.id, "--watch",
                          str(seconds), "--json"], stdout=subprocess.PIPE, text=True)

    def rates_of():
        line = json.loads(p.stdout.readline())
        p.terminate()
        p.wait(timeout=20)
        return {name: (total(c[way]) - dropped(c[way], "bytes")) * 8e9 / line["interval_ns"]
                for name, c in (("rest", line),
                                *((c["name"], c) for c in line["classes"]))}
    return rates_of


def streams(r, into, held):
    """Start what each class and the rest are to hold: TCP where packets are held, in the
    first two classes, and where they are dropped, datagrams at twice the rate."""
    lanes = [(c, r.pod) if into else (r.pod, c) for c in r.clients]
    # The third client gets marked datagrams. In a VM, senders of datagrams would be too
    # slow beside TCP.
    lanes = lanes[:2] if held else lanes
    for i, (src, dst) in enumerate(lanes):
        port, tos = PORT + i, VOICE << 2 if i == 2 else 0
        if held:
            r.elephant(src, dst, port, 4)
            continue
        r.load(dst, "udp-sink", port)
        r.wait_port(dst, port, "udp")
        rate = (*RATES, REST)[i]
        r.load(src, "udp-send", dst.ip, port, "--rate", 2 * bits(rate), "--tos", tos,
               "--no-wait")
    return lanes


def rates(r, rep, a, into, held):
    """The bound is 2 % where packets are held, and 5 % where they are dropped."""
    way = "ingress" if into else "egress"
    options = [*classes(r), *(["--ingress-mode", "pace"] if held and into else [])]
    lim = Natra(r.pod, *options)
    lim.attach(*((REST, None) if into else (None, REST)))
    if held and not into:
        rep.equal("departure times", lim.edt_active(), True)
    lanes = streams(r, into, held)
    meters = [Meter(dst, ETH_IPV4_TCP if held else ETH_IPV4_UDP) for _, dst in lanes]
    r.wait_flow(*meters[:1])
    time.sleep(a.settle)
    counted = watch(lim, way, a.seconds)
    got = wire_rates([meters[0]] if into else meters, a.seconds)
    counted = counted()
    names, wanted = ("slow", "fast", "voice", "rest"), (*RATES, REST)[:len(lanes)]
    bound = 0.02 if held else 0.05
    what = f"{way}, {'held' if held else 'dropped'}"
    for i, (name, rate) in enumerate(zip(names, wanted)):
        rep.near(f"{what}: {name} by its counters", counted[name] / 1e6,
                 bits(rate) / 1e6, bound, " Mbit/s")
        if not into:
            rep.near(f"{what}: {name} arrived", got[i] / 1e6, bits(rate) / 1e6, bound,
                     " Mbit/s")
    if into:
        rep.near(f"{what}: all that arrived", got[0] / 1e6,
                 sum(map(bits, wanted)) / 1e6, bound, " Mbit/s")
    r.stop(None)
    lim.detach()


def capture(seconds):
    """Print the packets and bytes of IPv4 that the namespace receives and sends."""
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    s.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20)
    s.settimeout(0.2)
    sums = {}
    print("ready", flush=True)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            frame, (_, kind, packet_type, _, _) = s.recvfrom(65535)
        except TimeoutError:
            continue
        if kind != 0x800:
            continue
        key = "sent" if packet_type == socket.PACKET_OUTGOING else "received"
        marked = frame[15] >> 2 == VOICE
        n, size = sums.get((key, marked), (0, 0))
        sums[key, marked] = n + 1, size + len(frame)
    print({f"{k} {m}": v for (k, m), v in sums.items()}, flush=True)


def counts(r, rep, a):
    """Requests and datagrams that are few enough for a capture to have all of them. Without
    offloads a frame is what natra counts."""
    lim = Natra(r.pod, *classes(r)).attach(REST, REST)
    captures = [(c, c.fork(capture, 6)) for c in r.clients]
    time.sleep(0.3)
    for i, c in enumerate(r.clients):
        r.load(c, "udp-sink", PORT + i)
        r.wait_port(c, PORT + i, "udp")
        r.load(r.pod, "udp-sink", PORT + 10 + i)
        r.wait_port(r.pod, PORT + 10 + i, "udp")
    for i, c in enumerate(r.clients):
        tos = VOICE << 2 if i == 2 else 0
        for src, dst, port in ((r.pod, c, PORT + i), (c, r.pod, PORT + 10 + i)):
            r.load(src, "udp-send", dst.ip, port, "--rate", "2e6", "--seconds", 1.5,
                   "--size", 100 + 100 * i, "--tos", tos)
    seen = [eval(p.communicate(timeout=30)[0].splitlines()[-1]) for _, p in captures]
    have = by_class(lim)
    for i, name in enumerate(("slow", "fast", "voice")):
        for way, key in (("egress", "received"), ("ingress", "sent")):
            want = seen[i][f"{key} {name == 'voice'}"]
            rep.equal(f"{name}, {way}: packets and bytes, by the capture",
                      (total(have[name][way], "packets"), total(have[name][way])), want)
            rep.least("  packets", want[0], 500)
    events = [json.loads(e) for e in lim.ok("events", "--json", lim.id).splitlines()]
    rep.equal("ports of heavy flows, with their class and direction", sorted(
        (e["dport"], e["class"], e["direction"]) for e in events
        if e["reason"] == "heavy" and e["direction"] != "backstop"),
        [(PORT, "slow", "egress"), (PORT + 2, "voice", "egress"),
         (PORT + 10, "slow", "ingress"), (PORT + 12, "voice", "ingress")])
    r.stop(None)
    lim.detach()


def change(r, rep, a):
    """A class takes the client's subnet over from another class, and gives it back, again
    and again: by another prefix, and with half of 1024 others. Both would pass all of the
    stream, and the rest a tenth."""
    client = r.clients[0]
    mine = subnet(client)
    part = mine.replace("/24", "/25")
    many = [f"10.{200 + i // 256}.{i % 256}.0/24" for i in range(1023)]
    some = many[:512]
    fast = "ingress-rate=1G,egress-rate=1G"

    def lists(turn):
        """One class shrinks as the other one grows."""
        one, two = (many[512:], [*some, mine]) if turn % 2 else ([*many[512:], part], some)
        return ("--class", ",".join([f"one={one[0]}", *one[1:], fast]),
                "--class", ",".join([f"two={two[0]}", *two[1:], fast]))

    lim = Natra(r.pod, *lists(0)).attach("1M", "1M")
    show = lim.show()
    rep.equal("prefixes", sum(len(c["subnets"]) for c in show["classes"]), 1024)
    rate, size = 10e6, 600
    recv = r.load(client, "seq-recv", PORT)
    r.wait_port(client, PORT, "udp")
    send = r.load(r.pod, "seq-send", client.ip, PORT, "--rate", rate, "--size", size,
                  "--seconds", a.changes * 0.15 + 1)
    time.sleep(0.5)
    took = []
    for turn in range(1, a.changes + 1):
        start = time.monotonic()
        lim.ok("set", lim.id, *lists(turn))
        took.append(time.monotonic() - start)
        time.sleep(max(0, 0.12 - took[-1]))
    send.communicate(timeout=60)
    time.sleep(1)
    recv.terminate()
    numbers = [int(line.split()[1]) for line in recv.communicate(timeout=30)[0].splitlines()]
    have = by_class(lim)
    sent = {name: total(c["egress"], "packets") for name, c in have.items()}
    rep.shown("changes, the longest took", f"{a.changes}, {max(took) * 1e3:.0f} ms")
    rep.equal("datagrams that arrived, of those that were sent",
              (len(set(numbers)), len(numbers)), (max(numbers) + 1,) * 2)
    rep.equal("datagrams in the two classes together", sent["one"] + sent["two"],
              max(numbers) + 1)
    rep.equal("packets in neither class", sent["rest"], 0)
    for name in ("one", "two"):
        rep.least(f"datagrams in class {name}", sent[name], 0.1 * len(numbers))
    after = lim.show()
    rep.equal("programs", after["egress_prog_id"], show["egress_prog_id"])
    rep.equal("natractl check", lim.run("check", lim.id).returncode, 0)
    r.stop(None)
    lim.detach()


def main(rep, a):
    if "rates" in a.what:
        with Rig(lanes=4) as r:
            for into in (False, True):
                rep.measure(f"rates {into}", rates, r, rep, a, into, a.held)
    if "counts" in a.what or "change" in a.what:
        with Rig(lanes=3, offloads=False) as r:
            if "counts" in a.what:
                counts(r, rep, a)
            if "change" in a.what:
                change(r, rep, a)


if __name__ == "__main__":
    run_script(main,
        some_of("what", ("rates", "counts", "change")),
        option("--held", action="store_true", help="pace, by EDT out of the pod"),
        option("--changes", type=int, default=20),
        option("--seconds", type=int, default=3),
        option("--settle", type=float, default=1.5))
