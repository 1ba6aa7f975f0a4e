#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""actionlint finds nothing in the workflows, and finds what is wrong with a copy. Needs no root."""
import glob
import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cache

[ACTIONLINT] = glob.glob(f"{os.path.dirname(cache.CACHE)}/actionlint-*")[-1:] or [""]
cache.need(ACTIONLINT or "actionlint")
WORKFLOWS = sorted(glob.glob(f"{cache.SOURCE}/.github/workflows/*.yml"))


def lint(*paths):
    return subprocess.run([ACTIONLINT, "-no-color", "-shellcheck=", "-pyflakes=", *paths],
                          text=True, capture_output=True, timeout=60)


class Workflows(unittest.TestCase):
    def test_nothing_is_found(self):
        self.assertGreaterEqual(len(WORKFLOWS), 3)
        p = lint(*WORKFLOWS)
        self.assertEqual((p.returncode, p.stdout), (0, ""))

    def test_a_wrong_one(self):
        with open(f"{cache.SOURCE}/.github/workflows/release.yml") as f:
            text = f.read()
        for good, bad in (("github.ref_name", "github.ref_nam"),
                          ("runs-on: ubuntu-24.04", "runs-on: ubuntu-99.04"),
                          ("contents: write", "content: write")):
            with self.subTest(bad), tempfile.NamedTemporaryFile("w", suffix=".yml") as f:
                self.assertIn(good, text)
                f.write(text.replace(good, bad))
                f.flush()
                self.assertEqual(lint(f.name).returncode, 1)


if __name__ == "__main__":
    unittest.main()
