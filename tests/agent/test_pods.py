#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""natra-agent and pods that run already, by libcni's cache, with a library that only
records its calls."""
import itertools
import json
import os
import signal
import time
import unittest

from podnode import FakeNode, natra, wait_until


class Case(unittest.TestCase):
    def setUp(self):
        self.node = FakeNode()
        self.addCleanup(self.node.close)

    def run_agent(self, *options):
        """Let the agent look once."""
        with self.node.agent("--no-install", *options) as agent:
            agent.wait("part=pods")
            agent.stop()
            return agent.log()

    def calls(self, *names):
        return [c for c in self.node.calls() if c.split()[0] in names
                and "preload" not in c]


IN_THE_WAY = "16 leftovers ingress_mode: pace on 'veth1': qdisc 'tbf' (handle 1:) is installed"
TAKE_OVER = "attach drain_leftovers remove_leftovers"


class Adopt(Case):
    def test_preload(self):
        """gc removes idle programs, so they are loaded after it."""
        self.run_agent()
        calls = self.node.calls()
        self.assertEqual([c.split()[0] for c in calls],
                         ["gc", "preload"])
        self.assertIn("id=natra-agent-preload ifname=lo ", calls[1])

    def test_preload_by_the_element_of_others(self):
        """Where natra is in a list already, its element says what pods can have."""
        net = self.node.root / "etc/cni/net.d"
        for path in (net, self.node.root / "opt/cni/bin"):
            path.mkdir(parents=True)

        def write(rate):
            (net / "10-it.conflist").write_text(json.dumps({
                "cniVersion": "1.0.0", "name": "it", "plugins": [
                    {"type": "ptp"}, {"type": "natra", "ingressRate": rate}]}))
        write(1000000)
        with self.node.agent("--plugin", os.environ["NATRA_CNI"], "--runtime-version",
                             "containerd://1.6.20") as agent:
            for rate in (1000000, 2000000):
                write(rate)
                wait_until(lambda r=rate: any(
                    f"preload ifname=lo in={r} out=0 " in call
                    for call in self.node.calls()),
                    lambda: f"{self.node.calls()}\n{agent.log()}")

    def test_pod_without_natra(self):
        self.node.pod("a", {"ingressRate": 10000000,
                            "ingressBurst": 4294967295, "egressRate": 0,
                            "egressBurst": 0}, ["ptp"])
        log = self.run_agent()
        self.assertEqual(self.calls("attach"), [
            "attach id=net/a/eth0 ifname=eth0 network=net label=shop/pod-a"
            " in=10000000 out=0 burst=0 horizon=0 pace=0"
            " packets=0,0 connections=0,0"])
        self.assertIn("limited a running pod", log)
        self.assertIn("adopted=1", log)

    def test_loopback(self):
        """containerd keeps a result of it, with the rates of the pod."""
        path = self.node.pod("a", {"ingressRate": 10000000}, ["loopback"])
        with open(path, encoding="utf-8") as f:
            text = f.read().replace('"eth0"', '"lo"')
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        self.run_agent()
        self.assertEqual(self.calls("attach"), [])

    def test_no_limits(self):
        self.node.pod("a", None, ["ptp"])
        self.node.pod("b", {"ingressRate": 0, "egressRate": 0}, ["ptp"])
        log = self.run_agent()
        self.assertEqual(self.calls("attach", "detach"), [])
        self.assertNotIn("failed", log)

    def test_static_rate_of_bandwidth(self):
        """The limit in the list holds as it did with upstream's plugin."""
        self.node.pod("a", None, ["ptp", {
            "type": "bandwidth", "ingressRate": 5000000,
            "ingressBurst": 8000000}])
        self.run_agent()
        self.assertIn("in=5000000 out=0 burst=8000000",
                      self.calls("attach")[0])

    def test_natra_in_list(self):
        """The list that the pod was made with counts, not the present one."""
        self.node.pod("a", {"ingressRate": 1000000}, ["ptp", {
            "type": "natra", "capabilities": {"bandwidth": True},
            "horizon": "1s"}])
        self.run_agent("--conf", "horizon=3s")
        self.assertIn("horizon=1000000000", self.calls("attach")[0])

    def test_conf(self):
        self.node.pod("a", {"ingressRate": 1000000}, ["ptp"])
        self.run_agent("--conf", "horizon=3s")
        self.assertIn("horizon=3000000000", self.calls("attach")[0])

    def test_annotations(self):
        self.node.pod("a", {"ingressRate": 1000000}, ["ptp"],
                      {"natra.io/ingress-burst": "8k"})
        self.run_agent()
        self.assertIn("burst=0", self.calls("attach")[0])
        self.node.forget()
        self.run_agent("--conf", 'allowAnnotations=["ingress-burst"]')
        self.assertIn("burst=8000", self.calls("attach")[0])

    def test_limited_already(self):
        self.node.pod("a", {"ingressRate": 1000000}, ["ptp"])
        self.node.attached("net/a/eth0", 777, 0)
        self.run_agent()
        self.assertEqual(self.calls("attach", "upgrade"), [])

    def test_no_adopt(self):
        """Without a look at the results, nothing is said of what it would find."""
        self.node.pod("a", {"ingressRate": 1000000}, ["ptp"])
        for options, is_said in ((["--no-adopt"], False), ([], True)):
            with self.node.agent("--no-install", *options) as agent:
                agent.wait("part=pods")
                body = agent.get("/metrics")[1]
            for name in "unnamed_interfaces", "unreadable_results":
                self.assertEqual(f"\nnatra_{name} 0\n" in body, is_said, body)
            self.assertIn("\nnatra_failed_pods 0\n", body)
            self.assertEqual(len(self.calls("attach")), is_said)

    def test_old_cache_without_netns(self):
        self.node.pod("a", {"ingressRate": 1000000}, ["ptp"], netns_key=False)
        self.run_agent()
        self.assertEqual(len(self.calls("attach")), 1)

    def test_pod_has_ended(self):
        self.node.pod("a", {"ingressRate": 1000000}, ["ptp"])
        os.unlink(self.node.netns("a"))
        log = self.run_agent()
        self.assertEqual(self.calls("attach"), [])
        self.assertNotIn("stays as it is", log)

    def member(self, bandwidth):
        self.node.pod("a", bandwidth, ["ptp", {
            "type": "natra", "capabilities": {"bandwidth": True},
            "group": {"name": "{namespace}"}}])

    def test_no_group_is_said_once(self):
        """A pod that gets limits has its reason in the log, and no other one."""
        self.member({"ingressRate": 1000000})
        self.node.pod("b", None, ["ptp", {"type": "natra", "group": {"name": "{namespace}"}}])
        log = self.run_agent()
        self.assertEqual(log.count("there is no group 'shop'"), 1, log)
        self.assertNotIn("no group", self.run_agent())

    def test_capabilities_that_are_a_list(self):
        self.node.pod("a", {"ingressRate": 1000000}, ["ptp", {
            "type": "natra", "capabilities": ["bandwidth", True], "egressRate": 5000000}])
        self.run_agent()
        self.assertIn("in=0 out=5000000", self.calls("attach")[0])

    def test_joined_is_said_of_pods_that_were_attached(self):
        self.member({"ingressRate": 1000000})
        self.node.attached("net/a/eth0", 1000000, 0)
        self.node.touch("group-shop")
        self.node.leftovers("eth0")
        self.assertNotIn("joined", self.run_agent())
        self.assertEqual(self.calls("attach"), [])
        self.run_agent("--no-adopt")
        self.assertEqual(self.calls("attach"), [])
        self.assertIn("a running pod has joined its group",
                      self.run_agent("--replace-bandwidth"))

    def test_joins_with_a_wrong_annotation(self):
        """No pod gets out of a group that is made later by an annotation that is wrong."""
        self.node.pod("a", {"ingressRate": 1000000}, ["ptp", natra(
            allowAnnotations=["ingress-burst"], group={"name": "{namespace}"})], {
                "natra.io/ingress-burst": "much"})
        self.node.attached("net/a/eth0", 1000000, 0)
        self.node.touch("group-shop")
        log = self.run_agent()
        self.assertIn("a running pod has joined its group", log)
        self.assertNotIn("failed", log)
        self.assertIn("in=1000000 out=0 burst=0", self.calls("attach")[0])

    def test_groups_by_annotations_that_limits_follow(self):
        """What such an annotation was at the pod's start does not count."""
        for name, joins in (("example.org/team", True), ("natra.io/team", False),
                            ("qos.projectcalico.org/team", False),
                            ("kubernetes.io/egress-bandwidth", False)):
            with self.subTest(name=name):
                self.node.forget()
                self.node.pod("a", {"ingressRate": 1000000}, ["ptp", natra(group={
                    "acrossNamespaces": True, "name": "%s{annotation:%s}" % (
                        "{annotation:x}" * (not joins), name)})],
                    {name: "shop", "x": "s"} if joins else {name: "hop", "x": "s"})
                self.node.attached("net/a/eth0", 1000000, 0)
                self.node.touch("group-shop")
                self.run_agent()
                self.assertEqual(len(self.calls("attach")), joins)

    # Each row has what upstream's plugin has left, natra's own limits, the call that fails,
    # natra's steps when it is asked to replace, a word of the log, and the limits in the end.
    REPLACED = (
        # natra is attached first, which shows that it can be.
        ({"leftovers": ""}, None, "", "attach remove_leftovers", "replaced=1", (1000000, 0)),
        # This is what a killed agent has begun.
        ({"leftovers": ""}, (2000000, 0), "", "remove_leftovers", "replaced=1", (2000000, 0)),
        # A direction without a limit of natra's keeps upstream's.
        ({"leftovers": "", "ifb": True}, (0, 2000000), "", "", "", (0, 2000000)),
        ({"leftovers": "", "ifb": True}, (2000000, 0), "", "", "", (2000000, 0)),
        ({"leftovers": "", "ifb": True}, (2000000, 2000000), "", "remove_leftovers",
         "replaced=1", (2000000, 2000000)),
        ({"leftovers": "", "ifb": True}, None, "", "attach", "adopted=1", (1000000, 0)),
        ({"leftovers": IN_THE_WAY, "ifb": True}, None, "", "attach", "failed=1", None),
        # Packets that wait pass before upstream's limits go.
        ({"waiting": True}, None, "", TAKE_OVER, "replaced=1", (1000000, 0)),
        ({"waiting": True}, (2000000, 0), "", "drain_leftovers remove_leftovers",
         "replaced=1", (2000000, 0)),
        ({"waiting": True, "leftovers": "", "ifb": True}, None, "", "attach", "adopted=1",
         (1000000, 0)),
        *(({**waiting, "leftovers": IN_THE_WAY}, None, "", TAKE_OVER + " attach",
           "replaced=1", (1000000, 0)) for waiting in ({}, {"waiting": True})),
        ({"waiting": True}, None, "drain_leftovers", TAKE_OVER, "is lost", (1000000, 0)),
        # They are all that limits the pod where natra cannot be attached, so they stay.
        ({"waiting": True, "leftovers": "16 other_id interface 'eth0' is attached as 'x'"}, None,
         "", "attach", "failed=1", None),
        ({"leftovers": "16 locked another process has had '/n' locked for 5000 ms"}, None, "",
         "attach", "failed=1", None),
        ({"leftovers": "16 other_qdisc qdisc 'tbf' (handle 1:) is installed"}, None, "",
         "attach", "failed=1", None),  # in the pod
        ({"leftovers": "95 - this kernel lacks BPF atomic instructions"}, None, "",
         "attach", "failed=1", None),
        ({"leftovers": ""}, None, "preload", "", "", None))

    def test_replaced(self):
        for there, own, fails, steps, word, limits in self.REPLACED:
            with self.subTest(there=there, own=own, fails=fails):
                self.node.forget()
                self.node.pod("a", {"ingressRate": 1000000}, ["ptp", "bandwidth"])
                if own:
                    self.node.attached("net/a/eth0", *own)
                if "leftovers" in there:
                    self.node.leftovers("eth0", there["leftovers"], there.get("ifb"))
                if "waiting" in there:
                    self.node.waiting("a")
                if fails:
                    self.node.fail(fails, 95)
                if word == "replaced=1":
                    # Nothing is done that was not asked for.
                    self.run_agent()
                    self.assertEqual(self.steps(), [])
                log = self.run_agent("--replace-bandwidth")
                self.assertEqual([s for s, _ in self.steps()], steps.split())
                self.assertIn(word, log)
                self.assertEqual("replaced=1" in log, "remove_leftovers" in steps)
                self.assertEqual(self.node.limits("a"), limits)

    STEPS = ("attach", "detach", "drain_leftovers", "remove_leftovers")

    def steps(self):
        return [(c.split()[0], c.split()[1][7:-5]) for c in self.calls(*self.STEPS)]

    def deep(self, *names):
        for name in names:
            self.node.pod(name, {"ingressRate": 1000000}, ["ptp", "bandwidth"])
            self.node.waiting(name)

    def test_waiting(self):
        """What waits passes before upstream's limits go, when others are done."""
        self.deep("a", "c")
        self.node.pod("b", {"ingressRate": 1000000}, ["ptp", "bandwidth"])
        self.node.leftovers("eth0")
        self.assertIn("replaced=3", self.run_agent("--replace-bandwidth"))
        steps = self.steps()
        self.assertEqual(steps[:2], [("attach", "b"), ("remove_leftovers", "b")])
        for name in ("a", "c"):
            self.assertEqual([s for s, n in steps[2:] if n == name],
                             TAKE_OVER.split())
            self.assertEqual(self.node.limits(name), (1000000, 0))

    def test_failures_are_counted_once(self):
        """While queues drain there are two looks at each pod."""
        self.deep("a")
        self.node.pod("b", {"ingressRate": 1000000}, ["ptp", natra(fastPass="no")])
        self.assertIn("replaced=1 upgraded=0 failed=1",
                      self.run_agent("--replace-bandwidth"))

    def test_pod_ends_while_its_queue_drains(self):
        """The limits that came after its DEL are removed."""
        self.deep("a")
        hold = self.node.touch("hold-attach")
        with self.node.agent("--no-install", "--replace-bandwidth") as agent:
            wait_until(lambda: self.calls("attach"), agent.log)
            self.node.result("net-a-eth0").unlink()
            hold.unlink()
            agent.wait("looked at the running pods")
            agent.stop()
        self.assertIsNone(self.node.limits("a"))

    def test_killed_while_replacing(self):
        """natra's limits are on record, those of a pod that natractl alone limits as
        well, and the next agent finishes it."""
        for name, limits in itertools.product(("drain_leftovers", "remove_leftovers"),
                                              ((1000000, 0), (2000000, 0))):
            with self.subTest(name, limits=limits):
                self.node.forget()
                self.deep("a")
                if limits[0] == 2000000:
                    self.node.attached("net/a/eth0", *limits)
                kill = self.node.touch(f"kill-{name}")
                with self.node.agent("--no-install", "--replace-bandwidth") as agent:
                    agent.wait("ended half-way")
                    agent.stop()
                self.assertEqual(self.node.limits("a"), limits)
                self.assertTrue((self.node.state / "waiting+net+a+eth0").exists())
                kill.unlink()
                self.assertIn("replaced=1", self.run_agent("--replace-bandwidth"))
                self.assertEqual(self.node.limits("a"), limits)
                self.assertFalse((self.node.state / "waiting+net+a+eth0").exists())

    def test_many_are_waiting(self):
        """Other jobs get a turn after 20 s; the rest follows at once."""
        self.deep("a", "b", "c")
        self.node.touch("slow-drain_leftovers")
        with self.node.agent("--no-install", "--replace-bandwidth") as agent:
            self.assertIn("replaced=2 upgraded=0 failed=0 later=1",
                          agent.wait("looked at the running pods"))
            self.assertIn("replaced=1", agent.wait("looked at the running pods", 2))
            agent.stop()

    def test_many_are_waiting_and_fail(self):
        """There is no haste where nothing is replaced."""
        self.deep("a", "b", "c")
        self.node.touch("slow-drain_leftovers")
        self.node.fail("remove_leftovers", 1)
        with self.node.agent("--no-install", "--replace-bandwidth") as agent:
            agent.wait("failed=2 later=1")
            time.sleep(1)
            self.assertEqual(agent.count("looked at the running pods"), 1)
            agent.stop()

    def test_failure(self):
        self.node.pod("a", {"ingressRate": 1000000}, ["ptp"])
        self.node.fail("attach", 13)
        log = self.run_agent()
        self.assertIn("a running pod stays as it is", log)
        self.assertIn("failed=1", log)

    def test_what_is_absent(self):
        """A pod that has ended is no failure; that its group or bpffs is gone is one, and
        that its interface has another name since it was found."""
        for error, failed in (("19 -", True), ("2 no_netns", False), ("2 no_group", True),
                              ("2 -", True)):
            with self.subTest(error):
                self.node.forget()
                self.node.pod("a", {"ingressRate": 1000000}, ["ptp"])
                self.node.fail("attach", error)
                self.assertEqual("failed=1" in self.run_agent(), failed)

    def test_limits_unknown(self):
        """The agent leaves a pod alone whose limits it cannot read, but replaces those that
        natra of another ABI has attached."""
        self.node.pod("a", {"ingressRate": 1000000}, ["ptp"])
        self.node.fail("query", 1)
        log = self.run_agent()
        self.assertEqual(self.calls("attach"), [])
        self.assertIn("fake query: Operation not permitted", log)
        self.assertIn("failed=1", log)
        self.node.fail("query", 0)
        self.assertIn("adopted=1", self.run_agent())
        (self.node.state / "other-abi").touch()
        self.assertIn("adopted=1 replaced=0 upgraded=0 failed=0", self.run_agent())
        self.assertEqual(len(self.calls("attach")), 2)

    def test_pod_ends_meanwhile(self):
        """Its limit is removed, but not if the cache merely cannot be read."""
        for gone in True, False:
            with self.subTest(gone=gone):
                self.node.forget()
                path = self.node.pod("a", {"ingressRate": 1000000}, ["ptp"])
                hold = self.node.state / "hold-attach"
                hold.touch()
                with self.node.agent("--no-install") as agent:
                    wait_until(lambda: self.calls("attach"), agent.log)
                    if gone:
                        os.unlink(path)
                    else:
                        os.rename(self.node.results, f"{self.node.results}.old")
                        os.symlink("results", self.node.results)
                    hold.unlink()
                    agent.wait("part=pods")
                self.assertEqual(len(self.calls("detach")), int(gone))

    def test_slow_pod(self):
        """One that takes long does not use up the time of the others, and is tried again by
        itself."""
        for name in "abc":
            self.node.pod(name, {"ingressRate": 1000000}, ["ptp"])
        hold = self.node.touch("hold-net+b+eth0")
        with self.node.agent("--no-install") as agent:
            wait_until(lambda: self.node.limits("a") and self.node.limits("c"), agent.log)
            self.assertIsNone(self.node.limits("b"))
            hold.unlink()
            agent.wait("adopted=3 replaced=0 upgraded=0 failed=0")

    def test_many_slow_pods(self):
        """They do not use up the time of upgrades, and the pods behind them are next, and soon."""
        self.node.attached("net/old/eth0", 777, 0, current=False)
        names = "abcdefghij"
        for name in names:
            self.node.pod(name, {"ingressRate": 1000000}, ["ptp"])
        self.node.touch("slow-attach")
        self.node.fail("attach", 13)

        def tried():
            return {c.split()[1] for c in self.calls("attach")}

        with self.node.agent("--no-install", "--period", "3600s") as agent:
            agent.wait("upgraded=1")
            first = agent.log().split("upgraded=1")[0]
            self.assertLess(first.count("a running pod stays as it is"), len(names))
            wait_until(lambda: len(tried()) == len(names),
                       lambda: f"{tried()}\n{agent.log()}", 40)

    def test_stopped_job_goes_on(self):
        """Pods would wait for the locks that it holds."""
        self.node.pod("a", {"ingressRate": 1000000}, ["ptp"])
        hold = self.node.touch("hold-attach")
        with self.node.agent("--no-install") as agent:
            wait_until(lambda: self.calls("attach"), agent.log)
            with open(f"/proc/{agent.process.pid}/task/{agent.process.pid}/children",
                      encoding="ascii") as children:
                for pid in children.read().split():
                    os.kill(int(pid), signal.SIGSTOP)
            hold.unlink()
            agent.wait("part=pods", timeout=20)

    def test_programs_fail(self):
        self.node.fail("preload", 1)
        with self.node.agent("--no-install", "--period", "1s") as agent:
            agent.wait("part=pods")
            body = agent.wait_ready(False)
            self.assertIn("[-] programs: fake preload: Operation not permitted",
                          body)
            self.node.fail("preload", 0)
            agent.wait_ready(timeout=15)

    def test_garbage(self):
        for n, text in enumerate((
                "", "{", "null", "[]", "{}", "\0", '{"containerId":"a"}',
                '{"containerId":"../x","ifName":"eth0","networkName":"n"}',
                '{"containerId":"a","ifName":"eth0","networkName":"n",'
                '"config":"!!"}', '{"containerId":"a","ifName":"eth0",'
                '"networkName":"n","config":"bnVsbA=="}', "x" * 2000000)):
            self.node.result(f"garbage-{n}").write_text(text)
        os.mkdir(self.node.result("directory"))
        os.mkfifo(self.node.result("fifo"))
        os.symlink("/etc/passwd", self.node.result("link"))
        self.node.pod("z", {"ingressRate": 1000000}, ["ptp"])
        log = self.run_agent()
        self.assertEqual(len(self.calls("attach")), 1)
        self.assertIn("adopted=1", log)

    def test_torn_by_a_loss_of_power(self):
        """Nobody is writing these, so the look does not wait for the end of any."""
        for i in range(3000):
            path = self.node.result(f"net-torn{i}-eth0")
            path.write_text("{" * (i % 2))
            os.utime(path, (1, 1))
        begin = time.monotonic()
        self.run_agent()
        # Each would be waited for 10 ms.
        self.assertLess(time.monotonic() - begin, 20)

    def test_annotations_that_are_a_list(self):
        self.node.pod("a", {"ingressRate": 1000000}, ["ptp", natra()],
                      ["natra.io/fast-pass"])
        self.node.pod("b", {"ingressRate": 1000000}, ["ptp"])
        log = self.run_agent()
        self.assertIn("capabilityArgs.io.kubernetes.cri.pod-annotations: "
                      "[\\\"natra.io/fast-pass\\\"] is not an object", log)
        self.assertIn("adopted=1 replaced=0 upgraded=0 failed=1", log)

    def test_bad_conf_of_one_pod(self):
        self.node.pod("a", {"ingressRate": "many"}, ["ptp"])
        self.node.pod("b", {"ingressRate": 1000000}, ["ptp"])
        log = self.run_agent()
        self.assertIn("is neither a whole number", log)
        self.assertEqual(len(self.calls("attach")), 1)

    def test_upgrade(self):
        self.node.attached("net/a/eth0", 1, 0, current=False)
        self.node.attached("net/b/eth0", 1, 0)
        log = self.run_agent()
        self.assertEqual(self.calls("upgrade"), ["upgrade id=net/a/eth0"])
        self.assertIn("upgraded=1", log)


if __name__ == "__main__":
    unittest.main()
