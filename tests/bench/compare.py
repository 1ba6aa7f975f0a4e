# SPDX-License-Identifier: BSD-2-Clause
"""Compares a run with an earlier one and finds what is worse. No I/O.

A figure that has enough samples in both runs is judged by itself: it is worse if all of
the interval of its change is. What has fewer samples comes and goes with the machine, so
these figures are judged together, those of a workload as the samples of one change.
"""
import statistics
from dataclasses import dataclass

from statistic import ENOUGH, interval, title

# The sense of metrics, by the start of their names: +1 if more is better, -1 if less
# is.
SENSE = {"rps_": 1, "p50_": -1, "p99_": -1, "gbit": 1, "cpu_per_gb": -1,
         "programming_ms": -1, "client_": -1, "conntrack_": -1,
         "wall_ms ": -1, "cpu_ms ": -1, "rss_kib ": -1, "memlock_kib": -1,
         "slab_kib": -1, "chain_ms": -1, "rx ": -1, "tx ": -1, "edt ": -1}
# Two hosts of the same kind differ by less than this part of a figure.
TOLERANCE = 0.25
# A cap's error is small itself, so the part of the rate by which it grew counts.
ERROR_TOLERANCE = 0.02
# How much worse nothing is than something; an interval can have no infinite end.
WITHOUT_BOUND = 1e9


@dataclass(frozen=True)
class Change:
    """How much worse something is, with its interval, and how much is too much. Of
    figures whose sense is known it is a factor, of errors a part of the cap."""
    name: str
    figure: float
    between: tuple              # None if the samples are too few for an interval
    limit: float
    detail: str = ""

    @property
    def verdict(self):
        """Return worse, not worse, or cannot tell."""
        if self.between is None:
            return "cannot tell"
        low, high = self.between
        return "worse" if low > self.limit else \
            "not worse" if high <= self.limit else "cannot tell"

    @property
    def worse(self):
        return self.verdict == "worse"

    def text(self):
        between = self.between and \
            f" ({self.between[0]:.3g} to {self.between[1]:.3g}, {self.limit:.3g} is allowed)"
        return f"{self.name}: {self.detail}worse by {self.figure:.3g}{between or ''}"


def sense(metric):
    return next((v for k, v in SENSE.items() if metric.startswith(k)), 0)


def of_error(values):
    return abs(statistics.fmean(values))


def grown(metric):
    """Return the function that says of two columns how much worse the second is."""
    if metric.startswith("error_"):
        return lambda old, new: of_error(new) - of_error(old)
    if sense(metric) > 0:
        return lambda old, new: ratio(statistics.fmean(old), statistics.fmean(new))
    return lambda old, new: ratio(statistics.fmean(new), statistics.fmean(old))


def ratio(above, below):
    return above / below if below else WITHOUT_BOUND if above else 1.0


def limit_of(metric):
    return ERROR_TOLERANCE if metric.startswith("error_") else 1 + TOLERANCE


def alone(name, metric, old, new):
    """Judge a figure that has enough samples."""
    how = grown(metric)
    return Change(name, how(old.values, new.values),
                  interval(how, old.values, new.values), limit_of(metric),
                  f"{old.mean:.4g} -> {new.mean:.4g}, ")


def together(workload, what, rows, limit):
    """Judge figures of few samples by the median of their changes. One that is far off is
    not a sign: such figures are what the machine did in that second."""
    found = tuple(amount for amount, _ in rows)
    most = max(rows)
    return Change(f"{workload}, {what} of few samples ({len(rows)})",
                  statistics.median(found),
                  interval(statistics.median, found) if len(found) >= ENOUGH else None,
                  limit, f"most {most[1]} by {most[0]:.3g}; in the middle ")


def changes(old, new, limiter="natra"):
    """Return natra's figures that both runs have and whose sense is known."""
    found, few = [], {}
    for key in new.cells:
        if key not in old.cells or not key[1].startswith((limiter, "both")):
            continue
        for metric in new.metrics(key):
            if not sense(metric) and not metric.startswith("error_") or \
                    metric.endswith("upstream"):
                continue
            a, b = old.stat(key, metric), new.stat(key, metric)
            if not a or not b:
                continue
            name = f"{title(key)}, {metric}"
            if min(len(a.values), len(b.values)) >= ENOUGH:
                found.append(alone(name, metric, a, b))
            else:
                what = "errors" if metric.startswith("error_") else "figures"
                few.setdefault((key[0], what, limit_of(metric)), []).append(
                        (grown(metric)(a.values, b.values), name))
    return found + [together(workload, what, rows, limit)
                    for (workload, what, limit), rows in few.items()]


def comparable(old, new):
    """Return why the two runs cannot be compared, or ""."""
    for what in ("kernel", "cpu", "cpus"):
        a, b = old.data["machine"].get(what), new.data["machine"].get(what)
        if a != b:
            return f"{what}: {a} before, {b} now"
    return ""
