#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""natra-agent lets the classes of a pod follow its annotation, with the kernel."""
import json
import subprocess
import time

import kernel_case
from kernel_case import IN, NATRACTL, KernelCase, run
from podnode import wait_until


class Classes(KernelCase):
    def classes_of(self, name):
        """What a pod has: its rate into it, its classes (None if they were replaced while they
        were read), where its state is pinned and the numbers of its programs."""
        shown = json.loads(run(NATRACTL, "--bpffs", str(self.bpffs), "--json", "show",
                               f"net/{name}/eth0"))
        return (shown["policy"]["ingress_rate_bits_per_sec"],
                shown["classes"] and [(c["name"], c["egress_rate_bits_per_sec"], c["subnets"])
                                      for c in shown["classes"]],
                (shown["pin_path"], shown["ingress_prog_id"], shown["egress_prog_id"]))

    def test_edits_of_classes(self):
        """The list of classes follows its annotation. As long as the names stay, so do
        programs and state, so that there is no moment without limits."""
        classes = "natra.io/classes"
        web = ("web", 5000000, ["192.0.2.0/24"])
        start = {IN: "10M", classes: "web=192.0.2.0/24,egress-rate=5M"}
        api, options = self.api_server()
        self.pod("a", 10000000, annotations=start, allowAnnotations=["classes"])
        self.process_of("a")
        api.put("a", start)
        agent = self.agent(*options)

        def follows(annotations, rate, wanted):
            api.put("a", annotations)
            wait_until(lambda: self.classes_of("a")[:2] == (rate, wanted),
                       lambda: f"{self.classes_of('a')}, not {wanted}\n{agent.log()}", 20)
            self.check("a")
            return self.classes_of("a")[2]

        agent.wait("msg=ready part=pods")
        place = follows(start, 10**7, [web])
        for text, wanted in (
                ("web=192.0.2.0/24,198.51.100.0/24,egress-rate=7M",
                 [("web", 7000000, ["192.0.2.0/24", "198.51.100.0/24"])]),
                ("web=2001:db8::/32", [("web", 0, ["2001:db8::/32"])])):
            self.assertEqual(follows({IN: "10M", classes: text}, 10**7, wanted), place)
        # A bad value keeps what there is.
        api.put("a", {IN: "20M", classes: "web=192.0.2.0/24,egress-rate=fast"})
        wait_until(lambda: api.events, agent.log)
        for word in (classes, "'egress-rate=fast'"):
            self.assertIn(word, api.events[0][1]["message"])
        self.assertEqual(self.classes_of("a"),
                         (10**7, [("web", 0, ["2001:db8::/32"])], place))
        two = [web, ("lan", 0, ["10.0.0.0/8"])]
        new = follows({IN: "10M", classes: "web=192.0.2.0/24,egress-rate=5M;lan=10.0.0.0/8"},
                      10**7, two)
        self.assertNotEqual(new, place)
        # Without limits it stays attached.
        follows({}, 0, [])
        follows({IN: "7M"}, 7000000, [])
        follows({IN: "7M", classes: start[classes]}, 7000000, [web])
        # Nothing was written that was there already, perhaps by the look at running pods.
        wrote = 7 - agent.count("limited a running pod")
        agent.wait("limits follow", wrote)
        self.assertEqual(agent.count("limits follow"), wrote)
        # A second agent finds nothing to do.
        agent.stop()
        place = self.classes_of("a")
        agent = self.agent(*options)
        agent.wait("part=api")
        api.put("b", {})
        time.sleep(0.5)
        self.assertEqual(agent.count("limits follow"), 0, agent.log())
        self.assertEqual(self.classes_of("a"), place)

    def limited_with_classes(self, start, **conf):
        """Start an agent with a pod "a" that it has limited, and a pod "b". Return a
        function that edits "a" and returns what the agent logs of a change, when it has
        looked at the edit."""
        api, options = self.api_server()
        self.pod("a", 10000000, annotations=start, allowAnnotations=["classes"], **conf)
        self.pod("b", 10000000, annotations={IN: "10M"})
        self.process_of("a")
        api.put("a", start)
        api.put("b", {IN: "10M"})
        agent = self.agent(*options)
        wait_until(lambda: len(self.limits()) == 2, agent.log)
        agent.wait("msg=ready part=pods")
        rate = 10

        def changes():
            return [line for line in agent.lines
                    if line and "limits follow" in line and "id=net/a/eth0" in line]

        def edit(annotations):
            nonlocal rate
            before = changes()
            api.put("a", annotations)
            rate = self.edits_are_read(api, agent, rate + 1)
            agent.wait(f"ingress_bits_per_sec={rate * 10**6}")
            return changes()[len(before):]
        return edit

    def test_edits_lower(self):
        """Only rates of the classes that there are follow an edit that lowers them: what is
        in a class is not charged to the pod's own rate, and what is in none is."""
        classes = "natra.io/classes"
        start = {IN: "10M", classes: "web=192.0.2.0/24,egress-rate=5M"}
        api, options = self.api_server()
        self.pod("a", 10000000, annotations=start, allowAnnotations=["classes"])
        self.process_of("a")
        api.put("a", start)
        agent = self.agent("--edits=lower", *options)
        wait_until(lambda: "net/a/eth0" in self.limits(), agent.log)
        # The same block, written in another way.
        api.put("a", {IN: "10M", classes: "web=192.0.2.1/24,egress-rate=4500k"})
        wait_until(lambda: self.classes_of("a")[1][0][1] == 4500000, agent.log)
        self.assertEqual(api.events, [])
        for n, (text, rate, word) in enumerate((
                ("web=192.0.2.0/24,egress-rate=9M", 4.5, "class web"),
                ("web=192.0.2.0/24", 4.5, "class web"),
                ("web=192.0.2.0/24,egress-rate=4M;all=0.0.0.0/0", 4, "1 classes stay, not 2"),
                ("web=0.0.0.0/0,egress-rate=3M", 3, "class web"),
                (None, 3, "class web"))):
            api.put("a", {IN: "10M", **({classes: text} if text else {})})
            wait_until(lambda n=n: len(api.events) > n, agent.log)
            self.assertIn(word, api.events[n][1]["message"])
            self.assertEqual(self.classes_of("a")[:2],
                             (10**7, [("web", rate * 10**6, ["192.0.2.0/24"])]))

    def test_maximum_below_the_classes(self):
        """A wrong annotation keeps neither classes nor a rate that are over a maximum that is
        lowered since: both are at most the maximum together, and classes go that do not fit."""
        classes = "natra.io/classes"
        start = {IN: "10M", classes: "web=192.0.2.0/24,ingress-rate=4M"}
        api, options = self.api_server()
        file = self.node.root / "namespaces.json"

        def maximum(rate, **rule):
            new = file.with_suffix(".new")
            new.write_text(json.dumps({"shop": {"max": {"ingressRate": rate}, **rule}}))
            new.rename(file)

        maximum("50M")
        self.pod("a", 10000000, annotations=start, allowAnnotations=["classes"])
        self.process_of("a")
        api.put("a", start)
        agent = self.agent("--namespaces", str(file), *options)
        wait_until(lambda: self.limits().get("net/a/eth0") == 10**7, agent.log)
        agent.wait("msg=ready part=api")
        api.put("a", {**start, IN: "fast"})
        wait_until(lambda: api.events, agent.log)
        self.assertIn("'fast'", api.events[0][1]["message"])
        def is_lowered_to(rate, classes):
            wait_until(lambda: self.classes_of("a")[:2] == (rate * 10**6, classes),
                       lambda: f"{self.classes_of('a')}\n{agent.log()}", 20)

        maximum("9M")
        is_lowered_to(5, [("web", 0, ["192.0.2.0/24"])])
        # Annotations that are right do not get around it either, once no pod of the namespace
        # may have classes.
        maximum("8M", allowAnnotations=[])
        is_lowered_to(4, [("web", 0, ["192.0.2.0/24"])])
        api.put("a", start)
        maximum("7M", allowAnnotations=[])
        is_lowered_to(3, [("web", 0, ["192.0.2.0/24"])])
        maximum("3M", allowAnnotations=[])
        is_lowered_to(3, [])

    def natra_check(self, name):
        p = subprocess.run([NATRACTL, "--bpffs", str(self.bpffs), "check",
                            f"net/{name}/eth0"], text=True, capture_output=True, timeout=30)
        return p.returncode, p.stderr

    def test_what_is_broken_beside_classes(self):
        """A program that somebody has removed is not mended by writing limits again, so
        that an edit of something else writes none. An edit of classes is followed."""
        start = {IN: "10M", "natra.io/classes": "web=192.0.2.1/24,192.0.2.0/24,egress-rate=5M"}
        edit = self.limited_with_classes(start, attachMode="clsact-podside")
        run("nsenter", f"--net={self.node.netns('a')}", "tc", "filter", "del", "dev", "eth0",
            "egress")
        code, error = self.natra_check("a")
        self.assertEqual(code, 3)
        self.assertIn("is not on the clsact", error)
        self.assertEqual(edit({**start, "natra.io/other": "1"}), [])
        self.assertEqual(len(edit({IN: "10M", "natra.io/classes":
                                   "web=198.51.100.0/24,egress-rate=5M"})), 1)
        self.assertEqual(self.classes_of("a")[1], [("web", 5000000, ["198.51.100.0/24"])])

    def test_interrupted_change_of_classes(self):
        """The next edit ends a change of classes that a process has not ended, whatever
        it is about."""
        start = {IN: "10M", "natra.io/classes": "web=192.0.2.0/24,egress-rate=5M"}
        edit = self.limited_with_classes(start)
        pin = self.classes_of("a")[2][0] + "/meta"
        [entry] = json.loads(run("bpftool", "-j", "map", "dump", "pinned", pin))
        value = entry["value"]
        # struct record has is_changing 564 bytes before its end, in front of the group.
        self.assertEqual(value[-564:-424], ["0x00"] * 140)
        value[-564] = "0x01"
        run("bpftool", "map", "update", "pinned", pin, "key", "hex", "00", "00", "00", "00",
            "value", "hex", *(byte[2:] for byte in value))
        self.assertEqual(self.natra_check("a")[0], 3)
        self.assertIn("interrupted", self.natra_check("a")[1])
        self.assertEqual(len(edit({**start, "natra.io/other": "1"})), 1)
        self.assertEqual(self.natra_check("a"), (0, ""))

    def test_classes_without_rates_in_place_of_rates(self):
        """They limit nothing, so the pod keeps its programs and counters."""
        edit = self.limited_with_classes({IN: "10M"})
        place = self.classes_of("a")[2]
        edit({"natra.io/classes": "web=192.0.2.0/24"})
        self.assertEqual(self.classes_of("a"), (0, [], place))
        edit({IN: "7M"})
        self.assertEqual(self.classes_of("a"), (7000000, [], place))

    def test_classes_by_hand(self):
        """They stay where neither the configuration nor the pod may have classes."""
        api, options = self.api_server()
        self.pod("a", 10000000, annotations={IN: "10M"}, allowAnnotations=["sli"])
        self.process_of("a")
        api.put("a", {IN: "10M"})
        agent = self.agent(*options)
        wait_until(lambda: "net/a/eth0" in self.limits(), agent.log)
        run(NATRACTL, "--bpffs", str(self.bpffs), "set", "net/a/eth0", "--class",
            "web=192.0.2.0/24,egress-rate=5M", "--class", "voice=dscp=46")
        # The second edit attaches the pod anew.
        for edit, rate in (({}, "20M"), ({"natra.io/sli": "on"}, "30M")):
            place = self.classes_of("a")[2]
            api.put("a", {IN: rate, **edit})
            wait_until(lambda r=rate: self.classes_of("a")[:2] == (
                int(r[:-1]) * 10**6,
                [("web", 5000000, ["192.0.2.0/24"]), ("voice", 0, [])]), agent.log, 20)
            self.assertEqual(self.classes_of("a")[2] == place, not edit)


if __name__ == "__main__":
    kernel_case.main()
