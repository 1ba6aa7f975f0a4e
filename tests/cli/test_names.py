#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests the ways to name an attachment on natractl's command line, with those that
fake_natra.c makes up. NATRACTL_FAKE is natractl linked with it."""

import json
import os
import subprocess
import unittest


def run(*args, **env):
    return subprocess.run([os.environ["NATRACTL_FAKE"], *args], stdin=subprocess.DEVNULL,
                          capture_output=True, timeout=20, env={**os.environ, **env})


class Names(unittest.TestCase):
    def test_names(self):
        """A pod's name and the begin of its container's id mean the attachment."""
        def cni(*args, pods=1):
            return run(*args, NATRA_FAKE_PODS=str(pods), NATRA_FAKE_IDS="/0123456789abcdef/eth0")

        lines = cni("list", pods=20).stdout.decode().splitlines()
        self.assertEqual([l.split()[0] for l in lines[1:]],
                         [f"shop/web-{i:03d}" for i in range(20)])
        self.assertEqual(lines[4].split()[-1], "01234567")
        self.assertLess(max(map(len, lines)), 80)
        whole = "pod-0/0123456789abcdef/eth0"
        for word in ("shop/web-000", "012345", "0123456789abcdef", whole):
            for command in ("show", "check", "stats", "top"):
                with self.subTest(command=command, word=word):
                    r = cni(command, word, "--json")
                    self.assertEqual(r.returncode, 0, r.stderr)
                    self.assertEqual(json.loads(r.stdout)["id"], whole)
            self.assertEqual(cni("detach", word).stderr.decode(), f"detach {whole}\n")
            self.assertEqual(cni("set", word, "--egress-rate", "1M").returncode, 0)
            self.assertIn(f"upgrade {whole}\n", cni("upgrade", word).stderr.decode())
        self.assertEqual(cni("show", "01234").returncode, 1)
        r = cni("show", "012345", pods=2)
        self.assertIn(b"means several attachments: pod-0/0123456789abcdef/eth0 (veth0)",
                      r.stderr)

    def test_ambiguous_names(self):
        for args in (["show"], ["stats"], ["check"], ["detach"], ["top"], ["upgrade"],
                     ["set", "--egress-rate", "1M"]):
            with self.subTest(args=args):
                r = run(*args, "shop/web-0")
                self.assertEqual((r.returncode, r.stdout), (1, b""))
                self.assertEqual(r.stderr, b"natractl: ID|POD: 'shop/web-0' means several "
                                 b"attachments: newer (eth0), bare (eth0), gone (eth0), "
                                 b"web (eth0)\n")


if __name__ == "__main__":
    unittest.main()
