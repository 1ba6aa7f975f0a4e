#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Let tools/examples/cni-ptp, a main plugin that embeds natra, make and limit pods.

A runtime's calls are made for a list without an element for natra, with the plugin built
with cgo and without. The rates are measured with TCP streams.
"""
import os
import shutil
import subprocess
import sys
import tempfile
import time

import gotest

sys.path[:0] = [str(gotest.ROOT / "tests/cni"), str(gotest.ROOT / "tests/kube")]
import plugin  # noqa: E402
from limiters import forgiven  # noqa: E402
from namespaces import Ns, Pod  # noqa: E402
from traffic import Traffic  # noqa: E402

SOURCE = gotest.ROOT / "tools/examples/cni-ptp"
MBIT = 1_000_000
IN_MBIT, OUT_MBIT = 10, 5
BURST_SECONDS, SECONDS = 2, 4
NAMES = ("cgo", "none")
HOST_LOCAL = "/usr/lib/cni/host-local"


def prepare(arguments):
    if not os.access(HOST_LOCAL, os.X_OK):
        gotest.skip("host-local (Debian's containernetworking-plugins)")
    arguments.tmp = tempfile.mkdtemp(prefix="natra-ptp-", dir="/var/tmp")
    arguments.library = gotest.install()
    for name in NAMES:
        library = arguments.library if name == "cgo" else None
        gotest.go(SOURCE, "vet", "./...", library=library)
        gotest.go(SOURCE, "build", "-o", f"{arguments.tmp}/{name}", ".", library=library)
    shutil.copy(HOST_LOCAL, arguments.tmp)


def configuration(ingress=IN_MBIT * MBIT, egress=OUT_MBIT * MBIT, **more):
    return {"cniVersion": "1.0.0", "name": "embedded", "type": "natra-ptp",
            "natractl": "", "ipam": {
                "type": "host-local", "dataDir": "/var/lib/host-local",
                "ranges": [[{"subnet": "10.89.0.0/16"}]],
                "routes": [{"dst": "0.0.0.0/0"}]},
            "runtimeConfig": {"bandwidth": {"ingressRate": ingress,
                                            "egressRate": egress}}} | more


class Made(Ns):
    """A pod that the plugin makes."""

    def __init__(self, arguments, way, name):
        super().__init__(name)
        self.way, self.path_of_plugin = way, f"{arguments.tmp}/{way}"
        self.env = {"CNI_CONTAINERID": name, "CNI_NETNS": self.path,
                    "CNI_PATH": arguments.tmp}
        if way == "cgo":
            self.env["LD_LIBRARY_PATH"] = gotest.environment(
                    arguments.library)["LD_LIBRARY_PATH"]

    def call(self, command, **more):
        conf = configuration(**more)
        if self.way == "none":
            conf["natractl"] = gotest.natractl()
        return plugin.call(self.path_of_plugin, command, conf, **self.env)

    def add(self):
        answer = self.call("ADD")
        if answer.code == 0:
            self.ip = answer.json["ips"][0]["address"].split("/")[0]
        return answer

    def close(self):
        os.close(self.fd)
        plugin.sh("ip", "netns", "del", self.name)


def measured(report, way, client, pod):
    traffic = Traffic(client, {"pod": pod})
    time.sleep(BURST_SECONDS)
    got = traffic.rates(SECONDS)
    traffic.close()
    for side, mbit in ("in", IN_MBIT), ("out", OUT_MBIT):
        report.near(f"{way}: {side}, Mbit/s", got["pod", side] / MBIT, mbit,
                    forgiven(mbit * MBIT, SECONDS))


def refusals(report, arguments, way):
    """A pod that cannot be limited is not made, and nothing of it is left."""
    pod = Made(arguments, way, f"refused-{way}")
    answer = pod.call("ADD", ingress=10 ** 15 + 1)
    report.equal(f"{way}: text of a refusal", answer.json.get("msg"),
                 "ingress_rate_bits_per_sec: 1000000000000001 is over 1P")
    links = pod.run("ip", "-o", "link")
    report.true(f"{way}: no interface of a refused pod", "eth0" not in links)
    report.equal(f"{way}: no address of a refused pod",
                 [n for n in os.listdir("/var/lib/host-local/embedded") if n[0].isdigit()], [])
    pod.close()


def one_way(report, arguments, way, client):
    pod = Made(arguments, way, f"pod-{way}")
    answer = pod.add()
    report.true(f"{way}: ADD", answer.code == 0, str(answer).replace("\n", "")[:150])
    found = plugin.attachment(pod.path)
    report.equal(f"{way}: id", found["id"], f"embedded:pod-{way}:eth0")
    report.measure(f"{way} rates", measured, report, way, client, pod)
    prev = answer.json
    report.equal(f"{way}: CHECK", pod.call("CHECK", prevResult=prev).code, 0)
    changed = pod.call("CHECK", prevResult=prev, ingress=11 * MBIT)
    report.true(f"{way}: CHECK of another rate fails", changed.code == 1)
    for _ in range(2):
        report.equal(f"{way}: DEL", pod.call("DEL", prevResult=prev).code, 0)
    report.equal(f"{way}: attachments left", plugin.attachments(), [])
    pod.close()
    refusals(report, arguments, way)


def main(report, arguments):
    node = Ns()
    client = Pod("client", 20)
    try:
        for way in NAMES:
            one_way(report, arguments, way, client)
    finally:
        subprocess.run(["rm", "-rf", arguments.tmp], check=True)
        client.close()
        os.close(node.fd)


if __name__ == "__main__":
    plugin.run_script(main, prepare=prepare)
