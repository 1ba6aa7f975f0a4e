#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Adds and deletes pods, eight at a time, while limits change and gc runs.

Readers read at the same time, and numbered datagrams flow through a pod whose limits change
several times a second: in no half second may more than the higher limit pass, and no
datagram may overtake another. Then a node is filled with pods at once. At the end the kernel
must hold what it held before.
"""
import glob
import os
import random
import statistics
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import plugin
from plugin import (HERE, PINS, Veth, attachments, call, find_natra, natractl,
                    pins, programs)
from commands import bpftool, sh
from rcu import usual_rcu
from rig import LOAD, Rig
from script import option

sys.path.insert(0, HERE + "/../net")
from memory import settled

AT_ONCE = 8
LOW, HIGH = 8_000_000, 12_000_000
BURST_BITS = 240_000
WINDOW_SECONDS = 0.5
# In a half second there may be the higher limit, the burst, what policing forgives (1/32 of the
# rate and 67 ms of it), and 5 % for the measurement.
MOST = 1.05 * (HIGH * (1 + 1 / 32) + (BURST_BITS + 0.067 * HIGH) / WINDOW_SECONDS)
OFFERED = 25_000_000            # far over that, so that a limit that is gone shows
# Slab, vmalloc and per-CPU memory vary by this much without natra, and each namespace
# leaves half-empty pages.
SLACK_KIB = 2048
POD_SLACK_KIB = 4
# Namespaces, and objects that RCU frees, take up to this long to disappear.
GONE_SECONDS = 15


def conf(rate, prev_result, burst=0):
    limit = {"ingressRate": rate, "ingressBurst": burst,
             "egressRate": rate, "egressBurst": burst}
    return {"cniVersion": "1.0.0", "name": "churn", "type": "natra",
            "runtimeConfig": {"bandwidth": limit}, "prevResult": prev_result}


class Failures:
    """Collects what went wrong in any thread."""

    def __init__(self):
        self.said = []

    def expect(self, what, good):
        if not good:
            self.said.append(what)


class Churn:
    def __init__(self, natra, failures):
        self.natra, self.failures = natra, failures
        self.times = []

    def add(self, i, pod):
        # The rates begin at 1 Mbit/s, and no two pods have the same.
        a = call(self.natra, "ADD", conf(10**6 + i, pod.prev_result()), timeout=60,
                 CNI_CONTAINERID=f"c{i}", CNI_NETNS=pod.path)
        self.failures.expect(f"ADD {i}: {a}", a.code == 0)
        self.times.append(a.seconds)

    def delete(self, i, netns):
        a = call(self.natra, "DEL", conf(10**6 + i, None), timeout=60,
                 CNI_CONTAINERID=f"c{i}", CNI_NETNS=netns)
        self.failures.expect(f"DEL {i}: {a}", a.code == 0)

    def has_limit(self, i, pod):
        # The inode alone is not enough: the kernel gives that of a namespace which
        # has gone to a new one, while gc has not removed the attachment yet.
        inode = os.stat(pod.path).st_ino
        rates = [x["effective"]["egress_rate_bits_per_sec"] for x in attachments()
                 if x["netns_inode"] == inode and x["id"].startswith(f"churn/c{i}/")]
        self.failures.expect(f"pod {i} has {rates}", rates == [10**6 + i])

    def one(self, i):
        """End a pod in one of three ways, by turns."""
        pod = Veth(f"p{i}", f"v{i}")
        self.add(i, pod)
        if i % 10 == 0:
            self.has_limit(i, pod)
        way = i % 3
        if way == 0:            # DEL twice, as runtimes do
            self.delete(i, pod.path)
            self.delete(i, "")
        pod.close()
        if way == 1:            # the namespace goes before DEL
            self.delete(i, "")
        # If way is 2, nobody calls DEL, and gc finds the attachment.


def repeat(fn, stop, pause, failures):
    """Start a thread that calls fn until `stop` is set."""
    def run():
        while not stop.wait(pause):
            try:
                fn()
            except (RuntimeError, subprocess.TimeoutExpired) as e:
                failures.expect(str(e), False)
    t = threading.Thread(target=run, daemon=True)
    t.start()
    return t


def read_something(failures, rng=random.Random(1)):
    for a in rng.sample(attachments(), 1):
        what = rng.choice(("show", "stats", "top", "check"))
        p = natractl(what, a["id"], check=False)
        # The attachment may be removed in between; then the message must say so.
        failures.expect(f"{what}: {p.stderr}", p.returncode == 0 or
                        "not attached" in p.stderr or what == "check" or
                        "No such" in p.stderr or "is gone" in p.stderr or
                        "are gone" in p.stderr or
                        "no interface" in p.stderr)


class Stream:
    """Sends numbered datagrams in one direction and records which of them arrive."""

    def __init__(self, r, src, dst, port, seconds):
        self.log = f"{r.tmp.name}/{port}"
        with open(self.log, "w") as f:
            dst.popen(sys.executable, LOAD, "seq-recv", str(port),
                      stdout=f)
        r.wait_port(dst, port, "udp")
        src.popen(sys.executable, LOAD, "seq-send", dst.ip,
                  str(port), "--rate", str(OFFERED), "--seconds", str(seconds))

    def rows(self):
        with open(self.log) as f:
            rows = [s.split() for s in f if s.endswith("\n")]
        return [(float(t), int(n), int(size)) for t, n, size in rows]

    def judge(self, rep, name, begin, end):
        rows = [x for x in self.rows() if begin <= x[0] < end]
        late = sum(b[1] < a[1] for a, b in zip(rows, rows[1:]))
        spans = [[] for _ in range(int((end - begin) / WINDOW_SECONDS))]
        for row in rows:
            i = int((row[0] - begin) / WINDOW_SECONDS)
            if i < len(spans):
                spans[i].append(row)
        rates = [sum(size for _, _, size in span) * 8 / WINDOW_SECONDS for span in spans]
        # The numbers tell how much was sent: the sender shares the CPU with eight plugins.
        offered = statistics.median(
                (span[-1][1] - span[0][1]) * span[0][2] * 8 / WINDOW_SECONDS if span else 0
                for span in spans)
        rep.shown(f"{name}: datagrams; Mbit/s in spans of {WINDOW_SECONDS} s",
                  f"{len(rows)}; {min(rates) / 1e6:.2f} to "
                  f"{max(rates) / 1e6:.2f}, median "
                  f"{statistics.median(rates) / 1e6:.2f} of {offered / 1e6:.2f} sent")
        rep.equal(f"{name}: overtaken", late, 0)
        rep.most(f"{name}: most in a span", max(rates) / 1e6, MOST / 1e6, " Mbit/s")
        # Where nothing arrives nothing tells what was sent.
        rep.least(f"{name}: offered", offered / 1e6, 0.5 * LOW / 1e6, " Mbit/s")
        # The lowest span is not judged, in which the sender may not have run.
        rep.least(f"{name}: median of the spans",
                  statistics.median(rates) / 1e6, 0.95 * min(LOW, offered) / 1e6, " Mbit/s")


def traffic_pod(r, natra, failures):
    """Let the plugin limit the rig's pod, and return the pod's name for natractl."""
    a = call(natra, "ADD", conf(HIGH, {"cniVersion": "1.0.0", "ips": []},
                                BURST_BITS),
             CNI_CONTAINERID="traffic", CNI_NETNS=r.pod.path)
    failures.expect(f"ADD of the traffic's pod: {a}", a.code == 0)
    return plugin.attachment(r.pod.path)["id"]


def natra_objects():
    """Return natra's programs and maps in the kernel, by kind."""
    return {kind: len([o for o in bpftool(kind, "show")
                       if o.get("name", "").startswith("natra")])
            for kind in ("prog", "map")}


def more_than(before, read):
    """Return by how much each count has grown, without those that have not."""
    now = read()
    return {k: now[k] - before[k] for k in now if now[k] > before[k]}


def wait_until(good):
    """Wait for `good`: namespaces, and what waits for RCU, disappear with a delay."""
    end = time.monotonic() + GONE_SECONDS
    while not good() and time.monotonic() < end:
        time.sleep(0.2)


def grown(before):
    return sum(settled().values()) - sum(before.values())


def churn(c, count, first=0):
    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(c.one, range(first, first + count)))


def with_everything(rep, natra, a, failures):
    """Run the churn while limits change, readers read and gc runs."""
    stop = threading.Event()
    c = Churn(natra, failures)
    with Rig() as r:
        ident = traffic_pod(r, natra, failures)
        ways = {"in": Stream(r, r.client, r.pod, 7001, 900),
                "out": Stream(r, r.pod, r.client, 7002, 900)}
        rates = iter(range(10**9))

        def change():
            rate = (LOW, HIGH)[next(rates) % 2]
            natractl("set", ident, "--ingress-rate", rate, "--egress-rate", rate)

        threads = [repeat(change, stop, 0.2, failures),
                   repeat(lambda: read_something(failures), stop, 0.1, failures),
                   repeat(lambda: natractl("gc"), stop, 0.5, failures)]
        # By then the bursts and the thresholds are used up.
        time.sleep(2)
        begin = time.monotonic()
        churn(c, a.pods)
        end = time.monotonic()
        stop.set()
        for t in threads:
            t.join()
        changes = next(rates)
        r.stop(None)
        rep.least("changes of limits", changes, (end - begin) / 2)
        rep.shown(f"{a.pods} pods, {AT_ONCE} at a time",
                  f"{end - begin:.1f} s; ADD "
                  f"median {statistics.median(c.times) * 1e3:.1f} ms, longest "
                  f"{max(c.times) * 1e3:.0f} ms")
        for name, stream in ways.items():
            stream.judge(rep, name, begin, end)
        call(natra, "DEL", conf(HIGH, None), CNI_CONTAINERID="traffic",
             CNI_NETNS="")


def mounts():
    """Return the ids and places of all mounts."""
    with open("/proc/self/mountinfo") as f:
        return {(line.split()[0], line.split()[4]) for line in f}


def full_node(rep, natra, a, failures):
    """Add all pods of a full node at the same time, as a kubelet does when it starts, and again;
    then delete each twice at once."""
    c = Churn(natra, failures)
    with ThreadPoolExecutor(min(a.node, 64)) as pool:
        pods = list(pool.map(lambda i: Veth(f"n{i}", f"w{i}"), range(a.node)))
        before = mounts()
        for _ in range(2):
            list(pool.map(c.add, range(a.node), pods))
        begin = time.monotonic()
        rates = sorted(x["effective"]["ingress_rate_bits_per_sec"]
                       for x in attachments())
        seconds = time.monotonic() - begin
        rep.check(f"limits of {a.node} pods on one node", str(len(rates)),
                  a.node, rates == [10**6 + i for i in range(a.node)])
        c.has_limit(0, pods[0])
        rep.equal("programs of each pod", {tuple(programs(p)) for p in pods}, {(1, 1)})
        rep.shown("ADD, the median of all; list", f"{statistics.median(c.times) * 1e3:.1f} ms; "
                  f"{seconds * 1e3:.0f} ms")
        list(pool.map(lambda i: c.delete(i, pods[i].path), sorted([*range(a.node)] * 2)))
        rep.equal("mounts more than before", sorted(mounts() - before), [])
        held = {os.stat(p.path).st_ino for p in pods}
        list(pool.map(lambda pod: pod.close(), pods))
    held &= {int(s) for s in sh("lsns", "-t", "net", "-n", "-r", "-o", "NS").split()}
    rep.equal("network namespaces held", held, set())
    have = banks()
    rep.check("banks of programs that stay for the next pod, by engine",
              str(have), "1 each", have and set(have.values()) == {1})


def banks():
    """Return the number of banks of each engine (see src/engine.h)."""
    return {d: len(os.listdir(d)) for d in glob.glob(f"{PINS}/abi*/engine_*")}


def churned(rep, natra, a):
    failures = Failures()
    objects = natra_objects()
    # The first pods fill caches and load modules, so these are not measured.
    churn(Churn(natra, failures), 2 * AT_ONCE, first=a.pods)
    natractl("gc")
    memory = settled()
    with usual_rcu():
        with_everything(rep, natra, a, failures)
    # gc removes the attachments of pods that nobody deleted.
    wait_until(lambda: (natractl("gc"), not attachments())[1])
    rep.equal("attachments that gc left", attachments(), [])
    with usual_rcu():
        full_node(rep, natra, a, failures)
    natractl("gc")
    rep.check("what went wrong", str(failures.said[:1])[:300], "nothing",
              not failures.said)
    rep.equal("pins left", pins(), [])
    rep.equal("files left", [f for _, _, files in os.walk(PINS) for f in files], [])
    # bpftool opens the objects that it shows, which must not happen while the kernel
    # frees them: see bpfsys.
    time.sleep(0.5)
    wait_until(lambda: not more_than(objects, natra_objects))
    rep.equal("natra's programs and maps more than before",
              more_than(objects, natra_objects), {})
    slack = max(SLACK_KIB, POD_SLACK_KIB * (a.pods + a.node))
    wait_until(lambda: grown(memory) <= slack)
    rep.most("kernel memory more than before", grown(memory), slack, " KiB")


def main(rep, a):
    natra = find_natra()
    rep.measure("churn", churned, rep, natra, a)


if __name__ == "__main__":
    plugin.run_script(main,
        option("--pods", type=int, default=1000),
        option("--node", type=int, default=500))
