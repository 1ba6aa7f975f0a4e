#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests that tests/check/figures finds a figure that no committed result has."""
import re
import subprocess
import sys
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
RESULT = "tests/bench/results/6.18-full/report.md"
# Two figures that are on one line of the result, and one that is on another.
PAIR = re.search(r"ADD is ([\d.]+ ms), and upstream's ([\d.]+ ms)",
                 (ROOT / RESULT).read_text()).groups()
ELSEWHERE = next(f for f in re.findall(r"(?<=/ )[\d.]+ ms(?= \|)",
                                       (ROOT / RESULT).read_text()) if f not in PAIR)


sys.path.insert(0, str(HERE))
import house

FIGURES = house.load_script("figures")


def check(text):
    """Return the number of problems and their texts for a document with this text."""
    problems = list(FIGURES.problems_of("document", text))
    return len(problems), "\n".join(problems)


class Figures(unittest.TestCase):
    def test_each_figure_of_the_documents(self):
        """Changing the last digit on a line of a paragraph with a source is a
        problem."""
        changed = 0
        for name in ("README.md", "cni/README.md"):
            text = (ROOT / name).read_text()
            self.assertEqual(check(text)[0], 0)
            for m in re.finditer(r"<!-- figures: .*-->\n\n((?:.+\n)+)", text):
                for line in re.finditer(r".*\d.*", m[1]):
                    at = m.start(1) + line.end() - 1
                    while not text[at].isdigit():
                        at -= 1
                    other = str((int(text[at]) + 1) % 10)
                    code, out = check(text[:at] + other + text[at + 1:])
                    self.assertTrue(code, line[0])
                    self.assertIn("not in tests/bench/results", out)
                    changed += 1
        self.assertGreater(changed, 8)

    def test_figure_without_a_result(self):
        for text in ("An ADD takes 3.2 ms.", "It takes 0.38 of its CPU time.",
                     "| natra | 12.5 KiB |", "    after: 9.7 Mbit/s",
                     f"<!-- figures: {RESULT} -->\n\n{', '.join(PAIR)}\n\n{PAIR[0]}"):
            code, out = check(text)
            self.assertTrue(code, text)
            self.assertIn("no result is named for it", out)

    def test_figures_of_two_lines(self):
        """Two figures must be on one line of the result: in two lines they may belong
        to different things."""
        self.assertEqual(check(f"<!-- figures: {RESULT} -->\n\n"
                               f"{PAIR[0]}, upstream's {PAIR[1]}.")[0], 0)
        self.assertEqual(check(f"<!-- figures: {RESULT} -->\n\n"
                               f"{PAIR[0]}, upstream's {ELSEWHERE}.")[0], 1)

    def test_no_such_result(self):
        code, out = check("<!-- figures: tests/bench/results/no -->\n\n1.5 ms")
        self.assertTrue(code)
        self.assertIn("there is no tests/bench/results/no", out)

    def test_exit_code(self):
        for document, code in ((ROOT / "README.md", 0), (__file__, 1)):
            p = subprocess.run([HERE / "figures", document], text=True,
                               stdout=subprocess.PIPE)
            self.assertEqual(p.returncode, code, p.stdout)

    def test_settings(self):
        self.assertEqual(check("It is heavy from 0.1 s of the rate on.")[0], 0)


if __name__ == "__main__":
    sys.exit(unittest.main())
