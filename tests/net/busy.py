#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks flows that keep themselves busy, where packets are held, beside htb with fq_codel.

  busy    what is written to a busy TCP connection waits at most 1.2 times as long as with
          htb and fq_codel, with windows of 64 kB and 1 MB and three round trips
  l4s     a sender of ECT(1) that answers each mark a little has its share beside CUBIC,
          and a short queue
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
from limiters import FqCodel, Natra, bits
from report import skip
from rig import Rig
from script import chosen, option, run_script

PORT, QUIC_PORT = 5201, 5301
CAP = "10M"
WINDOWS = {"64k": 65536, "1M": 1 << 20}
RTTS_MS = (0.2, 20, 100)
MOST = 1.2                      # times the figure of fq_codel
# A packet takes 0.6 ms of it, and an emulated CPU carries it.
SHARED_CAP = "20M"
SHARE, SHARE_BY = 0.5, 0.2      # 0.5 +- 0.1
# The kernel's sysctl tcp_ecn.
ECN_OFF, ECN_CLASSIC, ECN_ACCURATE = 0, 1, 3


def limited(r, limiter, cap, out):
    lim = limiter(r.pod)
    return lim.attach(*((None, cap) if out else (cap, None)))


def limiters(out):
    return {"natra": lambda pod: Natra(pod, *(() if out else ("--ingress-mode", "pace"))),
            "htb + fq_codel": FqCodel}


def ends(r, out, lane=0):
    return (r.pod, r.clients[lane]) if out else (r.clients[lane], r.pod)


def rr(*args):
    return (os.environ["NATRA_RR"], *map(str, args))


def busy_once(r, window, source, sink, a):
    server = sink.popen(*rr("sink", PORT, window))
    r.wait_port(sink, PORT)
    got = json.loads(source.run(*rr("busy", sink.ip, PORT, a.settle, a.seconds),
                                timeout=a.settle + a.seconds + 20))
    r.stop([server])
    return got["p50_ms"], got["p99_ms"], got["count"] * 1024 * 8 / a.seconds / 1e6


def busy(r, rep, out, a):
    for rtt in RTTS_MS:
        r.netem(rtt)
        for name, window in WINDOWS.items():
            got = {kind: [] for kind in limiters(out)}
            for _ in range(a.rounds):
                for kind, limiter in limiters(out).items():
                    lim = limited(r, limiter, CAP, out)
                    got[kind].append(busy_once(r, window, *ends(r, out), a))
                    lim.detach()
            compare(rep, f"busy, {'out of' if out else 'into'} the pod, {rtt} ms, {name}", got)


def compare(rep, what, got):
    median = {kind: [statistics.median(column) for column in zip(*rows)]
              for kind, rows in got.items()}
    for kind, figures in median.items():
        rep.shown(f"{what}, {kind}: p50, p99 ms, Mbit/s",
                  ", ".join(f"{f:.1f}" for f in figures))
    for i, name in enumerate(("p50", "p99")):
        rep.most(f"  {name}, times fq_codel's",
                 median["natra"][i] / median["htb + fq_codel"][i], MOST)


def l4s(r, rep, out, a):
    """Datagrams of ECT(1) beside a stream of CUBIC, in one direction, between two pairs."""
    source, sink = ends(r, out)
    lim = limited(r, limiters(out)["natra"], SHARED_CAP, out)
    server = sink.popen(os.environ["NATRA_QUIC"], "server", str(QUIC_PORT))
    r.wait_port(sink, QUIC_PORT, "udp")
    procs = r.elephant(*ends(r, out, 1), PORT)
    time.sleep(a.settle)
    got = json.loads(source.run(os.environ["NATRA_QUIC"], "client", sink.ip, str(QUIC_PORT),
                                str(a.seconds), "l4s", timeout=a.seconds + 20))
    r.stop([server, *procs])
    lim.detach()
    what = f"l4s, {'out of' if out else 'into'} the pod"
    rep.shown(f"{what}: p50, p99 ms, lost", f"{got['p50_ms']}, {got['p99_ms']}, {got['lost']}")
    rep.near("  share of the limit", got["bits_per_sec"] / bits(SHARED_CAP), SHARE, SHARE_BY)


def carried(client, out):
    link, = json.loads(client.run("ip", "-s", "-j", "link", "show", "dev", "eth0"))
    return link["stats64"]["rx" if out else "tx"]["bytes"]


def accecn(r, rep, out, a):
    """Two streams, of which the second one's other end knows no ECN."""
    word = ECN_ACCURATE if int(os.uname().release.split(".")[0]) >= 7 else ECN_CLASSIC
    for ns, ecn in ((r.pod, word), (r.clients[0], word), (r.clients[1], ECN_OFF)):
        ns.sysctl("net.ipv4.tcp_ecn", str(ecn))
    lim = limited(r, limiters(out)["natra"], CAP, out)
    procs = [p for lane in (0, 1) for p in r.elephant(*ends(r, out, lane), PORT + lane)]
    time.sleep(a.settle)
    before = [carried(client, out) for client in r.clients]
    time.sleep(a.seconds)
    rates = [carried(client, out) - b for client, b in zip(r.clients, before)]
    marked = lim.stats()["egress" if out else "ingress"]["marked"]["packets"]
    r.stop(procs)
    lim.detach()
    rep.near(f"accecn, {'out of' if out else 'into'} the pod: its share",
             rates[0] / sum(rates), SHARE, SHARE_BY)
    rep.least("  packets marked", marked, 1)


def main(rep, a):
    parts = {"busy": busy, "l4s": l4s, "accecn": accecn}
    if not Natra().json("probe")["fq"]:
        skip("CONFIG_NET_SCH_FQ")
    for name, part in chosen(parts, a.only).items():
        for out in (True, False):
            with Rig(lanes=2) as r:
                rep.measure(name, part, r, rep, out, a)


if __name__ == "__main__":
    run_script(main,
        option("--only", help="of the above, by comma"),
        option("--rounds", type=int, default=1),
        option("--settle", type=float, default=3),
        option("--seconds", type=float, default=5))
