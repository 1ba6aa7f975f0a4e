# SPDX-License-Identifier: BSD-2-Clause
"""Compares a run with an earlier one and finds figures that are worse. No I/O."""
from dataclasses import dataclass

from statistic import title

# The sense of metrics, by the start of their names: +1 if more is better, -1 if less
# is.
SENSE = {"rps_": 1, "p50_": -1, "p99_": -1, "gbit": 1, "cpu_per_gb": -1,
         "programming_ms": -1, "client_": -1, "conntrack_": -1,
         "wall_ms ": -1, "cpu_ms ": -1, "rss_kib ": -1, "memlock_kib": -1,
         "slab_kib": -1, "chain_ms": -1, "rx ": -1, "tx ": -1, "edt ": -1}
# On two cores, differences below this or below three deviations come and go.
TOLERANCE = 0.25
# A cap's error is small itself, so the part of the rate by which it grew counts.
ERROR_TOLERANCE = 0.02


@dataclass(frozen=True)
class Change:
    cell: str
    metric: str
    old: float
    new: float
    worse: bool

    def text(self):
        return f"{self.cell}, {self.metric}: {self.old:.4g} -> {self.new:.4g}"


def sense(metric):
    return next((v for k, v in SENSE.items() if metric.startswith(k)), 0)


def worse(metric, old, new):
    if metric.startswith("error_"):
        return abs(new.mean) - abs(old.mean) > ERROR_TOLERANCE
    loss = sense(metric) * (old.mean - new.mean)
    noise = 3 * max(old.sd or 0, new.sd or 0)
    return loss > max(TOLERANCE * abs(old.mean), noise)


def changes(old, new, limiter="natra"):
    """Return natra's figures that both runs have and whose sense is known."""
    found = []
    for key in new.cells:
        if key not in old.cells or not key[1].startswith((limiter, "both")):
            continue
        for metric in new.metrics(key):
            if not sense(metric) and not metric.startswith("error_") or \
                    metric.endswith("upstream"):
                continue
            a, b = old.stat(key, metric), new.stat(key, metric)
            if a and b:
                found.append(Change(title(key), metric, a.mean, b.mean,
                                    worse(metric, a, b)))
    return found


def comparable(old, new):
    """Return why the two runs cannot be compared, or ""."""
    for what in ("kernel", "cpu", "cpus"):
        a, b = old.data["machine"].get(what), new.data["machine"].get(what)
        if a != b:
            return f"{what}: {a} before, {b} now"
    return ""
