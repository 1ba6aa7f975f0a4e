# SPDX-License-Identifier: BSD-2-Clause
"""Measures what the limiter itself takes: an ADD's time and memory, the kernel's
memory for each pod, and a packet's time in the programs."""
import os
import re
import subprocess

import cost
import plugin
from cells import RATES
from memory import held, kernel, memlock_kib, settled
from plugin import PINS, Veth, call
from pods import CONTAINERD_BURST, limiter

ADD_PODS = 100
KINDS = ("SUnreclaim", "KernelStack", "PageTables")
SHOWN = ("VmallocUsed", "Percpu")


class Unavailable(Exception):
    """This machine lacks what the measurement needs; the text says what."""


def run(r, cell, lim=None):
    return {"add": add, "memory": memory, "per-packet": per_packet}[
            cell.workload](r, cell, lim)


def add(_r, _cell, _lim):
    """Run the plugins in turns, each on an interface that nothing was attached to."""
    up = limiter("upstream")
    if not up:
        raise Unavailable("no bandwidth plugin to take turns with")
    natra = plugin.find_natra()
    pods = [Veth(f"add{i}", f"vadd{i}") for i in range(ADD_PODS)]
    try:
        for path in (up.program, natra):        # modules and caches
            warm = Veth("warm", "vwarm")
            cost.launch(path, warm)
            cost.delete(path, warm)
            warm.close()
        got = cost.turns(natra, up.program, pods, ADD_PODS)
    finally:
        for pod in pods:
            pod.close()
    values = {f"{what} {name}": value
              for name, row in cost.medians_of(got).items()
              for what, value in row.items() if value or name != "two links"}
    # Both modes share the loaded programs, and the turns always let the same mode load
    # them.
    for who in ("natra", "upstream"):
        values[f"mean_cpu_ms {who}"] = cost.mean_cpu_ms(
                [row for name, rows in got.items() if name.startswith(who)
                 for row in rows])
    return values, {}


def conf(pod, lim):
    rate = RATES["10M"]
    return dict(lim.element, cniVersion="1.0.0", name="memory",
                runtimeConfig={"bandwidth": {
                        "ingressRate": rate, "egressRate": rate,
                        "ingressBurst": CONTAINERD_BURST,
                        "egressBurst": CONTAINERD_BURST}},
                prevResult=pod.prev_result())


def memory(_r, cell, lim):
    """Compare what the kernel's allocators report before and after limiting pods that
    exist already. The second time counts, because the first fills caches, too. The node has
    none of natra's programs at the beginning: one that an earlier cell's pods
    left would be counted, and shift which pods share the others."""
    plugin.natractl("gc")
    lim = lim or limiter(cell.limiter)
    count = cell.param("pods")
    pods = [Veth(f"mem{i}", f"vmem{i}") for i in range(count + 1)]
    try:
        for some in (pods[:1], pods[1:]):
            before = settled((*KINDS, *SHOWN))
            for pod in some:
                ask(lim, "ADD", pod)
            after = settled((*KINDS, *SHOWN))
            values = {f"{k}_kib": (after[k] - before[k]) / len(some)
                      for k in (*KINDS, *SHOWN)}
            if lim.element["type"] == "natra":
                values.update(by_memlock(count, plugin.attachments()))
            for pod in some:
                ask(lim, "DEL", pod)
    finally:
        for pod in pods:
            pod.close()
    values["slab_kib"] = sum(values[f"{k}_kib"] for k in KINDS)
    return values, {}


def by_memlock(count, attachments):
    if kernel() < (6, 4):
        return {}               # it was an estimate then
    progs, maps = held(attachments, PINS)
    return {"memlock_kib": memlock_kib(progs + maps) / count}


def ask(lim, command, pod):
    a = call(lim.program, command, conf(pod, lim), CNI_NETNS=pod.path,
             CNI_CONTAINERID=f"c-{pod.name}")
    if a.code:
        raise RuntimeError(str(a))


def per_packet(_r, _cell, _lim):
    """Run tests/bpf/per_packet: the ns of a packet in each program and in an empty one."""
    program = os.environ.get("NATRA_PER_PACKET", "")
    if not os.access(program, os.X_OK):
        raise Unavailable("NATRA_PER_PACKET does not name per_packet")
    p = subprocess.run([program, "--repeat", "100000", "--rounds", "9"],
                       text=True, timeout=120, stdin=subprocess.DEVNULL,
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if p.returncode == 77:
        raise Unavailable(p.stdout.strip().splitlines()[-1])
    rows = re.findall(r"^(\w+(?: \w+)?) +([\d.]+) ns", p.stdout, re.M)
    if not rows:
        raise RuntimeError(p.stdout.strip()[-200:])
    return {f"{name} ns": float(ns) for name, ns in rows}, {}


def text(values):
    """Return the most important figures of a sample as text."""
    order = ("rss_kib natra clsact", "cpu_ms natra clsact", "slab_kib",
             "memlock_kib", "rx mouse ns", "rx heavy ns", "empty ns")
    shown = [f"{k} {values[k]:.1f}" for k in order if k in values]
    return ", ".join(shown)
