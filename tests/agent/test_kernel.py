#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""natra-agent with the kernel: it loads programs that stay, limits a running pod, follows
an edit, and leaves limits when it is killed. Needs root; all is in namespaces and on a
bpffs of the test's own."""
import json
import os
import shutil
import time

import kernel_case
from kubelet import Kubelet
from kernel_case import IN, NATRACTL, KernelCase, run
from podnode import wait_until

UPSTREAM = "/usr/lib/cni/bandwidth"


class Kernel(KernelCase):
    def test_programs_stay(self):
        agent = self.agent()
        agent.wait("msg=ready part=programs")
        self.assertEqual(agent.stop(), 0)
        engines = self.engines(self.bpffs)
        self.assertTrue(engines)
        self.assertEqual(self.limits(), {})
        run("ip", "link", "add", "one", "type", "veth", "peer", "name", "one-b")
        run(NATRACTL, "--bpffs", str(self.bpffs), "attach", "one", "--ingress-rate", "10M",
            "--egress-rate", "10M")
        # The attachment uses what was loaded.
        self.assertEqual(engines, self.engines(self.bpffs))

    def engines(self, bpffs):
        """The names of loaded programs, which are made of their options."""
        return {p.name for p in (bpffs / "natra").glob("abi*/engine_*")}

    def needed(self, *attaches):
        """What each of these attaches, with natractl's options, loads on a bpffs where
        nothing is loaded but a group g."""
        bpffs, found = self.node.root / "other", set()
        bpffs.mkdir(exist_ok=True)
        run("ip", "link", "add", "pod", "type", "veth", "peer", "name", "host")
        for words in attaches:
            run("mount", "-t", "bpf", "bpf", str(bpffs))
            try:
                run(NATRACTL, "--bpffs", str(bpffs), "group", "set", "g", "--egress-rate",
                    "1M")
                run(NATRACTL, "--bpffs", str(bpffs), "attach", "pod", "--id", "pod",
                    *words.split())
                found |= self.engines(bpffs)
                run(NATRACTL, "--bpffs", str(bpffs), "detach", "pod")
            finally:
                run("umount", str(bpffs))
        run("ip", "link", "del", "pod")
        return found

    def preloads(self, conf, *attaches):
        """The agent loads what pods with this configuration need, and nothing else."""
        agent = self.agent(*(word for one in conf for word in ("--conf", one)))
        agent.wait("msg=ready part=programs")
        self.assertEqual(agent.stop(), 0)
        self.assertEqual(self.engines(self.bpffs), self.needed(*attaches))
        self.assertEqual(self.groups(), {})
        run("umount", str(self.bpffs))
        run("mount", "-t", "bpf", "bpf", str(self.bpffs))

    def test_loads_what_pods_can_have(self):
        both, one = "--ingress-rate 1M --egress-rate 1M", "--ingress-rate 1M"
        self.preloads([], both, one)
        self.preloads(["attachMode=clsact-hostside"], f"{both} --attach-mode clsact-hostside")
        self.preloads(["edtPacing=off"], f"{both} --edt-pacing off")
        self.preloads(['unshapedSubnets=["10.0.0.0/8"]'],
                      f"{both} --unshaped-subnet 10.0.0.0/8",
                      f"{one} --unshaped-subnet 10.0.0.0/8")
        # No pod can have another rate than this one.
        self.preloads(["ingressRate=1000000"], one)
        self.preloads(["ingressRate=1000000", "precedence=lowest"], both, one)
        self.preloads(['allowAnnotations=["edt-pacing"]'], both, one, f"{both} --edt-pacing off")
        lan = "--class lan=10.0.0.0/8,ingress-rate=1M"
        self.preloads(['allowAnnotations=["classes"]'], both, one,
                      f"{both} {lan},egress-rate=1M", f"{one} {lan}")
        self.preloads(["sli=on"], f"{both} --sli on", f"{one} --sli on")
        self.preloads(['allowAnnotations=["sli"]'], both, one, f"{both} --sli on",
                      f"{one} --sli on")

    def test_loads_what_members_can_have(self):
        """Each pod is in a group, or some are, or groups are there without a pod."""
        def group(name, **rates):
            return [f"group={json.dumps(dict(rates, name=name))}"]

        both, one = "--ingress-rate 1M --egress-rate 1M", "--ingress-rate 1M"
        everywhere = {"ingressRate": "1G", "egressRate": "1G"}
        member = f"{both} --group g"
        self.preloads(group("{namespace}", **everywhere), member)
        self.preloads(group("tenant", **everywhere), member)
        # Both directions of a member have programs, whichever the group limits.
        self.preloads(group("{namespace}", egressRate="1G"), member)
        self.preloads(group("{namespace}", ingressRate="1G"), member)
        self.preloads(group("{namespace}/{annotation:example.org/team}", **everywhere), both, one,
                      member)
        self.preloads(group("{namespace}"), both, one, member)
        self.preloads([*group("{namespace}", **everywhere), "ingressRate=1000000",
                       "groupFloor=500k"], member)

    def test_loads_pacers(self):
        if not json.loads(run(NATRACTL, "--json", "probe"))["fq"]:
            self.skipTest("no fq")
        pace = "--ingress-rate 1M --egress-rate 1M --ingress-mode pace"
        self.preloads(["ingressMode=pace"], pace)
        self.preloads(["ingressMode=pace", "edtPacing=off"], f"{pace} --edt-pacing off",
                      "--egress-rate 1M --ingress-mode pace --edt-pacing off")
        self.preloads(['allowAnnotations=["natra.io/ingress-mode"]'],
                      "--ingress-rate 1M --egress-rate 1M", "--ingress-rate 1M", pace)

    def test_asked_for_what_the_kernel_cannot(self):
        """Without fq nothing is paced: if the configuration says so, no pod can start;
        if an annotation may, only the pod that asks for it."""
        if json.loads(run(NATRACTL, "--json", "probe"))["fq"]:
            self.skipTest("fq is there")
        agent = self.agent("--conf", "ingressMode=pace")
        agent.wait("level=error msg=", 1)
        self.assertIn("[-] programs: ", agent.wait_ready(False))
        self.assertEqual(agent.stop(), 0)
        self.preloads(["allowAnnotations=[\"ingress-mode\"]"],
                      "--ingress-rate 1M --egress-rate 1M")

    def test_adopts_and_leaves(self):
        self.pod("a", 10000000)
        agent = self.agent()
        agent.wait("adopted=1")
        agent.wait_ready()
        self.assertEqual(self.limits(), {"net/a/eth0": 10000000})
        agent.process.kill()
        agent.process.wait()
        self.assertEqual(self.limits(), {"net/a/eth0": 10000000})
        # A second agent finds nothing to do.
        agent = self.agent()
        agent.wait("part=pods")
        self.assertEqual(agent.count("adopted="), 0)

    def test_adopts_with_wrong_annotations(self):
        """A value that is wrong, or that goes with no other, keeps no running pod unlimited."""
        wrong = {"natra.io/ingress-burst": "much"}
        conflict = {"natra.io/group-floor": "70M", "natra.io/ingress-burst": "80k"}
        for name, annotations in ("a", wrong), ("b", conflict):
            self.pod(name, 10000000, annotations=annotations,
                     allowAnnotations=["ingress-burst", "group-floor"],
                     group={"name": "blue", "ingressRate": 50000000})
        api, options = self.api_server()
        api.put("b", {IN: "10M", **conflict})
        agent = self.agent(*options)
        wait_until(lambda: self.limits() == dict.fromkeys(
            ("net/a/eth0", "net/b/eth0"), 10000000), agent.log)
        self.assertIn("much", agent.wait("natra.io/ingress-burst"))
        line = agent.wait("annotations of a running pod do not count")
        for word in "net/b/eth0", "shop/pod-b", "floor":
            self.assertIn(word, line)
        wait_until(lambda: api.events, agent.log)
        self.assertIn("floor", api.events[-1][1]["message"])
        self.assertEqual(self.group_of("b"), "blue")

    def test_new_maximum_beside_wrong_annotations(self):
        """Of what the pod had asked for, nothing stays that is over the configuration's."""
        start = {IN: "10M", "natra.io/heavy-hitter-threshold": "9M",
                 "natra.io/fast-pass-share": "1000"}
        api, options = self.api_server()
        file = self.node.root / "namespaces.json"
        file.write_text("{}")
        self.pod("a", 10000000, annotations=start, fastPass="strict", heavyHitterThreshold="2M",
                 allowAnnotations=["heavy-hitter-threshold", "fast-pass-share"])
        self.process_of("a")
        api.put("a", start)
        agent = self.agent("--namespaces", str(file), *options)

        def is_limited_to(*wanted):
            def found():
                return [tuple(a["policy"][key] for key in (
                    "ingress_rate_bits_per_sec", "heavy_hitter_threshold_bytes",
                    "fast_pass_share_percent")) for a in json.loads(run(
                        NATRACTL, "--bpffs", str(self.bpffs), "--json", "list"))
                    if a["id"] == "net/a/eth0"]
            wait_until(lambda: found() == [wanted], lambda: f"{found()}\n{agent.log()}", 20)
        is_limited_to(10000000, 9000000, 1000)
        agent.wait("msg=ready part=api")
        api.put("a", {**start, IN: "fast"})
        wait_until(lambda: api.events, agent.log)
        new = file.with_suffix(".new")
        new.write_text('{"shop": {"max": {"ingressRate": "5M"}, "fastPass": "strict"}}')
        new.rename(file)
        is_limited_to(5000000, 2000000, 0)

    def test_joins_with_wrong_annotations(self):
        """So it is with a group that is made after the pods."""
        for name, annotations in (("a", {"natra.io/ingress-burst": "much"}),
                                  ("b", {"natra.io/group-floor": "70M"})):
            self.pod(name, 10000000, annotations=annotations,
                     allowAnnotations=["ingress-burst", "group-floor"],
                     group={"name": "{namespace}"})
        self.write_groups("{}")
        agent = self.agent("--groups", str(self.node.root / "groups.json"))
        agent.wait("adopted=2")
        self.write_groups('{"shop": {"ingressRate": "50M"}}')
        for name in "ab":
            wait_until(lambda n=name: self.group_of(n) == "shop", agent.log, 20)
        self.assertEqual(set(self.limits().values()), {10000000})
        self.assertIn("natra_failed_pods 0\n", agent.get("/metrics")[1])

    def test_file_of_groups(self):
        path = self.node.root / "groups.json"

        def rate(name):
            return self.groups().get(name, {}).get("egress_rate_bits_per_sec")

        def soon(wanted, get, *args):
            """Return the seconds until the file has taken effect. Without an event the agent
            would read it a minute later."""
            begin = time.monotonic()
            wait_until(lambda: get(*args) == wanted,
                       lambda: f"{args}: {get(*args)}, not {wanted}", 20)
            return time.monotonic() - begin

        node = '"node": {"egressRate": "1G"}'
        shop = '"shop": {"egressRate": "%s", "parent": "node", "weight": 2}'
        template = {"group": {"name": "{namespace}"}}
        self.write_groups(f"{{{node}}}")
        self.pod("a", 10000000, **template)
        self.pod("b", None, **template)
        agent = self.agent("--groups", str(path))
        agent.wait("adopted=1")
        self.assertEqual((self.group_of("a"), self.group_of("b")), ("", None))
        self.assertEqual(list(self.groups()), ["node"])
        # A new group is there at once, and running pods join it.
        self.write_groups(f"{{{shop % '50M'}, {node}}}")
        took = [soon(50000000, rate, "shop")]
        soon("shop", self.group_of, "a")
        soon("shop", self.group_of, "b")
        self.assertEqual(self.groups()["shop"]["parent"], "node")
        self.write_groups(f"{{{node}, {shop % '60M'}}}")
        took.append(soon(60000000, rate, "shop"))
        self.assertLess(min(took), 1)
        # What is wrong is logged, and changes nothing.
        all_keep, one_keeps = "the groups keep what they have", "this group keeps what it has"
        for text, why, end in (
                (f"{{{node}, {shop % 'much'}}}", "group.egressRate: 'much'", one_keeps),
                (f"{{{node}, {shop % '70M'}", "not JSON at byte", all_keep),
                ("[]", "[] is not an object", all_keep),
                (f'{{{node}, "shop": {{"egressRate": "70M", "parent": "x"}}}}', "'x'",
                 one_keeps),
                (f'{{{node}, "shop": {{"egressRate": "70M", "name": "x"}}}}', "group.name",
                 one_keeps),
                (f'{{{node}, "shop": {{}}}}', "at least one", one_keeps),
                (f'{{{node}, "shop": {{}}, "red": 5}}', "at least one",
                 "2 groups keep what they have")):
            before = agent.count(end)
            self.write_groups(text)
            line = agent.wait(end, before + 1)
            self.assertIn(why, line)
            self.assertEqual(rate("shop"), 60000000)
        # A group that has members goes with the last of them, and its parent after it.
        self.write_groups("{}")
        self.write_groups("{ }")
        for name in "ab":
            self.assertIn("shop", self.groups())
            run(NATRACTL, "--bpffs", str(self.bpffs), "detach", f"net/{name}/eth0")
        soon({}, self.groups)

    def write_groups(self, text):
        (self.node.root / "new").write_text(text)
        os.rename(self.node.root / "new", self.node.root / "groups.json")

    def settled(self, agent, wanted, get):
        """Wait until the agent has done this, without an error."""
        wait_until(lambda: get() == wanted,
                   lambda: f"{get()}, not {wanted}\n{agent.log()}", 5)
        self.assertEqual(agent.count("level=error"), 0, agent.log())

    def test_edits_after_bpffs_was_emptied(self):
        """The kubelet is asked again, as the API server is: what the cached result says is of
        the pod's start."""
        self.pod("a", 10000000)
        _, options = self.api_server()
        kubelet = Kubelet(str(self.node.root / "kubelet.sock"))
        self.addCleanup(kubelet.close)
        kubelet.put("a", {IN: "5M"})
        agent = self.agent(*options, "--kubelet-socket", "/kubelet.sock")
        # The first time all pods have perhaps not been looked at yet.
        for _ in range(4):
            wait_until(lambda: self.limits() == {"net/a/eth0": 5000000},
                       lambda: f"{self.limits()}\n{agent.log()}", 20)
            shutil.rmtree(self.bpffs / "natra", ignore_errors=True)
        agent.wait("directory on bpffs was removed")

    def test_new_bpffs_is_emptied(self):
        """It is watched although a pod without limits keeps the agent from letting go of the
        bpffs before."""
        self.pod("a", 10000000)
        self.process_of("a")
        self.node.result("net-b-eth0").write_text('{"kind": "cniCacheV1"')
        agent = self.agent()

        agent.wait("adopted=1")
        run("umount", "--lazy", str(self.bpffs))
        run("mount", "-t", "bpf", "bpf", str(self.bpffs))
        agent.wait("adopted=1", 2)

        def is_noticed():
            # The agent may be looking again, and pin what is being removed.
            shutil.rmtree(self.bpffs / "natra", ignore_errors=True)
            return agent.count("directory on bpffs was removed")

        wait_until(is_noticed, agent.log, 10)

    def test_groups_change_together(self):
        """What is refused at first fits when the rest of the file is done."""
        def limits():
            return {n: (g["egress_rate_bits_per_sec"] // 10**6,
                        g["floor_bits_per_sec"] // 10**6)
                    for n, g in self.groups().items()}

        child = '{"egressRate": "1G", "parent": "node", "floor": "%s"}'
        self.write_groups(f'{{"node": {{"egressRate": "1G"}}, "a": {child % "800M"}}}')
        agent = self.agent("--groups", str(self.node.root / "groups.json"))
        self.settled(agent, {"node": (1000, 0), "a": (1000, 800)}, limits)
        # A lower rate needs the lower floor, and a floor the room of another one.
        self.write_groups(f'{{"node": {{"egressRate": "500M"}}, "a": {child % "400M"}}}')
        self.settled(agent, {"node": (500, 0), "a": (1000, 400)}, limits)
        self.write_groups(f'{{"node": {{"egressRate": "500M"}}, "b": {child % "400M"}}}')
        self.settled(agent, {"node": (500, 0), "b": (1000, 400)}, limits)
        # The last one of a name counts, as in all JSON that natra reads.
        self.write_groups(f'{{"node": {{"egressRate": "500M"}}, "b": {child % "400M"}, '
                          '"b": {"egressRate": "5M"}}')
        self.settled(agent, {"node": (500, 0), "b": (5, 0)}, limits)
        # null is no group.
        self.write_groups('{"node": null, "b": {"egressRate": "5M"}}')
        self.settled(agent, {"b": (5, 0)}, limits)

    def test_a_group_that_was_refused(self):
        """It is new when it is right, and not the agent's if it never is."""
        run(NATRACTL, "--bpffs", str(self.bpffs), "group", "set", "mine", "--egress-rate", "1M")
        self.pod("a", 10000000, group={"name": "{namespace}"})
        self.write_groups('{"shop": {"egressRate": "1X"}, "mine": {"egressRate": "1X"}}')
        agent = self.agent("--groups", str(self.node.root / "groups.json"))
        agent.wait("adopted=1")
        agent.wait("groups keep what they have")
        self.assertEqual(self.group_of("a"), "")
        self.write_groups('{"shop": {"egressRate": "1M"}}')
        wait_until(lambda: self.group_of("a") == "shop", agent.log, 10)
        self.assertEqual(sorted(self.groups()), ["mine", "shop"])

    def upstream(self, name, rate):
        """Limit a pod by upstream's plugin."""
        self.call(UPSTREAM, "ADD", name, type="bandwidth", runtimeConfig={
            "bandwidth": {"ingressRate": rate, "ingressBurst": rate,
                          "egressRate": rate, "egressBurst": rate}})

    def test_replaces_upstream(self):
        self.replaces("c")

    def test_replaces_tbf_in_the_way(self):
        if json.loads(run(NATRACTL, "--json", "probe"))["fq"]:
            self.replaces("d", ingressMode="pace")
            return
        # Nothing would follow it.
        self.pod_of_upstream("d", ingressMode="pace")
        self.agent("--replace-bandwidth").wait("failed=1")
        self.assertIn("tbf", run("tc", "qdisc", "show", "dev", "veth-d"))
        self.call(UPSTREAM, "DEL", "d", type="bandwidth")

    def test_replaces_ingress_qdisc_in_the_way(self):
        self.replaces("e", attachMode="clsact-hostside")

    def pod_of_upstream(self, name, **conf):
        if not os.path.exists(UPSTREAM):
            self.skipTest(f"no {UPSTREAM}")
        self.pod(name, 10000000, 10000000, **conf)
        run("ip", "link", "set", f"veth-{name}", "up")
        self.upstream(name, 10000000)
        self.assertIn("tbf", run("tc", "qdisc", "show", "dev", f"veth-{name}"))

    def replaces(self, name, **conf):
        self.pod_of_upstream(name, **conf)
        agent = self.agent()
        agent.wait("part=pods")
        agent.stop()
        # Without being asked, the agent does not replace upstream's limits.
        self.assertEqual(self.limits(), {})
        self.agent("--replace-bandwidth").wait("replaced=1")
        self.assertEqual(self.limits(), {f"net/{name}/eth0": 10000000})
        left = run("tc", "qdisc", "show", "dev", f"veth-{name}")
        self.assertNotIn("tbf", left)
        self.assertNotIn("ingress", left)
        self.assertNotIn("ifb", run("ip", "-o", "link"))

    def test_edit_after_the_end(self):
        """DEL has removed the last member and its group, and libcni still has the pod's
        result: an edit leaves no empty group, nor does an agent that starts then."""
        api, options = self.api_server()
        template = {"group": {"name": "{namespace}", "ingressRate": "50M"}}
        self.pod("a", 10000000, annotations={IN: "10M"}, groupFloor="2M", **template)
        api.put("a", {IN: "10M"})
        agent = self.agent(*options)
        wait_until(lambda: "net/a/eth0" in self.limits(), agent.log)
        self.assertEqual(list(self.groups()), ["shop"])
        run("ip", "link", "del", "veth-a")
        run(NATRACTL, "--bpffs", str(self.bpffs), "detach", "net/a/eth0")
        self.assertEqual(self.groups(), {})
        self.pod("b", 10000000, annotations={IN: "10M"})

        def is_empty_after(number):
            """Nothing is left when the pod's edit has been read."""
            api.put("a", {IN: f"{number}M"})
            rate = self.edits_are_read(api, agent, number)
            self.assertEqual(self.limits(), {"net/b/eth0": rate * 10**6})
            self.assertEqual(self.groups(), {})

        is_empty_after(20)
        # Less than the pod's floor is refused, after the group was made.
        api.put("a", {IN: "1M"})
        agent.wait("the pod keeps the limits that it has")
        is_empty_after(30)
        agent.stop()
        agent = self.agent()
        agent.wait("msg=ready part=pods")
        self.assertEqual(self.groups(), {})

    def test_edits_in_a_group(self):
        """A group that is named by an annotation is that of the pod's start; the pod's
        part in it follows natra's own annotations."""
        api, options = self.api_server()
        start = {IN: "10M", "example.org/team": "red", "natra.io/group-weight": "3"}
        self.pod("a", 10000000, annotations=start,
                 allowAnnotations=["group-weight"],
                 group={"name": "{annotation:example.org/team}", "ingressRate": "50M",
                        "acrossNamespaces": True})
        api.put("a", start)
        agent = self.agent(*options)

        def found():
            found = json.loads(run(NATRACTL, "--bpffs", str(self.bpffs), "--json",
                                   "list"))
            return [(self.group_of("a"), a["policy"]["group_weight"],
                     a["policy"]["ingress_rate_bits_per_sec"]) for a in found]

        for annotations, wanted in (
                (start, ("red", 3, 10000000)),
                (dict(start, **{"natra.io/group-weight": "5"}), ("red", 5, 10000000)),
                ({IN: "7M", "example.org/team": "blue"}, ("red", 0, 7000000)),
                ({}, ("red", 0, 0))):
            api.put("a", annotations)
            wait_until(lambda w=wanted: found() == [w],
                       lambda w=wanted: f"{found()}, not {w}\n{agent.log()}", 20)
        self.assertEqual(list(self.groups()), ["red"])

    def test_edits_between_groups(self):
        """A pod that goes to another group leaves none behind; with "lower" it stays."""
        team = "natra.io/team"
        api, options = self.api_server()
        self.pod("a", 10000000, annotations={team: "red"},
                 group={"name": "{namespace}/{annotation:natra.io/team}", "ingressRate": "50M"})
        api.put("a", {IN: "10M", team: "red"})
        agent = self.agent(*options)

        def soon(*names):
            wait_until(lambda: (list(self.groups()), self.group_of("a")) ==
                       (list(names), "".join(names)), agent.log, 20)
        soon("shop/red")
        api.put("a", {IN: "10M", team: "blue"})
        soon("shop/blue")
        agent.stop()
        agent = self.agent("--edits=lower", *options)
        api.put("a", {IN: "9M", team: "green"})
        wait_until(lambda: api.events, agent.log)
        self.assertIn("group: stays 'shop/blue', not 'shop/green'",
                      api.events[0][1]["message"])
        wait_until(lambda: self.limits() == {"net/a/eth0": 9000000}, agent.log)
        api.put("a", {IN: "9M"})
        wait_until(lambda: len(api.events) == 2, agent.log)
        soon("shop/blue")


if __name__ == "__main__":
    kernel_case.main()
