#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""natractl hook as an OCI runtime calls it: what it reads, what it refuses, and that it
fails only if it is told to. The library prints its calls."""

import contextlib
import json
import os
import re
import socket
import subprocess
import tempfile
import unittest

NATRACTL = os.environ["NATRACTL_FAKE"]
IN, OUT = "kubernetes.io/ingress-bandwidth", "kubernetes.io/egress-bandwidth"
FAIL = ("--on-error", "fail")


class File(unittest.TestCase):
    """The file that tells a runtime for which containers it calls the hook."""

    def is_called(self, *annotations):
        """As the runtime decides it: for each pattern there must be an annotation."""
        with open(os.environ["NATRA_HOOK"], encoding="ascii") as f:
            when = json.load(f)["when"]["annotations"]
        return all(any(re.search(key, a) and re.search(value, "10M") for a in annotations)
                   for key, value in when.items())

    def test_each_annotation_of_a_limit(self):
        for name in (IN, OUT, "natra.io/egress-burst", "natra.io/classes",
                     "qos.projectcalico.org/egressBandwidth"):
            self.assertTrue(self.is_called("run.oci.keep", name), name)
        for name in ("kubernetes.io/ingress-bandwidth-class", "x.natra.io/classes",
                     "natraXio/classes"):
            self.assertFalse(self.is_called(name), name)


class Hook(unittest.TestCase):
    def setUp(self):
        # A process in a network namespace of its own, as of a container.
        self.process = subprocess.Popen(
            ["unshare", "--map-root-user", "--net", "sh", "-c", "echo; exec cat"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        if self.process.stdout.readline() != b"\n":
            self.skipTest("no network namespace can be made")
        self.addCleanup(self.process.stdout.close)
        self.addCleanup(self.process.communicate)

    def state(self, annotations, **more):
        return json.dumps(dict({
            "ociVersion": "1.0.2", "id": "c0ffee", "status": "creating",
            "pid": self.process.pid, "bundle": "/b",
            "annotations": annotations}, **more))

    def hook(self, stdin, *args):
        r = subprocess.run([NATRACTL, "hook", *args], input=stdin, text=True,
                           capture_output=True, timeout=20)
        self.assertEqual(r.stdout, "")
        return r

    def does(self, stdin, calls, *args):
        r = self.hook(stdin, *args)
        self.assertEqual((r.returncode, r.stderr), (0, calls))

    def refused(self, stdin, text, *args):
        """It says so in one line, and the container starts unless it must not."""
        for more, code in (((), 0), (FAIL, 1), (("--on-error=fail",), 1),
                           (("--on-error", "continue"), 0)):
            r = self.hook(stdin, *args, *more)
            self.assertEqual(r.returncode, code, r.stderr)
            self.assertEqual(r.stderr.count("\n"), 1, r.stderr)
            self.assertTrue(r.stderr[:-1].isprintable(), repr(r.stderr))
            self.assertTrue(r.stderr.startswith("natractl: hook: "), r.stderr)
            self.assertIn(text, r.stderr)

    def left_out(self, annotations, text, calls, *args):
        """A wrong annotation does not count, which it says in one line, unless the container
        must not start then."""
        for more in ((), ("--on-error", "continue")):
            r = self.hook(self.state(annotations), *args, *more)
            self.assertEqual(r.returncode, 0, r.stderr)
            said, *did = r.stderr.splitlines(keepends=True)
            self.assertTrue(said[:-1].isprintable(), repr(said))
            self.assertIn(text, said)
            self.assertEqual("".join(did), calls)
        r = self.hook(self.state(annotations), *args, *FAIL)
        self.assertEqual((r.returncode, r.stderr.count("\n")), (1, 1), r.stderr)
        self.assertIn(text, r.stderr)

    def attach(self, rates, ifname="eth0", more=""):
        return (f"attach {ifname} of /proc/{self.process.pid}/ns/net as "
                f"oci/c0ffee/{ifname}: {rates}{more}\n")

    def test_rates(self):
        both = {IN: "10M", OUT: "1500k"}
        self.does(self.state(both), self.attach("10000000 1500000"))
        self.does(self.state({OUT: "5M"}), self.attach("0 5000000"))
        self.does(self.state(both, status="created"), self.attach("10000000 1500000"))
        self.does(self.state(both), self.attach("10000000 1500000", "eth1"), "eth1")

    def test_annotations_of_natra(self):
        self.does(self.state({IN: "10M", "natra.io/fast-pass": "strict"}),
                  self.attach("10000000 0", more=" fast pass strict"))

    def test_rates_of_the_options(self):
        """They hold for a direction that no annotation limits."""
        options = ("--ingress-rate", "10M", "--egress-rate", "1500k")
        self.does(self.state({}), self.attach("10000000 1500000"), *options)
        self.does(self.state(None), self.attach("0 1500000"), "--egress-rate", "1500k")
        self.does(self.state({IN: "2M"}), self.attach("2000000 1500000"), *options)
        self.does(self.state({IN: "20M", OUT: "3M"}), self.attach("20000000 3000000"),
                  *options)
        self.does(self.state({"natra.io/fast-pass": "strict"}),
                  self.attach("10000000 0", more=" fast pass strict"), "--ingress-rate", "10M")
        self.left_out({IN: "10Q"}, f"annotation {IN}: '10Q'", self.attach("10000000 1500000"),
                      *options)

    def test_nothing_to_limit(self):
        for annotations in ({}, {"io.podman.x": "y"}, None):
            self.does(self.state(annotations), "")
        self.does('{"id": "c", "status": "creating", "pid": 1}', "")

    def test_end(self):
        self.does(self.state({IN: "10M"}, status="stopped", pid=0),
                  "detach oci/c0ffee/eth0\n")
        self.does(self.state(None, status="stopped"), "detach oci/c0ffee/eth1\n",
                  "eth1")

    def test_bad_annotations(self):
        for name, value, text in (
                (IN, "10Q", f"annotation {IN}: '10Q': is not a rate from 1k to 1P"),
                (OUT, "", f"annotation {OUT}: '': is not a rate"),
                (OUT, 5, f"{OUT}: is not a string"),
                ("natra.io/fast-pass", "paid", "natra.io/fast-pass: 'paid': is not"),
                ("natra.io/classes", "lan=10.0.0.0/33", "natra.io/classes: 'lan=10"),
                ("natra.io/edt-pacing", "\x1b[1m\n", "natra.io/edt-pacing")):
            with self.subTest(name=name, value=value):
                self.left_out({IN: "1M", name: value}, text,
                              self.attach("0 5000000" if name == IN else "1000000 5000000"),
                              "--egress-rate", "5M")

    def test_annotations_that_are_a_list(self):
        self.left_out(["natra.io/fast-pass"], "annotations: is not an object",
                      self.attach("0 5000000"), "--egress-rate", "5M")

    def test_maximum_of_a_namespace(self):
        """It holds whatever the annotations say, and the default where they say nothing."""
        with tempfile.NamedTemporaryFile("w") as f:
            json.dump({"shop": {"max": {"egressRate": "2M"}, "default": {"ingressRate": "3M"}},
                       "few": {"max": {"egressRate": "2M"}, "allowAnnotations": ["sli"]},
                       "*": {"max": {"egressRate": "1M"}}}, f)
            f.flush()
            options = ("--namespaces", f.name)
            shop = {"io.kubernetes.pod.namespace": "shop"}
            for annotations, rates in (
                    ({}, "0 1000000"), ({"io.kubernetes.pod.namespace": "x"}, "0 1000000"),
                    ({"io.kubernetes.cri.sandbox-namespace": "shop"}, "3000000 2000000"),
                    # Kubernetes' rates count also where the rule allows few annotations.
                    ({"io.kubernetes.pod.namespace": "few", IN: "5M", OUT: "1500k"},
                     "5000000 1500000"),
                    (shop, "3000000 2000000"), ({**shop, OUT: "1M"}, "3000000 1000000"),
                    ({**shop, IN: "9G"}, "9000000000 2000000")):
                self.does(self.state(annotations), self.attach(rates), *options)
            # A runtime passes on a name that a tenant has written: containerd writes over one of
            # them, and CRI-O over the other.
            sandbox = {"io.kubernetes.cri.sandbox-namespace": "shop"}
            self.does(self.state({**shop, **sandbox}), self.attach("3000000 2000000"), *options)
            for names in ({"io.kubernetes.pod.namespace": "x", **sandbox},
                          {**shop, "io.kubernetes.cri.sandbox-namespace": "x"}):
                self.left_out({**names, IN: "9G", OUT: "9G"},
                              "io.kubernetes.pod.namespace: differs from",
                              self.attach("3000000 1000000"), *options)
            for name, value in ((OUT, "1P"), (OUT, "10m"), (OUT, ""), (OUT, 5), (OUT, []),
                                ("natra.io/fast-pass", "x"), ("natra.io/classes", "a=0.0.0.0/0"),
                                ("natra.io/egress-burst", "100G"), ("natra.io/sli", {})):
                with self.subTest(name=name, value=value):
                    r = self.hook(self.state({**shop, name: value}), *options)
                    self.assertTrue(r.stderr.endswith(self.attach("3000000 2000000")), r.stderr)
        self.refused(self.state({OUT: "1M"}), "is not there", *options)

    def test_pod_of_kubernetes(self):
        """The plugin limits it. The hook does if it is told what the namespaces allow."""
        rates = {IN: "10M", OUT: "9M"}
        with tempfile.NamedTemporaryFile("w") as f:
            json.dump({"*": {"max": {"egressRate": "2M"}}}, f)
            f.flush()
            for name in ("pod.namespace", "pod.name", "cri.sandbox-namespace", "cri.sandbox-id"):
                for value in ("shop", "", 5):
                    with self.subTest(name=name, value=value):
                        pod = self.state({**rates, f"io.kubernetes.{name}": value})
                        for options in ((), FAIL, ("--egress-rate", "1M")):
                            self.does(pod, "", *options)
                pod = {IN: "10M", f"io.kubernetes.{name}": "shop"}
                self.does(self.state(pod, status="stopped"), "")
                self.does(self.state(pod), self.attach("10000000 2000000"), "--namespaces", f.name)
                self.does(self.state(pod, status="stopped"), "detach oci/c0ffee/eth0\n",
                          "--namespaces", f.name)
        # podman writes these for its own pods.
        podman = {"io.kubernetes.cri-o.SandboxID": "c0", "io.container.manager": "libpod"}
        self.does(self.state({**rates, **podman}), self.attach("10000000 9000000"))

    def test_nobody_reads(self):
        """Neither a runtime that does not read the hook's words nor a journal that hangs
        keeps the container waiting."""
        end, write = os.pipe()
        os.set_blocking(write, False)
        with contextlib.suppress(BlockingIOError):
            while True:
                os.write(write, b"." * 4096)
        os.set_blocking(write, True)
        with tempfile.TemporaryDirectory() as d, socket.socket(
                socket.AF_UNIX, socket.SOCK_DGRAM) as journal, socket.socket(
                socket.AF_UNIX, socket.SOCK_DGRAM) as other:
            journal.bind(f"{d}/log")
            other.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                while True:
                    other.sendto(b"x", f"{d}/log")
            p = subprocess.run(
                ["unshare", "--map-root-user", "--mount", "sh", "-c",
                 "mkdir $0/dev && mount --rbind /dev $0/dev && mount -t tmpfs none /dev &&"
                 " touch /dev/null /dev/log && mount --bind $0/dev/null /dev/null &&"
                 " mount --bind $0/log /dev/log || exit 9; exec $1 hook", d, NATRACTL],
                input="x", text=True, stdout=subprocess.DEVNULL, stderr=write, timeout=20)
        os.close(write)
        os.close(end)
        self.assertEqual(p.returncode, 0)

    def test_bad_state(self):
        for text in ("", "x", "[]", "{}", '{"id": "c"}', '{"status": "creating"}',
                     '{"id": 5, "status": "creating"}', '{"id": "c",', "\0", "9" * 70):
            with self.subTest(text=text):
                self.refused(text, "stdin: is not the state of a container")
        self.refused(" " * (1 << 25), "stdin: is too long")
        for pid in (0, -1, "1", None, 2**40, 1.5):
            with self.subTest(pid=pid):
                self.refused(self.state({IN: "1M"}, pid=pid), "c0ffee: pid: ")
        self.refused(self.state({IN: "1M"}, id="i" * 300), "id: is too long")
        self.refused(self.state({IN: "10Q"}, id="a\x1b\nb"), "a\\x1b\\x0ab: annotation")

    def test_process_that_has_ended(self):
        gone = subprocess.Popen(["true"])
        gone.wait()
        self.refused(self.state({IN: "1M"}, pid=gone.pid),
                     f"/proc/{gone.pid}/ns/net: No such file")

    def test_network_of_the_host(self):
        """It is no failure, since rates of the hook's args are for each container."""
        self.does(self.state({IN: "1M"}, pid=os.getpid()),
                  "natractl: hook: c0ffee: it uses the host's network, which is not limited\n",
                  *FAIL)

    def test_failure_of_the_library(self):
        self.refused(self.state({IN: "1M"}), "c0ffee: No such device", "none")

    def test_wrong_arguments(self):
        """A file in hooks.d that is wrong must not make every container fail."""
        for args in (("--bogus",), ("a", "b"), ("--on-error", "never"), ("a/b",),
                     ("--egress-rate", "10Q"), ("--egress-burst", "10k")):
            with self.subTest(args=args):
                r = self.hook(self.state({IN: "1M"}), *args)
                self.assertEqual((r.returncode, r.stderr.count("\n")), (0, 1), r.stderr)
                r = self.hook(self.state({IN: "1M"}), *args, *FAIL)
                # The last of two words counts.
                self.assertEqual(r.returncode, 0 if args[0] == "--on-error" else 2)


if __name__ == "__main__":
    unittest.main()
