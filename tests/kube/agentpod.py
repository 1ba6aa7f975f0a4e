# SPDX-License-Identifier: BSD-2-Clause
"""Runs natra-agent in its own pod, from the image and the manifest.

There are no controllers, so this file makes the pod that the DaemonSet's controller
would make.
"""
import copy
import glob
import os
import tempfile
import time
import urllib.request

import yaml

from commands import sh
from node import NAME, wait

ROOT = os.path.realpath(f"{os.path.dirname(__file__)}/../..")
DEPLOY = f"{ROOT}/tools/deploy"
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
}


def newest_source():
    """Return when a file that the image is made of was changed last."""
    return max(os.path.getmtime(f"{directory}/{file}")
               for part in ("bpf", "cni", "include", "src", "tools")
               for directory, _, files in os.walk(f"{ROOT}/{part}") for file in files)


def build_image():
    """Build the image as tools/deploy does, unless it is there, and return the
    archive's path."""
    for path in glob.glob(f"{ROOT}/build-image/natra-*.oci.tar"):
        if os.path.getmtime(path) > newest_source():
            return path
    return sh(f"{DEPLOY}/image", timeout=1200).split("\n")[0]


def make_manifests(directory):
    sh(f"{DEPLOY}/manifests", directory, timeout=120)


def read_manifest(directory, variant):
    with open(f"{directory}/default/{variant}/natra.yaml") as f:
        return [o for o in yaml.safe_load_all(f) if o]


def manifest(variant="install"):
    """Return the objects of a manifest for a node with the usual directories. They can be made
    before, which takes an emulated CPU minutes."""
    if "NATRA_KUBE_MANIFESTS" in os.environ:
        return read_manifest(os.environ["NATRA_KUBE_MANIFESTS"], variant)
    with tempfile.TemporaryDirectory() as directory:
        make_manifests(f"{directory}/made")
        return read_manifest(f"{directory}/made", variant)


def daemon_of(objects):
    return next(o for o in objects if o["kind"] == "DaemonSet")


def owned_by(daemon):
    """Return what a pod's metadata has of its DaemonSet, if that is one of the API server's."""
    meta = daemon["metadata"]
    return [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": meta["name"], "uid": meta["uid"],
             "controller": True}] if "uid" in meta else []


class Agent:
    """The agent's pod on this node, and what else its manifest has."""

    def __init__(self, cluster, count=0):
        """`count` is how many pods it had before a boot; the last one is its pod."""
        self.cluster, self.node, self.api = cluster, cluster.node, cluster.api
        self.objects = manifest()
        self.space = daemon_of(self.objects)["metadata"]["namespace"]
        self.count = count
        self.name = f"natra-agent-{count}"
        cluster.agents.append(self)

    @classmethod
    def install(cls, cluster, *arguments):
        """Load the image, create the manifest's objects, and start the agent."""
        agent = cls(cluster)
        cluster.node.load_image(cluster.arguments.image)
        agent.create_objects()
        cluster.report.shown("agent's pod to ready, s",
                             f"{agent.start(arguments=arguments):.1f}")
        return agent

    def create_objects(self):
        """Create all objects. The API server checks the DaemonSet, too, although its
        controller does not run here."""
        for o in self.objects:
            space = o["metadata"].get("namespace", "")
            if o["kind"] == "Namespace":
                self.node.add_namespace(o["metadata"]["name"], o)
                continue
            path = PATHS[o["kind"]]
            self.api.create(path % space if "%s" in path else path, o)

    def start(self, image=None, arguments=(), objects=None, wait_ready=True,
              seconds=60):
        """Start the agent's pod, and wait until it is ready. Return how long it
        took."""
        daemon = daemon_of(objects or self.objects)
        template = copy.deepcopy(daemon["spec"]["template"])
        for container in template["spec"]["containers"]:
            container["image"] = image or container["image"]
            container["args"] += arguments
        self.count += 1
        self.name = f"natra-agent-{self.count}"
        begin = time.monotonic()
        self.api.create(f"{CORE}/namespaces/{self.space}/pods", {
            "apiVersion": "v1", "kind": "Pod",
            "metadata": dict(template["metadata"], name=self.name, ownerReferences=owned_by(daemon)),
            "spec": dict(template["spec"], nodeName=NAME)})
        if wait_ready:
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


def _is_agent(pid):
    try:
        with open(f"/proc/{pid}/comm") as f:
            return f.read().strip() == "natra-agent"
    except (FileNotFoundError, ProcessLookupError):
        return False
