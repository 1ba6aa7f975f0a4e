# SPDX-License-Identifier: BSD-2-Clause
"""Lists the targets of natra as data, and says which of them a run reached. No I/O.

A target that the run did not measure has no verdict.
"""
import statistics
from dataclasses import dataclass

MEMLOCK_KIB = 96
MEMLOCK_PODS = 50               # among which the programs' own count
WAYS = {"in": "into the pod", "out": "out of the pod"}
PACES = {"in": "pace", "out": "edt"}    # in the samples


@dataclass(frozen=True)
class Target:
    name: str
    value: float                # None: not measured
    bound: float                # None: what it is compared with was not measured
    sense: str                  # "most" or "least"
    unit: str = ""
    cause: str = ""             # of a miss, where it is known

    @property
    def met(self):
        """True or False, or None if there is no verdict."""
        if self.value is None or self.bound is None:
            return None
        return self.value <= self.bound if self.sense == "most" else \
            self.value >= self.bound

    def text(self):
        sign = "<=" if self.sense == "most" else ">="
        cause = f"; {self.cause}" if self.cause else ""
        return f"{self.name}: {self.show(self.value)} (demanded " \
               f"{sign} {self.show(self.bound)}){cause}"

    def show(self, value):
        """Return a figure with four digits, or with all of those before the point."""
        return (f"{value:.0f}" if value >= 1000 else f"{value:.4g}") + self.unit


def times(factor, value):
    return None if value is None else factor * value


def paced(res, key, way):
    """Return whether fq held the packets of that direction in a cell."""
    return any(s["values"].get(PACES[way]) for s in res.cells[key])


def cap(res):
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
                         abs(error.mean) * 100, 2 if held else 5, "most",
                         " %")


def deviation(res):
    """Compare natra with upstream by the standard deviation between samples, in percent
    of the rate: the median over all cells that have both."""
    for name, way in (("natra", "in"), ("natra", "out"), ("natra-pace", "in")):
        keys = [k for k in res.find("sweep", name) if res.stat(k, f"wire_{way}")]
        if not keys and name != "natra":
            continue            # there is no fq
        both = []
        for key in keys:
            # Upstream's cell has the other direction beside it, in a pod of its own.
            same = {p: dict(key[2])[p] for p in ("rate", "flows")}
            pair = [s and s.relative_sd for s in (
                    res.stat(key, f"wire_{way}"),
                    res.get("sweep", "upstream", f"wire_{way}", **same))]
            if None not in pair:
                both.append(pair)
        natra, upstream = ([statistics.median(v) * 100 for v in zip(*both)]
                           if both else (None, None))
        held = any(paced(res, k, way) for k in keys)
        yield Target(f"deviation between samples {WAYS[way]}, "
                     f"{'paced' if held else 'policed'}: at most upstream's",
                     natra, upstream, "most", " %",
                     f"medians of {len(both)} cells; in "
                     f"{sum(a <= b for a, b in both)} of them it is at most "
                     "upstream's" if held else
                     "policing has no queue to smooth with: where the wire "
                     "has no delay, a stream goes in bursts, one for each of "
                     "TCP's retransmission timeouts of 0.2 s")


def not_carried(res):
    """Return in words how much of the fixed load the machine itself does not carry."""
    offered, got = (res.mean("mixed", "none", metric, load="fixed")
                    for metric in ("offered", "rps_annotated"))
    return f"without a limiter {got:.0f} of {offered:.0f} were answered" \
        if offered and got is not None and got < 0.95 * offered else ""


def cpu_is_limit(res):
    """Return why requests are missing at full tilt: on an emulated CPU, runs without a
    limiter have served 114 to 480 requests/s in all."""
    return "at full tilt the CPU is the limit, and it is emulated" \
        if res.data["machine"].get("emulated") else ""


def mixed(res):
    def get(limiter, metric, load):
        return res.mean("mixed", limiter, metric, load=load)

    yield Target("mice beside elephants, fixed load: requests/s, at least "
                 "0.95 of no limiter's", get("natra", "rps_annotated", "fixed"),
                 times(0.95, get("none", "rps_annotated", "fixed")), "least",
                 "/s", not_carried(res))
    yield Target("mice beside elephants, fixed load: p99, at most 1.5 of no "
                 "limiter's",
                 get("natra", "p99_ms_annotated", "fixed"),
                 times(1.5, get("none", "p99_ms_annotated", "fixed")), "most",
                 " ms", not_carried(res))
    yield Target("mice at full tilt: requests/s, at least 10 times "
                 "upstream's",
                 get("natra", "rps_annotated", "tilt"),
                 times(10, get("upstream", "rps_annotated", "tilt")), "least",
                 "/s")
    for other, words in (("none", "no limiter's"), ("upstream", "upstream's")):
        yield Target(f"mice of both pods at full tilt: requests/s, at least "
                     f"{words}",
                     get("natra", "rps_total", "tilt"),
                     get(other, "rps_total", "tilt"), "least", "/s",
                     cpu_is_limit(res))


def latency(res):
    def median(limiter, stream):
        return res.mean("latency", limiter, "p50_us", stream=stream)

    rows = [(words, median("natra", way)) for way, words in WAYS.items()]
    held = median("natra-pace", "in")
    if held is not None:
        rows.append((f"{WAYS['in']}, paced", held))
    for words, value in rows:
        yield Target(f"latency beside a stream {words}: median, at most 1.5 "
                     "of idle", value, times(1.5, median("natra", "idle")),
                     "most", " us")


def cost(res):
    def stat(limiter, metric):
        return res.get("throughput", limiter, metric)

    def median(limiter, metric):
        return stat(limiter, metric) and stat(limiter, metric).median

    def scatter(name, other):
        """Return in words by how much the samples of each limiter differ."""
        words = [f"{min(found.values):.1f} to {max(found.values):.1f}"
                 for found in (stat(n, "gbit") for n in (name, other))
                 if found and len(found.values) > 1]
        return f"medians of samples from {' and from '.join(words)}" \
            if words else ""

    for key in res.find("throughput"):
        name = key[1]
        if not name.startswith("natra"):
            continue
        for other, factor, words in (("none", 0.97, "0.97 of no limiter's"),
                                     ("upstream", 1, "upstream's")):
            yield Target(f"throughput far under the cap, {name}: at least "
                         f"{words}",
                         median(name, "gbit"),
                         times(factor, median(other, "gbit")), "least",
                         " Gbit/s", scatter(name, other))
        yield Target(f"CPU seconds per GB, {name}: at most upstream's",
                     median(name, "cpu_per_gb"),
                     median("upstream", "cpu_per_gb"), "most", " s")


def footprint(res):
    for mode in ("clsact", "tcx"):
        for what, words, unit in (("rss_kib", "peak RSS", " KiB"),
                                  ("cpu_ms", "CPU time", " ms")):
            value = res.mean("add", "both", f"{what} natra {mode}")
            if value is not None:
                yield Target(f"ADD, {mode}: {words}, at most half of "
                             "upstream's",
                             value, times(0.5, res.mean(
                                     "add", "both", f"{what} upstream")),
                             "most", unit)
    pods = next((dict(k[2]).get("pods") for k in res.find("memory", "natra")),
                MEMLOCK_PODS)
    yield Target("kernel memory of a pod, by memlock",
                 res.mean("memory", "natra", "memlock_kib"), MEMLOCK_KIB,
                 "most", " KiB", "" if pods >= MEMLOCK_PODS else
                 f"{pods} pods, not {MEMLOCK_PODS}, share the programs")


def targets(res):
    return [t for part in (cap, deviation, mixed, latency, cost, footprint)
            for t in part(res)]


def missed(found):
    return [t for t in found if t.met is False]
