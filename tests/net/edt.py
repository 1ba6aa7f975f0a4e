#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks that fq holds what a pod sends over its rate, and that no TCP stream loses of it.

  grid      TCP of 1 to 16 flows: the wire rate, without a drop or a
            retransmission, shared alike
  udp       a sender of too much is blocked by its socket buffer, and loses little
  stamps    departure times that a datagram's sender asks for
  admin     a pod with CAP_NET_ADMIN replaces fq, or sends around it
  qdisc     one that was there before is left alone
  mice      requests whose answers leave beside streams that are paced
  gso       the size of a local TCP's packets follows a low rate, and is as before
            after it

This needs fq. The grid has each rate and each number of flows.
"""
import contextlib
import json
import os
import socket
import statistics
import sys
import time

sys.path.insert(0, os.path.dirname(__file__) + "/../harness/python")
from frames import Sender, eth, ip4, udp
from limiters import Natra, bits, check_delays, dropped, total
from meter import ETH_IPV4_UDP, goodput, wire_rates
from report import skip
from rig import Rig
from script import chosen, option, run_script

CELLS = "1M:1,10M:16,100M:8,1G:1"
PORT = 5201
GSO_BITS = 65536 * 8
# At a low rate natra keeps a GSO packet as short as this.
GSO_S = 1 / 200
OVERTAKEN = 0.005
GSO_SEGS = 65535        # the default of an interface
# These are natra's defaults, and the rate that the parts behind the grid use.
MOUSE_S, BURST_S, HORIZON_S = 0.1, 0.5, 2
RATE = "10M"
MBIT = 1e6
# REQUEST_MS is how much later the median of REQUESTS may be on a busy machine.
REQUESTS, REQUEST_MS = 15, 100
REQUEST_PAUSE_S = 0.05


def podside_modes():
    return [m for m in Natra.modes() if m.endswith("podside")]


def tcp_counters(ns):
    """Return the kernel's TCP counters by name."""
    counters = {}
    for name in ("snmp", "netstat"):
        with ns.netfile(name) as f:
            rows = [s.split() for s in f if s.startswith("Tcp")]
        for names, values in zip(rows[::2], rows[1::2]):
            counters.update(zip(names[1:], map(int, values[1:])))
    return counters


def jain(values):
    squares = sum(v * v for v in values)
    return sum(values) ** 2 / (len(values) * squares) if squares else 0


def stepped_rate(meter, seconds):
    """Return the bit/s on the wire from one arrival to another: at 1 Mbit/s a GSO
    packet takes half a second, and one more or less in the span would use up the
    tolerance."""
    end = time.monotonic() + seconds
    _, have = meter.read()
    first = last = None
    while time.monotonic() < end:
        time.sleep(0.005)
        now, n = meter.read()
        if n != have:
            have, last = n, (now, n)
            first = first or last
    if not first or first is last:
        raise RuntimeError(f"less than two arrivals in {seconds} s")
    return (last[1] - first[1]) * 8 / (last[0] - first[0])


def nothing_lost(r, rep, lim, before, after, refused=0, overtaken=0):
    """Check that nothing was lost while natra paced.

    before and after are TCP's counters around that time. In the burst before it the
    streams run as fast as the machine does, and an emulated one loses some packets in
    the receiver's backlog. A loss probe, which TCP sends after a silence, is no
    retransmission. Up to `overtaken` retransmissions may be of packets that were not
    lost. What natra drops of a TCP of this machine is none: TCP is told, and sends it
    later.
    """
    refused = dropped(lim.stats()["egress"]) - refused
    again, probes = (after[k] - before[k]
                     for k in ("RetransSegs", "TCPLossProbes"))
    again = max(0, again - probes)
    rep.shown("  packets that natra sent back to TCP", refused)
    rep.equal("  dropped by fq; retransmitted",
              (fq_drops(r.pod), max(0, again - overtaken)), (0, 0), exact=False)


def fq_drops(pod):
    root = json.loads(pod.run("tc", "-s", "-j", "qdisc", "show", "dev",
                              "eth0", "root"))[0]
    assert root["kind"] == "fq"
    return root["drops"]


def cell(r, rep, a, mode, rate, flows):
    """Measure egress alone, so that only acknowledgements come back in the same
    lane."""
    cap = bits(rate)
    # Sending a packet of each flow takes this long.
    turn_s = flows * min(GSO_BITS / cap, GSO_S)
    lim = Natra(r.pod, "--attach-mode", mode).attach(None, rate)
    unused = tcp_counters(r.pod)
    r.elephant(r.pod, r.client, PORT, flows)
    meter = r.out_of()
    r.wait_flow(meter)
    time.sleep(max(a.settle, 4 * turn_s))
    start, before = goodput(r.client, PORT, flows), tcp_counters(r.pod)
    # A flow that comes out of the burst in slow start has more than two packets in the
    # queue.
    refused = dropped(lim.stats()["egress"])
    rep.shown("  refused in the burst", refused)
    got = stepped_rate(meter, a.seconds)
    end, after = goodput(r.client, PORT, flows), tcp_counters(r.pod)
    rep.near(f"tcp {mode} {rate} {flows} flows", got / MBIT, cap / MBIT, 0.02,
             " Mbit/s")
    # The sender's CPUs take turns with fq, and packets that one CPU has handed on may
    # overtake those of another.
    overtaken = int(OVERTAKEN * (after["OutSegs"] - before["OutSegs"])) \
        if cap >= 1e9 else 0
    nothing_lost(r, rep, lim, before, after, refused, overtaken)
    rep.shown("  retransmitted in the burst",
              before["RetransSegs"] - unused["RetransSegs"])
    if flows > 1:
        index = jain([end[k] - start.get(k, 0) for k in end])
        if flows == 8 and a.seconds >= 10 * turn_s:
            rep.least("  Jain's index of fairness", index, 0.9)
        else:
            rep.shown("  Jain's index of fairness", f"{index:.3f}")
    r.stop(None)
    lim.detach()


def carried(r, rep, flows):
    """Return the bit/s of that many streams out of the pod, with fq and no limit."""
    r.pod.run("tc", "qdisc", "replace", "dev", "eth0", "root", "fq")
    r.elephant(r.pod, r.client, PORT, flows)
    meter = r.out_of()
    r.wait_flow(meter)
    got = wire_rates([meter], 1)[0]
    r.stop(None)
    r.pod.run("tc", "qdisc", "del", "dev", "eth0", "root")
    rep.shown(f"no limiter, {flows} flows", f"{got / MBIT:.0f} Mbit/s")
    return got


def grid(r, rep, a):
    cells = [(rate, int(flows)) for rate, flows in
             (c.split(":") for c in a.cells.split(","))]
    modes = podside_modes()
    most = {n: carried(r, rep, n) for n in
            sorted({n for rate, n in cells if bits(rate) >= 1e8})}
    for i, (rate, flows) in enumerate(cells):
        if most.get(flows, 1e99) < 1.5 * bits(rate):
            rep.shown("left out, too much for this machine",
                      f"{rate} {flows} flows")
        else:
            rep.measure(f"{rate} {flows} flows", cell, r, rep, a,
                        modes[i % len(modes)], rate, flows)


class Flood:
    """Sends datagrams out of the pod at three times RATE."""

    def __init__(self, r, *options):
        self.r = r
        r.load(r.client, "udp-sink", 5300)
        r.wait_port(r.client, 5300, "udp")
        self.meter = r.out_of(0, ETH_IPV4_UDP)
        _, before = self.meter.read()
        self.sender = r.load(r.pod, "udp-send", r.client.ip, 5300,
                             "--rate", 3 * bits(RATE), *options)
        r.wait_flow(self.meter)
        self.start = time.monotonic(), before

    def rate(self, seconds, settle=0):
        time.sleep(settle)
        return wire_rates([self.meter], seconds)[0]

    def so_far(self):
        """Return the seconds and the bits on the wire since the start."""
        now, n = self.meter.read()
        return now - self.start[0], (n - self.start[1]) * 8

    def end(self):
        """End the sender and return what it reports."""
        result = self.r.load_end(self.sender, self.r.pod, now=True)
        self.r.stop(None)
        return result


def near_cap(rep, what, rate):
    rep.near(what, rate / MBIT, bits(RATE) / MBIT, 0.02, " Mbit/s")


def spared(rep, stats):
    """Check that a local sender of datagrams hears of its queue by few drops only. With
    1/32 of them 1000 packets have 31 +- 6."""
    rep.most("  dropped by natra", 100 * dropped(stats) / total(stats, "packets"),
             4.5, " %")


def blocked(r, rep, a):
    lim = Natra(r.pod).attach(None, RATE)
    flood = Flood(r)
    near_cap(rep, f"udp {RATE} x3", flood.rate(a.seconds, 1.5))
    stats = lim.stats()["egress"]
    result = flood.end()
    # Two thirds of what the sender offers is too much for the rate, but nothing was too
    # much for the burst.
    rep.least("  time that the sender is blocked by its socket",
              result["blocked"], 0.5)
    rep.equal("  refused by the socket, dropped by fq",
              (result["refused"], fq_drops(r.pod)), (0, 0), exact=False)
    spared(rep, stats)
    check_delays(rep, f"udp {RATE} x3", lim.stats()["egress"])
    lim.detach()


def some(r, clock, ahead_s, count=100):
    """Send datagrams with departure times, together a tenth of the rate. Return how
    many were sent, and what arrived."""
    sink = r.load(r.client, "udp-recv", 5300)
    r.wait_port(r.client, 5300, "udp")
    sender = r.load(r.pod, "udp-send", r.client.ip, 5300, "--rate",
                    bits(RATE) / 10, "--size", 100, "--count", count,
                    "--clock", clock, "--ahead", ahead_s)
    result = r.load_end(sender, r.pod)
    time.sleep(max(0, min(ahead_s, 1)) + 0.5)
    got = r.load_end(sink, r.client, now=True)
    return result["count"], got


def stamps(r, rep):
    """Test departure times that a sender asks for. Before Linux 6.11 such a stamp does
    not say which clock it is of, but those of the others are far from now."""
    r.pod.run("tc", "qdisc", "replace", "dev", "eth0", "root", "fq")
    sent, got = some(r, "tai", 0)
    # fq of Linux 7.2 heeds the clock; without natra that of the others drops these.
    rep.shown("of 100 stamps of CLOCK_TAI fq lets pass without natra", got["count"])
    r.pod.run("tc", "qdisc", "del", "dev", "eth0", "root")

    lim = Natra(r.pod).attach(None, RATE)
    for clock, ahead_s, kept in (("tai", 0.3, False), ("realtime", 0.3, False),
                                 ("monotonic", 0.3, True),
                                 ("monotonic", 20, False)):
        sent, got = some(r, clock, ahead_s)
        what = f"stamps {ahead_s:g} s ahead, {clock}"
        rep.equal(f"{what}: all arrive", got["count"], sent)
        if kept:
            rep.least("  not before", got["least_ms"], ahead_s * 1e3, " ms")
        else:
            rep.most("  as soon as the rate lets them", got["most_ms"], 200,
                     " ms")
    for clock in ("monotonic", "tai"):
        flood = Flood(r, "--clock", clock, "--ahead", 0.05)
        near_cap(rep, f"udp {RATE} x3, stamps of {clock}", flood.rate(2, 1.5))
        flood.end()
    rep.equal("  dropped by fq", fq_drops(r.pod), 0, exact=False)
    spared(rep, lim.stats()["egress"])
    lim.detach()


def other_frames(r, rep):
    """Test frames with a tag inside, to which the kernel gives no type of a stamp."""
    def send(seconds):
        begin = time.monotonic()
        with open(f"/sys/class/net/{r.pod.host}/statistics/rx_bytes", encoding="ascii") as f:
            before, sent = int(f.read()), 0
            while (past := time.monotonic() - begin) < seconds:
                while sent < 3 * bits(RATE) / 8 * past:
                    sent += len(frame)
                    with contextlib.suppress(OSError):
                        sender.plain.send(frame)
                time.sleep(0.001)
            f.seek(0)
            return (int(f.read()) - before) * 8 / past

    lim = Natra(r.pod).attach(None, RATE)
    frame = eth(0x0800, ip4(17, udp(bytes(1200))), (0x8100, 5))
    sender = Sender(r.pod, "eth0")
    sender.plain.setblocking(False)
    send(1.5)
    near_cap(rep, f"frames with a tag inside, {RATE} x3", send(2))
    rep.equal("  dropped by fq", fq_drops(r.pod), 0, exact=False)
    rep.equal("  dropped beyond the horizon",
              lim.stats()["egress"]["dropped_horizon"]["packets"], 0)
    lim.detach()


def reported(rep, lim, words):
    """Check what natractl check reports; the CNI's CHECK calls the same function."""
    p = lim.run("check", lim.id)
    text = p.stderr.strip() or p.stdout.strip()
    rep.check("  natractl check says", str(p.returncode), f"3, '{words}'",
              p.returncode == 3 and words in text)
    if words not in text:
        rep.shown("  it says", text)


def admin_fq(r, rep, a):
    """The pod replaces fq, so that nothing holds the packets that have a departure
    time. Each is charged all the same, and beyond the horizon natra drops."""
    lim = Natra(r.pod).attach(None, RATE)
    r.pod.run("tc", "qdisc", "replace", "dev", "eth0", "root", "pfifo")
    flood = Flood(r)
    time.sleep(2.5)
    span, n = flood.so_far()
    # A flow is free until it is heavy, as it is with fq. A busy machine may see the flood begin,
    # or run its sender, 0.2 s late.
    ahead = MOUSE_S + BURST_S + HORIZON_S
    rep.near("pfifo for fq: ahead of the rate by burst and horizon",
             n / bits(RATE) - span, ahead, 0.2 / ahead, " s")
    near_cap(rep, "  and from then on", flood.rate(a.seconds))
    flood.end()
    rep.true("  natra drops what is over",
             lim.stats()["egress"]["dropped_horizon"]["packets"] > 0)
    reported(rep, lim, "fq is not the root qdisc of 'eth0'")
    # natra leaves the pod's qdisc alone, as it does with any that it finds.
    lim.attach(None, RATE)
    rep.equal("  attached again: EDT", lim.edt_active(), False)
    lim.detach()
    r.pod.run("tc", "qdisc", "del", "dev", "eth0", "root")


def around_the_hooks(r, rep, mode, seen):
    """A packet socket may go around the qdisc and the egress hooks; the host side sees
    what comes out."""
    lim = Natra(r.pod, "--attach-mode", mode).attach(RATE, RATE)
    frame = eth(0x0800, ip4(17, udp(bytes(100))))
    sender = Sender(r.pod, "eth0")
    counts = []
    for bypass in (0, 1):
        before = total(lim.stats()["egress"], "packets")
        sender.bypass_qdisc(bypass)
        for _ in range(100):
            sender.plain.send(frame)
        counts.append(total(lim.stats()["egress"], "packets") - before)
    rep.equal(f"{mode}: of 100 frames seen; of 100 with PACKET_QDISC_BYPASS",
              tuple(counts), (100, seen))
    lim.detach()


def admin(r, rep, a):
    rep.measure("admin: fq", admin_fq, r, rep, a)
    modes = Natra.modes()
    hostside = next(m for m in modes if m.endswith("hostside"))
    around_the_hooks(r, rep, modes[0], 0)
    around_the_hooks(r, rep, hostside, 100)


def root_of(pod):
    return pod.run("tc", "qdisc", "show", "dev", "eth0", "root")


def other_mask(r, rep, lim):
    """Change an option of natra's fq on which mice depend, as somebody else may."""
    def change():
        r.pod.run("tc", "qdisc", "change", "dev", "eth0", "root", "handle", "6e61:",
                  "fq", "orphan_mask", "1023")

    change()
    reported(rep, lim, "fq of 'eth0' has the orphan_mask 1023, not 65535")
    lim.attach(None, RATE, "--sli", "on")
    rep.true("  attached again: fq has orphan_mask 65535",
             "orphan_mask 65535" in root_of(r.pod))
    rep.equal("  natractl check", lim.run("check", lim.id).returncode, 0)
    change()


def qdisc(r, rep, a):
    for words in ["pfifo", "limit", "500"], ["fq"]:
        r.pod.run("tc", "qdisc", "add", "dev", "eth0", "root", "handle",
                  "77:", *words)
        before = root_of(r.pod)
        lim = Natra(r.pod)
        p = lim.run("attach", "eth0", "--netns", r.pod.path, "--id", lim.id,
                    "--egress-rate", RATE, "--edt-pacing", "on")
        rep.check(f"{words[0]} was there: --edt-pacing on", f"exit {p.returncode}",
                  f"exit 1, '{words[0]}'", p.returncode == 1 and
                  f"qdisc '{words[0]}' (handle 77:)" in p.stderr)
        lim.attach(None, RATE)
        rep.equal("  --edt-pacing auto: EDT; the qdisc",
                  (lim.edt_active(), root_of(r.pod)), (False, before))
        lim.detach()
        rep.equal("  after it", root_of(r.pod), before)
        r.pod.run("tc", "qdisc", "del", "dev", "eth0", "root")
    lim = Natra(r.pod).attach(None, RATE)
    lim.attach(None, RATE, "--sli", "on")
    rep.equal("natra's own: after it was replaced, natractl check",
              lim.run("check", lim.id).returncode, 0)
    rep.true("  EDT", lim.edt_active())
    other_mask(r, rep, lim)
    lim.detach()
    rep.true("  detached: fq is gone", " fq " not in root_of(r.pod))


def request_ms(r):
    """Return how many ms a small file takes over a new connection."""
    begin = time.monotonic()
    with r.client:
        s = socket.create_connection((r.pod.ip, 80), timeout=5)
    with s:
        s.sendall(b"GET /file HTTP/1.0\r\n\r\n")
        while s.recv(65536):
            pass
    return (time.monotonic() - begin) * 1e3


def median_request_ms(r):
    """Return the median of several requests. They follow each other, so that they do
    not queue on a slow machine, and with a pause, so that on a fast one a stream's
    packets leave meanwhile, one in 50 ms."""
    took_ms = []
    for _ in range(REQUESTS):
        took_ms.append(request_ms(r))
        time.sleep(REQUEST_PAUSE_S)
    return statistics.median(took_ms)


def mice(r, rep, a):
    """Four streams have two packets of 50 ms each in fq: an answer that waited like
    them would take 400 ms more, twice."""
    r.nginx()
    base = median_request_ms(r)
    rep.shown("a request alone, p50", f"{base:.1f} ms")
    lim = Natra(r.pod).attach(None, RATE)
    streams = r.elephant(r.pod, r.client, PORT, 4)
    r.wait_flow(r.out_of())
    time.sleep(a.settle)
    before = lim.stats()["egress"]
    beside = median_request_ms(r)
    after = lim.stats()["egress"]
    r.stop(streams)
    lim.detach()
    rep.most("a request beside paced streams: p50", beside, base + REQUEST_MS, " ms")
    paced, passed = (after[k]["packets"] - before[k]["packets"]
                     for k in ("paced", "mice"))
    rep.least("  packets of streams that were paced meanwhile", paced, 5)
    rep.least("  packets of mice", passed, 3 * REQUESTS)
    r.stop(None)


def gso_segs(ns):
    return json.loads(ns.run("ip", "-d", "-j", "link", "show", "eth0"))[0][
            "gso_max_segs"]


def gso(r, rep):
    def some(rate):
        if bits(rate) * GSO_S >= GSO_BITS:
            return GSO_SEGS
        return max(2, int(bits(rate) * GSO_S / 8) // 1514)

    lim = Natra(r.pod)
    for rate, words in (("1M", ()), ("4M", ()), ("1M", ("--sli", "on")),
                        ("100k", ("--sli", "on"))):
        lim.attach(None, rate, *words)
        rep.equal(f"{' '.join(('attach', rate, *words))}: segments in a packet",
                  gso_segs(r.pod), some(rate))
    for rate in ("100M", "2M"):
        lim.run("set", lim.id, "--egress-rate", rate)
        rep.equal(f"set {rate}", gso_segs(r.pod), some(rate))
    lim.detach()
    rep.equal("detached", gso_segs(r.pod), GSO_SEGS)
    r.pod.run("ip", "link", "set", "eth0", "gso_max_segs", "99")
    lim.attach(None, "1M")
    rep.equal("another one's size is left: attach", gso_segs(r.pod), 99)
    lim.detach()
    rep.equal("  detached", gso_segs(r.pod), 99)
    r.pod.run("ip", "link", "set", "eth0", "gso_max_segs", str(GSO_SEGS))


def main(rep, a):
    parts = {"grid": lambda: grid(r, rep, a),
             "udp": lambda: rep.measure("udp", blocked, r, rep, a),
             "stamps": lambda: (rep.measure("stamps", stamps, r, rep),
                                rep.measure("tagged", other_frames, r, rep)),
             "admin": lambda: admin(r, rep, a),
             "qdisc": lambda: rep.measure("qdisc", qdisc, r, rep, a),
             "mice": lambda: rep.measure("mice", mice, r, rep, a),
             "gso": lambda: gso(r, rep)}
    if not Natra().json("probe")["fq"]:
        skip("CONFIG_NET_SCH_FQ")
    with Rig() as r:
        for part in chosen(parts, a.only).values():
            part()


if __name__ == "__main__":
    run_script(main,
        option("--cells", default=CELLS, help=f"of the grid ({CELLS})"),
        option("--seconds", type=float, default=3),
        option("--settle", type=float, default=1.5),
        option("--only", help="of the above, by comma"))
