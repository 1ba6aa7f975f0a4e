#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Installs, changes and uninstalls natra by Helm, with a real API server.

After each step the agent's pod is made of the DaemonSet that the API server has then.
"""
import json
import os
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../deploy")
import kube
from agentpod import DEPLOY, Agent
from api import Refused
from cache import HELM, need
from commands import sh
from install import KEPT, exit_codes, file_hash, own_files
from node import BIN_DIR, NAME, WORK, wait, write_network
from pods import rates

SPACE = "kube-system"
MBIT = 1_000_000
NAMES = ("natra-agent", "natra-agent-privileged")


class Helm:
    """Runs helm as the administrator of the node's cluster."""

    def __init__(self, cluster):
        node = cluster.node
        self.conf = node.admin_kubeconfig("helm")
        self.api = node.api

    def __call__(self, *words):
        return sh(HELM, *words, "--kubeconfig", self.conf, "--namespace", SPACE,
                  timeout=60, env=dict(os.environ, HOME=WORK))

    def objects(self):
        """Return natra's objects that the API server has."""
        found = []
        for path in (f"/api/v1/namespaces/{SPACE}/serviceaccounts",
                     f"/apis/apps/v1/namespaces/{SPACE}/daemonsets",
                     "/apis/rbac.authorization.k8s.io/v1/clusterroles",
                     "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
                     f"/apis/rbac.authorization.k8s.io/v1/namespaces/{SPACE}/rolebindings"):
            for name in NAMES:
                try:
                    found.append(self.api.get(f"{path}/{name}"))
                except Refused as e:
                    if e.status != 404:
                        raise
        return found


def element():
    """Return natra's element as the runtime finds it."""
    (text,) = own_files().values()
    found = json.loads(text)
    return found.get("plugins", [found])[-1]


def rollout(agent, helm, **more):
    """Put a pod of the present DaemonSet in the place of the agent's."""
    agent.objects = helm.objects()
    agent.start(**more)


def installed(cluster, helm, agent):
    report = cluster.report
    helm("install", "natra", f"{DEPLOY}/chart")
    rollout(agent, helm)
    report.equal("objects", sorted(o["kind"] for o in helm.objects()), [
        "ClusterRole", "ClusterRoleBinding", "DaemonSet", "ServiceAccount"])
    cluster.pods.start({"web": rates("10M", "5M")})
    report.equal("installed: limits", cluster.rates(), {"web": (10 * MBIT, 5 * MBIT)})
    cluster.pods.annotate("web", rates("20M", "5M"))
    wait(lambda: cluster.rates() == {"web": (20 * MBIT, 5 * MBIT)},
         lambda: f"{cluster.rates()} {agent.trouble()}", 20)
    report.true("an edit takes effect, with the chart's role", True)


def noted(cluster, helm):
    """What helm prints at its end warns if a node contradicts the values."""
    cluster.api.create("/api/v1/nodes", {
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": "rancher"},
        "status": {"nodeInfo": {"kubeletVersion": "v1.34.2+k3s1"}}})
    for platform, wanted in (("default", "rancher runs v1.34.2+k3s1, and platform is default: "
                              "--set platform=k3s"), ("k3s", None)):
        said = helm("upgrade", "natra", f"{DEPLOY}/chart", "--dry-run=server", "--set",
                    f"platform={platform}").rpartition("NOTES:")[2]
        warned = "WARNING: " in said
        cluster.report.check(f"helm's notes, platform {platform}", " ".join(said.split())[-80:], wanted,
                             warned and wanted in said if wanted else said and not warned)
    cluster.api.delete("/api/v1/nodes/rancher")


def tested(cluster, helm):
    """Let `helm test` run its pod, for which this stands in for the scheduler."""
    name, said = "natra-test-doctor", []
    test = threading.Thread(target=lambda: said.append(helm("test", "natra", "--logs")),
                            daemon=True)
    test.start()
    wait(lambda: cluster.pods.pod(name, SPACE), "helm makes no pod", 30)
    cluster.api.create(f"/api/v1/namespaces/{SPACE}/pods/{name}/binding", {
        "apiVersion": "v1", "kind": "Binding", "metadata": {"name": name},
        "target": {"apiVersion": "v1", "kind": "Node", "name": NAME}})
    test.join(60)
    cluster.report.check("helm test", " ".join(said)[-200:], "sound", any(
        "Phase:          Succeeded" in text and "sound" in text for text in said))


def upgraded(cluster, helm, agent):
    report = cluster.report
    helm("upgrade", "natra", f"{DEPLOY}/chart", "--reuse-values", "--set",
         "conf.fastPass=strict", "--set", "live=false")
    agent.stop()
    rollout(agent, helm)
    report.equal("upgraded: objects", sorted(o["kind"] for o in helm.objects()),
                 ["DaemonSet", "ServiceAccount"])
    report.equal("  natra's element", element().get("fastPass"), "strict")
    report.equal("  limits", cluster.rates(), {"web": (20 * MBIT, 5 * MBIT)})
    cluster.pods.start({"later": rates("3M", "4M")})
    report.equal("  limits of a new pod", cluster.rates()["later"],
                 (3 * MBIT, 4 * MBIT))


def removed(cluster, helm, agent):
    report, before = cluster.report, cluster.rates()
    helm("upgrade", "natra", f"{DEPLOY}/chart", "--reuse-values", "--set",
         "uninstall=true")
    agent.stop()
    rollout(agent, helm, wait_ready=False)
    codes = wait(lambda: exit_codes(agent.pod()["status"]), agent.trouble, 30)
    report.equal("uninstalled: exit code while pods need the plugin", codes[-1], KEPT)
    report.equal("  natra's files", own_files(), {})
    report.equal("  limits of pods that run", cluster.rates(), before)
    cluster.pods.end(list(before))
    wait(agent.ready, agent.trouble, 120)
    report.equal("  the plugin", file_hash(f"{BIN_DIR}/natra"), None)
    helm("uninstall", "natra")
    report.equal("  objects", helm.objects(), [])
    agent.stop()
    cluster.pods.start({"free": rates("3M", "4M")})
    report.equal("  limits of a new pod", cluster.rates(), {})


def main(cluster, _):
    write_network()
    cluster.node.start()
    cluster.report.shown("versions", cluster.node.versions())
    helm, agent = Helm(cluster), Agent(cluster)
    cluster.report.shown("helm", helm("version", "--short").strip())
    cluster.node.load_image(cluster.arguments.image)
    installed(cluster, helm, agent)
    noted(cluster, helm)
    tested(cluster, helm)
    upgraded(cluster, helm, agent)
    removed(cluster, helm, agent)


if __name__ == "__main__":
    need(HELM)
    kube.run_script(main)
