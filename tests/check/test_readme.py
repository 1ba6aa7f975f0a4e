#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Takes the blocks of code out of the README and runs them on this kernel: the lines of
natractl, the part of a C program, and the plugin's element with the pod's annotations.
Each must limit a pod to the rates that it names.

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

sys.path.insert(0, f"{house.ROOT}/tests/cni")
import plugin

POD, IFNAME, NETNS = "pod1", "eth0", "/run/netns/pod1"
# This is what containerd 1.6 sent to the `bandwidth` plugin for a pod with both annotations.
CAPTURE = "tests/cni/captures/ctrd1.6-ADD.json"
PREFIX = "kubernetes.io/"
SUFFIX = "-bandwidth"
PROGRAM = """#include <natra/natra.h>

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


class Readme(unittest.TestCase):
    def setUp(self):
        for line in (f"ip netns add {POD}", "ip link add host1 up type veth peer "
                     f"name {IFNAME} netns {POD}"):
            self.must(*line.split())
        self.addCleanup(self.must, "ip", "netns", "del", POD)
        # The kernel removes what is in a namespace later than the command ends.
        self.addCleanup(self.must, "ip", "link", "del", "host1")
        self.addCleanup(self.natractl, "detach", IFNAME, "--netns", POD)

    def must(self, *argv, **kw):
        r = run(*argv, **kw)
        self.assertEqual(r.returncode, 0, f"{argv}\n{r.stdout}{r.stderr}")
        return r.stdout

    def natractl(self, *args):
        return self.must(os.environ["NATRACTL"], *args)

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


if __name__ == "__main__":
    plugin.isolate()
    sys.exit(unittest.main())
