#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""natractl install and uninstall on a full or read-only file system. Where the test
cannot mount, it skips with exit code 77."""

import json
import shutil
import subprocess
import sys
import tempfile
import unittest

from node import BIN, FLANNEL, NET, OLD, Answer, Case


def why_not():
    """Return the error of mounting a file system, empty if that works."""
    p = subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "tmpfs",
                        tempfile.gettempdir()], text=True, capture_output=True)
    return p.stderr.strip().replace("\n", " ") if p.returncode else ""


class FileSystems(Case):
    """Runs natractl with one of its directories on another file system."""

    def on(self, node, directory, options, argv, after=""):
        script = f"""
            mount -t tmpfs -o size=4m tmpfs "$1" && cp -a "$1.was/." "$1" &&
            {options} || exit 99
            shift 2
            "$@"; code=$?
            {after}
            exit $code"""
        shutil.copytree(directory, f"{directory}.was", symlinks=True)
        p = subprocess.run(["unshare", "-m", "sh", "-c", script, "sh",
                            str(directory), str(node.root), *argv], text=True,
                           capture_output=True, stdin=subprocess.DEVNULL,
                           timeout=60)
        shutil.rmtree(f"{directory}.was")
        self.assertNotEqual(p.returncode, 99, p.stderr)
        return p

    def refused(self, p, *words):
        self.assertEqual((p.returncode, p.stderr.count("\n")), (1, 1),
                         p.stdout + p.stderr)
        for word in words:
            self.assertIn(word, p.stderr)

    def install(self, node, *options):
        return node.argv("install", "--runtime-version", OLD, *options)

    # Fills the file system up to its last block.
    FULL = 'dd if=/dev/zero of="$1/full" bs=4k 2>/dev/null; true'

    def test_full(self):
        for which in ("net", "bin"):
            with self.subTest(full=which):
                node = self.node({"10-flannel.conflist": FLANNEL})
                directory = getattr(node, which)
                p = self.on(node, directory, self.FULL, self.install(node),
                            f"ls -A {directory}")
                self.refused(p, "No space left on device", str(
                    directory.relative_to(node.root)))
                self.assertEqual(
                    [l for l in p.stdout.splitlines() if "/" not in l],
                    ["10-flannel.conflist", "full"] if which == "net"
                    else ["full"])

    def test_full_for_an_uninstall(self):
        """An uninstall needs no free space."""
        node = self.node({"10-flannel.conflist": FLANNEL})
        self.done(node.install())
        p = self.on(node, node.net, self.FULL, node.argv("uninstall"),
                    f"ls -A {node.net}")
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertEqual(p.stdout.splitlines()[-2:],
                         ["10-flannel.conflist", "full"])

    READ_ONLY = 'mount -o remount,ro "$1"'

    def test_read_only(self):
        for which in ("net", "bin"):
            with self.subTest(read_only=which):
                node = self.node({"10-flannel.conflist": FLANNEL})
                directory = getattr(node, which)
                p = self.on(node, directory, self.READ_ONLY,
                            self.install(node))
                self.refused(p, "Read-only file system",
                             str(directory.relative_to(node.root)))

    def test_what_was_changed_before_a_failure(self):
        for way in self.FULL, self.READ_ONLY:
            node = self.node({"10-flannel.conflist": FLANNEL})
            p = self.on(node, node.net, way, self.install(node, "--json"))
            self.refused(p, NET)
            told = Answer(p).json
            self.assertEqual(set(told), {"changes", "warnings", "error"})
            self.assertEqual([c["path"] for c in told["changes"]], [f"/{BIN}/natra"])
            self.assertIn(told["error"], p.stderr)
            self.assertTrue((node.bin / "natra").exists())

    def test_read_only_with_the_plugin(self):
        """The plugin's directory is read-only and has natra, as on Bottlerocket or
        with an image that brings natra."""
        node = self.node({"10-flannel.conflist": FLANNEL})
        self.done(node.install())
        self.done(node.install("--conf", "fastPass=off"))
        p = self.on(node, node.bin, self.READ_ONLY, self.install(node))
        self.assertEqual(p.returncode, 0, p.stderr)
        # The warning is about the machine: in the mount namespace of on() it may lack
        # the bpffs that another test has just mounted.
        self.assertEqual([l for l in Answer(p).other.splitlines()
                          if "natra cannot limit on this node" not in l], [])
        self.assertNotIn("fastPass", json.dumps(node.chain()))


if __name__ == "__main__":
    if reason := why_not():
        print(f"skip: cannot mount: {reason}")
        sys.exit(77)
    unittest.main()
