# SPDX-License-Identifier: BSD-2-Clause
"""Summarises samples: means, deviations, quantiles, intervals. No I/O."""
import random
import statistics
from dataclasses import dataclass

CONFIDENCE = 0.95
RESAMPLES = 2000
# With fewer samples an interval from resampling says little.
ENOUGH = 7


def quantiles(ordered, parts=100):
    """Return the values at 0, 1, ... `parts` parts of the way, for a CDF."""
    if not ordered:
        return []
    return [ordered[min(len(ordered) - 1, int(len(ordered) * i / parts))]
            for i in range(parts + 1)]


def middle(figures, centre, count):
    """Return the interval that holds the middle of resampled figures. Resampling n
    values makes their mean vary by (n - 1) / n of the variance that it has, so the
    interval is that much wider around the figure of the samples themselves."""
    ordered = sorted(figures)
    cut = int(len(ordered) * (1 - CONFIDENCE) / 2)
    wider = (count / (count - 1)) ** 0.5
    return tuple(centre + (edge - centre) * wider
                 for edge in (ordered[cut], ordered[-1 - cut]))


def interval(figure, *columns, paired=False):
    """Return the bootstrap interval of figure(*columns), each a tuple of samples, or
    None if a column has one sample only. Columns that are paired are resampled alike:
    what the machine did to a block of samples stays together. The same samples give the
    same interval."""
    count = min(map(len, columns))
    if count < 2:
        return None
    if paired:
        columns = [c[:count] for c in columns]
    draw = random.Random(repr(columns))
    found = []
    for _ in range(RESAMPLES):
        if paired:
            at = [draw.randrange(count) for _ in range(count)]
            found.append(figure(*([c[i] for i in at] for c in columns)))
        else:
            found.append(figure(*(draw.choices(c, k=len(c)) for c in columns)))
    return middle(found, figure(*columns), count)


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

    def pairs(self, workload, limiters, metric, **params):
        """Return a tuple of values for each limiter, of the samples that all have: the
        n-th value of each was measured in the same block."""
        found = []
        for name in limiters:
            key = next(iter(self.find(workload, name, **params)), None)
            found.append({s["sample"]: s["values"][metric]
                          for s in self.cells.get(key, ())
                          if isinstance(s["values"].get(metric), (int, float))})
        both = sorted(set.intersection(*map(set, found)))
        return [tuple(f[n] for n in both) for f in found]

    def errors(self):
        """Return pairs of a cell's title and what went wrong."""
        return [(title(key), s["error"]) for key, samples in self.cells.items()
                for s in samples if s.get("error")]


def title(key):
    workload, limiter, params = key
    return " ".join([workload, limiter, *(f"{k}={v}" for k, v in params)])
