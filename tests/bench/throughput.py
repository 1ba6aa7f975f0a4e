# SPDX-License-Identifier: BSD-2-Clause
"""Measures what a cap that never binds costs: the bytes moved, and the CPU time of the
whole machine for them."""
import time

from cells import LIMITERS, UNCAPPED, cell, cpu_bound
from cputime import busy_seconds
from limiters import bits
from markdown import name_of, ranked, spread, table
from pods import limiter
from statistic import ENOUGH, Stat, interval
from target import CENTRES, Target

NAMES = ("throughput",)
BLOCKS = 7                      # of a sample
# One of a sample: what is to be told apart is natra and its peers, not its modes.
MODE_BLOCKS = 1
LEAST = 0.97                    # of no limiter's

# There are many short samples, because samples of 2 s varied as much as those of 1 s,
# whether or not each process was bound to a CPU.
SETTLE_SECONDS = 0.5
SECONDS = 1
FLOWS = 2                       # each way


def cells(node):
    """Measure natra as it attaches by itself and in each mode, in blocks with the
    limiters that it is compared with: two cores carry some percent more or less from
    one time to the next, and the differences to be found are as small."""
    for name in LIMITERS:
        yield cell("throughput", name, 2.2, ci=True, blocks=BLOCKS,
                   why_not=cpu_bound())
    for mode in node.modes:
        yield cell("throughput", f"natra-{mode}", 2.2, blocks=MODE_BLOCKS,
                   why_not=cpu_bound())


def satisfied(res):
    """Return whether natra's throughput is known to less than what it may lose."""
    natra, none = res.pairs("throughput", ("natra", "none"), "gbit")
    if len(natra) < ENOUGH:
        return False
    low, high = interval(lambda a, b: CENTRES["median"](a) / CENTRES["median"](b),
                         natra, none, paired=True)
    return high - low < 1 - LEAST


def run(r, cell_, lim=None):
    r.add("perf-server", lim or limiter(cell_.limiter), bits(UNCAPPED))
    r.elephants(FLOWS)
    meters = r.meters()
    time.sleep(SETTLE_SECONDS)
    cpu, before = busy_seconds(), [m.read() for m in meters]
    time.sleep(SECONDS)
    cpu, after = busy_seconds() - cpu, [m.read() for m in meters]
    moved = sum(b1 - b0 for (_, b0), (_, b1) in zip(before, after))
    span = after[0][0] - before[0][0]
    values = {"gbit": moved * 8e-9 / span, "cpu_per_gb": cpu / (moved / 1e9)}
    values.update(r.natra_state(r.pod))
    return values


def text(values):
    return (f"{values['gbit']:.2f} Gbit/s, {values['cpu_per_gb']:.3f} CPU "
            "seconds per GB")


def targets(res):
    def compared(name, other, metric):
        """Return both as samples of the same blocks."""
        if not res.find("throughput", other):
            return res.get("throughput", name, metric), None
        return [Stat(column) if column else None for column in
                res.pairs("throughput", (name, other), metric)]

    for _, name, _ in res.find("throughput"):
        if not name.startswith("natra"):
            continue
        for other, factor, words in (("none", LEAST, f"{LEAST} of no limiter's"),
                                     ("upstream", 1, "upstream's")):
            yield Target(f"throughput far under the cap, {name}: at least "
                         f"{words}", *compared(name, other, "gbit"), "least",
                         " Gbit/s", factor, "median", True)
        yield Target(f"CPU seconds per GB, {name}: at most upstream's",
                     *compared(name, "upstream", "cpu_per_gb"), "most", " s",
                     centre="median", paired=True)


def report(res):
    moved = []
    for name in dict.fromkeys(k[1] for k in res.find("throughput")):
        mode = next((s["values"]["mode"] for k in res.find("throughput", name)
                     for s in res.cells[k] if "mode" in s["values"]), "")
        found = {m: res.get("throughput", name, m)
                 for m in ("gbit", "cpu_per_gb")}
        if found["gbit"]:
            moved.append((name_of(name), mode, len(found["gbit"].values),
                          spread(found["gbit"], 1),
                          spread(found["cpu_per_gb"], 3)))
    return moved and [
            "## Far under the cap", "",
            "The cap is far above what the wire carries, and streams run both ways. "
            "The table shows medians, and the least and the most of the samples:", "",
            *table(("", "mode", "samples", "Gbit/s", "CPU seconds per GB"), moved)]


def answers(res):
    found = {n: res.get("throughput", n, "gbit") for n in LIMITERS}
    if all(found.values()):
        said = ranked({n: s.median / found["none"].median for n, s in found.items()
                       if n != "none"}, "{:.2f}", most=True)
        yield ("How much does a cap that never binds leave of the wire's throughput?",
               f"{said}.")
