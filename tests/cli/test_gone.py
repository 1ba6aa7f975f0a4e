#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests what natractl says of an attachment whose counters are gone from bpffs, with those that
fake_natra.c makes up. NATRACTL_FAKE is natractl linked with it."""

import errno
import json
import os
import subprocess
import unittest


def run(*args, **env):
    return subprocess.run([os.environ["NATRACTL_FAKE"], *args], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=20, env={**os.environ, **env})


class Gone(unittest.TestCase):
    def test_stats_of_all(self):
        """The others are printed, and the exit code and a line tell of this one, unless it was
        detached since it was listed."""
        for variable, code in (("FAKE_GONE", 1), ("FAKE_DETACHED", 0)):
            with self.subTest(variable):
                r = run("stats", "--json", **{variable: "evil"})
                self.assertEqual([one["id"] for one in json.loads(r.stdout)],
                                 ["bare", "gone", "web"])
                self.assertEqual((r.returncode, r.stderr.count("natractl: ")), (code, code))

    def test_stats_of_this_one(self):
        r = run("stats", "evil", FAKE_GONE="evil")
        self.assertEqual((r.returncode, r.stdout), (1, ""))

    def test_metrics(self):
        """It has no counters, and all that is known without them."""
        text = run("metrics", FAKE_GONE="evil", FAKE_CHECK=str(errno.EBADE)).stdout
        found = [line for line in text.splitlines() if 'attachment="evil"' in line]
        self.assertEqual({line.partition("{")[0] for line in found}, {
            "natra_attachment_info", "natra_check_failed", "natra_program_before",
            "natra_unshaped"})
        self.assertTrue(any(line.startswith("natra_check_failed") and line.endswith(" 1")
                            for line in found), found)
        self.assertIn('natra_attachments{mode="tcx-podside"} 4\n', text)

    def test_top(self):
        """It would be taken for one that sends nothing."""
        rows = json.loads(run("top", "--json", "--once", FAKE_GONE="evil").stdout)
        self.assertEqual({row["id"] for row in rows}, {"bare", "gone", "web"})


if __name__ == "__main__":
    unittest.main()
