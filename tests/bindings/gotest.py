# SPDX-License-Identifier: BSD-2-Clause
"""Builds Go programs and tests of this repository, and gives them the library of the
build.

The environment names what was built: NATRA_BUILD is meson's directory. The Go is the one
that tools/install-deps go finds or installs.
"""
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "tests/harness/python"))
from report import skip  # noqa: E402

PACKAGE = ROOT / "tools/bindings/go"
SECONDS = 600


def build_dir():
    return Path(os.environ["NATRA_BUILD"])


def natractl():
    return str(build_dir() / "tools/natractl/natractl")


def find_go():
    """Return the path of a Go; skip the test without one."""
    found = subprocess.run(["bash", "-c", f". {ROOT}/tools/go.sh; find_go"], text=True,
                           stdout=subprocess.PIPE).stdout.strip()
    if not found:
        skip("Go (tools/install-deps go)")
    return found


def install():
    """Install the library below a directory of the build, as `meson install` does, and
    return that. pkg-config finds it by environment(); it would not find all in the build
    directory itself. meson itself would install for the prefix of the build."""
    build, to = build_dir(), build_dir() / "tests/bindings/library"
    shutil.rmtree(to, ignore_errors=True)
    (to / "lib").mkdir(parents=True)
    shutil.copytree(ROOT / "include/natra", to / "include/natra")
    shutil.copy(build / "include/natra/version.h", to / "include/natra")
    for path in (build / "src").glob("libnatra.*"):
        if not path.is_dir():
            shutil.copy(path, to / "lib", follow_symlinks=False)
    text = (build / "meson-private/libnatra.pc").read_text()
    text = re.sub("^prefix=.*", f"prefix={to}", text, flags=re.M)
    text = re.sub("^libdir=.*", "libdir=${prefix}/lib", text, flags=re.M)
    (to / "lib/libnatra.pc").write_text(text)
    return to


def environment(library=None, **more):
    """Return the environment in which Go builds and its programs run: with cgo for the
    library that is installed below a directory, or without cgo."""
    env = dict(os.environ, CGO_ENABLED="1" if library else "0", GOTOOLCHAIN="auto",
               GOFLAGS="-buildvcs=false", NATRACTL=natractl())
    env.setdefault("HOME", "/root")     # Go keeps what it builds below it
    if library:
        lib = f"{library}/lib"
        env |= {"PKG_CONFIG_PATH": lib, "LD_LIBRARY_PATH": lib,
                # Go keeps what it has built although pkg-config says something else
                # now; not so if this has changed.
                "CGO_LDFLAGS": f"-L{lib}"}
    return env | more


def go(directory, *args, library=None, seconds=SECONDS, **more):
    """Run go and return what it wrote; end the script if it fails."""
    p = subprocess.run([find_go(), *map(str, args)], cwd=directory, text=True,
                       env=environment(library, **more), timeout=seconds,
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if p.returncode:
        print(p.stdout)
        sys.exit(f"go {' '.join(map(str, args))}: exit {p.returncode}")
    return p.stdout
