#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""tools/release refuses what is not a release, and two runs give the same files.

usage: test_release.py [Refuses|Provenance|Twice]...

The release is of a copy of the tree, of which the CHANGELOG says that it is released.
"""
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
VERSION = re.search(r" version: '(.*)'", (SOURCE / "meson.build").read_text())[1]
NAME = f"natra-{VERSION}"
HEADING = f"## {VERSION} (2026-01-01)"
TOOLS = ("buildah", "rpmbuild", "mandoc", "aarch64-linux-gnu-strip", "qemu-aarch64-static")
PROGRAMS = ("natra", "natra-agent", "natractl")
PLATFORMS = re.findall(r"^(\w+):", (SOURCE / "tools/deploy/chart/platforms.yaml").read_text(),
                       re.M)
# These are about SHA256SUMS, and not in it.
SEAL = ("SHA256SUMS", "SHA256SUMS.sig", "natra-release.pub")
PACKAGES = ("libnatra-dev", "libnatra0", "natra-agent", "natra-cni", "natractl")
GIT = ("git", "-c", "safe.directory=*", "-c", "user.name=test",
       "-c", "user.email=test@natra.example", "-c", "commit.gpgsign=false")


def run(*argv, seconds=120, **more):
    return subprocess.run([str(a) for a in argv], text=True, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=seconds, **more)


def must(*argv, **more):
    p = run(*argv, **more)
    if p.returncode:
        raise AssertionError(f"{argv}: {p.returncode}: {(p.stdout + p.stderr)[-4000:]}")
    return p.stdout


class Copy(unittest.TestCase):
    """A repository with the tree's files in one commit."""

    @classmethod
    def setUpClass(cls):
        tmp = tempfile.TemporaryDirectory(prefix="natra-release-")
        cls.addClassCleanup(tmp.cleanup)
        cls.tmp = Path(tmp.name)
        cls.root = cls.tmp / "natra"
        listed = run(*GIT, "-C", SOURCE, "ls-files", "-z").stdout.split("\0")
        if any(listed):
            for name in filter(None, listed):
                if (SOURCE / name).exists():
                    (cls.root / name).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy(SOURCE / name, cls.root / name, follow_symlinks=False)
        else:
            # A copy without a history has these files, and builds.
            shutil.copytree(SOURCE, cls.root, symlinks=True, ignore=lambda d, names: [
                n for n in names if n == "__pycache__" or
                d == str(SOURCE) and n.startswith("build")])
        cls.changelog = cls.root / ".github/CHANGELOG.md"
        text = re.sub(rf"^## {re.escape(VERSION)}.*$", HEADING,
                      cls.changelog.read_text(), flags=re.M)
        cls.changelog.write_text(text)
        # The project's key is the secret RELEASE_KEY of release.yml; this one is the test's.
        cls.key, cls.public = cls.tmp / "key.pem", cls.root / ".github/release.pub"
        must("openssl", "genpkey", "-algorithm", "ed25519", "-out", cls.key)
        must("openssl", "pkey", "-in", cls.key, "-pubout", "-out", cls.public)
        when = "2026-01-01T00:00:00Z"
        env = dict(os.environ, GIT_AUTHOR_DATE=when, GIT_COMMITTER_DATE=when)
        for argv in (["init", "-q"], ["add", "-A", "-f"], ["commit", "-q", "-m", "all"]):
            must(*GIT, "-C", cls.root, *argv, env=env)

    def release(self, *argv, **more):
        return run(self.root / "tools/release", *argv, **more)


class Refuses(Copy):
    def refused(self, text, *argv):
        # That the directory exists is looked at last, so nothing is built in any case.
        p = self.release(*argv, self.tmp)
        self.assertEqual((p.returncode, p.stdout), (1, ""))
        self.assertEqual(p.stderr.count("\n"), 1, p.stderr)
        self.assertIn(text, p.stderr)

    def edit(self, path, old, new):
        before = path.read_text()
        self.assertIn(old, before)
        path.write_text(before.replace(old, new))
        self.addCleanup(path.write_text, before)

    def test_another_version(self):
        self.refused(f"version '9.9.9' is not meson.build's, '{VERSION}'", "9.9.9")

    def test_no_section(self):
        self.edit(self.changelog, HEADING, "## 9.9.9")
        self.refused(f"version '{VERSION}' has no section in .github/CHANGELOG.md", VERSION)

    def test_unreleased(self):
        self.edit(self.changelog, HEADING, f"## {VERSION} (unreleased)")
        self.refused(f"unreleased by .github/CHANGELOG.md: '## {VERSION} (unreleased)'",
                     VERSION)

    def test_empty_section(self):
        self.edit(self.changelog, HEADING, f"{HEADING}\n\n## 9.9.9")
        self.refused("has an empty section", VERSION)

    def test_changed(self):
        self.edit(self.root / "LICENSE", "Redistribution", "redistribution")
        self.refused("not committed, such as ' M LICENSE'", VERSION)

    def test_new_file(self):
        path = self.root / "src/new.c"
        path.write_text("")
        self.addCleanup(path.unlink)
        self.refused("not committed, such as '?? src/new.c'", VERSION)

    def use_key(self, path):
        os.environ["NATRA_RELEASE_KEY"] = str(path)
        self.addCleanup(os.environ.pop, "NATRA_RELEASE_KEY")

    def test_no_key(self):
        self.use_key(self.root / "LICENSE")
        self.refused(f"NATRA_RELEASE_KEY: '{self.root}/LICENSE' is no Ed25519 key", VERSION)

    def test_key(self):
        self.use_key(self.key)
        self.refused(f"directory '{self.tmp}' exists", VERSION)

    def test_no_public_key(self):
        self.use_key(self.key)
        self.addCleanup(self.public.write_bytes, self.public.read_bytes())
        self.public.unlink()
        self.refused(f"NATRA_RELEASE_KEY: '{self.key}' has no public half in .github/release.pub; "
                     "commit it (", VERSION)

    def test_another_key(self):
        other = self.tmp / "other.pem"
        must("openssl", "genpkey", "-algorithm", "ed25519", "-out", other)
        self.use_key(other)
        self.refused(f"'{other}' is another key than that of .github/release.pub", VERSION)

    def test_directory_exists(self):
        self.refused(f"directory '{self.tmp}' exists", VERSION)


class Provenance(unittest.TestCase):
    def test_builder(self):
        """It names the builder that it is told, and nothing that it cannot know."""
        ci = "https://ci.example/1"
        for env, wanted in ({}, "local"), ({"NATRA_BUILDER": ci}, ci):
            with tempfile.TemporaryDirectory() as empty:
                said = must(SOURCE / "tools/package/provenance", "example/natra", VERSION,
                            "c0ffee", empty, env={"PATH": os.environ["PATH"], **env})
            self.assertEqual(json.loads(said)["predicate"]["runDetails"],
                             {"builder": {"id": wanted}})


class Twice(Copy):
    @classmethod
    def setUpClass(cls):
        if os.geteuid():
            raise unittest.SkipTest("needs root")
        for tool in TOOLS:
            if not shutil.which(tool):
                raise unittest.SkipTest(
                    f"no {tool} (tools/install-deps build static arm64 image release)")
        super().setUpClass()
        cls.out = [cls.tmp / "first", cls.tmp / "another/second"]
        for out in cls.out:
            must(cls.root / "tools/release", VERSION, out, seconds=3000,
                 env=dict(os.environ, NATRA_RELEASE_KEY=cls.key))

    def test_same(self):
        first, second = ({p.name: hashlib.sha256(p.read_bytes()).hexdigest()
                          for p in out.iterdir()} for out in self.out)
        self.assertEqual(first, second)

    def test_files(self):
        wanted = {f"{NAME}.tar.gz", f"{NAME}.oci.tar", f"{NAME}-manifests.tar.gz",
                  f"natra-chart-{VERSION}.tgz", f"kubectl-natra-{VERSION}.tar.gz",
                  "natra-krew.yaml", "natra-dashboard.json", "natra-rules.yaml",
                  "provenance.json", "NOTES.md", *SEAL,
                  "natra-cni.8.html", "natractl.8.html", "natra-agent.8.html",
                  *(f"install-{p}.yaml" for p in PLATFORMS)}
        found = {p.name for p in self.out[0].iterdir()}
        for arch, rpm in (("amd64", "x86_64"), ("arm64", "aarch64")):
            wanted |= {f"{NAME}-linux-{arch}.tar.gz", f"{NAME}-linux-{arch}.spdx.json"}
            for ending in (f"_{arch}.deb", f".{rpm}.rpm"):
                self.assertEqual(len([n for n in found if n.endswith(ending)]),
                                 len(PACKAGES), ending)
        packages = {n for n in found if n.endswith((".deb", ".rpm"))}
        self.assertEqual(found - packages, wanted)
        said = must("sha256sum", "--strict", "-c", "SHA256SUMS", cwd=self.out[0])
        self.assertEqual(said.count(": OK\n"), len(found) - len(SEAL))

    def test_seal(self):
        """What a user can verify without a network, and what a changed byte does to it."""
        verify = ("openssl", "pkeyutl", "-verify", "-pubin", "-inkey", "natra-release.pub",
                  "-rawin", "-sigfile", "SHA256SUMS.sig", "-in")
        must(*verify, "SHA256SUMS", cwd=self.out[0])
        changed = self.tmp / "changed"
        changed.write_text((self.out[0] / "SHA256SUMS").read_text().replace("natra", "natrb", 1))
        self.assertNotEqual(run(*verify, changed, cwd=self.out[0]).returncode, 0)
        made = json.loads((self.out[0] / "provenance.json").read_text())
        self.assertEqual({s["name"]: s["digest"]["sha256"] for s in made["subject"]},
                         {p.name: hashlib.sha256(p.read_bytes()).hexdigest()
                          for p in self.out[0].iterdir()
                          if p.name not in {"provenance.json", *SEAL}})
        [source] = made["predicate"]["buildDefinition"]["resolvedDependencies"]
        self.assertEqual(source["digest"]["gitCommit"],
                         must(*GIT, "-C", self.root, "rev-parse", "HEAD").strip())

    def test_chart(self):
        """The chart and the manifests name the image that is there, by its digest."""
        with tarfile.open(self.out[0] / f"{NAME}.oci.tar") as tar:
            [index] = json.load(tar.extractfile("index.json"))["manifests"]
        with tarfile.open(self.out[0] / f"natra-chart-{VERSION}.tgz") as tar:
            values = tar.extractfile("natra/values.yaml").read().decode()
            self.assertIn("natra/monitoring/rules.yaml", tar.getnames())
        self.assertIn(f"  digest: {index['digest']}\n", values)
        for platform in PLATFORMS:
            text = (self.out[0] / f"install-{platform}.yaml").read_text()
            self.assertEqual(set(re.findall(r"image: (\S+)", text)),
                             {f"ghcr.io/owner/natra@{index['digest']}"})

    def test_source(self):
        with tarfile.open(self.out[0] / f"{NAME}.tar.gz") as tar:
            found = {m.name for m in tar.getmembers() if not m.isdir()}
        listed = must(*GIT, "-C", self.root, "ls-files").splitlines()
        self.assertEqual(found, {f"{NAME}/{name}" for name in listed})

    def test_notes(self):
        [section] = re.findall(rf"^{re.escape(HEADING)}\n\n(.*?)(?=^## |\Z)",
                               self.changelog.read_text(), re.M | re.S)
        self.assertEqual((self.out[0] / "NOTES.md").read_text(), section)

    def test_image(self):
        with tarfile.open(self.out[0] / f"{NAME}.oci.tar") as tar:
            [index] = json.load(tar.extractfile("index.json"))["manifests"]
            name = "blobs/" + index["digest"].replace(":", "/")
            images = json.load(tar.extractfile(name))["manifests"]
        self.assertEqual([i["platform"]["architecture"] for i in images],
                         ["amd64", "arm64"])

    def test_programs_run(self):
        for arch, runner in (("amd64", []), ("arm64", ["qemu-aarch64-static"])):
            dir = f"{NAME}-linux-{arch}"
            must("tar", "-x", "-C", self.tmp, "-f", self.out[0] / f"{dir}.tar.gz")
            for program in PROGRAMS:
                path = self.tmp / dir / program
                self.assertNotIn("INTERP", must("readelf", "-Wl", path))
            self.assertIn(VERSION, must(*runner, self.tmp / dir / "natractl", "--version"))


if __name__ == "__main__":
    program = unittest.main(exit=False)
    result = program.result
    if result.wasSuccessful() and result.skipped:
        print(f"skipped: {result.skipped[0][1]}")
        sys.exit(77)
    sys.exit(not result.wasSuccessful())
