# SPDX-License-Identifier: BSD-2-Clause
"""Summarises samples: means, deviations, quantiles. No I/O."""
import statistics
from dataclasses import dataclass


def quantiles(ordered, parts=100):
    """Return the values at 0, 1, ... `parts` parts of the way, for a CDF."""
    if not ordered:
        return []
    return [ordered[min(len(ordered) - 1, int(len(ordered) * i / parts))]
            for i in range(parts + 1)]


@dataclass(frozen=True)
class Stat:
    """One figure over its samples."""
    values: tuple

    @property
    def mean(self):
        return statistics.mean(self.values)

    @property
    def median(self):
        return statistics.median(self.values)

    @property
    def sd(self):
        """The standard deviation between samples, None if there is one sample only."""
        return statistics.stdev(self.values) if len(self.values) > 1 else None

    @property
    def relative_sd(self):
        return None if self.sd is None or not self.mean else \
            self.sd / abs(self.mean)


class Results:
    """A run's JSON, by cell."""

    def __init__(self, data):
        self.data = data
        self.cells = {}         # (workload, limiter, params) -> its samples
        for s in data["samples"]:
            self.cells.setdefault(self.key(s), []).append(s)

    @staticmethod
    def key(sample):
        return (sample["workload"], sample["limiter"],
                tuple(sorted(sample["params"].items())))

    def find(self, workload, limiter=None, **params):
        """Return the keys of the cells with these parameters, in the order of the run."""
        return [k for k in self.cells if k[0] == workload and
                limiter in (None, k[1]) and
                all(dict(k[2]).get(n) == v for n, v in params.items())]

    def metrics(self, key):
        return sorted({m for s in self.cells[key] for m in s["values"]})

    def stat(self, key, metric):
        values = [s["values"][metric] for s in self.cells[key]
                  if isinstance(s["values"].get(metric), (int, float))]
        return Stat(tuple(values)) if values else None

    def get(self, workload, limiter, metric, **params):
        """Return the figure of the first such cell, or None."""
        for key in self.find(workload, limiter, **params):
            stat = self.stat(key, metric)
            if stat:
                return stat
        return None

    def mean(self, *names, **params):
        stat = self.get(*names, **params)
        return stat.mean if stat else None

    def series(self, workload, limiter, name, **params):
        """Return the series of the first sample that has it, or None."""
        for key in self.find(workload, limiter, **params):
            for s in self.cells[key]:
                if s.get("series", {}).get(name):
                    return s["series"][name]
        return None

    def errors(self):
        """Return pairs of a cell's title and what went wrong."""
        return [(title(key), s["error"]) for key, samples in self.cells.items()
                for s in samples if s.get("error")]


def title(key):
    workload, limiter, params = key
    return " ".join([workload, limiter, *(f"{k}={v}" for k, v in params)])
