#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Opens the agent's page in Chromium: what it shows of 0, 1 and 200 pods and of the flows of
one, that a name cannot become markup, and that it asks nobody but the agent, and not even that
while nobody sees it.

usage: browser.py [--pictures DIRECTORY]    write what it looks like in light and dark
"""
import base64
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

from agent import Agent

FAKE = os.environ.get("NATRA_AGENT_FAKE")
CHROMIUM = shutil.which("chromium")
MARKUP = "<img src=x onerror=\"document.title='owned'\">&lt;b&gt;"
# The texts of the table's cells, row by row.
CELLS = "[...document.querySelectorAll('#list tr')].map(r => [...r.cells].map(c => c.textContent))"
WAIT_S = 60


class Browser:
    """Chromium and a tab of it, by the DevTools protocol over two pipes."""

    def __init__(self):
        self.dir = tempfile.TemporaryDirectory(prefix="natra-browser-")
        ours, self.write = os.pipe()
        self.read, theirs = os.pipe()
        # Chromium wants these as the descriptors 3 and 4.
        self.process = subprocess.Popen(
            ["sh", "-c", f'exec "$@" 3<&{ours} 4>&{theirs}', "sh", CHROMIUM, "--headless=new",
             "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
             "--hide-scrollbars", "--remote-debugging-pipe", f"--user-data-dir={self.dir.name}"],
            pass_fds=(ours, theirs), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        os.close(ours)
        os.close(theirs)
        self.number, self.rest, self.asked, self.session = 0, b"", [], None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target,
                                 flatten=True)["sessionId"]
        self.call("Network.enable")

    def close(self):
        self.process.terminate()
        self.process.wait(30)
        os.close(self.read)
        os.close(self.write)
        self.dir.cleanup()

    def message(self):
        end = time.monotonic() + WAIT_S
        while b"\0" not in self.rest:
            if not select.select([self.read], [], [],
                                 max(0, end - time.monotonic()))[0]:
                raise TimeoutError("Chromium does not answer")
            more = os.read(self.read, 1 << 20)
            if not more:
                raise EOFError("Chromium has ended")
            self.rest += more
        text, self.rest = self.rest.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, **params):
        self.number += 1
        call = {"id": self.number, "method": method, "params": params}
        if self.session:
            call["sessionId"] = self.session
        os.write(self.write, json.dumps(call).encode() + b"\0")
        while True:
            answer = self.message()
            if answer.get("method") == "Network.requestWillBeSent":
                self.asked.append(answer["params"]["request"]["url"])
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]

    def js(self, expression):
        return self.call("Runtime.evaluate", expression=expression,
                         returnByValue=True)["result"].get("value")

    def wait(self, expression):
        """Wait until an expression is true."""
        end = time.monotonic() + WAIT_S
        while not self.js(expression):
            if time.monotonic() > end:
                raise AssertionError(f"{expression}: {self.js('document.body.innerText')}")
            time.sleep(0.1)

    def open(self, agent):
        self.asked.clear()
        self.call("Page.navigate", url=f"http://127.0.0.1:{agent.port}/")
        self.wait("document.readyState === 'complete' && "
                  "document.getElementById('version').textContent !== ''")


class Case:
    """An agent with that many pods."""

    def __init__(self, pods):
        self.root = tempfile.TemporaryDirectory(prefix="natra-page-")
        self.agent = Agent("--no-install", "--no-adopt", "--root", self.root.name, "--bpffs",
                           self.root.name, program=FAKE, env={
                               "NATRA_FAKE_ROWS": str(pods), "FAKE_STATE": self.root.name})

    def __enter__(self):
        return self.agent

    def __exit__(self, *_):
        self.agent.stop()
        self.root.cleanup()


class Look(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.browser = Browser()

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()

    def is_clean(self):
        b = self.browser
        self.assertEqual(b.js("document.title"), "natra")
        self.assertEqual(b.js("document.querySelectorAll('img, iframe, script').length"), 1)
        self.assertTrue(b.js("document.getElementById('error').hidden"))
        self.assertEqual({url.split("/")[2] for url in b.asked if not url.startswith("data:")},
                         {f"127.0.0.1:{self.port}"})

    def test_no_pod(self):
        with Case(0) as agent:
            self.port = agent.port
            self.browser.open(agent)
            self.assertEqual(self.browser.js("[document.getElementById('none').hidden, "
                                             "document.getElementById('rows').hidden]"),
                             [False, True])
            self.is_clean()

    def test_one_pod(self):
        with Case(1) as agent:
            self.port = agent.port
            self.browser.open(agent)
            self.browser.wait(f"{CELLS}[0][3] !== ''")
            [row] = self.browser.js(CELLS)
            self.assertEqual(row[1:4], ["ingress", "10.0 Mbit/s", "0"])
            self.is_clean()

    def test_many_pods(self):
        b = self.browser
        with Case(200) as agent:
            self.port = agent.port
            b.open(agent)
            b.wait(f"{CELLS}.every(row => row[3] !== '')")
            rows = b.js(CELLS)
            # A third of them has no limit of egress; one has a class.
            self.assertEqual(len(rows), 200 + 133 + 1)
            self.assertEqual({row[0] for row in rows if "<" in row[0]}, {f"shop/{MARKUP}"})
            self.assertEqual(sum(row[2] == "none" for row in rows), 3)
            self.assertTrue(any(row[6] != "0" for row in rows))
            self.assertIn(f": no veth: {MARKUP}", b.js("document.getElementById('wrong').innerText"))
            b.js("document.getElementById('sort').value = 'passed', arrange()")
            rates = b.js("[...rows.values()].map(r => r.last.passed).sort((a, b) => b - a)")
            self.assertEqual(b.js(CELLS)[0][3], b.js(f"rate({rates[0]})"))
            self.flows(b)
            self.is_clean()
            self.hidden(b)

    def flows(self, b):
        b.js("document.querySelector('#list button').click()")
        b.wait("document.querySelectorAll('#flows tr').length === 2")
        b.wait("document.querySelector('#flows tr').cells[4].textContent.endsWith('bit/s')")
        self.assertEqual(b.js("document.querySelector('#flows tr').innerText").split("\t")[:4],
                         ["ingress", "tcp", "10.0.0.1:443", "10.0.0.2:5000"])
        b.js("document.getElementById('close').click()")
        self.assertTrue(b.js("document.getElementById('details').hidden"))

    def hidden(self, b):
        """A page that nobody sees asks nothing."""
        b.js("Object.defineProperty(document, 'hidden', {value: true, configurable: true})")
        time.sleep(2.5)
        b.js("0")
        asked = len(b.asked)
        time.sleep(4.5)
        b.js("0")
        self.assertEqual(len(b.asked), asked)


def pictures(to):
    browser = Browser()
    with Case(8) as agent:
        browser.call("Emulation.setDeviceMetricsOverride", width=1000, height=640,
                     deviceScaleFactor=1, mobile=False)
        browser.open(agent)
        browser.js("document.querySelector('#list button').click()")
        time.sleep(50)
        for scheme in ("light", "dark"):
            browser.call("Emulation.setEmulatedMedia", features=[
                {"name": "prefers-color-scheme", "value": scheme}])
            with open(f"{to}/page-{scheme}.png", "wb") as f:
                f.write(base64.b64decode(browser.call("Page.captureScreenshot")["data"]))
            print(f"{to}/page-{scheme}.png")
    browser.close()


def main():
    if not CHROMIUM:
        print("skipped: no chromium (tools/install-deps browser)")
        return 77
    if sys.argv[1:2] == ["--pictures"]:
        return pictures(sys.argv[2])
    return unittest.main()


if __name__ == "__main__":
    sys.exit(main())
