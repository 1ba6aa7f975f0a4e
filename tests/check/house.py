# SPDX-License-Identifier: BSD-2-Clause
"""Functions that the house-rule scripts share."""

import importlib.machinery
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def tracked():
    """Paths of all source files, relative to ROOT; what git ignores is not."""
    r = subprocess.run(["git", "-c", "safe.directory=*", "ls-files", "-co",
                        "--exclude-standard"], cwd=ROOT, text=True,
                       stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    if r.returncode == 0:
        found = r.stdout.splitlines()
    else:  # a tarball
        found = [os.path.relpath(os.path.join(d, f), ROOT)
                 for d, _, fs in os.walk(ROOT) for f in fs
                 if not re.search(r"/(\.git|build[^/]*|__pycache__)(/|$)", d)]
    return sorted(p for p in set(found) if (ROOT / p).is_file())


def c_files():
    return [p for p in tracked() if p.endswith((".c", ".h", ".cc"))]


def read(path):
    return (ROOT / path).read_text(errors="replace")


def without_comments(text, strings=False):
    """Blank comments (and strings), so that line numbers stay."""
    pattern = r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\''

    def blank(m):
        if m[0][0] in "\"'" and not strings:
            return m[0]
        return re.sub(r"[^\n]", " ", m[0])

    return re.sub(pattern, blank, text, flags=re.S)


def c_functions(lines):
    """(name, first line, length): a body's braces stand in column 0."""
    begin, name = 0, ""
    for number, line in enumerate(lines, 1):
        m = re.match(r"(?=[A-Za-z_])[^;=]*?\b(\w+)\(", line)
        if m and not begin:
            name = m[1]
        if line == "{":
            begin = number
        elif line.startswith("}") and begin:
            yield name, begin, number - begin + 1
            begin = 0


def blocks(text):
    """Yield the fenced blocks of a document: line number, language, code."""
    for m in re.finditer(r"^```(\w*)\n(.*?)^```$", text, re.M | re.S):
        yield text.count("\n", 0, m.start()) + 1, m[1], m[2]


def load_script(name):
    """Return a script of this directory as a module; its name has no .py."""
    loader = importlib.machinery.SourceFileLoader(
            name, str(ROOT / "tests/check" / name))
    module = importlib.util.module_from_spec(
            importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


def finish(checked, problems):
    """Print the problems and exit; a rule that looked at nothing has failed."""
    for problem in problems:
        print(problem)
    print(f"{checked} checked, {len(problems)} problems")
    sys.exit(1 if problems or not checked else 0)
