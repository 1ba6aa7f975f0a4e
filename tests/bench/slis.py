# SPDX-License-Identifier: BSD-2-Clause
"""Measures what a pod's owner notices of the limiter: how soon it works after ADD
began, and what it adds to connections, by the number of limited pods on the node."""
import json
import socket
import statistics
import threading
import time

import plugin
from cells import EMULATED, LIMITERS, cell, too_many
from conntrack import Connections
from commands import sh
from limiters import total
from markdown import figure, name_of, ranked, table
from pods import limiter
from statistic import quantiles

NAMES = ("slis",)
POD_COUNTS = (1, 10, 100, 200)
EMULATED_PODS = 10
CAP = 10**7
ADDS = 5                        # at each count; pods that take part in it
SECONDS = 2
# The number of clients, and the requests a second of each.
LOAD = (5, 4) if EMULATED else (20, 5)
PORT = 5300
PER_SECOND = 200 if EMULATED else 2000    # packets of the clock
TRACK = """table ip bench { chain f { type filter hook forward priority 0;
ct state new,established counter accept; }; }"""


class Clock(threading.Thread):
    """Sends small packets to the pod at even intervals and notes the times."""

    def __init__(self, ns, ip):
        super().__init__(daemon=True)
        self.times, self.on = [], True
        with ns:
            self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.connect((ip, PORT))

    def run(self):
        due = time.monotonic()
        while self.on:
            try:
                self.socket.send(b"x" * 32)
                self.times.append(time.monotonic())
            except OSError:
                pass            # the answer of a pod that is not up yet
            due += 1 / PER_SECOND
            time.sleep(max(0, due - time.monotonic()))

    def end(self):
        self.on = False
        self.join(5)
        self.socket.close()


def cells(_):
    """Let the node grow from one count of pods to the next, limiter by limiter."""
    for name in LIMITERS:
        grown = 0
        for pods in POD_COUNTS:
            yield cell("slis", name, 11 if EMULATED else 4 + 0.06 * (pods - grown),
                       ci=pods <= 10, once=True, pods=pods,
                       why_not=too_many("pods", pods, EMULATED_PODS))
            grown = pods


def limited_packets(pod):
    """Return how many packets to the pod the limiter has seen."""
    if pod.limiter.element["type"] == "natra":
        ident = plugin.attachment(pod.path)["id"]
        return total(json.loads(plugin.natractl("stats", ident, "--json"))
                     ["ingress"], "packets")
    q, = [q for q in json.loads(sh("tc", "-s", "-j", "qdisc", "show", "dev",
                                   pod.host)) if q["kind"] == "tbf"]
    return q["packets"] + q["drops"]


class Programming:
    """Times one ADD. A clock sends packets to the pod from before the limiter's plugin
    starts. The limiter counts n of them, so the first that it saw is the n-th from the
    end."""

    def __init__(self, r):
        self.r, self.start, self.clock, self.sink = r, None, None, None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.clock:
            self.clock.end()
            self.sink.close()

    def before(self, pod, kind, result):
        if kind == "ptp":
            return
        ip = result["ips"][0]["address"].split("/")[0]
        with pod:
            self.sink = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.sink.bind((ip, PORT))
        self.clock = Clock(self.r.client, ip)
        self.clock.start()
        time.sleep(0.02)
        self.start = time.monotonic()

    def latency_ms(self, pod):
        """Return the ms from the start of the plugin to the first limited packet."""
        time.sleep(0.02)
        self.clock.end()
        time.sleep(0.02)
        times = self.clock.times
        seen = limited_packets(pod)
        if not 0 < seen < len(times):
            raise RuntimeError(f"{seen} of {len(times)} packets were limited")
        return (times[-seen] - self.start) * 1e3


def grow(r, lim, pods):
    """Add pods up to that count; return the programming latency of the last, in ms."""
    if r.pods and r.pods[0].limiter.name != lim.name:
        r.clear()
    latencies, adds = [], []
    for i in range(len(r.pods), pods):
        if pods - i <= ADDS and lim.program:
            with Programming(r) as timer:
                pod = r.add(f"pod{i}", lim, CAP, timer.before)
                latencies.append(timer.latency_ms(pod))
        else:
            pod = r.add(f"pod{i}", lim, CAP)
        adds.append(sum(pod.add_seconds.values()) * 1e3)
    return latencies, adds[-ADDS:]


def run(r, cell_, lim=None):
    lim = lim or limiter(cell_.limiter)
    latencies, adds = grow(r, lim, cell_.param("pods"))
    pod = r.pods[-1]
    url = r.nginx(pod=pod)
    sh("nft", "-f", "-", input=TRACK)
    try:
        seen = Connections()
        times = r.hey_times(url, SECONDS, *LOAD)
        tracked = dict(zip(("conntrack_first_ms", "conntrack_total_ms"),
                           seen.end()))
    finally:
        sh("nft", "delete", "table", "ip", "bench")
        r.stop(None)
    rows = dict(tracked,
                client_first_ms=sorted(t[0] * 1e3 for t in times),
                client_total_ms=sorted(t[1] * 1e3 for t in times))
    values = {"chain_ms": statistics.median(adds), "stamped": seen.stamped,
              "rps": len(times) / SECONDS}
    for name, got in rows.items():
        if got:
            q = quantiles(got)
            values[f"{name}_p50"], values[f"{name}_p99"] = q[50], q[99]
    if latencies:
        values["programming_ms"] = statistics.median(latencies)
        values["programming_worst_ms"] = max(latencies)
    return values


def text(values):
    shown = [("ADD", "chain_ms"), ("limited after", "programming_ms"),
             ("first packet", "client_first_ms_p50"),
             ("tracked", "conntrack_first_ms_p50"),
             ("connection", "client_total_ms_p50")]
    return ", ".join(f"{name} {values[k]:.2f} ms" for name, k in shown
                     if k in values)


def targets(_):
    return ()


def report(res):
    rows, stamped = [], False
    for key in res.find("slis"):
        def get(metric, key=key):
            return figure(res.stat(key, metric), 2)
        stamped |= any(s["values"].get("stamped") for s in res.cells[key])
        rows.append((
                dict(key[2])["pods"], name_of(key[1]), get("chain_ms"),
                get("programming_ms"),
                *(f"{get(f'{m}_p50')} / {get(f'{m}_p99')}" for m in (
                        "client_first_ms", "conntrack_first_ms",
                        "client_total_ms", "conntrack_total_ms"))))
    rows.sort(key=lambda r: r[0])
    source = "the kernel's stamps" if stamped else "the time of reading"
    return rows and [
            "## What a pod's owner notices", "",
            "Times are in ms, p50 / p99. *Limited after* is the time from the "
            "start of the limiter's ADD to the first packet into the pod that "
            "it saw. The client measures from SYN to SYN-ACK and from SYN to the "
            "end; connection tracking on the node measures from SYN to SYN-ACK "
            f"and to the first FIN ({source}).", "",
            *table(("limited pods", "", "ADD of the chain", "limited after",
                    "SYN-ACK, client", "SYN-ACK, node", "end, client",
                    "FIN, node"), rows)]


def answers(res):
    found = {}
    for key in res.find("slis"):
        programming = res.stat(key, "programming_ms")
        if programming:
            found.setdefault(dict(key[2])["pods"], {})[key[1]] = programming.mean
    both = [n for n in found if len(found[n]) > 1]
    if both:
        yield ("How soon after its ADD begins is a pod limited?",
               f"{ranked(found[max(both)], '{:.1f} ms')} ({max(both)} pods on the node).")
