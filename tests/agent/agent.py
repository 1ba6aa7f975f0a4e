# SPDX-License-Identifier: BSD-2-Clause
"""Runs natra-agent beside a test, reads its log, and asks it for its health."""
import http.client
import os
import re
import shlex
import signal
import subprocess
import threading
import time

AGENT = os.environ["NATRA_AGENT"]
SANITIZED = os.environ.get("NATRA_SANITIZE", "none") != "none"
# The timeout of the chart's probes. A sanitizer takes several times as long.
PROBE_MAX_S = 25 if SANITIZED else 5


def has_live():
    return subprocess.run(["grep", "-q", "curl_multi_init", AGENT]).returncode == 0


def cpu_s(pid):
    """The CPU time of a process, and that of its children that have ended."""
    with open(f"/proc/{pid}/stat") as f:
        ticks = [int(word) for word in f.read().rsplit(")", 1)[1].split()[11:15]]
    return tuple(sum(of) / os.sysconf("SC_CLK_TCK") for of in (ticks[:2], ticks[2:]))


def words(line):
    """{key: value} of a log line."""
    return dict(w.split("=", 1) for w in shlex.split(line))


class Agent:
    """The agent with these options. Its log goes into `lines` as it appears."""

    def __init__(self, *options, env=None, listen="127.0.0.1:0",
                 program=AGENT, prefix=()):
        self.lines = []
        self.changed = threading.Condition()
        self.process = subprocess.Popen(
            [*prefix, program, "--listen", listen, *options], text=True,
            stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
            env=dict(os.environ, **(env or {})))
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        self.port = None
        if listen:
            line = self.wait("listens on port")
            self.port = int(re.search(r"port (\d+)", line)[1])

    def _read(self):
        for line in self.process.stderr:
            with self.changed:
                self.lines.append(line.rstrip("\n"))
                self.changed.notify_all()
        with self.changed:
            self.lines.append(None)
            self.changed.notify_all()

    def log(self):
        return "\n".join(line for line in self.lines if line is not None)

    def count(self, text):
        return sum(text in line for line in self.lines if line is not None)

    def wait(self, text, times=1, timeout=40):
        """Wait until the log has `times` lines with this text, and return the last of
        them."""
        end = time.monotonic() + timeout
        with self.changed:
            while True:
                found = [line for line in self.lines
                         if line is not None and text in line]
                if len(found) >= times:
                    return found[times - 1]
                left = end - time.monotonic()
                if left <= 0 or self.lines[-1:] == [None]:
                    raise AssertionError(
                        f"no line '{text}' ({times}) in:\n{self.log()}")
                self.changed.wait(left)

    def get(self, path, method="GET", headers=None):
        """Return the status and the body of an answer."""
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PROBE_MAX_S)
        try:
            c.request(method, path, headers=headers or {})
            r = c.getresponse()
            return r.status, r.read().decode()
        finally:
            c.close()

    def wait_ready(self, ready=True, timeout=40):
        """Return the body of /readyz once it says so."""
        end = time.monotonic() + timeout
        while True:
            status, body = self.get("/readyz")
            if (status == 200) == ready:
                return body
            if time.monotonic() > end:
                raise AssertionError(f"{status}: {body}\n{self.log()}")
            time.sleep(0.05)

    def rss_kib(self, of="VmRSS"):
        with open(f"/proc/{self.process.pid}/status") as f:
            return int(re.search(rf"{of}:\s+(\d+) kB", f.read())[1])

    def check_memory(self, of, bound_kib):
        used = self.rss_kib(of)
        # A sanitizer needs memory of its own.
        if not SANITIZED:
            assert used < bound_kib, f"{of} {used} kB, over {bound_kib} kB"

    def stop(self, number=signal.SIGTERM, timeout=10):
        """Return the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        code = self.process.wait(timeout)
        self.reader.join(timeout)
        self.process.stderr.close()
        return code

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.reader.join(5)
        self.process.stderr.close()
