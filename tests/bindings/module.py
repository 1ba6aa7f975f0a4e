#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""A user of the repository gets the Go module by its path and version, from a proxy of files, and
builds the README's program with it: with the shared library, with the archive, and without cgo.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import gotest
import script

PATH = re.search(r"^module (\S+)", (gotest.PACKAGE / "go.mod").read_text())[1]
VERSION = "v" + re.search(r" version: '(.*)'", (gotest.ROOT / "meson.build").read_text())[1]
WAYS = {"cgo": (True, ()), "natra_static": (True, ("-tags", "natra_static")),
        "none": (False, ())}


def write_proxy(top):
    """Write what `go mod download` makes of the repository's tag."""
    escaped = re.sub("[A-Z]", lambda m: "!" + m[0].lower(), PATH)
    at = top / escaped / "@v"
    at.mkdir(parents=True)
    (at / "list").write_text(f"{VERSION}\n")
    (at / f"{VERSION}.info").write_text(json.dumps({"Version": VERSION}))
    shutil.copy(gotest.PACKAGE / "go.mod", at / f"{VERSION}.mod")
    with zipfile.ZipFile(at / f"{VERSION}.zip", "w") as archive:
        for file in sorted(gotest.PACKAGE.iterdir()):
            archive.write(file, f"{PATH}@{VERSION}/{file.name}")


def prepare(arguments):
    """Build all, while the script still sees the network: Go may fetch itself."""
    arguments.tmp = Path(tempfile.mkdtemp(prefix="natra-module-", dir="/var/tmp"))
    library = gotest.install()
    write_proxy(arguments.tmp / "proxy")
    [program] = re.findall(r"^```go\n(.*?)^```$",
                           (gotest.PACKAGE / "README.md").read_text(), re.M | re.S)
    user = arguments.tmp / "user"
    user.mkdir()
    (user / "main.go").write_text(program)
    more = {"GOPROXY": f"file://{arguments.tmp}/proxy,https://proxy.golang.org", "GONOSUMDB": PATH,
            "GOMODCACHE": f"{arguments.tmp}/modules",
            "GOFLAGS": "-buildvcs=false -modcacherw"}
    gotest.go(user, "mod", "init", "example.com/user", **more)
    gotest.go(user, "get", f"{PATH}@{VERSION}", **more)
    for way, (cgo, args) in WAYS.items():
        gotest.go(user, "build", *args, "-o", arguments.tmp / way,
                  library=library if cgo else None, **more)
    arguments.library = library


def main(report, arguments):
    try:
        for way in WAYS:
            needed = subprocess.run(["readelf", "-d", arguments.tmp / way], text=True,
                                    capture_output=True).stdout
            report.equal(f"{way}: needs libnatra.so", "libnatra.so.0" in needed, way == "cgo")
            env = gotest.environment(arguments.library)
            env["PATH"] = f"{os.path.dirname(gotest.natractl())}:{env['PATH']}"
            p = subprocess.run([arguments.tmp / way, "nosuch0"], env=env, text=True, timeout=60,
                               capture_output=True)
            report.check(f"{way}: its error", p.stderr.strip()[-80:], "names nosuch0",
                         p.returncode == 1 and "nosuch0" in p.stderr)
    finally:
        shutil.rmtree(arguments.tmp)
    moved = subprocess.run([gotest.ROOT / "tools/repository"], text=True, capture_output=True)
    report.equal("the repository's path", f"{moved.stdout.strip()}/tools/bindings/go", PATH)


if __name__ == "__main__":
    if not os.environ.get("NATRA_BUILD"):
        sys.exit("needs NATRA_BUILD, meson's directory")
    script.run_script(main, prepare=prepare)
