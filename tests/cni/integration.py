#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs upstream's integration suite of the CNI plugins, unchanged, with natra
installed.

natra is installed as `bandwidth`, and for comparison the suite also runs with
upstream's own plugin. The suite runs cnitool by `ip netns exec`, in a mount namespace
that ends with each call; its lists have rates of 800 bit/s and of 8 kbit/s.
"""
import os
import re
import shutil
import subprocess
import tempfile

import plugin
from plugin import NEWEST, attachments, find_natra, need, newest, pins
from script import some_of

SUITE = f"{NEWEST}/integration"
PLUGINS = ("ptp", "bridge", "host-local")
# The suite's lists make host-local keep its addresses in these directories.
LEFT = ("/tmp/basic-ptp-test", "/tmp/chained-ptp-bandwidth-test", "/tmp/foo",
        "/tmp/bar")
# host-local makes a directory of the network's name in them.
NETWORKS = {"basic-ptp", "chained-ptp-bandwidth", "network-chain-test"}
# The suite has its echo server and client built when it begins, by
# `go build -o PATH .../echo/server`. tools/install-deps has built them already, so
# this `go` copies them.
GO = f"""#!/bin/sh
[ "$1 $2" = "build -o" ] || exit 2
exec cp "{SUITE}/echo-${{4##*/}}" "$3"
"""


# The name of the last spec begins like this; it takes nearly all of the time. The other
# specs remove the directories in LEFT, also those of a second run at the same time.
LAST_SPEC = "limits traffic only"


class Run:
    """One run of the suite, with one plugin as `bandwidth`."""

    def __init__(self, name, bandwidth, tmp):
        self.name, self.out = name, ""
        for d in ("bin", "path", "integration"):
            os.makedirs(f"{tmp}/{d}")
        for p in PLUGINS:
            os.symlink(f"{NEWEST}/{p}", f"{tmp}/bin/{p}")
        os.symlink(bandwidth, f"{tmp}/bin/bandwidth")
        os.symlink(f"{NEWEST}/cnitool", f"{tmp}/path/cnitool")
        os.symlink(f"{SUITE}/testdata", f"{tmp}/integration/testdata")
        with open(f"{tmp}/path/go", "w") as f:
            f.write(GO)
        os.chmod(f.name, 0o755)
        self.process = subprocess.Popen(
                [f"{SUITE}/integration.test", "--ginkgo.v",
                 "--ginkgo.no-color", "--test.timeout=150s"],
                cwd=f"{tmp}/integration", text=True,
                env=dict(os.environ,
                         PATH=f"{tmp}/path:{os.environ['PATH']}"),
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT)
        for line in self.process.stdout:
            self.out += line
            if LAST_SPEC in line:
                break

    def judge(self, rep):
        name = self.name
        self.out += self.process.stdout.read()
        code = self.process.wait()
        found = re.search(r"(\d+) Passed \| (\d+) Failed", self.out)
        rep.equal(f"{name}: specs that passed and failed",
                  found and found.groups(), ("3", "0"))
        rep.equal(f"{name}: exit code", code, 0)
        if code:
            print(self.out)
        for way in ("with", "without"):
            took = re.search(rf"Runtime {way} qos limit ([0-9.]+)", self.out)
            rep.shown(f"{name}: 20 kB and back {way} the limit, s",
                      took[1] if took else "-")


def is_of_killed_run(path):
    """Return whether this directory has nothing in it but what host-local writes."""
    return os.path.isdir(path) and not os.path.islink(path) and \
            set(os.listdir(path)) <= NETWORKS


def main(rep, a):
    need(newest("cnitool") and
         os.access(f"{SUITE}/integration.test", os.X_OK),
         "the CNI plugins' integration suite (tools/install-deps cni)")
    # The suite uses these fixed paths, so they must not be taken from somebody else.
    for path in LEFT:
        if is_of_killed_run(path):
            shutil.rmtree(path)
        need(not os.path.lexists(path),
             f"free place for the suite's files: there is {path}")
    with tempfile.TemporaryDirectory(prefix="natra-cni-") as tmp:
        runs = [Run(name, find_natra() if name == "natra"
                    else newest("bandwidth"), f"{tmp}/{name}")
                for name in a.name]
        for run in runs:
            run.judge(rep)
    for path in LEFT:
        shutil.rmtree(path, ignore_errors=True)
    rep.equal("left", (attachments(), pins()), ([], []))


if __name__ == "__main__":
    plugin.run_script(main, some_of("name", ("natra", "upstream")))
