# SPDX-License-Identifier: BSD-2-Clause
"""A target of natra, and whether samples say that it was reached. No I/O."""
import statistics
from dataclasses import dataclass
from functools import cached_property

from statistic import ENOUGH, Stat, interval

WAYS = {"in": "into the pod", "out": "out of the pod"}
CENTRES = {"mean": statistics.fmean, "median": statistics.median,
           "error": lambda errors: abs(statistics.fmean(errors)) * 100,
           "rms": lambda values: statistics.fmean(v * v for v in values) ** 0.5}


@dataclass(frozen=True)
class Target:
    """What is measured, and what is demanded of it: at most or at least `factor` times
    the bound. The bound is a number, or samples whose centre counts. None stands for
    what was not measured."""
    name: str
    measured: Stat
    against: object             # a Stat or a number
    sense: str                  # "most" or "least"
    unit: str = ""
    factor: float = 1
    centre: str = "mean"        # of CENTRES
    paired: bool = False        # the n-th samples of both were taken in one block
    count: int = 0              # samples of a cell, if the values are those of several cells

    @property
    def value(self):
        return self.measured and CENTRES[self.centre](self.measured.values)

    @property
    def bound(self):
        if self.against is None:
            return None
        return self.factor * (CENTRES[self.centre](self.against.values)
                              if isinstance(self.against, Stat) else self.against)

    @property
    def samples(self):
        """How many samples the side with fewer of them has."""
        return self.count or min(len(s.values) for s in (self.measured, self.against)
                                 if isinstance(s, Stat))

    @cached_property
    def interval(self):
        """Between what the figure is, relative to the bound and in its unit, or
        None. It also holds what is uncertain of the bound."""
        if not self.bound or self.measured is None:
            return None
        centre = CENTRES[self.centre]
        if isinstance(self.against, Stat):
            def ratio(measured, against):
                bound = centre(against)
                return centre(measured) / bound if bound else float("inf")
            found = interval(ratio, self.measured.values, self.against.values,
                             paired=self.paired)
            found = found and [f * self.bound / self.factor for f in found]
        else:
            found = interval(centre, self.measured.values)
        # None of these figures can be negative, but half of an interval may be.
        return found and tuple(max(0, f) for f in found)

    @property
    def met(self):
        """True or False by the figure alone, or None if it was not measured."""
        if self.value is None or self.bound is None:
            return None
        return self.value <= self.bound if self.sense == "most" else \
            self.value >= self.bound

    @property
    def verdict(self):
        """One of met, missed, cannot tell and not measured. Where there are enough
        samples their interval decides, elsewhere the figure alone."""
        if self.met is None:
            return "not measured"
        found = self.interval if self.samples >= ENOUGH else None
        if found:
            low, high = found if self.sense == "most" else (-found[1], -found[0])
            bound = self.bound if self.sense == "most" else -self.bound
            if low <= bound < high:
                return "cannot tell"
        return "met" if self.met else "missed"

    @property
    def judged(self):
        """How the verdict was found, for the reader of one that few samples made."""
        if self.met is None or self.samples >= ENOUGH:
            return self.verdict
        return f"{self.verdict} by {self.samples} " \
               f"{'sample' if self.samples == 1 else 'samples'}"

    def text(self):
        sign = "<=" if self.sense == "most" else ">="
        between = self.between()
        return f"{self.name}: {self.show(self.value)}" \
               f"{f' ({between})' if between else ''} (demanded " \
               f"{sign} {self.show(self.bound)})"

    def between(self):
        """Return the interval as text, or ""."""
        found = self.interval
        return f"{self.digits(found[0])} to {self.show(found[1])}" if found else ""

    @staticmethod
    def digits(value):
        """Return a figure with four digits, or with all of those before the point."""
        return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.4g}"

    def show(self, value):
        return self.digits(value) + self.unit
