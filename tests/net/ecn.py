#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks ECN: the cap holds, CE arrives, and a sender that ignores it gains
nothing if it is alone.

Where egress is paced by departure times natra marks nothing that leaves the pod. The
marks are therefore tested with --edt-pacing off, and the paced run is only to hold the cap.
With a round trip of 20 ms and more, which needs netem, marks alone must be enough: nothing
is dropped in the steady state, and the cap is used.
"""
import os
import sys
import time

sys.path.insert(0, os.path.dirname(__file__) + "/../harness/python")
from limiters import Natra, bits, dropped, forgiven, stall
from meter import ETH_IPV4_UDP, wire_rates
from namespaces import Pod
from report import skip
from rig import Rig
from script import option, run_script

WAYS = ("in", "out")
DIRECTIONS = ("ingress", "egress")


def sample(meters, lims):
    """Return the packets with CE, natra's marks and its drops, per direction."""
    stats = [lim.stats()[d] for lim, d in zip(lims, DIRECTIONS)]
    return [(m.ce(), s["marked"]["packets"], dropped(s))
            for m, s in zip(meters, stats)]


def tcp(r, rep, a, name, rate, options, steady=False, flows=1):
    """Run TCP. If steady, there must be CE only, and no drop at all after settling."""
    lims = [Natra(pod, *options).attach(rate, rate) for pod in r.pods]
    edt = lims[1].edt_active()
    r.elephant(r.clients[0], r.pods[0], 5201, flows)
    r.elephant(r.pods[1], r.clients[1], 5201, flows)
    meters = [r.into(0), r.out_of(1)]
    r.wait_flow(*meters)
    # Over a longer round trip the first reductions of the window take longer.
    time.sleep(a.settle * (3 if steady else 1))
    before = sample(meters, lims)
    got = wire_rates(meters, a.seconds)
    after = sample(meters, lims)
    for i, way in enumerate(WAYS):
        ce, marked, lost = (y - x for x, y in zip(before[i], after[i]))
        what = f"tcp {name} {rate} {way}"
        paced = edt and way == "out"
        policed = forgiven(bits(rate), a.seconds)
        if steady:
            # A flow that only ever sees marks reduces its window now and then; it must
            # neither get past the cap nor leave much of it.
            rep.most(f"{what}: rate", got[i] / 1e6, (1 + policed) * bits(rate) / 1e6,
                     " Mbit/s")
            rep.least(f"{what}: rate", got[i] / 1e6, 0.9 * bits(rate) / 1e6,
                      " Mbit/s")
        else:
            rep.near(f"{what}: rate", got[i] / 1e6, bits(rate) / 1e6,
                     0.02 if paced else policed, " Mbit/s")
        if not paced:
            rep.check(f"{what}: CE seen", str(ce), "> 0", ce > 0, exact=False)
        if steady:
            rep.equal(f"{what}: drops in the steady state", lost, 0,
                      exact=False)
        rep.shown("  natra", f"marked {marked}, dropped {lost}")
    r.stop(None)
    for lim in lims:
        lim.detach()


def udp(r, rep, a, rate, options):
    """Send datagrams with ECT at three times the cap, whatever is marked."""
    lims = [Natra(pod, *options).attach(rate, rate) for pod in r.pods]
    edt, seconds = lims[1].edt_active(), min(a.seconds, 4)
    lanes = ((r.clients[0], r.pods[0]), (r.pods[1], r.clients[1]))
    for src, dst in lanes:
        r.load(dst, "udp-sink", 5300)
        r.wait_port(dst, 5300, "udp")
        r.load(src, "udp-send", dst.ip, 5300, "--tos", 2,
               "--rate", 3 * bits(rate))
    meters = [r.into(0, ETH_IPV4_UDP), r.out_of(1, ETH_IPV4_UDP)]
    r.wait_flow(*meters)
    time.sleep(1.5)
    before = sample(meters, lims)
    got = wire_rates(meters, seconds)
    after = sample(meters, lims)
    for i, way in enumerate(WAYS):
        ce, _, lost = (y - x for x, y in zip(before[i], after[i]))
        rep.near(f"udp ECT x3 {rate} {way} ({' '.join(options)})",
                 got[i] / 1e6, bits(rate) / 1e6,
                 0.02 if edt and way == "out" else stall(seconds), " Mbit/s")
        rep.shown("  natra", f"CE seen {ce}, dropped {lost}")
    r.stop(None)
    for lim in lims:
        lim.detach()


def have_netem():
    probe = Pod("probe", 99)
    try:
        probe.run("tc", "qdisc", "add", "dev", "eth0", "root", "netem",
                  "delay", "1ms")
        return True
    except RuntimeError:
        return False
    finally:
        probe.close()


def main(rep, a):
    fq = Natra().json("probe")["fq"]
    with Rig(lanes=2) as r:
        for pod in r.pods + r.clients:
            pod.sysctl("net.ipv4.tcp_ecn", "1")
        netem = have_netem()
        for rate in a.rates.split(","):
            if a.only in (None, "tcp"):
                if fq:
                    rep.measure(f"tcp edt {rate}", tcp, r, rep, a, "edt",
                                rate, ())
                rep.measure(f"tcp edt off {rate}", tcp, r, rep, a, "edt off",
                            rate, ["--edt-pacing", "off"])
            if a.only in (None, "udp"):
                for edt in ("off", "on") if fq else ("off",):
                    rep.measure(f"udp edt {edt} {rate}", udp, r, rep, a, rate,
                                ["--edt-pacing", edt])
        if netem and a.only in (None, "rtt"):
            r.netem(a.rtt)
            for rate in a.rates.split(","):
                name = f"{a.rtt:g} ms"
                rep.measure(f"tcp {name} {rate}", tcp, r, rep, a, name, rate,
                            ["--edt-pacing", "off"], steady=True)
    if not netem:
        rep.shown(f"{a.rtt:g} ms of round trip: left out, the kernel lacks",
                  "CONFIG_NET_SCH_NETEM")
        if a.only == "rtt":
            skip("CONFIG_NET_SCH_NETEM")


if __name__ == "__main__":
    run_script(main,
        option("--rates", default="10M,100M"),
        option("--seconds", type=float, default=6),
        option("--settle", type=float, default=3),
        option("--rtt", type=float, default=20, help="ms"),
        option("--only", choices=["tcp", "udp", "rtt"]))
