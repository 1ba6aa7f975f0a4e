#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What soak.py counts stays where it should, and each leak that there can be is noticed.

The pods are namespaces that natractl limits, and the agent is this process: no node is needed.
"""
import contextlib
import io
import os
import sys
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [f"{HERE}/../{part}" for part in ("harness/python", "cni")]
sys.path += [HERE, f"{HERE}/../net"]
import plugin
import sample
from leaks import LEAKS
from plugin import Veth, natractl
from report import Report

SAMPLES, PODS = 6, 3
held = []


def descriptor():
    held.append(os.open("/dev/null", os.O_RDONLY))


def thread():
    held.append(threading.Thread(target=threading.Event().wait, daemon=True))
    held[-1].start()


def memory():
    # Each page is written, and the sum is more than a few percent.
    held.append(bytearray(b"x") * (8 << 20))


# What this process can do in the place of the agent.
OF_AGENT = {"descriptor": (descriptor, "descriptors"), "thread": (thread, "threads"),
            "memory": (memory, "RSS")}
# What no helper can leave, as figures of samples that a kernel with a leak would have given.
KERNEL = [f"{name} KiB" for name in sample.KERNEL]
MADE_UP = {**dict.fromkeys(KERNEL, 2 * sample.PAGE_KIB * sample.ENOUGH_PODS), "spare slots": 12, "groups": 1,
           "tasks": 1, "addresses": 1, "maps": 1, "links": 1, "programs": 1, "memlock KiB": 1}


class Pods:
    """As many pods as ever, of which one is replaced each time."""

    def __init__(self):
        self.live, self.count = [], 0
        for _ in range(PODS):
            self.start()

    def start(self):
        self.count += 1
        name = f"p{self.count}"
        veth = Veth(name, f"v{name}")
        natractl("attach", "eth0", "--netns", name, "--id", name, "--ingress-rate", "10M",
                 "--egress-rate", "10M")
        self.live.append(veth)

    def end(self):
        veth = self.live.pop(0)
        natractl("detach", veth.name)
        veth.close()

    def samples(self, leak):
        """Return samples, before each of which something is left."""
        objects, rows = sample.Objects(), []
        for number in range(SAMPLES):
            leak()
            # All that runs on the machine moves the kernel's figures.
            rows.append({**sample.sample(os.getpid(), objects), **dict.fromkeys(KERNEL, 90000),
                         "life": 1, "pods": number * sample.ENOUGH_PODS})
            self.start()
            self.end()
        return rows


def failed(rows):
    """Return the lines of the checks that fail."""
    with contextlib.redirect_stdout(io.StringIO()) as out:
        sample.judge(Report(), rows)
    return [line for line in out.getvalue().splitlines() if line.startswith("FAIL")]


def said(lines):
    return " ".join((lines or ["nothing fails"])[0][5:].split())


def main(rep, _):
    for path in ("/var/lib/cni/results", "/etc/cni/net.d"):
        os.makedirs(path, exist_ok=True)
    # Nobody but the test sees what a leak leaves in there.
    plugin.sh("mount", "-t", "tmpfs", "tmpfs", "/etc/cni/net.d")
    sample.FREED_SECONDS = 3
    pods = Pods()
    rows = pods.samples(lambda: None)
    rep.equal("without a leak: checks that fail", failed(rows), [])
    for figure, growth in MADE_UP.items():
        lines = failed([row | {figure: row[figure] + growth * n} for n, row in enumerate(rows)])
        rep.true(f"{figure} grows: noticed", len(lines) == 1, said(lines))
    for what, (leak, figure) in {**LEAKS, **OF_AGENT}.items():
        lines = failed(pods.samples(leak))
        # What an earlier one has left may be there.
        lines = [line for line in lines if figure in line]
        rep.true(f"leak, {what}: noticed", lines, said(lines))


if __name__ == "__main__":
    plugin.run_script(main)
