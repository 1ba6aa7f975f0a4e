# SPDX-License-Identifier: BSD-2-Clause
"""Builds executables without a dynamic loader, in the directory that NATRA_STATIC_BUILD
names."""
import os
import subprocess

from commands import sh
from other_build import build, run
from report import skip

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
    built = build("NATRA_STATIC_BUILD", target, "-Dstatic=true", "--buildtype=release")
    path = built.removesuffix(target) + os.path.basename(target)
    run("strip", "-o", path, built)
    return path
