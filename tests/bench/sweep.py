# SPDX-License-Identifier: BSD-2-Clause
"""Measures the cap: TCP streams into and out of pods, from their first byte on."""
import dataclasses
import itertools
import re
import statistics
import threading
import time

from cells import OLD_UPSTREAM, RATES, UNCAPPED, cell
from limiters import bits
from markdown import figure, name_of, ranked, table
from meter import Meter
from pods import limiter
from statistic import Stat
from target import WAYS, Target

NAMES = ("sweep",)
PORT = 5201
TICK_SECONDS = 0.1
SETTLE_SECONDS = 2              # what the burst and the slow start take
WINDOW_SECONDS = 4
CELL_SECONDS = SETTLE_SECONDS + WINDOW_SECONDS + 0.5
# The caps, with how many flows each. One flow alone wants a queue the most, and several are
# measured where the machine does not limit them first.
PLACES = (("10M", 1), ("100M", 1), ("100M", 8), ("1G", 1), ("10G", 1))


def cells(node):
    """Measure both directions at once, with a pod for each, but at 10G one after the
    other, because two cores do not carry that twice. Paced ingress runs alone, because
    egress would be the same beside it."""
    for flows in (1, 8):
        # These run first: what the wire carries decides which rates are left out.
        for ways in ("in+out", "in", "out"):
            yield cell("sweep", "none", CELL_SECONDS, ci=flows == 1 and ways == "in+out",
                       once=True, rate="none", flows=flows, ways=ways)
    in_ci = {("10M", 1), ("100M", 8), ("1G", 1)}
    for rate, flows in PLACES:
        for ways in ("in", "out") if rate == "10G" else ("in+out",):
            for limiter_ in ("upstream", "natra"):
                yield cell("sweep", limiter_, CELL_SECONDS, ci=(rate, flows) in in_ci,
                           once=rate == "10G", rate=rate, flows=flows, ways=ways)
        for name in node.paced:
            yield cell("sweep", name, CELL_SECONDS, ci=(rate, flows) in in_ci,
                       once=rate == "10G", rate=rate, flows=flows, ways="in")
    # The burst that containerd sends with every rate.
    for rate in ("10M", "100M"):
        yield cell("sweep", "upstream-containerd", CELL_SECONDS, ci=rate == "10M",
                   once=True, rate=rate, flows=1, ways="in+out")
        for name in OLD_UPSTREAM:
            yield cell("sweep", name, CELL_SECONDS, once=True, rate=rate, flows=1,
                       ways="in+out")


class Lane(threading.Thread):
    """One direction. It has a pod of its own, so that no acknowledgements of another
    stream are on the wire that is measured, and reads the meter until end()."""

    def __init__(self, r, number, way, lim, rate):
        super().__init__(daemon=True)
        self.pod = r.add(f"pod{number}", lim, rate)
        client = r.clients[number]
        self.way, self.rate = way, rate
        self.src, self.dst = (client, self.pod) if way == "in" else \
            (self.pod, client)
        self._meter = Meter(self.dst)
        self.rows = [self._meter.read()]
        self._on = True
        self.start()

    def run(self):
        while self._on:
            time.sleep(TICK_SECONDS)
            self.rows.append(self._meter.read())

    def end(self):
        self._on = False
        self.join(5)

    def begin(self):
        """Return when the stream began, or None. It has begun when the meter has counted
        5 kB, which is more than iperf3's control connection sends."""
        first = self.rows[0][1]
        for before, row in zip(self.rows, self.rows[1:]):
            if row[1] - first > 5000:
                return before[0]
        return None

    def at(self, when):
        """Return the bytes until then, interpolated between two readings."""
        for (t0, b0), (t1, b1) in zip(self.rows, self.rows[1:]):
            if when <= t1:
                return b0 + (b1 - b0) * (when - t0) / (t1 - t0)
        raise RuntimeError("no reading at that time")

    def sockets(self):
        """Return (time, bytes that the receiver took, segments sent again), the latter
        by the socket's peer. Only the streams of this lane count: a client has orphans
        of earlier lanes, whose pods are gone."""
        ours = ("-tinHO", "state", "established")
        got = self.dst.run("ss", *ours, "sport", "=", f":{PORT}", "and", "dst",
                           self.src.ip)
        # Starting ss takes most of the time where the CPU is emulated.
        when = time.monotonic()
        sent = self.src.run("ss", *ours, "dport", "=", f":{PORT}", "and", "dst",
                            self.dst.ip)
        return (when, by_socket(got, r"bytes_received:(\d+)"),
                by_socket(sent, r"retrans:\d+/(\d+)"))


def by_socket(listed, pattern):
    """Return a counter of each socket in ss's list, by its two ends; it is 0 where ss
    leaves it out."""
    found = {}
    for line in listed.splitlines():
        n = re.search(pattern, line)
        found[tuple(line.split()[2:4])] = int(n[1]) if n else 0
    return found


def grown(what, before, after, flows):
    """Return by how much a counter grew, summed over all sockets. Other sockets than
    before, or a counter that went back, would make the sum meaningless."""
    if len(before) <= flows:    # iperf3's control connection is one more
        raise RuntimeError(f"{what}: {len(before)} sockets for {flows} flows")
    if set(before) != set(after):
        raise RuntimeError(f"{what}: {len(before)} sockets when the window "
                           f"began, {len(after)} when it ended, "
                           f"{len(set(before) & set(after))} in both")
    back = [k for k in before if after[k] < before[k]]
    if back:
        raise RuntimeError(f"{what}: went from {before[back[0]]} to "
                           f"{after[back[0]]}")
    return sum(after.values()) - sum(before.values())


def measure(lane, start, flows, before, after):
    """Return the figures of one direction, rates in Mbit/s. The receiver can take a
    little more than what came in the window, when a gap from before it is filled."""
    begin = lane.begin()
    seconds = [(lane.at(start + i + 1) - lane.at(start + i)) * 8e-6
               for i in range(WINDOW_SECONDS)]
    wire = statistics.mean(seconds)
    span = after[0] - before[0]
    values = {"wire": wire,
              "goodput": grown("bytes received", before[1], after[1], flows) *
              8e-6 / span,
              "retransmissions": grown("segments sent again", before[2],
                                       after[2], flows) / span,
              "seconds_sd": statistics.stdev(seconds),
              "first_second_mb": (lane.at(begin + 1) - lane.at(begin)) / 1e6}
    if lane.rate:
        values["error"] = wire * 1e6 / lane.rate - 1
    return values


def follow(r, lanes, flows):
    """Run the streams until the window's end; return when the window began, and the
    counters of the sockets at both of its ends."""
    for lane in lanes:
        r.elephant(lane.src, lane.dst, PORT, flows)
    deadline = time.monotonic() + 20
    while not all(lane.begin() for lane in lanes):
        if time.monotonic() > deadline:
            raise RuntimeError("no traffic in 20 s")
        time.sleep(TICK_SECONDS)
    start = max(lane.begin() for lane in lanes) + SETTLE_SECONDS
    sockets = []
    for when in (start, start + WINDOW_SECONDS):
        time.sleep(max(0, when - time.monotonic()))
        sockets.append([lane.sockets() for lane in lanes])
    time.sleep(2 * TICK_SECONDS)
    return start, sockets


def run(r, cell, lim=None):
    rate = RATES.get(cell.param("rate"))
    if rate is None and cell.limiter != "none":
        rate = bits(UNCAPPED)
    lanes = [Lane(r, i, way, lim or limiter(cell.limiter), rate)
             for i, way in enumerate(cell.param("ways").split("+"))]
    try:
        start, sockets = follow(r, lanes, cell.param("flows"))
    finally:
        for lane in lanes:
            lane.end()
    values = {}
    for lane, b, a in zip(lanes, *sockets):
        got = measure(lane, start, cell.param("flows"), b, a)
        values.update({f"{k}_{lane.way}": v for k, v in got.items()})
    values.update(r.natra_state(lanes[-1].pod))
    return values


def text(values):
    return ", ".join(f"{way} {values[f'wire_{way}']:.2f} Mbit/s"
                     for way in ("in", "out") if f"wire_{way}" in values)


PACES = {"in": "pace", "out": "edt"}    # in the samples


def paced(res, key, way):
    """Return whether fq held the packets of that direction in a cell."""
    return any(s["values"].get(PACES[way]) for s in res.cells[key])


def targets(res):
    yield from caps(res)
    yield from (d.target() for d in departed(res))


def caps(res):
    """Yield a target for each rate, number of flows and direction. Paced traffic has the
    narrower bound."""
    for key in (*res.find("sweep", "natra"), *res.find("sweep", "natra-pace")):
        params = dict(key[2])
        for way, words in WAYS.items():
            error = res.stat(key, f"error_{way}")
            if not error:
                continue
            held = paced(res, key, way)
            yield Target(f"cap of {params['rate']} {words}, "
                         f"{params['flows']} "
                         f"{'flow' if params['flows'] == 1 else 'flows'}, "
                         f"{'paced' if held else 'policed'}: error",
                         error, 2 if held else 5, "most", " %", centre="error")


@dataclasses.dataclass
class Departed:
    """How far samples are from the mean of their cell, see departures(), over the cells
    that both natra and upstream have, in one direction."""
    limiter: str                # natra's
    way: str
    held: bool                  # fq held natra's packets
    natra: Stat = None
    upstream: Stat = None
    samples: int = 0            # of the cell that has the fewest

    def words(self):
        return f"{WAYS[self.way]}, {'paced' if self.held else 'policed'}"

    def target(self):
        """Compare the standard deviation with upstream's. The interval resamples the
        departures of all cells, as if they were of one."""
        return Target(f"deviation between samples {self.words()}: at most upstream's",
                      self.natra, self.upstream, "most", " %", centre="rms",
                      count=self.samples)


def departed(res):
    """Yield what natra's samples depart by into the pod, out of it, and, where fq is, into
    the pod if they are paced."""
    for name, way in (("natra", "in"), ("natra", "out"), ("natra-pace", "in")):
        keys = [k for k in res.find("sweep", name) if res.stat(k, f"wire_{way}")]
        if not keys and name == "natra-pace":
            continue            # there is no fq
        both, found = [], Departed(name, way, any(paced(res, k, way) for k in keys))
        for key in keys:
            # Upstream's cell has the other direction beside it, in a pod of its own.
            same = {p: dict(key[2])[p] for p in ("rate", "flows")}
            pair = (res.stat(key, f"wire_{way}"),
                    res.get("sweep", "upstream", f"wire_{way}", **same))
            if all(s and s.relative_sd is not None for s in pair):
                both.append([departures(s) for s in pair])
        if both:
            found.natra, found.upstream = (Stat(tuple(itertools.chain(*column)))
                                           for column in zip(*both))
            found.samples = min(len(one) for pair in both for one in pair)
        yield found


def departures(rates):
    """Return how far each sample is from their mean, in percent of it, scaled so that the
    root of their mean square is the standard deviation."""
    scale = 100 * (len(rates.values) / (len(rates.values) - 1)) ** 0.5 / rates.mean
    return [(v - rates.mean) * scale for v in rates.values]


def worst(error):
    """Return the sample that is farthest off the cap."""
    return max(error.values, key=abs)


def report(res):
    rows, wire = [], []
    emulated = res.data["machine"].get("emulated")
    for key in res.find("sweep"):
        params = dict(key[2])
        for way, words in WAYS.items():
            def get(metric, key=key, way=way):
                return res.stat(key, f"{metric}_{way}")
            if not get("wire"):
                continue
            if key[1] == "none":
                wire.append((params["flows"], words, params["ways"],
                             figure(get("wire"), 0)))
                continue
            dev = get("wire").relative_sd
            name = name_of(key[1])
            if key[1].startswith("natra"):
                name = "natra, paced" if paced(res, key, way) else \
                    "natra, policed"
            rows.append((
                    params["rate"], params["flows"], words, name,
                    figure(get("wire"), 2), f"{get('error').mean:+.2%}",
                    f"{worst(get('error')):+.2%}",
                    "" if dev is None else f"{dev:.2%}",
                    figure(get("seconds_sd"), 2), figure(get("goodput"), 2),
                    figure(get("retransmissions"), 0),
                    figure(get("first_second_mb"), 2)))
    if not rows:
        return []
    return ["## The cap", "",
            "Caps are in bit/s and rates in Mbit/s. *Wire* counts the headers "
            "of each segment, *error* compares its mean with the cap, and *worst* the "
            "sample that is farthest off. *Between "
            "samples* is the standard deviation of the samples' means in "
            "percent, *between seconds* that of single seconds within a "
            "sample, in Mbit/s. *Goodput* is what the receivers took" + (
                    "; here it is rough, because ss, which reports it, takes "
                    "some tenths of a second to start." if emulated else "."), "",
            *table(("cap", "flows", "direction", "limiter", "wire", "error", "worst",
                    "between samples", "between seconds", "goodput",
                    "retransmissions/s", "MB in the first second"), rows),
            *(wire and ["Without a limiter:", ""]),
            *table(("flows", "direction", "directions at once", "Mbit/s"),
                   wire)]


def far_off(res):
    """Say how far off the cap each limiter was on average, over the cells of both."""
    keys = [k for k in res.find("sweep", "natra")
            if res.find("sweep", "upstream", **dict(k[2]))]
    off = {name: [abs(error.mean) * 100 for k in keys
                  for way in WAYS if (error := res.get(
                      "sweep", name, f"error_{way}", **dict(k[2])))]
           for name in ("natra", "upstream")}
    if not all(off.values()):
        return
    mean = {name: sum(v) / len(v) for name, v in off.items()}
    far = {name: max(abs(worst(error)) * 100 for k in keys for way in WAYS
                     if (error := res.get("sweep", name, f"error_{way}", **dict(k[2]))))
           for name in off}
    yield ("Does the cap hold?",
           f"{ranked(mean, '{:.2f} %')} (the mean error over {len(off['natra'])} caps and "
           "directions). The worst sample: " + ", ".join(
                   f"{name} {v:.2f} %" for name, v in far.items()) + ".")


def apart(res):
    """Say how far the samples of a cap lie apart."""
    for d in departed(res):
        target = d.target()
        if d.natra:
            yield (f"How far do samples lie apart {d.words()}?",
                   f"{name_of(d.limiter)} {target.value:.2f} %, upstream {target.bound:.2f} % "
                   f"(standard deviations; at most upstream's: {target.judged}).")


def answers(res):
    yield from far_off(res)
    yield from apart(res)
    rows = [f"{name_of(name)} {rate:.1f} of {bits(cap) / 1e6:.0f} Mbit/s"
            for cap in ("10M", "100M") for name in ("upstream-1.5.1", "upstream", "natra")
            if (rate := res.mean("sweep", name, "wire_out", rate=cap, flows=1))]
    if any("htb" in row for row in rows):
        yield "Does upstream's htb of 1.5.1 hold the cap?", "; ".join(rows) + "."
