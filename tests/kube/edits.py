#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Edits the annotations of a running pod, and measures the time to the new limit.

The agent follows them with its own service account. While edits go on it is killed, the
API server is restarted, and the agent's connection to it is cut.
"""
import os
import signal
import statistics
import time

import kube
from agentpod import Agent
from api import Api, Refused
from commands import sh
from node import API_PORT, IP, SERVICE_IP, WORK, wait, write_network
from pods import DEFAULT, IN, rates
from script import option
from traffic import Traffic

EDITS = option("--edits", type=int, default=100, help="undisturbed edits; default: 100")
MBIT = 1_000_000
TOKEN = "kubernetes.io~projected"


def edit(cluster, name, number, seconds=30):
    """Ask for two new rates, and return the seconds until they hold."""
    ingress, egress = 11 + number % 50, 31 + number % 40
    begin = time.monotonic()
    cluster.pods.annotate(name, rates(f"{ingress}M", f"{egress}M"))
    want = (ingress * MBIT, egress * MBIT)
    wait(lambda: cluster.rates().get(name) == want,
         lambda: f"{name} has {cluster.rates()}, not {want}", seconds, 0.001)
    return time.monotonic() - begin


def undisturbed(cluster, count):
    times = [edit(cluster, "shop", n) for n in range(count)]
    report = cluster.report
    report.most(f"from PATCH to limit, median of {count}", statistics.median(times), 0.5,
                " s")
    report.most("  worst", max(times), 1, " s")


def agent_killed(cluster, agent):
    os.kill(agent.pid(), signal.SIGKILL)
    before = cluster.rates()
    seconds = edit(cluster, "shop", 7)
    cluster.report.most("edit while the agent is dead, to limit", seconds, 20, " s")
    cluster.report.equal("  the other pod's limits",
                         cluster.rates()["other"], before["other"])
    wait(agent.ready, agent.trouble)


def api_restarted(cluster):
    before = cluster.rates()
    cluster.node.stop_api()
    time.sleep(1)
    cluster.report.equal("limits without an API server", cluster.rates(), before)
    cluster.node.start_api()
    cluster.report.most("first edit after the API server's restart, to limit",
                        edit(cluster, "shop", 11), 10, " s")


def watch_cut(cluster):
    """Make the kernel reset the agent's connection, and edit at once.

    The agent has tried in vain while the API server was away, each time after a longer wait. It counts
    a watch that ends within 5 s, or before it is known to have brought all pods, as one try more.
    """
    time.sleep(6)
    edit(cluster, "shop", 12)
    cut = sh("ss", "-KtHn", "dst", f"{SERVICE_IP}:443").splitlines()
    seconds = edit(cluster, "shop", 13)
    cluster.report.check("watches cut", len(cut), ">= 1", cut)
    cluster.report.most("edit as the watch is cut, to limit", seconds, 3, " s")


def bad_value(cluster):
    before = cluster.rates()["shop"]
    cluster.pods.annotate("shop", {IN: "plenty"})

    def told():
        return [e for e in cluster.pods.events(**{"involvedObject.name": "shop"})
                if e["reason"] == "BandwidthNotChanged"]
    begin = time.monotonic()
    event = wait(told, "no event BandwidthNotChanged", 10)[0]
    report = cluster.report
    report.most("bad value to Event", time.monotonic() - begin, 2, " s")
    report.true("  names the annotation and the value", IN in event["message"] and
                "plenty" in event["message"], event["message"][:70])
    report.equal("  limits", cluster.rates()["shop"], before)


def removed(cluster):
    edit(cluster, "shop", 17)
    cluster.pods.annotate("shop", {IN: None})
    begin = time.monotonic()
    wait(lambda: not cluster.rates()["shop"][0],
         lambda: f"still {cluster.rates()}", 10, 0.01)
    report = cluster.report
    report.most("annotation removed to no limit", time.monotonic() - begin, 1, " s")
    report.equal("  the other direction's limit", cluster.rates()["shop"][1],
                 (31 + 17) * MBIT)


def privileges(cluster, agent):
    """Ask with the agent's own token for what it must not see."""
    uid = agent.pod()["metadata"]["uid"]
    base = f"/var/lib/kubelet/pods/{uid}/volumes/{TOKEN}"
    (volume,) = os.listdir(base)
    with open(f"{base}/{volume}/token") as f:
        own = Api(IP, API_PORT, f.read().strip(), f"{WORK}/tls/apiserver.crt")
    for what, method, path in (
            ("read secrets", "GET", "/api/v1/namespaces/kube-system/secrets"),
            ("delete a pod", "DELETE", f"{DEFAULT}/pods/shop"),
            ("change a pod", "PATCH", f"{DEFAULT}/pods/shop")):
        try:
            own.ask(method, path, {} if method == "PATCH" else None,
                    "application/merge-patch+json")
            status = 200
        except Refused as e:
            status = e.status
        cluster.report.equal(f"the agent's account may not {what}", status, 403)


def main(cluster, arguments):
    report = cluster.report
    write_network()
    cluster.node.start()
    report.shown("versions", cluster.node.versions())
    agent = Agent.install(cluster)
    pods = cluster.pods.start({"shop": rates("10M", "30M"),
                               "other": rates("5M", "5M")})
    report.equal("limits by ADD", cluster.rates(), {
        "shop": (10 * MBIT, 30 * MBIT), "other": (5 * MBIT, 5 * MBIT)})
    added = wait(lambda: [line for line in agent.log().splitlines()
                          if "command=ADD" in line and "pod=default/shop" in line],
                 lambda: f"the plugin's log is not in\n{agent.log()}", 10)
    report.equal("lines of kubectl logs about the pod's ADD", len(added), 1)
    traffic = Traffic(cluster.client, {"shop": pods["shop"]})
    undisturbed(cluster, arguments.edits)
    agent_killed(cluster, agent)
    api_restarted(cluster)
    watch_cut(cluster)
    privileges(cluster, agent)
    cluster.pods.annotate("shop", rates("12M", "6M"))
    time.sleep(2)

    def measured():
        got = traffic.rates(3)
        report.near("pod, in", got["shop", "in"] / MBIT, 12, 0.1, " Mbit/s")
        report.near("pod, out", got["shop", "out"] / MBIT, 6, 0.1, " Mbit/s")
    report.measure("traffic", measured)
    bad_value(cluster)
    removed(cluster)
    traffic.close()


if __name__ == "__main__":
    kube.run_script(main, EDITS)
