# SPDX-License-Identifier: BSD-2-Clause
"""Runs the tests of a script in several processes: they mostly wait, each for an agent
of its own."""
import subprocess
import sys
import unittest

PROCESSES = 4


def names(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from names(test)
        else:
            yield test.id().removeprefix("__main__.")


def main(live=False):
    """Stands in for unittest.main(): with the names of tests, it runs these itself. They may
    need an agent that follows edits."""
    if live:
        from agent import has_live
        if not has_live():
            print("natra-agent was built without libcurl")
            sys.exit(77)
    if len(sys.argv) > 1:
        unittest.main()
    tests = list(names(unittest.defaultTestLoader.loadTestsFromModule(
        sys.modules["__main__"])))
    running = [subprocess.Popen(
        [sys.executable, sys.argv[0], *tests[n::PROCESSES]], text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        for n in range(min(PROCESSES, len(tests)))]
    failed = False
    for process in running:
        print(process.communicate()[0], end="", flush=True)
        failed |= process.returncode != 0
    sys.exit(failed)
