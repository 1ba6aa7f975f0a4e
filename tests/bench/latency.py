# SPDX-License-Identifier: BSD-2-Clause
"""Measures round trips of one connection, alone and beside a stream in one direction."""
import time

from cells import EMULATED
from pods import limiter

CAP = 10**8
SETTLE_SECONDS = 1.5
SECONDS = 2
PER_SECOND = 100 if EMULATED else 500


def run(r, cell, lim=None):
    r.add("perf-server", lim or limiter(cell.limiter), CAP)
    r.sockperf_server()
    stream = cell.param("stream")
    if stream != "idle":
        ends = (r.client, r.pod) if stream == "in" else (r.pod, r.client)
        r.elephant(*ends, 5201)
        r.wait_flow(r.meters()[("in", "out").index(stream)])
        time.sleep(SETTLE_SECONDS)
    got = r.sockperf(SECONDS, PER_SECOND)
    return {"p50_us": got[50], "p99_us": got[99]}, \
        {"us": sorted(got.items())}


def text(values):
    return f"p50 {values['p50_us']:.0f} us, p99 {values['p99_us']:.0f} us"
