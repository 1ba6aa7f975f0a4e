# SPDX-License-Identifier: BSD-2-Clause
"""Builds executables without a dynamic loader, in the directory that NATRA_STATIC_BUILD
names."""
import os
import subprocess
import sys

from commands import sh
from report import skip

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.realpath(f"{HERE}/../..")
LIBRARIES = ("bpf", "nl-3", "nl-route-3", "cjson", "elf", "z", "zstd")


def missing():
    """Return the archives that the linker does not find."""
    return [name for name in (f"lib{x}.a" for x in LIBRARIES)
            if not os.path.isabs(sh("cc", f"-print-file-name={name}").strip())
            and not os.path.exists(f"/usr/local/lib/{name}")]


def static_natra():
    """Return the path of the stripped plugin. This must be called before the machine's
    directories are hidden; a second call builds nothing."""
    return stripped("cni/natra")


def static_agent():
    """Return the path of the stripped agent, with live edits."""
    if subprocess.run(["pkg-config", "--exists", "libcurl-http"]).returncode:
        skip("libcurl-http (tools/install-deps static)")
    return stripped("tools/agent/natra-agent")


def stripped(target):
    if missing():
        skip(f"{', '.join(missing())} (tools/install-deps static)")
    build = os.environ.get("NATRA_STATIC_BUILD", f"{SOURCE}/build-static")
    if not os.path.exists(f"{build}/build.ninja"):
        run("meson", "setup", build, SOURCE, "-Dstatic=true",
            "-Dtests=disabled", "-Dman=disabled", "--buildtype=release")
    run("ninja", "-C", build, target)
    path = f"{build}/{os.path.basename(target)}"
    run("strip", "-o", path, f"{build}/{target}")
    return path


def run(*args):
    p = subprocess.run(args, text=True, stdin=subprocess.DEVNULL,
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if p.returncode:
        sys.exit(f"{' '.join(args)}: exit {p.returncode}:\n"
                 f"{p.stdout[-3000:]}")
