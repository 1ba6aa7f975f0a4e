# SPDX-License-Identifier: BSD-2-Clause
"""Measures mice beside elephants: a capped pod with a bulk stream each way serves small
requests, and so does a pod beside it that has no cap."""
import time
from concurrent.futures import ThreadPoolExecutor

from cells import EMULATED
from pods import limiter
from rig import Elephant
from statistic import quantiles

CAP = 10**7
SETTLE_SECONDS = 2.5            # until a burst of containerd's size is through
SECONDS = 8 if EMULATED else 4
# The clients of each pod, and the requests a second of each client; 0 means as many as
# it has time for.
FIXED = (10, 2) if EMULATED else (50, 10)
TILT = (10, 0) if EMULATED else (50, 0)


def run(r, cell, lim=None):
    lim = lim or limiter(cell.limiter)
    pods = {"annotated": r.add("perf-server", lim, CAP),
            "bystander": r.add("bystander", lim)}
    urls = {name: r.nginx(pod=pod) for name, pod in pods.items()}
    elephants = [Elephant(r, r.client, r.pod, 5401, "in"),
                 Elephant(r, r.pod, r.client, 5402, "out")]
    r.wait_flow(*r.meters())
    time.sleep(SETTLE_SECONDS)
    load = FIXED if cell.param("load") == "fixed" else TILT
    start = time.monotonic()
    with ThreadPoolExecutor(2) as pool:
        jobs = {name: pool.submit(r.hey_times, url, SECONDS, *load)
                for name, url in urls.items()}
        # The elephants' rate counts while hey sends requests.
        time.sleep(SECONDS)
        end = time.monotonic()
        times = {name: sorted(t for _, t in job.result())
                 for name, job in jobs.items()}
    values = {f"elephant_{way}": e.rate(start, end) / 1e6
              for way, e in zip(("in", "out"), elephants)}
    series = {}
    for name, rows in times.items():
        q = quantiles(rows)
        values[f"rps_{name}"] = len(rows) / SECONDS
        if rows:
            values[f"p50_ms_{name}"] = q[50] * 1e3
            values[f"p99_ms_{name}"] = q[99] * 1e3
            series[f"{name} ms"] = [round(t * 1e3, 3) for t in q]
    values["rps_total"] = sum(len(rows) for rows in times.values()) / SECONDS
    if load[1]:
        values["offered"] = load[0] * load[1]
    values.update(r.natra_state(r.pod))
    return values, series


def text(values):
    p99 = values.get("p99_ms_annotated")
    return (f"{values['rps_annotated']:.0f} + {values['rps_bystander']:.0f} "
            f"requests/s, p99 {f'{p99:.1f} ms' if p99 else 'none'}, elephant "
            f"{values['elephant_in']:.1f} / {values['elephant_out']:.1f}")
