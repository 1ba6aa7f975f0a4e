#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""natra-agent gives natra's programs back the place on a hook that another agent has taken, and
stops where the other one does not. Needs root; all is in namespaces and on a bpffs of the test's
own. With -v each test prints how long it took, or what it cost."""
import fcntl
import json
import os
import re
import resource
import shutil
import socket
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../harness/python")
import bpfsys
import kernel_case
from agent import cpu_s
from kernel_case import NATRACTL, KernelCase, run
from podnode import wait_until

DEV = "veth-a"
HOOKS = ("ingress", "egress")
ROUNDS = 5
FIGHT_S = 10
# All hooks are looked at after half of this.
PERIOD_S = 20


class Hooks(KernelCase):
    def setUp(self):
        super().setUp()
        self.pod("a", None)
        self.process_of("a")
        fd = bpfsys.load([(0xb7, 0, 0, 0), (0x95, 0, 0, 0)], b"")
        bpfsys.pin(fd, f"{self.bpffs}/handle_ingress")
        os.close(fd)

    def attach(self, mode, ifname="eth0"):
        run(NATRACTL, "--bpffs", str(self.bpffs), "attach", ifname, "--netns",
            str(self.node.netns("a")), "--id", "net/a/eth0", "--attach-mode", mode,
            "--ingress-rate", "10M", "--egress-rate", "10M")

    def watched(self):
        agent = self.agent()
        agent.wait_ready()
        # The first look is done.
        time.sleep(0.5)
        return agent

    def first(self):
        """Return whose the first programs of the hooks are: natra's or others'."""
        hooks = json.loads(run(NATRACTL, "--bpffs", str(self.bpffs), "--json", "show",
                               "net/a/eth0"))["hooks"]
        return [next((h["is_ours"] for h in hooks if h["hook_side"] == side), None)
                for side in HOOKS]

    def back(self, agent, what, begin, repairs=0):
        """Wait until natra is first again after so many repairs, and print how long that took.
        Return how many repairs there are then: the agent may come between two calls of the
        other one, and repairs once more."""
        wait_until(lambda: self.first() == [True, True], agent.log, 20)
        print(f"{what}: back after {(time.monotonic() - begin) * 1e3:.0f} ms", file=sys.stderr)
        agent.wait("somebody took natra's place", repairs + 1)
        wait_until(lambda: self.repairs(agent) > repairs, agent.log, 20)
        self.assertIn("natra_contested_hooks 0\n", agent.get("/metrics")[1])
        return self.repairs(agent)

    def repairs(self, agent):
        return int(re.search(r"^natra_hook_repairs_total (\d+)$", agent.get("/metrics")[1],
                             re.M)[1])

    def aws(self):
        """The calls of AWS's agent at its restart."""
        for hook in HOOKS:
            add = ("tc", "filter", "add", "dev", DEV, hook, "protocol", "all", "prio", "1",
                   "handle", "1", "bpf", "direct-action", "object-pinned",
                   f"{self.bpffs}/handle_ingress")
            if subprocess.run(add, stderr=subprocess.DEVNULL, check=False).returncode:
                run("tc", "filter", "del", "dev", DEV, hook, "protocol", "all", "prio", "1",
                    "handle", "1", "bpf")
                run(*add)

    def test_aws_restarts(self):
        self.attach("clsact-hostside")
        agent = self.watched()
        repairs = 0
        for _ in range(2):
            begin = time.monotonic()
            self.aws()
            repairs = self.back(agent, "aws restarts", begin, repairs)

    def test_removed(self):
        """Filters go when Cilium makes an endpoint's programs anew, and the qdisc by Felix,
        where natra judges ingress of a pod-side mode as well."""
        filters = [["filter", "del", "dev", DEV, hook] for hook in HOOKS]
        qdisc = [["qdisc", "del", "dev", DEV, "clsact"]]
        for mode, calls in (("clsact-hostside", filters), ("clsact-hostside", qdisc),
                            ("clsact-podside", qdisc)):
            with self.subTest(mode=mode, calls=calls):
                self.attach(mode)
                agent = self.watched()
                begin = time.monotonic()
                for words in calls:
                    run("tc", *words)
                self.back(agent, f"{mode}: {calls[0][0]} removed", begin)
                agent.stop()

    def test_link_in_front(self):
        """The kernel does not tell of links, and it tells of others' filters all the time."""
        if not json.loads(run(NATRACTL, "--json", "probe"))["tcx"]:
            self.skipTest("no TCX")
        self.attach("tcx-hostside")
        agent = self.watched()
        begin = time.monotonic()
        fd = bpfsys.load_pass()
        links = [bpfsys.tcx_link(fd, socket.if_nametoindex(DEV), kind,
                                 bpfsys.BEFORE)
                 for kind in (bpfsys.TCX_INGRESS, bpfsys.TCX_EGRESS)]
        self.change_others(PERIOD_S, lambda: self.first() == [True, True])
        self.assertEqual(self.first(), [True, True])
        self.back(agent, "TCX in front", begin)
        for link in (*links, fd):
            os.close(link)

    def test_pod_side_is_left_alone(self):
        """What a pod does to its own interface is its own doing."""
        self.attach("clsact-podside")
        agent = self.watched()
        for verb in "del", "add", "del":
            run("nsenter", f"--net={self.node.netns('a')}", "tc", "qdisc", verb, "dev", "eth0",
                "clsact")
            self.stir()
            time.sleep(0.5)
        self.assertEqual(agent.count("took natra's place"), 0)

    def test_pod_side_has_the_name_of_the_host_side(self):
        """A pod may name its interface as it likes."""
        enter = "nsenter", f"--net={self.node.netns('a')}"
        run(*enter, "ip", "link", "set", "eth0", "name", DEV)
        self.attach("clsact-podside", DEV)
        agent = self.watched()
        for handle in range(1, 4):
            run(*enter, "tc", "filter", "add", "dev", DEV, "egress", "protocol", "all",
                "prio", "1", "handle", str(handle), "bpf", "direct-action", "object-pinned",
                f"{self.bpffs}/handle_ingress")
            self.stir()
            time.sleep(0.7)
        self.assertEqual(agent.count("natra's place"), 0, agent.log())
        self.assertIn("natra_contested_hooks 0\n", agent.get("/metrics")[1])

    def stir(self):
        """Change something on the host side that is nothing of natra's."""
        for verb in "add", "del":
            run("tc", "filter", verb, "dev", DEV, "egress", "prio", "7", "protocol", "ip",
                "u32", "match", "u32", "0", "0", "flowid", "1:1")

    def test_pod_deletes_its_interface(self):
        """Without TCX the kernel lists no filters on what is gone, and no error."""
        self.attach("clsact-podside")
        agent = self.watched()
        run("nsenter", f"--net={self.node.netns('a')}", "ip", "link", "del", "eth0")
        time.sleep(12)
        self.assertEqual(agent.count("natra's place"), 0, agent.log())
        self.assertEqual(agent.count("cannot be put back"), 0, agent.log())
        self.assertIn("natra_contested_hooks 0\n", agent.get("/metrics")[1])

    def test_pod_moves_its_interface_away(self):
        """Then the host side cannot be mended, but it is not left alone silently."""
        self.attach("clsact-podside")
        agent = self.watched()
        away = subprocess.Popen(["unshare", "--net", "sleep", "60"])
        self.addCleanup(away.wait)
        self.addCleanup(away.kill)
        own = os.readlink("/proc/self/ns/net")
        wait_until(lambda: os.readlink(f"/proc/{away.pid}/ns/net") != own, agent.log, 10)
        run("nsenter", f"--net={self.node.netns('a')}", "ip", "link", "set", "eth0", "netns",
            str(away.pid))
        run("tc", "qdisc", "del", "dev", DEV, "clsact")
        agent.wait(f"cannot be put back on '{DEV}'", timeout=20)

    def test_del_comes_first(self):
        """The attachment goes while its place is being given back."""
        self.attach("clsact-hostside")
        agent = self.watched()
        directory = next(p for p in self.bpffs.rglob("*") if re.fullmatch("[0-9a-f]{32}", p.name))
        fd = os.open(directory, os.O_RDONLY)
        self.addCleanup(os.close, fd)
        fcntl.flock(fd, fcntl.LOCK_EX)
        run("tc", "qdisc", "del", "dev", DEV, "clsact")
        time.sleep(0.5)
        shutil.rmtree(directory)
        fcntl.flock(fd, fcntl.LOCK_UN)
        time.sleep(2)
        self.assertEqual(agent.count("cannot be put back"), 0, agent.log())

    def test_changes_that_leave_natra_its_place(self):
        """Another agent that changes its filters all the time is looked at ever more rarely.
        Each job is a process, and the namespace numbers them."""
        self.attach("clsact-hostside")
        agent = self.watched()

        def last_pid():
            with subprocess.Popen(["true"]) as p:
                return p.pid
        with subprocess.Popen(["tc", "-batch", "-"], stdin=subprocess.PIPE, text=True) as tc:
            before = last_pid()
            end = time.monotonic() + FIGHT_S
            while time.monotonic() < end:
                for verb in "add", "del":
                    tc.stdin.write(f"filter {verb} dev {DEV} egress prio 7 protocol ip u32"
                                   " match u32 0 0 flowid 1:1\n")
                tc.stdin.flush()
                time.sleep(0.05)
            jobs = last_pid() - before - 1
            tc.stdin.close()
        print(f"{jobs} jobs in {FIGHT_S} s", file=sys.stderr)
        self.assertLess(jobs, 15)
        self.assertEqual(agent.count("natra's place"), 0, agent.log())

    def cpu_s(self, agent):
        """The time of the agent and of its jobs that have ended, and that of the other one's
        calls."""
        calls = resource.getrusage(resource.RUSAGE_CHILDREN)
        return sum(cpu_s(agent.process.pid)), calls.ru_utime + calls.ru_stime

    def costs_little(self, agent, what, do):
        """What another one does costs natra little of what it costs the other one, on any
        machine."""
        agent_s, calls_s = self.cpu_s(agent)
        do()
        after_s = self.cpu_s(agent)
        agent_s, calls_s = after_s[0] - agent_s, after_s[1] - calls_s
        print(f"CPU of {what}: {agent_s:.2f} s, and {calls_s:.2f} s of the other one's calls",
              file=sys.stderr)
        self.assertLess(agent_s, calls_s / 5)

    def test_fight(self):
        """The other agent answers at once, each time."""
        self.attach("clsact-hostside")
        agent = self.watched()
        ends = threading.Event()

        def fight():
            while not ends.wait(0.05):
                self.aws()
        other = threading.Thread(target=fight)
        begin = time.monotonic()
        other.start()
        try:
            before = sum(self.cpu_s(agent))
            line = agent.wait("takes natra's place on 'veth-a' each time", timeout=60)
            print(f"gives up after {time.monotonic() - begin:.1f} s, and "
                  f"{sum(self.cpu_s(agent)) - before:.2f} s of CPU of both", file=sys.stderr)
            self.assertIn('level=error', line)
            # A round is no repair if the other one comes while natra is put back.
            took = self.repairs(agent)
            self.assertIn(took, range(1, ROUNDS + 1))
            self.assertIn("natra_contested_hooks 1\n", agent.get("/metrics")[1])
            self.costs_little(agent, f"{FIGHT_S} s of a fight that natra has given up",
                              lambda: time.sleep(FIGHT_S))
            self.assertEqual(self.repairs(agent), took)
            self.assertEqual(agent.count("each time"), 1)
        finally:
            ends.set()
            other.join()

    def change_others(self, seconds, is_over=lambda: False):
        """Change filters where natra has none, for so long at most."""
        run("ip", "link", "add", "other0", "type", "veth", "peer", "name", "other1")
        self.addCleanup(run, "ip", "link", "del", "other0")
        run("tc", "qdisc", "add", "dev", "other0", "clsact")
        end = time.monotonic() + seconds
        while time.monotonic() < end and not is_over():
            for verb in "add", "del":
                subprocess.run(["tc", "filter", verb, "dev", "other0", "ingress", "prio", "7",
                                "protocol", "ip", "u32", "match", "u32", "0", "0", "flowid",
                                "1:1"], check=False, stderr=subprocess.DEVNULL)

    def test_others_filters(self):
        """Filters of others where natra has none are no work."""
        self.attach("clsact-hostside")
        agent = self.watched()
        self.costs_little(agent, f"{FIGHT_S} s of others' filters",
                          lambda: self.change_others(FIGHT_S))
        self.assertEqual(agent.count("took natra's place"), 0)


if __name__ == "__main__":
    kernel_case.main()
