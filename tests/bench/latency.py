# SPDX-License-Identifier: BSD-2-Clause
"""Measures round trips of one connection, alone and beside a stream in one direction."""
import time

from cells import EMULATED, LIMITERS, OLD_UPSTREAM, cell
from markdown import name_of, ranked, table
from pods import limiter
from target import WAYS, Target

NAMES = ("latency",)
CAP = 10**8
SETTLE_SECONDS = 0.5            # a burst passes as fast as the wire carries it
SECONDS = 2
PER_SECOND = 100 if EMULATED else 500


def cells(node):
    """Targets compare natra in all three with itself when idle, and beside a stream with
    no limiter. On an emulated CPU there is time for one sample of each."""
    for stream in ("idle", "in", "out"):
        seconds = (3.4 if stream == "idle" else 4) + 2 * EMULATED
        for name in (*LIMITERS, *(OLD_UPSTREAM if stream == "in" else ())):
            judged = name == "natra" or name == "none" and stream != "idle"
            yield cell("latency", name, seconds, ci=name in LIMITERS,
                       once=EMULATED or not judged, stream=stream)
        for name in node.paced if stream == "in" else ():
            yield cell("latency", name, seconds, ci=True, once=EMULATED,
                       stream="in")


def run(r, cell_, lim=None):
    r.add("perf-server", lim or limiter(cell_.limiter), CAP)
    r.sockperf_server()
    stream = cell_.param("stream")
    meter = None
    if stream != "idle":
        ends = (r.client, r.pod) if stream == "in" else (r.pod, r.client)
        r.elephant(*ends, 5201)
        meter = r.meters()[("in", "out").index(stream)]
        r.wait_flow(meter)
        time.sleep(SETTLE_SECONDS)
    before = meter and meter.read()
    got = r.sockperf(SECONDS, PER_SECOND)
    values = {"p50_us": got[50], "p99_us": got[99]}
    if meter:
        (t0, b0), (t1, b1) = before, meter.read()
        values["stream_mbit"] = (b1 - b0) * 8e-6 / (t1 - t0)
    return values


def text(values):
    return f"p50 {values['p50_us']:.0f} us, p99 {values['p99_us']:.0f} us"


def targets(res):
    def median(name, stream):
        return res.get("latency", name, "p50_us", stream=stream)

    rows = [(words, way, median("natra", way)) for way, words in WAYS.items()]
    held = median("natra-pace", "in")
    if held is not None:
        rows.append((f"{WAYS['in']}, paced", "in", held))
    for words, way, value in rows:
        for against, other in (("idle", median("natra", "idle")),
                               ("no limiter's beside the same stream",
                                median("none", way))):
            yield Target(f"latency beside a stream {words}: median, at most 1.5 "
                         f"of {against}", value, other, "most", " us", factor=1.5,
                         centre="median")


def beside(res, name, stream):
    """Return the percentiles, and the stream's own rate, which says what they were
    measured beside."""
    p50, p99, rate = (res.mean("latency", name, m, stream=stream)
                      for m in ("p50_us", "p99_us", "stream_mbit"))
    if p50 is None:
        return "", ""
    return f"{p50 / 1e3:.2f} / {p99 / 1e3:.2f}", "" if rate is None else f"{rate:.0f}"


def report(res):
    rows = [(name_of(name), beside(res, name, "idle")[0],
             *beside(res, name, "in"), *beside(res, name, "out"))
            for name in dict.fromkeys(k[1] for k in res.find("latency"))]
    return rows and [
            "## Latency under load", "",
            "The table shows p50 / p99 in ms of the round trips of one TCP "
            "connection at a cap of 100 Mbit/s, and the rate on the wire that it "
            "was measured beside, in Mbit/s.", "",
            *table(("", "idle", "stream into the pod", "its Mbit/s",
                    "stream out of the pod", "its Mbit/s"), rows)]


def answers(res):
    for way, words in WAYS.items():
        found = {name: p50 / 1e3 for name in ("none", "upstream", "natra", "natra-pace")
                 if (p50 := res.mean("latency", name, "p50_us", stream=way))}
        if said := ranked(found, "{:.2f} ms"):
            yield (f"How long does a round trip take beside a stream {words}?",
                   f"{said} (medians).")
