#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""natra-agent and an API server that goes silent in the middle of a watch: the
connection stays open, and nothing comes."""
import time

import parallel
from test_live import IN, Case

SILENCE_S = 2


class Silence(Case):
    def begin(self, silence_s=SILENCE_S):
        self.pod(annotations={IN: "1M"})
        self.start("--silence", f"{silence_s}s")
        self.until("a", (1000000, 0))

    def silence(self):
        """Nothing is sent to the present watch any more."""
        self.api.watchers.clear()
        self.api.put("a", {IN: "2M"})

    def test_silent(self):
        self.begin()
        self.silence()
        # The server would end the watch after 290 s.
        self.until("a", (2000000, 0))
        self.agent.wait("silent for ")
        # The server answers, so there was no failure to speak of.
        self.assertEqual(self.agent.count("edits of annotations wait"), 0)
        self.assertGreater(len(self.api.watches), 1)

    def test_server_that_is_behind(self):
        """It was restored from a backup, so it has nothing for the version that the agent knows."""
        self.begin()
        self.api.bookmark()
        time.sleep(0.2)
        watches = len(self.api.watches)
        self.api.watchers.clear()
        self.api.version = 5
        self.api.put("a", {IN: "2M"})
        self.until("a", (2000000, 0))
        self.assertGreaterEqual(self.agent.count("silent for"), 2)
        self.assertIn("0", [w["resourceVersion"] for w in self.api.watches[watches:]])

    def test_new_connections_fail_too(self):
        self.begin()

        def close(h):
            h.close_connection = True
            return True
        self.api.behave = close
        self.silence()
        self.agent.wait("edits of annotations wait")
        self.assertIn("[-] api: the API server:", self.agent.wait_ready())
        self.api.behave = None
        self.until("a", (2000000, 0))

    def test_bookmarks_are_no_silence(self):
        longer_s = 5
        self.begin(longer_s)
        end = time.monotonic() + 2 * longer_s + 1
        while time.monotonic() < end:
            self.api.bookmark()
            time.sleep(0.2)
        self.assertEqual(len(self.api.watches), 1)

    def test_server_without_bookmarks(self):
        """It is silent while no pod changes."""
        self.api.behave = self.refuse_bookmarks
        self.begin()
        time.sleep(SILENCE_S + 1)
        self.assertEqual(self.agent.count("silent for"), 0)
        self.assertEqual(len(self.api.watches), 2)
        self.api.put("a", {IN: "2M"})
        self.until("a", (2000000, 0))

    def test_agent_ends_beside_a_silent_watch(self):
        self.begin()
        self.silence()
        self.assertEqual(self.agent.stop(), 0)


if __name__ == "__main__":
    parallel.main(live=True)
