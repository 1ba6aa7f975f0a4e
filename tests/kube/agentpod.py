# SPDX-License-Identifier: BSD-2-Clause
"""Runs natra-agent in its own pod, from the image and the manifest.

There are no controllers, so this file makes of the DaemonSet and the Job the pods that
their controllers would make, and changes nothing else of them.
"""
import json
import os
import subprocess
import time
import urllib.request

import yaml

from api import Refused
from node import NAME, wait
from pods import DEFAULT

CORE, RBAC = "/api/v1", "/apis/rbac.authorization.k8s.io/v1"
# Where objects of a kind are created; %s is their namespace.
PATHS = {
    "Namespace": f"{CORE}/namespaces",
    "ServiceAccount": f"{CORE}/namespaces/%s/serviceaccounts",
    "ConfigMap": f"{CORE}/namespaces/%s/configmaps",
    "ClusterRole": f"{RBAC}/clusterroles",
    "ClusterRoleBinding": f"{RBAC}/clusterrolebindings",
    "Role": f"{RBAC}/namespaces/%s/roles",
    "RoleBinding": f"{RBAC}/namespaces/%s/rolebindings",
    "DaemonSet": "/apis/apps/v1/namespaces/%s/daemonsets",
    "Job": "/apis/batch/v1/namespaces/%s/jobs",
}


def read_manifest(text):
    return [d for d in yaml.safe_load_all(text) if d]


def of_kind(objects, kind):
    found = [o for o in objects if o["kind"] == kind]
    return found[0] if found else None


class Agent:
    """The agent's pod on this node, and what else its manifest has."""

    def __init__(self, cluster, objects):
        self.cluster, self.node, self.api = cluster, cluster.node, cluster.api
        self.objects = objects
        self.daemon = of_kind(objects, "DaemonSet")
        self.space = self.daemon["metadata"]["namespace"]
        self.count = 0
        self.name = None

    @classmethod
    def install(cls, cluster, *arguments):
        """Load the image, create the manifest's objects, and start the agent."""
        cluster.node.load_image(os.environ["NATRA_KUBE_IMAGE"])
        with open(os.environ["NATRA_KUBE_MANIFEST"]) as f:
            agent = cls(cluster, read_manifest(f.read()))
        agent.create_objects()
        cluster.report.shown("agent's pod to ready, s",
                             f"{agent.start(arguments=arguments):.1f}")
        return agent

    def create_objects(self):
        """Create all objects, also those whose controllers do not run here, because
        the API server checks them."""
        for o in self.objects:
            space = o["metadata"].get("namespace", "")
            if o["kind"] == "Namespace":
                self.node.add_namespace(o["metadata"]["name"], o)
                continue
            path = PATHS[o["kind"]]
            self.api.create(path % space if "%s" in path else path, o)

    def _run(self, template, name):
        self.api.create(f"{CORE}/namespaces/{self.space}/pods", {
            "apiVersion": "v1", "kind": "Pod",
            "metadata": dict(template.get("metadata", {}), name=name),
            "spec": dict(template["spec"], nodeName=NAME)})
        return name

    def start(self, image=None, arguments=(), seconds=60):
        """Start the agent's pod, and wait until it is ready. Return how long it
        took."""
        template = json.loads(json.dumps(self.daemon["spec"]["template"]))
        container = template["spec"]["containers"][0]
        if image:
            container["image"] = image
        container["args"] = [*container.get("args", ()), *arguments]
        container["imagePullPolicy"] = "Never"
        self.count += 1
        begin = time.monotonic()
        self.name = self._run(template, f"natra-agent-{self.count}")
        wait(self.ready, self.trouble, seconds)
        return time.monotonic() - begin

    def pod(self):
        return self.cluster.pods.pod(self.name, self.space)

    def ready(self):
        pod = self.pod()
        return any(c["type"] == "Ready" and c["status"] == "True"
                   for c in pod["status"].get("conditions", ()))

    def trouble(self):
        return f"agent: {self.pod()['status']} {self.probe()} {self.log()} " \
            f"{self.cluster.pods.bad_events()}"

    @staticmethod
    def probe():
        """Return what /readyz answers."""
        try:
            with urllib.request.urlopen("http://127.0.0.1:9810/readyz",
                                        timeout=2) as answer:
                return answer.read().decode()
        except OSError as e:
            return getattr(e, "read", lambda: str(e).encode())().decode()

    def log(self):
        """Return the agent's log as `kubectl logs` would."""
        text = ""
        for directory, _, files in sorted(os.walk("/var/log/pods")):
            if f"_{self.name}_" not in directory:
                continue
            for file in sorted(files):
                with open(f"{directory}/{file}") as f:
                    text += "".join(line.split(" ", 3)[-1] for line in f)
        return text

    def pid(self):
        """Return the pid of the agent's first process."""
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/stat") as f:
                    name, rest = f.read().split("(", 1)[1].rsplit(")", 1)
            except (FileNotFoundError, ProcessLookupError):
                continue
            # A child that works for the agent has the agent for parent.
            with_parent = rest.split()[1]
            if name == "natra-agent" and not _is_agent(with_parent):
                return int(pid)
        return None

    def stop(self):
        """End the pod as a rollout does."""
        self.api.delete(f"{CORE}/namespaces/{self.space}/pods/{self.name}")
        wait(lambda: not self.pod(), "the agent's pod stays")

    def run_template(self, template, name, seconds=60):
        """Run the pod of a Job to its end, and return its exit code."""
        self._run(template, name)
        path = f"{CORE}/namespaces/{self.space}/pods/{name}"

        def ended():
            states = self.api.get(path)["status"].get("containerStatuses", [{}])
            return states[0].get("state", {}).get("terminated")
        return wait(ended, lambda: self.api.get(path)["status"], seconds)["exitCode"]


def _is_agent(pid):
    try:
        with open(f"/proc/{pid}/comm") as f:
            return f.read().strip() == "natra-agent"
    except (FileNotFoundError, ProcessLookupError):
        return False
