#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""A real Prometheus scrapes a real agent on a node whose pods are under load: each query
of the dashboard and each rule has data, each alert fires in the state made for it and not
before, and the counters are what was sent. It needs a kernel with fq."""
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from node import (Prometheus, check_dashboard, dashboard, draw_dashboard, is_of_what_is_wrong,
                  need, series)
from isolation import BPFFS
from agent import Agent
from commands import sh
from limiters import Natra
from namespaces import Pod
import bpfsys
import neighbour
import podnode
from script import option, run_script
from report import skip

LIST = {"cniVersion": "1.0.0", "name": "net", "plugins": [{"type": "ptp"}]}
UDP_HEADERS = 14 + 20 + 8
SIZE = 1400
STATES = {"NatraUnshaped", "NatraCheckFailed", "NatraProgramBefore",
          "NatraNotReady", "NatraAbiMismatch", "NatraOverLimit",
          "NatraLossAtLimit", "NatraFailedPods", "NatraUnreadableResults"}


def prepare(args):
    need("prometheus", "iperf3", "bpftool")


class Node:
    def __init__(self, root):
        sh("ip", "link", "set", "lo", "up")
        self.root = root
        os.makedirs(f"{self.root}/etc/cni/net.d")
        os.makedirs(f"{self.root}/opt/cni/bin")
        self.list = f"{self.root}/etc/cni/net.d/10-net.conflist"
        with open(self.list, "w") as f:
            json.dump(LIST, f)
        self.pods, self.number = {}, 0
        self.clients = []

    def pod(self, name, ingress, egress, *more):
        self.number += 1
        pod = Pod(name, self.number)
        pod.natra = Natra(pod, ident=f"test/{name}")
        if egress:
            pod.natra.attach(ingress, egress, "--label", f"shop/{name}", *more)
        pod.popen("iperf3", "-s")
        self.pods[name] = pod
        return pod

    def iperf(self, pod, *args):
        return json.loads(sh("iperf3", "-J", "-c", pod.ip, *args))

    def load(self, pod, *args):
        p = subprocess.Popen(["iperf3", "-c", pod.ip, "-t", "300", *args],
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.clients.append(p)

    def connect(self, pod):
        """Connect to a pod again and again."""
        code = ("import socket, time\nwhile True:\n"
                f" socket.create_connection(('{pod.ip}', 5201)).close()\n time.sleep(0.5)")
        self.clients.append(subprocess.Popen([sys.executable, "-c", code],
                                             stderr=subprocess.DEVNULL))

    def stop_load(self):
        for p in self.clients:
            p.kill()
            p.wait()
        self.clients.clear()


def counted(agent):
    """{(metric, verdict): value} of the ingress of pod exact."""
    labels = '{namespace="shop",pod="exact",interface="eth0",direction="ingress",verdict="'
    found = {}
    for name, value in series(agent.get("/metrics")[1]).items():
        for what in ("bytes", "packets"):
            if name.startswith(f"natra_{what}_total{labels}"):
                found[what, name.split('"')[-2]] = value
    return found


def check_counters(r, node, agent, rate):
    """What iperf3 sends by UDP is in the counters within 1 %. Return how many packets its
    server has missed."""
    time.sleep(1.1)  # the server listens, and an answer may be a second old
    before = counted(agent)
    end = node.iperf(node.pods["exact"], "-u", "-b", rate, "-l", str(SIZE), "-t",
                     "5")["end"]["sum"]
    time.sleep(1.1)
    grown = {key: value - before[key] for key, value in counted(agent).items()}
    packets = {verdict: n for (what, verdict), n in grown.items() if what == "packets"}
    r.shown(f"{rate} to a limit of 20M, packets by verdict",
            ", ".join(f"{v} {n:.0f}" for v, n in packets.items() if n))
    r.near(f"{rate}: bytes counted, of those that iperf3 sent",
           sum(n for (what, _), n in grown.items() if what == "bytes"),
           end["packets"] * (SIZE + UDP_HEADERS), 0.01)
    r.near(f"{rate}: packets in all verdicts, of those offered",
           sum(packets.values()), end["packets"], 0.01)
    return end["lost_packets"]


def break_abi(pod):
    """Let the record of a pod name a newer ABI, as a newer natra's would."""
    [path] = pod_pins(pod, "meta")
    [entry] = json.loads(sh("bpftool", "-j", "map", "dump", "pinned", path))
    value = [int(b, 16) for b in entry["value"]]
    value[4] += 1
    sh("bpftool", "map", "update", "pinned", path, "key", "0", "0", "0", "0", "value",
       *map(str, value))


def pod_pins(pod, name):
    top = pod.natra.show()["pin_path"]
    return [f"{top}/{found}" for found in os.listdir(top) if found.endswith(name)]


def break_all(node, unshaped):
    """Make each state that an alert is for. Return what has to be kept."""
    node.load(node.pods["flood"], "-u", "-b", "8M", "-l", str(SIZE))
    node.load(node.pods["mice"], "-b", "4M", "-R")
    bare = node.pods["bare"]
    sh(unshaped, BPFFS, bare.path, "test/bare", "shop/bare", "1000000")
    for link in pod_pins(node.pods["check"], "_link"):
        os.unlink(link)
    neighbour.Neighbour()
    with node.pods["before"] as pod:
        program = bpfsys.obj_get(f"{neighbour.PINS}/next_out")
        kept = bpfsys.tcx_link(program, neighbour.ifindex(pod, "eth0"), bpfsys.TCX_EGRESS,
                               bpfsys.BEFORE)
    break_abi(node.pods["newer"])
    os.unlink(node.list)
    results = Path(node.root) / "var/lib/cni/results"
    results.mkdir(parents=True)
    (results / "net-torn-eth0").write_text('{"kind": "cniCacheV1", "containerId": "torn"')
    cache = object.__new__(podnode.FakeNode)
    cache.root, cache.results = results.parents[3], results
    # Its network namespace is a file, so it cannot be limited.
    (cache.root / "run/netns").mkdir(parents=True, exist_ok=True)
    cache.pod("failed", {"ingressRate": 10**6}, ["ptp", {
        "type": "natra", "capabilities": {"bandwidth": True}}])
    return kept


def check_alerts(r, node, prometheus):
    fired = set()
    for _ in range(30):
        fired |= prometheus.told()
        time.sleep(0.5)
    r.true("no alert while all is well", not fired, ", ".join(sorted(fired)))
    unshaped = os.environ["NATRA_UNSHAPED"]
    kept = break_all(node, unshaped)
    end = time.monotonic() + 120
    while prometheus.alerts() != STATES and time.monotonic() < end:
        time.sleep(1)
    firing = prometheus.query('ALERTS{alertstate="firing"}')
    for name in sorted(STATES):
        pods = sorted({labels.get("pod", "") for labels, _ in firing
                       if labels["alertname"] == name})
        r.true(f"alert {name}", pods, " ".join(pods) or "for the node")
    expected = {"NatraUnshaped": "bare", "NatraCheckFailed": "check",
                "NatraProgramBefore": "before", "NatraOverLimit": "mice",
                "NatraLossAtLimit": "flood"}
    wrong = [(labels["alertname"], labels.get("pod")) for labels, _ in firing
             if expected.get(labels["alertname"]) not in (None, labels.get("pod"))]
    r.true("only the pods in that state", not wrong, str(wrong))
    os.close(kept)


def check_series(r, node, agent, has_fq):
    """Show how many series pods have, by what is held and measured there."""
    held = {"exact": "egress held", "pace": "both held"} if has_fq else {"exact": "none held"}
    for name, what in {**held, "web": f"{held['exact']}, sli, a group"}.items():
        def count(text, mark=f'pod="{name}"'):
            return sum(mark in one for one in series(text))

        full, basic = (count(node.pods[name].natra.ok("metrics", *more))
                       for more in ((), ("--verdicts=basic",)))
        r.shown(f"series of a pod: {what}", f"{full}, or {basic} with --verdicts=basic")
        r.equal("  by the agent", count(agent.get("/metrics")[1]), full)


def check_node(r, node, has_fq, picture):
    exact = node.pod("exact", "20M", "20M")
    exact.natra.ok("group", "set", "blue", "--egress-rate", "10M")
    node.pod("web", "20M", "4M", "--sli", "on", "--group", "blue")
    node.pod("classes", "20M", "20M", "--class", "all=0.0.0.0/0,ingress-rate=10M",
             "--ingress-packet-rate", "1000", "--ingress-connection-rate", "100")
    # At 4M the pacer holds 16 packets, too few for a stream, which then loses a twentieth.
    node.pod("pace", "20M", "20M", *(("--ingress-mode", "pace") if has_fq else ()),
             "--fast-pass", "strict")
    node.pod("flood", "2M", "2M")
    node.pod("mice", "1M", "1M", "--heavy-hitter-threshold", "1G")
    for name in ("check", "before", "newer"):
        node.pod(name, "1M", "1M")
    node.pod("bare", None, None)
    with Agent("--root", node.root, "--bpffs", BPFFS, "--period", "10s", "--runtime-version",
               "containerd://1.6.20", "--plugin", os.environ["NATRA_CNI"]) as agent:
        agent.wait_ready()
        # Before Prometheus begins, because losses at the limit are an alert.
        check_counters(r, node, agent, "16M")
        lost = check_counters(r, node, agent, "40M")
        r.true("the second was over the limit", lost, f"{lost} packets lost")
        prometheus = Prometheus([f"127.0.0.1:{agent.port}"])
        try:
            node.load(node.pods["web"], "-R")
            node.load(node.pods["pace"])
            node.load(node.pods["classes"], "-u", "-b", "4M", "-l", str(SIZE))
            node.connect(node.pods["web"])
            time.sleep(20)
            check_dashboard(r, prometheus, has_fq)
            check_series(r, node, agent, has_fq)
            if has_fq:
                check_alerts(r, node, prometheus)
            else:   # all streams at a limit lose packets there, which is an alert
                os.close(break_all(node, os.environ["NATRA_UNSHAPED"]))
                time.sleep(60)
            for panel, queries in dashboard():
                if is_of_what_is_wrong(panel):
                    found = all(prometheus.wait(q, 20) for q in queries)
                    r.true(f"the table has data: {panel['title']}", found, "")
            if picture:
                print(draw_dashboard(prometheus))
            node.stop_load()
            node.pods["web"].natra.detach()
            time.sleep(3)
            left = prometheus.query('{pod="web",__name__=~"natra_.*"}')
            r.true("series are gone after DEL", not left, f"{len(left)} series")
        finally:
            node.stop_load()
            prometheus.close()


def main(r, args):
    has_fq = Natra().json("probe")["fq"]
    if not has_fq and not args.picture:
        skip("this kernel has no fq")
    with tempfile.TemporaryDirectory(prefix="natra-monitoring-") as root:
        check_node(r, Node(root), has_fq, args.picture)


if __name__ == "__main__":
    run_script(main, option("--picture", action="store_true",
                            help="also print what the dashboard shows, as SVG"),
               prepare=prepare)
