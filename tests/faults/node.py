# SPDX-License-Identifier: BSD-2-Clause
"""The node of machine.py: natra-agent with an API server and directories of its own, pods
that the plugin limits, and a stream into one of them."""
import json
import os
import subprocess
import sys
import time
from pathlib import Path

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [f"{HERE}/../{d}" for d in ("harness/python", "cni", "agent")]
import plugin
from agent import Agent
from apiserver import ApiServer
from commands import sh
from flood import NODE_IP, POD_IP, Stream
from limiters import find_natractl
from plugin import Veth, call, find_natra, malformed, programs
from podnode import FakeNode, wait_until

# The pod starts with the first rate. Each row begins and ends with that of the edit.
FIRST, RATE = 8_000_000, 10_000_000
OFFERED = 2 * RATE
WINDOW_S = 0.5
# A late receiver finds this much in its socket at once.
SOCKET_BITS = 1_000_000
CAPABILITIES = {"bandwidth": True, "io.kubernetes.cri.pod-annotations": True}
KEYS = {"type": "natra", "fastPass": "off", "allowAnnotations": ["ingress-burst"],
        "capabilities": CAPABILITIES}
DIRS = Path("/var/lib/node")


def annotations(rate):
    """Each time that the limits are made anew, a burst passes at once: a small one here."""
    return {"kubernetes.io/ingress-bandwidth": str(rate), "natra.io/ingress-burst": "80k"}


class Wrong(Exception):
    """What was seen is not what must be seen."""


def must(good, what):
    if not good:
        raise Wrong(what)


class Node(FakeNode):
    """FakeNode's results are in libcni's directory, which isolate() has hidden."""

    def __init__(self):
        self.root = Path("/")
        self.results = Path("/var/lib/cni/results")
        self.net, self.bin, self.state = (DIRS / d for d in ("net.d", "bin", "state"))
        for path in (self.results, self.net, self.bin, self.state):
            path.mkdir(parents=True)
        for path, size in (self.net, "64k"), (self.bin, "8m"), ("/var/log", "64k"):
            sh("mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(path))
        sh("ip", "link", "set", "lo", "up")
        (self.net / "10-net.conflist").write_text(json.dumps(
            {"cniVersion": "1.0.0", "name": "net", "plugins": [{"type": "ptp"}]}))
        self.list = self.net / "00-natra-10-net.conflist"
        (self.state / "token").write_text("secret")
        self.api = ApiServer()
        self.start()
        self.steady, self.spare = Veth("steady", "vsteady"), Veth("spare", "vspare")
        self.steady.run("ip", "addr", "add", f"{POD_IP}/24", "dev", "eth0")
        sh("ip", "addr", "add", f"{NODE_IP}/24", "dev", "vsteady")
        self.pod("steady", {"ingressRate": FIRST}, ["ptp", KEYS], annotations(FIRST))
        answer = self.call("ADD", self.steady)
        must(answer.code == 0, answer)
        self.edit(RATE)
        self.wait()
        # A probe that ends, and the plugin's log once it is there.
        self.fds = self.open_files() + 2
        must("ignored" not in self.agent.log(), self.agent.log())
        self.stream = Stream(self.steady, OFFERED)
        time.sleep(WINDOW_S)

    def netns(self, name):
        return self.state / name        # FakeNode.pod() makes a file of this name

    def start(self, *argv, env=None):
        """Start the agent, by these words before its own."""
        self.agent = Agent(
            "--net-dir", str(self.net), "--bin-dir", str(self.bin), "--plugin",
            find_natra(), "--runtime-version", "containerd://1.7.0", "--repairs",
            "64/1", "--conf", "fastPass=off", "--conf",
            'allowAnnotations=["ingress-burst"]', "--node", "n", "--api-server",
            self.api.url, "--token-file", str(self.state / "token"), "--ca-file", "",
            env=env)
        self.agent.wait_ready()

    def call(self, command, pod, argv=None):
        """Call the plugin for a pod, or what starts it."""
        conf = {"cniVersion": "1.0.0", "name": "net", **KEYS, "runtimeConfig": {
            "bandwidth": {"ingressRate": FIRST},
            "io.kubernetes.cri.pod-annotations": annotations(FIRST)},
            "prevResult": pod.prev_result()}
        return call(argv or find_natra(), command, conf, CNI_CONTAINERID=pod.name,
                    CNI_NETNS=pod.path)

    def edit(self, rate):
        self.api.put("steady", annotations(rate))

    def one_error(self, answer, command, pod):
        """The plugin has done it, or has said in one line why not and left nothing. It may
        be that its loader has failed."""
        if answer.code == 127:
            must(answer.err.count("\n") == 1, answer)
        elif answer.code:
            must(not malformed(answer, command) and not answer.err, answer)
        must(not answer.code or command == "DEL" or programs(pod) == [0, 0],
             f"{answer}: half attached: {programs(pod)}")
        return answer.code

    def pods_start_and_stop(self):
        """Return what ADD answers if it fails; a pod that starts stops, too."""
        added = self.call("ADD", self.spare)
        self.one_error(added, "ADD", self.spare)
        deleted = self.call("DEL", self.spare)
        must(added.code or not deleted.code, f"starts, and does not stop: {deleted}")
        return added.text()

    def must_start(self):
        text = self.pods_start_and_stop()
        must(not text, f"a pod does not start: {text}")

    def natractl(self, *args, **more):
        return subprocess.run([find_natractl(), *args], text=True, timeout=20,
                              stdin=subprocess.DEVNULL, capture_output=True, **more)

    def rates(self):
        try:
            return {a["id"]: a["policy"]["ingress_rate_bits_per_sec"]
                    for a in json.loads(self.natractl("list", "--json").stdout)}
        except ValueError:
            return None

    def cpu_s(self):
        with open(f"/proc/{self.agent.process.pid}/stat") as f:
            words = f.read().rpartition(")")[2].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")

    def open_files(self):
        return len(os.listdir(f"/proc/{self.agent.process.pid}/fd"))

    def says(self, text, since, timeout=10):
        """The agent has logged this once since its log had so many lines."""
        found = []

        def is_there():
            found[:] = [x for x in self.agent.lines[since:] if x and text in x]
            return found

        wait_until(is_there, lambda: f"no '{text}' in:\n{self.agent.log()}", timeout)
        return found[0]

    def wrong(self):
        """Return what is not as before the fault; "" if nothing is."""
        if self.agent.process.poll() is not None:
            return "the agent has ended"
        status, body = self.agent.get("/readyz")
        if status != 200:
            return body
        rates = self.rates()
        if rates != {"net/steady/eth0": RATE}:
            return f"limits: {rates}"
        if (programs(self.steady), programs(self.spare)) != ([1, 0], [0, 0]):
            return f"programs: {programs(self.steady)}, {programs(self.spare)}"
        if not self.list.exists() or not (self.bin / "natra").exists():
            return "it is not installed"
        left = [p for d in (self.net, self.bin) for p in d.glob(".natra*")]
        with open("/proc/locks") as f:
            locks = [x for x in f if "FLOCK" in x]
        if left or locks:
            return f"left: {left} {locks}"
        if self.open_files() > self.fds:
            return f"{self.open_files()} open files, not {self.fds}"
        return ""

    def wait(self, timeout=30):
        """Return the seconds until all is as before the fault."""
        begin, found = time.monotonic(), []
        self.fds = getattr(self, "fds", 1000)

        def is_well():
            found[:] = [self.wrong()]
            return not found[0]

        wait_until(is_well, lambda: f"{found[0]}\n{self.agent.log()[-4000:]}", timeout)
        return time.monotonic() - begin

    def end(self):
        self.stream.end()
        must(self.call("DEL", self.steady).code == 0, "DEL")
        must(self.agent.stop() == 0, "the agent's exit code")
        self.natractl("gc")
        must(not plugin.pins(), f"pins left: {plugin.pins()}")
