# SPDX-License-Identifier: BSD-2-Clause
"""Lets a script of this directory run by hand in a built tree: build/, or NATRA_BUILD names
meson's directory."""
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = os.environ.setdefault("NATRA_BUILD", str(ROOT / "build"))


def use(*parts, **programs):
    """Find the modules of these parts of tests/. Each variable names its program, unless
    whoever runs the script has set it."""
    for variable, built in programs.items():
        os.environ.setdefault(variable, f"{BUILD}/{built}")
    sys.path += [f"{ROOT}/tests/{part}" for part in parts]
