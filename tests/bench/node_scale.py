#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Measures a node that has very many pods: how long an ADD takes while others start and end at a
rate and annotations are edited, what natra-agent takes, and how long a small netlink call of
another process waits for RTNL meanwhile.

Each start makes a network namespace with a veth and calls the plugin, each end calls it and
deletes them. `most` is as many as four callers can. The API server is that of tests/agent.
Each attachment has three programs of its own, and a kernel that frees thousands of them at once may
hang: the pods end one after the other, also if something fails. Do not kill the script.
"""
import base64
import json
import os
import re
import socket
import statistics
import struct
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [f"{HERE}/../cni", f"{HERE}/../agent"]
import machine
import plugin
from agent import Agent
from apiserver import ApiServer
from commands import sh
from plugin import Veth, call, find_natra
from script import option

CALLERS = 4
RESULTS = "/var/lib/cni/results"
MODES = ("tcx-podside", "clsact-podside", "upstream")
RATES = (10, 20, 0)
RTM_NEWLINK, IFLA_TXQLEN = 16, 13
FOLLOWED = "natra_followed_edits_total "
OUT = "kubernetes.io/egress-bandwidth"
KEYS = ("name", "starts/s asked", "starts/s", "ADD p50", "ADD p99", "RTNL p50", "RTNL p99",
        "RTNL worst", "agent CPU", "agent MB", "edits/s", "changes/s")


def changes(agent):
    """How many edits have changed a pod's limits."""
    return int(re.search(f"\n{FOLLOWED}(\\d+)", agent.get("/metrics")[1])[1])


def percentile(values, part):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * part))] if ordered else float("nan")


class Rtnl:
    """Another process, which sets the queue length of lo to what it is, again and again."""

    def __init__(self, seconds):
        self.read, write = os.pipe()
        self.pid = os.fork()
        if self.pid:
            os.close(write)
            return
        s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
        body = struct.pack("=BBHiII", 0, 0, 0, 1, 0, 0) + struct.pack("=HHI", 8, IFLA_TXQLEN, 1000)
        call_ = struct.pack("=IHHII", 16 + len(body), RTM_NEWLINK, 5, 1, 0) + body
        times, end = [], time.monotonic() + seconds
        while time.monotonic() < end:
            begin = time.monotonic()
            s.send(call_)
            s.recv(4096)
            times.append((time.monotonic() - begin) * 1e3)
            time.sleep(0.005)
        with os.fdopen(write, "w") as f:
            json.dump(times, f)
        os._exit(0)

    def times(self):
        with os.fdopen(self.read) as f:
            times = json.load(f)
        os.waitpid(self.pid, 0)
        return times


class Pods:
    """The pods of the node, each of which is in the API server as long as it is there."""

    def __init__(self, mode, upstream, api):
        self.mode, self.api = mode, api
        self.program = upstream if mode == "upstream" else find_natra()
        self.lock, self.count, self.live = threading.Lock(), 0, []
        self.times = []

    def conf(self, veth):
        keys = {} if self.mode == "upstream" else {"attachMode": self.mode, "logFile": ""}
        return {"cniVersion": "1.0.0", "name": "net", "prevResult": veth.prev_result(),
                "type": "bandwidth" if self.mode == "upstream" else "natra", **keys,
                "capabilities": {"bandwidth": True, "io.kubernetes.cri.pod-annotations": True},
                "runtimeConfig": {"bandwidth": {
                    "ingressRate": 10**7, "egressRate": 10**7, "ingressBurst": 10**7,
                    "egressBurst": 10**7}}}

    def env(self, name, veth):
        return {"CNI_CONTAINERID": name, "CNI_NETNS": veth.path,
                "CNI_ARGS": f"K8S_POD_NAMESPACE=shop;K8S_POD_NAME=pod-{name}"}

    def start(self):
        with self.lock:
            self.count += 1
            name = f"p{self.count}"
            self.api.put(name)
        veth = Veth(f"n{self.count}-{name}", f"v{name}")
        conf = self.conf(veth)
        answer = call(self.program, "ADD", conf, **self.env(name, veth))
        if answer.code:
            raise RuntimeError(f"{self.mode}: {answer}")
        self.write_result(name, veth, conf)
        with self.lock:
            self.times.append(answer.seconds * 1e3)
            self.live.append((name, veth))

    def end(self):
        with self.lock:
            name, veth = self.live.pop(0)
            self.api.delete(name)
        os.unlink(f"{RESULTS}/net-{name}-eth0")
        call(self.program, "DEL", self.conf(veth), **self.env(name, veth))
        veth.close()

    def write_result(self, name, veth, conf):
        """Write what libcni keeps, by which the agent finds the pod."""
        conf = {k: v for k, v in conf.items() if k not in ("prevResult", "runtimeConfig")}
        text = json.dumps({
            "kind": "cniCacheV1", "containerId": name, "ifName": "eth0", "networkName": "net",
            "netns": veth.path,
            "config": base64.b64encode(json.dumps(
                {"cniVersion": "1.0.0", "name": "net", "plugins": [conf]}).encode()).decode(),
            "cniArgs": [["K8S_POD_NAMESPACE", "shop"], ["K8S_POD_NAME", f"pod-{name}"],
                        ["K8S_POD_UID", f"uid-{name}"]],
            "capabilityArgs": {"io.kubernetes.cri.pod-annotations": {}},
            "result": veth.prev_result()})
        with open(f"{RESULTS}/net-{name}-eth0", "w") as f:
            f.write(text)


def at_rate(pool, rate, seconds, once):
    """Call `once` at this rate, or as often as the callers can, and return how often."""
    end, done, waiting = time.monotonic() + seconds, 0, []
    due = time.monotonic()
    while time.monotonic() < end:
        waiting = [w for w in waiting if not w.done() or w.result()]
        if len(waiting) < CALLERS and time.monotonic() >= due:
            waiting.append(pool.submit(once))
            done += 1
            due += 1 / rate if rate else 0
        else:
            time.sleep(0.001)
    for w in waiting:
        w.result()
    return done


def edit(pods, stop, per_second, done):
    """Change the rates of pods in turn."""
    n = 0
    while per_second and not stop.wait(1 / per_second):
        with pods.lock:
            name = pods.live[n % len(pods.live)][0]
            pods.api.put(name, {OUT: f"{11 + n % 50}M"})
        n += 1
    done.append(n)


def cpu_seconds(pid):
    """Return the CPU time of a process and of its children that have ended."""
    with open(f"/proc/{pid}/stat") as f:
        ticks = f.read().rpartition(")")[2].split()[11:15]
    return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")


def measure(pods, agent, rate, args):
    def once():
        pods.start()
        pods.end()

    stop, edits, pods.times = threading.Event(), [], []
    editor = threading.Thread(target=edit, args=(pods, stop, args.edits * bool(agent), edits))
    before = agent and cpu_seconds(agent.process.pid)
    followed = changes(agent) if agent else 0
    rtnl = Rtnl(args.seconds)
    begin = time.monotonic()
    editor.start()
    with ThreadPoolExecutor(CALLERS) as pool:
        done = at_rate(pool, rate, args.seconds, once)
    seconds = time.monotonic() - begin
    stop.set()
    editor.join()
    waits = rtnl.times()
    return (pods.mode, rate or "most", done / seconds, statistics.median(pods.times),
            percentile(pods.times, 0.99), statistics.median(waits), percentile(waits, 0.99),
            max(waits), (cpu_seconds(agent.process.pid) - before) / seconds * 100
            if agent else float("nan"),
            agent.rss_kib("VmHWM") / 1024 if agent else float("nan"),
            edits[0] / seconds, (changes(agent) - followed) / seconds if agent
            else float("nan"))


def one_mode(rep, args, mode, rows):
    api = ApiServer()
    pods = Pods(mode, args.upstream, api)
    try:
        with_pods(rep, args, pods, rows)
    finally:
        # So that the kernel does not free all of it at once.
        while pods.live:
            pods.end()
            time.sleep(0.02)
        api.close()


def with_pods(rep, args, pods, rows):
    """Measure each rate of starts beside these many pods."""
    os.makedirs(RESULTS, exist_ok=True)
    token = "/var/lib/token"
    with open(token, "w") as f:
        f.write("secret\n")
    with ThreadPoolExecutor(CALLERS) as pool:
        list(pool.map(lambda _: pods.start(), range(args.pods)))
    agent = None if pods.mode == "upstream" else Agent(
        "--no-install", "--node", "node-1", "--api-server", pods.api.url, "--token-file", token,
        "--ca-file", "")
    if agent:
        agent.wait("msg=ready part=pods")
        agent.wait("msg=ready part=api")
    for rate in args.rates:
        row = measure(pods, agent, rate, args)
        rows.append(row)
        rep.shown(f"{pods.mode}, {row[1]} starts/s", line(row))
    rep.equal(f"{pods.mode}: pods that are limited",
              len(plugin.attachments()) if agent else args.pods, args.pods)
    if agent:
        agent.stop()


def line(row):
    return "| " + " | ".join("–" if v != v else f"{v:.1f}" if isinstance(v, float) else str(v)
                             for v in row) + " |"


def main(rep, args):
    rows, load = [], os.getloadavg()[0]
    sh("ip", "link", "set", "lo", "up")
    for mode in MODES:
        one_mode(rep, args, mode, rows)
        if args.table:
            write_table(args, rows, load)


def write_table(args, rows, load):
    with open(args.table, "w") as f:
        print(f"""{args.printed}
A node with {args.pods} pods while pods start and end at a rate
for {args.seconds} s each, {args.edits} annotations are edited in a second, and another process sets a link's queue
length every 5 ms (RTNL): tests/bench/node_scale.py --pods {args.pods} --seconds {args.seconds}. Times are ms, the agent's
CPU is % of one with its jobs, and its changes are edits that hold (edits of a pod that come before the
job does are one); a start makes the namespace and the veth, too. The machine's load was
{load:.0f} before and {os.getloadavg()[0]:.0f} after it, so only the modes beside each other mean something.

| {" | ".join(KEYS)} |
{"|---" * len(KEYS)}|""", file=f)
        for row in rows:
            print(line(row), file=f)


def prepare(args):
    args.upstream = plugin.newest_bandwidth()
    if args.table:
        args.printed = machine.printed_by("bench/node_scale.py")


if __name__ == "__main__":
    plugin.run_script(
        main,
        option("--pods", type=int, default=1000, help="default: 1000"),
        option("--seconds", type=int, default=300, help="of each rate; default: 300"),
        option("--edits", type=int, default=200, help="in a second; default: 200"),
        option("--rates", type=int, nargs="*", default=RATES,
               help="starts in a second, 0 for the most; default: 10 20 0"),
        option("--table", metavar="FILE", help="write the result there"), prepare=prepare)
