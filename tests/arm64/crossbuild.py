# SPDX-License-Identifier: BSD-2-Clause
"""The build for arm64 that the tests use, and which stays for the next run."""
import os
import subprocess
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("NATRA_ARM64_BUILD", SOURCE / "build-arm64"))
# The agent and `natractl top` are built only if this is asked for, or what they need is
# there.
OPTIONS = ("-Dlive=enabled", "-Dtop=enabled")


def run(*argv, seconds=600, **more):
    p = subprocess.run([str(a) for a in argv], text=True, stdin=subprocess.DEVNULL,
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                       timeout=seconds, **more)
    if p.returncode:
        raise AssertionError(f"{argv}: {p.returncode}: {p.stdout[-6000:]}")
    return p.stdout


def setup(build, *options):
    if not (build / "build.ninja").exists():
        run(SOURCE / "tools/cross/setup", build, "-Dwerror=true", *OPTIONS, *options)
    run("ninja", "-C", build)


def setup_tests():
    """Bring the build up to date and return its directory."""
    setup(BUILD, "-Dtests=enabled")
    return BUILD
