# SPDX-License-Identifier: BSD-2-Clause
"""Finds the programs of others that tests/neighbours/build makes."""
import os
import shutil

from commands import sh
from report import skip

HERE = os.path.dirname(os.path.abspath(__file__))


def built(name, *programs):
    """Return the directory of what has this name, and build it first. Skip if that cannot be
    done here, or one of the programs that it calls is not installed."""
    for program in programs:
        if not shutil.which(program):
            skip(f"{program} is not installed (tools/install-deps neighbours)")
    try:
        return sh(f"{HERE}/build", name, timeout=3500).strip()
    except RuntimeError:
        skip(f"{name} (tests/neighbours/build {name} says why)")
