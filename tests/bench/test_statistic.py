#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests what the benchmark makes of samples: figures, intervals and verdicts."""
import random
import statistics
import unittest

from statistic import ENOUGH, Results, Stat, interval, quantiles
from target import Target


def sample(limiter, n, wire):
    return {"workload": "cap", "limiter": limiter, "params": {"rate": "10M"},
            "sample": n, "values": {"wire": wire}}


def run(*samples):
    return Results({"format": 2, "samples": samples})


class Statistics(unittest.TestCase):
    def test_one_sample_has_no_deviation(self):
        self.assertIsNone(Stat((5,)).sd)
        self.assertIsNone(Stat((5,)).relative_sd)

    def test_deviation(self):
        s = Stat((9, 10, 11))
        self.assertEqual((s.mean, s.median, s.sd), (10, 10, 1))
        self.assertAlmostEqual(s.relative_sd, 0.1)

    def test_quantiles(self):
        q = quantiles(list(range(1000)))
        self.assertEqual((len(q), q[0], q[50], q[99], q[100]),
                         (101, 0, 500, 990, 999))
        self.assertEqual(quantiles([]), [])

    def test_results_by_cell(self):
        res = run(sample("natra", 0, 10), sample("natra", 1, 11), sample("upstream", 0, 9))
        self.assertEqual(res.get("cap", "natra", "wire", rate="10M").values, (10, 11))
        self.assertIsNone(res.get("cap", "natra", "wire", rate="1G"))
        self.assertIsNone(res.mean("cap", "none", "wire"))


    def test_samples_of_one_block_are_pairs(self):
        res = run(*(sample(*words) for words in (
                ("natra", 0, 1), ("natra", 1, 2), ("none", 1, 20), ("none", 2, 30))))
        self.assertEqual(res.pairs("cap", ("natra", "none"), "wire"), [(2,), (20,)])


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

    def test_one_sample_has_none(self):
        self.assertIsNone(interval(statistics.fmean, (5,)))

    def test_the_same_samples_give_the_same_interval(self):
        values = (1, 2, 3, 4, 7, 8, 9)
        self.assertEqual(interval(statistics.fmean, values),
                         interval(statistics.fmean, values))

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

    def test_the_bound_is_uncertain_too(self):
        sure, unsure = Stat((10,) * 7), Stat((4, 16, 8, 12, 6, 14, 10.7))
        self.assertEqual(self.verdict((9.9,) * 7, sure), "met")
        self.assertEqual(self.verdict((9.9,) * 7, unsure), "cannot tell")

    def test_few_samples_say_so(self):
        self.assertEqual(self.verdict((9, 30), 25), "met by 2 samples")
        self.assertEqual(self.verdict((30,), 25), "missed by 1 sample")

    def test_factor(self):
        self.assertEqual(self.verdict((14,) * 7, Stat((10,) * 7), factor=1.5), "met")
        self.assertEqual(self.verdict((16,) * 7, Stat((10,) * 7), factor=1.5), "missed")
        t = Target("x", Stat((14,) * 7), Stat((10,) * 7), "most", factor=1.5)
        self.assertEqual((t.bound, t.between()), (15, "14 to 14"))

    def test_not_measured(self):
        self.assertEqual(Target("x", None, 5, "most").judged, "not measured")
        self.assertEqual(Target("x", Stat((5,)), None, "most").judged, "not measured")


if __name__ == "__main__":
    unittest.main()
