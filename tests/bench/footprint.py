# SPDX-License-Identifier: BSD-2-Clause
"""Measures what the limiter itself takes: an ADD's time and memory, the kernel's
memory for each pod, and a packet's time in the programs."""
import os
import re
import subprocess

import cost
import plugin
from cells import LIMITERS, RATES, Unavailable, cell, cpu_bound, too_many
from markdown import figure, name_of, ranked, table
from memory import held, kernel, memlock_kib, settled
from plugin import PINS, Veth, call
from pods import CONTAINERD_BURST, limiter
from target import Target

NAMES = ("per-packet", "add", "memory")
MEMLOCK_KIB = 96
MEMLOCK_PODS = 50               # among which the programs' own count
ADD_PODS = 100
KINDS = ("SUnreclaim", "KernelStack", "PageTables")
SHOWN = ("VmallocUsed", "Percpu")


def cells(_):
    yield cell("per-packet", "natra", 4, ci=True, once=True, why_not=cpu_bound())
    yield cell("add", "both", 12, ci=True, once=True, why_not=cpu_bound())
    for pods in (1, 8, MEMLOCK_PODS, 500):
        for name in LIMITERS:
            yield cell("memory", name, 4 + pods / 40 if name == "none" else 7 + pods / 12,
                       ci=pods == MEMLOCK_PODS, once=True, pods=pods,
                       why_not=too_many("pods", pods, MEMLOCK_PODS))


def run(r, cell_, lim=None):
    return {"add": add, "memory": memory, "per-packet": per_packet}[
            cell_.workload](r, cell_, lim)


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
              for what, value in row.items() if value or name != "links"}
    # Both modes share the loaded programs, and the turns always let the same mode load
    # them.
    for who in ("natra", "upstream"):
        values[f"mean_cpu_ms {who}"] = cost.mean_cpu_ms(
                [row for name, rows in got.items() if name.startswith(who)
                 for row in rows])
    return values


def conf(pod, lim):
    rate = RATES["10M"]
    return dict(lim.element, cniVersion="1.0.0", name="memory",
                runtimeConfig={"bandwidth": {
                        "ingressRate": rate, "egressRate": rate,
                        "ingressBurst": CONTAINERD_BURST,
                        "egressBurst": CONTAINERD_BURST}},
                prevResult=pod.prev_result())


def memory(_r, cell_, lim):
    """Compare what the kernel's allocators report before and after limiting pods that
    exist already. The second time counts, because the first fills caches, too. The node has
    none of natra's programs at the beginning: one that an earlier cell's pods
    left would be counted, and shift which pods share the others."""
    plugin.natractl("gc")
    lim = lim or limiter(cell_.limiter)
    count = cell_.param("pods")
    pods = [Veth(f"mem{i}", f"vmem{i}") for i in range(count + 1)]
    try:
        for some in (pods[:1], pods[1:]):
            before = settled((*KINDS, *SHOWN))
            # Without a limiter the figures show what else moves them.
            for pod in some if lim.program else ():
                ask(lim, "ADD", pod)
            after = settled((*KINDS, *SHOWN))
            values = {f"{k}_kib": (after[k] - before[k]) / len(some)
                      for k in (*KINDS, *SHOWN)}
            if lim.element.get("type") == "natra":
                values.update(by_memlock(count, plugin.attachments()))
            for pod in some if lim.program else ():
                ask(lim, "DEL", pod)
    finally:
        for pod in pods:
            pod.close()
    values["slab_kib"] = sum(values[f"{k}_kib"] for k in KINDS)
    values["all_kib"] = values["slab_kib"] + sum(values[f"{k}_kib"] for k in SHOWN)
    return values


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
    return {f"{name} ns": float(ns) for name, ns in rows}


def text(values):
    """Return the most important figures of a sample as text."""
    order = ("rss_kib natra clsact", "cpu_ms natra clsact", "slab_kib",
             "memlock_kib", "rx mouse ns", "rx heavy ns", "empty ns")
    shown = [f"{k} {values[k]:.1f}" for k in order if k in values]
    return ", ".join(shown)


def targets(res):
    for mode in ("clsact", "tcx"):
        for what, words, unit in (("rss_kib", "peak RSS", " KiB"),
                                  ("cpu_ms", "CPU time", " ms")):
            value = res.get("add", "both", f"{what} natra {mode}")
            if value is not None:
                yield Target(f"ADD, {mode}: {words}, at most half of "
                             "upstream's", value,
                             res.get("add", "both", f"{what} upstream"),
                             "most", unit, factor=0.5)
    # More pods share the programs of a node; a smaller run may have fewer.
    pods = max((dict(k[2])["pods"] for k in res.find("memory", "natra")
                if dict(k[2])["pods"] <= MEMLOCK_PODS), default=MEMLOCK_PODS)
    yield Target("kernel memory of a pod, by memlock",
                 res.get("memory", "natra", "memlock_kib", pods=pods), MEMLOCK_KIB,
                 "most", " KiB")
    yield Target("kernel memory of a pod, all kinds: at most upstream's",
                 *(res.get("memory", name, "all_kib", pods=pods)
                   for name in ("natra", "upstream")), "most", " KiB")


def mean_add(res):
    mean = {who: figure(res.get("add", "both", f"mean_cpu_ms {who}"), 2)
            for who in ("natra", "upstream")}
    return ["Some of natra's ADDs also load programs for the next pods. On a node "
            f"that fills up, the mean CPU time of an ADD is {mean['natra']} ms, and "
            f"upstream's {mean['upstream']} ms.", ""] if all(mean.values()) else []


def report(res):
    adds = []
    for who in ("upstream", "natra clsact", "natra tcx", "links"):
        got = [res.get("add", "both", f"{m} {who}")
               for m in ("wall_ms", "cpu_ms", "rss_kib")]
        if got[0]:
            adds.append(("the kernel's three TCX links alone"
                         if who == "links" else who,
                         *(figure(s, 2) for s in got)))
    held_ = []
    for key in res.find("memory"):
        held_.append((name_of(key[1]), dict(key[2])["pods"], *(
                figure(res.stat(key, m)) for m in (
                        "all_kib", "slab_kib", "SUnreclaim_kib", "KernelStack_kib",
                        "PageTables_kib", "VmallocUsed_kib", "Percpu_kib",
                        "memlock_kib"))))
    packets = [(m[:-len(" ns")], figure(res.get("per-packet", "natra", m)))
               for k in res.find("per-packet") for m in res.metrics(k)]
    if not (adds or held_ or packets):
        return []
    return ["## Cost", "",
            *(adds and ["One ADD takes, as medians:", ""]),
            *table(("", "wall, ms", "CPU, ms", "peak RSS, KiB"), adds),
            *mean_add(res),
            *(held_ and ["The table shows the kernel's memory for each limited "
                         "pod in KiB. All columns but *memlock* compare the whole "
                         "machine before and after, so whatever else runs adds or "
                         "takes some, as the rows without a limiter show. *memlock* "
                         "is what the kernel charges for natra's programs and maps; "
                         "they are in *all* as vmalloc, slab and per-CPU memory.",
                         ""]),
            *table(("", "pods", "all", "slab, stacks and page tables", "slab",
                    "stacks", "page tables", "vmalloc", "per-CPU", "memlock"),
                   held_),
            *(packets and ["A packet spends this time in natra's programs, in ns "
                           "(BPF_PROG_TEST_RUN):", ""]),
            *table(("program", "ns"), packets)]


def answers(res):
    found = {who: [res.mean("add", "both", f"{m} {who}") for m in ("wall_ms", "cpu_ms")]
             for who in ("upstream", "natra clsact", "natra tcx")}
    for i, words in enumerate(("from its start to its end", "of CPU time")):
        if said := ranked({who: pair[i] for who, pair in found.items()}, "{:.1f} ms"):
            yield f"What does an ADD take {words}?", f"{said}."
    memory_ = {n: res.mean("memory", n, "all_kib", pods=MEMLOCK_PODS)
               for n in ("upstream", "natra")}
    if said := ranked(memory_, "{:.0f} KiB"):
        yield ("How much of the kernel's memory does a pod take?",
               f"{said} ({MEMLOCK_PODS} pods).")
