# SPDX-License-Identifier: BSD-2-Clause
"""Writes images as OCI archives: that of the tests' pods, and that of another build of
the agent."""
import gzip
import hashlib
import io
import json
import os
import re
import sys
import tarfile

PAUSE = "natra.test/pause:1"
NEXT = "natra.test/next:1"
OCI = "application/vnd.oci.image."


def layer(files):
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as tar:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(content), 0o755
            tar.addfile(info, io.BytesIO(content))
    return data.getvalue()


def write_archive(path, name, files):
    """Write an archive that `ctr images import` takes. `files` has the contents by
    their names; the first is what the image runs."""
    blobs = {}

    def add(content, media):
        digest = hashlib.sha256(content).hexdigest()
        blobs[f"blobs/sha256/{digest}"] = content
        return {"mediaType": OCI + media, "digest": f"sha256:{digest}",
                "size": len(content)}

    raw = layer(files)
    packed = add(gzip.compress(raw, 1, mtime=0), "layer.v1.tar+gzip")
    config = add(json.dumps({
        "architecture": "amd64" if os.uname().machine == "x86_64" else "arm64",
        "os": "linux", "config": {"Entrypoint": [f"/{next(iter(files))}"]},
        "rootfs": {"type": "layers", "diff_ids": [
            f"sha256:{hashlib.sha256(raw).hexdigest()}"]}}).encode(),
        "config.v1+json")
    manifest = add(json.dumps({
        "schemaVersion": 2, "mediaType": OCI + "manifest.v1+json",
        "config": config, "layers": [packed]}).encode(), "manifest.v1+json")
    manifest["annotations"] = {"io.containerd.image.name": name}
    blobs["oci-layout"] = b'{"imageLayoutVersion": "1.0.0"}'
    blobs["index.json"] = json.dumps(
            {"schemaVersion": 2, "manifests": [manifest]}).encode()
    with tarfile.open(path, "w") as tar:
        for file, content in blobs.items():
            info = tarfile.TarInfo(file)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))


def write_pause(path):
    with open(os.environ["NATRA_KUBE_PAUSE"], "rb") as f:
        write_archive(path, PAUSE, {"pause": f.read()})


def read_archive(path):
    """Return the files of an image, by their names."""
    files = {}
    with tarfile.open(path) as tar:
        def blob(digest):
            return tar.extractfile(f"blobs/{digest.replace(':', '/')}").read()

        index = json.load(tar.extractfile("index.json"))
        manifest = json.loads(blob(index["manifests"][0]["digest"]))
        for one in manifest["layers"]:
            data = io.BytesIO(blob(one["digest"]))
            with tarfile.open(fileobj=data) as content:
                files |= {m.name.lstrip("./"): content.extractfile(m).read()
                          for m in content if m.isfile()}
    return files


def write_next(path, archive):
    """Write an image like `archive`, which tools/deploy/image has built, as if its BPF
    programs were of another source: each takes the other's for those of another
    build."""
    with open(f"{os.path.dirname(archive)}/bpf/natra_object_id.h") as f:
        number = int(re.search("0x([0-9a-f]{16})ULL", f.read())[1], 16)
    before, after = ((number ^ bit).to_bytes(8, sys.byteorder) for bit in (0, 1))
    files, changed = {}, 0
    for name, content in read_archive(archive).items():
        changed += before in content
        files[name] = content.replace(before, after)
    if changed < 3:
        raise RuntimeError(f"{archive}: {changed} programs have {number:#x}")
    agent = next(name for name in files if name.endswith("natra-agent"))
    write_archive(path, NEXT, {agent: files.pop(agent), **files})
