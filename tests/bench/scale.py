# SPDX-License-Identifier: BSD-2-Clause
"""Measures what a limited pod pays for others: for more limited pods on the node, and
for more heavy flows in the pod itself."""
import statistics
import time

from cells import EMULATED, LIMITERS, UNCAPPED, cell, cpu_bound, too_many
from limiters import bits
from markdown import figure, name_of, ranked, table
from pods import limiter
from target import Target
from throughput import busy_seconds

NAMES = ("pods", "flows")
POD_COUNTS = (1, 10, 100, 500)
FLOW_COUNTS = (1, 16, 64, 1024)
MANY = POD_COUNTS[-1]
CAP = 10**7
ADDS = 5                        # of the last pods, of which the median counts
SETTLE_SECONDS, SECONDS = 2, 2
PER_SECOND = 100 if EMULATED else 500


def cells(node):
    """Many pods take long to make, so their figures have one sample. No limiter is not
    compared at the largest count."""
    for pods in POD_COUNTS:
        for name in (*LIMITERS, *(node.paced if pods <= 10 else ())):
            if pods == MANY and name == "none":
                continue
            yield cell("pods", name, 7.5 if EMULATED else 5 + pods / 14,
                       ci=pods in (1, 10) and name in LIMITERS, pods=pods, once=True,
                       why_not=too_many("pods", pods, 10))
    for flows in FLOW_COUNTS:
        for name in (*LIMITERS, *node.paced):
            yield cell("flows", name, 9 if EMULATED else SETTLE_SECONDS + SECONDS + 2.5,
                       ci=flows in (1, 64) and name in LIMITERS, flows=flows,
                       once=EMULATED or name != "natra" or flows not in (1, 64),
                       why_not=too_many("streams", flows, 64))


def run(r, cell_, lim=None):
    lim = lim or limiter(cell_.limiter)
    return many_pods(r, lim, cell_.param("pods")) if cell_.workload == "pods" else \
        many_flows(r, lim, cell_.param("flows"))


def many_pods(r, lim, count):
    """Measure the first pod, which has no cap that binds, while the others are there."""
    r.add("pod0", lim, bits(UNCAPPED))
    for i in range(1, count):
        r.add(f"pod{i}", lim, CAP)
    values = {}
    if lim.program:
        kind = lim.element["type"]
        values["add_ms"] = statistics.median(
                p.add_seconds[kind] * 1e3 for p in r.pods[-ADDS:])
    r.sockperf_server()
    got = r.sockperf(SECONDS, PER_SECOND)
    values |= {"p50_us": got[50], "p99_us": got[99]}
    if not cpu_bound():
        r.elephants(1)
        values["cpu_per_gb"] = cpu_per_gb(r.meters())
    return values


def flows_cap(emulated):
    """Return the cap of many_flows in bit/s, where the CPU is emulated or not."""
    return 10**8 if emulated else 10**9


def many_flows(r, lim, flows):
    """Measure a request/response flow beside heavy flows into a capped pod."""
    cap = flows_cap(EMULATED)
    r.add("pod0", lim, cap)
    r.sockperf_server()
    # iperf3 takes at most 128 streams.
    for port in range(5201, 5201 + (flows + 127) // 128):
        r.elephant(r.client, r.pod, port, min(flows, 128))
    meter = r.into()
    r.wait_flow(meter)
    time.sleep(SETTLE_SECONDS)
    before = meter.read()
    cpu = busy_seconds()
    got = r.sockperf(SECONDS, PER_SECOND)
    cpu, after = busy_seconds() - cpu, meter.read()
    moved, seconds = after[1] - before[1], after[0] - before[0]
    values = {"p50_us": got[50], "p99_us": got[99],
              "error": moved * 8 / seconds / cap - 1}
    if not cpu_bound():
        values["cpu_per_gb"] = cpu / (moved / 1e9)
    return values


def cpu_per_gb(meters):
    """Return the CPU time of the machine for a GB of what passes now."""
    time.sleep(0.5)
    cpu, before = busy_seconds(), [m.read()[1] for m in meters]
    time.sleep(1)
    cpu, after = busy_seconds() - cpu, [m.read()[1] for m in meters]
    return cpu / ((sum(after) - sum(before)) / 1e9)


def text(values):
    add = f"ADD {values['add_ms']:.1f} ms, " if "add_ms" in values else ""
    cpu = f", {values['cpu_per_gb']:.3f} CPU seconds per GB" \
        if "cpu_per_gb" in values else ""
    return f"{add}p99 {values['p99_us']:.0f} us{cpu}"


def targets(res):
    for metric, words, unit, factor in (
            ("add_ms", "ADD, at most 1.5 of", " ms", 1.5),
            ("cpu_per_gb", "CPU seconds per GB, at most 1.1 of", " s", 1.1),
            ("p99_us", "p99 of a round trip, at most 1.5 of", " us", 1.5)):
        for pods in POD_COUNTS[1:]:
            ours, one = (res.get("pods", "natra", metric, pods=n) for n in (pods, 1))
            if ours and one:
                yield Target(f"{pods} limited pods on the node: {words} that with one",
                             ours, one, "most", unit, factor=factor,
                             centre="median")
    for flows in FLOW_COUNTS:
        error = res.get("flows", "natra", "error", flows=flows)
        if error:
            yield Target(f"{flows} flows: error of the cap", error, 5, "most", " %",
                         centre="error")


def report(res):
    lines, cap = [], flows_cap(res.data["machine"].get("emulated"))
    for what, intro, columns in (
            ("pods", "The figures are of one pod whose cap does not bind, while the "
             "others on the node are limited, too. An ADD is that of the last pods.",
             (("ADD, ms", "add_ms", 1),)),
            ("flows", f"The pod is capped at {cap // 10**6} Mbit/s, and round "
             "trips are those of another flow beside the heavy ones.", ())):
        rows = []
        for key in res.find(what):
            def get(metric, digits, key=key):
                return figure(res.stat(key, metric), digits)
            error = res.stat(key, "error")
            rows.append((dict(key[2])[what], name_of(key[1]),
                         *(get(m, d) for _, m, d in columns),
                         f"{get('p50_us', 0)} / {get('p99_us', 0)}",
                         get("cpu_per_gb", 3),
                         *([f"{error.mean:+.2%}" if error and key[1] != "none" else ""]
                           if what == "flows" else ())))
        if rows:
            lines += [f"## More {what}", "", intro, "",
                      *table((what, "", *(c[0] for c in columns), "p50 / p99, us",
                              "CPU seconds per GB",
                              *(("error of the cap",) if what == "flows" else ())),
                             sorted(rows, key=lambda row: row[0]))]
    return lines


def answers(res):
    found = {name: [res.mean("pods", name, "p99_us", pods=n)
                    for n in POD_COUNTS] for name in ("natra", "upstream")}
    count = max((n for n in POD_COUNTS if res.get("pods", "natra", "p99_us", pods=n)),
                default=None)
    if said := count and ranked({name: res.mean("pods", name, "p99_us", pods=count)
                                 for name in LIMITERS}, "{:.0f} us"):
        yield (f"What does a round trip take with {count} limited pods on the node?",
               f"{said} (p99).")
    rows = [f"{name} {first:.0f} us, and {last[1]:.0f} us with {last[0]}"
            for name, column in found.items()
            for first, last in [(column[0], next(
                    ((n, v) for n, v in reversed([*zip(POD_COUNTS, column)]) if v),
                    None))] if first and last]
    if len(rows) > 1:
        yield ("Does a pod suffer from more limited pods?",
               "p99 of a round trip with one pod on the node: " + "; ".join(rows) + ".")
