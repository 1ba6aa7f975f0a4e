# SPDX-License-Identifier: BSD-2-Clause
"""Runs natra-agent with the kernel. Needs root; all is in namespaces and on a bpffs of the
test's own."""
import json
import os
import subprocess
import sys
import unittest

from agent import Agent, has_live
from apiserver import ApiServer
from podnode import FakeNode, natra, wait_until

NATRACTL = os.environ["NATRACTL"]
PLUGIN = os.environ["NATRA_CNI"]
IN = "kubernetes.io/ingress-bandwidth"


def run(*argv):
    p = subprocess.run(argv, text=True, capture_output=True, timeout=30)
    if p.returncode:
        raise AssertionError(f"{argv}: {p.stderr}")
    return p.stdout


class KernelCase(unittest.TestCase):
    def setUp(self):
        self.node = FakeNode()
        self.addCleanup(self.node.close)
        self.bpffs = self.node.root / "bpffs"
        self.bpffs.mkdir()
        run("mount", "-t", "bpf", "bpf", str(self.bpffs))
        self.addCleanup(run, "umount", str(self.bpffs))
        # The plugin takes the one that process 1 has there, which is this test.
        run("mount", "--bind", str(self.bpffs), "/sys/fs/bpf")
        self.addCleanup(run, "umount", "/sys/fs/bpf")

    def pod(self, name, rate, egress=None, annotations=None, **conf):
        """A network namespace with a veth, whose result libcni keeps."""
        out = {"egressRate": egress} if egress else {}
        self.node.pod(name, rate and {"ingressRate": rate, **out}, ["ptp", natra(**conf)],
                      annotations)
        path = str(self.node.netns(name))
        run("unshare", f"--net={path}", "ip", "link", "set", "lo", "up")
        self.addCleanup(run, "umount", path)
        run("ip", "link", "add", f"veth-{name}", "type", "veth", "peer", "name",
            f"peer-{name}")
        # It would go with the namespace, but later.
        self.addCleanup(subprocess.run, ["ip", "link", "del", f"veth-{name}"],
                        stderr=subprocess.DEVNULL)
        with open(path) as ns:
            run("ip", "link", "set", f"peer-{name}", "netns",
                f"/proc/{os.getpid()}/fd/{ns.fileno()}", "name", "eth0")

    def agent(self, *options):
        agent = Agent("--no-install", "--root", str(self.node.root), "--bpffs",
                      str(self.bpffs), *options)
        self.addCleanup(agent.__exit__)
        return agent

    def limits(self):
        found = json.loads(run(NATRACTL, "--bpffs", str(self.bpffs), "--json",
                               "list"))
        return {a["id"]: a["policy"]["ingress_rate_bits_per_sec"] for a in found}

    def groups(self):
        return {g["name"]: g for g in json.loads(run(
            NATRACTL, "--bpffs", str(self.bpffs), "--json", "group", "show"))}

    def group_of(self, name):
        """The group of a pod that is limited; "" if it is in none."""
        found = json.loads(run(NATRACTL, "--bpffs", str(self.bpffs), "--json", "list"))
        return next((a["group"] for a in found if a["id"] == f"net/{name}/eth0"), None)

    def call(self, plugin, command, name, **conf):
        """Call a plugin as the runtime does that made the pod."""
        conf.update(cniVersion="1.0.0", name="net", prevResult={
            "cniVersion": "1.0.0", "interfaces": [
                {"name": f"veth-{name}"},
                {"name": "eth0", "sandbox": str(self.node.netns(name))}]})
        p = subprocess.run([plugin], input=json.dumps(conf), text=True,
                           capture_output=True, timeout=30, env={
                               "CNI_COMMAND": command, "CNI_CONTAINERID": name,
                               "CNI_NETNS": str(self.node.netns(name)),
                               "CNI_IFNAME": "eth0", "CNI_PATH": "/usr/lib/cni"})
        if p.returncode:
            raise AssertionError(p.stdout + p.stderr)

    def check(self, name):
        """The configuration of CHECK has the limits that the pod was made with."""
        self.call(PLUGIN, "CHECK", name, type="natra", runtimeConfig={
            "bandwidth": {"ingressRate": 10000000}})

    def api_server(self):
        """An API server, and the options with which the agent follows it."""
        if not has_live():
            self.skipTest("built without libcurl")
        api = ApiServer()
        self.addCleanup(api.close)
        (self.node.root / "token").write_text("secret")
        return api, ("--node", "n", "--api-server", api.url, "--token-file",
                     str(self.node.root / "token"), "--ca-file", "")

    def edits_are_read(self, api, agent, rate):
        """Edit pod b, which gets this rate and then one more (Mbit/s), until the agent has
        read what was edited before. A job reads its edits in any order, so the second
        edit comes after all that the first one's job has read. Return the last rate."""
        for mbit in (rate, rate + 1):
            api.put("b", {IN: f"{mbit}M"})
            wait_until(lambda wanted=mbit * 10**6:
                       self.limits().get("net/b/eth0") == wanted,
                       lambda: f"{self.limits()}\n{agent.log()}", 20)
        return rate + 1

    def process_of(self, name):
        """Start a process in a pod, by which natra finds the pod's namespace."""
        p = subprocess.Popen(["nsenter", f"--net={self.node.netns(name)}", "sleep", "600"])
        self.addCleanup(p.wait)
        self.addCleanup(p.kill)


def main():
    if os.geteuid() != 0:
        print("needs root")
        sys.exit(77)
    if "NATRA_AGENT_UNSHARED" not in os.environ:
        os.environ["NATRA_AGENT_UNSHARED"] = "1"
        os.execvp("unshare", [
            "unshare", "--net", "--mount", "--pid", "--fork", "--kill-child",
            "--mount-proc", sys.executable, os.path.abspath(sys.argv[0]), *sys.argv[1:]])
    run("ip", "link", "set", "lo", "up")
    unittest.main()
