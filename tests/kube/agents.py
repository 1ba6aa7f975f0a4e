#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Measures what many agents cost an API server: its time, memory and bytes when they start, while
nothing happens, while annotations are edited, and when the API server is restarted.

The agents are natra-agent with a library that keeps attachments in files (tests/agent), each with the
pods of a node of its own; the API server and etcd are real, and there is no kubelet.
"""
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [f"{HERE}/../cni", f"{HERE}/../bench"]
import plugin  # noqa: F401  (it finds the harness)
import machine
import script
from api import MERGE, Api
from commands import sh
from node import API_PORT, IP, SERVICE_IP, WORK, Node, binaries, wait, write
from place import isolate_node

PODS = "/api/v1/namespaces/default/pods"
OUT = "kubernetes.io/egress-bandwidth"
COUNT = f"""table ip count {{
 counter sent {{}}
 chain out {{
  type filter hook output priority 0
  ct original ip daddr {SERVICE_IP} tcp sport {API_PORT} counter name sent
 }}
}}
"""


class Server:
    """What the API server has done."""

    def __init__(self, node):
        self.node = node

    def metric(self, name, *words):
        text = self.node.api.ask("GET", "/metrics")
        return sum(float(line.rpartition(" ")[2]) for line in text.splitlines()
                   if line.startswith(name + "{") and all(w in line for w in words))

    def watches(self):
        try:
            return int(self.metric("apiserver_longrunning_requests", 'resource="pods"',
                                   'verb="WATCH"'))
        except (OSError, ValueError):
            return 0

    def bytes(self):
        """Return what it has sent to the agents, which call the service's address."""
        listed = json.loads(sh("nft", "-j", "list", "counters"))
        return next(x["counter"]["bytes"] for x in listed["nftables"]
                    if x.get("counter", {}).get("name") == "sent")

    def cpu(self):
        with open(f"/proc/{self.pid()}/stat") as f:
            return sum(map(int, f.read().rpartition(")")[2].split()[11:13])) / \
                os.sysconf("SC_CLK_TCK")

    def megabytes(self):
        with open(f"/proc/{self.pid()}/status") as f:
            return int(re.search(r"VmRSS:\s+(\d+)", f.read())[1]) / 1024

    def pid(self):
        return self.node.programs["kube-apiserver"].process.pid


def make_pods(node, args):
    def one(i):
        api.create(PODS, {"metadata": {"name": f"p{i}", "annotations": {OUT: "10M"}},
                          "spec": {"nodeName": f"n{i % args.agents}",
                                   "automountServiceAccountToken": False,
                                   "containers": [{"name": "c", "image": "pause"}]}})

    api = Api(IP, API_PORT, node.token)
    for i in range(args.agents * args.pods):
        one(i)


def start_agents(node, args, work):
    """Start them all at once, as a DaemonSet's pods of a cluster that begins."""
    token = write(f"{WORK}/agents-token", node.token)
    agents = []
    for i in range(args.agents):
        root = f"{work}/{i}"
        os.makedirs(f"{root}/var/lib/cni/results")
        os.makedirs(f"{root}/state")
        with open(f"{root}/log", "wb") as log:
            agents.append(subprocess.Popen(
                [os.environ["NATRA_AGENT_FAKE"], "--root", root, "--no-install", "--listen", "",
                 "--node", f"n{i}", "--api-server", f"https://{SERVICE_IP}", "--token-file", token,
                 "--ca-file", f"{WORK}/tls/apiserver.crt"],
                stdin=subprocess.DEVNULL, stderr=log,
                env=dict(os.environ, FAKE_STATE=f"{root}/state")))
    return agents


class Phase:
    """What happens from its begin to its end, as a row."""

    def __init__(self, server, name):
        self.server, self.name, self.begin = server, name, time.monotonic()
        self.before = self.now()

    def now(self):
        return self.server.bytes(), self.server.cpu()

    def row(self):
        seconds = time.monotonic() - self.begin
        sent, cpu = (b - a for a, b in zip(self.before, self.now()))
        return (self.name, f"{seconds:.0f}", f"{sent / 1000:.0f}", f"{cpu:.1f}",
                f"{self.server.megabytes():.0f}")


def restart(node, server, count):
    """Restart the API server, and return after how many seconds each tenth of the agents
    watched again, and the most watches that began in a second."""
    node.stop_api()
    time.sleep(2)
    begin = time.monotonic()
    node.start_api()
    up = time.monotonic()
    seen = [(up, server.watches())]
    while seen[-1][1] < count and time.monotonic() - up < 120:
        time.sleep(0.2)
        seen.append((time.monotonic(), server.watches()))
    most = max(b - next(n for t0, n in reversed(seen) if t0 <= t - 1 or t0 == up)
               for t, b in seen)
    half = next((t for t, n in seen if n >= count / 2), float("nan"))
    return up - begin, half - up, seen[-1][0] - up, most, seen[-1][1]


def edits(node, args):
    def one(i):
        node.api.ask("PATCH", f"{PODS}/p{i % (args.agents * args.pods)}",
                     {"metadata": {"annotations": {OUT: f"{11 + i % 50}M"}}}, MERGE)

    end, n = time.monotonic() + args.seconds, 0
    while time.monotonic() < end:
        one(n)
        n += 1
    return n


def measure(rep, args, node, work):
    server, rows = Server(node), []
    make_pods(node, args)
    own = server.watches()
    phase = Phase(server, "agents start")
    agents = start_agents(node, args, work)
    try:
        wait(lambda: server.watches() >= own + args.agents, lambda: f"{server.watches()} watches",
             180, 0.5)
        rows.append(phase.row())
        rep.equal("watches of the agents", server.watches() - own, args.agents)
        phase = Phase(server, "nothing happens")
        time.sleep(args.seconds)
        rows.append(phase.row())
        phase = Phase(server, "edits")
        edited = edits(node, args)
        rows.append((f"{edited} edits", *phase.row()[1:]))
        sent = server.bytes()
        took, half, all_, most, back = restart(node, server, args.agents)
        rep.least("agents that watch again", back, args.agents)
    finally:
        for a in agents:
            a.terminate()
        for a in agents:
            try:
                a.wait(20)
            except subprocess.TimeoutExpired:
                a.kill()
                a.wait()
    rows.append(("the server starts anew", f"{took + all_:.0f}", f"{(server.bytes() - sent) / 1000:.0f}",
                 f"{server.cpu():.1f}", f"{server.megabytes():.0f}"))
    said = (f"Half of the agents watched again {half:.1f} s after the server was ready, all after "
            f"{all_:.1f} s; at most {most} began in one second.")
    for row in rows:
        rep.shown(row[0], " | ".join(row[1:]))
    rep.shown("restart", said)
    return rows, said


def table(args, rows, said):
    with open(args.table, "w") as f:
        print(f"""{args.printed}
{args.agents} agents with {args.pods} pods each, and a real API server (Kubernetes 1.34) with etcd, on CPUs that
others use, too: tests/kube/agents.py --agents {args.agents} --pods {args.pods} --seconds {args.seconds}. The agents' library keeps
attachments in files, so the kernel's part is not in it. kB are all that the server sent to them, with TLS and
IP; CPU is the server's in s, with what this test asks, MB what it has at the end of the row.

| what | s | kB sent | CPU | MB |
|---|---|---|---|---|""", file=f)
        for row in rows:
            print(f"| {' | '.join(row)} |", file=f)
        print(f"\n{said}", file=f)


def main(rep, args):
    node = Node(args.bin)
    try:
        sh("nft", "-f", "-", input=COUNT)
        with tempfile.TemporaryDirectory(dir=WORK) as work:
            rows, said = measure(rep, args, node, work)
        if args.table:
            table(args, rows, said)
    except Exception:  # noqa: BLE001  (the logs go with the node)
        traceback.print_exc(file=sys.stdout)
        print(node.logs())
        rep.true("the test came to its end", False)
    node.stop()


def prepare(args):
    args.bin = binaries()
    if args.table:
        args.printed = machine.printed_by("kube/agents.py")


if __name__ == "__main__":
    script.run_script(
        main,
        script.option("--agents", type=int, default=200, help="default: 200"),
        script.option("--pods", type=int, default=5, help="of each; default: 5"),
        script.option("--seconds", type=int, default=30, help="of each phase; default: 30"),
        script.option("--table", metavar="FILE", help="write the result there"),
        prepare=prepare, isolate=isolate_node)
