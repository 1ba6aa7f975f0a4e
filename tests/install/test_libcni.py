#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""natra reads each list of libcni.json as libcni does, or refuses it with the reason.

The file has, for each of the versions 1.1 and 1.3, what the real libcni reads (null: it
refuses the list), and why natra refuses ("": it does not). libcni.py compares this with
the real ones, and writes it with --record."""
import json
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from node import NEW, OLD, Case, Node

FILE = Path(__file__).with_suffix("").with_name("libcni.json")
RUNTIMES = {"1.1": OLD, "1.3": NEW}


def corpus():
    return json.loads(FILE.read_text())


def make_node(case):
    """Return a node with the files of a case, each character of which is a byte."""
    node = Node()
    for path, text in case["files"].items():
        (node.net / path).parent.mkdir(exist_ok=True)
        (node.net / path).write_bytes(text.encode("latin-1"))
    return node


def install(node, version):
    """Install natra; return why it refuses, or ""."""
    answer = node.install(runtime=RUNTIMES[version])
    if answer.code == 0:
        return ""
    assert answer.code == 1 and answer.err.count("\n") == 1, answer
    return answer.err.removeprefix("natractl: ").strip()


def with_natra(types):
    """The chain that an installation makes of one."""
    if "natra" in types:
        return types
    if "bandwidth" in types:
        return ["natra" if t == "bandwidth" else t for t in types]
    return [*types, "natra"]


def type_of(plugin):
    return next(v for k, v in plugin.items() if k.lower() == "type")


def judge(case, version):
    """Return why natra refuses, and the network and the chain if it does not."""
    with make_node(case) as node:
        before = node.state(times=True)
        why = install(node, version)
        if why:
            assert node.state(times=True) == before, why
            return why, None, None
        network, chain = node.chain(dropins=version == "1.3")
        # A drop-in may sort behind natra's.
        return why, network, sorted(map(type_of, chain))


class Corpus(Case):
    def test_each(self):
        cases = corpus()
        self.assertGreaterEqual(len(cases), 60)
        # natra waits a second for a list that is cut off.
        with ThreadPoolExecutor(8) as pool:
            jobs = {(name, version): pool.submit(judge, case, version)
                    for name, case in cases.items() for version in RUNTIMES}
        for (name, version), job in jobs.items():
            with self.subTest(case=name, libcni=version):
                why, network, types = job.result()
                self.assertEqual(why, cases[name]["natra"][version])
                if not why:
                    read = cases[name][version]
                    self.assertIsNotNone(read)
                    self.assertEqual((network, types), (
                        read["name"], sorted(with_natra(read["types"]))))


if __name__ == "__main__":
    unittest.main()
