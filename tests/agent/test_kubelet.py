#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""natra-agent follows the pods that the kubelet says there are: by a made-up kubelet, which
is restarted, hangs, and sends what is no event."""

import parallel
from kubelet import ADDED, DATA, GOAWAY, HEADERS, MODIFIED, Kubelet, event, field, frame
from podnode import wait_until
from test_live import IN, PLUGINS, Case

SOCKET = "/var/lib/kubelet/pods-api/pods-api.sock"


class ByKubelet(Case):
    def setUp(self):
        super().setUp()
        self.kubelet = Kubelet(f"{self.node.root}{SOCKET}")
        self.addCleanup(lambda: self.kubelet.close())

    def begin(self, wait=True):
        self.node.attached("net/a/eth0", 1000000, 0)
        self.node.pod("a", None, PLUGINS, {IN: "1M"})
        self.kubelet.put("a", {IN: "1M", "other": "x" * 100000})
        self.start("--kubelet-socket", SOCKET, wait=wait)

    def edit(self, rate):
        self.kubelet.put("a", {IN: f"{rate}M"})
        self.until("a", (rate * 1000000, 0), 40)

    def test_edits(self):
        self.begin()
        self.agent.wait(f"follows pods by {SOCKET}")
        self.edit(2)
        # Messages in many frames, more than a window's 64 KiB.
        self.kubelet.part = 100
        self.kubelet.put("b", {"junk": "<" * 200000, IN: "7M"})
        self.node.attached("net/b/eth0", 1000000, 0)
        self.node.pod("b", None, PLUGINS)
        self.kubelet.put("b", {"junk": ">" * 200000, IN: "8M"})
        self.until("b", (8000000, 0))
        self.kubelet.delete("b")
        self.edit(3)
        # The API server is asked for nothing but Events.
        self.assertEqual(self.api.watches, [])
        self.kubelet.put("a", {IN: "fast"})
        wait_until(lambda: self.api.events, self.agent.log)
        self.assertIn("[+] api", self.agent.wait_ready())

    def test_ended(self):
        """Those of a node's pods that have ended do not count, however many they are."""
        for n in range(3000):
            self.kubelet.put(f"ended-{n}", {IN: "1M"}, "Failed" if n % 2 else "Succeeded")
        self.begin()
        self.edit(2)
        self.assertNotIn("more pods than a node has", self.agent.log())

    def test_restart(self):
        self.begin()
        self.kubelet.close()
        self.agent.wait("the kubelet: ")
        self.assertIn("[-] api: the kubelet: ", self.agent.wait_ready())
        pods = self.kubelet.pods
        self.kubelet = Kubelet(self.kubelet.path)
        self.kubelet.pods = pods
        self.kubelet.put("a", {IN: "2M"})
        self.until("a", (2000000, 0))
        self.kubelet.cut()
        self.edit(3)

    def test_none(self):
        """Without the API, or with another one, the node is ready."""
        for answer, says in (
                (b"HTTP/1.1 400 Bad Request\r\n\r\n", "does not speak HTTP/2"),
                (frame(HEADERS, 5, b"\x88"), "has no pods API"),
                (frame(GOAWAY, 0, bytes(8), 0), "ends the watch"),
                (frame(DATA, 0, b"\1\0\0\0\0"), "compressed or over 16 MiB"),
                (frame(DATA, 0, b"\0\xff\xff\xff\xff"), "compressed or over 16 MiB"),
                (frame(DATA, 8, b"\0"), "pads its answer")):
            with self.subTest(says):
                asked = self.kubelet.requests
                self.kubelet.behave = lambda c, data=answer: c.sendall(data) or True
                self.begin(wait=False)
                self.agent.wait(says)
                self.agent.wait_ready()
                self.assertLess(self.kubelet.requests - asked, 10)
                self.kubelet.behave = None
                self.edit(4)
                self.agent.stop()

    def test_hangs(self):
        self.kubelet.behave = lambda c: True
        self.begin(wait=False)
        self.agent.wait("the kubelet: no answer", timeout=30)
        self.kubelet.behave = None
        self.edit(2)

    def test_garbage(self):
        """It keeps nobody from the next event, and names its pod as far as it goes."""
        self.begin()
        whole = event(MODIFIED, "c", {IN: "5M"})
        garbage = [b"\xff" * 20, field(1, ADDED), field(1, ADDED) + field(2, b"\x0a\xff"),
                   field(1, ADDED) + field(2, field(1, field(1, "x"))), b"\x0b", whole[:-3],
                   field(1, MODIFIED) + field(2, field(1, field(1, "p") + field(3, "shop") +
                                                       field(5, "u") + b"\x62\x05"))]
        for n, message in enumerate(garbage):
            with self.kubelet.lock:
                for c in self.kubelet.connections:
                    self.kubelet.send(c, message)
            self.edit(n + 2)
        self.assertEqual(self.kubelet.requests, 1)
        self.assertIn("[+] api: 7 events could not be read\n", self.agent.wait_ready())
        self.agent.wait("read\" namespace=shop pod=p error=")
        wait_until(lambda: self.api.events, self.agent.log)


if __name__ == "__main__":
    parallel.main(live=True)
