#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""tools/deploy/index puts two images into one archive, the same in each run."""
import hashlib
import io
import json
import subprocess
import tarfile
import tempfile
import unittest
from pathlib import Path

INDEX = Path(__file__).resolve().parents[2] / "tools/deploy/index"
NAMES = {"org.opencontainers.image.ref.name": "localhost/natra:1"}
IMAGE = "application/vnd.oci.image.manifest.v1+json"


def put(files, value):
    data = json.dumps(value).encode()
    digest = hashlib.sha256(data).hexdigest()
    files[f"blobs/sha256/{digest}"] = data
    return {"digest": f"sha256:{digest}", "size": len(data)}


def write(path, files, time):
    with tarfile.open(path, "w") as tar:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size, member.mtime = len(data), time
            tar.addfile(member, io.BytesIO(data))


def image(path, arch, time=1, count=1):
    files = {"oci-layout": b"{}"}
    config = put(files, {"architecture": arch, "os": "linux"})
    manifest = put(files, {"config": config, "layers": []})
    entry = {"mediaType": IMAGE, **manifest, "annotations": NAMES}
    files["index.json"] = json.dumps({"manifests": [entry] * count}).encode()
    write(path, files, time)
    return manifest


class Index(unittest.TestCase):
    def setUp(self):
        tmp = tempfile.TemporaryDirectory(prefix="natra-index-")
        self.addCleanup(tmp.cleanup)
        self.tmp = Path(tmp.name)
        self.paths = [self.tmp / "amd64.tar", self.tmp / "arm64.tar"]

    def make(self, name, time=1):
        made = [image(p, p.stem, time) for p in self.paths]
        said = subprocess.run([INDEX, self.tmp / name, *self.paths], check=True, text=True,
                              stdout=subprocess.PIPE).stdout
        return made, said.strip(), (self.tmp / name).read_bytes()

    def test_images_by_architecture(self):
        made, digest, _ = self.make("both.tar")
        with tarfile.open(self.tmp / "both.tar") as tar:
            files = {m.name: tar.extractfile(m).read() for m in tar.getmembers()}
        for name, data in files.items():
            if name.startswith("blobs/"):
                self.assertEqual(name, f"blobs/sha256/{hashlib.sha256(data).hexdigest()}")
        [entry] = json.loads(files["index.json"])["manifests"]
        self.assertEqual((entry["digest"], entry["annotations"]), (digest, NAMES))
        images = json.loads(files["blobs/" + digest.replace(":", "/")])["manifests"]
        self.assertEqual(images, [
            {"mediaType": IMAGE, **one, "platform": {"architecture": arch, "os": "linux"}}
            for one, arch in zip(made, ("amd64", "arm64"))])

    def test_same_again(self):
        self.assertEqual(self.make("one.tar"), self.make("two.tar", time=1000))

    def test_two_images_in_one_archive(self):
        image(self.paths[0], "amd64", count=2)
        p = subprocess.run([INDEX, self.tmp / "out", self.paths[0]], text=True,
                           stderr=subprocess.PIPE)
        self.assertEqual((p.returncode, p.stderr),
                         (1, f"index: {self.paths[0]}: has 2 images, not one\n"))


if __name__ == "__main__":
    unittest.main()
