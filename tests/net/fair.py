#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks that flows share a cap alike, and that a flow under the fair share does not
wait.

  requests    a request/response flow of 1 to 30 % of the cap beside elephants
  congestion  16 streams, CUBIC, or CUBIC and BBR, at three distances
  flood       a stream beside datagrams of 1 to 10 caps
  ecn         ECT beside non-ECT, TCP and UDP
  aggregate   1 to 64 flows and UDP: the cap is kept and used
  newcomers   streams that start and stop beside lasting ones
  changing    a mouse that becomes an elephant and a mouse again
  evasion     what a tenant may try against mode strict

Each is tried in each way: out of the pod (edt), and into it (pace, police). --full has
all of it, which takes hours; --report DIR keeps the figures in DIR/fair.json, does
only what is not there yet, and makes DIR/report.md. For instance, with another build of
natra and three qdiscs for comparison:

  tests/vm/run --rwdir DIR 6.12 -- tests/net/fair.py --full --natractl BUILD/.../natractl
      --before OTHER/.../natractl --report DIR --minutes 4
"""
import itertools
import os
import sys
import time

sys.path.insert(0, os.path.dirname(__file__) + "/../harness/python")
from commands import sh
from ecn import have_netem
from fair_lanes import LANES, NATRAS, WAYS, Lane, use_build, ways_of
from fair_scenarios import SCENARIOS, rr_program
from limiters import LIMITERS, Natra, bits, find_natractl
from meter import ETH_IPV4_TCP
from rig import Rig
from script import option, run_script

BRIEF = ("requests", "flood", "ecn")
FULL_LIMITERS = "natra,strict,before,tbf,fq_codel,cake"
# A machine carries this multiple of a rate without a limiter, or the rate is left out.
ROOM = 1.5


def title(label, params):
    return " ".join((label, *(f"{v}" if k in ("way", "rate") else f"{k}={v}"
                              for k, v in params.items() if k != "shares")))


class Bench:
    """Runs scenarios, one group of lanes after the other."""

    def __init__(self, r, rep, a, results):
        self.rep, self.a, self.results = rep, a, results
        self.lanes = [Lane(r, i, a.netem) for i in range(LANES)]
        self.until = time.monotonic() + a.minutes * 60
        self.carried, self.left = {}, 0

    def ways(self, scenario, label):
        ways = [w for w in ways_of(label, self.a.fq)
                if not self.a.ways or w in self.a.ways.split(",")]
        return ways[:2] if self.a.brief and scenario.at_once == 1 else ways

    def cells(self, scenario):
        """Return what is to be tried and is not there yet, as pairs of a limiter and
        parameters with a way. The limiters come soon after each other, so that they
        meet the same noise."""
        more = {k: v for k, v in (("fast_pass", self.a.fast_pass),
                                  ("share", self.a.fast_pass_share)) if v}
        if self.a.rtt is not None:
            more["rtt_ms"] = self.a.rtt
        # Only natra has what evasion is to evade, and it is strict there.
        labels = [x for x in self.a.limiter if scenario.name != "evasion" or
                  x in NATRAS and x != "strict"]
        cells = [(label, {"way": way, **more, **p}) for p in scenario.wanted(self.a)
                 for label in labels for way in self.ways(scenario, label)]
        return [(label, p) for label, p in cells if
                not self.results.have(label, scenario.name, p, self.a.rounds)]

    def groups(self, scenario):
        """Yield the cells that the lanes try at once."""
        def kind(cell):
            return self.build(cell[0]), cell[1]["rate"]

        cells = self.cells(scenario)
        while cells:
            # The more there is to carry, the less runs at once.
            n = min(scenario.at_once, self.a.lanes) \
                if bits(cells[0][1]["rate"]) <= 10e6 else 1
            same = itertools.takewhile(lambda c: kind(c) == kind(cells[0]), cells)
            group = list(itertools.islice(same, n))
            yield group
            cells = cells[len(group):]

    def build(self, label):
        return self.a.builds.get(label, self.a.builds["natra"])

    def run(self, scenario):
        for wanted in self.groups(scenario):
            if time.monotonic() > self.until:
                self.left += len(wanted)
            elif not self.carries(wanted[0][1]["rate"]):
                self.results.leave_out(scenario.name, [p for _, p in wanted],
                                       "too much for this machine")
            elif self.results.path:
                self.group(scenario, wanted)
            else:
                self.rep.measure(scenario.name, self.group, scenario, wanted)

    def group(self, scenario, wanted):
        use_build(self.build(wanted[0][0]))
        lanes = self.lanes[:len(wanted)]
        options = (*scenario.options,
                   *(("--fast-pass", self.a.fast_pass) if self.a.fast_pass else ()),
                   *(("--fast-pass-share", self.a.fast_pass_share)
                     if self.a.fast_pass_share else ()))
        for lane, (label, p) in zip(lanes, wanted):
            lane.start(label, p["way"], p["rate"], p.get("rtt_ms"), options)
        found = scenario.run(lanes, [p for _, p in wanted], self.a)
        for lane in lanes:
            lane.stop()
        for (label, params), values in zip(wanted, found):
            what = title(f"{scenario.name} {label}", params)
            self.results.add(label, scenario.name, params, values)
            self.show(what, scenario.checks(params, values))

    def show(self, what, checks):
        """Print figures; where they are kept, the report judges them."""
        self.rep.shown(what, "")
        for c in checks:
            if c.bounded() and not self.results.path:
                self.rep.check(f"  {c.what}", f"{c.value:.3f}", c.demanded(), c.met(),
                               c.unit, exact=False)
                if c.more:
                    self.rep.shown("", c.more)
            else:
                self.rep.shown(f"  {c.what}", f"{c.value:.3f}{c.unit} {c.more}")

    def carries(self, rate):
        """Return whether the machine carries more than a rate."""
        if rate not in self.carried:
            self.carried[rate] = bits(rate) <= 10e6 or self.measure_carried(rate)
        return self.carried[rate]

    def measure_carried(self, rate):
        lane = self.lanes[0]
        lane.start("none", "in", rate, 0)
        streams, meter = lane.streams(["cubic"] * 4), lane.meter(ETH_IPV4_TCP)
        time.sleep(0.5)
        (t0, n0), _, (t1, n1) = meter.read(), time.sleep(1), meter.read()
        streams.close()
        lane.stop()
        self.rep.shown(f"no limiter at {rate}",
                       f"{(n1 - n0) * 8 / (t1 - t0) / 1e6:.0f} Mbit/s")
        return (n1 - n0) * 8 / (t1 - t0) >= ROOM * bits(rate)


class NoResults:
    """Stands for a report that nobody asked for."""
    path = None

    def have(self, *_):
        return False

    def add(self, *_):
        pass

    leave_out = add


def known(what, given, names):
    """End the script if something is given that does not exist."""
    for name in given:
        if name not in names:
            sys.exit(f"{what} '{name}' is none of {', '.join(names)}")
    return given


def prepare(a):
    """Look at the machine before the script has namespaces of its own."""
    known("scenario", a.scenario, SCENARIOS)
    a.limiter = known("limiter", (a.limiter or (FULL_LIMITERS if a.full else "natra"))
                      .split(","), [*LIMITERS, *NATRAS])
    if "before" in a.limiter and not a.before:
        if not a.full:
            sys.exit("limiter 'before': --before is missing")
        a.limiter.remove("before")
    known("flows", [n for n in a.flows.split(",") if not n.isdecimal()], ("udp", "ecn"))
    known("way", a.ways.split(",") if a.ways else [], WAYS)
    if a.natractl:
        os.environ["NATRACTL"] = a.natractl
    # NATRACTL will name the build that is measured, and an old one need not have rr.
    os.environ["NATRA_RR"] = rr_program()
    a.builds = {"natra": os.path.realpath(find_natractl())}
    if a.before:
        a.builds["before"] = os.path.realpath(a.before)
    sh("modprobe", "-a", "tcp_bbr", "sch_netem", check=False)
    with open("/proc/sys/net/ipv4/tcp_available_congestion_control") as f:
        a.bbr = "bbr" in f.read().split()
    a.results = NoResults()
    if a.report:
        from fair_report import opened
        a.results = opened(a.report, a.builds, a.remark)


def main(rep, a):
    a.brief = not (a.full or a.report)
    a.fq = bool(Natra().json("probe")["fq"])
    a.netem = have_netem()
    a.rates = a.rates.split(",")
    a.shares = [int(share) for share in a.shares.split(",")]
    if not a.scenario:
        a.scenario = BRIEF if a.brief else list(SCENARIOS)
    with Rig(lanes=LANES) as r:
        bench = Bench(r, rep, a, a.results)
        for name in a.scenario:
            bench.run(SCENARIOS[name])
    if a.report:
        a.results.write()
        rep.true("something was measured", a.results.data["samples"])
        rep.shown("cells left for the next call", f"{bench.left}")


if __name__ == "__main__":
    run_script(main,
        option("scenario", nargs="*", help="of the above"),
        option("--limiter", help="natra, strict (natra with --fast-pass strict), "
               "before, tbf, fq_codel, cake, none, by comma"),
        option("--natractl", metavar="PATH", help="natra's, instead of NATRACTL's"),
        option("--before", metavar="PATH", help="natractl of another build"),
        option("--full", action="store_true", help="all cells and limiters"),
        option("--report", metavar="DIR"),
        option("--remark", help="a sentence about the machine, for the report"),
        option("--minutes", type=float, default=1e9,
               help="begin nothing more after so many"),
        option("--rounds", type=int, default=1, help="times for each cell"),
        option("--rates", default="10M,100M,1G"),
        option("--elephants", default="4,1,16", help="of requests"),
        option("--shares", default="1,5,8,16,30", help="of requests, in %%"),
        option("--ways", help="of edt, pace, police, in, out, by comma"),
        option("--flows", default="1,4,16,64,udp",
               help="of aggregate; ecn is one stream that can be marked"),
        option("--lanes", type=int, default=LANES, help="most that run at once"),
        option("--rtt", type=float, help="ms, instead of each way's own"),
        option("--fast-pass", choices=["free", "strict", "off"]),
        option("--fast-pass-share", metavar="PERCENT", help="of mice, with strict"),
        option("--seconds", type=float, help="to measure for"),
        prepare=prepare)
