#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Let tools/nri limit the pods of a real containerd whose list has nothing of natra.

containerd runs in namespaces of its own, with NRI as it is by default; a client of the
runtime's interface starts pods in the place of a kubelet. The plugin is killed, started
again, given a natractl that is too slow, and run beside natra's CNI plugin.
"""
import atexit
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import gotest

sys.path[:0] = [str(gotest.ROOT / "tests/cni"), str(gotest.ROOT / "tests/kube")]
import script  # noqa: E402
from commands import sh  # noqa: E402
from image import PAUSE, write_pause  # noqa: E402
from namespaces import Ns, Pod  # noqa: E402
from node import (BIN_DIR, CONTAINERD_2, NET_DIR, SOCKET, Program, wait,  # noqa: E402
                  write, write_network)
from place import isolate_node  # noqa: E402
from plugin import attachments  # noqa: E402
from report import skip  # noqa: E402
from traffic import Traffic  # noqa: E402

MBIT = 1_000_000
IN, OUT = "kubernetes.io/ingress-bandwidth", "kubernetes.io/egress-bandwidth"
IN_MBIT, OUT_MBIT = 10, 5
BURST_SECONDS, SECONDS = 2, 4
# NRI's time-out for an answer, after which containerd closes the plugin's connection.
TIMEOUT_SECONDS = 2
SLOW_SECONDS = 6
PROGRAMS = ("runc", "nft")
DEBIAN_CNI = "/usr/lib/cni"
# In this image the pod's process does nothing; the plugin needs no container.
WORK = "/run/nri-test"


def prepare(arguments):
    for name in PROGRAMS:
        if not shutil.which(name):
            skip(f"{name} (tools/install-deps kube)")
    if not os.path.exists(f"{DEBIAN_CNI}/ptp"):
        skip("ptp (tools/install-deps cni)")
    built = subprocess.run([gotest.ROOT / "tests/kube/build", "containerd"], text=True,
                           stdout=subprocess.PIPE)
    if built.returncode:
        skip("containerd (tests/kube/build says why)")
    arguments.bin = built.stdout.strip()
    arguments.tmp = tempfile.mkdtemp(prefix="natra-nri-", dir="/var/tmp")
    # The process that stays outside of the node's file systems has to do it.
    atexit.register(remove, arguments.tmp, os.getpid())
    gotest.go(gotest.ROOT / "tools/nri", "vet", "./...")
    gotest.go(gotest.ROOT / "tools/nri", "build", "-o", f"{arguments.tmp}/natra-nri", ".")
    gotest.go(gotest.HERE / "cri", "build", "-o", f"{arguments.tmp}/cri", ".")


def remove(path, pid):
    if os.getpid() == pid:
        shutil.rmtree(path)


class Runtime:
    """containerd, with a list that has ptp alone."""

    def __init__(self, arguments):
        self.cri = f"{arguments.tmp}/cri"
        os.environ["PATH"] = f"{arguments.bin}:{os.environ['PATH']}"
        for path in (WORK, NET_DIR, BIN_DIR):
            os.makedirs(path, exist_ok=True)
        for name in ("ptp", "host-local", "loopback"):
            shutil.copy(f"{DEBIAN_CNI}/{name}", BIN_DIR)
        # A copy would not find the library of the build.
        os.symlink(os.environ["NATRA_CNI"], f"{BIN_DIR}/natra")
        write_network()
        sh("ip", "link", "set", "lo", "up")
        self.conf = write(f"{WORK}/containerd.toml", CONTAINERD_2.format(
            image=PAUSE, bin=BIN_DIR, net=NET_DIR))
        self.start()
        write_pause(f"{WORK}/pause.tar")
        sh("ctr", "-n", "k8s.io", "images", "import", f"{WORK}/pause.tar", timeout=60)

    def start(self):
        self.program = Program("containerd", "containerd", "--config", self.conf)
        wait(self.ready, self.program.tail)

    def ready(self):
        self.program.running()
        return not subprocess.run([self.cri, SOCKET, "ready"], stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL).returncode

    def run(self, name, *annotations):
        """Start a pod and return it, with the seconds that this took."""
        begin = time.monotonic()
        pod = sh(self.cri, SOCKET, "run", name, *annotations, timeout=60).strip()
        return Started(self, pod, time.monotonic() - begin)


class Started(Ns):
    """A pod that containerd has started."""

    def __init__(self, runtime, pod, seconds):
        self.runtime, self.id, self.seconds = runtime, pod, seconds
        state, netns, self.ip = sh(runtime.cri, SOCKET, "status", pod).split()
        self.runs = state == "SANDBOX_READY"
        super().__init__(os.path.basename(netns), exists=True)

    def limits(self):
        """Return the ids and rates of its attachments."""
        inode = os.fstat(self.fd).st_ino
        return [(a["id"], a["effective"]["ingress_rate_bits_per_sec"] / MBIT,
                 a["effective"]["egress_rate_bits_per_sec"] / MBIT)
                for a in attachments() if a["netns_inode"] == inode]

    def stop(self):
        os.close(self.fd)
        sh(self.runtime.cri, SOCKET, "stop", self.id, timeout=60)


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
    report.near(f"{what}: into the pod, Mbit/s", got["pod", "in"] / MBIT, IN_MBIT, 0.05)
    report.near(f"{what}: out of it, Mbit/s", got["pod", "out"] / MBIT, OUT_MBIT, 0.05)


def capped(report, arguments, runtime, client):
    """A pod is capped, and after the plugin was killed it still is."""
    plugin = Plugin(arguments)
    pod = runtime.run("web", *both())
    report.equal("limits", pod.limits(), [(f"nri:{pod.id}", IN_MBIT, OUT_MBIT)])
    report.equal("label", [a["label"] for a in attachments()], ["default/web"])
    report.most("start of a pod, s", pod.seconds, TIMEOUT_SECONDS)
    report.measure("capped", measured, report, client, pod, "capped")
    free = runtime.run("free")
    report.equal("a pod without annotations", free.limits(), [])
    free.stop()
    plugin.kill()
    report.measure("killed", measured, report, client, pod, "plugin killed")
    late = runtime.run("late", *both())
    report.equal("a pod without the plugin starts", (late.runs, late.limits()), (True, []))
    pod.stop()
    plugin = Plugin(arguments)
    wait(lambda: late.limits(), plugin.tail)
    report.equal("it is limited when the plugin is back", late.limits(),
                 [(f"nri:{late.id}", IN_MBIT, OUT_MBIT)])
    wait(lambda: len(attachments()) == 1, lambda: str(attachments()))
    return plugin, late


def runtime_restarts(report, runtime, plugin, late):
    """The plugin finds a runtime that was started anew, and the limits hold meanwhile."""
    runtime.program.stop()
    report.equal("limits without a runtime", len(late.limits()), 1)
    runtime.start()
    pod = wait(lambda: reconnected(runtime), plugin.tail)
    report.equal("limits after the runtime's restart", len(late.limits()), 1)
    pod.stop()
    late.stop()
    nothing_left(report, "after the restart", plugin)
    plugin.stop()


def nothing_left(report, what, plugin):
    """The runtime does not wait for the plugin longer than for an answer."""
    wait(lambda: not attachments(), lambda: f"{attachments()} {plugin.tail()}", 40)
    report.true(f"{what}: no attachment of a pod that has ended", not attachments())


def reconnected(runtime):
    """Return a pod that is limited; else stop it and return None."""
    pod = runtime.run(f"again-{time.monotonic_ns()}", *both())
    if pod.limits():
        return pod
    pod.stop()
    return None


def slow(report, arguments, runtime):
    """A natractl that takes too long delays a pod by less than NRI's time-out, and the
    pod gets its limits when it has answered."""
    path = write(f"{WORK}/slow", f"#!/bin/sh\nsleep {SLOW_SECONDS}\nexec "
                 f"{gotest.natractl()} \"$@\"\n", 0o700)
    plugin = Plugin(arguments, "--natractl", path, "--config", "{}")
    pod = runtime.run("slow", *both())
    report.most("start of a pod, slow plugin, s", pod.seconds, TIMEOUT_SECONDS)
    report.equal("no limits yet", pod.limits(), [])
    report.true("the plugin says so", plugin.says("not limited yet"))
    wait(lambda: pod.limits(), plugin.tail, 60, 0.5)
    report.equal("limits later", pod.limits(), [(f"nri:{pod.id}", IN_MBIT, OUT_MBIT)])
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
    report.equal("limits when it can be", pod.limits(),
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
                    '{"policy": {"fast_pass": "charged"}}')
    pod = runtime.run("charged", *both())
    report.equal("the policy of the configuration", [
        a["policy"]["fast_pass"] for a in attachments()], ["charged"])
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
        return [(a["policy"]["ingress_packets_per_sec"], a["policy"]["sli"],
                 [(c["name"], c["egress_rate_bits_per_sec"], c["subnets"])
                  for c in a["classes"]]) for a in attachments()]

    classes = "natra.io/classes=lan=10.0.0.0/8,egress=1G; far=192.0.2.0/24"
    more = (*both(), classes, "natra.io/sli=on",
            "qos.projectcalico.org/ingressPacketRate=10k")
    allow = '"allowAnnotations": ["classes", "ingress-packet-rate"]'
    for options, want in (("{}", (0, "off", [])), (f"{{{allow}}}", (
            10000, "off", [("lan", 10**9, ["10.0.0.0/8"]), ("far", 0, ["192.0.2.0/24"])]))):
        plugin = Plugin(arguments, "--natractl", gotest.natractl(), "--config", options)
        pod = runtime.run("asks", *more)
        report.equal(f"annotations with {options}", lists(), [want])
        report.equal("  and the rates", pod.limits(), [(f"nri:{pod.id}", IN_MBIT, OUT_MBIT)])
        pod.stop()
        nothing_left(report, "annotations", plugin)
        plugin.stop()
    plugin = Plugin(arguments, "--natractl", gotest.natractl(), "--config", f"{{{allow}}}")
    pod = runtime.run("wrong", *both(), "natra.io/classes=lan=egress=fast")
    report.equal("a wrong annotation is left out", lists(), [(0, "off", [])])
    report.true("  and the log says why", plugin.says("annotation natra.io/classes: 'lan=egress=fast': "
                "'egress=fast' is not CIDR, ingress=RATE, egress=RATE or dscp=N: ignored"))
    pod.stop()
    nothing_left(report, "a wrong annotation", plugin)
    plugin.stop()


def with_cni(report, arguments, runtime, client):
    """natra's CNI plugin in the list and the NRI plugin do not harm each other."""
    write_network({"type": "natra", "capabilities": {"bandwidth": True}})
    wait(runtime.ready, runtime.program.tail)
    plugin = Plugin(arguments)
    pod = wait(lambda: by_cni(runtime), runtime.program.tail)
    report.equal("both ways: limits", [one[1:] for one in pod.limits()],
                 [(IN_MBIT, OUT_MBIT)])
    report.true("both ways: NRI leaves them", plugin.says("has limits already"))
    report.measure("both", measured, report, client, pod, "both ways")
    plugin.kill()
    plugin = Plugin(arguments)
    report.equal("both ways: after a restart", len(pod.limits()), 1)
    pod.stop()
    nothing_left(report, "both ways", plugin)
    plugin.stop()


def by_cni(runtime):
    """Return a pod that the CNI plugin limited: containerd reads a new list a moment
    later."""
    pod = runtime.run(f"both-{time.monotonic_ns()}", *both())
    if pod.limits() and not pod.limits()[0][0].startswith("nri:"):
        return pod
    pod.stop()
    return None


def main(report, arguments):
    node = Ns()
    runtime = Runtime(arguments)
    client = Pod("client", 20)
    try:
        plugin, late = capped(report, arguments, runtime, client)
        runtime_restarts(report, runtime, plugin, late)
        slow(report, arguments, runtime)
        wrong(report, arguments, runtime)
        annotated(report, arguments, runtime)
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
