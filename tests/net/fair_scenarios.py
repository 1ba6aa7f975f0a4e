# SPDX-License-Identifier: BSD-2-Clause
"""The scenarios of fair.py.

Each is a class. An object of it is the traffic of one lane, whose counts are noted many
times a second. values() makes figures of the notes, and checks() names those that
matter, with what is demanded of them.
"""
import itertools
import json
import os
import subprocess
import time
from dataclasses import dataclass

from edt import jain, tcp_counters
from fair_lanes import LANES, UDP_PORT
from limiters import bits
from meter import ETH_IPV4_TCP, ETH_IPV4_UDP

STEP_S = 0.1            # between two notes
BRIEF_S = 3             # to measure for, where little time is to be spent
RR_PORT = 5600
RR_SMALL, RR_MOST = 34, 1448    # bytes of a request
RR_PER_SECOND = 1000    # more only where requests cannot be larger
IDLE_FACTOR, IDLE_MORE_MS = 1.5, 5
POLICED, PACED = 0.05, 0.02     # how far off the cap the sum may be


@dataclass
class Check:
    """A figure, and the bound on it, if it has one."""
    what: str
    value: float
    most: float = float("inf")
    least: float = float("-inf")
    unit: str = ""
    more: str = ""      # to show beside it
    best: float = 0     # what it would be if nothing were lost

    def met(self):
        return self.least <= self.value <= self.most

    def bounded(self):
        return self.most < float("inf") or self.least > float("-inf")

    def demanded(self):
        low, high = (f"{b:.3g}" for b in (self.least, self.most))
        if not self.bounded():
            return ""
        return f"{low} to {high}" if "inf" not in low + high else \
            f"≥ {low}" if "inf" in high else f"≤ {high}"

    def off(self):
        """Return how far it is off the best."""
        return abs(self.value - self.best)


class Note:
    """Holds what a lane has carried at one time."""

    def __init__(self, meter, streams):
        counters = meter.counters()
        self.time, self.wire = meter.read()
        self.streams = [n for s in streams for n in s.wire_bytes()]
        self.ect = counters["InECT0Pkts"] + counters["InCEPkts"]
        self.not_ect = counters["InNoECTPkts"]


def slow(rates_wanted):
    return [r for r in rates_wanted if bits(r) <= 100e6]


def rates(a, b):
    """Return the bit/s of each stream between two notes."""
    return [(n - m) * 8 / (b.time - a.time) for m, n in zip(a.streams, b.streams)]


class Traffic:
    """Base of the scenarios that note what passes while flows run."""
    header = ETH_IPV4_TCP
    options = ()        # natra's
    seconds = 8
    at_once = LANES

    def __init__(self, lane, params):
        self.lane, self.params = lane, params
        self.floods, self.notes = [], []
        self.before = tcp_counters(lane.src)
        self.streams = self.start()
        self.meter = lane.meter(self.header)

    @classmethod
    def settle(cls, lane, _):
        """Return how long flows have to share, once they have started: the burst is
        used up by then, and far ones have left slow start."""
        return 2 + 0.06 * lane.rtt_ms

    def start(self):
        """Start the lane's traffic and return its lasting streams."""
        raise NotImplementedError

    def note(self):
        self.notes.append(Note(self.meter, self.streams))

    def settled(self):
        """The time to measure begins."""
        self.notes = []
        self.before = tcp_counters(self.lane.src)
        self.note()

    def close(self):
        self.after = tcp_counters(self.lane.src)
        for flow in self.streams + self.floods:
            flow.close()

    def shares(self):
        """Return the parts of the cap that the streams had."""
        return [n / self.lane.cap for n in rates(self.notes[0], self.notes[-1])]

    def sum(self):
        """Return the part of the cap that was used."""
        a, b = self.notes[0], self.notes[-1]
        return (b.wire - a.wire) * 8 / (b.time - a.time) / self.lane.cap

    @classmethod
    def compared(cls, params, values):
        """Yield the figures by which limiters are compared."""
        yield from cls.checks(params, values)

    def retransmitted(self):
        return self.after["RetransSegs"] - self.before["RetransSegs"]

    @classmethod
    def run(cls, lanes, wanted, a):
        """Return the values of each lane; they all run at once."""
        traffic = [cls(lane, params) for lane, params in zip(lanes, wanted)]
        time.sleep(max(map(cls.settle, lanes, wanted)))
        for t in traffic:
            t.settled()
        end = time.monotonic() + (a.seconds or (BRIEF_S if a.brief else cls.seconds))
        while time.monotonic() < end:
            time.sleep(STEP_S)
            for t in traffic:
                t.note()
        for t in traffic:
            t.close()
        return [t.values() for t in traffic]


class Congestion(Traffic):
    """16 streams, of one congestion control or of two, at three distances."""
    name = "congestion"
    seconds = 10

    @staticmethod
    def wanted(a):
        return [{"rate": rate, "rtt_ms": ms, "mix": mix}
                for rate in slow(a.rates) for mix in (("cubic", "cubic,bbr") if a.bbr else ("cubic",))
                for ms in ((1, 20, 100) if a.netem else (0,))]

    def start(self):
        names = self.params["mix"].split(",")
        return [self.lane.streams(names * (16 // len(names)))]

    def values(self):
        shares = self.shares()
        kinds = self.params["mix"].split(",")
        parts = {k: sum(shares[i::len(kinds)]) for i, k in enumerate(kinds)}
        return {"jain": jain(shares), "sum": self.sum(),
                "retransmitted": self.retransmitted(), **parts}

    @staticmethod
    def checks(params, values):
        more = ", ".join(f"{k} {values[k]:.2f}" for k in params["mix"].split(","))
        yield Check("Jain's index", values["jain"], more=more,
                    least=0.8 if "," in params["mix"] else 0.95, best=1)


class FloodBeside(Traffic):
    """A stream beside datagrams that do not care."""
    name = "flood"

    @staticmethod
    def wanted(a):
        if a.brief:
            return [{"rate": "10M", "caps": 10}]
        return [{"rate": rate, "caps": n} for rate in slow(a.rates) for n in (1, 3, 10)]

    def start(self):
        self.floods = [self.lane.flood(self.params["caps"] * self.lane.cap)]
        return [self.lane.streams(["cubic"])]

    def values(self):
        tcp, = self.shares()
        return {"tcp": tcp, "sum": self.sum()}

    @staticmethod
    def checks(_, values):
        yield Check("TCP's part of the cap", values["tcp"], least=0.4, best=0.5)


class Ecn(Traffic):
    """A flow that can be marked beside one that can only be dropped."""
    name = "ecn"

    @staticmethod
    def wanted(a):
        if a.brief:
            return [{"rate": "10M", "kind": "udp"}]
        return [{"rate": rate, "kind": kind} for rate in slow(a.rates)
                for kind in ("tcp", "udp")]

    def start(self):
        lane = self.lane
        if self.params["kind"] == "tcp":
            return [lane.streams(["cubic"], ecn=True), lane.streams(["cubic"])]
        self.header = ETH_IPV4_UDP
        self.floods = [lane.flood(1.5 * lane.cap, UDP_PORT + tos, tos=tos)
                       for tos in (2, 0)]
        return []

    def values(self):
        a, b = self.notes[0], self.notes[-1]
        ect, other = self.shares() or (b.ect - a.ect, b.not_ect - a.not_ect)
        return {"ect": ect / (ect + other), "sum": self.sum()}

    @staticmethod
    def checks(_, values):
        yield Check("ECT's part", values["ect"], least=0.45, most=0.55,
                    best=0.5)


class Aggregate(Traffic):
    """Any number of flows has the cap together."""
    name = "aggregate"

    @staticmethod
    def wanted(a):
        return [{"rate": rate, "flows": n} for rate in a.rates
                for n in (int(n) if n.isdecimal() else n for n in a.flows.split(","))]

    @classmethod
    def settle(cls, lane, params):
        """Many streams that start at once overdraw the bucket before their shares are
        found, and pay it back within two seconds more."""
        more = 2 if params["flows"] == 64 else 0
        return super().settle(lane, params) + more

    def start(self):
        if self.params["flows"] == "udp":
            self.header = ETH_IPV4_UDP
            self.floods = [self.lane.flood(3 * self.lane.cap)]
            return []
        if self.params["flows"] == "ecn":
            return [self.lane.streams(["cubic"], ecn=True)]
        return [self.lane.streams(["cubic"] * self.params["flows"])]

    def values(self):
        seconds, first = [], self.notes[0]
        for note in self.notes:
            if note.time - first.time >= 1:
                seconds.append((note.wire - first.wire) * 8 /
                               (note.time - first.time) / self.lane.cap)
                first = note
        mean = sum(seconds) / len(seconds)
        sd = (sum((s - mean) ** 2 for s in seconds) / len(seconds)) ** 0.5
        got = {"sum": self.sum(), "seconds_sd": sd,
               "retransmitted": self.retransmitted()}
        if self.streams:
            got["jain"] = jain(self.shares())
        return got

    @staticmethod
    def checks(params, values):
        off = PACED if params["way"] in ("edt", "pace") else POLICED
        yield Check("the sum", values["sum"], least=1 - off, most=1 + off, best=1,
                    more=f"± {values['seconds_sd']:.1%} in a second, "
                    f"{values['retransmitted']:.0f} retransmitted")

    @classmethod
    def compared(cls, params, values):
        yield from cls.checks(params, values)
        yield Check("deviation between seconds", values["seconds_sd"])
        if "jain" in values:
            yield Check("Jain's index", values["jain"], best=1)


def silence(notes, stream):
    """Return the longest time in which a stream had nothing."""
    longest, since = 0, notes[0]
    for note in notes:
        if note.streams[stream] > since.streams[stream]:
            since = note
        longest = max(longest, note.time - since.time)
    return longest


def between(notes, begin, end):
    """Return the first and the last note of a span, in seconds from the first."""
    start = notes[0].time
    span = [n for n in notes if begin <= n.time - start <= end]
    return span[0], span[-1]


class Newcomers(Traffic):
    """Four lasting streams, and every other second one that lives for a second."""
    name = "newcomers"
    seconds = 12
    LASTING = 4

    @staticmethod
    def wanted(a):
        return [{"rate": rate} for rate in slow(a.rates)]

    def start(self):
        self.new, self.born, self.had = None, 0, []
        return [self.lane.streams(["cubic"] * self.LASTING)]

    def note(self):
        super().note()
        now = time.monotonic()
        if now - self.born < 1:
            return
        self.born = now
        if self.new:
            self.had.append(self.new.wire_bytes()[0] * 8 / self.lane.cap)
            self.new.close()
            self.new = None
        else:
            self.new = self.lane.streams(["cubic"])

    def settled(self):
        super().settled()
        self.had = []

    def close(self):
        if self.new:
            self.new.close()
        super().close()

    def values(self):
        windows = [rates(*between(self.notes, s, s + 2)) for s in
                   range(int(self.notes[-1].time - self.notes[0].time) - 1)]
        return {"jain_2s": min(map(jain, windows)), "sum": self.sum(),
                "silence_s": max(silence(self.notes, i) for i in range(self.LASTING)),
                "newcomer_least_s": min(self.had)}

    @staticmethod
    def checks(_, values):
        yield Check("Jain's index in 2 s, the least", values["jain_2s"], least=0.9,
                    best=1)
        yield Check("longest without a byte", values["silence_s"], most=1, unit=" s")
        yield Check("least newcomer's part of its second",
                    values["newcomer_least_s"], least=0.02, best=1 / (1 + Newcomers.LASTING))


def mouse_elephant_mouse(s):
    """Send little, then all that goes, then little again, for MOUSE_S each at the
    edges and ELEPHANT_S between."""
    s.setsockopt(1, 7, 65536)           # SOL_SOCKET, SO_SNDBUF
    begin, data = time.monotonic(), bytes(1000)
    while True:
        at = time.monotonic() - begin
        if Changing.BEGIN_S <= at < Changing.END_S:
            s.sendall(data * 8)
        else:
            s.sendall(data)
            time.sleep(0.1)


class Changing(Traffic):
    """Three lasting streams, and a mouse that becomes an elephant and a mouse again."""
    name = "changing"
    BEGIN_S, END_S, IN_ALL_S, LASTING = 4, 10, 14, 3

    @staticmethod
    def wanted(a):
        return [{"rate": rate} for rate in slow(a.rates)]

    def start(self):
        self.begin = time.monotonic()
        return [self.lane.streams(["cubic"] * self.LASTING),
                self.lane.streams(["cubic"], send=mouse_elephant_mouse)]

    @classmethod
    def run(cls, lanes, wanted, a):
        traffic = [cls(lane, params) for lane, params in zip(lanes, wanted)]
        for t in traffic:
            t.settled()
        while time.monotonic() - traffic[-1].begin < cls.IN_ALL_S + 0.5:
            time.sleep(STEP_S)
            for t in traffic:
                t.note()
        for t in traffic:
            t.close()
        return [t.values() for t in traffic]

    def values(self):
        # A sender in an emulated machine starts a little late.
        late = 0.3
        elephant = rates(*between(self.notes, self.BEGIN_S + 2 + late, self.END_S))
        mouse = rates(*between(self.notes, self.END_S + 2 + late, self.IN_ALL_S))
        lasting = range(self.LASTING)
        steady = [n for n in self.notes if n.time - self.notes[0].time > 2]
        return {"jain_elephant": jain(elephant),
                "elephant": elephant[-1] / self.lane.cap,
                "jain_mouse": jain([mouse[i] for i in lasting]),
                "mouse_kbit": mouse[-1] / 1e3,
                "silence_s": max(silence(steady, i) for i in range(self.LASTING + 1))}

    @staticmethod
    def checks(_, values):
        yield Check("Jain's index, 2 s after it is an elephant",
                    values["jain_elephant"], least=0.95, best=1)
        yield Check("Jain's index of the others, 2 s after it is none",
                    values["jain_mouse"], least=0.95, best=1)
        yield Check("longest without a byte", values["silence_s"], most=1, unit=" s")


class Evasion(Traffic):
    """Does what a tenant may try against mode strict, at ten times the cap."""
    name = "evasion"
    header = ETH_IPV4_UDP
    options = ("--fast-pass", "strict")
    seconds = 4
    TRICKS = {"2000 ports": {"ports": 2000},
              "2000 ports, ECT": {"ports": 2000, "tos": 2},
              "ECT": {"tos": 2},
              "200 bytes": {"size": 200, "ports": 500},
              "tiny": {"size": 40, "ports": 2000, "rate": 30e6},
              "pauses": {"ports": 20, "pause": 0.2},
              "GSO": {"size": 500, "rate": 400e6}}

    @classmethod
    def wanted(cls, a):
        return [{"rate": "10M", "trick": trick} for trick in cls.TRICKS]

    def start(self):
        options = {"rate": 10 * self.lane.cap, **self.TRICKS[self.params["trick"]]}
        self.floods = [self.lane.flood(**options)]
        return []

    def values(self):
        return {"sum": self.sum()}

    @staticmethod
    def checks(_, values):
        yield Check("part of the cap", values["sum"], most=1.05)


def rr_program():
    """Return the path of rr, which is built beside natractl."""
    beside = os.path.dirname(os.environ.get("NATRACTL", "")) + "/../../tests/net/rr"
    return os.environ.get("NATRA_RR", beside)


def rr_load(cap, share):
    """Return the bytes of a request, and how many a second are a share of the cap."""
    per_second = share / 100 * cap / 8 / (RR_SMALL + ETH_IPV4_TCP)
    if per_second <= RR_PER_SECOND:
        return RR_SMALL, per_second
    size = min(RR_MOST, int(share / 100 * cap / 8 / RR_PER_SECOND) - ETH_IPV4_TCP)
    return size, share / 100 * cap / 8 / (size + ETH_IPV4_TCP)


class Requests:
    """Requests on a clock beside elephants, of several shares one after the other.

    What the cap limits is the requests, or with the way out of the pod the answers.
    """
    name = "requests"
    options = ()
    at_once = 1         # two lanes would wait for each other's CPU
    IDLE_S = 1.5
    # A flow that sends as much as makes it heavy changes sides in shorter runs.
    SECONDS = 8

    @staticmethod
    def wanted(a):
        if a.brief:
            return [{"rate": "10M", "elephants": 4, "shares": [8]}]
        return [{"rate": rate, "elephants": n, "shares": a.shares}
                for rate, n in itertools.product(slow(a.rates),
                                                 map(int, a.elephants.split(",")))]

    @staticmethod
    def ask(lanes, shares, seconds):
        """Return rr's answer for each lane; the clients run at once."""
        asked = []
        for lane, share in zip(lanes, shares):
            size, per_second = rr_load(lane.cap, share)
            asked.append(lane.client.popen(
                    rr_program(), "client", lane.pod.ip, str(RR_PORT), str(size),
                    f"{per_second:.1f}", str(seconds), stdout=subprocess.PIPE,
                    text=True))
        answers = []
        for lane, p in zip(lanes, asked):
            out, _ = p.communicate(timeout=seconds + 20)
            lane.client.stop(p)
            answers.append(json.loads(out))
        return answers

    @classmethod
    def run(cls, lanes, wanted, a):
        servers = [lane.pod.popen(rr_program(), "server", str(RR_PORT))
                   for lane in lanes]
        for lane in lanes:
            lane.r.wait_port(lane.pod, RR_PORT)
        turns = list(zip(*(params["shares"] for params in wanted)))
        idle = [cls.ask(lanes, shares, cls.IDLE_S) for shares in turns]
        streams = [lane.streams(["cubic"] * params["elephants"])
                   for lane, params in zip(lanes, wanted)]
        time.sleep(max(map(Traffic.settle, lanes, wanted)))
        beside = [cls.ask(lanes, shares, a.seconds or cls.SECONDS) for shares in turns]
        for s in streams:
            s.close()
        for lane, server in zip(lanes, servers):
            lane.pod.stop(server)
        return [{str(shares[i]): {"idle": idle[n][i], "beside": beside[n][i]}
                 for n, shares in enumerate(turns)} for i in range(len(lanes))]

    @staticmethod
    def checks(params, values):
        for share, got in values.items():
            idle, beside = got["idle"], got["beside"]
            under = float(share) / 100 < 1 / (params["elephants"] + 1)
            yield Check(f"{share} %: mean", beside["mean_ms"], unit=" ms",
                        most=IDLE_FACTOR * idle["mean_ms"] + IDLE_MORE_MS
                        if under else float("inf"),
                        more=f"p99 {beside['p99_ms']:.1f}, idle "
                        f"{idle['mean_ms']:.1f}")

    @staticmethod
    def compared(params, values):
        """Yield the figures of flows that are under their fair share."""
        for share, got in values.items():
            if float(share) / 100 < 1 / (params["elephants"] + 1):
                beside = got["beside"]
                yield Check(f"{share} %: mean", beside["mean_ms"], unit=" ms")
                yield Check(f"{share} %: p99", beside["p99_ms"], unit=" ms")
                yield Check(f"{share} %: answered of those asked",
                            beside["answered"] / beside["count"], best=1)


SCENARIOS = {s.name: s for s in (Requests, Congestion, FloodBeside, Ecn, Aggregate,
                                 Newcomers, Changing, Evasion)}
