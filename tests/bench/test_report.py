#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests the report: its page, its charts, the comparison with an earlier run, and that
what is committed is what the committed results make."""
import copy
import json
import random
import re
import tempfile
import unittest
import unittest.mock
from pathlib import Path

import bench                    # noqa: F401, finds the harness
import capped_pod
import colours
import compare
import fair_chart
import headofline
import quote
import workloads
from cells import Node, cell
from page import QUESTIONS
from report_md import thin, write
from statistic import ENOUGH, Results
from workloads import schedule

NODE = Node(("tcx-podside", "clsact-podside"), True, ("tbf", "fq_codel", "cake"))
SWEEP = {"rate": "10M", "flows": 1, "ways": "in+out"}
RESULTS = Path(__file__).resolve().parent / "results"


def sample(workload, limiter, params, n=0, **values):
    return {"workload": workload, "limiter": limiter, "params": params,
            "sample": n, "values": values}


def sweep(limiter, wires, edt=False):
    """Return one sample for each pair of rates in and out, in Mbit/s."""
    return [sample("sweep", limiter, SWEEP, n, edt=edt, wire_in=i, wire_out=o,
                   error_in=i / 10 - 1, error_out=o / 10 - 1, goodput_in=i,
                   goodput_out=o, seconds_sd_in=0, seconds_sd_out=0,
                   retransmissions_in=0, retransmissions_out=0,
                   first_second_mb_in=1, first_second_mb_out=1)
            for n, (i, o) in enumerate(wires)]


def run(*samples, **machine):
    return Results({
            "format": 2, "profile": "ci", "seconds": 5,
            "machine": dict({"kernel": "6.12", "cpus": 2, "cpu": "x",
                             "date": "today"}, **machine),
            "left_out": [{"cell": "sweep natra rate=10G", "why": "too much"}],
            "samples": list(samples)})


def light(colour):
    """Return a colour's luminance as WCAG defines it."""
    parts = [int(colour[i:i + 2], 16) / 255 for i in (1, 3, 5)]
    parts = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return sum(w * p for w, p in zip((0.2126, 0.7152, 0.0722), parts))


def contrast(*pair):
    low, high = sorted(map(light, pair))
    return (high + 0.05) / (low + 0.05)


class Resumed(unittest.TestCase):
    ABOUT = {"kernel": "6.12", "cpu": "x", "cpus": 2, "natra": "0.1", "commit": "c"}

    def kept(self, **changes):
        with tempfile.TemporaryDirectory() as d:
            path = f"{d}/results.json"
            bench.save(path, [sample("mixed", "none", {"load": "tilt"}, 3)],
                       {"profile": "full", "machine": self.ABOUT, "seconds": 9})
            return bench.kept(path, "full", dict(self.ABOUT, **changes))

    def test_what_is_there_is_not_measured_again(self):
        run_ = bench.Run(None, self.kept()["samples"])
        wanted = cell("mixed", "none", 1, load="tilt")
        self.assertEqual([run_.have(n, wanted) for n in (2, 3)], [False, True])

    def test_a_failed_cell_is_measured_again(self):
        failed = dict(sample("mixed", "none", {"load": "tilt"}), error="no traffic")
        self.assertFalse(bench.Run(None, [failed]).have(
                0, cell("mixed", "none", 1, load="tilt")))

    def test_other_machines_and_builds_are_not_mixed(self):
        for what in ("kernel", "cpus", "commit"):
            with self.assertRaisesRegex(SystemExit, f"results.json: {what} .* other "):
                self.kept(**{what: "other"})

    def test_the_wire_is_known_again(self):
        wire = sample("sweep", "none", dict(SWEEP, rate="none"), wire_in=900,
                      wire_out=800)
        with self.assertRaisesRegex(bench.Unavailable, "carries 800 Mbit/s"):
            bench.Run(None, [wire]).fits(cell("sweep", "natra", 1, **dict(
                    SWEEP, rate="1G")))


class Comparison(unittest.TestCase):
    """Made-up runs whose samples vary by `noise` around a figure."""

    @staticmethod
    def samples(figure, noise=0.1, count=ENOUGH, metric="gbit", limiter="natra"):
        draw = random.Random(f"{figure} {noise}")
        return [sample("throughput", limiter, {}, n,
                       **{metric: figure * (1 + noise * draw.uniform(-1, 1))})
                for n in range(count)]

    def verdicts(self, old, new):
        return [c.verdict for c in compare.changes(run(*old), run(*new))]

    def test_less_is_worse_for_rates_and_more_for_times(self):
        for metric, bad, good in (("gbit", 6, 20), ("p99_us", 20, 6)):
            old = self.samples(10, metric=metric)
            for figure, verdict in ((bad, "worse"), (good, "not worse")):
                self.assertEqual(self.verdicts(old, self.samples(figure, metric=metric)),
                                 [verdict], metric)

    def test_noise_is_not_worse(self):
        for figure in (9.0, 9.5, 10.0, 11.0):
            self.assertEqual(self.verdicts(self.samples(10), self.samples(figure)),
                             ["not worse"], figure)

    def test_samples_that_differ_a_lot_say_nothing(self):
        wide = [sample("throughput", "natra", {}, n, gbit=g)
                for n, g in enumerate((10, 30, 50, 12, 48, 20, 40))]
        self.assertEqual(self.verdicts(wide, self.samples(18)), ["cannot tell"])

    def test_one_sample_alone_says_nothing(self):
        self.assertEqual(self.verdicts(self.samples(10, count=1),
                                       self.samples(1, count=1)), ["cannot tell"])

    @staticmethod
    def pods(factors):
        return [sample("pods", "natra", {"pods": n}, p99_us=100 * f)
                for n, f in enumerate(factors)]

    def test_single_samples_of_a_workload_are_judged_together(self):
        old = self.pods([1] * 8)
        for factors, verdict in (
                ([0.9, 1.1, 1, 1.1, 0.9, 1.1, 0.95, 1.05], "not worse"),
                ([0.9, 1.1, 1, 30, 0.9, 1.1, 0.95, 1.05], "not worse"),
                ([1.8, 2.1, 2, 3, 1.9, 2.1, 1.95, 2.05], "worse")):
            self.assertEqual(self.verdicts(old, self.pods(factors)), [verdict], factors)
        # This many figures are too few.
        self.assertEqual(self.verdicts(self.pods([1] * 3), self.pods([9] * 3)),
                         ["cannot tell"])

    def test_nothing_left_is_worse(self):
        self.assertEqual(self.verdicts(self.samples(10, metric="rps_total"),
                                       self.samples(0, metric="rps_total")), ["worse"])

    def test_caps(self):
        old = sweep("natra", [(10.1, 9.9)] * ENOUGH)
        self.assertEqual(self.verdicts(old, sweep("natra", [(9.5, 10.1)] * ENOUGH)),
                         ["worse", "not worse"])

    def test_of_others_nothing_is_said(self):
        self.assertEqual(self.verdicts(self.samples(10, limiter="upstream"),
                                       self.samples(1, limiter="upstream")), [])

    def test_other_machines(self):
        self.assertIn("cpus", compare.comparable(run(), run(cpus=8)))
        self.assertEqual(compare.comparable(run(), run(natra="2")), "")


class Report(unittest.TestCase):
    def test_misses_come_first(self):
        text, _ = write(run(*sweep("natra", [(12, 10)])))
        lines = text.splitlines()
        self.assertTrue(lines[2].startswith("**1 of 2 targets missed"), text)
        self.assertIn("cap of 10M into the pod", lines[4])
        self.assertIn("20 %", lines[4])

    def test_all_met(self):
        text, _ = write(run(*sweep("natra", [(10, 10)])))
        self.assertTrue(text.splitlines()[2].startswith("All 2 targets"), text)

    def test_failures_are_reported(self):
        bad = sample("latency", "natra", {"stream": "in"})
        text, _ = write(run(dict(bad, error="RuntimeError: no\ntraffic")))
        self.assertIn("failed: latency natra stream=in: RuntimeError: no "
                      "traffic", text)

    def test_comparison_is_shown(self):
        old, new = (Comparison.samples(g) for g in (60, 6))
        text, worse = write(run(*new), run(*old))
        self.assertEqual(worse, 1)
        self.assertIn("**worse**: throughput natra, gbit: 6", text)


class Page(unittest.TestCase):
    def test_each_workload_and_chart_belongs_to_one_question(self):
        modules = [m for _, some, _ in QUESTIONS for m in some]
        self.assertCountEqual(modules, workloads.MODULES)
        names = [n for _, _, some in QUESTIONS for n in some]
        self.assertEqual(len(set(names)), len(names))

    def test_charts_can_be_read_in_both_themes(self):
        """WCAG asks this contrast of graphics, and AAA of text."""
        for theme in (0, 1):
            for pair in colours.LIMITERS.values():
                self.assertGreaterEqual(contrast(pair[theme], colours.PAGE[theme]), 3,
                                        pair)
            self.assertGreaterEqual(contrast(colours.INK[theme], colours.PAGE[theme]), 7)

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


class Charts(unittest.TestCase):
    """Draws all charts from made-up samples of the cells of a full run."""
    # A chart shows these figures of each workload's samples.
    SHOWN = {"mixed": ("wire_out", "rps_annotated", "p99_ms_annotated", "elephant_in"),
             "latency": ("p50_us",), "sweep": ("error_in", "error_out"),
             "memory": ("all_kib", "memlock_kib"), "starts": ("per_second",),
             "add": ("wall_ms upstream", "wall_ms natra clsact", "wall_ms natra tcx"),
             "pair": ("wire_in", "p50_ms_annotated", "p99_ms_annotated"),
             "wiring": ("gbit",), "service": ("gbit",), "pods": ("p99_us", "cpu_per_gb"),
             "slis": ("programming_ms", "client_first_ms_p50", "client_total_ms_p50"),
             "http": ("cpu_us", "user_us", "system_us", "softirq_us"), "rrul": (),
             "head-of-line": tuple(f"p99_ms_{s}" for s in headofline.SHARES)}
    # The workload of each chart, and its panels. The README's picture has other tests.
    SOURCE = {"contracts": ("mixed", 3), "latency": ("latency", 3), "caps": ("sweep", 2),
              "memory": ("memory", 2), "starts": ("starts", 2),
              "two-kernels": ("pair", 3), "slis": ("slis", 3),
              "request-cost": ("http", 2), "rrul": ("rrul", 1), "scale": ("pods", 2),
              "head-of-line": ("head-of-line", 2), "wirings": ("wiring", 2)}

    @classmethod
    def setUpClass(cls):
        with unittest.mock.patch.dict("os.environ", NATRA_PAIR="1"):
            plan = schedule("full", NODE, only=list(cls.SHOWN))
        cls.cells = list(dict.fromkeys(c for _, c in plan))
        cls.samples = [dict(sample(c.workload, c.limiter, dict(c.params), n,
                                   **{m: n + 2 for m in cls.SHOWN[c.workload]}),
                            series={"ping BE": [3, 4]})
                       for c in cls.cells for n in (0, 1)]
        cls.made, cls.text = cls.draw(cls.samples)

    @staticmethod
    def draw(samples):
        """Return the captions, and the text of each chart without its style sheet."""
        import charts
        with tempfile.TemporaryDirectory() as d:
            made = charts.draw(run(*samples), d)
            return made, {p.stem: p.read_text().partition("</style>")[2]
                          for p in Path(d).iterdir()}

    def test_each_chart_is_drawn(self):
        wanted = {name for _, _, some in QUESTIONS for name in some}
        self.assertEqual((set(self.made), set(self.text)), (wanted, wanted))
        self.assertEqual(wanted - {capped_pod.NAME}, set(self.SOURCE))
        self.assertTrue(all(self.made.values()))
        for chart, (_, panels) in self.SOURCE.items():
            self.assertEqual(self.text[chart].count('<g id="axes_'), panels, chart)


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

    def test_only_series_of_a_chart_are_kept(self):
        for path in RESULTS.glob("*/results.json"):
            samples = json.loads(path.read_text())["samples"]
            self.assertEqual(thin(copy.deepcopy(samples)), samples, path)

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

    def test_committed_chart_shows_the_committed_simulation(self):
        self.assertEqual((RESULTS / f"{fair_chart.NAME}.svg").read_text(),
                         fair_chart.svg(), "run tests/bench/fair_chart.py")

    def test_text_is_readable_in_both_themes(self):
        """Its contrast to the picture's own background is that of WCAG's level AAA,
        and a bar differs from the background by what WCAG asks of graphics."""
        for name, theme in capped_pod.THEMES.items():
            for part, colour in theme.items():
                if part == "page":
                    continue
                with self.subTest(name, part=part):
                    self.assertGreaterEqual(contrast(colour, theme["page"]),
                                            7 if part == "ink" else 3)


class Quoted(unittest.TestCase):
    """quote.py brings the figures of a new result into documents."""
    REPORT = """\
| | ms |
|---|---|
| natra | 7 |

| cap | limiter | wire |
|---|---|---|
| 10M | upstream | 10.5 |
| 10M | natra | 10.2 |
| 100M | natra | 99.5 |

One ADD takes 3.5 ms of CPU time.
"""
    MARK = "<!-- figures: a -->\n"

    def quote(self, text, result=REPORT):
        return quote.document(self.MARK + "\n" + text, lambda _: result)

    def test_rows_are_found_by_what_they_are_about(self):
        table = "| cap | limiter | wire |\n|---|---|---|\n"
        made, todo = self.quote(table + "| 100M | natra | 90 |\n| 10M | natra | 9 |\n")
        self.assertEqual(todo, [])
        self.assertTrue(made.endswith(
                table + "| 100M | natra | 99.5 |\n| 10M | natra | 10.2 |\n"), made)

    def test_committed_documents_have_the_committed_figures(self):
        for name in quote.FIGURES.DOCUMENTS:
            text = quote.house.read(name)
            self.assertEqual(quote.document(text, quote.house.read), (text, []), name)


if __name__ == "__main__":
    unittest.main()
