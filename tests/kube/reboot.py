#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Takes the power from a Kubernetes node with natra on it, and boots it again.

The node has a VM of tests/vm, whose CPU is emulated, and a disk for what a node keeps: the
lists of plugins, the plugins, and what containerd, the kubelet, etcd and natra write. In the
first boot the agent's pod installs natra, and pods with limits start, the last one just before QEMU
is killed. In the second boot the kubelet starts a static pod with natra before there is an API
server, and so before there is an agent, and then all others. All limits must hold again, natractl
check and doctor say nothing of what was before, and pods that end leave nothing.

With --here both boots are on this machine, in namespaces: the power goes when all processes of the node
are killed, whose /run and bpffs go with them. Nothing that was written is lost then.
"""
import json
import os
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

import kube
import machine_place
import script
from agentpod import Agent
from install import own_files
from kube import Cluster
from machine_place import SHARED
from node import NAME, STATIC_PODS, binaries, wait, write, write_network
from place import isolate_node
from plugin import attachments, natractl, pins
from pods import RESULTS, Running, cached_results, pod_object, rates
from report import Report
from traffic import Traffic
from machine import VmError, end_on_signals, note     # machine_place has found it

BOOT_SECONDS = 1500
MBIT = 1_000_000
IN_MBIT, OUT_MBIT = 4, 2
STATIC = f"static-{NAME}"
# The kubelet has not written to the disk what it knows of `late` when the power goes.
KEPT, LATE = ("kept", STATIC), "late"
ALL = (*KEPT, LATE)
LEASES = "/var/lib/cni/networks/kube"
# A pod whose sandbox went with the power has this event.
OF_THE_BOOT = "SandboxChanged"
# The kubelet starts a static pod's container beside its removal of what the pod before had, and again.
HOSTS_FILE = "/etc-hosts: no such file"
# The runtime takes no list while natra's is empty.
NO_NETWORK = "NetworkNotReady"
BOOT = script.option("--boot", help="what the VM does; for the script itself")
HERE = script.option("--here", action="store_true", help="without a VM")


def limits():
    return rates(f"{IN_MBIT}M", f"{OUT_MBIT}M")


def wanted(*names):
    return {name: (IN_MBIT * MBIT, OUT_MBIT * MBIT) for name in names}


def check_rates(cluster, what, pods):
    """Let streams of all pods' run, and compare them with the limits."""
    traffic = Traffic(cluster.client, pods)
    time.sleep(4)

    def cell():
        for (name, way), rate in traffic.rates(4).items():
            cap = IN_MBIT if way == "in" else OUT_MBIT
            cluster.report.near(f"{what}: {name}, {way}", rate / MBIT, cap, 0.1, " Mbit/s")
    cluster.report.measure(what, cell)
    return traffic


def first(cluster, _):
    """Install natra, start pods, and return while they send."""
    report = cluster.report
    write_network()
    cluster.node.start()
    report.shown("versions", cluster.node.versions())
    # The node has been there for long, with the image. natra has to write to the disk what it installs.
    cluster.node.load_image(cluster.arguments.image)
    os.sync()
    Agent.install(cluster)
    pod = pod_object("static", limits())
    del pod["spec"]["nodeName"]
    path = write(f"{STATIC_PODS}/static.json.new", json.dumps(pod))
    with open(path) as f:
        os.fsync(f)
    os.rename(path, path.removesuffix(".new"))
    cluster.pods.make("kept", limits())
    pods = cluster.pods.started(KEPT)
    report.equal("limits", cluster.rates(), wanted(*KEPT))
    check_rates(cluster, "before", pods)
    cluster.pods.start({LATE: limits()})
    report.equal("limits", cluster.rates(), wanted(*ALL))


def torn():
    """Return the files of the runtime's networks and of natra that are empty."""
    return sorted(str(p) for d in ("/etc/cni", "/opt/cni", "/var/lib/cni", "/var/lib/natra")
                  for p in Path(d).rglob("*") if p.is_file() and not p.stat().st_size)


def again(cluster, names):
    """Wait until pods run that this boot has started, and return them."""
    def here():
        cached = cached_results()
        return {n: c for n, c in cached.items() if n in names and any(
            os.path.exists(i.get("sandbox", "")) for i in c["result"]["interfaces"])}
    wait(lambda: set(here()) == set(names), lambda: f"{cached_results().keys()} {cluster.node.logs()}",
         120, 0.5)
    found = {name: Running(name, cached) for name, cached in here().items()}
    cluster.pods.running |= found
    return found


def sound(cluster, what):
    """Compare what natra says with that nothing is wrong, and the pods' files with the pods."""
    report, now = cluster.report, {a["id"] for a in attachments()}
    failed = [c.stdout for c in (natractl("check", i, check=False) for i in now) if c.returncode]
    report.equal(f"{what}: checks that fail", failed, [])
    doctor = json.loads(natractl("doctor", "--json", check=False).stdout)
    findings = [f"{f['check']} {f['subject']}" for f in doctor["findings"]]
    report.equal("  doctor's findings", findings, [])
    kept = {p.name.rsplit("-", 2)[-2] for p in Path(RESULTS).glob("*-eth0")}
    report.equal("  results of pods that are gone", len(kept) - len(now), 0)


def tear():
    """Empty natra's list, and the runtime's result of a pod, as a disk can that writes late."""
    one_of = next(Path(RESULTS).glob("*-eth0"))     # others may be empty already
    (own,) = own_files()
    for path in one_of, Path(own):
        path.write_text("")


def up(cluster, can_wait=False):
    """Start the node in the usual order, and look that all limits are back. `can_wait` says that no pod
    may start before the agent."""
    report, node = cluster.report, cluster.node
    report.true("the node is the one of before", node.is_old)
    report.equal("attachments and pins after the boot", (attachments(), pins()), ([], []))
    report.shown("empty files", torn())
    begin = time.monotonic()
    node.start_etcd()
    node.start_containerd()
    node.start_kubelet()
    agent = Agent(cluster, 1)
    if not can_wait:
        again(cluster, [STATIC])
        report.shown("seconds to the static pod", f"{time.monotonic() - begin:.1f}")
        report.equal("limits without an API server and an agent", cluster.rates(), wanted(STATIC))
        report.equal("  agents", agent.pid(), None)
    node.start_api()
    pods = again(cluster, ALL)
    report.equal("limits", cluster.rates(), wanted(*ALL))
    wait(agent.ready, agent.trouble)
    report.shown("seconds to all of the node", f"{time.monotonic() - begin:.1f}")
    report.equal("limits with the agent", cluster.rates(), wanted(*ALL))
    check_rates(cluster, "after", pods)
    bad = [e for e in cluster.pods.bad_events() if OF_THE_BOOT not in e and HOSTS_FILE not in e and
           not (can_wait and NO_NETWORK in e)]
    report.equal("what the kubelet says that failed", bad, [])
    sound(cluster, "all pods run")
    return agent


def second(cluster, _):
    """Boot, and return while the pods send."""
    up(cluster)


def third(cluster, _):
    """Boot with files that are torn, and end all pods."""
    report = cluster.report
    tear()
    agent = up(cluster, can_wait=True)
    for line in agent.log().splitlines():
        if "level=info" not in line:
            report.shown("agent", line)
    os.unlink(f"{STATIC_PODS}/static.json")
    cluster.pods.end(["kept", LATE])
    wait(lambda: STATIC not in cluster.pods.phases(), "the static pod stays")
    sound(cluster, "no pod runs")
    agent.stop()
    report.equal("attachments and pins", (attachments(), pins()), ([], []))
    # Whose address it is, host-local reads in the file, and finds nothing in one that the power emptied.
    report.equal("results and addresses", [*os.listdir(RESULTS), *(
        p for p in Path(LEASES).glob("10.*") if p.stat().st_size)], [])


BOOTS = {"first": first, "second": second, "third": third}


def in_a_boot(arguments):
    """Do what is to be done in a boot. Return only if the power may stay."""
    if not arguments.here:
        machine_place.show_cache()
    arguments.bin = binaries()
    if arguments.here:
        isolate_node(f"{arguments.shared}/node")
    else:
        machine_place.settle()
    report, cluster = Report(), None
    try:
        cluster = Cluster(arguments, report)
        BOOTS[arguments.boot](cluster, arguments)
        if arguments.boot != list(BOOTS)[-1] and not report.failed:
            print(f"{report.checked} ok, the power goes")
            Path(f"{arguments.shared}/off").touch()
            time.sleep(BOOT_SECONDS)
    except Exception:  # noqa: BLE001  (the logs go with the node)
        traceback.print_exc(file=sys.stdout)
        print(cluster.node.logs() if cluster else "")
        report.true("the boot came to its end", False)
    report.end()


def boot(name, arguments):
    """Boot the VM, and return the command's exit code; None if the power went."""
    with machine_place.machine(arguments, BOOT_SECONDS, "--boot", name) as vm:
        while not vm.poll():
            if os.path.exists(f"{arguments.shared}/off"):
                vm.cut_power()
                return None
            time.sleep(0.1)
        return vm.end()


def boot_here(name, arguments):
    """Do the same in namespaces of this machine."""
    process = subprocess.Popen(machine_place.command(arguments, "--boot", name, "--here"))
    while process.poll() is None:
        if os.path.exists(f"{arguments.shared}/off"):
            process.terminate()
            process.wait()
            return None
        time.sleep(0.1)
    return process.returncode


def main():
    arguments = script.arguments(BOOT, HERE, SHARED, kube.RUNTIME, kube.IMAGE)
    if arguments.boot:
        in_a_boot(arguments)
    if not arguments.here:
        machine_place.need_vm()
    end_on_signals()
    start = boot_here if arguments.here else boot
    with tempfile.TemporaryDirectory(prefix="natra-reboot-", dir="/tmp") as shared:
        machine_place.prepare(arguments, shared)
        try:
            for name in BOOTS:
                Path(f"{shared}/off").unlink(missing_ok=True)
                print(f"== {name} boot", flush=True)
                code = start(name, arguments)
                if code is not None:
                    sys.exit(code)
        except VmError as e:
            note(f"error: {e}")
            sys.exit(e.code)


if __name__ == "__main__":
    main()
