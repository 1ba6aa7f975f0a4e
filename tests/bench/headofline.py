# SPDX-License-Identifier: BSD-2-Clause
"""Measures requests on a clock over one connection, which take a part of the cap, beside
streams that want all of it. What the cap limits is the requests, or with the way out of the
pod the answers, which are as long.

The time of a request counts from when it was due, and one that was never answered counts
until the end, so a queue cannot hide in what was not sent.
"""
import json
import subprocess
import time

from cells import LIMITERS, cell
from fair_scenarios import rr_load, rr_program
from markdown import name_of, ranked, table
from mixed import CONTRACTS, DUELS, PEERS, STRICT
from pods import limiter
from statistic import Stat
from stream import Streams
from target import WAYS, Target

NAMES = ("head-of-line",)
CAP = 10**7
SHARES = (1, 5, 10, 20, 50)     # percent of the cap
ELEPHANTS = (1, 4, 16)
JUDGED = 4                      # with how many elephants the targets are
IDLE_SHARE = 10
SETTLE_SECONDS = 1.5            # until a burst is used up
IDLE_SECONDS, SECONDS = 1, 1.2
PORT = 5600


def cells(node):
    for count in ELEPHANTS:
        for way in WAYS:
            for name in (*LIMITERS, "natra-charged",
                         *(node.paced if way == "in" else ()),
                         *(node.qdiscs if count == JUDGED else ())):
                yield cell("head-of-line", name,
                           SETTLE_SECONDS + IDLE_SECONDS + len(SHARES) * SECONDS + 2,
                           ci=count == JUDGED and name in (*LIMITERS, "natra-charged"),
                           once=count != JUDGED or name in ("none", "tbf"),
                           elephants=count, way=way)


def ask(r, share, seconds):
    """Return what rr says of requests that take a part of the cap, in percent."""
    size, per_second = rr_load(CAP, share)
    p = r.client.popen(rr_program(), "client", r.pod.ip, str(PORT), str(size),
                       f"{per_second:.1f}", str(seconds), stdout=subprocess.PIPE,
                       text=True)
    out, _ = p.communicate(timeout=seconds + 30)
    r.client.stop(p)
    return json.loads(out)


def run(r, cell_, lim=None):
    way = cell_.param("way")
    r.add("perf-server", lim or limiter(cell_.limiter), CAP)
    r.pod.popen(rr_program(), "server", str(PORT))
    r.wait_port(r.pod, PORT)
    values = {"idle_ms": ask(r, IDLE_SHARE, IDLE_SECONDS)["mean_ms"]}
    ends = (r.client, r.pod) if way == "in" else (r.pod, r.client)
    streams = Streams(*ends, ["cubic"] * cell_.param("elephants"))
    try:
        time.sleep(SETTLE_SECONDS)
        meter = r.meters()[("in", "out").index(way)]
        before = meter.read(), sum(streams.wire_bytes())
        for share in SHARES:
            got = ask(r, share, SECONDS)
            for what in ("mean_ms", "p99_ms"):
                values[f"{what}_{share}"] = got[what]
            values[f"answered_{share}"] = got["answered"] / got["count"]
        ((t0, b0), s0), (t1, b1) = before, meter.read()
        values["wire"] = (b1 - b0) * 8e-6 / (t1 - t0)
        values["elephants"] = (sum(streams.wire_bytes()) - s0) * 8e-6 / (t1 - t0)
    finally:
        streams.close()
    values.update(r.natra_state(r.pod))
    return values, {}


def text(values):
    p99 = ", ".join(f"{s} %: {values[f'p99_ms_{s}']:.1f}" for s in SHARES)
    return f"p99 in ms at {p99}, wire {values['wire']:.1f}"


def fair(elephants):
    """Return the shares that are under what each flow would have of the cap."""
    return [s for s in SHARES if s / 100 < 1 / (elephants + 1)]


def worst(res, name, way, metric, elephants=JUDGED):
    """Return in each sample the largest figure of flows under their fair share, as
    samples, or None."""
    found = [[s["values"].get(f"{metric}_{share}") for share in fair(elephants)]
             for key in res.find("head-of-line", name, way=way, elephants=elephants)
             for s in res.cells[key] if s["values"]]
    found = [max(row) for row in found if row and None not in row]
    return Stat(tuple(found)) if found else None


def targets(res):
    shares = ", ".join(map(str, fair(JUDGED)))
    for way, words in WAYS.items():
        what = f"requests of {shares} % of the cap beside {JUDGED} elephants {words}"
        for ours, theirs in DUELS:
            pair = [worst(res, name, way, "p99_ms") for name in (ours, theirs)]
            if not all(pair):
                continue
            yield Target(f"{what}, {name_of(ours)}: largest p99, at most "
                         f"{name_of(theirs)}'s", *pair, "most", " ms")
        for name in ("natra", "natra-pace"):
            found = worst(res, name, way, "mean_ms")
            idle = res.get("head-of-line", name, "idle_ms", way=way, elephants=JUDGED)
            if found and idle:
                # 5 ms are what a busy machine adds; a queue adds 28 or more.
                yield Target(f"{what}, {name_of(name)}: largest mean, at most 1.5 of "
                             "idle and 5 ms more", found, 1.5 * idle.mean + 5, "most",
                             " ms")


def rows_of(res, elephants, way):
    for key in res.find("head-of-line", elephants=elephants, way=way):
        def get(metric, key=key):
            return res.stat(key, metric)
        if not get("wire"):
            continue
        asked = []
        for share in SHARES:
            answered = get(f"answered_{share}").mean
            asked.append(f"{get(f'mean_ms_{share}').mean:.1f} / "
                         f"{get(f'p99_ms_{share}').mean:.1f}" + (
                                 "" if answered > 0.995 else f" ({answered:.0%})"))
        yield (name_of(key[1]), CONTRACTS.get(key[1], STRICT),
               f"{get('wire').mean:.1f}", f"{get('elephants').mean:.1f}",
               f"{get('idle_ms').mean:.1f}", *asked)


def report(res):
    lines = []
    head = ("", "it keeps", "all of the pod's traffic that way, Mbit/s",
            "the elephants' Mbit/s", "alone: mean", *(f"{s} %" for s in SHARES))
    for way, words in WAYS.items():
        for count in ELEPHANTS:
            rows = list(rows_of(res, count, way))
            if rows:
                lines += [f"Beside {count} elephant{'s' if count > 1 else ''} {words}:",
                          "", *table(head, rows)]
    return lines and [
            "## Head of line", "",
            "One connection asks on a clock and takes a part of the cap of 10 Mbit/s, "
            "beside elephants that want all of it. The table shows mean / p99 in ms from "
            "when a request was due to its answer, and in brackets how many were answered "
            f"where not all were. Each part is asked for during {SECONDS} s.", "", *lines]


def answers(res):
    for way, words in WAYS.items():
        found = {name: s.mean for name in ("none", "natra", "natra-charged", "natra-pace",
                                           *PEERS)
                 if (s := worst(res, name, way, "p99_ms"))}
        if said := ranked(found, "{:.1f} ms"):
            yield (f"How long does a flow under its fair share wait beside {JUDGED} "
                   f"elephants {words}?", f"{said} (p99).")
