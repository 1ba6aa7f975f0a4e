#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Run tools/examples/limit_bridge, which limits every veth of a bridge, on a bridge that
has veths of three pods and a port of another kind, with a TCP stream through it."""
import json
import os
import subprocess
import time

import script
from commands import sh
from limiters import forgiven
from namespaces import Ns
from stream import Stream

RATE_MBIT, MBIT = 10, 1_000_000
BURST_SECONDS, SECONDS = 2, 4
PODS = 3


class Port(Ns):
    """A pod whose veth is a port of the bridge."""

    def __init__(self, number):
        super().__init__(f"port{number}")
        self.host, self.ip = f"p{number}", f"10.90.0.{number + 1}"
        sh("ip", "link", "add", self.host, "type", "veth", "peer", "name", "eth0", "netns",
           self.name)
        sh("ip", "link", "set", self.host, "master", "br0", "up")
        self.run("ip", "addr", "add", f"{self.ip}/24", "dev", "eth0")
        self.run("ip", "link", "set", "eth0", "up")


def attached():
    """Return the rates by the name of the port."""
    rows = json.loads(sh(os.environ["NATRACTL"], "--json", "list"))
    return {a["ifname"]: (a["policy"]["ingress_rate_bits_per_sec"],
                          a["policy"]["egress_rate_bits_per_sec"]) for a in rows}


def measured(report, pods):
    stream = Stream(pods[0], pods[1], 4)
    time.sleep(BURST_SECONDS)
    before, begin = stream.wire_bytes(), time.monotonic()
    time.sleep(SECONDS)
    rate = (stream.wire_bytes() - before) * 8 / (time.monotonic() - begin)
    stream.close()
    report.near("between two ports, Mbit/s", rate / MBIT, RATE_MBIT,
                forgiven(RATE_MBIT * MBIT, SECONDS))


def main(report, arguments):
    def limit(*args):
        p = subprocess.run([arguments.program, *args], text=True, timeout=30,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return p.returncode, p.stdout.strip()

    sh("ip", "link", "add", "br0", "type", "bridge")
    sh("ip", "link", "set", "br0", "up")
    pods = [Port(number) for number in range(PODS)]
    rates = (RATE_MBIT * MBIT,) * 2
    report.equal("limit", limit("br0", f"{RATE_MBIT}M"), (0, ""))
    report.equal("limited", attached(), {pod.host: rates for pod in pods})
    report.measure("rate", measured, report, pods)
    sh("ip", "link", "set", pods[2].host, "nomaster")
    report.equal("again", limit("br0", f"{RATE_MBIT}M"), (0, ""))
    report.equal("without the port that left", attached(),
                 {pod.host: rates for pod in pods[:2]})
    report.equal("no bridge", limit("lo", "1M"), (1, "lo: is no bridge"))
    report.equal("no rate", limit("br0", "fast")[0], 2)
    report.equal("too high a rate", limit("br0", "2P")[0], 2)
    report.equal("limits after these", len(attached()), 2)
    report.equal("remove", limit("br0", "none"), (0, ""))
    report.equal("removed", attached(), {})


if __name__ == "__main__":
    script.run_script(main, script.option("program", help="limit_bridge of the build"))
