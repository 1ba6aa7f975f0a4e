# SPDX-License-Identifier: BSD-2-Clause
"""Says of fair.py's figures where natra is better than another limiter, and where it is
worse."""
import statistics

from fair_scenarios import SCENARIOS
from markdown import table

OURS = {"natra": "natra", "strict": "natra, strict"}
PEERS = ("tbf", "fq_codel", "cake")
# A qdisc has two ways: out of the pod, and into it.
PEERS_WAY = {"edt": "out", "pace": "in", "police": "in"}
# Figures that are closer than this, or by less than this part, are the same.
SAME = {" ms": 1, " s": 0.1, "": 0.02}
SAME_PART = 0.1


def figures(results, label, scenario, params):
    """Return the figures of a cell that limiters are compared by, by name."""
    checks = results.checks(label, scenario, params, "compared")
    return {c.what: c for c in checks or []}


def margin(mine, other):
    part = SAME_PART * min(mine.off(), other.off()) if mine.unit else 0
    return max(SAME[mine.unit], part)


def compare(mine, other):
    """Return 1 if mine is better, -1 if it is worse, 0 if they are the same."""
    by = other.off() - mine.off()
    return 0 if abs(by) <= margin(mine, other) else 1 if by > 0 else -1


def kind(what):
    """Return a figure's name without the share of the cap that it is about."""
    return what.rpartition("%: ")[2]


class Score:
    """How one limiter's figure of a kind compares with another's."""

    def __init__(self):
        self.pairs = []

    def add(self, mine, other):
        self.pairs.append((mine, other))

    def text(self):
        if not self.pairs:
            return ""
        got = [compare(*p) for p in self.pairs]
        mine, other = (statistics.median(p[i].value for p in self.pairs)
                       for i in (0, 1))
        return f"{got.count(1)}, {got.count(0)}, {got.count(-1)} ({number(mine)}" \
               f"{self.pairs[0][0].unit} / {number(other)})"


def number(value):
    return f"{value:.3f}" if abs(value) < 10 else f"{value:.0f}"


def pairs(results, scenario, peer):
    """Yield each figure that natra and a peer both have: the label, the way, the
    parameters, the name, natra's and the peer's."""
    for label in OURS:
        for params in results.params(label, scenario):
            way = params["way"]
            if way not in PEERS_WAY:
                continue
            other = figures(results, peer, scenario, params)
            for what, mine in figures(results, label, scenario, params).items():
                if what in other:
                    yield label, way, params, what, mine, other[what]


def scores(results):
    """Return the rows of the table of comparisons."""
    found = {}
    for scenario in SCENARIOS:
        for peer in PEERS:
            for label, way, _, what, mine, other in pairs(results, scenario, peer):
                row = found.setdefault((scenario, kind(what), label, way), {})
                row.setdefault(peer, Score()).add(mine, other)
    return [(scenario, what, OURS[label], way,
             *(row[peer].text() if peer in row else "" for peer in PEERS))
            for (scenario, what, label, way), row in found.items()]


def losses(results, words):
    """Yield the figures in which a peer is better than natra in its default mode."""
    for scenario in SCENARIOS:
        for peer in PEERS:
            for label, way, params, what, mine, other in pairs(results, scenario, peer):
                if label == "natra" and compare(mine, other) < 0:
                    yield (scenario, way, words(params), what, peer,
                           f"{number(mine.value)}{mine.unit}",
                           f"{number(other.value)}{other.unit}")


def section(results, words):
    """Return the lines of the comparison, or none if there is no peer."""
    rows = scores(results)
    if not rows:
        return []
    worse = list(losses(results, words))
    lines = ["## natra beside qdiscs", "",
             "How often natra is better than a qdisc, the same, and worse; and the medians, "
             "natra's first. Of requests only those under their fair share count. Figures "
             f"are the same if they differ by {SAME['']}, or by {SAME[' ms']} ms or a "
             "tenth.", "",
             *table(("scenario", "figure", "", "way", *PEERS), rows)]
    if worse:
        lines += ["### Where a qdisc is better than natra", "",
                  *table(("scenario", "way", "", "figure", "qdisc", "natra", "the qdisc"),
                         worse)]
    return lines
