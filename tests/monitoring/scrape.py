#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What a scrape costs: 110 and 500 attachments, the series, the time and the CPU, beside
node_exporter's, what natractl top of 200 takes, and what is left after the pods are
gone."""
import contextlib
import fcntl
import os
import pty
import socket
import statistics
import struct
import subprocess
import termios
import threading
import time

from node import get, need, series
from isolation import BPFFS
from agent import Agent
from commands import sh
from limiters import Natra, find_natractl
from script import option, run_script

EXPORTER = "prometheus-node-exporter"
EXPORTER_PORT = 19100
SCRAPES = 20
NAMESPACES = 10
TOP_SECONDS = 10


def prepare(args):
    need(EXPORTER)


def cpu_ms(pid):
    """CPU time of a process and of its children that have ended."""
    with open(f"/proc/{pid}/stat") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return sum(map(int, fields[11:15])) * 1000 / os.sysconf("SC_CLK_TCK")


def scrape(port, pid):
    """Return the least and the median of the milliseconds that scrapes take (others on the
    machine disturb the least one least), and their mean CPU time."""
    taken, begin = [], cpu_ms(pid)
    for _ in range(SCRAPES):
        # The agent gives an answer again for a second.
        time.sleep(1.1)
        start = time.monotonic()
        status, text = get(port, "/metrics")
        taken.append((time.monotonic() - start) * 1000)
        assert status == 200, status
    took = f"{min(taken):.1f} ms (median {statistics.median(taken):.1f})"
    return took, (cpu_ms(pid) - begin) / SCRAPES, text


class Attachments:
    """Attachments to interfaces of a few namespaces; no traffic passes them."""

    def __init__(self):
        self.natra, self.len = Natra(), 0
        for i in range(NAMESPACES):
            sh("ip", "netns", "add", f"m{i}")

    def grow(self, wanted):
        for i in range(self.len, wanted):
            ns = f"m{i % NAMESPACES}"
            sh("ip", "-n", ns, "link", "add", f"d{i}", "type", "veth", "peer", "name",
               f"e{i}")
            self.natra.ok("attach", f"d{i}", "--netns", ns, "--id", f"m/{i}", "--label",
                          f"ns-{i % NAMESPACES}/pod-{i}", "--ingress-rate", "10M", "--egress-rate",
                          "10M")
        self.len = wanted

    def remove(self):
        for i in range(self.len):
            self.natra.ok("detach", f"m/{i}")


def measure(r, agent, count):
    get(agent.port, "/metrics")
    # The inspection is not a part of a scrape; wait for its end.
    time.sleep(0.5 + count / 200)
    took, cpu, text = scrape(agent.port, agent.process.pid)
    found = series(text)
    pods = sum("pod=" in s for s in found)
    r.shown(f"series of {count} attachments", f"{len(found)}, {pods / count:.0f} a pod,"
            f" {len(text) // 1024} KiB")
    r.shown(f"a scrape of {count}", f"{took}, {cpu:.1f} ms of CPU, collecting "
            f"{found['natra_scrape_duration_seconds'] * 1000:.1f} ms")
    return cpu / len(found)


def check_slow_reader(r, port):
    """A client that is slow gets the whole of the text that it asked for, although the
    next one is collected meanwhile."""
    with socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        s.settimeout(10)
        s.connect(("127.0.0.1", port))
        s.sendall(b"GET /metrics HTTP/1.1\r\nAccept: application/openmetrics-text\r\n\r\n")
        answer = s.recv(4096)
        time.sleep(1.1)
        other = get(port, "/metrics")[1]
        while part := s.recv(1 << 20):
            answer += part
    head, text = answer.decode().split("\r\n\r\n", 1)
    r.true("a slow reader's text is whole, and its own",
           f"Content-Length: {len(text)}\r\n" in head and text.endswith("# EOF\n")
           and "# EOF" not in other)


class Top:
    """natractl top on a terminal of 80x24."""

    def __init__(self):
        self.shown = b""        # with what moves the cursor
        self.pid, self.terminal = pty.fork()
        if not self.pid:
            os.environ["TERM"] = "xterm"
            os.execv(find_natractl(), ["natractl", "--bpffs", BPFFS, "top", "--interval", "1"])
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("4H", 24, 80, 0, 0))
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        with contextlib.suppress(OSError):
            while part := os.read(self.terminal, 65536):
                self.shown += part

    def runs(self):
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None

    def close(self):
        with contextlib.suppress(OSError):
            os.write(self.terminal, b"q")
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def check_top(r, attachments, count):
    """What natractl top takes with this number of pods."""
    attachments.grow(count)
    top = Top()
    time.sleep(2)
    cpu, start = cpu_ms(top.pid), time.monotonic()
    time.sleep(TOP_SECONDS)
    used = (cpu_ms(top.pid) - cpu) / 10 / (time.monotonic() - start)
    r.most(f"top of {count} at 80x24, refreshed each second, of a CPU", used, 2, " %")
    # One that has ended, or does nothing, takes no CPU either.
    before = len(top.shown)
    attachments.grow(count + 1)
    time.sleep(3)
    r.true("it has shown pods, and shows another one",
           b"/pod-" in top.shown[:before] and len(top.shown) > before)
    r.true("it runs until it is told to end", top.runs())
    r.equal("its exit code", top.close(), 0)


def main(r, args):
    sh("ip", "link", "set", "lo", "up")
    exporter = subprocess.Popen([EXPORTER, f"--web.listen-address=127.0.0.1:{EXPORTER_PORT}"],
                                stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    attachments = Attachments()
    try:
        with Agent("--no-install", "--no-adopt", "--bpffs", BPFFS) as agent:
            agent.wait_ready()
            attachments.grow(110)
            measure(r, agent, 110)
            check_top(r, attachments, 200)
            attachments.grow(args.count)
            each = measure(r, agent, args.count)
            r.shown("memory of the agent then (VmRSS)", f"{agent.rss_kib()} KiB")
            check_slow_reader(r, agent.port)
            for option in ("--verdicts=basic", "--aggregate=namespace"):
                text = attachments.natra.ok("metrics", option)
                r.shown(f"series with {option}", len(series(text)))
            took, cpu, text = scrape(EXPORTER_PORT, exporter.pid)
            r.shown("a scrape of node_exporter", f"{took}, {cpu:.1f} ms of CPU, "
                    f"{len(series(text))} series")
            # A reference of the same run, because another CPU has other milliseconds.
            r.most("CPU time of a series, of node_exporter's", each * len(series(text)) / cpu,
                   0.5)
            attachments.remove()
            left = [s for s in series(get(agent.port, "/metrics")[1]) if "pod=" in s]
            r.equal("series after the pods have gone", len(left), 0)
    finally:
        exporter.terminate()
        exporter.wait(10)


if __name__ == "__main__":
    run_script(main, option("--count", type=int, default=500), prepare=prepare)
