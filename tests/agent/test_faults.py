#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What natra-agent does beside an API server and clients that misbehave, as a table with
a row for each fault. While it lasts, the limits of pods hold, pods that start get theirs,
the agent is ready, answers its probes, keeps to its memory, and asks no more often than
its waits allow. Afterwards edits that were made meanwhile take effect by themselves. Each
row says what was seen and how long that took.

usage: test_faults.py [ROW...]
  NATRA_PAUSE_S  how long the agent is stopped in the row "paused", 10 by default"""
import concurrent.futures
import contextlib
import itertools
import json
import os
import shutil
import signal
import socket
import sys
import time

from apiserver import ApiServer
from certificates import make_certificates
from podnode import FakeNode, wait_until
from agent import PROBE_MAX_S, cpu_s, has_live
from test_live import IN, PLUGINS

AT_ONCE = 4
GIGABYTE = 10**9
MEMORY_KIB = 40000              # the chart's limit is larger
# A wait is at least 50 ms, 100 ms and so on, to 15 s.
ASKED_MAX = 12
RECOVERY_MAX_S = 40             # the longest wait is 30 s


class Rig:
    """A node with pod a, whose limit is 1M, and an agent that follows it."""

    def __init__(self, tls=False):
        self.stack = contextlib.ExitStack()
        self.node = FakeNode()
        self.stack.callback(self.node.close)
        self.root = self.node.root
        certificate = None
        if tls:
            make_certificates(self.root)
            certificate = (self.root / "ca-server.crt", self.root / "ca-server.key")
            shutil.copy(self.root / "ca.crt", self.root / "trusted.crt")
        self.api = ApiServer(certificate)
        self.stack.callback(lambda: self.api.close())
        self.token = self.root / "token"
        self.token.write_text("secret")
        self.started = 0
        self.node.attached("net/a/eth0", 1000000, 0)
        self.pod("a", "1M")
        self.options = (
            "--no-install", "--node", "n", "--api-server", self.api.url, "--token-file",
            str(self.token), "--ca-file", str(self.root / "trusted.crt") if tls else "",
            "--period", "1s", "--silence", "2s")
        self.agent = self.stack.enter_context(self.node.agent(*self.options))
        self.agent.wait("msg=ready part=api")
        self.agent.wait_ready()

    def pod(self, name, rate):
        self.node.pod(name, {"ingressRate": int(rate[:-1]) * 10**6}, PLUGINS, {IN: rate})
        self.api.put(name, {IN: rate})

    def until(self, name, limit, timeout=RECOVERY_MAX_S):
        wait_until(lambda: self.node.limits(name) == (limit, 0), lambda:
                   f"{name}: {self.node.limits(name)}, not {limit}\n{self.agent.log()}",
                   timeout)

    def holds(self, seconds):
        """Watch the fault for so long; return the longest that a probe took."""
        end, longest = time.monotonic() + seconds, 0
        self.started += 1
        # The kubelet starts pods without the API server; the agent limits those that it
        # finds in libcni's cache.
        name = f"s{self.started}"
        self.node.pod(name, {"ingressRate": 7000000}, PLUGINS, {IN: "7M"})
        while time.monotonic() < end:
            begin = time.monotonic()
            assert self.agent.get("/readyz")[0] == 200, self.agent.log()
            longest = max(longest, time.monotonic() - begin)
            assert self.node.limits("a") is not None
            self.agent.check_memory("RssAnon", MEMORY_KIB)
            time.sleep(0.05)
        self.until(name, 7000000)
        self.node.result(f"net-{name}-eth0").unlink()
        return longest

    def behave(self, fn):
        """Answer each watch by fn, and end the present ones."""
        self.api.behave = fn
        self.api.cut()

    def well(self):
        self.api.behave = None

    def close(self):
        self.stack.close()


def chunked(h):
    h.send_response(200)
    h.send_header("Transfer-Encoding", "chunked")
    h.end_headers()
    h.close_connection = True


def chunk(h, data):
    h.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))


def body(h, parts):
    """Answer with these parts of a body as long as the agent reads them."""
    chunked(h)
    with contextlib.suppress(OSError):
        for part in parts:
            chunk(h, part)
        h.wfile.write(b"0\r\n\r\n")
    return True


def event(kind="ADDED", **meta):
    return json.dumps({"type": kind, "object": {"metadata": meta}}).encode() + b"\n"


def plain(h, data):
    """Send bytes in the place of an answer, and then nothing."""
    with contextlib.suppress(OSError):
        h.connection.sendall(data)
        h.connection.settimeout(60)
        h.connection.recv(1)
    h.close_connection = True
    return True


# Each fault is a function that begins it, watches it, and lets the server be well again.

def flaps(rig):
    """It is gone and back ten times, 0.3 s each."""
    pods, port = rig.api.pods, rig.api.port
    for _ in range(10):
        rig.api.close()
        time.sleep(0.3)
        rig.api = ApiServer(port=port)
        rig.api.pods, rig.api.version = pods, 500
        time.sleep(0.3)
    rig.api.close()
    rig.longest = rig.holds(2)
    rig.api = ApiServer(port=port)
    rig.api.pods, rig.api.version = pods, 1000


def hangs_in_body(rig):
    """It stops in the middle of an event and keeps the connection."""
    rig.api.raw('{"type":"MODIFIED","object":{"meta')
    rig.api.watchers.clear()
    rig.longest = rig.holds(4)


def hangs_in_head(rig):
    """It stops in the middle of the head of its answer."""
    rig.behave(lambda h: plain(h, b"HTTP/1.1 200 OK\r\nContent-Ty"))
    rig.longest = rig.holds(4)
    rig.well()


def redirects(rig):
    """It sends the agent to another server, which must not get the token."""
    other = ApiServer()
    rig.stack.callback(other.close)
    rig.behave(lambda h: rig.api.answer(h, 307, headers=[(
        "Location", other.url + h.path)]) or True)
    rig.longest = rig.holds(3)
    rig.well()
    assert not other.watches
    rig.agent.wait("answers 307")


def sends(doc, parts):
    """Return a fault in which each answer has these parts, which `parts` makes, as long as
    it lasts."""
    def fault(rig):
        rig.behave(lambda h: body(h, itertools.takewhile(lambda _: rig.api.behave, parts())))
        rig.longest = rig.holds(6)
        rig.well()
    fault.__doc__ = doc
    return fault


def times(count, part):
    return lambda: (part for _ in range(count))


SENT = {
    "gigabyte_line": sends("1 GB without an end of the line.", times(1000, b"x" * 10**6)),
    "gigabyte_garbage": sends("1 GB of short lines that are no events.",
                              times(1250, b"garbage\n" * 10**5)),
    "gigabyte_list": sends(
        "16 MB of one value after the other, which would be 100 times as large in memory.",
        times(20, b'{"type":"ADDED","object":{"spec":[' + b"1," * 7 * 10**6 + b"1]}}\n")),
    "gigabyte_annotations": sends(
        "16 MB of annotations of one pod.",
        times(20, b'{"type":"ADDED","object":{"metadata":{"name":"x","namespace":"y","uid":"u",'
              b'"resourceVersion":"9","annotations":{"a":"1"' + b',"a":"1"' * 10**6 +
              b'}}}}\n')),
    "other_pods": sends("The pods of a whole cluster, 5000.", lambda: (
        event(name=f"p{n}", namespace="far", uid=f"far-{n}", resourceVersion="9",
              annotations={IN: "1M"}) for n in range(5000))),
    "gone_event": sends("A pod, and then 410.", lambda: [
        event(name="x", namespace="y", uid="u", resourceVersion="9"),
        b'{"type":"ERROR","object":{"code":410,"message":"too old"}}\n']),
}
for name in SENT:
    SENT[name].__name__ = name


def large_head(rig):
    """1 GB of headers."""
    def head(h):
        with contextlib.suppress(OSError):
            h.connection.sendall(b"HTTP/1.1 200 OK\r\n")
            for n in range(GIGABYTE // 1000):
                h.connection.sendall(b"X-%d: %s\r\n" % (n, b"x" * 990))
        h.close_connection = True
        return True

    rig.behave(head)
    rig.longest = rig.holds(4)
    rig.well()


def huge_chunks(rig):
    """Chunks that say that they have 2^63 - 1 bytes and more."""
    sizes = ["7fffffffffffffff", "ffffffffffffffff", "1" + "0" * 40, "-1"]

    def answer(h):
        chunked(h)
        return plain(h, sizes[len(rig.api.watches) % 4].encode() + b"\r\n" +
                     event(name="x", namespace="y", uid="u", resourceVersion="9"))

    rig.behave(answer)
    rig.longest = rig.holds(4)
    rig.well()


def wrong_types(rig):
    """Numbers, lists and null where texts and objects belong, before each good event."""
    good = dict(name="x", namespace="y", uid="u", resourceVersion="9")
    wrong = [b"null\n", b"[1]\n", b"7\n", b'"x"\n', b'{"type":7}\n',
             b'{"type":"ADDED","object":null}\n', b'{"type":"ADDED","object":[]}\n',
             b'{"type":"ADDED","object":{"metadata":null}}\n',
             event(**{**good, "name": 7}), event(**{**good, "uid": None}),
             event(**{**good, "namespace": []}), event(**{**good, "resourceVersion": 9}),
             event(**{**good, "resourceVersion": "9&watch=false"}),
             event(**{**good, "annotations": [1]}), event(**{**good, "annotations": {IN: 7}}),
             event("BOOKMARK"), event("ERROR")[:-2] + b"\n"]
    rig.api.version = 200

    def answer(h):
        with rig.api.lock:
            pods = list(rig.api.pods.values())
        parts = [json.dumps({"type": "ADDED", "object": pod}).encode() + b"\n" for pod in pods]
        chunked(h)
        with contextlib.suppress(OSError):
            for part in [parts[0], *wrong, *parts]:
                chunk(h, part)
        return plain(h, b"")

    rig.behave(answer)
    # They keep nobody from his limits.
    rig.pod("w", "8M")
    rig.api.put("w", {IN: "9M"})
    rig.until("w", 9000000)
    rig.longest = rig.holds(3)
    rig.well()


def gone_status(rig):
    """410 to each request."""
    rig.behave(lambda h: rig.api.answer(h, 410) or True)
    rig.longest = rig.holds(4)
    rig.well()


def swap_token(rig, replace):
    rig.api.token = "new"
    rig.api.cut()
    rig.agent.wait("answers 401")
    replace()
    rig.longest = rig.holds(3)


def token_rotated(rig):
    """The old token is refused; the new one replaces it as the kubelet does."""
    def replace():
        (rig.root / "token.new").write_text("new")
        os.rename(rig.root / "token.new", rig.token)

    swap_token(rig, replace)


def token_symlink(rig):
    """... and the new one is behind a symlink to a directory that is replaced."""
    def replace():
        (rig.root / "..1").mkdir()
        (rig.root / "..1/token").write_text("new")
        rig.token.unlink()
        os.symlink("..1", rig.root / "..data")
        os.symlink("..data/token", rig.token)

    swap_token(rig, replace)


def token_fifo(rig):
    """It is a FIFO that nobody writes to, then a directory, then one of a megabyte."""
    def replace():
        rig.token.unlink()
        os.mkfifo(rig.token)
        rig.api.cut()
        rig.agent.wait("the token cannot be read")
        rig.holds(2)
        rig.token.unlink()
        rig.token.mkdir()
        rig.agent.wait("the token cannot be read: Is a directory")
        rig.token.rmdir()
        rig.token.write_text("x" * 10**6)
        time.sleep(1)
        rig.token.write_text("new")

    swap_token(rig, replace)


def ca_replaced(rig):
    """The server's certificate is of another CA, and its file is replaced later."""
    port, pods = rig.api.port, rig.api.pods
    rig.api.close()
    rig.api = ApiServer((rig.root / "other-server.crt", rig.root / "other-server.key"),
                        port=port)
    rig.api.pods, rig.api.version = pods, 500
    rig.agent.wait("certificate")
    assert not rig.api.headers, "the token went to a server without a certificate"
    rig.longest = rig.holds(2)
    shutil.copy(rig.root / "other.crt", rig.root / "trusted.crt")


def slow_clients(rig):
    """200 clients that read nothing, send a byte now and then, or close one half."""
    address = ("127.0.0.1", rig.agent.port)
    with contextlib.ExitStack() as stack:
        def client(data, half=False):
            s = stack.enter_context(socket.create_connection(address, 10))
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
            with contextlib.suppress(OSError):
                s.sendall(data)
                if half:
                    s.shutdown(socket.SHUT_WR)
            return s

        rig.longest = 0
        for n in range(50):
            slow = client(b"GET /met")
            client(b"GET /metrics HTTP/1.1\r\n\r\n")
            client(b"GET /metrics HTTP/1.1\r\n\r\n", True)
            client(b"", True)
            if n % 10 == 0:
                rig.longest = max(rig.longest, rig.holds(0.5))
                with contextlib.suppress(OSError):
                    slow.sendall(b"r")
        # One that closes its half at once gets the whole answer.
        s = client(b"GET /metrics HTTP/1.1\r\n\r\n", True)
        answer = b""
        s.settimeout(10)
        while data := s.recv(65536):
            answer += data
        assert answer.startswith(b"HTTP/1.1 200") and len(answer) > 500, answer


def no_files(rig):
    """The agent has no descriptor left for a client."""
    import resource
    pid = rig.agent.process.pid
    used = max(int(fd) for fd in os.listdir(f"/proc/{pid}/fd"))
    old = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (used + 1, old[1]))
    with contextlib.ExitStack() as stack:
        for _ in range(10):
            stack.enter_context(socket.create_connection(("127.0.0.1", rig.agent.port), 10))
        time.sleep(0.5)
        begin = cpu_s(pid)[0]
        time.sleep(3)
        used_s = cpu_s(pid)[0] - begin
    resource.prlimit(pid, resource.RLIMIT_NOFILE, old)
    assert used_s < 1, f"{used_s} s of CPU time in 3 s"
    rig.agent.wait_ready()
    rig.longest = rig.holds(1)
    rig.seen = f"{used_s:.2f} s CPU in 3 s"


def paused(rig):
    """The agent is stopped for a while; meanwhile its watch and its version expire."""
    rig.agent.process.send_signal(signal.SIGSTOP)
    rig.api.cut()
    time.sleep(PAUSE_S)
    rig.api.version += 1000
    rig.api.oldest = rig.api.version
    rig.api.put("a", {IN: "3M"})
    assert rig.node.limits("a") == (1000000, 0)
    rig.agent.process.send_signal(signal.SIGCONT)
    rig.longest = rig.holds(0.1)


def two_agents(rig):
    """Another agent, too, follows the node's pods."""
    with rig.node.agent(*rig.options) as other:
        other.wait("msg=ready part=api")
        for rate in range(2, 12):
            rig.api.put("a", {IN: f"{rate}M"})
            rig.pod(f"t{rate}", f"{rate}M")
            time.sleep(0.1)
        for rate in range(2, 12):
            rig.until(f"t{rate}", rate * 1000000)
        rig.longest = rig.holds(2)
        assert other.stop() == 0


PAUSE_S = int(os.environ.get("NATRA_PAUSE_S", "10"))
FAULTS = [flaps, hangs_in_body, hangs_in_head, redirects, *SENT.values(), large_head, huge_chunks,
          wrong_types, gone_status, token_rotated, token_symlink, token_fifo, ca_replaced,
          slow_clients, no_files, paused, two_agents]


def said(agent):
    """The first failure that the log speaks of, but for those of the end of a watch."""
    for line in agent.lines[:-1]:
        if line and "level=info" not in line and "transfer closed" not in line:
            return line.split("msg=", 1)[1].split("; edits of")[0]
    return "nothing"


def run(fault):
    rig = Rig(tls=fault is ca_replaced)
    rig.longest, rig.seen = 0, ""
    try:
        first, before = rig.api, len(rig.api.watches)
        fault(rig)
        # If the server was replaced in between, the last one counts.
        asked = len(rig.api.watches) - (before if rig.api is first else 0)
        # These pods were edited while the fault lasted.
        begin = time.monotonic()
        rig.api.put("a", {IN: "5M"})
        rig.until("a", 5000000)
        took = time.monotonic() - begin
        assert rig.agent.process.poll() is None, "the agent has ended"
        says = rig.seen or said(rig.agent)
        assert rig.longest < PROBE_MAX_S, f"a probe took {rig.longest:.1f} s"
        assert asked <= ASKED_MAX, f"asked {asked} times\n{rig.agent.log()}"
        return [fault.__name__.replace("_", " "), asked, f"{rig.longest * 1000:.0f}",
                rig.agent.rss_kib("VmHWM") // 1000, f"{took:.1f}", says[:100]], None
    except Exception as error:
        return [fault.__name__.replace("_", " "), "", "", "", "FAILED", ""], error
    finally:
        rig.close()


def main():
    if not has_live():
        print("natra-agent was built without libcurl")
        sys.exit(77)
    chosen = [f for f in FAULTS if not sys.argv[1:] or f.__name__ in sys.argv[1:]]
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        rows = list(pool.map(run, chosen))
    line = "{:<20} {:>6} {:>9} {:>5} {:>9}  {}"
    print(line.format("fault", "asked", "probe ms", "MB", "recovery", "what the log says"))
    for row, _ in rows:
        print(line.format(*row))
    for row, error in rows:
        if error:
            print(f"\n{row[0]}: {type(error).__name__}: {str(error)[:3000]}")
    sys.exit(any(error for _, error in rows))


if __name__ == "__main__":
    main()
