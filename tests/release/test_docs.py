#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""doxygen makes the API's documentation without a warning, and it has each function."""
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
MAP = SOURCE / "src/libnatra.map"


def document(to):
    """Return doxygen's warnings."""
    text = (SOURCE / "tools/package/Doxyfile").read_text()
    p = subprocess.run(["doxygen", "-"], input=f"{text}\nOUTPUT_DIRECTORY = {to}\n",
                       cwd=SOURCE, text=True, capture_output=True, timeout=60)
    assert p.returncode == 0, p.stderr
    return p.stderr


class Docs(unittest.TestCase):
    def setUp(self):
        tmp = tempfile.TemporaryDirectory(prefix="natra-docs-")
        self.addCleanup(tmp.cleanup)
        self.tmp = tmp.name

    def test_each_function(self):
        self.assertEqual(document(self.tmp), "")
        text = "".join(p.read_text() for p in Path(self.tmp, "html").glob("*.html"))
        names = re.findall(r"^\t(natra_\w+);", MAP.read_text(), re.M)
        self.assertGreater(len(names), 40)
        self.assertEqual([n for n in names if f"{n}</a>" not in text], [])


if __name__ == "__main__":
    if not shutil.which("doxygen"):
        print("skip: doxygen (tools/install-deps release)")
        sys.exit(77)
    unittest.main()
