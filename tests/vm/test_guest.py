#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests how `guest` runs the tests of a list, without a VM."""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
# The setting of the machine's own kernel stays as it is.
RUN = f"""
import sys
sys.path.insert(0, "{HERE.parent}/harness/python")
import rcu
rcu.set_rcu_expedited = lambda value: None
sys.argv = ["guest", *sys.argv[1:]]
exec(compile(open("{HERE}/guest").read(), "guest", "exec"),
     {{"__name__": "__main__", "__file__": "{HERE}/guest"}})
"""
SCRIPT = """#!/usr/bin/python3
import sys, time
what = sys.argv[1]
if what == "exit":
    sys.exit(int(sys.argv[2]))
elif what == "say":
    sys.exit(sys.argv[2])
elif what == "sleep":
    time.sleep(60)
"""


class Guest(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.TemporaryDirectory(dir="/tmp")
        self.addCleanup(self.dir.cleanup)
        self.top = Path(self.dir.name)
        (self.top / "t.py").write_text(SCRIPT)
        (self.top / "t.py").chmod(0o755)

    def run_list(self, *lines):
        """Return the exit code, the results by name, and the output."""
        (self.top / "list").write_text("\n".join(lines) + "\n")
        r = subprocess.run([sys.executable, "-c", RUN, self.top / "results",
                            self.top / "list"], text=True, cwd=self.top,
                           env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                           timeout=60)
        results = dict(l.split(" ", 1) for l in
                       (self.top / "results").read_text().splitlines())
        return r.returncode, results, r.stdout

    def script(self, *words):
        return f"{self.top}/t.py {' '.join(words)}"

    def test_exit_codes(self):
        code, results, out = self.run_list(
            f"good|10|alone|{self.script('exit', '0')}",
            f"skip|10|alone|echo no fq; {self.script('exit', '77')}",
            f"copy|10|alone|{self.script('exit', '77')}",
            f"bad|10|alone|{self.script('exit', '3')}",
            f"say|10|alone|{self.script('say', 'why')}",
            "shell|10|alone|exit 4",
            "signal|10|alone|kill -9 $$",
            f"slow|1|alone|{self.script('sleep')}",
            "slow-shell|1|alone|sleep 60")
        self.assertEqual(code, 1, out)
        self.assertEqual(results, {
            "good": "PASS", "skip": "SKIP no fq", "copy": "SKIP no reason given",
            "bad": "FAIL exit code 3", "say": "FAIL exit code 1",
            "shell": "FAIL exit code 4", "signal": "FAIL killed by signal 9",
            "slow": "FAIL took over 1 s", "slow-shell": "FAIL took over 1 s"})
        self.assertEqual(self.run_list("good|10|alone|true")[0], 0)

    def test_second_chances(self):
        """What failed beside another test runs once more at the end, unless too much failed."""
        lines = [f"{name}|10|beside|echo {name} >>ran; exit {code}"
                 for name, code in (("flaky", '$(($(grep -c ^flaky$ ran) == 1))'), ("bad", 3))]
        code, results, out = self.run_list(*lines, "last|10|alone|echo last >>ran")
        self.assertEqual((code, results), (1, {
            "last": "PASS", "flaky": "PASS", "bad": "FAIL exit code 3"}), out)
        ran = (self.top / "ran").read_text().split()
        self.assertEqual((sorted(ran[:2]), ran[2], sorted(ran[3:])),
                         (["bad", "flaky"], "last", ["bad", "flaky"]))
        self.assertEqual(sorted((self.top / "results.cells").read_text().splitlines()), [
            f"again: {name}: the whole test, by itself" for name in ("bad", "flaky")])
        for path in ("ran", "results"):
            (self.top / path).unlink()
        many = [f"bad-{n}|10|beside|echo bad >>ran; exit 1" for n in range(4)]
        code, results, out = self.run_list(*many)
        self.assertEqual((code, len(results), (self.top / "ran").read_text().count("bad")),
                         (1, 4, 4), out)


if __name__ == "__main__":
    unittest.main()
