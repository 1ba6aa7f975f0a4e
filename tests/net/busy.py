#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks flows that keep themselves busy, where packets are held, beside htb with fq_codel.

  busy    what is written to a busy TCP connection waits at most 1.2 times as long as with
          htb and fq_codel, with windows of 64 kB and 1 MB and three round trips
  l4s     DCTCP with ECT(1), which answers each mark a little, has its share beside CUBIC, and
          datagrams that do so a short queue. This needs nft and tcp_dctcp.
  accecn  a stream with ECN, on Linux 7 with AccECN, beside one without

Each is measured out of the pod with departure times, and into it with --ingress-mode pace. The
limiters take turns, and medians are compared. This needs fq and netem. Times mean little on a
busy machine, and an emulated CPU puts off a receiver by some ms: only `accecn` runs nightly.
"""
import json
import os
import statistics
import sys
import time

sys.path.insert(0, os.path.dirname(__file__) + "/../harness/python")
from limiters import Natra, bits
from report import skip
from rig import Rig
from script import chosen, option, run_script
from turns import NATRA, OPTIONS, PEER, Turns, ends, limited, limiters, way

PORT, QUIC_PORT = 5201, 5301
CAP = "10M"
WINDOWS = {"64k": 65536, "1M": 1 << 20}
RTTS_MS = (0.2, 20, 100)
MOST = 1.2                      # times the figure of fq_codel
SHARE, SHARE_BY = 0.5, 0.2      # 0.5 +- 0.1
# The most that the queue of L4S may be: RFC 9332 has it at 1 ms.
L4S_MS = 2
# DCTCP sends ECT(0).
TO_ECT_1 = """table ip l4s {
 chain out {
  type filter hook output priority mangle
  ip ecn ect0 ip ecn set ect1
 }
}
"""
# The kernel's sysctl tcp_ecn.
ECN_OFF, ECN_CLASSIC, ECN_ACCURATE = 0, 1, 3


def rr(*args):
    return (os.environ["NATRA_RR"], *map(str, args))


def busy_once(r, window, source, sink, a):
    sink.popen(*rr("sink", PORT, window))
    r.wait_port(sink, PORT)
    got = json.loads(source.run(*rr("busy", sink.ip, PORT, a.settle, a.seconds),
                                timeout=a.settle + a.seconds + 20))
    return got["p50_ms"], got["p99_ms"], got["count"] * 1024 * 8 / a.seconds / 1e6


def busy(r, rep, out, a):
    turns = Turns(rep, out, a)
    for rtt in RTTS_MS:
        r.netem(rtt)
        for name, window in WINDOWS.items():
            rep.measure(f"busy {rtt} {name}", busy_cell, r, rep, turns,
                        f"busy, {rtt} ms, {name}", window, a)


def busy_cell(r, rep, turns, what, window, a):
    median = turns.medians(r, what, CAP,
                           lambda source, sink: busy_once(r, window, source, sink, a))
    for i, name in enumerate(("p50", "p99")):
        rep.most(f"  {name}, times fq_codel's", median[NATRA][i] / median[PEER][i], MOST)


def carried(client, out):
    link, = json.loads(client.run("ip", "-s", "-j", "link", "show", "dev", "eth0"))
    return link["stats64"]["rx" if out else "tx"]["bytes"]


def first_of_two(r, out, a, congestion="cubic"):
    """Return the part of the stream between the first pair of what two of them carry."""
    procs = [*r.elephant(*ends(r, out), PORT, congestion=congestion),
             *r.elephant(*ends(r, out, 1), PORT + 1)]
    time.sleep(a.settle)
    before = [carried(client, out) for client in r.clients]
    time.sleep(a.seconds)
    rates = [carried(client, out) - b for client, b in zip(r.clients, before)]
    r.stop(procs)
    return rates[0] / sum(rates)


def datagrams(r, out, a):
    """Return the median and the 99th percentile of the ways of datagrams beside a stream."""
    source, sink = ends(r, out)
    server = sink.popen(os.environ["NATRA_QUIC"], "server", str(QUIC_PORT))
    r.wait_port(sink, QUIC_PORT, "udp")
    procs = r.elephant(*ends(r, out, 1), PORT)
    time.sleep(a.settle)
    got = json.loads(source.run(os.environ["NATRA_QUIC"], "client", sink.ip, str(QUIC_PORT),
                                str(a.seconds), "l4s", timeout=a.seconds + 20))
    r.stop([server, *procs])
    return got["way_p50_ms"], got["way_p99_ms"]


def l4s(r, rep, out, a):
    """The kernel's DCTCP, whose packets get ECT(1), has its share beside CUBIC. The queue is
    that of datagrams, whose ways are known one by one."""
    for ns in ends(r, out):
        ns.sysctl("net.ipv4.tcp_ecn", str(ECN_CLASSIC))
    ends(r, out)[0].run("nft", "-f", "-", input=TO_ECT_1)
    for cap in a.l4s_caps.split(","):
        rep.measure(f"l4s {cap}", l4s_cell, r, rep, out, cap, a)


def l4s_cell(r, rep, out, cap, a):
    shares, ways = [], []
    for _ in range(a.rounds):
        lim = limited(r, limiters(out)[NATRA], cap, out)
        shares.append(first_of_two(r, out, a, "dctcp"))
        ways.append(datagrams(r, out, a))
        lim.detach()
    p50, p99 = (statistics.median(column) for column in zip(*ways))
    rep.near(f"l4s, {cap}, {way(out)}: DCTCP's part of both", statistics.median(shares), SHARE, SHARE_BY)
    rep.shown("  a datagram's way, p50", f"{p50:.3f} ms")
    rep.most("  p99", p99, L4S_MS, " ms")


def accecn(r, rep, out, a):
    rep.measure("accecn", accecn_cell, r, rep, out, a)


def accecn_cell(r, rep, out, a):
    """Two streams, of which the second one's other end knows no ECN."""
    word = ECN_ACCURATE if int(os.uname().release.split(".")[0]) >= 7 else ECN_CLASSIC
    for ns, ecn in ((r.pod, word), (r.clients[0], word), (r.clients[1], ECN_OFF)):
        ns.sysctl("net.ipv4.tcp_ecn", str(ecn))
    shares, marked = [], 0
    for _ in range(a.rounds):
        lim = limited(r, limiters(out)[NATRA], CAP, out)
        shares.append(first_of_two(r, out, a))
        marked += lim.stats()["egress" if out else "ingress"]["marked"]["packets"]
        lim.detach()
    rep.near(f"accecn, {way(out)}: its part of both", statistics.median(shares), SHARE, SHARE_BY)
    if not out:                 # backpressure leaves a local sender hardly any to mark
        rep.least("  packets marked", marked, 1)


def main(rep, a):
    parts = {"busy": busy, "l4s": l4s, "accecn": accecn}
    if not Natra().json("probe")["fq"]:
        skip("CONFIG_NET_SCH_FQ")
    if a.rounds > 1:
        rep.tries = 1           # the median of several rounds needs no second try
    for part in chosen(parts, a.only).values():
        for out in (True, False):
            with Rig(lanes=2) as r:
                part(r, rep, out, a)


if __name__ == "__main__":
    run_script(main,
        option("--only", help="of the above, by comma"), *OPTIONS,
        # Of the first one a packet takes 0.6 ms; an emulated CPU carries it.
        option("--l4s-caps", default="20M"),
        option("--settle", type=float, default=3),
        option("--seconds", type=float, default=5))
