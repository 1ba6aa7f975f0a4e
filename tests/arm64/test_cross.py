#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Builds natra for arm64 on a machine of another architecture, runs the suites unit and
abi by qemu-user, and looks at the programs.

usage: test_cross.py [Cross|Static]

The build of Cross is that of crossbuild.py.
"""
import os
import re
import shutil
import sys
import tempfile
import unittest
from pathlib import Path

from crossbuild import BUILD, SOURCE, run, setup, setup_tests

PROGRAMS = ("tools/natractl/natractl", "tools/agent/natra-agent", "cni/natra")
# Fewer tests than these mean that meson has lost some.
TESTS_MIN = {"unit": 30, "abi": 5}


class Cross(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        setup_tests()

    def suite(self, name):
        said = run("meson", "test", "-C", BUILD, "--no-rebuild", "--print-errorlogs",
                   "--suite", name, "--timeout-multiplier", "8",
                   "--logbase", f"testlog-{name}")
        passed = int(re.search(r"^Ok: +(\d+)", said, re.M)[1])
        print(f"{name} by qemu-user: {passed} passed", file=sys.stderr)
        self.assertGreaterEqual(passed, TESTS_MIN[name])
        for what in ("Fail", "Timeout", "Skipped"):
            self.assertEqual(int(re.search(rf"^{what}: +(\d+)", said, re.M)[1]), 0, what)

    def test_unit(self):
        self.suite("unit")

    def test_abi(self):
        self.suite("abi")

    def test_architecture(self):
        for name in (*PROGRAMS, "src/libnatra.so", "tests/unit/test_policy"):
            self.assertIn("AArch64", run("readelf", "-h", BUILD / name), name)

    def test_same_bpf_object(self):
        """The programs of the kernel are the same for each architecture, so that their
        tests on one hold for the other."""
        native = Path(os.environ["NATRA_BPF_OBJECT"]).read_bytes()
        self.assertEqual((BUILD / "bpf/natra.bpf.o").read_bytes(), native)


class Static(unittest.TestCase):
    def test_programs_need_nothing(self):
        with tempfile.TemporaryDirectory(prefix="natra-arm64-") as d:
            build = Path(d) / "build"
            setup(build, "-Dstatic=true", "-Dtests=disabled", "--buildtype=release")
            version = re.search(r" version: '(.*)'", (SOURCE / "meson.build").read_text())[1]
            for name in PROGRAMS:
                said = run("readelf", "-Whl", build / name)
                self.assertIn("AArch64", said)
                self.assertNotIn("INTERP", said)
            for name in PROGRAMS[:2]:
                self.assertIn(version, run("qemu-aarch64-static", build / name,
                                           "--version"))
            said = run("qemu-aarch64-static", build / PROGRAMS[2],
                       env={"CNI_COMMAND": "VERSION"})
            self.assertIn("supportedVersions", said)


if __name__ == "__main__":
    for tool in ("qemu-aarch64-static", "aarch64-linux-gnu-ld"):
        if not shutil.which(tool):
            print(f"skip: {tool} (tools/install-deps arm64)")
            sys.exit(77)
    unittest.main()
