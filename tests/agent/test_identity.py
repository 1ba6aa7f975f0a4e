#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""natra-agent limits the interface that the runtime made, or none, whatever processes of the
pod have done to it since. Needs root; all is in namespaces and on a bpffs of the test's own."""
import json
import os
import re
import subprocess

import kernel_case
from agent import AGENT, Agent
from kernel_case import IN, NATRACTL, KernelCase, run
from podnode import wait_until

OUT = "kubernetes.io/egress-bandwidth"
ADDRESS = "10.9.0.7"
# No dummy: not every kernel has them.
DECOY = "type veth peer name nobody"


class Identity(KernelCase):
    def inside(self, *commands):
        """Run commands of ip in pod a."""
        for command in commands:
            run("nsenter", f"--net={self.node.netns('a')}", "ip", *command.split())

    def link(self):
        return json.loads(run("nsenter", f"--net={self.node.netns('a')}", "ip", "-j",
                              "link", "show", "eth0"))[0]

    def made(self, host=None, mac=False, address=False, netns=None):
        """Pod a, of whose interface the cached result has these."""
        self.pod("a", 10000000)
        self.process_of("a")
        self.inside(f"addr add {ADDRESS}/24 dev eth0", "link set eth0 up")
        path = self.node.result("net-a-eth0")
        result = json.loads(path.read_text())
        interfaces = result["result"]["interfaces"]
        interfaces[0]["name"] = host or "no-such"
        if mac:
            interfaces[1]["mac"] = self.link()["address"]
        if address:
            result["result"]["ips"] = [{"address": f"{ADDRESS}/24", "interface": 1}]
        if netns:
            result["netns"] = netns
        path.write_text(json.dumps(result))

    def programs(self, ifname):
        shown = run("nsenter", f"--net={self.node.netns('a')}", "bpftool", "net", "show",
                    "dev", ifname)
        return len(re.findall("natra_", shown))

    def limits_only(self, real, decoy="eth0"):
        self.agent().wait("adopted=1")
        self.assertEqual((self.programs(real), self.programs(decoy)), (1, 0))
        run(NATRACTL, "--bpffs", str(self.bpffs), "check", "net/a/eth0")

    def limits_none(self, *words):
        agent = self.agent()
        agent.wait("failed=1")
        line = agent.wait("a running pod stays as it is")
        for word in words:
            self.assertIn(word, line)
        self.assertEqual(self.limits(), {})
        self.assertIn("natra_failed_pods 1\n", agent.get("/metrics")[1])

    def rename(self, *decoy):
        self.inside("link set eth0 down", "link set eth0 name wan0 up", *decoy)

    def replace_interface(self):
        """eth0 moves to a namespace of the pod's own, and something else gets its place."""
        index = self.link()["ifindex"]
        inner = subprocess.Popen(["unshare", "--net", "sh", "-c", "echo; exec sleep 600"],
                                 stdout=subprocess.PIPE)
        for clean in inner.stdout.close, inner.wait, inner.kill:
            self.addCleanup(clean)
        inner.stdout.readline()
        self.inside(f"link set eth0 netns {inner.pid}",
                    f"link add eth0 index {index} {DECOY}")

    def test_name_is_taken(self):
        self.made("veth-a")
        self.rename(f"link add eth0 {DECOY}")
        self.limits_only("wan0")

    def test_virtual_machine(self):
        """As KubeVirt does it: the guest has the MAC and the address, a port of a bridge the
        packets, and the name eth0 a stand-in. See tests/cni/kubevirt.py."""
        self.made("veth-a", mac=True, address=True)
        mac = self.link()["address"]
        self.rename("addr flush dev wan0", "link set wan0 address 02:00:00:00:00:07",
                    "link add br0 type bridge", "link set wan0 master br0",
                    f"link add eth0 address {mac} {DECOY}", f"addr add {ADDRESS}/24 dev eth0")
        self.limits_only("wan0")

    def test_virtual_machine_without_its_other_end(self):
        """The stand-in, or what a process of the pod has made, is of any kind."""
        for name, decoy in (("eth0", "link add eth0 " + DECOY), ("lo", "link set lo up"),
                            ("eth0", "tuntap add eth0 mode tap")):
            with self.subTest(decoy):
                self.made(mac=True, address=True)
                mac = self.link()["address"]
                self.rename("link set wan0 address 02:00:00:00:00:07", decoy,
                            f"link set {name} address {mac}")
                self.limits_none(name, "does not lead out of the pod")
                self.doCleanups()
                self.setUp()

    def add_macvlan(self, parent, *wrapper, name="eth0", mac=None):
        """Make one above an interface of the node, and move it into pod a. Return its MAC."""
        mac = mac or f"02:00:00:00:01:{len(name):02x}"
        p = subprocess.run([*wrapper, "ip", "link", "add", "link", parent, "name", name,
                            "address", mac, "type", "macvlan"], capture_output=True)
        if b"Unknown device type" in p.stderr:
            self.skipTest("the kernel has no macvlan")
        self.assertEqual(p.returncode, 0, p.stderr)
        if not wrapper:
            with open(self.node.netns("a")) as ns:
                run("ip", "link", "set", name, "netns", f"/proc/{os.getpid()}/fd/{ns.fileno()}")
        return mac

    def uplink(self):
        run("ip", "link", "add", "up0", "type", "veth", "peer", "name", "up1")
        self.addCleanup(run, "ip", "link", "del", "up0")

    def test_macvlan(self):
        """One of the node's leads out of the pod."""
        self.made(mac=True)
        mac = self.link()["address"]
        self.inside("link del eth0")
        self.uplink()
        self.add_macvlan("up0", mac=mac)
        self.limits_only("eth0", "lo")

    def test_macvlan_above_its_own(self):
        self.made(mac=True)
        mac = self.link()["address"]
        self.rename("link set wan0 address 02:00:00:00:00:07")
        self.add_macvlan("wan0", "nsenter", f"--net={self.node.netns('a')}", mac=mac)
        self.limits_none("does not lead out")

    def test_macvlan_in_its_place(self):
        """With privileges on the node a process of the pod makes one that leads there."""
        self.made(mac=True)
        mac = self.link()["address"]
        self.rename("link set wan0 address 02:00:00:00:00:07")
        self.uplink()
        self.add_macvlan("up0", mac=mac)
        self.limits_none("'eth0' and 'wan0' lead out of the pod")

    def test_macvlan_of_multus(self):
        """Another network's result names it, so the pod's own interface is known."""
        self.made(mac=True)
        self.uplink()
        mac = self.add_macvlan("up0", name="net1")
        self.limits_none("'eth0' and 'net1' lead out of the pod")
        result = json.loads(self.node.result("net-a-eth0").read_text())
        result["ifName"] = "net1"
        result["result"]["interfaces"] = [{"name": "net1", "mac": mac.upper(), "sandbox": str(
            self.node.netns("a"))}]
        path = self.node.root / "var/lib/cni/multus/results/net-a-net1"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(result))
        self.agent().wait("adopted=2")
        self.assertEqual((self.programs("eth0"), self.programs("net1")), (1, 1))

    def test_unnamed(self):
        """A second way out of a pod with limits is counted."""
        self.made("veth-a")
        self.uplink()
        with open(self.node.netns("a")) as ns:
            run("ip", "link", "set", "up1", "netns", f"/proc/{os.getpid()}/fd/{ns.fileno()}",
                "name", "net7")
        agent = self.agent("--period", "1s")
        agent.wait("adopted=1")

        def counted():
            return re.search("\nnatra_unnamed_interfaces (.)", agent.get("/metrics")[1])[1]
        wait_until(lambda: counted() == "1", agent.log)
        path = self.node.result("net-a-eth0")
        result = json.loads(path.read_text())
        result["result"]["interfaces"].append({"name": "up0"})
        path.write_text(json.dumps(result))
        wait_until(lambda: counted() == "0", agent.log)
        # Nor is one counted that natra limits, whoever has made it.
        result["result"]["interfaces"].pop()
        path.write_text(json.dumps(result))
        wait_until(lambda: counted() == "1", agent.log)
        run(NATRACTL, "--bpffs", str(self.bpffs), "attach", "--netns",
            str(self.node.netns("a")), "--id", "other", "--ingress-rate", "1M", "net7")
        wait_until(lambda: counted() == "0", agent.log)
        run(NATRACTL, "--bpffs", str(self.bpffs), "detach", "other")
        wait_until(lambda: counted() == "1", agent.log)
        # Where there are too many to look at, it is not hidden among them.
        path.write_text(json.dumps({**result, "result": {
            **result["result"], "interfaces": [*result["result"]["interfaces"],
                                               {"name": "up0"}]}}))
        wait_until(lambda: counted() == "0", agent.log)
        subprocess.run(["nsenter", f"--net={self.node.netns('a')}", "ip", "-batch", "-"],
                       input="\n".join(f"link add a{n} type veth peer name b{n}"
                                       for n in range(600)), text=True, check=True)
        wait_until(lambda: counted() == "1", agent.log)

    def test_without_a_kind(self):
        """A process of the pod can make interfaces that have none, as devices have none."""
        self.made(mac=True)
        mac = self.link()["address"]
        subprocess.run(["modprobe", "l2tp_eth"], capture_output=True)
        self.rename("link set wan0 address 02:00:00:00:00:07", "link set lo up")
        tunnel = "l2tp add tunnel tunnel_id 1 peer_tunnel_id 1 encap ip local {0} remote {0}"
        try:
            self.inside(tunnel.format("127.0.0.1"),
                        "l2tp add session name eth0 tunnel_id 1 session_id 1 peer_session_id 1")
        except AssertionError as e:
            self.skipTest(f"no l2tp: {e}")
        self.inside(f"link set eth0 address {mac}")
        self.limits_none("does not lead out")

    def test_many(self):
        """What a pod makes without bound is not read without bound."""
        for more, batch in ((
                {"mac": True}, [f"link add a{n} type veth peer name b{n}" for n in range(600)]), (
                {"address": True}, [f"addr add 10.8.{n // 250}.{n % 250}/32 dev lo"
                                    for n in range(1100)])):
            with self.subTest(**more):
                self.made(**more)
                subprocess.run(["nsenter", f"--net={self.node.netns('a')}", "ip", "-batch", "-"],
                               input="\n".join(batch), text=True, check=True)
                self.limits_none("has more than 1024 interfaces or addresses")
                self.doCleanups()
                self.setUp()

    def test_mac_or_address(self):
        for more in {"mac": True}, {"address": True}:
            with self.subTest(**more):
                self.made(**more)
                self.rename(f"link add eth0 {DECOY}")
                self.limits_only("wan0")
                self.doCleanups()
                self.setUp()

    def test_nobody_has_the_mac(self):
        self.made(mac=True)
        mac = self.link()["address"]
        self.inside("link set eth0 down", "link set eth0 address 02:00:00:00:00:07")
        self.limits_none("MAC", mac)

    def test_moved_away(self):
        self.made("veth-a")
        self.replace_interface()
        self.limits_none("other end of 'veth-a'")

    def node_is_left_alone(self, pid, *wrapper):
        """The path of a namespace leads to the node's, whose eth0 is no pod's."""
        (self.node.root / "proc").mkdir()
        run("mount", "--bind", "/proc", str(self.node.root / "proc"))
        self.addCleanup(run, "umount", str(self.node.root / "proc"))
        run("ip", "link", "add", "eth0", "type", "veth", "peer", "name", "uplink")
        self.addCleanup(run, "ip", "link", "del", "eth0")
        self.made("uplink", netns=f"/proc/{pid}/ns/net")
        program = self.node.root / "agent"
        program.write_text(f"#!/bin/sh\nexec {' '.join(wrapper)} {AGENT} \"$@\"\n")
        program.chmod(0o755)
        with Agent("--no-install", "--root", str(self.node.root), "--bpffs",
                   str(self.bpffs), listen="", program=str(program)) as agent:
            agent.wait("failed=1")
            self.assertIn("is the node's own", agent.wait("a running pod stays as it is"))
        self.assertEqual(self.limits(), {})
        self.assertNotIn("natra_", run("bpftool", "net", "show", "dev", "eth0"))

    def test_number_of_a_process_is_used_again(self):
        other = subprocess.Popen(["sleep", "600"])
        self.addCleanup(other.wait)
        self.addCleanup(other.kill)
        self.node_is_left_alone(other.pid)

    def test_agent_has_a_namespace_of_its_own(self):
        self.node_is_left_alone(1, "unshare", "--net")

    def test_edit_of_a_moved_interface(self):
        """The pod keeps its limit, and all who look say so."""
        self.made("veth-a")
        api, options = self.api_server()
        api.put("a", {IN: "10M"})
        agent = self.agent(*options)
        wait_until(lambda: self.limits() == {"net/a/eth0": 10000000}, agent.log)
        self.replace_interface()
        api.put("a", {IN: "10M", OUT: "5M"})
        wait_until(lambda: api.events, agent.log)
        self.assertIn("is not the one that has the limits", api.events[-1][1]["message"])
        self.assertIn("natra_refused_edits_total 1\n", agent.get("/metrics")[1])
        self.assertEqual(self.programs("eth0"), 0)
        self.assertEqual(self.limits(), {"net/a/eth0": 10000000})
        p = subprocess.run([NATRACTL, "--bpffs", str(self.bpffs), "check", "net/a/eth0"],
                           text=True, capture_output=True)
        self.assertEqual(p.returncode, 3)
        self.assertIn("is not the one that has the limits", p.stderr)


if __name__ == "__main__":
    kernel_case.main()
