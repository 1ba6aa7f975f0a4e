#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks how fair.py's figures become a table, and that the committed tables are what
the committed figures make."""
import json
import sys
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, f"{HERE}/../harness/python")
from fair_report import FILE, Results, medians

RESULTS = HERE.parent / "bench" / "results"
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
                         "| 0.500 | **0.200** | – | – | ≥ 0.4 |")

    def test_several_samples_are_one_figure(self):
        row, = self.rows(*(sample("natra", "edt", n) for n in (0.1, 0.5, 0.6)))
        self.assertIn("| 0.500 |", row)

    def test_medians_of_figures_within_figures(self):
        self.assertEqual(medians([{"a": {"b": n}} for n in (3, 1, 2)]), {"a": {"b": 2}})

    def test_committed_reports(self):
        found = list(RESULTS.glob(f"*/{FILE}"))
        self.assertTrue(found)
        for path in found:
            made = Results(str(path.parent), json.loads(path.read_text())).report()
            self.assertEqual((path.parent / "report.md").read_text(), made, path)


if __name__ == "__main__":
    unittest.main()
