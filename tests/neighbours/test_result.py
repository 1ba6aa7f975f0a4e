#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What tests/neighbours/result takes of a record. Needs no root."""
import importlib.machinery
import importlib.util
import os
import unittest

PATH = f"{os.path.dirname(os.path.realpath(__file__))}/result"
LOADER = importlib.machinery.SourceFileLoader("result", PATH)
result = importlib.util.module_from_spec(importlib.util.spec_from_loader("result", LOADER))
LOADER.exec_module(result)

OLD, NEW = "at commit 0123abc on 2026-11-28", "at commit 4567def on 2026-11-29"
CRASH = "FAIL the test came to its end                      False  demanded true\n"
BESIDE, GVISOR = "| beside | mode | in |", "| gVisor, in parts of the limit | in | out |"
PAGE = f"before\n\n{BESIDE}\n| --- | --- | --- |\n\nbetween\n\n{GVISOR}\n|---|---|---|\n\nbehind\n"


def printed(head, *scenes, system="Linux 6.18.44"):
    """Return what tests/kube/record prints of (scene, rows, what is before the count)."""
    return f"Printed by tests/kube/record neighbours {head}:\n2 cores, {system}.\n" + "".join(
        f"\n== {scene}\n" + (f"{GVISOR}\n|---|---|---|\n" if "gvisor" in scene else
                             f"{BESIDE}\n| --- | --- | --- |\n") + "".join(
            f"| {row} |\n" for row in rows) + f"{end}1 of 2 ok\n" for scene, rows, end in scenes)


def rows_of(text):
    """Return the rows of a table behind its head."""
    return [line.strip("| ") for line in text.splitlines() if line.startswith("|")][2:]


class Result(unittest.TestCase):
    def setUp(self):
        self.old = printed(OLD, ("a.py", ("A | x | 1", "A | y | 1"), ""),
                           ("gvisor.py", ("x | 1 | 1", "y | 1 | 1"), ""), ("b.py", ("B | x | 1",), ""))

    def put(self, record):
        """Return the first table's rows, and the texts, with the record."""
        texts = result.updated(self.old, PAGE, record)
        self.assertEqual(result.updated(*texts, None), texts)
        self.assertIn("\n\nbetween\n\n", texts[1])
        return rows_of(texts[1].partition("between")[0]), texts

    def refused(self, record, word):
        with self.assertRaises(SystemExit) as e:
            result.updated(self.old, PAGE, record)
        self.assertIn(word, str(e.exception))

    def test_a_scene_is_replaced(self):
        rows, (text, page) = self.put(printed(NEW, ("a.py", ("A | x | 2", "A | y | 2"), "")))
        self.assertEqual(rows, ["A | x | 2", "A | y | 2", "B | x | 1"])
        self.assertIn(NEW, text)
        self.assertTrue(page.startswith("before\n") and page.endswith("behind\n"))

    def test_what_did_not_end_stays_out(self):
        crash = ("b.py", ("B | x | 2",), CRASH)
        rows, _ = self.put(printed(NEW, ("a.py", ("A | x | 2",), ""), crash))
        self.assertEqual(rows, ["A | x | 2", "B | x | 1"])
        self.refused(printed(NEW, crash), "has come to its end")
        killed = printed(NEW, ("b.py", ("B | x | 2",), "")).replace("1 of 2 ok\n", "")
        self.refused(killed, "has come to its end")

    def test_the_table_has_the_new_row(self):
        """Also if an older section of the same mode is behind the one that is replaced."""
        for number, modes in enumerate(("x", "x,y", "x"), 2):
            rows, (self.old, _) = self.put(printed(NEW, (
                f"a.py --mode {modes}", (f"A | x | {number}",), "")))
            self.assertEqual(rows[0], f"A | x | {number}")
        rows, (text, _) = self.put(printed(NEW, ("a.py", ("A | x | 5",), "")))
        self.assertEqual(rows[0], "A | x | 5")
        self.assertNotIn("--mode", text)

    def test_the_sandbox_has_a_table_of_its_own(self):
        """Of fewer columns, where a row is named by the mode alone."""
        rows, (_, page) = self.put(printed(NEW, ("gvisor.py --mode y", ("y | 2 | 2",), "")))
        self.assertEqual(rows, ["A | x | 1", "A | y | 1", "B | x | 1"])
        self.assertEqual(rows_of(page.partition("between")[2]), ["x | 1 | 1", "y | 2 | 2"])
        page = page.replace("y | 2 | 2", "y | 3 | 2")
        self.assertNotEqual(result.updated(self.old, page, None)[1], page)

    def test_of_what_it_is(self):
        scene = ("a.py", ("A | x | 2",), "")
        for head in "at commit unknown on 2026-11-29", "at commit 4567def-dirty on 2026-11-29":
            self.refused(printed(head, scene), "is of no commit")
        self.refused(printed(NEW, scene, system="Linux 6.12.1"), "another kernel")
        self.put(printed("at commit 4567def with the changes of 89abcde on 2026-11-29", scene))
        self.refused("ninja: no work\n" + printed(NEW, scene), "line 1 is before the first heading")


if __name__ == "__main__":
    unittest.main()
