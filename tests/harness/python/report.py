# SPDX-License-Identifier: BSD-2-Clause
"""Prints figures beside what is demanded of them, and sets the exit code."""
import sys

SKIP = 77                       # exit code that meson takes for a skip
# One bound in a hundred fails on a busy machine, and a run has hundreds.
TRIES = 3


def skip(feature):
    """End the script as skipped; the last line names what is missing."""
    print(f"skip: {feature}", flush=True)
    sys.exit(SKIP)


class Report:
    """Prints figures beside their bounds, and ends the script with its exit code.

    near, most and least are bounds on what was measured. All other checks are
    exact: nothing else that runs on the machine can make them fail.
    """

    def __init__(self):
        self.checked = 0
        self.failed = 0         # checks among `checked`
        self.exact_failed = 0   # exact checks among `failed`
        self.tries = TRIES

    def measure(self, name, cell, *args, **kw):
        """Return cell(*args, **kw), which measures and checks bounds.

        On a machine where something else took the CPU for a moment a bound can
        fail, so the cell then runs again, up to `tries` times in all, and the checks
        of the last time count. An exception or an exact check that fails is final.
        tests/check/tally counts the lines `again: NAME`.
        """
        checked, failed = self.checked, self.failed
        exact_failed = self.exact_failed
        for left in reversed(range(self.tries)):
            ret = cell(*args, **kw)
            if self.failed == failed or self.exact_failed > exact_failed or not left:
                return ret
            print(f"again: {name}")
            self.checked, self.failed = checked, failed

    def check(self, what, value, demanded, good, unit="", exact=True):
        """Print and count a check. `exact` is False for a bound on a measurement."""
        self.checked += 1
        self.failed += not good
        self.exact_failed += exact and not good
        print(f"{'ok  ' if good else 'FAIL'} {what:<52} "
              f"{value:>12}{unit}  demanded {demanded}{unit}")
        return good

    def near(self, what, value, target, tolerance, unit=""):
        return self.check(what, f"{value:.3f} ({value / target - 1:+.1%})",
                          f"{target:g} +-{tolerance:.1%}",
                          abs(value / target - 1) <= tolerance, unit,
                          exact=False)

    def most(self, what, value, limit, unit=""):
        return self.check(what, f"{value:.3f}", f"<= {limit:.3f}",
                          value <= limit, unit, exact=False)

    def least(self, what, value, limit, unit=""):
        return self.check(what, f"{value:.3f}", f">= {limit:.3f}",
                          value >= limit, unit, exact=False)

    def equal(self, what, value, wanted, unit="", exact=True):
        return self.check(what, str(value), str(wanted),
                          value == wanted, unit, exact)

    def true(self, what, good, text=""):
        return self.check(what, text or str(bool(good)), "true", good)

    def shown(self, what, value):
        print(f"     {what:<52} {value}")

    def end(self):
        print(f"{self.checked - self.failed} of {self.checked} ok")
        sys.exit(1 if self.failed or not self.checked else 0)
