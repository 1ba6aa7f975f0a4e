# SPDX-License-Identifier: BSD-2-Clause
"""Figures next to what is demanded, and the exit code that follows."""
import sys


class Report:
    """Figures next to what is demanded; the script's exit code."""

    def __init__(self):
        self.failed = 0
        self.checked = 0

    def check(self, what, value, demanded, good, unit=""):
        self.checked += 1
        self.failed += not good
        print(f"{'ok  ' if good else 'FAIL'} {what:<52} "
              f"{value:>12}{unit}  demanded {demanded}{unit}")
        return good

    def near(self, what, value, target, tolerance, unit=""):
        return self.check(what, f"{value:.3f} ({value / target - 1:+.1%})",
                          f"{target:g} +-{tolerance:.1%}",
                          abs(value / target - 1) <= tolerance, unit)

    def most(self, what, value, limit, unit=""):
        return self.check(what, f"{value:.3f}", f"<= {limit:.3f}",
                          value <= limit, unit)

    def least(self, what, value, limit, unit=""):
        return self.check(what, f"{value:.3f}", f">= {limit:.3f}",
                          value >= limit, unit)

    def equal(self, what, value, wanted, unit=""):
        return self.check(what, str(value), str(wanted),
                          value == wanted, unit)

    def true(self, what, good, text=""):
        return self.check(what, text or str(bool(good)), "true", good)

    def shown(self, what, value):
        print(f"     {what:<52} {value}")

    def end(self):
        print(f"{self.checked - self.failed} of {self.checked} ok")
        sys.exit(1 if self.failed or not self.checked else 0)
