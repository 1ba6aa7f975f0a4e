#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Takes the blocks of code out of the README and runs them on this kernel: the lines of
natractl, the part of a C program, and the plugin's element with the pod's annotations.
Each must limit a pod to the rates that it names. Of all other pages and manuals the lines
of natractl are run, and every other command is one that another test runs.

It needs root, and the environment of meson.build.
"""
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import house

sys.path[:0] = [f"{house.ROOT}/tests/cni", f"{house.ROOT}/tests/install"]
import plugin
from node import FLANNEL, NEW, Node

POD, IFNAME, NETNS = "pod1", "eth0", "/run/netns/pod1"
# This is what containerd 1.6 sent to the `bandwidth` plugin for a pod with both annotations.
CAPTURE = "tests/cni/captures/ctrd1.6-ADD.json"
PREFIX = "kubernetes.io/"
SUFFIX = "-bandwidth"
PROGRAM = """#include <natra/natra.h>
#include <stdio.h>

static int limit(void)
{
%s	return 0;
}

int main(void)
{
	return limit();
}
"""


def run(*argv, **kw):
    return subprocess.run([str(a) for a in argv], text=True, timeout=60,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, **kw)


def of(language):
    return [code for _, found, code in house.blocks(house.read("README.md"))
            if found == language]


def annotations():
    """Return the annotations that the README shows."""
    return dict(re.findall(r"^    (\S+): (\S+)$", "".join(of("yaml")), re.M))


def rate(quantity):
    return int(re.fullmatch(r"(\d+)M", quantity)[1]) * 10**6


class Case(unittest.TestCase):
    def make_pod(self, number):
        pod, host = f"pod{number}", f"host{number}"
        for line in (f"ip netns add {pod}", f"ip link add {host} up type veth peer "
                     f"name {IFNAME} netns {pod}"):
            self.must(*line.split())
        self.addCleanup(self.must, "ip", "netns", "del", pod)
        # The kernel removes what is in a namespace later than the command ends.
        self.addCleanup(self.must, "ip", "link", "del", host)
        # A test may have detached it.
        self.addCleanup(run, os.environ["NATRACTL"], "detach", IFNAME, "--netns", pod)

    def must(self, *argv, **kw):
        r = run(*argv, **kw)
        self.assertEqual(r.returncode, 0, f"{argv}\n{r.stdout}{r.stderr}")
        return r.stdout

    def natractl(self, *args):
        return self.must(os.environ["NATRACTL"], *args)



class Readme(Case):
    def setUp(self):
        self.make_pod(1)

    def rates(self):
        """Return the interface and both rates of each attachment."""
        return [(a["ifname"], *(a["effective"][f"{way}_rate_bits_per_sec"]
                                for way in ("ingress", "egress")))
                for a in json.loads(self.natractl("list", "--json"))]

    def test_natractl(self):
        lines = [shlex.split(line) for code in of("sh")
                 for line in code.splitlines() if line.startswith("natractl ")]
        self.assertEqual([words[1] for words in lines][::len(lines) - 1],
                         ["attach", "detach"])
        self.natractl(*lines[0][1:])
        given = [rate(lines[0][lines[0].index(f"--{way}-rate") + 1])
                 for way in ("ingress", "egress")]
        self.assertEqual(self.rates(), [(IFNAME, *given)])
        for words in lines[1:-1]:
            self.assertIn(POD, self.natractl(*words[1:]))
        self.natractl(*lines[-1][1:])
        self.assertEqual(self.rates(), [])

    def test_c(self):
        build, source = Path(os.environ["NATRA_BUILD"]), house.ROOT
        sanitize = os.environ["NATRA_SANITIZE"]
        [code] = of("c")
        with tempfile.TemporaryDirectory(prefix="natra-readme-") as tmp:
            Path(f"{tmp}/readme.c").write_text(PROGRAM % re.sub(
                    r"(?m)^(?=.)", "\t", code))
            self.must(*shlex.split(os.environ["NATRA_CC"]), "-std=c17", "-Wall",
                      "-Wextra", "-Werror", f"-I{source}/include",
                      f"-I{build}/include", f"{tmp}/readme.c",
                      build / "src/libnatra.so", "-o", f"{tmp}/readme",
                      *([] if sanitize == "none" else [f"-fsanitize={sanitize}"]))
            self.must(f"{tmp}/readme", env=dict(
                    os.environ, LD_LIBRARY_PATH=f"{build}/src"))
        given = int(re.search(r"bits_per_sec = (\d+);", code)[1])
        self.assertEqual(self.rates(), [(IFNAME, given, given)])

    def cni(self, command, conf):
        return self.must(os.environ["NATRA_CNI"], input=json.dumps(conf), env={
                "CNI_COMMAND": command, "CNI_CONTAINERID": "readme",
                "CNI_NETNS": NETNS, "CNI_IFNAME": IFNAME,
                "CNI_PATH": "/opt/cni/bin"})

    def test_plugin(self):
        [element] = map(json.loads, of("json"))
        sent = json.loads(house.read(CAPTURE))
        # With these capabilities and annotations containerd sends what it sent then.
        self.assertEqual(element["capabilities"], sent["capabilities"])
        runtime = sent["runtimeConfig"]
        given = annotations()
        self.assertEqual(set(given), {f"{PREFIX}{way}{SUFFIX}"
                                      for way in ("ingress", "egress")})
        self.assertLessEqual(given.items(), runtime[
                "io.kubernetes.cri.pod-annotations"].items())
        conf = {k: sent[k] for k in ("cniVersion", "name", "prevResult",
                                     "runtimeConfig")} | element
        self.cni("ADD", conf)
        self.assertEqual(self.rates(), [
                (IFNAME, *(rate(given[f"{PREFIX}{way}{SUFFIX}"])
                           for way in ("ingress", "egress")))])
        self.cni("DEL", conf)
        self.assertEqual(self.rates(), [])
        del conf["runtimeConfig"]
        self.cni("ADD", conf)
        self.assertEqual(self.rates(), [], "not without the annotations")


# Where the commands of pages that are not run here are run, by how they begin.
ELSEWHERE = {
    "sudo ./tools/": "tests/check/front-door: a workflow runs it",
    "tools/install-deps": "the image of the workflow has only what this installs",
    "meson ": "tools/check and tests/cni/static_build.py build so",
    "tools/check": "the workflow runs it",
    "net/": "by hand: it takes hours",
    "cc -o limit_bridge": "tests/bindings/limit_bridge.py, which builds it with meson",
    "(cd tools/examples/cni-ptp": "tests/bindings/cni_ptp.py",
    "(cd tools/nri": "tests/bindings/nri.py",
    "tools/nri/natra-nri": "tests/bindings/nri.py",
    "cargo add": "it needs the repository's address",
    "natra-sys/bindgen": "tests/rust/test.py",
    "helm ": "tests/kube/chart.py, on a node with a kubelet",
    "kubectl natra ": "tests/cli/test_kubectl.py",
    "kubectl ": "tests/kube, on a node with a kubelet, where there is one",
    "natractl() {": "tests/kube/image.py: the image has these files",
}
# What a page leaves to its reader; DOCTOR may find something wrong with the machine.
STANDS_FOR = {"NAMESPACE/POD": "shop/web", "ATTACHMENT": "web"}
ENDLESS = {"--watch", "--follow"}
DOCTOR_FOUND = 3


def of_pages():
    """Yield (page, block of commands) of all pages and manuals. A command is a line of a
    block of code that begins with what begins one of ELSEWHERE, or with a program of
    natra's."""
    begins = ("natractl ", "natra-agent ", *ELSEWHERE)
    for path in house.tracked():
        if not path.endswith((".md", ".scd")) or "/results/" in path or \
                "CHANGELOG" in path or path == "README.md":
            continue
        text = house.read(path)
        blocks = [code for _, language, code in house.blocks(text)
                  if language in ("", "sh")]
        # THROTTLED shows what doctor prints, which tests/doctor runs.
        blocks = [code for code in blocks if not re.match(r"\S+: ", code)]
        prose = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
        blocks += re.findall(r"(?:^ {4,}\S.*\n)+", prose, re.M)
        for code in blocks:
            code = re.sub(r"\\+\n\s*", "", code)
            lines = [line.strip() for line in code.splitlines()]
            found = [line for line in lines if line.startswith(begins)]
            if found:
                yield path, found


class Pages(Case):
    """Runs each block of a page in order, beside the pods shop/web and batch."""

    def setUp(self):
        self.make_pod(1)
        self.make_pod(2)
        self.node = Node({"10-flannel.conflist": FLANNEL})
        self.addCleanup(self.node.close)
        self.has_fq = json.loads(self.natractl("--json", "probe"))["fq"]

    def reset(self, block):
        for attachment in json.loads(self.natractl("--json", "list")):
            self.natractl("detach", attachment["id"])
        self.natractl("attach", IFNAME, "--netns", "pod2", "--id", "batch",
                      "--egress-rate", "1M", "--label", "shop/batch")
        if "natractl attach" not in block[0]:
            label = next(iter(re.findall(r"shop/[\w-]+", " ".join(block))), "shop/web")
            self.natractl("attach", IFNAME, "--netns", POD, "--id", "web",
                          "--ingress-rate", "100M", "--egress-rate", "100M",
                          "--label", label)

    def run_line(self, line):
        words = [STANDS_FOR.get(w, w) for w in shlex.split(line, comments=True)[1:]]
        # Each of these looks at a node's files.
        if {"install", "uninstall", "doctor"} & set(words):
            words += ["--root", str(self.node.root)]
        if {"install", "doctor"} & set(words):
            words += ["--runtime-version", NEW]
        if "install" in words:
            words += ["--plugin", os.environ["NATRA_CNI"]]
        endless = words == ["top"] or ENDLESS & set(words)
        # In the background it would send SIGCONT as well, which takes back the stop by which
        # LeakSanitizer's own process waits for this one.
        r = run(*(["timeout", "--foreground", "1"] if endless else []), os.environ["NATRACTL"],
                *words)
        if "--edt-pacing" in words and not self.has_fq:
            self.assertIn("fq", r.stderr, line)
            return
        good = {124} if endless else {0, DOCTOR_FOUND} if "doctor" in words else {0}
        self.assertIn(r.returncode, good, f"{line}\n{r.stdout}{r.stderr}")
        if "doctor" not in words:
            self.assertEqual(r.stderr, "", line)

    def test_pages(self):
        elsewhere, ran = set(ELSEWHERE), 0
        for path, block in of_pages():
            with self.subTest(page=path, block=block[0]):
                self.reset(block)
                for line in block:
                    begin = next((b for b in ELSEWHERE if line.startswith(b)), None)
                    elsewhere.discard(begin)
                    if not begin:
                        self.run_line(line)
                        ran += 1
        self.assertGreater(ran, 20)
        self.assertEqual(elsewhere - {"sudo ./tools/"}, set(), "on no page any more")


if __name__ == "__main__":
    plugin.isolate()
    sys.exit(unittest.main())
