#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs natra beside the real Cilium with its bandwidth manager, on a node that is a VM.

The manager is off outside of the first network namespace, and wants fq. Both it and natra read the
pod's annotations. A table says what passes of a stream in each direction, in Mbit/s, and what small
requests wait beside them, with equal and with different limits, and with more streams: net/manager.py
has the same one of the manager's calls. Then the lab's scene is played in natra's default mode, where
natra's limits are the smaller ones by its configuration. With --routing bpf Cilium redirects past the
host's stack, so that a packet keeps its socket, which sends no more until it has left. With host it
does not, as where iptables masquerade, and the manager limits nothing that comes in.
"""
import json
import os
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [f"{HERE}/../kube", f"{HERE}/../cni", f"{HERE}/../net"]
import kube
import lab
import machine_place
import script
from cilium import Cilium
from lab import CAPS, KEYS, MBIT, Scene, table
from machine import VmError, end_on_signals, note
from machine_place import SHARED
from manager import HEAD, PAIRS, PORT, RATE, THROTTLE, find_rr, judge, mode_of, smaller
from limiters import bits
from node import wait
from plugin import attachments, natractl
from pods import DEFAULT, rates
from script import option
from traffic import Traffic

SECONDS = 7200
BPFFS = "/sys/fs/bpf"     # Cilium's, and natra's on a node
SETTLE, SPAN = 10, 6
# More streams than one.
MANY = 8
# Cilium limits the pods to so many times natra's limits in the lab's scene.
LARGER = 2
MODE = "tcx-podside"
ROUTING = option("--routing", choices=("bpf", "host"), default="bpf", help="default: bpf")
SCENE = option("--scene", choices=("pairs", "lab"), help="one of both parts")


class WithManager(Cilium):
    """Cilium as it is with Helm's bandwidthManager.enabled=true."""

    def __init__(self, cluster, arguments):
        arguments.tcx, arguments.replace = "on", "on"
        super().__init__(cluster, arguments)
        self.name += ", with its bandwidth manager"
        self.is_legacy = arguments.routing == "host"

    def run(self, program, *words):
        return super().run(program, *words, "--enable-bandwidth-manager=true",
                           f"--enable-host-legacy-routing={str(self.is_legacy).lower()}")


def own_limits(precedence, ingress, egress):
    """Return the agent's arguments for natra's own limits, in bit/s."""
    return [f"--conf=precedence={precedence}", f"--conf=ingressRate={ingress}",
            f"--conf=egressRate={egress}"]


class SmallerScene(Scene):
    """The lab's scene, in which the manager's limits are the larger ones."""

    def words(self):
        return [*super().words(), *own_limits("lowest", CAPS["in"], CAPS["out"])]

    def annotations(self):
        return rates(*(f"{LARGER * rate // MBIT}M" for rate in CAPS.values()))

    def limits(self):
        """The configuration's are those of all pods."""
        return dict.fromkeys(("limited", "peer"), tuple(CAPS.values()))


class Pair:
    """A pod with a limit of natra's and one of the manager's, each of which may be None, and so many
    streams in each direction."""

    def __init__(self, neighbour, agent, own, its, streams):
        self.cluster, self.agent, self.own, self.its = neighbour.cluster, agent, own, its
        self.streams, self.report = streams, self.cluster.report
        both = smaller(own, its)
        self.limits = (own if neighbour.is_legacy else both, both)
        self.what = f"natra {own or 'off'}, manager {its or 'off'}, {streams} each way"

    def cell(self):
        per_second = self.traffic.rates(SPAN)
        sums = [sum(rate for (_, w), rate in per_second.items() if w == way) for way in ("in", "out")]
        # Packets that the manager alone holds leave its queue of seconds in bursts, where they lose
        # their sockets.
        is_its = not self.own or (self.its and bits(self.its) < bits(self.own))
        return judge(self.report, self.what, sums, self.limits, self.cluster.client, self.pod, SPAN,
                     0.4 if is_its else 0.1)

    def told(self):
        """Look what natra says of two limits."""
        check = natractl("check", attachments()[0]["id"], check=False)
        self.report.equal(f"{self.what}: check", (check.returncode, check.stderr), (0, ""))
        findings = json.loads(natractl("doctor", "--json", check=False).stdout)["findings"]
        self.report.equal("  doctor says that two limits hold",
                          "cilium-limits" in {f["check"] for f in findings}, True)

    def play(self):
        """Return the line of the table."""
        report, annotations = self.report, rates(self.its, self.its)
        if self.own:
            # natra reads the same annotations, and takes its configuration's limits instead.
            self.agent.start(arguments=own_limits("static", *(bits(self.own),) * 2))
        self.pod = self.cluster.pods.start({"limited": annotations})["limited"]
        report.equal(f"{self.what}: limits", self.cluster.rates(),
                     {"limited": (bits(self.own),) * 2} if self.own else {})
        mode = mode_of(attachments()[0]) if self.own else "–"
        server = self.pod.popen(find_rr(), "server", str(PORT))
        self.traffic = Traffic(self.cluster.client, dict.fromkeys(range(self.streams), self.pod))
        time.sleep(SETTLE)
        cells = report.measure(self.what, self.cell)
        if self.own and self.its:
            self.told()
        self.traffic.close()
        self.pod.stop(server)
        self.cluster.pods.end(["limited"])
        if self.own:
            self.agent.stop()
        return [mode, self.own or "off", self.its or "off", str(self.streams), *cells]


def compile_all(pods):
    """Start pods, for which Cilium compiles its programs. That takes an emulated CPU minutes, and
    the runtime gives a pod up meanwhile, which is no failure here."""
    for name, annotations in ("first", None), ("limited", rates(RATE, RATE)):
        pods.start({name: annotations}, 600)
        pods.end([name])
    pods.api.delete(f"{DEFAULT}/events")


def pairs(neighbour, agent):
    """Print the table of limits that meet."""
    report = neighbour.cluster.report
    wait(lambda: os.path.exists(f"{BPFFS}/{THROTTLE}"), "the manager's map", 10)
    qdiscs = neighbour.node.net.run("tc", "qdisc", "show", "dev", neighbour.cluster.client.host)
    report.equal("the node's interface has the manager's fq", "fq" in qdiscs.split(), True)
    head = [*HEAD[:3], "streams", *HEAD[3:]]
    table(head, ["---"] * len(head))
    # natra's list stays when its agent stops, so the manager alone is first.
    for own, its in ((None, RATE), *PAIRS):
        for streams in (1, MANY):
            table(Pair(neighbour, agent, own, its, streams).play())


def play(neighbour, agent, arguments):
    compile_all(neighbour.cluster.pods)
    if arguments.scene != "lab":
        pairs(neighbour, agent)
    if arguments.scene != "pairs":
        table(KEYS, ["---"] * len(KEYS))
        table(SmallerScene(neighbour, agent, MODE).play())


def main():
    if "NATRA_VM" in os.environ:
        machine_place.show_cache()
        lab.run(WithManager, SHARED, SCENE, ROUTING, play=play, isolate=machine_place.settle)
    arguments = script.arguments(SHARED, SCENE, ROUTING, kube.IMAGE)
    machine_place.need_vm()
    end_on_signals()
    words = ["--routing", arguments.routing]
    words += ["--scene", arguments.scene] if arguments.scene else []
    with tempfile.TemporaryDirectory(prefix="natra-manager-", dir="/tmp") as shared:
        machine_place.prepare(arguments, shared)
        try:
            with machine_place.machine(arguments, SECONDS, *words) as vm:
                sys.exit(vm.wait())
        except VmError as e:
            note(f"error: {e}")
            sys.exit(e.code)


if __name__ == "__main__":
    main()
