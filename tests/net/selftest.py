#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks that the measurements measure, with tc's token bucket in natra's place.

tbf counts what it passes with the headers of every GSO segment, by the kernel's own
arithmetic, and the meters must agree. They must notice a cap that is 20 % off.
"""
import json
import os
import sys
import time

sys.path.insert(0, os.path.dirname(__file__) + "/../harness/python")
from commands import sh
from limiters import Tbf
from meter import ETH_IPV4_TCP, ETH_IPV4_UDP, wire_rates
from rig import Rig
from script import run_script


def tbf_bytes(pod):
    """Return the bytes that the buckets of both directions have sent."""
    n = []
    for run, dev in ((sh, pod.host), (pod.run, "eth0")):
        q = json.loads(run("tc", "-s", "-j", "qdisc", "show", "dev", dev))
        n.append(next(x["bytes"] for x in q if x["kind"] == "tbf"))
    return n


def meters(rep, offloads, tcp):
    with Rig(lanes=1, offloads=offloads) as r:
        tbf = Tbf(r.pod).attach("50M", "50M")
        header = ETH_IPV4_TCP if tcp else ETH_IPV4_UDP
        ms = [r.into(header=header), r.out_of(header=header)]
        m0, q0 = [m.read()[1] for m in ms], tbf_bytes(r.pod)
        if tcp:
            r.elephants(flows=2)
        else:
            for src, dst in ((r.client, r.pod), (r.pod, r.client)):
                r.load(dst, "udp-sink", 5300)
                r.load(src, "udp-send", dst.ip, 5300,
                       "--rate", 150e6)
        r.wait_flow(*ms)
        time.sleep(2)
        rates = wire_rates(ms, 1) if tcp else None
        r.stop(None)
        time.sleep(0.5)         # the buckets run empty
        m1, q1 = [m.read()[1] for m in ms], tbf_bytes(r.pod)
        for i, way in enumerate(("in", "out")):
            name = f"{'tcp' if tcp else 'udp'} offloads " \
                   f"{'on' if offloads else 'off'} {way}"
            rep.near(f"{name}: meter against tbf's count",
                     (m1[i] - m0[i]) / 1e6, (q1[i] - q0[i]) / 1e6,
                     0.001, " MB")
            if rates:
                rep.near(f"{name}: rate", rates[i] / 1e6, 50,
                         0.02, " Mbit/s")
        tbf.detach()


def skewed(rep, r, rate, text):
    """Measure a limiter that is 20 % off, or one that is not there."""
    tbf = Tbf(r.pod).attach(rate, rate)
    time.sleep(1)
    got = wire_rates([r.into()], 2)[0]
    rep.check(f"a 10M cap that is {text} is noticed", f"{got / 1e6:.1f}",
              "not 10 +-5%", abs(got / 10e6 - 1) > 0.05, " Mbit/s", exact=False)
    tbf.detach()


def main(rep, _):
    for offloads in (True, False):
        for tcp in (True, False):
            rep.measure(f"{'tcp' if tcp else 'udp'} offloads "
                        f"{'on' if offloads else 'off'}",
                        meters, rep, offloads, tcp)
    with Rig(lanes=1) as r:
        r.elephant(r.client, r.pod, 5201)
        r.wait_flow(r.into())
        for rate, text in (("12M", "20 % over"), ("8M", "20 % under"),
                           (None, "absent")):
            rep.measure(text, skewed, rep, r, rate, text)


if __name__ == "__main__":
    run_script(main)
