#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""natra-agent and the file of groups, with a library that only records its calls."""
import json
import threading
import unittest

from podnode import wait_until
from test_pods import Case


class GroupFile(Case):
    def setUp(self):
        super().setUp()
        self.path = self.node.root / "groups" / "groups.json"
        self.path.parent.mkdir()

    def write(self, *names):
        new = self.path.with_name("new")
        new.write_text(json.dumps({name: {"egressRate": 5} for name in names}))
        new.rename(self.path)

    def agent(self):
        agent = self.node.agent("--no-install", "--groups", str(self.path))
        self.addCleanup(agent.__exit__)
        return agent

    def wait_call(self, agent, call):
        wait_until(lambda: call in self.calls("group_set", "group_remove"),
                   lambda: f"{self.node.calls()}\n{agent.log()}", 5)

    def test_a_job_that_is_killed(self):
        """What it has set is the agent's, and goes when the file has it no more."""
        self.node.touch("kill-group-b")
        self.write("a", "b")
        agent = self.agent()
        agent.wait("the job did not end")
        self.assertNotIn("group_remove name=a", self.node.calls())
        self.write()
        self.wait_call(agent, "group_remove name=a")

    def test_nothing_to_read(self):
        """A node without groups is not ready before the file was read once; what is wrong later is
        counted."""
        agent = self.agent()
        wait_until(lambda: "[-] groups: " in agent.get("/readyz")[1], agent.log)
        self.assertEqual(agent.get("/readyz")[0], 503)
        self.write("a")
        agent.wait_ready()
        self.assertIn("natra_unreadable_groups_file 0\n", agent.get("/metrics")[1])
        self.path.write_text("{")
        wait_until(lambda: "natra_unreadable_groups_file 1\n" in agent.get("/metrics")[1], agent.log)
        self.assertEqual(agent.get("/readyz")[0], 200)

    def test_more_groups_than_fit(self):
        """All pods' edits would wait while each of them is tried."""
        self.write("a")
        agent = self.agent()
        self.wait_call(agent, "group_set name=a")
        self.write(*(f"g{i}" for i in range(257)))
        agent.wait("has 257 groups, more than 256: the groups keep what they have")
        self.assertEqual(self.calls("group_set", "group_remove"), ["group_set name=a"])

    def test_a_directory_that_keeps_changing(self):
        self.write("a")
        agent = self.agent()
        self.wait_call(agent, "group_set name=a")
        ends = threading.Event()

        def change():
            while not ends.wait(0.005):
                self.path.with_name("other").touch()
                self.path.with_name("other").unlink()
        thread = threading.Thread(target=change)
        thread.start()
        try:
            self.write("b")
            self.wait_call(agent, "group_set name=b")
        finally:
            ends.set()
            thread.join()


if __name__ == "__main__":
    unittest.main()
