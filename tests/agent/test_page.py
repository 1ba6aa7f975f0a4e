#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The agent's page for a person and what it reads, by HTTP; browser.py opens it."""
import http.client
import json
import os
import re
import tempfile
import time
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from agent import Agent

FAKE = os.environ["NATRA_AGENT_FAKE"]
PAGE = Path(__file__).resolve().parents[2] / "tools/agent/page.html"
LOCAL = {"Host": "127.0.0.1"}


class Page(unittest.TestCase):
    def setUp(self):
        self.root = tempfile.TemporaryDirectory(prefix="natra-page-")
        self.addCleanup(self.root.cleanup)

    def agent(self, pods, *options, **kw):
        return Agent("--no-install", "--no-adopt", "--root", self.root.name, "--bpffs",
                     self.root.name, *options, program=FAKE, env={
                         "NATRA_FAKE_ROWS": str(pods), "FAKE_STATE": self.root.name}, **kw)

    def ask(self, port, path, headers, host="127.0.0.1"):
        """Return the status, the headers and the body. http.client adds a Host of its own."""
        c = http.client.HTTPConnection(host, port, timeout=10)
        try:
            c.putrequest("GET", path, skip_host=True)
            for name, value in headers.items():
                c.putheader(name, value)
            c.endheaders()
            r = c.getresponse()
            return r.status, r.headers, r.read().decode()
        finally:
            c.close()

    def pods(self, agent, path="/pods"):
        status, headers, body = self.ask(agent.port, path, LOCAL)
        self.assertEqual((status, headers["Content-Type"]), (200, "application/json"))
        return json.loads(body)

    def test_page_loads_nothing(self):
        html = PAGE.read_text()
        self.assertEqual(set(re.findall(r"\w+://[^\"\s]+", html)), {"http://www.w3.org/2000/svg"})
        for word in ("innerHTML", "outerHTML", "insertAdjacent", "document.write", "eval(", "import("):
            self.assertNotIn(word, html)
        with self.agent(1) as agent:
            status, headers, body = self.ask(agent.port, "/", LOCAL)
            self.assertEqual((status, body), (200, html))
            policy = headers["Content-Security-Policy"]
            self.assertRegex(policy, r"default-src 'none'.*script-src 'sha256-\S+'; style-src 'sha256-")
            self.assertNotIn("unsafe", policy)

    def test_pods(self):
        (Path(self.root.name) / "group-shop").touch()
        for number in (0, 1, 200):
            with self.agent(number) as agent:
                answer = self.pods(agent)
                rows = [row for row in answer["rows"] if row["kind"] == "pod"]
                self.assertEqual((len(rows), answer["left_out"], answer["flows"]), (number, 0, {}))
        self.assertEqual(len({row["key"] for row in rows}), 200)
        self.assertEqual({row["ifname"] for row in rows}, {"eth0"})
        self.assertIn("document.title='owned'", rows[11]["pod"])
        self.assertTrue(rows[2]["unshaped"] and rows[2]["why"].startswith("no veth"))
        [one] = [row for row in answer["rows"] if row["kind"] == "class"]
        self.assertEqual((one["part"], one["egress"]["limit_bits_per_sec"]), ("cluster", 10**8))
        self.assertEqual([n for n, row in enumerate(rows) if row["why"]], [2, 12, 100])
        self.assertIn("counters cannot be read", rows[100]["why"])
        # A group has the bytes that were charged to it and those of its free small flows.
        [group] = [row for row in answer["rows"] if row["kind"] == "group"]
        self.assertEqual((group["part"], group["ingress"]["passed_bytes"]), ("shop", 4300))

    def test_flows_are_those_of_pods_that_are_asked_for(self):
        with self.agent(20) as agent:
            keys = [row["key"] for row in self.pods(agent)["rows"] if row["kind"] == "pod"]
            # Those of four pods at most are read; those who ask for others wait. On a busy
            # machine a pod may be forgotten before the fifth is asked for.
            for _ in range(5):
                with ThreadPoolExecutor(5) as five:
                    found = list(five.map(lambda key: set(self.pods(agent, f"/pods/{key}")["flows"]),
                                          keys[:5]))
                for key, flows in zip(keys, found):
                    self.assertTrue({key} <= flows <= set(keys[:5]), flows)
                most = max(map(len, found))
                self.assertLessEqual(most, 4)
                if most == 4:
                    break
            self.assertEqual(most, 4)
            flow = self.pods(agent, f"/pods/{keys[4]}")["flows"][keys[4]]["ingress"][0]
            self.assertEqual((flow["protocol"], flow["saddr"], flow["dport"]),
                             ("tcp", "10.0.0.1", 5000))
            self.assertEqual(self.pods(agent, "/pods/" + "0" * 16)["flows"].get("0" * 16), None)
            for path in ("/pods/", "/pods/1", "/pods/" + "g" * 16, "/pods/" + "0" * 17, "/podsx"):
                self.assertEqual(self.ask(agent.port, path, LOCAL)[0], 404, path)

    def test_once_a_second(self):
        """Keys that nobody has and failures make no more jobs, nor lines of the log."""
        failure = Path(self.root.name) / "error-stats"
        with self.agent(1) as agent:
            begin, answers = time.monotonic(), []
            for number, fails in enumerate((False, False, True, True, False)):
                failure.touch() if fails else failure.unlink(missing_ok=True)
                answers.append(self.ask(agent.port, f"/pods/{number:016x}", LOCAL)[0])
            # Each needs a job of its own.
            self.assertGreater(time.monotonic() - begin, 3.9)
            self.assertEqual(answers, [200, 200, 500, 500, 200])
            self.assertEqual(agent.count("reading the pods for the page"), 1)

    def test_only_this_machine_is_a_host(self):
        with self.agent(1) as agent:
            for path in ("/", "/pods"):
                for host in ("localhost", "LocalHost:8080", "127.0.0.1:1", "[::1]", "[::1]:9810",
                             "127.0.0.2:9810"):
                    status, headers, _ = self.ask(agent.port, path, {"Host": host})
                    self.assertEqual(status, 200, host)
                    self.assertFalse([h for h in headers if h.startswith("Access-Control")])
                for host in ("natra.example", "127.0.0.1.example", "localhost.example:80",
                             "localhost:80x", "127.0.0.1:", "", "10.0.0.1", "x@localhost", "127.1",
                             "127.0.0.256", "127.0.0.1::1"):
                    status, _, body = self.ask(agent.port, path, {"Host": host})
                    self.assertEqual((status, body), (403, "Forbidden\n"), host)
                self.assertEqual(self.ask(agent.port, path, {})[0], 403)
            # The kubelet's probes and Prometheus have other names for it.
            for path in ("/healthz", "/metrics"):
                self.assertEqual(self.ask(agent.port, path, {"Host": "node.example"})[0], 200)

    def test_only_loopback_has_it(self):
        with self.agent(1, "--metrics", "127.0.0.1:0") as agent:
            port = int(re.search(r"port (\d+)", agent.wait("listens on port", 2))[1])
            self.assertEqual(self.ask(port, "/metrics", LOCAL)[0], 200)
            for path in ("/", "/pods"):
                self.assertEqual(self.ask(port, path, LOCAL)[0], 404)
        with self.agent(1, listen="0.0.0.0:0") as agent:
            agent.wait("serves no page, which is for loopback only")
            self.assertEqual(self.ask(agent.port, "/", LOCAL)[0], 404)
            self.assertEqual(self.ask(agent.port, "/healthz", LOCAL)[0], 200)
        with self.agent(1, "--no-page") as agent:
            self.assertEqual(self.ask(agent.port, "/pods", LOCAL)[0], 404)
        with self.agent(1, listen="[::1]:0") as agent:
            self.assertEqual(self.ask(agent.port, "/pods", LOCAL, host="::1")[0], 200)

    def test_nobody_looks(self):
        """After the last answer no process runs for the page, and nothing is kept of it."""
        with self.agent(3000) as agent:
            agent.wait_ready()
            place = f"/proc/{agent.process.pid}"
            children = Path(f"{place}/task/{agent.process.pid}/children")
            files, before = len(os.listdir(f"{place}/fd")), agent.rss_kib()
            answer = self.pods(agent)
            self.assertEqual(answer["left_out"], 1000)
            self.assertEqual(sum(row["kind"] == "pod" for row in answer["rows"]), 2000)
            end = time.monotonic() + 10
            while len(os.listdir(f"{place}/fd")) > files:
                self.assertLess(time.monotonic(), end, os.listdir(f"{place}/fd"))
                time.sleep(0.1)
            for _ in range(5):
                self.assertEqual(children.read_text(), "")
                time.sleep(0.1)
            self.assertLess(agent.rss_kib() - before, 512)


if __name__ == "__main__":
    unittest.main()
