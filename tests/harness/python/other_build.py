# SPDX-License-Identifier: BSD-2-Clause
"""Builds natra with other options, in a directory of its own."""
import os
import subprocess
import sys

SOURCE = os.path.realpath(f"{os.path.dirname(os.path.abspath(__file__))}/../../..")


def build(variable, target, *options):
    """Return the path of what was built, in the directory that this variable of the
    environment names. This must be called before the machine's directories are hidden; a
    second call builds nothing."""
    directory = os.environ.get(variable, f"{SOURCE}/build-{variable.lower()}")
    if not os.path.exists(f"{directory}/build.ninja"):
        run("meson", "setup", directory, SOURCE, "-Dtests=disabled", "-Dman=disabled",
            *options)
    run("ninja", "-C", directory, target)
    return f"{directory}/{target}"


def run(*args):
    p = subprocess.run(args, text=True, stdin=subprocess.DEVNULL,
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if p.returncode:
        sys.exit(f"{' '.join(args)}: exit {p.returncode}:\n"
                 f"{p.stdout[-3000:]}")
