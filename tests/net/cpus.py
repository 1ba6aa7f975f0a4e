#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Each packet is counted once, whichever CPUs send at the same time.

One process on each CPU sends out of a limited pod. Where the machine can start
more CPUs, as in a VM with more possible than running ones, the script starts
the highest one and those that count beside CPU 0 and CPU 1 (see NATRA_STRIPES
in bpf/natra_shared.h), and leaves them running.
"""
import os
import socket
import sys

sys.path.insert(0, os.path.dirname(__file__) + "/../harness/python")
from commands import sh
from limiters import Natra
from namespaces import Ns
from script import option, run_script

CPUS = "/sys/devices/system/cpu"
STRIPES = 4
POD, NODE = "10.79.0.2", "10.79.0.1"
NODE_MAC = "02:00:00:00:00:01"


def cpu_list(name):
    """Return the ids in a file such as `0-3,8`."""
    with open(f"{CPUS}/{name}") as f:
        ranges = [r.split("-") for r in f.read().strip().split(",")]
    return [i for r in ranges for i in range(int(r[0]), int(r[-1]) + 1)]


def start_cpus():
    """Start the CPUs, only in a VM: a machine's owner decides which of its CPUs
    run."""
    highest = cpu_list("possible")[-1]
    for cpu in {highest, STRIPES, STRIPES + 1} - set(cpu_list("online")):
        path = f"{CPUS}/cpu{cpu}/online"
        if os.environ.get("NATRA_VM") and os.path.exists(path):
            with open(path, "w") as f:
                f.write("1")


def send(pod, cpu, count, begin):
    """Send from one CPU, in a process of its own, which ends here."""
    os.sched_setaffinity(0, {cpu})
    with pod:
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    os.read(begin, 1)
    for _ in range(count):
        s.sendto(b"x" * 100, (NODE, 9))
    os._exit(0)


def main(rep, a):
    start_cpus()
    possible, online = cpu_list("possible"), cpu_list("online")
    rep.shown("CPUs, possible and running",
              f"{len(possible)}, the highest is {possible[-1]}; {online}")
    pod = Ns("pod")
    sh("ip", "link", "add", "node0", "address", NODE_MAC, "type", "veth",
       "peer", "name", "eth0", "netns", "pod")
    sh("ip", "link", "set", "node0", "up")
    # Only packets of this script must count: there is no IPv6, and there are no requests
    # for an address.
    pod.run("sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1")
    pod.run("ip", "link", "set", "eth0", "up")
    pod.run("ip", "addr", "add", f"{POD}/24", "dev", "eth0")
    pod.run("ip", "neigh", "add", NODE, "lladdr", NODE_MAC, "dev", "eth0",
            "nud", "permanent")
    natra = Natra()
    natra.ok("attach", "eth0", "--netns", "pod", "--id", "cpus", "--egress-rate",
             "100M", "--ingress-rate", "100M")
    ready, go = os.pipe()
    senders = []
    for cpu in online:
        senders.append(os.fork())
        if senders[-1] == 0:
            send(pod, cpu, a.count, ready)
    os.write(go, bytes(len(senders)))
    codes = [os.waitpid(pid, 0)[1] for pid in senders]
    rep.equal("senders that failed", sum(map(bool, codes)), 0)
    rep.equal("packets counted", natra.json("stats", "cpus")["egress"][
            "offered"]["packets"], len(online) * a.count)
    natra.ok("detach", "cpus")


if __name__ == "__main__":
    run_script(main,
        option("--count", type=int, default=20000, help="packets from each CPU"))
