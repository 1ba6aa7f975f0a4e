# SPDX-License-Identifier: BSD-2-Clause
"""Runs a test script on a Kubernetes node of its own, and ends the node."""
import os
import sys
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE + "/../cni")
from plugin import attachments  # noqa: E402  (it also finds the harness)
import script
from agentpod import build_image
from namespaces import Pod
from node import RUNTIMES, Node, binaries
from place import isolate_node
from pods import Pods

RUNTIME = script.option("--runtime", choices=RUNTIMES, default=RUNTIMES[0],
                        help="containerd's version; default: the newest")
IMAGE = script.option("--image", help="archive of the agent's image; default: build it")


class Cluster:
    """The node, its pods, and a client beyond the node."""

    def __init__(self, arguments, report):
        self.arguments, self.agents = arguments, []
        self.node = Node(arguments.bin, arguments.runtime)
        self.report = report
        self.pods = Pods(self.node)
        self.api = self.node.api
        self.client = Pod("client0", 20)

    def rates(self):
        """Return the rates in and out of each limited pod, by its name."""
        return {a["label"].rpartition("/")[2]: (
                a["effective"]["ingress_rate_bits_per_sec"],
                a["effective"]["egress_rate_bits_per_sec"])
                for a in attachments()}


def other_processes():
    """Return the command lines of all processes here but this one."""
    found = []
    for pid in os.listdir("/proc"):
        if pid.isdigit() and pid != str(os.getpid()):
            try:
                with open(f"/proc/{pid}/cmdline") as f:
                    line = f.read().replace("\0", " ").strip()
            except (FileNotFoundError, ProcessLookupError):
                continue
            if line:
                found.append(line)
    return found


def end(cluster, before):
    """Stop everything. What still runs then and did not before, or is still limited, fails the test."""
    report, node = cluster.report, cluster.node
    cluster.pods.end(list(cluster.pods.phases()))
    for agent in cluster.agents:
        if agent.pod():
            agent.stop()
    report.check("what the kubelet says that failed",
                 len(cluster.pods.bad_events()), 0, not cluster.pods.bad_events())
    for line in cluster.pods.bad_events()[:20]:
        print(f"     {line}")
    cluster.client.close()
    node.stop()
    left = [line for line in other_processes() if line not in before]
    report.check("processes left", len(left), 0, not left)
    for line in left:
        print(f"     {line[:150]}")


def run_script(main, *options, prepare=None, isolate=isolate_node):
    """Call main(cluster, arguments) on a node that has not been started. isolate() gives it its place."""
    def prepare_all(arguments):
        arguments.bin = binaries()
        arguments.image = arguments.image or build_image()
        if prepare:
            prepare(arguments)

    def with_node(report, arguments):
        begin, before = time.monotonic(), other_processes()
        cluster = None
        try:
            cluster = Cluster(arguments, report)
            main(cluster, arguments)
            end(cluster, before)
        except Exception:  # noqa: BLE001  (the logs go with the node)
            traceback.print_exc(file=sys.stdout)
            if cluster:
                print(cluster.node.logs())
                for agent in cluster.agents:
                    print(f"--- agent\n{agent.probe()}{agent.log()[-6000:]}")
            report.true("the test came to its end", False)
        report.shown("seconds in all", f"{time.monotonic() - begin:.0f}")

    script.run_script(with_node, RUNTIME, IMAGE, *options, prepare=prepare_all,
                      isolate=isolate)
