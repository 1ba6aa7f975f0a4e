#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks how fair.py's figures become a table, and that the committed tables are what
the committed figures make."""
import sys
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, f"{HERE}/../harness/python")
from fair_report import Results, medians

MACHINE = {"kernel": "6.0", "date": "today", "cpus": 2, "cpu": "some"}


def sample(limiter, way, tcp):
    return {"limiter": limiter, "scenario": "flood",
            "params": {"way": way, "rate": "10M", "caps": 3}, "values": {"tcp": tcp}}


class Table(unittest.TestCase):
    def rows(self, *samples):
        data = {"machine": MACHINE, "builds": {}, "samples": list(samples),
                "left_out": []}
        return [line for line in Results("", data).report().splitlines()
                if "caps 3" in line]

    def test_a_miss_is_bold_and_a_peer_stands_beside_its_direction(self):
        row, = self.rows(sample("before", "police", 0.1), sample("natra", "police", 0.5),
                         sample("tbf", "in", 0.2), sample("cake", "out", 0.5))
        self.assertEqual(row, "| police | 10M caps 3 | TCP's part of the cap | **0.100** "
                         "| 0.500 | **0.200** | – | ≥ 0.4 |")

    def peers(self, *samples):
        """Return the two tables of comparisons, as rows of cells."""
        data = {"machine": MACHINE, "builds": {}, "samples": list(samples),
                "left_out": []}
        compared, _, worse = Results("", data).report().partition(
                "## natra beside qdiscs")[2].partition("### Where a qdisc is better")
        return [[line.strip("| ").split(" | ") for line in text.splitlines()
                 if line.startswith("| flood")] for text in (compared, worse)]

    def test_peers(self):
        """A figure is better that is nearer to the best one, 0.5 here."""
        compared, worse = self.peers(
            sample("natra", "police", 0.55), sample("charged", "police", 0.47),
            sample("tbf", "in", 0.7), sample("cake", "in", 0.501))
        self.assertEqual(compared, [
            ["flood", "TCP's part of the cap", "natra", "police",
             "1, 0, 0 (0.550 / 0.700)", "–", "0, 0, 1 (0.550 / 0.501)"],
            ["flood", "TCP's part of the cap", "natra, charged", "police",
             "1, 0, 0 (0.470 / 0.700)", "–", "0, 0, 1 (0.470 / 0.501)"]])
        self.assertEqual(worse, [["flood", "police", "10M caps 3",
                                  "TCP's part of the cap", "cake", "0.550", "0.501"]])

    def test_peers_that_are_as_good(self):
        compared, worse = self.peers(sample("natra", "edt", 0.49),
                                     sample("cake", "out", 0.505),
                                     sample("tbf", "in", 0.1))
        self.assertEqual([row[4:] for row in compared],
                         [["–", "–", "0, 1, 0 (0.490 / 0.505)"]])
        self.assertEqual(worse, [])

    def test_several_samples_are_one_figure(self):
        row, = self.rows(*(sample("natra", "edt", n) for n in (0.1, 0.5, 0.6)))
        self.assertIn("| 0.500 |", row)

    def test_medians_of_figures_within_figures(self):
        self.assertEqual(medians([{"a": {"b": n}} for n in (3, 1, 2)]), {"a": {"b": 2}})


if __name__ == "__main__":
    unittest.main()
