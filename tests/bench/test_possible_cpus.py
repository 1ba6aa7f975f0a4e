#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests the table of memory by possible CPUs, and what is refused of a VM's results."""
import json
import tempfile
import unittest
import unittest.mock

import bench                    # noqa: F401, finds the harness
import machine
import possible_cpus
from test_bench import run, sample


def memory(limiter, pods, slab, vmalloc, percpu, **more):
    return sample("memory", limiter, {"pods": pods}, slab_kib=slab,
                  VmallocUsed_kib=vmalloc, Percpu_kib=percpu,
                  all_kib=slab + vmalloc + percpu, **more)


def results(natra=60, **about):
    return run(memory("natra", 50, 20, natra, 0, memlock_kib=80.04),
               memory("none", 50, 1, 0, 0), memory("upstream", 50, 46, 0, 30),
               memory("natra", 8, 25, 90, 0, memlock_kib=99),
               **dict({"possible_cpus": 64}, **about))


class Table(unittest.TestCase):
    def test_rows(self):
        self.assertEqual(possible_cpus.rows(64, results()), [
            (64, "natra", 8, "115.0", "25.0", "90.0", "0.0", "99.0"),
            (64, "no limiter", 50, "1.0", "1.0", "0.0", "0.0", ""),
            (64, "upstream", 50, "76.0", "46.0", "0.0", "30.0", ""),
            (64, "natra", 50, "80.0", "20.0", "60.0", "0.0", "80.0")])

    def test_each_count_is_judged_by_its_most_pods(self):
        self.assertEqual(possible_cpus.judged(64, results(natra=40)), (
            "- 64 possible CPUs, 50 pods: natra wins: 60.0 KiB; upstream 76.0 KiB "
            "(1.27 times as much); without a limiter 1.0 KiB. At most upstream's: met by 1 sample."))
        self.assertIn("upstream wins: 76.0 KiB; natra 152.0 KiB (2 times as much)",
                      possible_cpus.judged(2, results(natra=132)))
        self.assertTrue(possible_cpus.judged(2, results(natra=132)).endswith(
            "At most upstream's: missed by 1 sample."))

    def test_text_has_all_counts(self):
        lines = possible_cpus.text({2: results(), 64: results()}, "abc")
        self.assertIn("at commit abc on 20", lines[1])
        self.assertIn("Linux 6.12.", lines[2])
        self.assertEqual([l.split(" ")[1] for l in lines if l.startswith("| ")][1:],
                         ["2"] * 4 + ["64"] * 4)
        self.assertEqual(len([l for l in lines if l.startswith("- ")]), 2)


class Load(unittest.TestCase):
    def load(self, res, cpus=64):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as f:
            json.dump(dict(res.data, left_out=[]), f)
            f.flush()
            return possible_cpus.load(f.name, cpus)

    def test_another_count_of_cpus_is_refused(self):
        self.load(results())
        for about in ({"possible_cpus": 2}, {"possible_cpus": None}):
            with self.assertRaisesRegex(SystemExit, "possible_cpus is .*, not 64"):
                self.load(results(**about))

    def test_a_failed_cell_is_refused(self):
        res = results()
        res.data["samples"][0]["error"] = "no ADD"
        with self.assertRaisesRegex(SystemExit, "memory natra pods=50: no ADD"):
            self.load(res)

    def test_what_was_left_out_is_refused(self):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as f:
            json.dump(results().data, f)
            f.flush()
            with self.assertRaisesRegex(SystemExit, "rate=10G: too much"):
                possible_cpus.load(f.name, 64)


class Machine(unittest.TestCase):
    def test_possible_cpus(self):
        for text, count in (("0\n", 1), ("0-254\n", 255), ("0,2-3\n", 4)):
            with unittest.mock.patch("machine.open", unittest.mock.mock_open(
                    read_data=text), create=True):
                self.assertEqual(machine.possible_cpus(), count)


if __name__ == "__main__":
    unittest.main()
