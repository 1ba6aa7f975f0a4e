#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks that the bound on latency beside streams takes natra and refuses a queue, by
figures of latency.py on a machine that was busy, or had two busy loops beside the test."""
import contextlib
import io
import sys
import unittest
from pathlib import Path

sys.path.insert(0, f"{Path(__file__).resolve().parent}/../harness/python")
from percentiles import judge_latency
from report import Report

# Each row has, in ms, the median and the p99 of the limited pod, and the median and the
# p99.9 of the other one.
NATRA = [(.17, 30.55, .17, 75.13), (.09, .44, .09, 10.06), (.08, 2.91, .08, 4.59),
         (.12, 4.41, .08, 9.64), (.10, 2.48, .11, 6.25), (.12, 5.26, .10, 8.43),
         (.18, 5.24, .82, 7.67), (.15, 4.89, .17, 8.42), (1.71, 4.79, 2.45, 8.22),
         (2.46, 4.63, .87, 11.58), (.15, 15.48, .14, 32.45)]
# This is upstream's plugin with a burst of 1 Mbit.
UPSTREAM = [(34.57, 51.23, .10, 9.37), (34.58, 42.67, .12, 9.19),
            (33.56, 42.43, .10, 4.25), (28.78, 35.92, .12, 12.71),
            (34.75, 43.22, .13, 12.84), (39.54, 50.48, .13, 16.21),
            (34.32, 43.62, .22, 11.25), (31.85, 38.42, .66, 5.06),
            (33.05, 44.89, 1.07, 7.90), (38.19, 46.19, .81, 11.20),
            (33.03, 39.79, .09, 5.24)]


def failed(p50, p99, other_p50, other_p999):
    """Return how many of the two bounds fail."""
    rep = Report()
    with contextlib.redirect_stdout(io.StringIO()):
        judge_latency(rep, "pod", {"p50_ms": p50, "p99_ms": p99},
                      {"p50_ms": other_p50, "p999_ms": other_p999})
    return rep.failed


class Latency(unittest.TestCase):
    def test_natra_is_taken(self):
        self.assertEqual([failed(*run) for run in NATRA], [0] * len(NATRA))

    def test_upstream_is_refused_by_both(self):
        self.assertEqual([failed(*run) for run in UPSTREAM], [2] * len(UPSTREAM))

    def test_short_queue_is_refused_by_the_median(self):
        self.assertEqual(failed(3, 5, .1, 10), 1)


if __name__ == "__main__":
    unittest.main()
