#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The image has the static programs, their licences and an SBOM, nothing else, and a
build in another directory gives the same digest. Needs root and minutes."""
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest

import cache

PROGRAMS = ("natra-agent", "natractl", "natra")
DOC = "usr/share/doc/natra"
BYTES_MAX = 12_000_000


def run(*argv, **more):
    p = subprocess.run(argv, text=True, stdin=subprocess.DEVNULL, timeout=900,
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)
    if p.returncode:
        raise AssertionError(f"{argv}: {p.returncode}: {p.stdout}{p.stderr}")
    return p.stdout


def build(source, *options, **env):
    """Return the archive's path, and the image's digest."""
    path, line = run(f"{source}/tools/deploy/image", *options,
                     env=dict(os.environ, **env)).splitlines()
    return path, line.split()[1]


class Archive:
    """An OCI archive with one image of one layer, or with one for each architecture."""

    def __init__(self, path, arch=None):
        self.tar = tarfile.open(path)
        [self.descriptor] = self.json("index.json")["manifests"]
        if arch:
            self.index = self.blob_json(self.descriptor["digest"])
            [self.descriptor] = [d for d in self.index["manifests"]
                                 if d["platform"]["architecture"] == arch]
        manifest = self.blob_json(self.descriptor["digest"])
        self.config = self.blob_json(manifest["config"]["digest"])
        [layer] = manifest["layers"]
        self.size = layer["size"]
        self.layer = tarfile.open(fileobj=self.tar.extractfile(self.name(layer["digest"])))

    @staticmethod
    def name(digest):
        return "blobs/" + digest.replace(":", "/")

    def json(self, name):
        return json.load(self.tar.extractfile(name))

    def blob_json(self, digest):
        data = self.tar.extractfile(self.name(digest)).read()
        assert digest == f"sha256:{hashlib.sha256(data).hexdigest()}"
        return json.loads(data)

    def files(self):
        return {m.name: m for m in self.layer.getmembers() if not m.isdir()}

    def read(self, name):
        return self.layer.extractfile(name).read()


class Image(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.path, cls.digest = build(cache.SOURCE)
        cls.image = Archive(cls.path)
        cls.sbom = json.loads(cls.image.read(f"{DOC}/sbom.spdx.json"))

    def test_contents(self):
        files = self.image.files()
        licenses = {n for n in files if n.startswith(f"{DOC}/licenses/")}
        self.assertEqual(set(files) - licenses,
                         {f"bin/{p}" for p in PROGRAMS} | {f"{DOC}/sbom.spdx.json"})
        for p in PROGRAMS:
            program = files[f"bin/{p}"]
            self.assertEqual((program.mode & 0o7777, program.uid), (0o755, 0))
        unpacked = sum(m.size for m in files.values())
        print(f"image: {self.image.size} bytes, {unpacked} unpacked", file=sys.stderr)
        self.assertLess(unpacked, BYTES_MAX)

    def test_programs_need_nothing(self):
        with tempfile.TemporaryDirectory() as d:
            for p in PROGRAMS:
                path = f"{d}/{p}"
                with open(path, "wb") as f:
                    f.write(self.image.read(f"bin/{p}"))
                os.chmod(path, 0o755)
                self.assertNotIn("INTERP", run("readelf", "-Wl", path))
            options = run(f"{d}/natra-agent", "--help")
            self.assertIn("--node", options)
            self.assertIn(self.version(), run(f"{d}/natractl", "--version"))

    @staticmethod
    def version():
        with open(f"{cache.SOURCE}/meson.build") as f:
            return next(line.split("'")[1] for line in f if " version: '" in line)

    def test_labels(self):
        labels = self.image.config["config"]["Labels"]
        prefix = "org.opencontainers.image."
        self.assertEqual(labels[f"{prefix}version"], self.version())
        self.assertEqual(labels[f"{prefix}licenses"], "BSD-2-Clause")
        self.assertEqual(labels[f"{prefix}created"], self.image.config["created"])
        self.assertTrue(labels[f"{prefix}revision"])
        self.assertEqual(self.image.descriptor["digest"], self.digest)

    def test_sbom(self):
        packages = {p["name"]: p for p in self.sbom["packages"]}
        # These are in any static build; each has a licence text.
        self.assertLessEqual({"natra", "cjson", "curl", "elfutils", "glibc", "libbpf",
                              "libnl3", "openssl", "zlib"}, set(packages))
        for name, package in packages.items():
            self.assertTrue(package["versionInfo"])
            self.assertIn(f"{DOC}/licenses/{name}", self.image.files())
        for f in self.sbom["files"]:
            sums = {c["algorithm"]: c["checksumValue"] for c in f["checksums"]}
            data = self.image.read(f["fileName"].removeprefix("./"))
            self.assertEqual(sums["SHA256"], hashlib.sha256(data).hexdigest())
        with tempfile.TemporaryDirectory() as d:
            path = f"{d}/natra.spdx.json"
            with open(path, "w") as f:
                json.dump(self.sbom, f)
            run(cache.SPDX, "--infile", path, "--version", "SPDX-2.3")

    def test_linked_libraries_are_in_the_sbom(self):
        """The plugin is not linked with what only the agent needs."""
        linked = {f["fileName"].split("/")[-1]: {
            r["relatedSpdxElement"] for r in self.sbom["relationships"]
            if r["spdxElementId"] == f["SPDXID"] and
            r["relationshipType"] == "STATIC_LINK"} for f in self.sbom["files"]}
        self.assertIn("SPDXRef-curl", linked["natra-agent"])
        self.assertNotIn("SPDXRef-curl", linked["natra"])
        for p in PROGRAMS:
            self.assertLessEqual({"SPDXRef-libbpf", "SPDXRef-glibc"}, linked[p])

    def test_same_digest(self):
        created = self.image.config["created"]
        epoch = run("date", "-d", created, "+%s").strip()
        labels = self.image.config["config"]["Labels"]
        files = run("git", "-c", "safe.directory=*", "-C", cache.SOURCE, "ls-files",
                    "-z").split("\0")
        with tempfile.TemporaryDirectory(prefix="natra-image-") as d:
            for name in filter(None, files):
                to = f"{d}/another/place/{name}"
                os.makedirs(os.path.dirname(to), exist_ok=True)
                shutil.copy(f"{cache.SOURCE}/{name}", to, follow_symlinks=False)
            _, digest = build(
                f"{d}/another/place", SOURCE_DATE_EPOCH=epoch,
                NATRA_REVISION=labels["org.opencontainers.image.revision"])
        self.assertEqual(digest, self.digest)

    def test_all_architectures(self):
        """The index has this image, and one for arm64 with the same files. That its
        digest is the same again is shown by release-twice."""
        for tool in ("aarch64-linux-gnu-strip", "qemu-aarch64-static"):
            if not shutil.which(tool):
                self.skipTest(f"no {tool} (tools/install-deps arm64)")
        path, digest = build(cache.SOURCE, "--all")
        with tarfile.open(path) as tar:
            [top] = json.load(tar.extractfile("index.json"))["manifests"]
        self.assertEqual(top["digest"], digest)
        self.assertTrue(top["mediaType"].endswith(".image.index.v1+json"))
        both = {a: Archive(path, a) for a in ("amd64", "arm64")}
        self.assertEqual([(d["platform"]["architecture"], d["platform"]["os"])
                          for d in both["arm64"].index["manifests"]],
                         [("amd64", "linux"), ("arm64", "linux")])
        self.assertEqual(both["amd64"].descriptor["digest"], self.digest)
        image = both["arm64"]
        self.assertEqual(image.config["architecture"], "arm64")
        files = image.files()
        self.assertLessEqual({f"bin/{p}" for p in PROGRAMS} | {f"{DOC}/sbom.spdx.json"},
                             set(files))
        unpacked = sum(m.size for m in files.values())
        print(f"image for arm64: {image.size} bytes, {unpacked} unpacked", file=sys.stderr)
        self.assertLess(unpacked, BYTES_MAX)
        with tempfile.TemporaryDirectory() as d:
            for p in PROGRAMS:
                with open(f"{d}/{p}", "wb") as f:
                    f.write(image.read(f"bin/{p}"))
                os.chmod(f"{d}/{p}", 0o755)
                said = run("readelf", "-Whl", f"{d}/{p}")
                self.assertIn("AArch64", said)
                self.assertNotIn("INTERP", said)
            self.assertIn(self.version(), run("qemu-aarch64-static", f"{d}/natractl",
                                              "--version"))


if __name__ == "__main__":
    if os.geteuid() or not shutil.which("buildah"):
        print("skipped: needs root and buildah (tools/install-deps static image)")
        sys.exit(77)
    cache.need(cache.SPDX)
    unittest.main()
