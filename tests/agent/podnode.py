# SPDX-License-Identifier: BSD-2-Clause
"""A node whose pods are files: libcni's cache, and the state of fake_natra.c."""
import base64
import json
import os
import shutil
import tempfile
import time
from pathlib import Path

from agent import Agent

AGENT_FAKE = os.environ.get("NATRA_AGENT_FAKE")


def natra(**keys):
    """The plugin's element in a list, with these keys."""
    return {"type": "natra", "capabilities": {
        "bandwidth": True, "io.kubernetes.cri.pod-annotations": True}, **keys}


def wait_until(true, what, timeout=60):
    end = time.monotonic() + timeout
    while not true():
        if time.monotonic() > end:
            raise AssertionError(what() if callable(what) else what)
        time.sleep(0.01)


class FakeNode:
    def __init__(self):
        self.root = Path(tempfile.mkdtemp(prefix="natra-agent-"))
        self.results = self.root / "var/lib/cni/results"
        self.results.mkdir(parents=True)
        (self.root / "run/netns").mkdir(parents=True)
        self.state = self.root / "state"
        self.state.mkdir()

    def close(self):
        shutil.rmtree(self.root, ignore_errors=True)

    def agent(self, *options, **more):
        return Agent("--root", str(self.root), *options, program=AGENT_FAKE,
                     env={"FAKE_STATE": str(self.state)}, **more)

    def netns(self, name):
        return self.root / "run/netns" / name

    def result(self, file):
        return self.results / file

    def pod(self, name, bandwidth, plugins, annotations=None, netns_key=True,
            multus=None):
        """Add a pod that was made with these plugins; return its result's path.
        `multus` is an interface that Multus has made, which keeps its results in a
        cache of its own, without annotations."""
        self.netns(name).touch()
        conf = {"cniVersion": "1.0.0", "name": "net", "plugins": [
            p if isinstance(p, dict) else {"type": p} for p in plugins]}
        args = {"io.kubernetes.cri.pod-annotations": annotations}
        if bandwidth is not None:
            args["bandwidth"] = bandwidth
        sandbox = f"/run/netns/{name}"
        result = {
            "kind": "cniCacheV1", "containerId": name, "ifName": "eth0",
            "networkName": "net",
            "config": base64.b64encode(json.dumps(conf).encode()).decode(),
            "cniArgs": [["IgnoreUnknown", "1"],
                        ["K8S_POD_NAMESPACE", "shop"],
                        ["K8S_POD_NAME", f"pod-{name}"],
                        ["K8S_POD_INFRA_CONTAINER_ID", name],
                        ["K8S_POD_UID", f"uid-{name}"]],
            "capabilityArgs": args,
            "result": {"cniVersion": "1.0.0", "interfaces": [
                {"name": "veth1"}, {"name": "eth0", "sandbox": sandbox}]}}
        if netns_key:
            result["netns"] = sandbox
        path = self.result(f"net-{name}-eth0")
        if multus:
            path = self.root / f"var/lib/cni/multus/results/net-{name}-{multus}"
            path.parent.mkdir(parents=True, exist_ok=True)
            result["ifName"] = multus
            del args["io.kubernetes.cri.pod-annotations"]
        path.write_text(json.dumps(result))
        return str(path)

    def attached(self, name, ingress, egress, current=True):
        (self.state / name.replace("/", "+")).write_text(
            f"{ingress} {egress} {int(current)}\n")

    def limits(self, name, ifname="eth0"):
        """The two rates of a pod; None if it has no limits."""
        try:
            words = (self.state / f"net+{name}+{ifname}").read_text().split()
        except FileNotFoundError:
            return None
        return (int(words[0]), int(words[1])) if words else None

    def leftovers(self, ifname, error="", ifb=False):
        """Upstream's limits, with the ifb of that of egress or without; beside them,
        attaching fails with this number and text."""
        if ifb:
            (self.state / "leftovers-ifb").touch()
        (self.state / f"leftovers+{ifname}").write_text(error)

    def waiting(self, name):
        """Upstream's limits beside a pod, in which packets wait."""
        path = self.state / f"waiting+net+{name}+eth0"
        path.touch()
        return path

    def touch(self, name):
        """Let a call be slow or kill the process, see fake_natra.c."""
        (self.state / name).touch()
        return self.state / name

    def fail(self, call, number):
        (self.state / f"error-{call}").write_text(str(number))

    def calls(self):
        try:
            return (self.state / "calls").read_text().splitlines()
        except FileNotFoundError:
            return []

    def forget(self):
        for path in self.state.iterdir():
            path.unlink()
