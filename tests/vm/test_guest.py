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
'''What --help says.'''
import os, sys, time
import beside_it
what = sys.argv[1]
if what == "show":
    print(os.getcwd(), os.environ["WORD"], sys.argv[2:], __name__, __file__,
          sys.modules["__main__"].__doc__, beside_it.FOUND)
elif what == "exit":
    sys.exit(int(sys.argv[2]))
elif what == "say":
    sys.exit(sys.argv[2])
elif what == "raise":
    raise KeyError("lost")
elif what == "meet":
    # Both are there only if they run at once.
    open(sys.argv[2], "w").close()
    end = time.monotonic() + 10
    while not os.path.exists(sys.argv[3]):
        assert time.monotonic() < end
        time.sleep(0.01)
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
        (self.top / "beside_it.py").write_text("FOUND = 'found'\n")

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
        return f"cd {self.top} && env WORD=x=y {self.top}/t.py {' '.join(words)}"

    def test_a_script_finds_what_it_would_find_alone(self):
        # A test that fails shows its output.
        code, results, out = self.run_list(
            f"show|10|alone|{self.script('show', 'a', repr('b c'))}; exit 1",
            f"fork|10|alone|{self.script('show', 'a', repr('b c'))}",
            f"raise|10|alone|{self.script('raise')}")
        self.assertEqual((code, results["fork"]), (1, "PASS"), out)
        self.assertEqual(results["raise"], "FAIL exit code 1")
        self.assertIn("KeyError: 'lost'", out)
        self.assertIn(f"{self.top} x=y ['a', 'b c'] __main__ {self.top}/t.py "
                      "What --help says. found", out)

    def test_a_script_in_a_copy_prints_the_same(self):
        with open(self.top / "t.py", "a") as f:
            f.write("sys.exit(1)\n")
        _, _, alone = self.run_list(
            f"show|10|alone|{self.script('show', 'a', repr('b c'))}; exit 1")
        _, _, copy = self.run_list(
            f"show|10|alone|{self.script('show', 'a', repr('b c'))}")
        lines = [[l for l in out.splitlines() if l.startswith("  | ")]
                 for out in (alone, copy)]
        self.assertEqual(lines[0], lines[1])
        self.assertEqual(len(lines[0]), 1)

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

    def test_two_run_beside_each_other_and_not_three(self):
        a, b = self.top / "a", self.top / "b"
        code, results, out = self.run_list(
            f"one|20|beside|{self.script('meet', str(a), str(b))}",
            f"two|20|beside|{self.script('meet', str(b), str(a))}",
            f"three|20|beside|test -e {a} -a -e {b}",
            f"four|20|alone|test $(wc -l <{self.top}/results) = 3")
        self.assertEqual((code, set(results.values())), (0, {"PASS"}), out)

    def test_lines_for_the_other_tools(self):
        self.run_list("t|10|alone|echo 'cell {}'; echo 'again: x'; echo other")
        self.assertEqual((self.top / "results.cells").read_text(),
                         "cell {}\nagain: t: x\n")


if __name__ == "__main__":
    unittest.main()
