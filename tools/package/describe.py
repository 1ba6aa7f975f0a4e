# SPDX-License-Identifier: BSD-2-Clause
"""What packages.toml says of the packages, and their files."""

import gzip
import os
import re
import shutil
import subprocess
import time
import tomllib
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parents[1]
TRIPLES = {"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}


class Fault(Exception):
    """The description does not fit what was built."""


def output(*argv, **more):
    p = subprocess.run([str(a) for a in argv], stdout=subprocess.PIPE, text=True,
                       stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, **more)
    if p.returncode:
        raise Fault(f"{' '.join(map(str, argv))}: {p.stderr.strip()[-2000:]}")
    return p.stdout


def commit_time():
    if "SOURCE_DATE_EPOCH" in os.environ:
        return int(os.environ["SOURCE_DATE_EPOCH"])
    return int(output("git", "-c", "safe.directory=*", "-C", SOURCE, "log", "-1",
                      "--format=%ct"))


def compress(path):
    """Replace a file by its compression, without a name or a time in it."""
    data = gzip.compress(path.read_bytes(), 9, mtime=0)
    path.with_name(path.name + ".gz").write_bytes(data)
    path.unlink()


class Package:
    """One package of packages.toml."""

    def __init__(self, name, table, packages):
        self.name, self.all = name, packages
        self.summary, self.text = table["summary"], table["description"].strip()
        self.section = table.get("section", packages.section)
        self.rpm_name = table.get("rpm_name", name)
        self.table = table
        self.service = table.get("service")
        self.removing = table.get("scripts", {}).get("removing", "").strip()

    def fill(self, root, libdir, unit_dir):
        """Copy the package's files below `root`, for a format's directories."""
        for pattern in self.table["files"]:
            pattern, _, to = pattern.partition(" -> ")
            self._copy(pattern, to, root, libdir)
        for name, to in self.table.get("config", {}).items():
            self._put(HERE / name, root / to)
        if self.service:
            self._put(HERE / self.service, root / unit_dir / self.service)
        for page in root.glob("usr/share/man/*/*"):
            compress(page)
        self._document(root)

    def _copy(self, pattern, to, root, libdir):
        stage = self.all.stage / "tree"
        found = sorted(stage.glob(pattern.replace("{libdir}", self.all.built_libdir)))
        if not found:
            raise Fault(f"{self.name}: the build has no {pattern}")
        for path in found:
            relative = str(path.relative_to(stage)).replace(self.all.built_libdir, libdir)
            target = root / (to + path.name if to else relative)
            self._put(path, target)
            if target.suffix == ".pc":
                target.write_text(target.read_text().replace(
                    self.all.built_libdir.removeprefix("usr/"),
                    libdir.removeprefix("usr/")))

    def _put(self, path, target):
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target, follow_symlinks=False)
        if not target.is_symlink():
            runs = os.access(path, os.X_OK) and ".so" not in path.name
            target.chmod(0o755 if runs else 0o644)

    def _document(self, root):
        """Say what is linked into the programs, with the licences."""
        doc = f"usr/share/doc/{self.name}"
        (root / doc).mkdir(parents=True, exist_ok=True)
        if programs := self.table.get("programs"):
            output(SOURCE / "tools/deploy/sbom", "--version", self.all.version,
                   "--created", time.strftime("%Y-%m-%dT%H:%M:%SZ",
                                              time.gmtime(self.all.time)),
                   "--root", root, "--doc", doc,
                   *(self.all.stage / f"maps/{p}.map" for p in programs))


class Packages:
    """All packages, for one architecture."""

    def __init__(self, arch, stage, revision):
        with open(HERE / "packages.toml", "rb") as f:
            table = tomllib.load(f)
        self.arch, self.stage, self.revision = arch, stage, revision
        self.source, self.maintainer = table["source"], table["maintainer"]
        self.homepage, self.license = table["homepage"], table["license"]
        self.section = table["section"]
        self.time = commit_time()
        self.version = re.search(r"^ *version: '(.*)',$",
                                 (SOURCE / "meson.build").read_text(), re.M)[1]
        self.triple = TRIPLES[arch]
        self.built_libdir = f"usr/lib/{self.triple}"
        self.packages = [Package(name, part, self) for name, part in table.items()
                         if isinstance(part, dict)]
        self._check_needs()

    def _check_needs(self):
        """Compare the libraries that the shared library needs with the description."""
        for package in self.packages:
            if "library" not in package.table:
                continue
            path = self.stage / "tree" / self.built_libdir / package.table["library"]
            dynamic = output("readelf", "-dW", path)
            needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic))
            needed = {n for n in needed if not re.match(r"libc\.so|ld-linux", n)}
            if needed != set(package.table["needs"]):
                raise Fault(f"{package.name}: the library needs {sorted(needed)}, and"
                            f" packages.toml says {sorted(package.table['needs'])}")

    def glibc(self, package):
        """Return the oldest C library that has all that a shared library calls."""
        path = self.stage / "tree" / self.built_libdir / package.table["library"]
        found = re.findall(r"Name: GLIBC_([\d.]+)", output("readelf", "-VW", path))
        return max(found, key=lambda v: [int(n) for n in v.split(".")])

    def stamp(self, root):
        """Give everything below `root` the time of the packages."""
        for path in [root, *root.rglob("*")]:
            os.utime(path, (self.time, self.time), follow_symlinks=False)
