#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests that what is committed is what the committed results make."""
import json
import re
import unittest
from pathlib import Path

import bench                    # noqa: F401, finds the harness
import capped_pod
import causes
import colours
import quote
import workloads
from page import QUESTIONS
from report_md import write
from statistic import Results

RESULTS = Path(__file__).resolve().parent / "results"


class Page(unittest.TestCase):
    def test_each_workload_and_chart_belongs_to_one_question(self):
        modules = [m for _, some, _ in QUESTIONS for m in some]
        self.assertCountEqual(modules, workloads.MODULES)
        names = [n for _, _, some in QUESTIONS for n in some]
        self.assertEqual(len(set(names)), len(names))

    def test_each_colour_of_a_committed_chart_has_a_dark_one(self):
        known = {light for light, _ in colours.PAIRS}
        charts = [p for p in RESULTS.glob("*/*.svg") if p.parent.joinpath(
                "results.json").exists() and p.stem != capped_pod.NAME]
        self.assertTrue(charts)
        for path in charts:
            text = path.read_text()
            drawn = text.partition("</style>")[2]
            self.assertIn(colours.style(drawn), text, path)
            used = set(re.findall(r"(?:fill|stroke): (#[0-9a-f]{6})", drawn))
            self.assertLessEqual(used, known, path)
            self.assertNotIn(f"fill: {colours.INK[0]};", colours.dark(text))


class Committed(unittest.TestCase):
    """The report and the pictures of a kept run come from its results.json."""
    PICTURE = re.compile(r"^!\[(.*)\]\((.*)\.svg\)$", re.M)

    def test_report_is_what_the_results_make(self):
        for path in RESULTS.glob("*/results.json"):
            with self.subTest(path.parent.name):
                report = (path.parent / "report.md").read_text()
                pictures = {name: text for text, name in self.PICTURE.findall(report)}
                made, _ = write(Results(json.loads(path.read_text())), charts=pictures)
                self.assertEqual(report, made)

    def test_each_miss_has_a_cause(self):
        for path in RESULTS.glob("*/results.json"):
            with self.subTest(path.parent.name):
                report = (path.parent / "report.md").read_text()
                self.assertNotIn(causes.UNKNOWN, report.lower())

    def test_each_file_is_needed(self):
        runs = [path.parent for path in RESULTS.glob("*/results.json")]
        self.assertTrue(runs)
        for run_ in runs:
            pictures = self.PICTURE.findall((run_ / "report.md").read_text())
            self.assertEqual({path.name for path in run_.iterdir()},
                             {"report.md", "results.json",
                              *(f"{name}.svg" for _, name in pictures)})


class Picture(unittest.TestCase):
    """The picture of the README."""

    def runs(self):
        """Return those that measured what the picture shows."""
        found = [(path.parent, json.loads(path.read_text()))
                 for path in sorted(RESULTS.glob("*/results.json"))]
        found = [(where, data) for where, data in found
                 if any(s["workload"] == "mixed" for s in data["samples"])]
        self.assertTrue(found)
        return found

    def test_committed_pictures_show_the_committed_results(self):
        for where, data in self.runs():
            with self.subTest(where.name):
                self.assertEqual((where / "capped-pod.svg").read_text(),
                                 capped_pod.svg(Results(data)),
                                 f"run tests/bench/report_md.py {where}")


class Quoted(unittest.TestCase):
    """quote.py brings the figures of a new result into documents."""
    def test_committed_documents_have_the_committed_figures(self):
        for name in quote.FIGURES.DOCUMENTS:
            text = quote.house.read(name)
            self.assertEqual(quote.document(text, quote.house.read), (text, []), name)


if __name__ == "__main__":
    unittest.main()
