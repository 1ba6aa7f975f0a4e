#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What the pods of one tenant ask for does not keep natra-agent from those of another."""
import json
import threading
import time
from datetime import datetime

import parallel
from agent import words
from podnode import natra, wait_until
from test_live import IN, OUT, PLUGINS, Case


class Tenants(Case):
    def events_of(self, name):
        return sum(e["involvedObject"]["name"] == f"pod-{name}"
                   for _, e in self.api.events)

    def test_one_pod_has_one_place(self):
        """Edits of a pod are merged while a job works, and hold up no other pod's."""
        for name in "ab":
            self.node.attached(f"net/{name}/eth0", 1000000, 0)
            self.pod(name)
        self.start()
        hold = self.node.touch("hold-configure")
        for n in range(3000):
            self.api.put("a", {IN: f"{2 + n % 7}M"})
        self.api.put("b", {IN: "5M"})
        self.api.put("a", {IN: "9M"})
        time.sleep(1)
        hold.unlink()
        self.until("b", (5000000, 0))
        self.until("a", (9000000, 0))
        self.assertLess(len(self.calls("configure")), 20)

    def test_large_annotations(self):
        """Go writes '<' in six bytes: 180 kB of them are over 1 MiB of JSON, twice."""
        junk = "\\u003c" * 180000
        path = self.node.pod("a", {"ingressRate": 10000000}, PLUGINS, {"junk": "@"})
        with open(path) as f:
            text = f.read().replace("@", junk)
        with open(path, "w") as f:
            f.write(text)
        self.start()
        self.until("a", (10000000, 0))
        raw = self.api.raw
        self.api.raw = lambda text: raw(text.replace("@", junk))
        self.api.put("a", {IN: "1M", "junk": "@"})
        self.until("a", (1000000, 0))

    def start_beside_failures(self, count, annotations):
        """Start beside pods whose first edit fails, each with these annotations, and a pod
        without them, whose edit is the last one."""
        self.node.attached("net/victim/eth0", 1000000, 0)
        self.node.pod("victim", None, PLUGINS, {IN: "1M"})
        for n in range(count):
            self.node.pod(f"t{n}", None, PLUGINS, {})
            self.api.put(f"t{n}", {IN: "1M", **annotations})
        self.node.fail("attach", 52)
        self.api.put("victim", {IN: "7M"})
        self.start()
        self.until("victim", (7000000, 0))

    def test_failed_edits_are_small(self):
        """An edit that waits has none of what is not valid, however long JSON makes it."""
        junk = "\x01" * 65000
        self.start_beside_failures(40, {f"natra.io/{name}": junk for name in (
            "classes", "fast-pass", "ingress-burst", "ingress-packet-rate")})
        self.until_refused(40)
        self.agent.check_memory("VmHWM", 30000)

    def test_edits_without_room(self):
        """What may be valid is read again later where all of it would be too much."""
        self.start_beside_failures(240, {"natra.io/classes": "a" * 90000})
        second, third = (datetime.fromisoformat(words(self.agent.wait(
            "pods are read again", times, timeout=90))["time"]) for times in (2, 3))
        # All of the node's pods are asked for, after 5 and 10 s.
        self.assertGreater((third - second).total_seconds(), 9)
        self.until_refused(240)
        self.agent.check_memory("VmHWM", 48000)
        self.node.fail("attach", 0)
        for n in range(240):
            self.until(f"t{n}", (1000000, 0), timeout=120)
        # What has failed is said once, also if it is read again.
        self.assertIn("natra_refused_edits_total 240\n", self.agent.get("/metrics")[1])

    def test_edits_fail_by_themselves(self):
        """One that fails all the time does not put off that of another pod, which has failed
        for a moment."""
        self.start_beside_limited_pod()
        self.node.fail("attach", 52)
        self.pod("t", {IN: "1M"})
        # It waits for 6 s by now.
        time.sleep(7)
        self.node.fail("configure", 16)
        self.api.put("a", {IN: "5M"})
        self.agent.wait("pod=pod-a")
        self.node.fail("configure", 0)
        self.until("a", (5000000, 0), timeout=4)

    def read_bytes(self):
        """What the agent and its jobs that have ended have read."""
        with open(f"/proc/{self.agent.process.pid}/io") as f:
            return int(f.readline().split()[1])

    def test_large_results_of_others(self):
        """An edit reads the results of its own pod whole, and the heads of the others."""
        self.start_beside_limited_pod()
        for n in range(20):
            path = self.node.pod(f"t{n}", None, PLUGINS, {"junk": "\x01" * 262000})
            with open(path) as f:
                text = f.read()
            with open(path.replace("-eth0", "-lo"), "w") as f:
                f.write(text.replace('"eth0"', '"lo"'))
        took = []
        for n in range(2, 5):
            begin = self.read_bytes()
            self.api.put("a", {IN: f"{n}M"})
            self.until("a", (n * 1000000, 0))
            time.sleep(0.5)
            took.append(self.read_bytes() - begin)
        # Pods are adopted now and then, which reads all.
        self.assertLess(min(took), 4 << 20)

    def test_result_is_just_written(self):
        """An edit whose pod has a result that is still empty takes effect without another
        event."""
        self.start_beside_limited_pod()
        path = self.node.result("net-a-eth0")
        whole = path.read_text()
        path.write_text("")
        self.api.put("a", {IN: "2M"})
        time.sleep(0.5)
        path.write_text(whole)
        self.until("a", (2000000, 0), timeout=15)

    def test_events_on_a_terminal(self):
        """What a value does to a terminal is escaped, and so is half a character."""
        self.start_beside_limited_pod()
        for value in ("\x1b[2J\n5M", "\x9b2J", "\u202egnp", "x" * 63 + "\u00e4" * 200):
            count = len(self.api.events)
            self.api.put("a", {IN: value})
            wait_until(lambda: len(self.api.events) > count, self.agent.log)
            message = self.api.events[-1][1]["message"]
            self.assertTrue(message.isascii() and message.isprintable(), message)
            self.assertIn(f"annotation {IN}: '", message)

    def until_refused(self, count):
        """Wait until so many edits were refused."""
        wait_until(lambda: f"natra_refused_edits_total {count}\n" in self.agent.get("/metrics")[1],
                   lambda: self.agent.get("/metrics")[1] + self.agent.log())

    def test_many_bad_values(self):
        """Events and lines are bounded for each pod, so that others' are sent and not rotated
        away; the number of the others is logged."""
        self.pod()
        self.start()
        for n in range(12):
            self.api.put("a", {IN: f"bad{n}"})
            if n < 8:
                self.agent.wait(f"bad{n}'")
            else:
                self.until_refused(n + 1)
        self.node.attached("net/b/eth0", 1000000, 0)
        self.pod("b")
        self.api.put("b", {IN: "10 Mbit"})
        wait_until(lambda: self.events_of("b"), self.agent.log)
        time.sleep(0.5)
        # They come back after a minute, which a busy machine may take.
        self.assertIn(self.events_of("a"), range(8, 20))
        self.assertIn(self.agent.count("pod=pod-a"), range(8, 20))
        self.agent.stop()
        self.agent.wait("more edits are not logged, the first of this namespace\" edits=")

    def edit(self, annotations, limits, *refused):
        """Edit pod a, whose limits become these; an Event has the words, if there are any."""
        events = len(self.api.events)
        self.api.put("a", annotations)
        if refused:
            wait_until(lambda: len(self.api.events) > events, self.agent.log)
            for word in refused:
                self.assertIn(word, self.api.events[-1][1]["message"])
        self.until("a", limits)

    def test_edits_lower(self):
        """An edit adds limits and lowers them, whatever came before, also while no agent
        ran."""
        self.node.attached("net/a/eth0", 10000000, 0)
        self.pod(annotations={IN: "10M"})
        self.start("--edits=lower")
        self.edit({}, (10000000, 0), IN, "stays 10000000, not unlimited")
        self.edit({IN: "20M"}, (10000000, 0), IN, "not 20000000")
        self.edit({IN: "5M", OUT: "7M"}, (5000000, 7000000))
        # Each annotation counts for itself.
        self.edit({IN: "6M", OUT: "3M"}, (5000000, 3000000), IN, "stays 5000000")
        self.edit({IN: "5M"}, (5000000, 3000000), OUT, "stays 3000000, not unlimited")
        self.api.put("a", {IN: "5M"})
        time.sleep(0.5)
        self.assertEqual(len(self.api.events), 4)
        self.assertEqual(self.agent.count("the pod's limits are not edited"), 4)
        self.assertIn("natra_refused_edits_total 4\n", self.agent.get("/metrics")[1])
        self.agent.stop()
        self.api.put("a", {IN: "1G"})
        self.start("--edits=lower")
        wait_until(lambda: len(self.api.events) == 5, self.agent.log)
        self.edit({IN: "4M"}, (4000000, 3000000))

    def test_edits_lower_of_others(self):
        """Limits of packets are lowered like rates; bursts and the fast pass become
        stricter only."""
        self.node.attached("net/a/eth0", 10000000, 0)
        self.pod(annotations={IN: "10M"}, plugins=["ptp", natra(
            allowAnnotations=["ingress-packet-rate", "fast-pass", "ingress-burst"])])
        self.start("--edits=lower")
        packets, limits = "natra.io/ingress-packet-rate", (10000000, 0)
        self.api.put("a", {IN: "10M", packets: "10k"})
        wait_until(lambda: self.calls("configure"), self.agent.log)
        for more, words in (({packets: "20k"}, (packets, "stays 10000, not 20000")),
                            ({}, (packets, "stays 10000, not unlimited")),
                            ({packets: "10k", "natra.io/ingress-burst": "9M"},
                             ("burst", "stays 0.5 s of the rate; paced, the "
                              "pace limit's if less, not 9000000"))):
            self.edit({IN: "10M", **more}, limits, *words)
        self.assertEqual(len(self.calls("configure")), 1)
        self.assertIn("packets=10000,0", self.calls("configure")[0])
        self.api.put("a", {IN: "10M", packets: "10k", "natra.io/fast-pass": "off"})
        wait_until(lambda: len(self.calls("configure")) == 2, self.agent.log)

    def test_edits_none(self):
        self.node.attached("net/a/eth0", 10000000, 0)
        self.pod(annotations={IN: "10M"})
        self.start("--edits=none")
        for rate in ("20M", "5M"):
            self.edit({IN: rate}, (10000000, 0), IN, "stays 10000000")
        self.assertEqual(self.calls("configure", "attach"), [])

    def test_edits_before_the_adoption(self):
        """A pod that has no limits of natra's yet gets at most those of its start."""
        for name, start in (("a", 10000000), ("b", None)):
            self.node.pod(name, start and {"ingressRate": start}, PLUGINS,
                          {IN: str(start)} if start else {})
            self.api.put(name, {IN: "100M"})
        self.start("--edits=none")
        wait_until(lambda: len(self.api.events) == 2, self.agent.log)
        self.until("a", (10000000, 0))
        self.agent.stop()
        self.assertEqual(len(self.calls("attach")), 1)
        self.start("--edits=lower")
        self.until("b", (100000000, 0))
        self.assertEqual(self.node.limits("a"), (10000000, 0))

    def test_many_edits(self):
        """Who edits a pod all the time does not fill the log with what its edits do either."""
        self.start_beside_limited_pod()
        for n in range(2, 22):
            self.api.put("a", {IN: f"{n}M"})
            self.until("a", (n * 1000000, 0))
        # They come back after a minute, as above.
        self.assertIn(self.agent.count("limits follow the pod's annotations"), range(8, 20))
        wait_until(lambda: "natra_followed_edits_total 20\n" in self.agent.get("/metrics")[1],
                   self.agent.log)

    def test_more_pods_than_a_node_has(self):
        """A server that does not look at the selector, or a proxy that drops it, does not get
        the time of the process that answers probes, and is told once."""
        self.start_beside_limited_pod()
        block = "".join(json.dumps({"type": "ADDED", "object": {
            "kind": "PartialObjectMetadata", "metadata": {
                "name": f"x{n}", "namespace": "far", "uid": f"far-{n}",
                "resourceVersion": "9", "annotations": {IN: "5M"}}}}) + "\n"
            for n in range(20000))
        self.api.raw(block)
        self.agent.wait("sends more pods than a node has")
        # It lasts for a minute.
        self.assertIn("[-] api: the API server: sends more pods", self.agent.get("/readyz")[1])
        self.api.put("a", {IN: "3M"})
        self.until("a", (3000000, 0))
        self.assertEqual(self.agent.count("sends more pods"), 1)

    def test_many_namespaces(self):
        """Nor does a tenant with many namespaces keep others from their first Event."""
        self.start()
        for n in range(80):
            self.bad(f"a{n}", f"space-{n % 8}")
        self.until_refused(80)
        self.bad("b", "other")
        wait_until(lambda: self.events_of("b"), self.agent.log)
        time.sleep(0.5)
        self.assertEqual(len(self.api.events), 61)

    def refuse(self, namespace):
        """Let the server refuse this namespace's Events, as a quota does."""
        post = self.api.post

        def limited(h):
            if f"/namespaces/{namespace}/" not in h.path:
                return post(h)
            h.rfile.read(int(h.headers["Content-Length"]))
            return self.api.answer(h, 429)
        self.api.post = limited

    def test_events_of_others_are_sent(self):
        """Those of a namespace that the server does not take hold up no others."""
        self.refuse("tenant")
        self.start()
        for n in range(3):
            self.bad(f"t{n}", "tenant")
        self.agent.wait("Events wait: namespace tenant: the API server answers 429")
        self.bad("b", "shop")
        wait_until(lambda: self.events_of("b"), self.agent.log, timeout=15)
        self.assertEqual(self.agent.count("Events wait"), 1)

    def test_events_are_lost(self):
        """What does not fit into the queue is counted; the namespace with the most loses it."""
        answer = threading.Event()
        post = self.api.post
        # The agent waits for 10 s.
        self.api.post = lambda h: answer.wait(9) and post(h)
        self.start()
        self.bad("a", "first")
        for n in range(16):
            self.bad(f"t{n}", "tenant")
        for n in range(60):
            self.bad(f"s{n}", f"space-{n}")
        self.agent.wait("bad-s59'")
        self.agent.wait("Events are lost, since 64 wait; the first is of namespace tenant")
        answer.set()
        wait_until(lambda: all(self.events_of(f"s{n}") for n in range(60)), self.agent.log)
        wait_until(lambda: len(self.api.events) == 65, self.agent.log)
        self.assertIn("natra_lost_events_total 12\n", self.agent.get("/metrics")[1])
        self.assertEqual(self.agent.count("Events are lost"), 1)

    def bad(self, name, namespace):
        """A pod with a wrong value, of another namespace than the other pods."""
        path = self.node.pod(name, None, PLUGINS, {IN: f"bad-{name}"})
        with open(path) as f:
            text = f.read()
        with open(path, "w") as f:
            f.write(text.replace('"shop"', f'"{namespace}"'))
        self.api.put(name, {IN: f"bad-{name}"}, namespace=namespace)


if __name__ == "__main__":
    parallel.main(live=True)
