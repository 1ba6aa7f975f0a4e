#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Let tools/nri limit the pods of a real containerd whose list has nothing of natra.

containerd runs in namespaces of its own, with NRI as it is by default; a client of the
runtime's interface starts pods in the place of a kubelet. The plugin is killed, started
again, given a natractl that is too slow, and run beside natra's CNI plugin.
"""
import contextlib
import os
import signal
import subprocess
import sys
import time

import containerd
import gotest
from containerd import WORK, Runtime

sys.path[:0] = [str(gotest.ROOT / "tests/cni"), str(gotest.ROOT / "tests/kube")]
import script  # noqa: E402
from limiters import forgiven  # noqa: E402
from namespaces import Ns, Pod  # noqa: E402
from node import Program, wait, write, write_network  # noqa: E402
from place import isolate_node  # noqa: E402
from plugin import attachments, find_natra  # noqa: E402
from traffic import Traffic  # noqa: E402

MBIT = 1_000_000
IN, OUT = "kubernetes.io/ingress-bandwidth", "kubernetes.io/egress-bandwidth"
IN_MBIT, OUT_MBIT = 10, 5
BURST_SECONDS, SECONDS = 2, 4
# NRI's time-out for an answer, after which containerd closes the plugin's connection.
TIMEOUT_SECONDS = 2
SLOW_SECONDS = 6


def prepare(arguments):
    containerd.prepare(arguments)
    gotest.go(gotest.ROOT / "tools/nri", "vet", "./...")
    gotest.go(gotest.ROOT / "tools/nri", "build", "-o", f"{arguments.tmp}/natra-nri", ".")


def limits(pod):
    """Return the ids and rates of a pod's attachments."""
    inode = os.fstat(pod.fd).st_ino
    return [(a["id"], a["effective"]["ingress_rate_bits_per_sec"] / MBIT,
             a["effective"]["egress_rate_bits_per_sec"] / MBIT)
            for a in attachments() if a["netns_inode"] == inode]


class Plugin(Program):
    def __init__(self, arguments, *options):
        with contextlib.suppress(FileNotFoundError):
            os.unlink("/var/log/natra-nri.log")
        super().__init__("natra-nri", f"{arguments.tmp}/natra-nri", *(
            options or ("--natractl", gotest.natractl())))
        wait(lambda: self.running() and self.says("configured"), self.tail)

    def says(self, what):
        with open(self.log) as f:
            return what in f.read()

    def kill(self):
        self.process.kill()
        self.process.wait()


def both(ingress=IN_MBIT, egress=OUT_MBIT):
    return f"{IN}={ingress}M", f"{OUT}={egress}M"


def measured(report, client, pod, what):
    traffic = Traffic(client, {"pod": pod})
    time.sleep(BURST_SECONDS)
    got = traffic.rates(SECONDS)
    traffic.close()
    for side, mbit in ("in", IN_MBIT), ("out", OUT_MBIT):
        report.near(f"{what}: {side}, Mbit/s", got["pod", side] / MBIT, mbit,
                    forgiven(mbit * MBIT, SECONDS))


def capped(report, arguments, runtime, client):
    """A pod is capped, and after the plugin was killed it still is."""
    plugin = Plugin(arguments)
    pod = runtime.run("web", *both())
    report.equal("limits", limits(pod), [(f"nri:{pod.id}", IN_MBIT, OUT_MBIT)])
    report.equal("label", [a["label"] for a in attachments()], ["default/web"])
    report.most("start of a pod, s", pod.seconds, TIMEOUT_SECONDS)
    report.measure("capped", measured, report, client, pod, "capped")
    free = runtime.run("free")
    report.equal("a pod without annotations", limits(free), [])
    free.stop()
    plugin.kill()
    report.measure("killed", measured, report, client, pod, "plugin killed")
    late = runtime.run("late", *both())
    report.equal("a pod without the plugin starts", (late.runs, limits(late)), (True, []))
    pod.stop()
    plugin = Plugin(arguments)
    wait(lambda: limits(late), plugin.tail)
    report.equal("it is limited when the plugin is back", limits(late),
                 [(f"nri:{late.id}", IN_MBIT, OUT_MBIT)])
    wait(lambda: len(attachments()) == 1, lambda: str(attachments()))
    return plugin, late


def runtime_restarts(report, runtime, plugin, late):
    """The plugin finds a runtime that was started anew, and the limits hold meanwhile."""
    runtime.program.stop()
    report.equal("limits without a runtime", len(limits(late)), 1)
    runtime.start()
    pod = runtime.started("again", limits, *both())
    report.equal("limits after the runtime's restart", len(limits(late)), 1)
    pod.stop()
    late.stop()
    nothing_left(report, "after the restart", plugin)
    plugin.stop()


def nothing_left(report, what, plugin):
    """The runtime does not wait for the plugin longer than for an answer."""
    wait(lambda: not attachments(), lambda: f"{attachments()} {plugin.tail()}", 40)
    report.true(f"{what}: no attachment of a pod that has ended", not attachments())


def slow(report, arguments, runtime):
    """A natractl that takes too long delays a pod by less than NRI's time-out, and the
    pod gets its limits when it has answered."""
    path = write(f"{WORK}/slow", f"#!/bin/sh\nsleep {SLOW_SECONDS}\nexec "
                 f"{gotest.natractl()} \"$@\"\n", 0o700)
    plugin = Plugin(arguments, "--natractl", path, "--config", "{}")
    pod = runtime.run("slow", *both())
    report.most("start of a pod, slow plugin, s", pod.seconds, TIMEOUT_SECONDS)
    report.equal("no limits yet", limits(pod), [])
    report.true("the plugin says so", plugin.says("not limited yet"))
    wait(lambda: limits(pod), plugin.tail, 60, 0.5)
    report.equal("limits later", limits(pod), [(f"nri:{pod.id}", IN_MBIT, OUT_MBIT)])
    report.true("the plugin stays connected", not plugin.says("no runtime"))
    pod.stop()
    wait(lambda: not attachments(), plugin.tail)
    plugin.stop(SLOW_SECONDS + 15)


def wrong(report, arguments, runtime):
    """What cannot be limited starts all the same, unless the configuration says no.
    (containerd itself refuses a pod whose annotation is no rate.)"""
    text = "NATRA_ATTACH_MODE: 'xdp' is not a mode"
    failing = write(f"{WORK}/failing", f"#!/bin/sh\nNATRA_ATTACH_MODE=xdp exec "
                    f"{gotest.natractl()} \"$@\"\n", 0o700)
    plugin = Plugin(arguments, "--natractl", failing)
    pod = runtime.run("wrong", *both())
    report.true("a pod that cannot be limited starts", pod.runs)
    report.equal("natractl list says why", [
        (a["id"], a["unshaped"], a["reason"]) for a in attachments()],
        [(f"nri:{pod.id}", True, text)])
    report.true("the plugin's log, too", plugin.says(text))
    plugin.stop()
    plugin = Plugin(arguments)
    wait(lambda: not attachments()[0]["unshaped"], plugin.tail)
    report.equal("limits when it can be", limits(pod),
                 [(f"nri:{pod.id}", IN_MBIT, OUT_MBIT)])
    pod.stop()
    plugin.stop()
    plugin = Plugin(arguments, "--natractl", failing, "--config", '{"onError": "fail"}')
    try:
        runtime.run("refused", *both())
        said = "started"
    except RuntimeError as e:
        said = str(e)
    report.true("refused with onError: fail", text in said, said[-60:])
    nothing_left(report, "refused", plugin)
    plugin.stop()
    plugin = Plugin(arguments, "--natractl", gotest.natractl(), "--config",
                    '{"policy": {"fast_pass": "strict"}}')
    pod = runtime.run("strict", *both())
    report.equal("the policy of the configuration", [
        a["policy"]["fast_pass"] for a in attachments()], ["strict"])
    pod.stop()
    plugin.stop()
    for conf, want in (('{"policy": {"horizon_ns": 9000000001}}',
                        "horizon_ns: 9000000001 is over 9000000000"),
                       ('{"onError": "stop"}', "onError:"), ('{"rate": 1}', "rate")):
        p = subprocess.run([f"{arguments.tmp}/natra-nri", "--natractl", gotest.natractl(),
                            "--config", conf], text=True, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, timeout=20)
        report.true(f"configuration {conf}", p.returncode == 1 and want in p.stdout,
                    p.stdout.strip()[-60:])


def annotated(report, arguments, runtime):
    """Pods may ask for what the configuration allows, and for nothing else."""
    def lists():
        return [(a["policy"]["ingress_packet_rate_per_sec"], a["policy"]["sli"],
                 [(c["name"], c["egress_rate_bits_per_sec"], c["subnets"])
                  for c in a["classes"]]) for a in attachments()]

    classes = "natra.io/classes=lan=10.0.0.0/8,egress-rate=1G; far=192.0.2.0/24"
    more = (*both(), classes, "natra.io/sli=on",
            "qos.projectcalico.org/ingressPacketRate=10k")
    allow = '"allowAnnotations": ["classes", "ingress-packet-rate"]'
    for options, want in (("{}", (0, "off", [])), (f"{{{allow}}}", (
            10000, "off", [("lan", 10**9, ["10.0.0.0/8"]), ("far", 0, ["192.0.2.0/24"])]))):
        plugin = Plugin(arguments, "--natractl", gotest.natractl(), "--config", options)
        pod = runtime.run("asks", *more)
        report.equal(f"annotations with {options}", lists(), [want])
        report.equal("  and the rates", limits(pod), [(f"nri:{pod.id}", IN_MBIT, OUT_MBIT)])
        pod.stop()
        nothing_left(report, "annotations", plugin)
        plugin.stop()
    plugin = Plugin(arguments, "--natractl", gotest.natractl(), "--config", f"{{{allow}}}")
    pod = runtime.run("wrong", *both(), "natra.io/classes=lan=egress-rate=fast")
    report.equal("a wrong annotation is left out", lists(), [(0, "off", [])])
    report.true("  and the log says why", plugin.says("annotation natra.io/classes: 'lan=egress-rate=fast': "
                "'egress-rate=fast' is not CIDR, ingress-rate=RATE, egress-rate=RATE or dscp=N: ignored"))
    pod.stop()
    nothing_left(report, "a wrong annotation", plugin)
    plugin.stop()


def bounded(report, arguments, runtime):
    """A pod has the default of its namespace and at most the maximum, and none without the file."""
    plugin = Plugin(arguments, "--natractl", gotest.natractl(), "--config",
                    '{"onError": "fail", "requireNamespaces": true}')
    try:
        runtime.run("early", f"{IN}={IN_MBIT}M")
        said = "started"
    except RuntimeError as e:
        said = str(e)
    report.true("refused without the file of namespaces", "namespaces.json: is not there" in said,
                said[-60:])
    os.makedirs("/var/lib/natra", exist_ok=True)
    write("/var/lib/natra/namespaces.json",
          '{"def*": {"max": {"ingressRate": "4M"}, "default": {"egressRate": "3M"}}}')
    pod = runtime.run("greedy", f"{IN}={IN_MBIT}M")
    report.equal("the maximum and the default of the namespace", limits(pod), [(f"nri:{pod.id}", 4, 3)])
    report.true("  and the log says so", plugin.says("is over the maximum of the namespace"))
    pod.stop()
    nothing_left(report, "namespaces", plugin)
    plugin.stop()
    os.unlink("/var/lib/natra/namespaces.json")


def with_cni(report, arguments, runtime, client):
    """natra's CNI plugin in the list and the NRI plugin do not harm each other."""
    write_network({"type": "natra", "capabilities": {"bandwidth": True}})
    wait(runtime.ready, runtime.program.tail)
    plugin = Plugin(arguments)
    pod = runtime.started("both", by_cni, *both())
    report.equal("both ways: limits", [one[1:] for one in limits(pod)],
                 [(IN_MBIT, OUT_MBIT)])
    report.true("both ways: NRI leaves them", plugin.says("has limits already"))
    report.measure("both", measured, report, client, pod, "both ways")
    plugin.kill()
    plugin = Plugin(arguments)
    report.equal("both ways: after a restart", len(limits(pod)), 1)
    pod.stop()
    nothing_left(report, "both ways", plugin)
    plugin.stop()


def by_cni(pod):
    return limits(pod) and not limits(pod)[0][0].startswith("nri:")


def main(report, arguments):
    node = Ns()
    runtime = Runtime(arguments, {"natra": find_natra()})
    client = Pod("client", 20)
    try:
        plugin, late = capped(report, arguments, runtime, client)
        runtime_restarts(report, runtime, plugin, late)
        slow(report, arguments, runtime)
        wrong(report, arguments, runtime)
        annotated(report, arguments, runtime)
        bounded(report, arguments, runtime)
        with_cni(report, arguments, runtime, client)
    except Exception:
        print(runtime.program.tail(40))
        with contextlib.suppress(OSError), open("/var/log/natra-nri.log") as f:
            print(f.read())
        raise
    finally:
        runtime.program.stop()
        client.close()
        os.close(node.fd)


if __name__ == "__main__":
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    script.run_script(main, prepare=prepare, isolate=isolate_node)
