#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests that tests/check/front-door finds what is false in a README."""
import sys
import unittest
from pathlib import Path
from unittest import mock

HERE = Path(__file__).resolve().parent
README = HERE.parent.parent / "README.md"
sys.path.insert(0, str(HERE))
import house


DOOR = house.load_script("front-door")


class FrontDoor(unittest.TestCase):
    def setUp(self):
        self.text = README.read_text()

    def problems(self, text):
        return [*DOOR.about_readme(text), *DOOR.about_links("README.md", text)]

    def finds(self, old, new, words):
        """Replacing a part of the README must make one problem with these words."""
        self.assertIn(old, self.text)
        self.assertNotIn(words, "".join(self.problems(self.text)))
        found = self.problems(self.text.replace(old, new, 1))
        self.assertEqual(sum(words in p for p in found), 1, found)

    def test_command_that_nobody_runs(self):
        self.finds("sudo ./tools/quickstart\n", "sudo ./tools/quickstart --fast\n",
                   "no workflow has `- run: ./tools/quickstart --fast`")
        self.finds("natractl stats pod1\n", "ip link\n",
                   "no workflow has `- run: ip link`")

    def test_step_that_is_commented_out(self):
        text = "    - run: ./a\n    # - run: ./b\n"
        with mock.patch.object(DOOR.house, "read", lambda _: text):
            self.assertEqual(DOOR.in_workflows(), {"./a"})

    def test_block_that_nobody_runs(self):
        self.finds("```json\n", "```python\npass\n```\n\n```json\n",
                   "nothing runs a block of python")
        self.finds("```json\n", "```\ntext\n```\n\n```json\n",
                   "nothing runs a block of no language")

    def test_each_kind_of_block_is_there(self):
        for language in sorted(DOOR.RUN_BY_TEST):
            found = [p for p in self.problems(
                    self.text.replace(f"```{language}\n", "```sh\n"))
                    if f"no block of {language}" in p]
            self.assertEqual(len(found), 1)

    def test_output_without_a_source(self):
        self.finds("<!-- figures: tests/bench/results/quickstart-6.18.txt -->",
                   "So:", "output without a source")

    def test_links(self):
        self.finds("(cni/README.md)", "(cni/READ.md)",
                   "the link cni/READ.md leads nowhere")
        self.finds("(cni/README.md)", "(cni/README.md#no-such)", "no heading")
        self.finds("(cni/README.md)", "(../README.md)",
                   "the link ../README.md leads nowhere")
        self.assertEqual(list(DOOR.about_links(
                "README.md", "[a](cni/README.md#errors), [b](https://a.org)")), [])

    def test_paths(self):
        self.finds("`tools/install-deps build`", "`tools/install-dep build`",
                   "there is no tools/install-dep")

    def test_length(self):
        self.assertEqual(list(DOOR.about_readme(self.text + "\n" * 99))[0],
                         f"{self.text.count(chr(10)) + 99}: 130 lines or more")


if __name__ == "__main__":
    sys.exit(unittest.main())
