#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""natra-agent follows the annotations of running pods, and an API server that is slow,
restarted, cut off, or that answers garbage; with a library that keeps attachments in
files."""
import re
import socket
import statistics
import sys
import time
import unittest

import parallel
from apiserver import ApiServer
from podnode import FakeNode, natra, wait_until

IN, OUT = "kubernetes.io/ingress-bandwidth", "kubernetes.io/egress-bandwidth"
PLUGINS = ["ptp", natra()]


class Case(unittest.TestCase):
    def setUp(self):
        self.node = FakeNode()
        self.addCleanup(self.node.close)
        self.api = ApiServer()
        self.addCleanup(lambda: self.api.close())
        self.token = self.node.root / "token"
        self.token.write_text("secret\n")
        self.agent = None

    def start(self, *options, wait=True):
        self.agent = self.node.agent(
            "--no-install", "--node", "node-1", "--api-server", self.api.url,
            "--token-file", str(self.token), "--ca-file", "", *options)
        self.addCleanup(self.agent.__exit__)
        if wait:
            self.agent.wait("msg=ready part=api")
        return self.agent

    def start_beside_limited_pod(self):
        """Start the agent where a pod has the limit of its annotation, 1M into it."""
        self.node.attached("net/a/eth0", 1000000, 0)
        self.pod(annotations={IN: "1M"})
        self.start()

    def pod(self, name="a", annotations=None, plugins=None, bandwidth=None):
        self.node.pod(name, bandwidth, plugins or PLUGINS, annotations)
        self.api.put(name, annotations)

    def refuse_bookmarks(self, h):
        if "allowWatchBookmarks=true" not in h.path:
            return False
        line = (b'{"type":"ERROR","object":{"kind":"Status","code":500,'
                b'"message":"RequestWatchProgress is disabled"}}\n')
        return self.api.answer(h, 200, line) or True

    def until(self, name, limits, timeout=60):
        wait_until(lambda: self.node.limits(name) == limits,
                   lambda: f"{self.node.limits(name)}, not {limits}\n"
                   f"{self.node.calls()}\n{self.agent.log()}", timeout)

    def calls(self, *names):
        return [c for c in self.node.calls() if c.split()[0] in names
                and "preload" not in c]


class Edits(Case):
    def test_request(self):
        """Watches of nodes that begin together do not end together."""
        seconds = set()
        for _ in range(4):
            self.start()
            wait_until(lambda: self.api.watches, "no watch")
            watch = self.api.watches.pop()
            seconds.add(int(watch.pop("timeoutSeconds")))
            self.assertEqual(watch, {
                "path": "/api/v1/pods", "watch": "true", "resourceVersion": "0",
                "allowWatchBookmarks": "true", "fieldSelector": "spec.nodeName=node-1,"
                "status.phase!=Succeeded,status.phase!=Failed"})
            self.agent.stop()
        self.assertTrue(len(seconds) > 1 and min(seconds) >= 200 and max(seconds) <= 400, seconds)
        headers = self.api.headers[0]
        self.assertEqual(headers["Authorization"], "Bearer secret")
        self.assertIn("as=PartialObjectMetadata", headers["Accept"])

    def test_rate(self):
        self.node.attached("net/a/eth0", 10000000, 0)
        self.pod(annotations={IN: "10M"})
        self.start()
        self.api.put("a", {IN: "20M", OUT: "1.5Mi"})
        self.until("a", (20000000, 1572864))
        self.agent.wait("limits follow the pod's annotations")
        # The first one was as it should be.
        self.assertEqual(len(self.calls("configure", "attach")), 1)

    def test_time(self):
        """Measure the time from the change to the limit: the median and the worst of
        50."""
        self.start_beside_limited_pod()
        took = []
        for n in range(50):
            begin = time.monotonic()
            self.api.put("a", {IN: f"{n + 2}M"})
            self.until("a", ((n + 2) * 1000000, 0))
            took.append(time.monotonic() - begin)
        print(f"edit to limit: median {statistics.median(took) * 1e3:.0f} ms, "
              f"worst {max(took) * 1e3:.0f} ms", file=sys.stderr)
        self.assertLess(statistics.median(took), 1)

    def test_annotation_comes_and_goes(self):
        self.pod()
        self.start()
        self.api.put("a", {IN: "5M"})
        self.until("a", (5000000, 0))
        # The attachment stays, because the runtime may ask CHECK for it.
        self.api.put("a", {"other": "x"})
        self.until("a", (0, 0))
        self.api.put("a", {OUT: "5M"})
        self.until("a", (0, 5000000))
        self.assertEqual(self.calls("detach"), [])

    def test_unrelated_changes(self):
        self.start_beside_limited_pod()
        for n in range(20):
            self.api.put("a", {IN: "1M", "other": str(n)}, labels={"n": str(n)})
        self.api.put("a", {IN: "2M"})
        self.until("a", (2000000, 0))
        self.assertEqual(len(self.calls("configure", "attach")), 1)

    def test_edited_while_away(self):
        """An edit that restores what the pod was made with counts as well."""
        self.node.attached("net/a/eth0", 20000000, 0)
        self.pod(annotations={IN: "10M"}, bandwidth={"ingressRate": 10000000})
        self.start()
        self.until("a", (10000000, 0))

    def test_bad_value(self):
        self.start_beside_limited_pod()
        for n, bad in enumerate(("fast", "-1", "10m", "1", "2P", "", "1M ")):
            self.api.put("a", {IN: bad})
            wait_until(lambda n=n: len(self.api.events) == n + 1,
                       lambda bad=bad: f"'{bad}'\n{self.agent.log()}")
        self.assertEqual(self.node.limits("a"), (1000000, 0))
        path, event = self.api.events[0]
        self.assertEqual(path, "/api/v1/namespaces/shop/events")
        self.assertEqual(event["involvedObject"], {
            "apiVersion": "v1", "kind": "Pod", "namespace": "shop",
            "name": "pod-a", "uid": "uid-a"})
        self.assertEqual((event["type"], event["reason"]),
                         ("Warning", "BandwidthNotChanged"))
        self.assertIn("kubernetes.io/ingress-bandwidth: 'fast'",
                      event["message"])
        self.agent.wait("keeps the limits that it has", 7)
        self.api.put("a", {IN: "3M"})
        self.until("a", (3000000, 0))

    def test_events_wait(self):
        """A server that is busy gets them later, in their order."""
        self.api.refused_posts = 3
        self.start_beside_limited_pod()
        for bad in ("fast", "slow"):
            self.api.put("a", {IN: bad})
            self.agent.wait(f"'{bad}'")
        wait_until(lambda: len(self.api.events) == 2, self.agent.log)
        self.assertIn("'fast'", self.api.events[0][1]["message"])
        self.assertEqual(self.agent.count("Events wait: namespace shop: the API server answers 503"), 1)

    def test_library_refuses(self):
        self.start_beside_limited_pod()
        self.node.fail("configure", 1)
        self.api.put("a", {IN: "2M"})
        self.agent.wait("fake configure: Operation not permitted")
        wait_until(lambda: self.api.events, "no Event")

    def test_limits_unknown(self):
        self.pod()
        self.start()
        self.node.fail("query", 1)
        self.api.put("a", {IN: "2M"})
        self.agent.wait("fake query: Operation not permitted")
        self.assertEqual(self.calls("attach", "configure"), [])
        self.node.fail("query", 0)
        self.until("a", (2000000, 0))

    def test_edit_while_the_pod_is_adopted(self):
        """The annotations of now win over those that the pod was made with."""
        self.start("--period", "1s")
        hold = self.node.state / "hold-attach"
        hold.touch()
        self.node.pod("a", {"ingressRate": 1000000}, [natra()])
        wait_until(lambda: self.calls("attach"), self.agent.log)
        self.api.put("a", {IN: "2M"})
        self.pod("b", {IN: "3M"})
        # A job that did not wait would be at this point by now.
        time.sleep(0.5)
        self.assertEqual(len(self.calls("attach")), 1)
        hold.unlink()
        self.agent.wait("limited a running pod")
        self.until("b", (3000000, 0))
        self.until("a", (2000000, 0))

    def test_edit_of_a_pod_that_is_taken_over_later(self):
        """An edit is not lost while upstream's queues must drain first."""
        self.start("--period", "2s", "--replace-bandwidth")
        self.node.waiting("a")
        self.node.pod("a", {"ingressRate": 1000000}, [natra()])
        self.api.put("a", {IN: "2M"})
        self.until("a", (2000000, 0))
        self.assertEqual(self.agent.count("keeps the limits"), 0)

    def test_interface_of_multus(self):
        """The limits of an additional network are not the pod's annotations, those of
        the default one are."""
        self.node.pod("a", None, [{"type": "multus"}])
        for ifname in ("eth0", "net1"):
            self.node.pod("a", {"ingressRate": 7000000}, ["ptp"], multus=ifname)
        self.start()
        self.until("a", (7000000, 0))
        self.api.put("a", {IN: "2M"})
        self.until("a", (2000000, 0))
        self.assertEqual(self.node.limits("a", "net1"), (7000000, 0))

    def test_unknown_pods(self):
        self.start()
        self.api.put("elsewhere", {IN: "1M"})
        self.api.delete("elsewhere")
        self.pod("b", {IN: "3M"})
        self.until("b", (3000000, 0))
        self.assertEqual(self.api.events, [])

    def test_no_adopt(self):
        self.pod("a", {IN: "1M"})
        self.node.attached("net/b/eth0", 1000000, 0)
        self.pod("b", {IN: "2M"})
        self.start("--no-adopt")
        self.until("b", (2000000, 0))
        self.assertIsNone(self.node.limits("a"))

    def test_static_pod(self):
        """The API server has it as a mirror, with another uid than the runtime's. No other pod gets
        at it by saying so."""
        mirror = "kubernetes.io/config.mirror"
        self.node.attached("net/a/eth0", 1000000, 0)
        self.node.pod("a", None, PLUGINS, {IN: "1M"})
        self.api.put("a", {IN: "1M", mirror: "uid-a"}, uid="uid-of-mirror")
        self.start()
        self.api.put("a", {IN: "2M", mirror: "uid-a"}, uid="uid-of-mirror")
        self.until("a", (2000000, 0))
        for n, other in enumerate(({"name": "pod-b"}, {"namespace": "far"})):
            self.api.tell("ADDED", {"metadata": {
                "name": "pod-a", "namespace": "shop", "uid": f"thief-{n}", "resourceVersion": "7",
                "annotations": {IN: "9M", mirror: "uid-a"}, **other}})
        self.api.put("a", {IN: "fast", mirror: "uid-a"}, uid="uid-of-mirror")
        wait_until(lambda: self.api.events, self.agent.log)
        self.assertEqual(self.api.events[0][1]["involvedObject"]["uid"], "uid-of-mirror")
        self.assertEqual(len(self.calls("configure", "attach")), 1)

    def test_leftovers_stay(self):
        """Upstream's limits hold until they are replaced on request."""
        self.node.leftovers("eth0")
        self.pod("a", {IN: "1M"})
        self.start()
        self.node.attached("net/b/eth0", 1000000, 0)
        self.pod("b", {IN: "2M"})
        self.until("b", (2000000, 0))
        self.assertIsNone(self.node.limits("a"))
        self.agent.wait("follow the pod")
        self.assertEqual(self.agent.count("follow the pod"), 1)

    def test_edit_before_the_interface(self):
        """The server reports a pod before it runs; an edit in between counts, too."""
        self.start()
        self.api.put("a", {IN: "1M"})
        self.api.put("a", {IN: "2M"})
        time.sleep(0.3)
        # The runtime has read the first one.
        self.node.pod("a", {"ingressRate": 1000000}, [natra()],
            {IN: "1M"})
        self.node.attached("net/a/eth0", 1000000, 0)
        self.api.put("a", {IN: "2M"}, labels={"phase": "running"})
        self.until("a", (2000000, 0))

    def test_interface_comes_while_the_job_works(self):
        """The pod's last event has the same annotations, and the job has not found the pod."""
        self.start_beside_limited_pod()
        hold = self.node.touch("hold-net+a+eth0")
        self.api.put("b", {IN: "2M"})
        self.api.put("a", {IN: "2M"})
        wait_until(lambda: self.calls("configure"), self.agent.log)
        self.node.pod("b", {"ingressRate": 1000000}, [natra()], {IN: "1M"})
        self.node.attached("net/b/eth0", 1000000, 0)
        self.api.put("b", {IN: "2M"}, labels={"phase": "running"})
        time.sleep(0.3)
        hold.unlink()
        self.until("b", (2000000, 0))

    def test_failure_is_tried_again(self):
        self.start_beside_limited_pod()
        self.node.fail("configure", 16)
        begin = time.monotonic()
        self.api.put("a", {IN: "2M"})
        wait_until(lambda: len(self.calls("configure")) >= 5, self.agent.log)
        # The waits double from 0.1 s on, and a failure that lasts is logged once.
        self.assertGreater(time.monotonic() - begin, 1.4)
        wait_until(lambda: self.api.events, self.agent.log)
        self.assertEqual(self.agent.count("keeps the limits that it has"), 1)
        self.assertEqual(len(self.api.events), 1)
        self.node.fail("configure", 0)
        self.until("a", (2000000, 0))

    def test_slow_edits_make_way(self):
        """Each has 2 s beside others, and then 20 s by itself, behind those that come."""
        for name in "acde":
            self.node.attached(f"net/{name}/eth0", 1000000, 0)
            self.pod(name, {IN: "1M"})
        self.node.attached("net/b/eth0", 1000000, 0)
        self.pod("b", {IN: "1M"})
        self.start()
        self.agent.wait("part=pods")
        holds = [self.node.touch(f"hold-net+{name}+eth0") for name in "acde"]
        for name in "acde":
            self.api.put(name, {IN: "2M"})
        wait_until(lambda: self.calls("configure"), self.agent.log)
        self.api.put("b", {IN: "3M"})
        self.until("b", (3000000, 0), 16)
        for hold in holds:
            hold.unlink()
        for name in "acde":
            self.until(name, (2000000, 0))
        self.assertEqual(self.agent.count("takes too long"), 0)

    def test_newer_edit_than_the_failed_one(self):
        self.start_beside_limited_pod()
        self.node.fail("configure", 16)
        self.api.put("a", {IN: "2M"})
        self.agent.wait("keeps the limits that it has")
        self.api.put("a", {IN: "3M"})
        self.node.fail("configure", 0)
        self.until("a", (3000000, 0))
        time.sleep(1)
        self.assertEqual(self.node.limits("a"), (3000000, 0))
        self.assertNotIn("in=2000000", self.calls("configure")[-1])

    def test_pod_of_a_failed_edit_goes(self):
        self.start_beside_limited_pod()
        self.node.fail("configure", 16)
        self.api.put("a", {IN: "2M"})
        self.agent.wait("keeps the limits that it has")
        self.api.delete("a")
        self.is_not_tried_again()

    def test_pod_goes_while_its_edit_fails(self):
        self.start_beside_limited_pod()
        self.node.fail("configure", 16)
        hold = self.node.touch("hold-configure")
        self.api.put("a", {IN: "2M"})
        wait_until(lambda: self.calls("configure"), self.agent.log)
        self.api.delete("a")
        time.sleep(0.5)
        hold.unlink()
        self.agent.wait("keeps the limits that it has")
        self.is_not_tried_again()

    def is_not_tried_again(self):
        # When a later event has taken effect, the agent knows that the pod is gone.
        self.pod("b", {IN: "3M"})
        self.until("b", (3000000, 0))
        tries = len(self.calls("configure"))
        time.sleep(1.5)
        self.assertEqual(len(self.calls("configure")), tries)


class Programs(Case):
    def test_job_is_killed(self):
        """It is started again long before the next look is due."""
        kill = self.node.touch("kill-gc")
        self.start()
        self.agent.wait("loading the programs ended half-way")
        self.assertIn("[-] programs: loading the programs ended half-way",
                      self.agent.wait_ready(False))
        self.agent.wait("part=pods")
        wait_until(lambda: set(re.findall(r"natra_ready\{.*", self.agent.get("/metrics")[1])) == {
            'natra_ready{part="programs"} 0', 'natra_ready{part="pods"} 1',
            'natra_ready{part="api"} 1'}, self.agent.log)
        kill.unlink()
        self.agent.wait_ready(timeout=60)


class Server(Case):
    def ready(self):
        """An edit comes through."""
        name = f"r{len(self.api.pods)}"
        self.pod(name, {IN: "4M"})
        self.until(name, (4000000, 0))

    def test_watch_is_cut(self):
        self.start()
        self.agent.wait_ready()
        self.ready()
        self.api.bookmark()
        version = self.api.version
        time.sleep(0.3)
        self.api.cut()
        self.ready()
        # It goes on where it was.
        self.assertEqual(self.api.watches[-1]["resourceVersion"], str(version))
        self.assertEqual(self.agent.get("/readyz")[0], 200)

    def test_cut_before_all_pods(self):
        """The version of a pod that was sent says nothing of those that were to come behind it."""
        for name in "ba":
            self.node.attached(f"net/{name}/eth0", 1000000, 0)
            self.pod(name, {IN: "2M"})
        self.api.cut_after = 1
        self.start()
        self.until("a", (2000000, 0))
        self.until("b", (2000000, 0))
        self.assertEqual([w["resourceVersion"] for w in self.api.watches], ["0", "0"])

    def test_cut_without_a_bookmark(self):
        """The server sends a change behind all pods that there were, so the watch goes on there."""
        self.start_beside_limited_pod()
        self.api.put("a", {IN: "2M"})
        self.until("a", (2000000, 0))
        version = self.api.version
        self.api.cut()
        self.ready()
        self.assertEqual(self.api.watches[-1]["resourceVersion"], str(version))

    def test_gone(self):
        """An event and a status say that the version is too old."""
        self.start()
        self.ready()
        self.api.tell("ERROR", {"kind": "Status", "code": 410,
                                "message": "too old resource version"})
        wait_until(lambda: len(self.api.watches) >= 2, "no new watch")
        self.assertEqual(self.api.watches[-1]["resourceVersion"], "0")
        self.ready()
        self.api.bookmark()
        time.sleep(0.3)
        self.api.oldest = 1000
        self.api.version = 2000
        self.api.cut()
        wait_until(lambda: len(self.api.watches) >= 4, "no new watch")
        self.assertEqual(self.api.watches[-1]["resourceVersion"], "0")
        self.ready()

    def test_error_event(self):
        self.start()
        self.api.tell("ERROR", {"code": 500, "message": "etcd is away"})
        self.agent.wait("etcd is away")
        self.ready()

    def test_no_bookmarks_at_first(self):
        """An API server whose etcd cannot report its progress refuses them."""
        self.api.behave = self.refuse_bookmarks
        self.start()
        self.ready()
        self.assertEqual(self.agent.count("msg=ready part=api"), 1)
        self.assertEqual(len(self.api.watches), 2)

    def test_no_token(self):
        self.token.unlink()
        self.start(wait=False)
        self.agent.wait("the token cannot be read: No such file")
        self.token.write_text("")
        self.agent.wait("the token cannot be read: No data")
        self.token.write_text("secret")
        self.ready()

    def test_forbidden(self):
        self.api.behave = lambda h: self.api.answer(h, 403) or True
        self.start(wait=False)
        self.agent.wait("the API server: answers 403")
        # All but live edits works.
        self.agent.wait_ready()
        self.assertIn('natra_ready{part="api"} 0\n', self.agent.get("/metrics")[1])
        self.api.behave = None
        self.ready()
        wait_until(lambda: 'natra_ready{part="api"} 1\n' in self.agent.get("/metrics")[1],
                   self.agent.log)

    def test_garbage(self):
        """The watch goes on behind it; what was torn is asked for again."""
        self.start()
        for garbage in ("nonsense\n", "{\n", "\0\n", b"\xff\xfe\x00\n", "[" * 5000 + "\n"):
            count = len(self.api.watches)
            self.api.raw(garbage)
            wait_until(lambda c=count: len(self.api.watches) > c and
                       self.api.watchers, lambda g=garbage: f"{g!r}"
                       f"\n{self.agent.log()}", 30)
            self.assertEqual(self.api.watches[-1]["resourceVersion"], "0")
            self.pod(f"g{count}", {IN: "1M"})
            self.until(f"g{count}", (1000000, 0), 30)
        self.assertIn("[+] api: 5 events could not be read\n", self.agent.wait_ready())

    def test_pod_of_an_unreadable_event(self):
        """It is named in the log, in an Event and in a metric; the node stays ready."""
        self.start()
        self.api.raw('{"type":"ADDED","object":{"metadata":{"name":"pod-a","namespace":'
                     '"shop","uid":"uid-a","annotations":"' + "x" * 17000000 + '"}}}\n')
        self.agent.wait('read" namespace=shop pod=pod-a error="it is over 16 MiB"')
        wait_until(lambda: self.api.events, "no Event")
        self.assertEqual(self.api.events[0][1]["involvedObject"]["uid"], "uid-a")
        self.assertIn("it is over 16 MiB", self.api.events[0][1]["message"])
        self.ready()
        self.assertEqual(len(self.api.watches), 1)
        self.assertIn("natra_unreadable_events_total 1\n", self.agent.get("/metrics")[1])
        time.sleep(0.2)
        self.agent.check_memory("RssAnon", 5000)

    def test_unknown_type_and_empty_lines(self):
        self.start()
        self.api.raw("\n\n")
        self.api.tell("NEWKIND", {"metadata": {"resourceVersion": "7"}})
        self.ready()
        self.assertEqual(len(self.api.watches), 1)

    def test_pod_of_an_unreadable_result(self):
        """It is named likewise; the edit takes effect when the result is whole again."""
        self.node.attached("net/a/eth0", 1000000, 0)
        self.pod(annotations={IN: "1M"})
        path = self.node.result("net-a-eth0")
        whole = path.read_text()
        for torn in (whole[:whole.index("capabilityArgs") + 40], whole.replace('"config"', '"x"'),
                     whole.replace('"result"', '"' + "x" * 17000000 + '"')):
            path.write_text(torn)
            self.api.events.clear()
            with self.start("--period", "1s") as agent:
                agent.wait("the pod stays as it is\" file=/var/lib/cni/results/net-a-eth0 "
                           "pod=shop/pod-a")
                wait_until(lambda: self.api.events, agent.log)
                self.assertEqual(self.api.events[0][1]["involvedObject"]["name"], "pod-a")
                self.assertIn("net-a-eth0: cannot be read", self.api.events[0][1]["message"])
                self.assertIn("[+] pods: 1 cached results cannot be read\n", agent.wait_ready())
                self.assertIn("natra_unreadable_results 1\n", agent.get("/metrics")[1])
                self.api.put("a", {IN: "2M"})
                agent.wait("pod=pod-a error=", 1)
                self.assertEqual(self.node.limits("a"), (1000000, 0))
                path.write_text(whole)
                self.until("a", (2000000, 0))
                wait_until(lambda: "natra_unreadable_results 0\n" in agent.get("/metrics")[1],
                           agent.log)
            self.api.put("a", {IN: "1M"})
            self.node.attached("net/a/eth0", 1000000, 0)

    def test_hangs_and_resets(self):
        """A server that closes at once, or speaks no HTTP, is not hammered."""
        def reset(h):
            h.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                                    b"\1\0\0\0\0\0\0\0")
            h.close_connection = True
            return True

        self.api.behave = reset
        begin = time.monotonic()
        self.start(wait=False)
        wait_until(lambda: len(self.api.watches) >= 5, self.agent.log)
        # The waits double, and the first one is at least 0.1 s.
        self.assertGreater(time.monotonic() - begin, 1.4)
        self.api.behave = None
        self.ready()

    def test_no_answer(self):
        def hang(h):
            while self.api.behave:
                time.sleep(0.1)
            h.close_connection = True
            return True

        self.api.behave = hang
        self.start(wait=False)
        self.agent.wait("the API server: no answer", timeout=25)
        self.agent.wait_ready()
        self.api.behave = None
        self.ready()


if __name__ == "__main__":
    parallel.main(live=True)
