#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""natra-agent as it is in the image: a static executable, with a libcurl of its own. It
shows how much memory the agent keeps on a node with 500 pods, with and without the watch
of their annotations, and that TLS and names work."""
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
from certificates import make_certificates
from podnode import FakeNode
from test_live import IN

PODS = 500
# In kB. Beside these are the jobs, which end after each look.
WITHOUT_WATCH_MAX, WITH_WATCH_MAX = 4000, 10000
# The server sends this of a pod beside its annotations. Most of it says who has set
# which field.
MANAGED = [{"manager": "kubelet", "operation": "Update", "fieldsV1": {
    "f:status": {f"k:{n}": {"f:lastProbeTime": {}} for n in range(40)}}}]


class Case(unittest.TestCase):
    def setUp(self):
        self.node = FakeNode()
        self.addCleanup(self.node.close)
        self.program = STATIC

    def agent(self, *options):
        root = self.node.root
        agent = Agent("--no-install", "--root", str(root), "--bpffs",
                      str(root / "bpf"), *options, program=str(self.program))
        self.addCleanup(agent.__exit__)
        return agent

    def serve(self, ca="ca"):
        root = self.node.root
        try:
            make_certificates(root)
        except ImportError:
            self.skipTest("no Python module cryptography")
        api = ApiServer((root / f"{ca}-server.crt", root / f"{ca}-server.key"))
        self.addCleanup(api.close)
        (root / "token").write_text("secret")
        return api

    def watch(self, url, ca="ca.crt"):
        root = self.node.root
        return self.agent("--node", "n", "--api-server", url, "--token-file",
                          str(root / "token"), "--ca-file", str(root / ca))


class Tls(Case):
    def test_name(self):
        """Names are resolved even without the C library's shared libraries."""
        api = self.serve()
        api.put("a", {IN: "1M"})
        agent = self.watch(f"https://localhost:{api.port}")
        agent.wait("msg=ready part=api")

    def test_wrong_ca(self):
        api = self.serve()
        for ca in ("other.crt", "nothing.crt"):
            agent = self.watch(api.url, ca)
            self.assertRegex(agent.wait("the API server: "), "(?i)certificate")
        self.assertEqual(api.headers, [], "the token was not sent")

    def test_ca_replaced(self):
        """libcurl, which has no directory of certificates here, would keep those of the file
        for a day."""
        api = self.serve()
        root = self.node.root
        agent = self.watch(api.url)
        agent.wait("msg=ready part=api")
        api.close()
        api = ApiServer((root / "other-server.crt", root / "other-server.key"), port=api.port)
        self.addCleanup(api.close)
        agent.wait("ertificate")
        shutil.copy(root / "other.crt", root / "ca.crt")
        agent.wait("msg=ready part=api", 2)

    def test_wrong_name(self):
        api = self.serve("other")
        self.watch(api.url, "other.crt").wait("msg=ready part=api")
        api.headers.clear()
        agent = self.watch(f"https://localhost:{api.port}", "other.crt")
        self.assertIn("localhost", agent.wait("the API server: "))
        self.assertEqual(api.headers, [], "the token was not sent")


class Memory(Case):
    def setUp(self):
        super().setUp()
        for n in range(PODS):
            self.node.pod(f"p{n}", {"ingressRate": 1000000}, ["ptp"], {})
        # From Linux 6.18 on, a process that uses one page of a file has all of those
        # that were written at once, up to 2 MB. containerd unpacks an image by pieces
        # of 32 kB.
        self.program = self.node.root / "natra-agent"
        with open(STATIC, "rb") as old, open(self.program, "wb") as new:
            shutil.copyfileobj(old, new, 32768)
        self.program.chmod(0o755)

    def check(self, agent, what, bound_kib):
        print(f"{PODS} pods, {what}: VmRSS {agent.rss_kib()} kB, the most "
              f"{agent.rss_kib('VmHWM')} kB", file=sys.stderr)
        self.assertLess(agent.rss_kib("VmHWM"), bound_kib)

    def test_without_watch(self):
        agent = self.agent()
        agent.wait("part=pods")
        self.check(agent, "no watch", WITHOUT_WATCH_MAX)

    def test_with_watch(self):
        api = self.serve()
        for n in range(PODS):
            api.put(f"p{n}", {IN: f"{n + 1}M"}, managedFields=MANAGED)
        agent = self.watch(api.url)
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
