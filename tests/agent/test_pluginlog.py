#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""natra-agent repeats the plugin's log, so that the agent's own log shows a pod that
was refused."""
import json
import os
import subprocess
import time
import unittest

import parallel
from agent import words
from podnode import FakeNode

PLUGIN = os.environ["NATRA_CNI"]


class PluginLog(unittest.TestCase):
    def setUp(self):
        self.node = FakeNode()
        self.addCleanup(self.node.close)
        self.file = self.node.root / "var/log/natra-cni.log"
        self.file.parent.mkdir(parents=True)

    def start(self, *options):
        agent = self.node.agent("--no-install", *options)
        self.addCleanup(agent.__exit__)
        agent.wait("part=pods")
        return agent

    def add(self, text, file=None):
        with open(file or self.file, "a") as f:
            f.write(text)

    def refuse(self):
        """Call the plugin for a pod that it refuses."""
        conf = {"cniVersion": "1.0.0", "name": "net", "type": "natra",
                "logFile": str(self.file), "prevResult": {"cniVersion": "1.0.0", "interfaces": []}}
        p = subprocess.run([PLUGIN], input=json.dumps(conf), text=True,
                           capture_output=True, timeout=30, env={
                               "CNI_COMMAND": "ADD", "CNI_CONTAINERID": "c1",
                               "CNI_NETNS": "/proc/self/ns/net", "CNI_IFNAME": "eth0",
                               "CNI_PATH": "/", "CNI_ARGS": "K8S_POD_NAMESPACE=shop;"
                               "K8S_POD_NAME=web"})
        self.assertNotEqual(p.returncode, 0)

    def test_refused_pod(self):
        agent = self.start()
        self.refuse()
        line = words(agent.wait("command=ADD"))
        self.assertEqual((line["level"], line["pod"]), ("error", "shop/web"))
        self.assertIn("should not be the same", line["msg"])

    def test_begins_at_the_end(self):
        self.add("old\n")
        agent = self.start()
        self.add("new\n")
        agent.wait("new")
        self.assertEqual(agent.count("old"), 0)

    def test_comes_later_and_is_rotated(self):
        agent = self.start()
        self.add("one\n")
        agent.wait("one")
        os.rename(self.file, f"{self.file}.1")
        self.add("two, which is longer\n")
        agent.wait("two")
        # This is what logrotate's copytruncate does.
        self.file.write_text("third\n")
        agent.wait("third")
        self.assertEqual(agent.count("two"), 1)

    def test_rest_of_a_rotated_file(self):
        """It is longer than what is repeated at once."""
        agent = self.start()
        self.add("one\n")
        agent.wait("one")
        self.add(("x" * 199 + "\n") * 200 + "tail\n")
        os.rename(self.file, f"{self.file}.1")
        self.add("head\n")
        agent.wait("head")
        self.assertEqual((agent.count("xxx"), agent.count("tail")), (200, 1))
        self.assertLess(agent.log().index("tail"), agent.log().index("head"))

    def test_plugin_keeps_two_files(self):
        self.add("large")
        os.truncate(self.file, 8 << 20)
        agent = self.start()
        self.refuse()
        agent.wait("command=ADD")
        self.assertLess(self.file.stat().st_size, 4096)
        old = self.file.parent / "natra-cni.log.1"
        self.assertEqual(old.stat().st_size, 8 << 20)
        # A directory in the way is no reason to fail.
        os.truncate(self.file, 8 << 20)
        old.unlink()
        (old / "full").mkdir(parents=True)
        self.refuse()
        agent.wait("command=ADD", 2)

    def test_line_in_pieces(self):
        agent = self.start()
        self.add("begin")
        time.sleep(1.5)
        self.assertEqual(agent.count("begin"), 0)
        self.add("-end\n")
        agent.wait("begin-end")

    def test_flood(self):
        agent = self.start()
        line = "x" * 199 + "\n"
        self.add(line * 10000 + "last\n")
        agent.wait("bytes are left out here")
        agent.wait("last")
        self.assertLess(agent.count("xxx"), 400)

    def test_file_without_lines(self):
        agent = self.start()
        self.add("\0" * 40000)
        self.add("\nafter\n")
        agent.wait("after")

    def test_other_file_and_none(self):
        other = self.node.root / "other.log"
        agent = self.start("--conf", "logFile=/other.log")
        none = self.start("--conf", "logFile=")
        self.add("standard\n")
        self.add("elsewhere\n", other)
        agent.wait("elsewhere")
        time.sleep(1.2)
        self.assertEqual((agent.count("standard"), none.count("elsewhere")), (0, 0))

    def test_no_file_of_others(self):
        """Only regular files are read: a FIFO would block, a link lead elsewhere."""
        os.mkfifo(self.file)
        agent = self.start()
        self.file.unlink()
        # It stays below the host's directory.
        self.file.symlink_to("/etc/passwd")
        time.sleep(1.2)
        self.assertEqual(agent.count("root:"), 0)
        self.assertEqual(agent.stop(), 0)


if __name__ == "__main__":
    parallel.main()
