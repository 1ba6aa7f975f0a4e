#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Prints what ingress mode pace costs and gains beside police, where fq is there.

Attaches pods in both modes by turns and measures the time, the CPU time and the kernel's
memory of each; then streams into a pod, with a request each 20 ms beside them. Run it
in a VM, whose kernel has fq, with the file of its figures as its output:

    tests/vm/run 6.12 -- env NATRACTL=build/tools/natractl/natractl \\
            tests/bench/ingress_mode.py >tests/bench/results/ingress-mode-6.12-vm.txt
"""
import os
import resource
import statistics
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path += [f"{ROOT}/tests/{part}" for part in ("net", "harness/python")]
from limiters import Natra
from memory import held, kernel_kib, memlock_kib
from meter import wire_rates
from namespaces import Ns, Pod
from rig import Rig
from script import option, run_script

PODS, CAP, RTT_MS = 12, "10M", 10
MODES = ("police", "pace")


def counter(ns, name):
    """Return a counter of TCP."""
    with ns.netfile("snmp") as f:
        names, values = [s.split() for s in f if s.startswith("Tcp:")]
    return int(values[names.index(name)])


def attach_all(rep):
    """Attach pods that are all new. The first of each mode loads the programs."""
    _node = Ns()
    for mode in MODES:
        pods = [Pod(f"{mode}{i}", 40 + i) for i in range(PODS)]
        lims = [Natra(pod, "--ingress-mode", mode) for pod in pods]
        took, cpu, before = [], [], kernel_kib()
        for i, lim in enumerate(lims):
            if i == 1:
                before = kernel_kib()
            used, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
            lim.attach(CAP, CAP)
            took.append((time.monotonic() - begin) * 1e3)
            now = resource.getrusage(resource.RUSAGE_CHILDREN)
            cpu.append((now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime)
                       * 1e3)
        after = kernel_kib()
        objects = sum(held(lims[0].json("list")), [])
        rep.shown(f"{mode}: attach, the first", f"{took[0]:.0f} ms, CPU {cpu[0]:.0f} ms")
        rep.shown(f"{mode}: attach, median of the others",
                  f"{statistics.median(took[1:]):.1f} ms, "
                  f"CPU {statistics.median(cpu[1:]):.1f} ms")
        rep.shown(f"{mode}: programs and maps, of {PODS} pods, each",
                  f"{memlock_kib(objects) / PODS:.1f} KiB")
        rep.shown(f"{mode}: slab, vmalloc, per-CPU after the first, each", ", ".join(
                f"{(after[k] - before[k]) / (PODS - 1):.1f}" for k in after) + " KiB")
        for lim, pod in zip(lims, pods):
            lim.detach()
            pod.close()


def traffic(r, rep, mode, flows, seconds):
    lim = Natra(r.pod, "--ingress-mode", mode).attach(CAP, None)
    streams = r.elephant(r.client, r.pod, 5201, flows)
    r.wait_flow(r.into())
    time.sleep(3)
    sent, again = (counter(r.client, k) for k in ("OutSegs", "RetransSegs"))
    rates = [wire_rates([r.into()], 1)[0] / 1e6 for _ in range(seconds)]
    lost = (counter(r.client, "RetransSegs") - again) / (
            counter(r.client, "OutSegs") - sent)
    us = r.sockperf(seconds, 50)
    rep.shown(f"{mode}, {flows} streams",
              f"{statistics.mean(rates):.2f} Mbit/s, between seconds "
              f"{100 * statistics.stdev(rates) / statistics.mean(rates):.1f} %, sent again "
              f"{100 * lost:.2f} %; a message each 20 ms: p50 {us[50.0] / 1e3:.1f} ms, "
              f"p99 {us[99.0] / 1e3:.1f} ms")
    r.stop(streams)
    lim.detach()


def main(rep, a):
    rep.shown("kernel; cap; round trip", f"{os.uname().release}; {CAP}; {RTT_MS} ms")
    attach_all(rep)
    with Rig() as r:
        r.netem(RTT_MS)
        r.sockperf_server()
        for flows in (1, 8):
            for mode in MODES:
                traffic(r, rep, mode, flows, a.seconds)


if __name__ == "__main__":
    run_script(main, option("--seconds", type=int, default=6))
