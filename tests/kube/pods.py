# SPDX-License-Identifier: BSD-2-Clause
"""Makes pods by the API server, finds their namespaces, and measures what they get."""
import glob
import json
import os

from api import Refused
from image import PAUSE
from namespaces import Ns
from node import NAME, wait

DEFAULT = "/api/v1/namespaces/default"
IN, OUT = "kubernetes.io/ingress-bandwidth", "kubernetes.io/egress-bandwidth"
RESULTS = "/var/lib/cni/results"
# The reasons of events which say that a pod could not start or stop.
BAD_REASONS = {"FailedCreatePodSandBox", "FailedKillPod", "FailedPodSandBoxStatus",
               "NetworkNotReady", "Failed", "BackOff", "FailedMount",
               "SandboxChanged"}
TOLERATIONS = [{"operator": "Exists"}]


def pod_object(name, annotations=None):
    return {"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "labels": {"name": name},
                         "annotations": annotations or {}},
            "spec": {"nodeName": NAME, "automountServiceAccountToken": False,
                     "enableServiceLinks": False, "dnsPolicy": "Default",
                     "terminationGracePeriodSeconds": 5, "tolerations": TOLERATIONS,
                     "containers": [{"name": "main", "image": PAUSE,
                                     "imagePullPolicy": "Never"}]}}


def rates(ingress, egress):
    """Return the annotations for two rates, of which each may be None."""
    return {key: value for key, value in ((IN, ingress), (OUT, egress)) if value}


class Running(Ns):
    """The namespace of a pod that runs."""

    def __init__(self, name, cached):
        self.pod = name
        # Upstream's plugin adds interfaces of the node's.
        netns = next(i["sandbox"] for i in cached["result"]["interfaces"]
                     if i.get("sandbox"))
        self.ip = cached["result"]["ips"][0]["address"].split("/")[0]
        self.host = cached["result"]["interfaces"][0]["name"]
        self.container = cached["containerId"]
        super().__init__(netns.rpartition("/")[2], exists=True)


def cached_results():
    """Return libcni's results by the name of the pod."""
    found = {}
    for path in glob.glob(f"{RESULTS}/*-eth0"):
        try:
            with open(path) as f:
                result = json.load(f)
        except (FileNotFoundError, ValueError):
            continue            # it is being written or removed
        found[dict(result["cniArgs"])["K8S_POD_NAME"]] = result
    return found


class Pods:
    """The pods of the namespace `default`."""

    def __init__(self, node, api=None):
        self.node, self.api = node, api or node.api
        self.running = {}

    def copy(self):
        """Return the same with a connection of its own, for another thread."""
        return Pods(self.node, self.node.connect())

    def make(self, name, annotations=None):
        self.api.create(f"{DEFAULT}/pods", pod_object(name, annotations))

    def phases(self):
        return {p["metadata"]["name"]: p["status"]["phase"]
                for p in self.api.items(f"{DEFAULT}/pods")}

    def start(self, annotated, seconds=120):
        """Make pods, given as {name: annotations}, and return them running."""
        for name, annotations in annotated.items():
            self.make(name, annotations)
        return self.started(annotated, seconds)

    def started(self, names, seconds=120):
        """Wait until pods run that somebody has made, and return them."""
        names = set(names)

        def all_run():
            phases = self.phases()
            return all(phases.get(name) == "Running" for name in names)
        wait(all_run, lambda: f"{self.phases()}: {self.bad_events()} "
             f"{self.node.logs()}", seconds, 0.1)
        cached = cached_results()
        started = {name: Running(name, cached[name]) for name in names}
        self.running |= started
        return started

    def annotate(self, name, changes):
        self.api.patch(f"{DEFAULT}/pods/{name}", {"metadata": {
            "annotations": changes}})

    def end(self, names, seconds=60):
        """Delete pods and wait until the kubelet has ended them."""
        for name in names:
            # An open namespace would outlive its pod.
            if name in self.running:
                os.close(self.running.pop(name).fd)
            self.api.delete(f"{DEFAULT}/pods/{name}")
        wait(lambda: not set(names) & set(self.phases()),
             lambda: f"{self.phases()}: {self.bad_events()}", seconds, 0.1)

    def events(self, **selector):
        query = {"fieldSelector": ",".join(f"{k}={v}" for k, v in selector.items())} \
            if selector else {}
        return self.api.items("/api/v1/events", **query)

    def bad_events(self):
        """Return the failures of these pods that the kubelet reports. (The uninstalling
        pod is run again until no pod needs the plugin.)"""
        return [f"{e['involvedObject']['name']}: {e['reason']}: {e['message'][:600]}"
                for e in self.events() if e["reason"] in BAD_REASONS and
                e["involvedObject"].get("namespace") == "default"]

    def pod(self, name, space="default"):
        try:
            return self.api.get(f"/api/v1/namespaces/{space}/pods/{name}")
        except Refused as e:
            if e.status == 404:
                return None
            raise
