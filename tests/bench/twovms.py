# SPDX-License-Identifier: BSD-2-Clause
"""Measures a limited pod on one kernel whose client is on another, with a link between
them. pair_run.py runs these cells in the VM that has the pods (tools/bench --pair).

A client on another machine sees what one on the pod's node does not: the node forwards
from a network card, and departure times do not reach the client's sockets.
"""
import os
import time

import plugin
from cells import LIMITERS, RATES, cell
from limiters import Upstream
from limiters import limiter as attachable
from markdown import figure, name_of, ranked, table
from mixed import CONTRACTS, STRICT
from pods import FAST_PASSES
from target import WAYS, Target

NAMES = ("pair",)
LIMITED = (*LIMITERS, "natra-guarded", "natra-charged")
CAP = "10M"
BURST_SECONDS = 0.5             # natra's own, which upstream's plugin is given here, too
SETTLE_SECONDS = 2.5            # until a burst is through
RATE_SECONDS = 3
# Requests to the limited pod and to one that has neither a limit nor streams.
PER_SECOND, REQUEST_SECONDS = 10, 4
PODS = ("annotated", "bystander")


def cells(_):
    """There are no cells unless this is one of two VMs."""
    if "NATRA_PAIR" in os.environ:
        for name in LIMITED:
            yield cell("pair", name, SETTLE_SECONDS + RATE_SECONDS + REQUEST_SECONDS + 6,
                       ci=True)


def attach(name, pod):
    """Limit the pod and return what does it."""
    if name == "upstream":
        lim = Upstream(pod, burst_bits=int(RATES[CAP] * BURST_SECONDS))
        lim.PLUGIN = plugin.newest("bandwidth") or lim.PLUGIN
    else:
        fast_pass = name.removeprefix("natra-")
        lim = attachable("natra", pod, "--fast-pass", fast_pass) \
            if fast_pass in FAST_PASSES else attachable(name, pod)
    return lim.attach(CAP, CAP)


def sent(pod):
    """Return how many bytes a pod has sent. The headers of a GSO packet count once, which
    leaves out 4 % of an answer."""
    with pod.netfile("dev") as f:
        return next(int(row[9]) for row in map(str.split, f) if row[0] == "eth0:")


def beside(r, reads):
    """Open the requests beside the streams. Return what became of them, and the Mbit/s of
    all of the limited pod's traffic each way meanwhile. The client also receives what the
    other pod answers, which is left out."""
    other = r.pods[1]
    before, others = [read() for read in reads], sent(other)
    answered = r.far.requests([p.ip for p in r.pods], PER_SECOND, REQUEST_SECONDS)
    after, others = [read() for read in reads], sent(other) - others
    return answered, {
            way: (b1 - b0 - (others if way == "out" else 0)) * 8e-6 / (t1 - t0)
            for way, (t0, b0), (t1, b1) in zip(WAYS, before, after)}


def run(r, cell_, _=None):
    limited = attach(cell_.limiter, r.pod)
    try:
        reads = [r.streams(way) for way in WAYS]
        time.sleep(SETTLE_SECONDS)
        before = [read() for read in reads]
        time.sleep(RATE_SECONDS)
        after = [read() for read in reads]
        answered, whole = beside(r, reads)
    finally:
        r.end_streams()
        limited.detach()
    values = {f"beside_{way}": mbit for way, mbit in whole.items()}
    for way, (t0, b0), (t1, b1) in zip(WAYS, before, after):
        rate = (b1 - b0) * 8 / (t1 - t0)
        values[f"wire_{way}"] = rate / 1e6
        if cell_.limiter != "none":
            values[f"error_{way}"] = rate / RATES[CAP] - 1
    for name, (p50, p99, failed) in zip(PODS, answered):
        values[f"failed_{name}"] = failed
        if failed < PER_SECOND * REQUEST_SECONDS:
            values |= {f"p50_ms_{name}": p50, f"p99_ms_{name}": p99}
    return values


def text(values):
    times = ", ".join(f"{name} p50 {values[f'p50_ms_{name}']:.1f} ms" for name in PODS
                      if f"p50_ms_{name}" in values)
    return f"{values['wire_in']:.2f} / {values['wire_out']:.2f} Mbit/s, {times}, " \
           f"{values['failed_annotated']} failed"


def targets(res):
    if not res.find("pair", "natra"):
        return
    for way, words in WAYS.items():
        yield Target(f"two kernels: cap of {CAP} {words}, error",
                     res.get("pair", "natra", f"error_{way}"), 5, "most", " %",
                     centre="error")
    for metric, words in (("p50_ms_annotated", "median"), ("p99_ms_annotated", "p99")):
        yield Target(f"two kernels: requests beside streams, {words}, at most upstream's",
                     res.get("pair", "natra", metric),
                     res.get("pair", "upstream", metric), "most", " ms")
    yield Target("two kernels: requests beside streams that failed",
                 res.get("pair", "natra", "failed_annotated"), 0.5, "most")


def report(res):
    rows = []
    for key in res.find("pair"):
        def get(metric, key=key):
            return figure(res.stat(key, metric))
        if get("wire_in"):
            rows.append((name_of(key[1]), CONTRACTS.get(key[1], STRICT),
                         *(f"{get(f'{what}_in')} / {get(f'{what}_out')}"
                           for what in ("wire", "beside")),
                         *(f"{get(f'p50_ms_{pod}')} / {get(f'p99_ms_{pod}')}"
                           for pod in PODS), get("failed_annotated")))
    client = res.data["machine"].get("client_kernel")
    return rows and [
            "## Two kernels", "",
            f"The pods' node is on the kernel of this report, the client on {client}, in "
            f"another VM. A pod capped at {CAP} has four TCP streams each way; it and a "
            f"pod without a cap answer {PER_SECOND} requests/s of 6 kB each.", "",
            *table(("", "it keeps", "streams in / out, Mbit/s",
                    "all of the pod's traffic in / out beside requests, Mbit/s",
                    "capped pod's requests, ms p50 / p99", "other pod's, ms p50 / p99",
                    "failed"), rows)]


def answers(res):
    found = {name: res.mean("pair", name, "p50_ms_annotated") for name in LIMITED}
    if said := ranked(found, "{:.1f} ms"):
        yield ("What does a client on another machine see of requests beside streams?",
               f"{said} (medians).")
