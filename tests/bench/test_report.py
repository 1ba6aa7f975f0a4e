#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests the report: its page, its charts, the comparison with an earlier run, and that
what is committed is what the committed results make."""
import copy
import html
import importlib.util
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
import starts
import wired
import workloads
from cells import LIMITERS, OLD_UPSTREAM, Node
from markdown import name_of, ranked
from page import QUESTIONS, page
from report_md import thin, write
from statistic import ENOUGH, Results
from test_bench import mixed, run, sample, sweep
from workloads import missed, schedule, targets

NODE = Node(("tcx-podside", "clsact-podside"), True, ("tbf", "fq_codel", "cake"))
RESULTS = Path(__file__).resolve().parent / "results"


def light(colour):
    """Return a colour's luminance as WCAG defines it."""
    parts = [int(colour[i:i + 2], 16) / 255 for i in (1, 3, 5)]
    parts = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return sum(w * p for w, p in zip((0.2126, 0.7152, 0.0722), parts))


def contrast(*pair):
    low, high = sorted(map(light, pair))
    return (high + 0.05) / (low + 0.05)


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

    def test_tables(self):
        text, _ = write(run(*sweep("natra", [(10, 10), (10.2, 10)]),
                            *sweep("upstream", [(10, 10)]),
                            mixed("natra", "tilt", 6000, 20.04),
                            mixed("none", "fixed", 500, 20)))
        self.assertIn("| natra | elephants within the cap, mice beside it | – | "
                      "10.0 / 10.0 | 6000 / 20.0 ms | 500 / 20.0 ms | 6500 |", text)
        self.assertIn("10.10 ± 0.14", text)
        self.assertIn("- sweep natra rate=10G: too much", text)
        self.assertEqual(missed(targets(run())), [])

    def test_an_add_that_loads_programs_is_told_of(self):
        text, _ = write(run(sample("add", "both", {}, **{
                "wall_ms upstream": 5, "cpu_ms upstream": 5,
                "rss_kib upstream": 1, "mean_cpu_ms upstream": 5.25,
                "mean_cpu_ms natra": 4.125})))
        self.assertIn("| upstream | 5.00 | 5.00 | 1.00 |", text)
        self.assertIn("an ADD is 4.12 ms, and upstream's 5.25 ms.", text)

    def test_what_is_left_out_has_a_line_for_each_reason(self):
        res = run()
        res.data["left_out"] = [{"cell": c, "why": w} for c, w in (
                ("a", "x"), ("b", "y"), ("c", "x"), ("a", "x"))]
        lines = write(res)[0].splitlines()
        self.assertEqual([s for s in lines if s.startswith("- ")],
                         ["- a, c: x", "- b: y"])

    def test_paced_and_policed_are_told_apart(self):
        text, _ = write(run(*sweep("natra", [(10, 10)], edt=True)))
        self.assertIn("into the pod | natra, policed |", text)
        self.assertIn("out of the pod | natra, paced |", text)

    def test_comparison_is_shown(self):
        old, new = (Comparison.samples(g) for g in (60, 6))
        text, worse = write(run(*new), run(*old))
        self.assertEqual(worse, 1)
        self.assertIn("**worse**: throughput natra, gbit: 6", text)


class Page(unittest.TestCase):
    def test_the_winner_is_named(self):
        self.assertEqual(
                ranked({"none": 1, "upstream": 20, "natra": 5, "tbf": None}, "{:.0f} ms"),
                "natra wins: 5 ms; upstream 20 ms (4 times as much); without a limiter 1 ms")
        self.assertEqual(ranked({"natra": 5, "upstream": 20}, "{}", most=True),
                         "upstream wins: 20; natra 5 (0.25 times as much)")

    def test_a_small_difference_is_no_victory(self):
        self.assertEqual(ranked({"natra": 100, "upstream": 103}, "{}"),
                         "natra is level with the next: 100; upstream 103")

    def test_nobody_wins_alone(self):
        self.assertEqual(ranked({"none": 1, "natra": 5}, "{}"), "")

    def test_each_workload_and_chart_belongs_to_one_question(self):
        modules = [m for _, some, _ in QUESTIONS for m in some]
        self.assertCountEqual(modules, workloads.MODULES)
        names = [n for _, _, some in QUESTIONS for n in some]
        self.assertEqual(len(set(names)), len(names))

    def test_what_was_not_asked_is_named(self):
        lines = page(run(*sweep("natra", [(10, 10)]), *sweep("upstream", [(10, 11)])),
                     {"caps": "How far"})
        self.assertEqual([s for s in lines if s.startswith("### ")],
                         ["### Does the cap hold?"])
        self.assertIn("![How far](caps.svg)", lines)
        self.assertIn("Does it scale?", lines[-2])
        self.assertIn("natra wins", "".join(lines))
        self.assertEqual(page(run(), {}), [])

    def test_caption_of_starts_says_what_is_drawn(self):
        adds = [sample("add", "both", {}, **{
                "wall_ms upstream": 5, "wall_ms natra clsact": 6, "wall_ms natra tcx": 7})]
        pods = [sample("starts", name, {"pods": 64, "loaded": False}, per_second=9)
                for name in ("none", "natra")]
        for samples, caption in (
                ([], ""), (adds, "How long an ADD takes"), (pods, "How many pods start"),
                (adds + pods, "How long an ADD takes, and how many pods start")):
            self.assertEqual(starts.caption(run(*samples)), caption)

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


class Judged(unittest.TestCase):
    """A target of a full run has enough samples for its interval to decide, or says how
    few it has."""
    FEW = (r"cap of 10G .*", r"datagrams .*, 2 times the cap: .*",
           r"under stress, (1|200) pods: .*",
           r"\d+ limited pods on the node: .*", r"(16|1024) flows: .*",
           r"(wiring|service) .*: cap of .*",
           r"wiring (routed|ipvlan-l[23]|netkit-l[23]): far .*",
           r"service (bridge|bridge-nf), .*: far .*",
           r"service routed, service by (iptables|flowtable|ebpf): far .*",
           r"ADD, .*", r"kernel memory of a pod, .*")

    class AllOnes(dict):
        """The values of a sample that has every metric."""
        def get(self, *_):
            return 1

        def __missing__(self, _):
            return 1

    def test_few_samples_are_known_and_told(self):
        with unittest.mock.patch.dict("os.environ", NATRA_PAIR="1"):
            plan = schedule("full", NODE)
        found = targets(run(*(dict(sample(c.workload, c.limiter, dict(c.params), n),
                                   values=self.AllOnes()) for n, c in plan)))
        self.assertEqual([t.name for t in found if t.met is None], [])
        few = [t for t in found if t.samples < ENOUGH]
        for t in few:
            self.assertRegex(t.judged, rf" by {t.samples} samples?$", t.name)
        for pattern in self.FEW:
            self.assertTrue(any(re.fullmatch(pattern, t.name) for t in few), pattern)
        self.assertEqual([t.name for t in few if not any(
                re.fullmatch(pattern, t.name) for pattern in self.FEW)], [])


@unittest.skipUnless(importlib.util.find_spec("matplotlib"), "needs matplotlib")
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

    def shows(self, text, limiter):
        return f">{name_of(limiter)}<" in text and re.search(
                f"(fill|stroke): {colours.of(limiter)}", text) is not None

    def test_each_chart_is_drawn(self):
        wanted = {name for _, _, some in QUESTIONS for name in some}
        self.assertEqual((set(self.made), set(self.text)), (wanted, wanted))
        self.assertEqual(wanted - {capped_pod.NAME}, set(self.SOURCE))
        self.assertTrue(all(self.made.values()))
        for chart, (_, panels) in self.SOURCE.items():
            self.assertEqual(self.text[chart].count('<g id="axes_'), panels, chart)

    def test_each_limiter_with_figures_is_in_the_chart(self):
        for chart, (workload, _) in self.SOURCE.items():
            for name in {c.limiter for c in self.cells if c.workload == workload}:
                asked = name not in ("upstream-containerd", *OLD_UPSTREAM) and (
                        (chart, name) != ("caps", "none"))
                if chart == "request-cost":         # far under the cap
                    asked = name in LIMITERS
                if chart != "wirings":
                    self.assertEqual(self.shows(self.text[chart], name), asked,
                                     f"{chart}: {name}")

    def test_a_limiter_without_figures_is_not(self):
        drawn = 0
        for chart, (workload, _) in self.SOURCE.items():
            _, text = self.draw([s for s in self.samples if s["workload"] == workload
                                 and s["limiter"] in ("none", "upstream")])
            if chart in text:
                drawn += 1
                self.assertFalse(self.shows(text[chart], "natra"), chart)
        self.assertGreater(drawn, len(self.SOURCE) // 2)

    def test_each_wiring_and_service_has_a_bar(self):
        places = {wired.words_of(place) for workload in wired.NAMES
                  for place in wired.places(run(*self.samples), workload)}
        text = self.text["wirings"]
        for words in places:
            self.assertIn(f">{html.escape(words, quote=False)}<", text)
        bars = re.findall(rf'd="([^"]*)"[^>]*fill: {colours.of("natra")}', text)
        self.assertEqual("".join(bars).count("z"), len(places))

    def test_without_figures_nothing_is_drawn(self):
        self.assertEqual(self.draw([]), ({}, {}))


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

    def test_each_figure_is_in_the_picture(self):
        """A picture from other figures is another picture."""
        where, data = self.runs()[0]
        committed = (where / "capped-pod.svg").read_text()
        changed = 0
        for s in data["samples"]:
            if s["workload"] != "mixed" or s["params"]["load"] != "fixed" or \
                    s["limiter"] not in capped_pod.ROWS:
                continue
            for metric in ("elephant_in", "rps_annotated", "p99_ms_annotated"):
                was = s["values"][metric]
                s["values"][metric] = 2 * was + 1
                self.assertNotEqual(capped_pod.svg(Results(data)), committed)
                s["values"][metric] = was
                changed += 1
        self.assertGreaterEqual(changed, 9)

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

    def test_no_picture_without_figures(self):
        self.assertIsNone(capped_pod.svg(run()))


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

    def test_a_row_that_is_gone_is_told_of(self):
        text = "| cap | limiter | wire |\n|---|---|---|\n| 1G | natra | 90 |\n"
        made, todo = self.quote(text)
        self.assertTrue(made.endswith(text))
        self.assertEqual(todo, [(3, "a: no row that begins with 1G | natra")])

    def test_a_table_that_is_gone_is_told_of(self):
        [(_, what)] = self.quote("| cap | rate |\n|---|---|\n| 1G | 90 |\n")[1]
        self.assertIn("no table with the head | cap | rate |", what)

    def test_output_is_replaced(self):
        made, todo = self.quote("    before 1\n", "# By x\n\nbefore 2\nafter 3\n")
        self.assertEqual((made.split("\n\n")[1], todo), ("    before 2\n    after 3\n", []))

    def test_prose_is_for_a_person(self):
        text = "One ADD takes 2.5 ms of the CPU.\n"
        made, [(number, what)] = self.quote(text)
        self.assertTrue(made.endswith(text))
        self.assertEqual(number, 3)
        self.assertIn("the result \"One ADD takes 3.5 ms of CPU time.\"", what)

    def test_what_is_the_same_stays(self):
        text = "One ADD takes 3.5 ms.\n\nNothing else does.\n"
        self.assertEqual(self.quote(text), (self.MARK + "\n" + text, []))

    def test_committed_documents_have_the_committed_figures(self):
        for name in quote.FIGURES.DOCUMENTS:
            text = quote.house.read(name)
            self.assertEqual(quote.document(text, quote.house.read), (text, []), name)


if __name__ == "__main__":
    unittest.main()
