#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks what streams get through a cap, 20 and 80 ms away.

The rate on the wire must be 90 % of the cap where the pod's ingress is policed, and 95 %
where departure times hold back the pod's own sockets. Ingress in mode pace keeps the queue of a
sender beyond the node short, as fq_codel does, so it must be 80 %, and no less than with htb and
fq_codel.
Goodput, the bytes that arrive in order, is shown: what was lost at the end of the burst takes
seconds to mend, and an emulated machine reads goodput some 0.1 s off.

All lanes run at once, each with a pod and a limiter of its own; netem on the client's
veth makes the delay. This needs netem, fq and BBR.
"""
import os
import sys
import time

sys.path.insert(0, os.path.dirname(__file__) + "/../harness/python")
from commands import sh
from limiters import FqCodel, Natra, bits, dropped, forgiven
from meter import goodput, wire_rates
from report import skip
from rig import Rig
from script import option, run_script

PORT = 5201
POLICED, PACED, SHORT_QUEUE = 0.90, 0.95, 0.80
LESS_THAN_PEER = 0.02           # of the cap, by chance
RATE = "10M"
PEER = "htb + fq_codel in"
# Each lane has a name, natra's options for a pod, whether the streams go into the pod, and
# what is demanded of them.
LANES = [("police in", (), True, POLICED),
         ("edt out", (), False, PACED),
         ("pace in", ("--ingress-mode", "pace"), True, SHORT_QUEUE),
         (PEER, None, True, None)]


class Lane:
    def __init__(self, r, number, kind, rtt_ms):
        self.kind, options, self.into, self.demanded = kind
        self.rtt_ms = rtt_ms
        self.pod, self.client = r.pods[number], r.clients[number]
        self.meter = r.into(number) if self.into else r.out_of(number)
        self.src, self.dst = (self.client, self.pod) if self.into else \
                (self.pod, self.client)
        r.netem(rtt_ms, [number])
        self.limiter = FqCodel(self.pod) if self.kind == PEER else Natra(self.pod, *options)
        self.limiter.attach(RATE, RATE)

    def sample(self, flows):
        """Return the time and goodput in bytes of the quickest of three readings: an
        emulated machine now and then takes half a second to start one."""
        readings = []
        for _ in range(3):
            start = time.monotonic()
            good = sum(goodput(self.dst, PORT, flows).values())
            end = time.monotonic()
            readings.append((end - start, end, good))
        return min(readings)[1:]

    def dropped(self):
        """Return how many packets natra has dropped since it was attached."""
        return dropped(self.limiter.stats()["ingress" if self.into
                                            else "egress"])


def run(r, rep, a, lanes, congestion, flows):
    for lane in lanes:
        r.elephant(lane.src, lane.dst, PORT, flows, congestion=congestion)
    r.wait_flow(*[lane.meter for lane in lanes])
    time.sleep(a.settle)
    before = [lane.sample(flows) for lane in lanes]
    wire = wire_rates([lane.meter for lane in lanes], a.seconds)
    after = [lane.sample(flows) for lane in lanes]
    r.stop(None)
    cap = bits(RATE)
    peers = {lane.rtt_ms: bits_on_wire / cap
             for lane, bits_on_wire in zip(lanes, wire) if lane.kind == PEER}
    for lane, bits_on_wire, (t0, n0), (t1, n1) in zip(lanes, wire, before, after):
        on_wire = bits_on_wire / cap
        good = (n1 - n0) * 8 / (t1 - t0) / cap
        what = f"{congestion} {flows} flows, {lane.kind} {lane.rtt_ms} ms"
        figures = f"goodput {good:.3f}, on the wire {on_wire:.3f} of the cap"
        if lane.kind == PEER:
            rep.shown(what, figures)
            continue
        demanded = lane.demanded
        if demanded == SHORT_QUEUE:
            demanded = max(demanded, peers[lane.rtt_ms] - LESS_THAN_PEER)
        rep.least(what, on_wire, demanded, " of the cap")
        policed = lane.demanded == POLICED
        rep.most("  not over it", on_wire,
                 1 + (forgiven(cap, a.seconds) if policed else 0.05), " of the cap")
        rep.shown("  natra", f"{figures}, dropped so far {lane.dropped()}")


def have(what, *command):
    try:
        sh(*command)
    except RuntimeError:
        skip(what)


def main(rep, a):
    if not Natra().json("probe")["fq"]:
        skip("CONFIG_NET_SCH_FQ")
    have("CONFIG_NET_SCH_NETEM", "tc", "qdisc", "add", "dev", "lo", "root",
         "netem", "delay", "1ms")
    sh("tc", "qdisc", "del", "dev", "lo", "root")
    sh("modprobe", "tcp_bbr", check=False)
    with open("/proc/sys/net/ipv4/tcp_available_congestion_control") as f:
        if "bbr" not in f.read().split():
            skip("CONFIG_TCP_CONG_BBR")
    wanted = [(kind, int(rtt)) for rtt in a.rtt.split(",") for kind in LANES]
    with Rig(lanes=len(wanted)) as r:
        lanes = [Lane(r, i, *lane) for i, lane in enumerate(wanted)]
        for congestion, flows in zip(a.congestion.split(","), a.flows.split(",")):
            rep.measure(f"{congestion} {flows} flows", run, r, rep, a, lanes,
                        congestion, int(flows))


if __name__ == "__main__":
    run_script(main,
        option("--rtt", default="20,80", help="ms, by comma"),
        option("--congestion", default="cubic,bbr"),
        option("--flows", default="1,8", help="the first with the first of those, and so on"),
        option("--seconds", type=float, default=6),
        option("--settle", type=float, default=5))
