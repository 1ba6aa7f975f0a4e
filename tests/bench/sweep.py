# SPDX-License-Identifier: BSD-2-Clause
"""Measures the cap: TCP streams into and out of pods, from their first byte on."""
import re
import statistics
import threading
import time

from cells import RATES, UNCAPPED
from limiters import bits
from meter import Meter
from pods import limiter

PORT = 5201
TICK_SECONDS = 0.1
SETTLE_SECONDS = 2              # what the burst and the slow start take
WINDOW_SECONDS = 5


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
    series = [(round(t1 - begin, 2), round((b1 - b0) * 8e-6 / (t1 - t0), 3))
              for (t0, b0), (t1, b1) in zip(lane.rows, lane.rows[1:])
              if t0 >= begin]
    return values, series


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
    values, series = {}, {}
    for lane, b, a in zip(lanes, *sockets):
        got, series[f"{lane.way} Mbit/s"] = measure(
                lane, start, cell.param("flows"), b, a)
        values.update({f"{k}_{lane.way}": v for k, v in got.items()})
    values.update(r.natra_state(lanes[-1].pod))
    return values, series


def text(values):
    return ", ".join(f"{way} {values[f'wire_{way}']:.2f} Mbit/s"
                     for way in ("in", "out") if f"wire_{way}" in values)
