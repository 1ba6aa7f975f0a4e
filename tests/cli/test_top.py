#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests `natractl top` of a node, as a table and on the terminal of a tmux, with a library
that makes pods up. NATRACTL_FAKE is the binary, and NATRA_TOP says whether it can draw."""

import json
import os
import pty
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, os.path.dirname(__file__) + "/../agent")
import parallel

NATRACTL = os.environ["NATRACTL_FAKE"]
BLOCKS = "▁▂▃▄▅▆▇█"
REFRESHES = 4


def environment(pods, **more):
    return {**os.environ, "LC_ALL": "C.UTF-8", "NATRA_FAKE_PODS": str(pods), **more}


def run(*args, pods=3, stdin=subprocess.DEVNULL, **kw):
    return subprocess.run([NATRACTL, *args], env=environment(pods), stdin=stdin,
                          capture_output=True, text=True, timeout=20, **kw)


def cpu_seconds(pid):
    """Return the CPU time of a process, of the clock that clock_getcpuclockid(3) names."""
    return time.clock_gettime((~pid << 3) | 2)


def children_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class Terminal:
    """A tmux with natractl top in it. Its shell notes what the terminal's settings are
    before and after, and stays."""

    def __init__(self, pods, columns=80, lines=24, args="--interval 1", **env):
        self.dir = Path(tempfile.mkdtemp(prefix="natra-top-"))
        script = (f"stty -g >{self.dir}/before; {NATRACTL} top {args}; "
                  f"echo $? >{self.dir}/status; stty -g >{self.dir}/after; "
                  f"mv {self.dir}/after {self.dir}/end; exec sleep 60")
        variables = environment(pods, **env)
        variables.pop("TMUX", None)
        self.env = {**variables, "TMUX_TMPDIR": str(self.dir)}
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", str(columns), "-y",
                  str(lines), script)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        # natractl ends before its terminal does: the SIGCONT of a hangup can let the leak
        # checker of the sanitizers wait for ever.
        subprocess.run(["pkill", "-TERM", "-P", self.shell()], timeout=20)
        try:
            self.wait_end()
        finally:
            self.tmux("kill-server")
            shutil.rmtree(self.dir)

    def tmux(self, *args):
        return subprocess.run(["tmux", "-u", "-S", str(self.dir / "socket"), *args],
                              env=self.env, capture_output=True, text=True, check=True,
                              timeout=20).stdout

    def screen(self):
        return self.tmux("capture-pane", "-p").split("\n")[:-1]

    def keys(self, *keys):
        self.tmux("send-keys", *keys)

    def wait(self, good, seconds=30):
        """Return the first screen that is good."""
        end = time.monotonic() + seconds
        while True:
            lines = self.screen()
            if good(lines):
                return lines
            if time.monotonic() > end:
                raise AssertionError("on the screen is:\n" + "\n".join(lines))
            time.sleep(0.05)

    def wait_text(self, text):
        return self.wait(lambda lines: any(text in line for line in lines))

    def shell(self):
        return self.tmux("display", "-p", "#{pane_pid}").strip()

    def pid(self):
        shell = self.shell()
        return int(Path(f"/proc/{shell}/task/{shell}/children").read_text().split()[0])

    def wait_end(self):
        end = time.monotonic() + 10
        while not (self.dir / "end").exists():
            if time.monotonic() > end:
                raise AssertionError("natractl goes on")
            time.sleep(0.05)


def pods_of(lines):
    return [line.split()[0] for line in lines if line.startswith("shop/web-")]


class Table(unittest.TestCase):
    """Tests the output to a pipe."""

    def test_pipe_gets_one_table_sorted_by_what_is_lost(self):
        r = run("top", "--interval", "1", pods=5)
        self.assertEqual((r.returncode, r.stderr), (0, ""))
        lines = r.stdout.splitlines()
        self.assertEqual(lines[0].split(), "POD INTERFACE DIRECTION LIMIT OFFERED PASSED CAP HELD "
                         "MARKED DROPPED FLOWS".split())
        self.assertEqual(len(lines), 1 + 5 * 2)
        self.assertEqual(lines[1].split()[:4], ["shop/web-003", "veth3", "ingress", "10M"])

    def test_json_has_numbers(self):
        # One time is taken for all pods, so a pause while they are read is in some rates.
        for _ in range(3):
            r = run("top", "--json", "--interval", "1", "--direction", "ingress", pods=201)
            rows = {row["id"]: row for row in json.loads(r.stdout)}
            rate = rows["pod-200"]["passed_bits_per_sec"]
            dropped = rows["pod-3"]["dropped_bits_per_sec"]
            if abs(rate - 2e6) <= 2e4 and abs(dropped - 3e4) <= 9e2:
                break
        else:
            self.fail(f"pod-200 has {rate} bit/s, pod-3 drops {dropped}")
        self.assertEqual(len(rows), 201)
        self.assertIn(rows["pod-200"]["limit_percent"], (19, 20))
        self.assertEqual(rows["pod-2"]["dropped_bits_per_sec"], 0)
        self.assertEqual(rows["pod-2"]["heavy_flows"], 2)

    def test_classes_and_groups_have_rows(self):
        r = subprocess.run([NATRACTL, "top", "--json", "--interval", "1"], text=True,
                           env=environment(2, NATRA_FAKE_GROUPS="1"), timeout=20,
                           stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        rows = {(row["kind"], row["id"], row["part"]): row for row in json.loads(r.stdout)
                if row["kind"] != "pod"}
        self.assertEqual(sorted(rows), [("automatic group", "", "blue"),
                                        ("class", "pod-1", "cluster"), ("group", "", "blue")])
        group = rows["group", "", "blue"]
        self.assertEqual((group["name"], group["direction"]), ("group blue", "egress"))
        # What was charged, and as much that was not. A pause between the two readings of the
        # clock is in the rate.
        self.assertLess(abs(group["passed_bits_per_sec"] - 16e6), 16e5)
        self.assertEqual(rows["class", "pod-1", "cluster"]["name"],
                         "shop/web-001 class cluster")

    def test_no_pods_is_an_empty_table(self):
        self.assertEqual(len(run("top", "--interval", "1", pods=0).stdout.splitlines()), 1)
        self.assertEqual(run("top", "--interval", "1", "--json", pods=0).stdout, "[]\n")

    def test_options_that_do_not_fit_are_refused(self):
        for args, words in ((["-n", "3"], "--flows: needs an ID"),
                            (["web", "--interval", "1"], "--interval: cannot stand"),
                            (["--interval", "61"], "'61' is not between 1 and 60")):
            r = run("top", *args)
            self.assertEqual((r.returncode, r.stdout), (2, ""))
            self.assertIn(words, r.stderr)

    def test_terminal_without_an_entry_gets_one_table(self):
        master, slave = pty.openpty()
        r = subprocess.run([NATRACTL, "top", "--interval", "1"], stdin=slave, stdout=slave,
                           stderr=subprocess.PIPE, text=True, timeout=20,
                           env=environment(2, TERM="no\x1bsuch"))
        out = os.read(master, 65536).decode()
        os.close(master)
        os.close(slave)
        self.assertEqual(r.returncode, 0)
        self.assertEqual(r.stderr.count("\n"), 1)
        self.assertRegex(r.stderr, r"TERM='no\\x1bsuch'.*one table|no ncurses.*one table")
        self.assertIn("shop/web-001", out)


@unittest.skipUnless(shutil.which("tmux"), "tmux is missing")
@unittest.skipIf(os.environ.get("NATRA_TOP") == "0", "natractl was built without ncurses")
class Screen(unittest.TestCase):
    """Tests the screen of a terminal."""

    def test_what_is_over_the_limit_is_red(self):
        with Terminal(1300) as t:
            t.keys("r")
            t.wait(lambda lines: pods_of(lines)[:1] == ["shop/web-1299"] and
                   re.search(r" (12[5-9]|13[0-5])% ", lines[2]))
            drawn = t.tmux("capture-pane", "-p", "-e").split("\n")
            self.assertRegex(drawn[2], r"\x1b\[31m(\x1b\[\d+m)* +1[23]\d%\x1b")
            t.keys("n")
            t.wait(lambda lines: pods_of(lines)[:1] == ["shop/web-000"])
            self.assertNotIn("\x1b[31m", t.tmux("capture-pane", "-p", "-e"))

    def test_200_pods_in_80_columns(self):
        with Terminal(200) as t:
            # The dropped packets put pod 3 in front once there is a rate.
            lines = t.wait(lambda lines: pods_of(lines)[:1] == ["shop/web-003"] and
                           len(pods_of(lines)) == 21 and lines[23].startswith("q quit"))
            self.assertEqual(lines[0], "400 of 400 rows by held and dropped, each 1 s")
            self.assertEqual(lines[1].split(), "POD DIR LIMIT OFFERED PASSED CAP HELD DROP FL "
                             "LAST MINUTE".split())
            self.assertRegex(lines[2], rf"^shop/web-003 +in +10M +\d\S+ +\d\S+ +0% +0 +\d\S+ +2\b")

            t.keys("r")
            lines = t.wait(lambda lines: pods_of(lines)[:2] == ["shop/web-199",
                                                               "shop/web-198"])
            self.assertRegex(lines[2], rf" [12](\.\d+)?M +(19|20)% .*[{BLOCKS}]")
            t.keys("n")
            t.wait(lambda lines: pods_of(lines)[:3] == ["shop/web-000"] * 2 +
                   ["shop/web-001"])
            t.keys("End")
            t.wait(lambda lines: pods_of(lines)[-1:] == ["shop/web-199"])
            t.keys("Home", "/", "web-01", "Enter")
            # The first line is drawn before the others.
            t.wait(lambda lines: len(pods_of(lines)) == 20 and
                   lines[0] == "20 of 400 rows by name, each 1 s, filter: web-01")

            t.keys("Down", "Down", "Enter")
            t.wait_text("shop/web-011 ingress: 2 flows, limit 10M")
            lines = t.wait(lambda lines: lines[2].startswith("tcp "))
            self.assertRegex(lines[2], r"^tcp +10\.0\.0\.1:443 +10\.0\.0\.2:5000 +3 kB ")
            t.keys("?")
            t.wait_text("sort by held and dropped")
            t.keys("Escape")
            t.wait_text("20 of 400")
            t.keys("Escape")
            t.wait_text("400 of 400")

    def test_replicas_differ_in_80_columns(self):
        with Terminal(12, NATRA_FAKE_LABEL="shop/checkout-6d4b75cb6d-x7k2") as t:
            t.keys("n")
            lines = t.wait(lambda lines: lines[22].startswith("shop/"))
            names = {line.split()[0] for line in lines[2:23]}
            self.assertEqual(len(names), 11)
            self.assertTrue(all("~" in name for name in names))

    def test_200_columns_and_resizing(self):
        with Terminal(200, 200, 50) as t:
            lines = t.wait(lambda lines: len(pods_of(lines)) == 47)
            self.assertIn("INTERFACE", lines[1])
            self.assertLessEqual(max(map(len, lines)), 200)
            for columns, rows in ((80, 24), (30, 8), (20, 3), (120, 40)):
                t.tmux("resize-window", "-x", str(columns), "-y", str(rows))
                shown = rows - 3 if columns > 60 else 0
                lines = t.wait(lambda lines: len(lines) == rows and
                               lines[-1].startswith("q quit  Enter") and
                               len(pods_of(lines)) == shown)
                self.assertEqual("INTERFACE" in lines[1], columns == 120)

    def resize(self, t, columns, rows, good):
        """Until natractl draws again, there are lines of the screen that was."""
        t.tmux("resize-window", "-x", str(columns), "-y", str(rows))
        return t.wait(lambda lines: len(lines) == rows and good(lines) and
                      lines[-1].startswith("q quit  Enter"))

    def test_no_pod_and_one(self):
        for size, other in (((80, 24), (200, 50)), ((200, 50), (80, 24))):
            with Terminal(0, *size) as t:
                t.wait_text("No pod of this node is limited.")
                self.resize(t, *other, lambda lines: any(
                    "No pod of this node is limited." in line for line in lines))
                t.keys("Enter", "Down", "End", "/", "x", "Enter", "?")
                t.wait_text("natractl top shows")
            with Terminal(1, *size) as t:
                lines = t.wait(lambda lines: len(pods_of(lines)) == 2)
                self.assertEqual(lines[0], "2 of 2 rows by held and dropped, each 1 s")
                self.assertEqual("INTERFACE" in lines[1], size[0] == 200)
                self.resize(t, *other, lambda lines: len(pods_of(lines)) == 2 and
                            ("INTERFACE" in lines[1]) == (other[0] == 200))

    def test_terminal_without_utf8_gets_ascii(self):
        with Terminal(200, LC_ALL="C") as t:
            t.keys("r")
            lines = t.wait(lambda lines: pods_of(lines)[:1] == ["shop/web-199"] and
                           lines[2].endswith("."))
            self.assertTrue(all(line.isascii() for line in lines))

    def test_error_is_shown_and_goes_away(self):
        with tempfile.TemporaryDirectory() as place:
            error = Path(place, "error")
            with Terminal(2, NATRA_FAKE_ERROR=str(error)) as t:
                t.wait_text("shop/web-001")
                error.touch()
                t.wait_text("not read: Operation not permitted")
                self.assertEqual(len(pods_of(t.screen())), 4)
                error.unlink()
                t.wait(lambda lines: lines[23].startswith("q quit"))

    def ends_well(self, end):
        with Terminal(3) as t:
            t.wait_text("shop/web-002")
            alternate = t.tmux("display", "-p", "#{alternate_on}")
            end(t)
            t.wait_end()
            return (alternate, (t.dir / "status").read_text(),
                    (t.dir / "before").read_text() == (t.dir / "end").read_text(),
                    t.tmux("display", "-p", "#{alternate_on} #{cursor_flag} "
                           "#{keypad_flag}"))

    def test_terminal_is_restored(self):
        ends = [lambda t: t.keys("q"), lambda t: t.keys("C-c")]
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE, signal.SIGHUP):
            ends.append(lambda t, number=number: os.kill(t.pid(), number))
        with ThreadPoolExecutor(len(ends)) as pool:
            for result in pool.map(self.ends_well, ends):
                self.assertEqual(result, ("1\n", "0\n", True, "0 1 0\n"))

    def test_refresh_writes_little_and_takes_little(self):
        with Terminal(200) as t:
            t.wait(lambda lines: pods_of(lines)[:1] == ["shop/web-003"])
            pid, out = t.pid(), t.dir / "out"
            t.tmux("pipe-pane", f"cat >{out}")
            begin, screen, whole = time.monotonic(), cpu_seconds(pid), children_seconds()
            # Each takes a second, and runs on the same CPU at the same time.
            for _ in range(REFRESHES):
                run("top", "--interval", "1", pods=200, check=True)
            whole = children_seconds() - whole
            screen, seconds = cpu_seconds(pid) - screen, time.monotonic() - begin
            t.tmux("pipe-pane")
            written = out.read_bytes()
        print(f"200 pods: {100 * screen / seconds:.2f} % of a CPU, "
              f"{len(written) / seconds:.0f} bytes per second", file=sys.stderr)
        # A refresh takes a sixth of a whole run of natractl, which reads twice.
        self.assertGreater(screen, 0)
        self.assertLess(screen, whole)
        self.assertGreater(len(written), 0)
        # A screen has 1920 characters. Neither all nor a part of it is cleared first.
        self.assertLess(len(written) / seconds, 960)
        self.assertIsNone(re.search(rb"\x1b\[[0-2]?J", written))


if __name__ == "__main__":
    parallel.main()
