# SPDX-License-Identifier: BSD-2-Clause
"""Measures as flent's tests rrul and tcp_nup do.

rrul is four TCP streams into the pod and four out of it, one of each way in each of four
DSCP classes, with probes in three of them and of ICMP. nup is 16 streams out of the pod, of
one congestion control or of several, and how evenly they share.
"""
import statistics
import time

import rrul_probe
from cells import EMULATED, cell
from edt import jain
from limiters import bits
from markdown import name_of, ranked, table
from mixed import CONTRACTS, DUELS, PEERS, STRICT
from pods import limiter
from stream import Streams
from target import WAYS, Target

NAMES = ("rrul", "nup")
RATE = "10M"
NUP_RATE, FLOWS = ("10M" if EMULATED else "100M"), 16
SHOWN = "ping BE"       # the series of the chart
STEP_SECONDS = 0.2              # flent's
SETTLE_SECONDS, SECONDS = 1.5, 6
# What IP_TOS is for each class of a stream, and for each that has a probe.
MARKS = {"BE": 0, "BK": 0x20, "CS5": 0xa0, "EF": 0xb8}
PROBES = ("BE", "BK", "EF")
# A mix is the congestion controls that take turns, with ECN where it says so, and the least
# of Jain's index that natra promises.
MIXES = {"cubic": 0.95, "cubic,cubic ecn,bbr,bbr ecn": 0.8}


def cells(node):
    peers = ("upstream", "natra", "natra-charged", *node.qdiscs)
    span = SETTLE_SECONDS + SECONDS + 2
    for name in ("none", *peers, *node.paced):
        yield cell("rrul", name, span, rate=RATE, once=name in (
                "none", "tbf", "natra-pace"),
                   ci=name in ("none", "upstream", "natra", "natra-charged"))
    for mix in MIXES:
        for name in peers:
            # natra's index is held to a number, so one sample of the others is enough.
            yield cell("nup", name, span, rate=NUP_RATE, mix=mix, once=name != "natra",
                       ci="bbr" in mix and not name.startswith(PEERS[1:]))


class Noted:
    """Streams whose bytes are noted in steps."""

    def __init__(self, groups):
        self.groups, self.rows = groups, []

    def note(self):
        self.rows.append((time.monotonic(), [n for g in self.groups
                                             for n in g.wire_bytes()]))

    def mbits(self):
        """Return the Mbit/s of each stream in each step."""
        return [[(b - a) * 8e-6 / (t1 - t0) for a, b in zip(before, after)]
                for (t0, before), (t1, after) in zip(self.rows, self.rows[1:])]

    def means(self):
        (t0, before), (t1, after) = self.rows[0], self.rows[-1]
        return [(b - a) * 8e-6 / (t1 - t0) for a, b in zip(before, after)]

    def close(self):
        for g in self.groups:
            g.close()


def watch(r, noted, marks):
    """Let the streams run, and return (what the probes noted, when that began, the pod's
    traffic each way in Mbit/s)."""
    echo = r.pod.fork(rrul_probe.echo)
    time.sleep(SETTLE_SECONDS)
    probe = r.client.fork(rrul_probe.probe, r.pod.ip, marks, SECONDS)
    meters = r.meters()
    begin, before = time.monotonic(), [m.read() for m in meters]
    noted.note()
    for step in range(1, round(SECONDS / STEP_SECONDS) + 1):
        time.sleep(max(0, begin + step * STEP_SECONDS - time.monotonic()))
        noted.note()
    after = [m.read() for m in meters]
    probes = r.load_end(probe, r.client, seconds=SECONDS + 10)
    r.pod.stop(echo)
    return probes, begin, [(b1 - b0) * 8e-6 / (t1 - t0)
                           for (t0, b0), (t1, b1) in zip(before, after)]


def of_probes(probes, begin):
    """Return figures of each class's round trips, and their medians in each step."""
    values, series = {}, {}
    for name, rows in probes.items():
        took = sorted(ms for _, ms in rows["answers"])
        if took:
            values[f"p50_ms_{name}"] = statistics.median(took)
            values[f"p99_ms_{name}"] = took[int(len(took) * 0.99)]
        values[f"lost_{name}"] = 1 - len(took) / max(1, rows["sent"])
        steps = {}
        for when, ms in rows["answers"]:
            steps.setdefault(int((when - begin) / STEP_SECONDS), []).append(ms)
        series[f"ping {name}"] = [
                round(statistics.median(steps[i]), 3) if i in steps else None
                for i in range(round(SECONDS / STEP_SECONDS))]
    return values, series


def run(r, cell_, lim=None):
    r.add("perf-server", lim or limiter(cell_.limiter), bits(cell_.param("rate")))
    values, series = rrul(r) if cell_.workload == "rrul" else nup(r, cell_)
    values.update(r.natra_state(r.pod))
    return values, series


def rrul(r):
    ways = {"in": (r.client, r.pod), "out": (r.pod, r.client)}
    noted = Noted([Streams(*ends, ["cubic"] * len(MARKS)) for ends in ways.values()])
    try:
        for group in noted.groups:
            group.mark(MARKS.values())
        probes, begin, wire = watch(r, noted, {"ICMP": None, **{
                c: MARKS[c] for c in PROBES}})
    finally:
        noted.close()
    values, series = of_probes(probes, begin)
    means = noted.means()
    for i, (way, mbit) in enumerate(zip(WAYS, wire)):
        own = means[i * len(MARKS):(i + 1) * len(MARKS)]
        values |= {f"wire_{way}": mbit, f"sum_{way}": sum(own), f"jain_{way}": jain(own)}
    for i, column in enumerate(zip(*noted.mbits())):
        way, mark = list(WAYS)[i // len(MARKS)], list(MARKS)[i % len(MARKS)]
        series[f"{way} {mark}"] = [round(mbit, 3) for mbit in column]
    return values, series


def nup(r, cell_):
    """The sysctl for ECN counts when a stream connects, so those with it come last."""
    kinds = cell_.param("mix").split(",")
    names = sorted((kinds * FLOWS)[:FLOWS], key=lambda k: k.endswith("ecn"))
    groups = []
    try:
        for ecn in (False, True):
            some = [n.split()[0] for n in names if n.endswith("ecn") == ecn]
            if some:
                r.pod.sysctl("net.ipv4.tcp_ecn", "1" if ecn else "2")
                groups.append(Streams(r.pod, r.client, some))
        noted = Noted(groups)
        probes, begin, wire = watch(r, noted, {"ICMP": None})
    finally:
        for g in groups:
            g.close()
    values, series = of_probes(probes, begin)
    means = noted.means()
    values |= {"wire_out": wire[1], "sum": sum(means), "jain": jain(means)}
    for kind in kinds:
        values[f"part_{kind}"] = sum(m for m, n in zip(means, names) if n == kind) / \
            sum(means)
    for i, column in enumerate(zip(*noted.mbits())):
        series[f"{i + 1} {names[i]}"] = [round(mbit, 3) for mbit in column]
    return values, series


def text(values):
    if "jain" in values:
        return f"Jain's index {values['jain']:.3f}, wire {values['wire_out']:.1f}"
    pings = ", ".join(f"{c} {values[f'p50_ms_{c}']:.1f}" for c in (*PROBES, "ICMP")
                      if f"p50_ms_{c}" in values)
    return (f"{pings} ms, streams {values['sum_in']:.1f} / {values['sum_out']:.1f}, wire "
            f"{values['wire_in']:.1f} / {values['wire_out']:.1f}")


def rates_of(res):
    """A VM's run has others than its host's, where the report is made."""
    return list(dict.fromkeys(dict(k[2])["rate"] for k in res.find("rrul")))


def targets(res):
    for rate in rates_of(res):
        for ours, theirs in DUELS:
            for metric, what, sense, unit in (
                    ("p99_ms_BE", "p99 of the probe BE", "most", " ms"),
                    ("sum_in", "streams into the pod", "least", " Mbit/s"),
                    ("sum_out", "streams out of the pod", "least", " Mbit/s")):
                pair = [res.get("rrul", name, metric, rate=rate)
                        for name in (ours, theirs)]
                if all(pair):
                    # Elephants that leave room for mice have a little less.
                    factor = 0.95 if sense == "least" else 1
                    yield Target(f"RRUL at {rate}, {name_of(ours)}: {what}, at {sense} "
                                 f"{'0.95 of ' if factor != 1 else ''}"
                                 f"{name_of(theirs)}'s", *pair, sense, unit, factor=factor)
    for mix, least in MIXES.items():
        found = res.get("nup", "natra", "jain", mix=mix)
        if found:
            yield Target(f"{FLOWS} streams ({mix}), natra: Jain's index", found, least,
                         "least")


def rrul_rows(res, rate):
    for key in res.find("rrul", rate=rate):
        def get(metric, key=key):
            return res.stat(key, metric)

        def both(metric, digits, get=get):
            pair = [get(f"{metric}_{way}") for way in WAYS]
            return " / ".join(f"{s.mean:.{digits}f}" for s in pair) if all(pair) else ""

        def ping(c, get=get):
            p50, p99, lost = (get(f"{m}_{c}") for m in ("p50_ms", "p99_ms", "lost"))
            if not p50:
                return "none" if lost else ""
            return f"{p50.mean:.1f} / {p99.mean:.1f}" + (
                    f" ({lost.mean:.0%} lost)" if lost.mean >= 0.005 else "")
        if get("wire_in"):
            yield (name_of(key[1]), CONTRACTS.get(key[1], STRICT), both("wire", 1),
                   both("sum", 1), both("jain", 2), *map(ping, (*PROBES, "ICMP")))


def report(res):
    lines = []
    head = ("", "it keeps", "all of the pod's traffic in / out, Mbit/s",
            "streams in / out, Mbit/s", "Jain's index in / out",
            *(f"{c}, ms" for c in (*PROBES, "ICMP")))
    for rate in rates_of(res):
        rows = list(rrul_rows(res, rate))
        lines += rows and [f"At a cap of {rate}:", "", *table(head, rows)]
    if lines:
        lines = ["## Realtime response under load", "",
                 "Four TCP streams go into the capped pod and four out of it, in the "
                 "classes BE, BK, CS5 and EF. Probes in three classes and of ICMP ask the "
                 "pod; the table shows p50 / p99 of their round trips.", "", *lines]
    rows = []
    for key in res.find("nup"):
        got = [res.stat(key, m) for m in ("jain", "sum", "wire_out")]
        if all(got):
            params = dict(key[2])
            kinds = params["mix"].split(",")
            parts = [res.stat(key, f"part_{k}") for k in kinds]
            rows.append((params["rate"], params["mix"], name_of(key[1]),
                         f"{got[0].mean:.3f}",
                         ", ".join(f"{k} {p.mean:.2f}" for k, p in zip(kinds, parts)
                                   if p), *(f"{s.mean:.1f}" for s in got[1:])))
    return lines + (rows and [
            f"## {FLOWS} streams", "",
            f"{FLOWS} TCP streams leave a capped pod. *Parts* are "
            "what each kind of stream has of all of them.", "",
            *table(("cap", "streams", "", "Jain's index", "parts", "streams, Mbit/s",
                    "all of the pod's traffic out"), rows)])


def answers(res):
    names = ("natra", "natra-charged", "natra-pace", *PEERS)
    for rate in rates_of(res):
        found = {n: res.mean("rrul", n, "p99_ms_BE", rate=rate) for n in names}
        if said := ranked(found, "{:.1f} ms"):
            yield (f"What does a probe wait beside 4 + 4 streams at {rate}?",
                   f"{said} (p99).")
    mixes = [m for m in MIXES if res.get("nup", "natra", "jain", mix=m)]
    if mixes:
        mean = {n: [res.mean("nup", n, "jain", mix=m) for m in mixes] for n in names}
        found = {n: min(v) for n, v in mean.items() if None not in v}
        if said := ranked(found, "{:.3f}", most=True):
            yield (f"How evenly do {FLOWS} streams share?",
                   f"{said} (the least of Jain's index of all mixes).")
