#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""actionlint finds nothing in the workflows, and what is wrong in a copy. Needs no root."""
import glob
import os
import re
import subprocess
import tempfile
import unittest

import cache


def read(path):
    with open(f"{cache.SOURCE}/{path}") as f:
        return f.read()


VERSION = re.search(r"^actionlint=.*@(.*)$", read("tools/install-deps"), re.M)[1]
ACTIONLINT = f"{os.path.dirname(cache.CACHE)}/actionlint-{VERSION}"
cache.need(ACTIONLINT)
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
        text = read(".github/workflows/release.yml")
        good, bad = "github.ref_name", "github.ref_nam"
        self.assertIn(good, text)
        with tempfile.NamedTemporaryFile("w", suffix=".yml") as f:
            f.write(text.replace(good, bad))
            f.flush()
            p = lint(f.name)
        self.assertEqual(p.returncode, 1)
        self.assertIn("ref_nam", p.stdout)

    def test_nightly_runs_everything(self):
        p = subprocess.run([f"{cache.SOURCE}/tests/everything", "--list"], text=True,
                           capture_output=True, timeout=60)
        rows = re.findall(r"^([^:]+): ", p.stdout, re.M)
        jobs = re.search(r" rows:\n((?: +[-#] .*\n)+)", read(".github/workflows/nightly.yml"))[1]
        named = [row for job in re.findall(r"- (.*)", jobs) for row in job.split()]
        self.assertGreater(len(rows), 20)
        # A visitor's machine has no Python: this row is a job of its own.
        self.assertEqual(sorted([*named, "quickstart"]), sorted(rows))

    def test_public_key(self):
        """Who releases reads the same command wherever the key is spoken of."""
        make = "openssl pkey -in KEY -pubout -out .github/release.pub"
        for path in ".github/workflows/release.yml", ".github/CONTRIBUTING.md":
            self.assertIn(make, read(path), path)
        said = re.search(r"public=(\S+)\n(?s:.*?)commit it \((.*)\)\"", read("tools/release"))
        self.assertEqual(said[2].replace("$public", said[1]), make)
        self.assertIn("`.github/release.pub`", read("tools/deploy/README.md"))


if __name__ == "__main__":
    unittest.main()
