# SPDX-License-Identifier: BSD-2-Clause
"""Measures what slis.py measures while the node is busy: a capped pod has a stream each
way at its cap and answers all the new connections that many clients have time for.

Meanwhile more pods are added, whose limits should work soon, and the pod's own limit is
changed. The throughput of a connection is what connection tracking counted of it when it
was forgotten, by the time from SYN to FIN.
"""
import statistics
import time
from concurrent.futures import ThreadPoolExecutor

import plugin
from cells import EMULATED, LIMITERS, cell
from commands import sh
from conntrack import FIN_WAIT, SYN_SENT, Connections, mbits
from markdown import figure, name_of, ranked, table
from mixed import CONTRACTS, STRICT, WITHIN
from pods import limiter
from rig import Elephant
from slis import CAP, TRACK, Programming
from statistic import quantiles
from target import Target

NAMES = ("stress",)
POD_COUNTS = (1, 10, 200)
JUDGED_PODS = 10
SETTLE_SECONDS = 1              # a burst passes as fast as the wire carries it
SECONDS = 6 if EMULATED else 4
# Clients, and the connections that each keeps open.
CLIENTS, OPEN = (2, 10) if EMULATED else (10, 100)
TIMEOUT = 20
# A client's port is free again after a second, and the ports are for all clients.
CLIENT_SYSCTLS = {"net.ipv4.ip_local_port_range": "1024 65535",
                  "net.ipv4.tcp_tw_reuse": "1"}
ADDS, CHANGES = (2, 5) if EMULATED else (5, 10)
WAYS = ("in", "out")
PORT = 80


def cells(node):
    """Limiters are compared by their samples among JUDGED_PODS; on an emulated CPU there
    is time for one sample there."""
    for pods in POD_COUNTS:
        more = ("natra-strict", *node.paced) if pods == JUDGED_PODS else ()
        for name in (*LIMITERS, *more):
            yield cell("stress", name, 25 if EMULATED else
                       SETTLE_SECONDS + SECONDS + 5 + 0.05 * pods,
                       ci=pods == JUDGED_PODS and name != "natra-pace",
                       once=EMULATED or pods != JUDGED_PODS or name not in LIMITERS,
                       pods=pods, why_not=too_slow(pods))


def too_slow(pods):
    """Return why an emulated CPU is not asked for this count of pods, or ""."""
    return "an emulated CPU has time for one count of pods" \
        if EMULATED and pods != JUDGED_PODS else ""


def clients(r, url):
    """Return the seconds to connect and in all of each request."""
    for key, value in CLIENT_SYSCTLS.items():
        r.client.sysctl(key, value)
    with ThreadPoolExecutor(CLIENTS) as pool:
        jobs = [pool.submit(r.hey_times, url, SECONDS, OPEN, 0, TIMEOUT)
                for _ in range(CLIENTS)]
        return [t for job in jobs for t in job.result()]


def programming(r, lim):
    """Return the ms until the limits of more pods worked, and how often that could not
    be told: on a busy node packets of the clock can be late."""
    found, untold = [], 0
    for i in range(ADDS if lim.program else 0):
        with Programming(r) as timer:
            pod = r.add(f"next{i}", lim, CAP, timer.before)
            try:
                found.append(timer.latency_ms(pod))
            except RuntimeError:
                untold += 1
    return found, untold


def configure(pod):
    """Return the ms that each of some changes of the pod's limit takes, as a process,
    and the ms of a process that changes nothing."""
    ident = plugin.attachment(pod.path)["id"]
    took, alone = [], []
    for i in range(CHANGES):
        for words, times in ((("set", ident, "--ingress-rate", CAP + (i + 1) % 2), took),
                             (("--version",), alone)):
            begin = time.monotonic()
            plugin.natractl(*words)
            times.append((time.monotonic() - begin) * 1e3)
    return took, alone


def summary(values, name, got, parts=(50, 99)):
    """Note percentiles of `got`, which is sorted."""
    if got:
        q = quantiles(got)
        for part in parts:
            values[f"{name}_p{part}"] = q[part]


def per_second(found):
    """Return how many connections ended in each second of the load."""
    begin = min((t[SYN_SENT] for t in found if SYN_SENT in t), default=0)
    return sum(t[FIN_WAIT] - begin <= SECONDS * 1e9
               for t in found if FIN_WAIT in t) / SECONDS


def run(r, cell_, lim=None):
    lim = lim or limiter(cell_.limiter)
    pod = r.add("perf-server", lim, CAP)
    for i in range(1, cell_.param("pods")):
        r.add(f"pod{i}", lim, CAP)
    url = r.nginx()
    elephants = [Elephant(r, r.client, pod, 5401, "in"),
                 Elephant(r, pod, r.client, 5402, "out")]
    meters = r.meters()
    r.wait_flow(*meters)
    time.sleep(SETTLE_SECONDS)
    sh("nft", "-f", "-", input=TRACK)
    try:
        seen = Connections(accounting=True)
        start, before = time.monotonic(), [m.read() for m in meters]
        with ThreadPoolExecutor(1) as pool:
            load = pool.submit(clients, r, url)
            time.sleep(SECONDS / 8)
            latencies, untold = programming(r, lim)
            natra = lim.element.get("type") == "natra"
            changes, alone = configure(pod) if natra else ([], [])
            busy = time.monotonic() - start
            time.sleep(max(0, start + SECONDS - time.monotonic()))
            end, after = time.monotonic(), [m.read() for m in meters]
            times = load.result()
        # Nothing else should want the CPU while the kernel forgets its connections.
        r.stop(None)
        first, total = seen.end(PORT)
    finally:
        r.stop(None)
        sh("nft", "delete", "table", "ip", "bench", timeout=60)
    values = {"rps": per_second(seen.found), "connections": len(total),
              "unfinished": len(seen.found) - len(total), "events_lost": seen.lost,
              "stamped": seen.stamped, "untold": untold, "busy_seconds": busy,
              "clients": CLIENTS, "open": OPEN}
    summary(values, "first_ms", first)
    summary(values, "total_ms", total)
    summary(values, "client_first_ms", sorted(t[0] * 1e3 for t in times))
    summary(values, "mbit", mbits(seen.found), (10, 50))
    for name, got in (("programming_ms", latencies), ("configure_ms", changes),
                      ("process_ms", alone)):
        if got:
            values[name] = statistics.median(got)
            values[f"{name}_worst"] = max(got)
    values |= {f"elephant_{way}": e.rate(start, end) / 1e6
               for way, e in zip(WAYS, elephants)}
    values |= {f"wire_{way}": (b1 - b0) * 8e-6 / (t1 - t0)
               for way, (t0, b0), (t1, b1) in zip(WAYS, before, after)}
    return values


def text(values):
    shown = [("limited after", "programming_ms", " ms"),
             ("set", "configure_ms", " ms"), ("first packet", "first_ms_p50", " ms"),
             ("connection", "total_ms_p50", " ms"), ("p10", "mbit_p10", " Mbit/s"),
             ("elephant", "elephant_out", " Mbit/s")]
    return f"{values['connections']} connections, " + ", ".join(
            f"{name} {values[k]:.2f}{unit}" for name, k, unit in shown if k in values)


# Without a limiter the pod's kernel answers a SYN in some microseconds, of which a ratio
# says nothing. A SYN or its answer that waits in a queue takes milliseconds.
NO_QUEUE_MS = 1
# Metric, words, sense, unit, and against whom with which factor.
DEMANDED = (("total_ms_p50", "SYN to FIN, median", "most", " ms", "none", 1.5),
            ("mbit_p10", "throughput of the connection at 10 %", "least", " Mbit/s",
             "upstream", 1),
            ("programming_ms", "limited after, median", "most", " ms", "upstream", 1))


def targets(res):
    counts = dict.fromkeys(dict(k[2])["pods"] for k in res.find("stress", "natra"))
    for pods in counts:
        for metric, words, sense, unit, other, factor in DEMANDED:
            ours, theirs = (res.get("stress", name, metric, pods=pods)
                            for name in ("natra", other))
            if theirs:
                whose = "no limiter's" if other == "none" else f"{other}'s"
                yield Target(
                        f"under stress, {pods} pods: {words}, at {sense} "
                        f"{f'{factor} of ' if factor != 1 else ''}{whose}", ours, theirs,
                        sense, unit, factor=factor)
        first, other = (res.get("stress", name, "first_ms_p99", pods=pods)
                        for name in ("natra", "none"))
        if other:
            yield Target(f"under stress, {pods} pods: SYN to SYN-ACK, p99, at most "
                         f"{NO_QUEUE_MS} ms or 1.5 of no limiter's", first,
                         max(NO_QUEUE_MS, 1.5 * other.mean), "most", " ms")
        for way in WAYS:
            rate = res.get("stress", "natra", f"elephant_{way}", pods=pods)
            yield Target(f"under stress, {pods} pods: elephant {way}, at most 1.05 of "
                         "the cap", rate, CAP / 1e6, "most", " Mbit/s", factor=1.05)


def rows_of(res):
    for key in sorted(res.find("stress"), key=lambda k: dict(k[2])["pods"]):
        def get(metric, digits=1, key=key):
            return figure(res.stat(key, metric), digits)

        def both(*metrics, digits=1):
            pair = [get(m, digits) for m in metrics]
            return " / ".join(pair) if all(pair) else ""
        if get("rps"):
            yield ((dict(key[2])["pods"], name_of(key[1]),
                    CONTRACTS.get(key[1], STRICT), get("connections", 0),
                    get("unfinished", 0), get("rps", 0),
                    both("first_ms_p50", "first_ms_p99", digits=2),
                    both("total_ms_p50", "total_ms_p99", digits=2),
                    both("mbit_p10", "mbit_p50", digits=2),
                    both("elephant_in", "elephant_out"), both("wire_in", "wire_out")),
                   (dict(key[2])["pods"], name_of(key[1]),
                    both("programming_ms", "programming_ms_worst"),
                    both("configure_ms", "configure_ms_worst"),
                    both("process_ms", "process_ms_worst")))


def report(res):
    rows = list(rows_of(res))
    if not rows:
        return []
    timed = [timed for _, timed in rows if any(timed[2:])]
    # The report of a VM is made on its host, whose constants are others.
    count, open_ = (max(s["values"].get(m, default) for k in res.find("stress")
                        for s in res.cells[k])
                    for m, default in (("clients", CLIENTS), ("open", OPEN)))
    return ["## What a pod's owner notices under stress", "",
            f"The pod is capped at {CAP / 1e6:.0f} Mbit/s each way, has a TCP stream "
            f"each way, and answers {count} clients that each keep {open_} new "
            "connections open, for 6 kB files. Times are those of connection tracking "
            "on the node. The throughput of a connection is what it sent by the time "
            "from SYN to FIN; the one at 10 % of all says how the slow ones fare.", "",
            *table(("limited pods", "", WITHIN, "connections", "unfinished", "a second",
                    "SYN-ACK, ms p50 / p99", "FIN, ms p50 / p99",
                    "Mbit/s of a connection, 10 % / median",
                    "elephant in / out, Mbit/s",
                    "all of the pod's traffic in / out, Mbit/s"),
                   [seen for seen, _ in rows]),
            *(timed and ["Beside that load other pods are added and the pod's limit is "
                         "changed. The table shows medians and the worst in ms; "
                         "*natractl set* is a process, and what one takes that changes "
                         "nothing (`--version`) is beside it.", ""]),
            *table(("limited pods", "", "limited after", "natractl set",
                    "natractl --version"), timed)]


def answers(res):
    counts = sorted({dict(k[2])["pods"] for k in res.find("stress", "natra")})
    for pods in counts[-1:]:
        found = {name: [res.mean("stress", name, m, pods=pods)
                        for m in ("rps", "first_ms_p50", "mbit_p10")]
                 for name in (*LIMITERS, "natra-strict", "natra-pace")}
        rows = [f"{name_of(name)} {rps:.0f} connections/s, SYN-ACK after {first:.2f} ms, "
                f"{slow:.2f} Mbit/s for the slow tenth"
                for name, (rps, first, slow) in found.items()
                if None not in (rps, first, slow)]
        said = ranked({name: row[0] for name, row in found.items()}, "{:.0f}", most=True)
        if said:
            yield ("How many new connections per second are answered under stress, with "
                   f"{pods} pods?", f"{said}.")
        if len(rows) > 1:
            yield (f"What do new connections get under stress, with {pods} pods?",
                   "; ".join(rows) + ".")
    changed = res.mean("stress", "natra", "configure_ms", pods=counts and counts[-1])
    if changed is not None:
        worst = res.mean("stress", "natra", "configure_ms_worst", pods=counts[-1])
        yield ("How soon is a running limit changed?",
               f"natractl set takes {changed:.1f} ms beside that load, {worst:.1f} ms at "
               "worst; upstream's plugin changes no running limit.")
