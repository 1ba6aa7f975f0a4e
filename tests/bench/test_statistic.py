#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests what the benchmark makes of samples: intervals and verdicts."""
import random
import statistics
import unittest

from statistic import ENOUGH, Stat, interval
from target import Target


class Intervals(unittest.TestCase):
    def test_it_holds_the_truth_as_often_as_it_says(self):
        """Of many runs with a known mean, about 95 % have it in their interval; with
        seven samples a little fewer."""
        source, held, runs = random.Random(1), 0, 200
        for _ in range(runs):
            values = tuple(source.gauss(10, 2) for _ in range(ENOUGH))
            low, high = interval(statistics.fmean, values)
            held += low <= 10 <= high
        self.assertGreater(held / runs, 0.88)
        self.assertLess(held / runs, 0.99)

    def test_pairs_take_out_what_both_suffer(self):
        """What slows a block down slows both of its samples."""
        machine = (1, 5, 2, 9, 3, 7, 4)
        ours = tuple(m * 0.9 for m in machine)

        def ratio(a, b):
            return statistics.fmean(a) / statistics.fmean(b)
        low, high = interval(ratio, ours, machine, paired=True)
        self.assertAlmostEqual(low, 0.9)
        self.assertAlmostEqual(high, 0.9)
        low, high = interval(ratio, ours, machine)
        self.assertGreater(high - low, 0.3)


class Verdicts(unittest.TestCase):
    def verdict(self, values, bound, sense="most", **more):
        return Target("x", Stat(tuple(values)), bound, sense, **more).judged

    def test_the_interval_decides(self):
        near = (9, 10, 11, 9, 10, 11, 10)
        self.assertEqual([self.verdict(near, b) for b in (12, 10.2, 8)],
                         ["met", "cannot tell", "missed"])
        self.assertEqual([self.verdict(near, b, "least") for b in (8, 9.8, 12)],
                         ["met", "cannot tell", "missed"])

    def test_factor(self):
        self.assertEqual(self.verdict((14,) * 7, Stat((10,) * 7), factor=1.5), "met")
        self.assertEqual(self.verdict((16,) * 7, Stat((10,) * 7), factor=1.5), "missed")
        t = Target("x", Stat((14,) * 7), Stat((10,) * 7), "most", factor=1.5)
        self.assertEqual((t.bound, t.between()), (15, "14 to 14"))


if __name__ == "__main__":
    unittest.main()
