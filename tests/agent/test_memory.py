#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""How much memory natra-agent keeps on a node with 500 pods, with and without the watch of
their annotations. It is the static executable, as in the image: a dynamic one also maps
what libcurl of the distribution needs."""
import os
import shutil
import sys
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, HERE + "/../cni", HERE + "/../harness/python"]
from static_build import static_agent

STATIC = os.environ["NATRA_AGENT"] = static_agent()
from agent import Agent
from apiserver import ApiServer
from podnode import FakeNode
from test_live import IN, make_certificates

PODS = 500
# In kB. Beside these are the jobs, which end after each look.
WITHOUT_WATCH_MAX, WITH_WATCH_MAX = 4000, 10000
# What the server sends of a pod beside its annotations; who has set which field is most
# of it.
MANAGED = [{"manager": "kubelet", "operation": "Update", "fieldsV1": {
    "f:status": {f"k:{n}": {"f:lastProbeTime": {}} for n in range(40)}}}]


class Memory(unittest.TestCase):
    def setUp(self):
        self.node = FakeNode()
        self.addCleanup(self.node.close)
        for n in range(PODS):
            self.node.pod(f"p{n}", {"ingressRate": 1000000}, ["ptp"], {})
        # From Linux 6.18 on, a process that uses one page of a file has all of those
        # that were written at once, up to 2 MB. containerd unpacks an image by pieces
        # of 32 kB.
        self.program = self.node.root / "natra-agent"
        with open(STATIC, "rb") as old, open(self.program, "wb") as new:
            shutil.copyfileobj(old, new, 32768)
        self.program.chmod(0o755)

    def agent(self, *options):
        root = self.node.root
        agent = Agent("--no-install", "--root", str(root), "--bpffs",
                      str(root / "bpf"), *options, program=str(self.program))
        self.addCleanup(agent.__exit__)
        return agent

    def check(self, agent, what, bound_kib):
        print(f"{PODS} pods, {what}: VmRSS {agent.rss_kib()} kB, the most "
              f"{agent.rss_kib('VmHWM')} kB", file=sys.stderr)
        self.assertLess(agent.rss_kib("VmHWM"), bound_kib)

    def test_without_watch(self):
        agent = self.agent()
        agent.wait("part=pods")
        self.check(agent, "no watch", WITHOUT_WATCH_MAX)

    def test_with_watch(self):
        make_certificates(self.node.root)
        root = self.node.root
        api = ApiServer((root / "ca-server.crt", root / "ca-server.key"))
        self.addCleanup(api.close)
        (root / "token").write_text("secret")
        for n in range(PODS):
            api.put(f"p{n}", {IN: f"{n + 1}M"}, managedFields=MANAGED)
        agent = self.agent("--node", "n", "--api-server", api.url, "--token-file",
                           str(root / "token"), "--ca-file", str(root / "ca.crt"))
        agent.wait("msg=ready part=api")
        for n in range(PODS):
            api.put(f"p{n}", {IN: f"{n + 2}M"}, managedFields=MANAGED)
        # The last event of all has come.
        api.tell("ERROR", {"code": 500, "message": "that was all"})
        agent.wait("that was all")
        time.sleep(1)
        self.check(agent, "watch", WITH_WATCH_MAX)


if __name__ == "__main__":
    unittest.main()
