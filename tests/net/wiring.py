#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks natra on one of the ways to wire a pod.

The cap must hold both ways, natra must count what passed, and a cap beyond the wire
must cost next to nothing.

A cell is an IP version with an MTU, or with BIG TCP, which is packets over 64 kB. Each
cell is tried with the mode that `auto` takes; each other mode, and pacing switched off,
is tried with one cell in turn. All of them run at once, each in a pod of its own with a
stream each way.

Then, on the mode of `auto`, one cell and way after the other carries all that one CPU
can, without natra and with a cap of 400G by turns, in short spans whose upper quartiles
are compared: other load makes a machine slower, seldom faster.

Each cell prints a line, `cell` and JSON, which tests/vm/support reads.
"""
import json
import os
import re
import statistics
import sys
import time

sys.path.insert(0, os.path.dirname(__file__) + "/../harness/python")
from limiters import Natra, bits, dropped, forgiven, total
from meter import Meter, read_promptly
from report import skip
from script import option, run_script
from stream import Stream, header_bytes
from wirings import NAMES, WITH_HOST_PEER, Missing, Wiring, side_by_side

BEYOND = "400G"
# This is far below what a stream carries, so packets go the whole way of a heavy flow.
HEAVY_BYTES = 100000
# Of the throughput without natra, the median of all cells. The time that natra takes for a packet is
# the same, so the part is the larger the faster the machine is: 3 % at 48 Gbit/s.
KEPT = 0.95
KEPT_NOISE = 0.22       # of one cell, on two cores that change their speed
SPAN, SPANS = 0.05, 3   # seconds
BLOCKS = 8              # the most comparisons of one cell
COUNTED = 0.001
WAYS = ("in", "out")
DIRECTIONS = ("ingress", "egress")
# IP version, MTU, BIG TCP
CELLS = [(4, 1500, False), (6, 1500, True), (4, 1500, True),
         (6, 9000, False), (6, 1500, False), (4, 9000, False)]


def tolerances(edt, rate, seconds):
    """Return the tolerances into the pod, which is policed, and out of it, which is paced where
    there is fq."""
    policed = forgiven(rate, seconds)
    return (policed, 0.02 if edt else policed)


class Lane:
    """A pod and its client, with natra's options, and the cell it stands for."""

    def __init__(self, pair, cell, options=()):
        self.pair = pair
        self.version, self.mtu, self.big = cell
        self.natra = Natra(pair[0], *options)
        self.meters = [Meter(end, header_bytes(self.version)) for end in pair]
        self.streams = []
        self.attached = False   # whether block() has attached natra

    def describe(self):
        return (f"{self.mode}{' EDT' if self.edt else ''} IPv{self.version} "
                f"{self.mtu}{' BIG TCP' if self.big else ''}")

    def key(self):
        return {"ip": self.version, "mtu": self.mtu, "big": self.big}

    def start(self, ways=WAYS, cpu=None):
        pod, client = self.pair
        ends = {"in": (client, pod), "out": (pod, client)}
        self.streams = [Stream(*ends[way], self.version, cpu) for way in ways]

    def stop(self):
        for s in self.streams:
            s.close()
        self.streams = []

    def read(self):
        """Return (time, bytes on the wire) each way."""
        return [read_promptly(s.wire_bytes) for s in self.streams]

    def read_passed(self):
        """Read the bytes that natra let pass, each way, and what its backstop dropped."""
        stats = self.natra.stats()
        self.stopped = dropped(stats["backstop"]) if "backstop" in stats else None
        self.passed = [total(stats[d]) - dropped(stats[d], "bytes") -
                       stats[d]["other"]["bytes"] for d in DIRECTIONS]

    def arrived(self):
        return [m.read()[1] for m in self.meters]


def backlog_losses():
    """Return how many packets the kernel has lost in full backlogs, behind natra."""
    with open("/proc/net/softnet_stat") as f:
        return sum(int(line.split()[1], 16) for line in f)


def rates(before, after):
    """Return the bit/s between two results of read()."""
    return [(b1 - b0) * 8 / (t1 - t0)
            for (t0, b0), (t1, b1) in zip(before, after)]


def upper_quartile(values):
    return sorted(values)[len(values) * 3 // 4]


def quartile_ratio(spans):
    """Return the rate with a limit beyond the wire, as a part of that without."""
    return upper_quartile(spans[True]) / upper_quartile(spans[False])


class Bench:
    """Measures one wiring."""

    def __init__(self, name, rep, a):
        self.name, self.rep, self.a = name, rep, a
        self.begin = time.monotonic()
        features = Natra().json("probe")
        self.auto, self.fq = features["auto_mode"], bool(features["fq"])
        self.kernel = re.match(r"\d+\.\d+", os.uname().release)[0]
        others = list(self.others())
        # The other modes are tried in cells that all kernels have.
        plain = [c for c in CELLS[:a.cells] if not c[2]]
        cells = [(c, ()) for c in CELLS[:a.cells]] + [
                (plain[i % len(plain)], options)
                for i, options in enumerate(others)]
        wiring = Wiring(name, [c[1] for c, _ in cells])
        self.lanes = []
        for (cell, options), pair in zip(cells, wiring.pairs):
            lane = Lane(pair, cell, options)
            versions = wiring.set_big_tcp(pair, lane.big)
            if lane.big and lane.version not in versions:
                self.cell(**lane.key(), skip="no BIG TCP")
            else:
                self.lanes.append(lane)
        self.by_auto = len(self.lanes) - len(others)

    def others(self):
        """Yield natractl's options for everything that differs from what auto takes."""
        for mode in Natra.modes():
            if mode.endswith("hostside") and self.name not in WITH_HOST_PEER:
                continue
            if mode != self.auto:
                yield "--attach-mode", mode
            if self.fq and mode.endswith("podside"):
                # Without EDT `auto` tries the modes in another order, and must take the
                # same one.
                yield *(("--attach-mode", mode) if mode != self.auto else ()), \
                    "--edt-pacing", "off"

    def cell(self, **found):
        print("cell", json.dumps({"kernel": self.kernel, "fq": self.fq,
                                  "wiring": self.name, **found}))

    def clock(self, what):
        self.rep.shown(what, f"after {time.monotonic() - self.begin:.1f} s")

    def refused(self):
        """Check that modes which need a host-side veth are refused where there is
        none."""
        if self.name in WITH_HOST_PEER:
            return
        pod = self.lanes[0].pair[0]
        for mode in Natra.modes():
            if not mode.endswith("hostside"):
                continue
            p = Natra().run("attach", "eth0", "--netns", pod.path, "--attach-mode", mode,
                          "--ingress-rate", "10M")
            good = p.returncode == 1 and "no host-side veth" in p.stderr and \
                len(p.stderr.splitlines()) == 1
            self.rep.check(f"{mode}: refused", p.stderr.strip(), "one line",
                           good)
            self.cell(mode=mode, edt=False, skip="no host side", ok=good)

    def held(self):
        """Check the cap and the counted bytes, in all lanes at once."""
        side_by_side(lambda lane: lane.natra.attach(self.a.cap, self.a.cap),
                     self.lanes)
        lost = backlog_losses()
        for lane in self.lanes:
            lane.before = lane.arrived()
        infos = {info["id"]: info for info in Natra().json("list")}
        self.clock("attached")
        for lane in self.lanes:
            info = infos[lane.natra.id]
            lane.mode, lane.edt = info["mode"], bool(info["edt_active"])
            lane.start()
            # The bursts must not come all at once, since the kernel's backlogs are
            # finite.
            time.sleep(0.03)
        self.clock("streams started")
        time.sleep(self.a.settle)
        before = [lane.read() for lane in self.lanes]
        time.sleep(self.a.seconds)
        after = [lane.read() for lane in self.lanes]
        for lane in self.lanes:
            lane.stop()
        self.clock("measured")
        self.drain()
        side_by_side(Lane.read_passed, self.lanes)
        lost = backlog_losses() - lost
        self.rep.shown("packets that full backlogs of the kernel lost", lost)
        found = [self.judged(lane, rates(b, a), lost) for lane, b, a in
                 zip(self.lanes, before, after)]
        side_by_side(lambda lane: lane.natra.detach(), self.lanes)
        return found

    def drain(self):
        """Wait until nothing arrives any more."""
        end, last = time.monotonic() + 5, None
        while time.monotonic() < end:
            now = [lane.arrived() for lane in self.lanes]
            if now == last:
                break
            last = now
            time.sleep(0.2)

    def judged(self, lane, got, lost):
        """Check a lane, and return what the table shall say of it. What was lost in full
        backlogs passed natra and arrived nowhere, so that the bytes cannot be compared."""
        failed = self.rep.failed
        what = f"{self.name} {lane.describe()}"
        cap = bits(self.a.cap)
        for way, rate, tolerance in zip(WAYS, got, tolerances(lane.edt, cap, self.a.seconds)):
            self.rep.near(f"{what} {way}", rate / 1e6, cap / 1e6, tolerance, " Mbit/s")
        for way, passed, m0, m1 in zip(WAYS, lane.passed, lane.before,
                                       lane.arrived()):
            self.rep.check(f"{what} counted {way}", passed,
                           f"{m1 - m0} +-{COUNTED:.1%}",
                           abs(passed - (m1 - m0)) <= COUNTED * (m1 - m0),
                           " bytes", exact=not lost)
        if lane.stopped is not None:
            self.rep.equal(f"{what} dropped by the backstop", lane.stopped, 0)
        return {"mode": lane.mode, "edt": lane.edt,
                "mbit": [round(r / 1e6, 2) for r in got],
                "ok": self.rep.failed == failed}

    def block(self, lane, spans):
        """Add the rates of short spans, without natra and with a limit beyond the wire,
        to spans[limited]. Return natra's statistics."""
        # This order makes drift hit both alike.
        for limited in (False, True, True, False):
            if limited and not lane.attached:
                lane.natra.attach(BEYOND, BEYOND, "--heavy-hitter-threshold",
                                  HEAVY_BYTES)
            elif not limited and lane.attached:
                stats = lane.natra.stats()
                lane.natra.detach()
            lane.attached = limited
            time.sleep(SPAN)
            for _ in range(SPANS):
                before = lane.read()
                time.sleep(SPAN)
                spans[limited].extend(rates(before, lane.read()))
        return stats

    def kept(self, lane):
        """Measure the throughput with a limit beyond the wire, as a part of that
        without."""
        failed, ratios = self.rep.failed, []
        cpus = sorted(os.sched_getaffinity(0))
        for way, direction in zip(WAYS, DIRECTIONS):
            # Nothing else runs on the stream's CPU, if there is another one.
            os.sched_setaffinity(0, cpus[:-1] or cpus)
            lane.start([way], cpus[-1])
            spans, blocks = {False: [], True: []}, []
            for _ in range(BLOCKS):
                block = {False: [], True: []}
                stats = self.block(lane, block)[direction]
                blocks.append(quartile_ratio(block))
                for limited in spans:
                    spans[limited] += block[limited]
                # Some machines change their speed by half for seconds. The median of
                # the blocks then shows what is kept, and all spans together do not.
                kept = max(quartile_ratio(spans), statistics.median(blocks))
                # Another block shows whether a loss was a moment's noise.
                if kept >= KEPT:
                    break
            lane.stop()
            os.sched_setaffinity(0, cpus)
            what = f"{self.name} {lane.describe()} {way} {BEYOND}"
            ratios.append(kept)
            without = upper_quartile(spans[False])
            self.rep.least(f"{what}: kept of {without / 1e9:.2f} Gbit/s",
                           ratios[-1], KEPT - KEPT_NOISE)
            size = total(stats) / total(stats, "packets")
            self.rep.shown("  bytes in a packet", f"{size:.0f}")
            if lane.big:
                self.rep.least(f"{what}: bytes in a packet", size, 66000)
        return {"kept": [round(r, 3) for r in ratios],
                "ok": self.rep.failed == failed}

    def compared(self):
        """Check how much throughput is kept in the first lanes on `auto`, and the
        median of all."""
        found = [self.kept(lane)
                 for lane in self.lanes[:min(self.by_auto, self.a.kept_cells)]]
        if found:
            self.rep.least(f"{self.name}: kept of the throughput, median",
                           statistics.median(r for k in found
                                             for r in k["kept"]), KEPT)
        return found


def main(rep, a):
    try:
        bench = Bench(a.wiring, rep, a)
    except Missing as e:
        skip(str(e))
    bench.clock("set up")
    bench.refused()
    found = rep.measure(f"{a.wiring}: caps", bench.held)
    bench.clock("detached")
    kept = rep.measure(f"{a.wiring}: throughput", bench.compared)
    bench.clock("compared")
    for i, (lane, cell) in enumerate(zip(bench.lanes, found)):
        auto = i < bench.by_auto
        if "--attach-mode" not in lane.natra.options:
            cell["ok"] &= rep.equal(f"{lane.describe()}: what auto takes",
                                    cell["mode"], bench.auto)
        if i < len(kept):
            cell |= kept[i] | {"ok": cell["ok"] and kept[i]["ok"]}
        bench.cell(**lane.key(), auto=auto, **cell)


if __name__ == "__main__":
    run_script(main,
        option("wiring", choices=NAMES),
        option("--cap", default="100M"),
        option("--settle", type=float, default=1.5),
        option("--seconds", type=float, default=4),
        option("--cells", type=int, default=len(CELLS), help="only the first"),
        option("--kept-cells", type=int, default=4,
               help="compare throughput in so many, the first"))
