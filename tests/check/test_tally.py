#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests what tools/check makes of logs: a test that did not run must never look like a
success."""
import contextlib
import io
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "../harness/python"))
from report import Report


class Logs(unittest.TestCase):
    """A build directory with made-up logs."""

    def setUp(self):
        self._tmp = tempfile.TemporaryDirectory()
        self.build = Path(self._tmp.name)
        self.logs = self.build / "meson-logs"
        self.logs.mkdir()
        (self.build / "meson-info").mkdir()
        self.tests = []

    def tearDown(self):
        self._tmp.cleanup()

    def suite(self, suite, names, ran, tail=""):
        """Make a suite's log. names: the registered tests; ran: result and stdout by
        name; tail: text at the end of the log."""
        self.tests += [{"name": n, "suite": [f"natra:{suite}"]} for n in names]
        (self.build / "meson-info/intro-tests.json").write_text(
                json.dumps(self.tests))
        lines = [json.dumps({"name": f"natra:{suite} / {name}", "result": result,
                             "stdout": text, "duration": 1})
                 for name, (result, text) in ran.items()]
        (self.logs / f"testlog-{suite}.json").write_text(
                "\n".join(lines) + "\n" + tail)

    def tally(self, *suites, failed_steps=0):
        """Return tally's exit code and lines."""
        return self.run_script("tally", self.logs, failed_steps, *suites)

    def run_script(self, script, *args):
        p = subprocess.run([HERE / script, *map(str, args)], text=True,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return p.returncode, p.stdout.splitlines()


class Tally(Logs):
    def test_suite_that_left_no_log(self):
        self.suite("unit", ["a"], {"a": ("OK", "")})
        self.suite("bpf", ["b", "c"], {})
        (self.logs / "testlog-bpf.json").unlink()
        self.assertEqual(self.tally("unit", "bpf")[1][-1], "1 passed, 2 failed, 0 skipped")

    def test_second_chance(self):
        """The second result counts, and the summary says that there was one. Where a suite
        ended early, nothing has one."""
        self.suite("net", ["a", "b"], {"a": ("FAIL", ""), "b": ("FAIL", "")})
        self.suite("vm-6.1", ["c"], {"c": ("FAIL", "")})
        self.assertEqual(self.run_script("tally", "--failed", self.logs, "net", "vm-6.1"),
                         (0, ["a b"]))
        (self.logs / "testlog-again.json").write_text("".join(
                json.dumps({"name": f"natra:net / {name}", "result": result}) + "\n"
                for name, result in (("a", "OK"), ("b", "FAIL"))))
        code, lines = self.tally("net")
        self.assertEqual((code, lines[-1]), (1, "1 passed, 1 failed, 0 skipped"))
        self.assertIn("  repeated a: the whole test, by itself", lines)
        self.suite("cni", ["d"], {})
        self.assertEqual(self.run_script("tally", "--failed", self.logs, "net", "cni"),
                         (0, [""]))

    def test_suites_that_ran_as_one(self):
        """Each suite counts its own tests, also after the suites were killed."""
        self.suite("agent", ["a", "b"], {"a": ("OK", "again: x\n"), "b": ("SKIP", "no b\n")})
        self.suite("cni", ["c", "d"], {"c": ("OK", "")})
        text = "".join((self.logs / f"testlog-{suite}.json").read_text()
                       for suite in ("agent", "cni"))
        (self.logs / "testlog-agent+cni.json").write_text(text + '{"name": "cni / d')
        for suite in ("agent", "cni"):
            (self.logs / f"testlog-{suite}.json").unlink()
        code, lines = self.tally("agent", "cni")
        self.assertEqual((code, lines[-1]), (1, "2 passed, 1 failed, 1 skipped"))
        self.assertRegex(lines[0], "^agent +1 passed +0 failed .* 1 repeated ")
        self.assertIn("  skip b: no b", lines)
        self.assertRegex("\n".join(lines), "(?m)^cni +1 passed +1 failed ")
        self.assertIn("  fail d: no result: the suite ended before it", lines)

    def test_vm_that_was_killed(self):
        """The VM's results contain only successes, because it was killed before the
        others."""
        self.suite("vm-6.1", ["vm-6.1"], {})
        (self.logs / "vm-6.1.results").write_text("a PASS\nb PASS\n")
        code, lines = self.tally("vm-6.1")
        self.assertEqual((code, lines[-1]), (1, "2 passed, 1 failed, 0 skipped"))

    def test_failed_step_and_nothing_at_all(self):
        self.suite("unit", ["a"], {"a": ("OK", "")})
        self.assertEqual(self.tally("unit", failed_steps=1)[0], 1)
        self.assertEqual(self.tally()[0], 1)

    def test_too_many_repeated(self):
        for number, code in ((25, 0), (26, 1)):
            self.tests = []
            self.suite("net", ["a"], {"a": ("OK", "again: 10M in\n" * number)})
            found, lines = self.tally("net")
            self.assertEqual((found, lines[-1]),
                             (code, f"1 passed, {code} failed, 0 skipped"))


class Matrix(Logs):
    def errors(self, inside, reason="skip: no netkit"):
        """Return what tools/check's own function says of a test of suite cni that is
        skipped natively and has this result in a VM."""
        self.suite("bpf", ["a"], {"a": ("OK", "")})
        self.suite("cni", ["b"], {"b": ("SKIP", f"{reason}\n")})
        self.suite("vm-6.1", ["vm-6.1"], {"vm-6.1": ("OK", "")})
        (self.logs / "vm-6.1.results").write_text(inside)
        check = (HERE / "../../tools/check").read_text()
        function = check[check.index("\nmatrix()"):]
        function = function[:function.index("\n}\n") + 3]
        p = subprocess.run(["bash", "-c", f"logs={self.logs}\n{function}\n"
                            "matrix bpf cni vm-6.1"], cwd=HERE / "../..", text=True,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertIn("a ", p.stdout)
        return [s for s in p.stdout.splitlines() if s.startswith("error")]

    def test_skipped_everywhere(self):
        self.assertEqual(self.errors("a PASS\nb SKIP no netkit either\n"),
                         ["error: b was skipped everywhere"])

    def test_tried_somewhere(self):
        self.assertEqual(self.errors("b PASS\n"), [])


class Measure(unittest.TestCase):
    """Tests Report.measure(), whose lines tally counts."""

    def measure(self, *values):
        """Measure a cell that has these values one after the other, which must be 1 at
        most. Return the report and what was printed."""
        rep, left, out = Report(), list(values), io.StringIO()

        def cell():
            value = left.pop(0)
            if isinstance(value, Exception):
                raise value
            if isinstance(value, str):
                rep.equal("word", value, "right")
                value = 2
            rep.most("value", value, 1)

        with contextlib.redirect_stdout(out):
            try:
                rep.measure("cell", cell)
            except ZeroDivisionError:
                rep.failed += 1
        return rep, out.getvalue().splitlines(), left

    def test_never_a_fourth_time(self):
        rep, _, left = self.measure(2, 2, 2, 1)
        self.assertEqual((rep.failed, left), (1, [1]))

    def test_exact_check_and_exception_are_final(self):
        for first in ("wrong", ZeroDivisionError()):
            rep, lines, left = self.measure(first, 1)
            self.assertEqual(left, [1])
            self.assertGreater(rep.failed, 0)
            self.assertNotIn("again: cell", lines)


if __name__ == "__main__":
    sys.exit(unittest.main())
