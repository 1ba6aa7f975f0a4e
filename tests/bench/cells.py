# SPDX-License-Identifier: BSD-2-Clause
"""Lists the measurements, each with its place in the profiles.

A cell is the same in every profile; a profile is a choice of cells and how often
each is run. So what `ci` measures, `full` measures too.
"""
import dataclasses
import os

LIMITERS = ("none", "upstream", "natra")
ALL_LIMITERS = ("none", "upstream", "upstream-debian", "natra")
RATES = {"10M": 10**7, "100M": 10**8, "1G": 10**9, "10G": 10**10}
UNCAPPED = "100G"               # far above what a veth carries
POD_COUNTS = (1, 10, 100, 200)
SAMPLES = {"ci": 1, "full": 3}
TURNS = 5                       # in each sample, for limiters that differ little
# In tests/vm/run without KVM the CPU has a tenth of the speed, so the cells offer less
# load and make fewer pods.
EMULATED = "NATRA_VM" in os.environ and os.environ.get("NATRA_VM_KVM") != "1"
CPU_BOUND = ("throughput", "per-packet", "add")
EMULATED_PODS = 10


@dataclasses.dataclass(frozen=True)
class Cell:
    workload: str
    limiter: str
    params: tuple               # of (name, value), sorted
    seconds: float              # about how long it takes
    ci: bool = False
    once: bool = False          # one sample is as good as many

    def param(self, name):
        return dict(self.params)[name]

    def title(self):
        words = " ".join(f"{k}={v}" for k, v in self.params)
        return f"{self.workload} {self.limiter} {words}".rstrip()


def senseless(cell):
    """Return why this machine should not run the cell, or "" if it should."""
    if EMULATED and cell.workload in CPU_BOUND:
        return ("an emulated CPU translates each instruction of BPF, so CPU "
                "time says nothing of a real one's")
    if EMULATED and cell.workload == "slis" and \
            cell.param("pods") > EMULATED_PODS:
        return "an emulated CPU takes minutes to make so many pods"
    return ""


def cell(workload, limiter, seconds, ci=False, once=False, **params):
    return Cell(workload, limiter, tuple(sorted(params.items())), seconds, ci,
                once)


def sweep(fq):
    """Measure both directions at once, with a pod for each, but at 10G one after the
    other, because two cores do not carry that twice. Paced ingress runs alone, because
    egress would be the same beside it."""
    for flows in (1, 8):
        # These run first: what the wire carries decides which rates are left out.
        for ways in ("in+out", "in", "out"):
            yield cell("sweep", "none", 7.5, ci=flows == 1 and ways == "in+out",
                       once=True, rate="none", flows=flows, ways=ways)
    in_ci = {("10M", 1), ("100M", 8), ("1G", 1)}
    for rate in RATES:
        for flows in (1, 8):
            for ways in ("in", "out") if rate == "10G" else ("in+out",):
                for limiter in ("upstream", "natra"):
                    yield cell("sweep", limiter, 7.5, ci=(rate, flows) in in_ci,
                               rate=rate, flows=flows, ways=ways)
            if fq:
                yield cell("sweep", "natra-pace", 7.5,
                           ci=(rate, flows) in in_ci, rate=rate, flows=flows,
                           ways="in")
    # The burst that containerd sends with every rate.
    for rate in ("10M", "100M"):
        yield cell("sweep", "upstream-containerd", 7.5, ci=rate == "10M",
                   once=True, rate=rate, flows=1, ways="in+out")
        yield cell("sweep", "upstream-debian", 7.5, once=True, rate=rate,
                   flows=1, ways="in+out")


def mixed():
    for load in ("fixed", "tilt"):
        for limiter in (*ALL_LIMITERS, "upstream-containerd"):
            yield cell("mixed", limiter, 8, ci=limiter in LIMITERS,
                       once=limiter not in LIMITERS, load=load)


def latency(fq):
    for limiter in ALL_LIMITERS:
        for stream in ("idle", "in", "out"):
            yield cell("latency", limiter, 3 if stream == "idle" else 5,
                       ci=limiter in LIMITERS, once=limiter not in LIMITERS,
                       stream=stream)
    if fq:
        yield cell("latency", "natra-pace", 5, ci=True, stream="in")


def slis():
    """Let the node grow from one count of pods to the next, limiter by limiter."""
    for limiter in LIMITERS:
        grown = 0
        for pods in POD_COUNTS:
            yield cell("slis", limiter, 4 + 0.25 * (pods - grown),
                       ci=pods <= 10, once=True, pods=pods)
            grown = pods


def throughput(modes):
    """Measure natra as it attaches by itself and in each mode, in turns with the
    limiters that it is compared with: two cores carry some percent more or less from
    one time to the next, and the differences to be found are as small."""
    for _ in range(TURNS):
        for limiter in LIMITERS:
            yield cell("throughput", limiter, 1.8, ci=True)
        for mode in modes:
            yield cell("throughput", f"natra-{mode}", 1.8)


def footprint():
    yield cell("per-packet", "natra", 4, ci=True, once=True)
    yield cell("add", "both", 12, ci=True, once=True)
    for limiter in ("upstream", "natra"):
        yield cell("memory", limiter, 12, ci=True, once=True,
                   pods=50)


def everything(modes, fq):
    """All cells, in the order in which they run."""
    return [*sweep(fq), *mixed(), *latency(fq), *throughput(modes), *slis(),
            *footprint()]


def schedule(profile, modes, fq=False, only=None):
    """Return (sample, cell) pairs, all cells of a sample before the next sample, so
    that a drift of the machine meets all limiters alike. `modes` are the modes of
    attaching; `fq` says whether ingress can be paced here."""
    chosen = [c for c in everything(modes, fq)
              if (profile == "full" or c.ci) and
              (not only or c.workload in only)]
    return [(n, c) for n in range(SAMPLES[profile]) for c in chosen
            if n == 0 or not c.once]
