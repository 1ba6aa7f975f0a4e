#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""natra-agent's command line, its log, its end, and its answers to probes, to clients
that are slow, and to those that do not speak HTTP."""
import contextlib
import os
import resource
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest

from agent import AGENT, Agent, words
from podnode import wait_until

IDLE = ("--no-install", "--no-pods")


def fill(pipe):
    """Write to a pipe until nothing more fits."""
    os.set_blocking(pipe, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(pipe, b"." * 4096)
    os.set_blocking(pipe, True)


def answers(port):
    with contextlib.suppress(OSError), \
            socket.create_connection(("127.0.0.1", port), 1) as s:
        s.settimeout(1)
        s.sendall(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
        return b" 200 " in s.recv(100)
    return False


def run(*options):
    return subprocess.run([AGENT, *options], text=True, capture_output=True,
                          timeout=10, stdin=subprocess.DEVNULL)


class CommandLine(unittest.TestCase):
    def test_help(self):
        p = run("--help")
        self.assertEqual((p.returncode, p.stderr), (0, ""))
        self.assertIn("--listen ADDRESS:PORT", p.stdout)

    def test_version(self):
        p = run("--version")
        self.assertRegex(p.stdout, r"^natra-agent \d+\.\d+\.\d+\n$")

    def test_usage(self):
        for options, says in (
                (("--log-level", "loud"), "'loud': is not error, warn"),
                (("--bpffs", "rel"), "'rel': is not an absolute path"),
                (("more",), "takes no argument: 'more'"),
                (("--unknown",), "unrecognized option"),
                (("--listen",), "requires an argument")):
            p = run(*options)
            self.assertEqual(p.returncode, 2, options)
            self.assertIn(says, p.stderr)

    def test_address(self):
        for address in ("localhost", "1.2.3.4", "[::1]", ":port",
                        "host.name:80", "x" * 300 + ":1", "198.51.100.1:1"):
            p = run(*IDLE, "--listen", address)
            self.assertEqual(p.returncode, 1, address)
            self.assertIn(f"listen on '{address}", p.stderr)

    def test_address_in_use(self):
        with Agent(*IDLE) as agent:
            p = run(*IDLE, "--listen", f"127.0.0.1:{agent.port}")
            self.assertEqual(p.returncode, 1)
            self.assertIn("Address already in use", p.stderr)


class Life(unittest.TestCase):
    def test_end(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            with Agent(*IDLE) as agent:
                self.assertEqual(agent.stop(number), 0)
                line = words(agent.lines[-2])
                self.assertEqual(line["level"], "info")
                self.assertIn(f"signal {int(number)}", line["msg"])

    def test_all_addresses(self):
        for address in (":0", "[::1]:0", "::1:0", "0.0.0.0:0"):
            with Agent(*IDLE, listen=address) as agent:
                self.assertGreater(agent.port, 0)

    def test_no_listener(self):
        with Agent(*IDLE, listen="") as agent:
            agent.wait("starts")
            self.assertEqual(agent.stop(), 0)

    def test_nobody_reads_the_log(self):
        end, write = os.pipe()
        p = subprocess.Popen([AGENT, *IDLE, "--listen", ""], stderr=write)
        os.close(write)
        os.read(end, 1)
        os.close(end)
        p.send_signal(signal.SIGTERM)
        self.assertEqual(p.wait(10), 0)

    def test_nobody_empties_the_log(self):
        """The agent works on, and says how many lines are lost when there is room again."""
        end, write = os.pipe()
        fill(write)
        # A socket that does not listen keeps the port from others; the agent, too, has SO_REUSEADDR.
        kept = self.enterContext(socket.socket())
        kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        kept.bind(("127.0.0.1", 0))
        port = kept.getsockname()[1]
        p = subprocess.Popen([AGENT, *IDLE, "--listen", f"127.0.0.1:{port}"], stderr=write)
        try:
            wait_until(lambda: answers(port), "no answer")
            os.read(end, 1 << 20)
            p.send_signal(signal.SIGTERM)
            self.assertEqual(p.wait(10), 0)
        finally:
            p.kill()
            p.wait()
            os.close(write)
        with open(end, encoding="utf-8") as log:
            self.assertRegex(log.read(), r"lines are lost here, .*lines=[1-9]\d*\n.*ends by signal")


class Metrics(unittest.TestCase):
    """How /metrics is served; tests/monitoring has what is in it."""

    def test_both_formats(self):
        with Agent(*IDLE) as agent:
            status, body = agent.get("/metrics")
            self.assertEqual(status, 200)
            self.assertIn("# TYPE natra_scrape_errors_total counter\n", body)
            self.assertNotIn("# EOF", body)
            wants = {"Accept": "application/openmetrics-text;version=1.0.0,*/*;q=0.1"}
            status, body = agent.get("/metrics", headers=wants)
            self.assertIn("# TYPE natra_scrape_errors counter\n", body)
            self.assertTrue(body.endswith("\n# EOF\n"))

    def test_many_at_once(self):
        with Agent(*IDLE) as agent:
            found = []
            wants = {"Accept": "application/openmetrics-text"}
            threads = [threading.Thread(target=lambda i=i: found.append(
                agent.get("/metrics", headers=wants if i % 2 else {}))) for i in range(12)]
            # All have asked when it goes on, so they wait for one collection.
            agent.process.send_signal(signal.SIGSTOP)
            for t in threads:
                t.start()
            time.sleep(0.5)
            agent.process.send_signal(signal.SIGCONT)
            self.assertEqual(agent.get("/healthz")[0], 200)
            for t in threads:
                t.join()
            self.assertEqual([status for status, _ in found], [200] * 12)
            self.assertEqual(sum(body.endswith("# EOF\n") for _, body in found), 6)

    def test_again_at_once(self):
        """A second answer costs no process; the next one after a second does."""
        with Agent(*IDLE) as agent:
            # A busy machine may take a second between two requests.
            for _ in range(5):
                time.sleep(1.1)
                before = self.faults_of_children(agent)
                agent.get("/metrics")
                once = self.faults_of_children(agent)
                status, body = agent.get("/metrics")
                self.assertEqual(status, 200)
                self.assertIn("natra_scrape_errors_total 0\n", body)
                self.assertGreater(once, before)
                if self.faults_of_children(agent) == once:
                    return
            self.fail("each request is collected for")

    def test_cut_text(self):
        """A text that cannot be written is not answered with in part: it would look like
        one of a node whose pods are gone. The limit on the size of files is also one on
        files in memory."""
        with tempfile.TemporaryDirectory() as tmp:
            program = f"{tmp}/agent"
            with open(program, "w", encoding="utf-8") as f:
                f.write(f"#!/bin/sh\ntrap '' XFSZ\nexec '{AGENT}' \"$@\"\n")
            os.chmod(program, 0o755)
            with Agent(*IDLE, program=program) as agent:
                resource.prlimit(agent.process.pid, resource.RLIMIT_FSIZE,
                                 (50, resource.RLIM_INFINITY))
                self.assertEqual(agent.get("/metrics")[0], 500)
                agent.wait("collecting the metrics: write the metrics")
                resource.prlimit(agent.process.pid, resource.RLIMIT_FSIZE,
                                 (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
                status, body = agent.get("/metrics")
                self.assertEqual(status, 200)
                self.assertIn("natra_scrape_errors_total 1\n", body)

    def faults_of_children(self, agent):
        with open(f"/proc/{agent.process.pid}/stat") as f:
            return int(f.read().rsplit(")", 1)[1].split()[8])

    def test_client_goes(self):
        with Agent(*IDLE) as agent:
            before = len(os.listdir(f"/proc/{agent.process.pid}/fd"))
            for _ in range(20):
                with socket.create_connection(("127.0.0.1", agent.port), 10) as s:
                    s.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
            self.assertEqual(agent.get("/metrics")[0], 200)
            end = time.monotonic() + 20
            # The text's file stays open.
            while len(os.listdir(f"/proc/{agent.process.pid}/fd")) > before + 1:
                self.assertLess(time.monotonic(), end)
                time.sleep(0.05)

    def test_socket(self):
        with tempfile.TemporaryDirectory() as tmp:
            path = f"{tmp}/agent.sock"
            for _ in range(2):
                with Agent(*IDLE, "--metrics", f"unix:{path}") as agent:
                    agent.wait(f"listens on {path}")
                    self.assertEqual(os.stat(path).st_mode & 0o777, 0o600)
                    self.assertIn("200 OK", self.ask(path, "/metrics"))
                    self.assertIn("404 Not Found", self.ask(path, "/healthz"))
                    # Another agent does not take it away.
                    with Agent(*IDLE, "--metrics", f"unix:{path}") as other:
                        other.wait("Address already in use")
                        self.assertEqual(other.stop(), 0)
                    self.assertIn("200 OK", self.ask(path, "/metrics"))
                    # The socket that a killed agent leaves does not stop the next one.
                    agent.process.kill()
                    agent.process.wait()
                    self.assertTrue(os.path.exists(path))
            with Agent(*IDLE, "--metrics", f"unix:{path}") as agent:
                agent.wait(f"listens on {path}")
                self.assertEqual(agent.stop(), 0)
                self.assertFalse(os.path.exists(path))

    def test_socket_over_a_file(self):
        """A file of somebody else is not removed for it."""
        with tempfile.TemporaryDirectory() as tmp:
            path = f"{tmp}/file"
            with open(path, "w", encoding="utf-8") as f:
                f.write("kept")
            os.symlink(path, f"{tmp}/link")
            for name in (path, f"{tmp}/link"):
                self.goes_on(f"unix:{name}")
            self.assertTrue(os.path.islink(f"{tmp}/link"))
            with open(path, encoding="utf-8") as f:
                self.assertEqual(f.read(), "kept")

    def ask(self, path, what):
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(10)
            s.connect(path)
            s.sendall(f"GET {what} HTTP/1.1\r\n\r\n".encode())
            answer = b""
            while part := s.recv(65536):
                answer += part
            return answer.decode()

    def test_usage(self):
        for options, says in ((("--verdicts", "x"), "'x': is not basic or all"),
                              (("--aggregate", "pod"), "'pod': is not namespace")):
            p = run(*options)
            self.assertEqual(p.returncode, 2)
            self.assertIn(says, p.stderr)
        for address in ("unix:relative", "unix:/" + "x" * 200, "unix:/nowhere/x.sock"):
            self.goes_on(address)

    def goes_on(self, address):
        """An agent that cannot serve metrics there does all its other work."""
        with Agent(*IDLE, "--metrics", address) as agent:
            agent.wait(f"listen on '{address[:50]}")
            self.assertEqual(agent.get("/healthz")[0], 200)
            self.assertEqual(agent.stop(), 0)

    def test_port_in_use(self):
        with Agent(*IDLE) as agent:
            self.goes_on(f"127.0.0.1:{agent.port}")


class Probes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.agent = Agent(*IDLE)
        cls.fds = len(os.listdir(f"/proc/{cls.agent.process.pid}/fd"))

    @classmethod
    def tearDownClass(cls):
        code = cls.agent.stop()
        assert code == 0, code

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.agent.port), 10)

    def raw(self, data):
        """Send bytes and return what comes until the end."""
        with self.connect() as s:
            s.sendall(data)
            answer = b""
            while part := s.recv(65536):
                answer += part
            return answer.decode()

    def test_paths(self):
        self.assertEqual(self.agent.get("/healthz"), (200, "ok\n"))
        self.assertEqual(self.agent.get("/healthz?verbose#x"), (200, "ok\n"))
        self.assertEqual(self.agent.get("/nothing"), (404, "Not Found\n"))
        self.assertEqual(self.agent.get("/healthz/"), (404, "Not Found\n"))

    def test_head_of_answer(self):
        answer = self.raw(b"GET /healthz HTTP/1.0\n\n")
        head, body = answer.split("\r\n\r\n")
        self.assertEqual(head.splitlines()[0], "HTTP/1.1 200 OK")
        self.assertIn("Content-Length: 3\r\n", head)
        self.assertIn("Connection: close", head)
        self.assertEqual(body, "ok\n")

    def test_other_methods(self):
        for method in ("POST", "HEAD", "PUT", "DELETE", "get"):
            answer = self.raw(f"{method} /healthz HTTP/1.1\r\n\r\n".encode())
            self.assertIn("HTTP/1.1 405 ", answer)
            self.assertIn("Allow: GET\r\n", answer)

    def test_no_http(self):
        for data in (b"\r\n\r\n", b"GET\r\n\r\n", b"GET /healthz\r\n\r\n",
                     b"GET /healthz HTTP/2.0\r\n\r\n", b"GET  HTTP/1.1\r\n\r\n",
                     b"GET healthz HTTP/1.1\r\n\r\n", b"\0\0\0",
                     b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
                     b"GET /a b c HTTP/1.1\r\n\r\n"):
            self.assertIn("HTTP/1.1 400 ", self.raw(data), data)

    def test_too_large(self):
        self.assertIn("HTTP/1.1 431 ", self.raw(b"GET /" + b"a" * 5000))

    def test_body_behind_request(self):
        # It is not read as a request, and does not take the answer away.
        answer = self.raw(b"GET /healthz HTTP/1.1\r\n\r\n" + b"x" * 60000)
        self.assertEqual(answer.count("HTTP/1.1"), 1)
        self.assertIn("ok\n", answer)

    def test_no_end_behind_request(self):
        """A client that sends without end is not read, and cut off when its time is over."""
        begin = time.monotonic()
        s = socket.create_connection(("127.0.0.1", self.agent.port), timeout=20)
        with s:
            s.sendall(b"GET /healthz HTTP/1.1\r\n\r\n")
            self.assertIn(b" 200 OK", s.recv(4096))
            with self.assertRaises(ConnectionError):
                for _ in range(1024):
                    s.sendall(b"x" * 65536)
            self.assertGreater(time.monotonic() - begin, 3)

    def test_byte_by_byte(self):
        with self.connect() as s:
            for byte in b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n":
                s.sendall(bytes([byte]))
                time.sleep(0.002)
            self.assertIn(b"200 OK", s.recv(4096))

    def test_silent_clients(self):
        """They are closed when they have had their time, and keep nobody out. Nor does one
        that sends a byte now and then."""
        before = self.agent.rss_kib()
        silent = [self.connect() for _ in range(60)]
        silent[-2].sendall(b"GET /healthz HTTP/1.1\r\nX: ")
        begin = time.monotonic()
        self.assertEqual(self.agent.get("/healthz"), (200, "ok\n"))
        # They have 5 s.
        self.assertLess(time.monotonic() - begin, 4)
        silent[-1].settimeout(20)
        silent[-2].settimeout(0.2)
        with contextlib.suppress(ConnectionError):
            while time.monotonic() < begin + 20:
                silent[-2].sendall(b"a")
                with contextlib.suppress(TimeoutError):
                    self.assertEqual(silent[-2].recv(1), b"")
                    break
        self.assertLess(time.monotonic() - begin, 20)
        self.assertEqual(silent[-1].recv(1), b"")
        for s in silent:
            s.close()
        self.no_more_files()
        self.agent.check_memory("VmRSS", before + 300)

    def test_fast_clients(self):
        """Who makes connections fast has its own closed, not those of another address."""
        with self.connect() as scrape:
            scrape.sendall(b"GET /healthz HTTP/1.1\r\n")
            fast = [socket.create_connection(("127.0.0.1", self.agent.port), 10,
                                             source_address=("127.0.0.2", 0))
                    for _ in range(40)]
            scrape.sendall(b"\r\n")
            self.assertIn(b" 200 OK", scrape.recv(100))
        for s in fast:
            s.close()
        self.no_more_files()

    def test_many_requests(self):
        for _ in range(200):
            self.assertEqual(self.agent.get("/healthz")[0], 200)
        self.no_more_files()

    def files(self):
        return len(os.listdir(f"/proc/{self.agent.process.pid}/fd"))

    def no_more_files(self):
        """The agent closes a connection a moment after its client has."""
        end = time.monotonic() + 20
        while self.files() > self.fds and time.monotonic() < end:
            time.sleep(0.05)
        self.assertLessEqual(self.files(), self.fds)

    def test_client_goes(self):
        for data in (b"", b"GET /hea", b"GET /healthz HTTP/1.1\r\n\r\n"):
            s = self.connect()
            s.sendall(data)
            s.close()
        self.assertEqual(self.agent.get("/healthz")[0], 200)

    def test_readyz(self):
        status, body = self.agent.get("/readyz")
        self.assertEqual((status, body), (200, "ready\n"))


if __name__ == "__main__":
    unittest.main()
