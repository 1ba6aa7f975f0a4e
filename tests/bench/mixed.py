# SPDX-License-Identifier: BSD-2-Clause
"""Measures mice beside elephants: a capped pod with a bulk stream each way serves small
requests, and so does a pod beside it that has no cap.

Limiters promise different things. `CONTRACTS` says what each keeps, and the pod's rate
on the wire, of elephants, mice and acknowledgements together, is measured beside them.
"""
import time
from concurrent.futures import ThreadPoolExecutor

from cells import EMULATED, LIMITERS, OLD_UPSTREAM, cell
from markdown import name_of, ranked, table
from pods import limiter
from rig import Elephant
from statistic import quantiles
from target import Target

NAMES = ("mixed",)
CAP = 10**7
SETTLE_SECONDS = 2.5            # until a burst of containerd's size is through
SECONDS = {"fixed": 20, "tilt": 5}
# The clients of each pod, and the requests a second of each client; 0 means as many as
# it has time for.
FIXED = (10, 2) if EMULATED else (50, 10)
TILT = (10, 0) if EMULATED else (50, 0)
WITHIN = "within the cap"
STRICT, MICE_FREE = "everything", "streams"
CONTRACTS = {"none": "nothing", "natra": MICE_FREE, "natra-pace": MICE_FREE,
             "natra-policed": MICE_FREE,
             **{f"natra-{words}": STRICT for words in ("strict", "off", "policed-strict", "policed-off")}}
PEERS = ("upstream", "tbf", "fq_codel", "cake")     # all strict
# Upstream is a tbf, too, so that one as a root qdisc is shown and decides no target.
RIVALS = tuple(peer for peer in PEERS if peer != "tbf")
WAYS = ("in", "out")


def cells(node):
    """What no target names is measured once, at the fixed load only; a tbf once at each
    load. Where the CPU is emulated, all at full tilt is measured once, because the CPU
    limits requests then."""
    compared = (*LIMITERS, "natra-strict", *node.qdiscs)
    once = (*OLD_UPSTREAM, "upstream-containerd", "natra-off", *node.paced, *node.policed)
    for load, names in (("fixed", (*compared, *once)), ("tilt", compared)):
        for name in names:
            yield cell("mixed", name, SETTLE_SECONDS + SECONDS[load] + 2, load=load,
                       ci=name in (*LIMITERS, "natra-strict"),
                       once=name in ("tbf", *once) or EMULATED and load == "tilt")


def run(r, cell_, lim=None):
    lim = lim or limiter(cell_.limiter)
    pods = {"annotated": r.add("perf-server", lim, CAP),
            "bystander": r.add("bystander", lim)}
    urls = {name: r.nginx(pod=pod) for name, pod in pods.items()}
    elephants = [Elephant(r, r.client, r.pod, 5401, "in"),
                 Elephant(r, r.pod, r.client, 5402, "out")]
    # Only the capped pod sends to its client, so all of its traffic is counted there.
    meters = r.meters()
    r.wait_flow(*meters)
    time.sleep(SETTLE_SECONDS)
    load = FIXED if cell_.param("load") == "fixed" else TILT
    seconds = SECONDS[cell_.param("load")]
    start, before = time.monotonic(), [m.read() for m in meters]
    with ThreadPoolExecutor(2) as pool:
        jobs = {name: pool.submit(r.hey_times, url, seconds, *load, lane=lane)
                for lane, (name, url) in enumerate(urls.items())}
        # The rates count while hey sends requests.
        time.sleep(seconds)
        end, after = time.monotonic(), [m.read() for m in meters]
        times = {name: sorted(t for _, t in job.result())
                 for name, job in jobs.items()}
    values = {f"elephant_{way}": e.rate(start, end) / 1e6
              for way, e in zip(WAYS, elephants)}
    values |= {f"wire_{way}": (b1 - b0) * 8e-6 / (t1 - t0)
               for way, (t0, b0), (t1, b1) in zip(WAYS, before, after)}
    for name, rows in times.items():
        q = quantiles(rows)
        values[f"rps_{name}"] = len(rows) / seconds
        if rows:
            values[f"p50_ms_{name}"] = q[50] * 1e3
            values[f"p99_ms_{name}"] = q[99] * 1e3
    values["rps_total"] = sum(len(rows) for rows in times.values()) / seconds
    if load[1]:
        values["offered"] = load[0] * load[1]
    values.update(r.natra_state(r.pod))
    return values


def text(values):
    p99 = values.get("p99_ms_annotated")
    return (f"{values['rps_annotated']:.0f} + {values['rps_bystander']:.0f} "
            f"requests/s, p99 {f'{p99:.1f} ms' if p99 else 'none'}, elephant "
            f"{values['elephant_in']:.1f} / {values['elephant_out']:.1f}, wire "
            f"{values['wire_in']:.1f} / {values['wire_out']:.1f}")


def targets(res):
    def get(name, metric, load):
        return res.get("mixed", name, metric, load=load)

    yield Target("mice beside elephants, fixed load: requests/s, at least "
                 "0.95 of no limiter's", get("natra", "rps_annotated", "fixed"),
                 get("none", "rps_annotated", "fixed"), "least", "/s", factor=0.95)
    yield Target("mice beside elephants, fixed load: p99, at most 1.5 of no "
                 "limiter's",
                 get("natra", "p99_ms_annotated", "fixed"),
                 get("none", "p99_ms_annotated", "fixed"), "most", " ms", factor=1.5)
    yield Target("mice at full tilt: requests/s, at least 10 times "
                 "upstream's",
                 get("natra", "rps_annotated", "tilt"),
                 get("upstream", "rps_annotated", "tilt"), "least", "/s", factor=10)
    for other, words in (("none", "no limiter's"), ("upstream", "upstream's")):
        yield Target(f"mice of both pods at full tilt: requests/s, at least "
                     f"{words}",
                     get("natra", "rps_total", "tilt"),
                     get(other, "rps_total", "tilt"), "least", "/s")
    yield from strict(res, RIVALS)


# Metric, words, sense and unit of what natra is to win at once under a strict cap.
STRICT_WINS = (("rps_annotated", "requests/s", "least", "/s"),
               ("p99_ms_annotated", "p99", "most", " ms"),
               ("elephant_in", "elephant into the pod", "least", " Mbit/s"),
               ("elephant_out", "elephant out of the pod", "least", " Mbit/s"))


def strict(res, peers):
    """Compare natra's strict cap with those that promise the same."""
    for load, words in (("fixed", "a fixed load"), ("tilt", "full tilt")):
        for way in WAYS:
            wire = res.get("mixed", "natra-strict", f"wire_{way}", load=load)
            if wire:
                yield Target(f"strict, {words}: all of the pod's traffic {way}, at "
                             "most 1.05 of the cap", wire, CAP / 1e6, "most",
                             " Mbit/s", factor=1.05)
        for peer in peers:
            for metric, what, sense, unit in STRICT_WINS:
                ours, theirs = (res.get("mixed", name, metric, load=load)
                                for name in ("natra-strict", peer))
                if ours and theirs:
                    yield Target(f"strict, {words}: {what}, at "
                                 f"{sense} {name_of(peer)}'s", ours, theirs, sense,
                                 unit)


def per_second(rps, p99):
    if rps is None:
        return ""
    return f"{rps.mean:.0f} / " + (f"{p99.mean:.1f} ms" if p99 else "none")


def place(limiter):
    """Return a row's place: natra's are beside each other, behind those that they are compared
    with first."""
    name = "natra" if limiter.startswith("natra-") else limiter
    return (*LIMITERS, name).index(name)


def compared(res, load):
    """Return a table of what each limiter lets through and leaves of the mice."""
    rows = []
    for key in sorted(res.find("mixed", load=load), key=lambda key: place(key[1])):
        def get(metric, key=key):
            return res.stat(key, metric)

        def both(metric):
            pair = [get(f"{metric}_{way}") for way in WAYS]
            return " / ".join(f"{s.mean:.1f}" for s in pair) if all(pair) else ""
        if get("rps_total"):
            rows.append((name_of(key[1]), CONTRACTS.get(key[1], STRICT), both("wire"),
                         both("elephant"),
                         *(per_second(get(f"rps_{pod}"), get(f"p99_ms_{pod}"))
                           for pod in ("annotated", "bystander"))))
    return table(("", WITHIN, "all in / out, Mbit/s", "stream in / out, Mbit/s",
                  "requests/s / their p99", "those to the pod beside it"), rows)


def report(res):
    rows = compared(res, "tilt")
    return rows and ["## Mice beside elephants at full tilt", "",
                     "As in the first table of this page, but each client asks as often as it "
                     "has time.", "", *rows]


def glance(res):
    """Return the first page's table: who wins, and by how much."""
    rows = compared(res, "fixed")
    offered = res.mean("mixed", "none", "offered", load="fixed")
    return rows and [
            "A pod with a cap of 10 Mbit/s each way has a TCP stream each way and serves files of 6 kB, "
            "each on a new connection, and so does a pod beside it without a cap"
            f"{f': {offered:.0f} requests/s to each' if offered else ''}.", "", *rows]


def answers(res):
    said = ranked({name: res.mean("mixed", name, "rps_annotated", load="fixed")
                   for name in LIMITERS}, "{:.0f}", most=True)
    if said:
        yield "How many small requests of a capped pod are answered per second?", f"{said}."
    said = ranked({name: res.mean("mixed", name, "rps_annotated", load="fixed")
                   for name in (*PEERS, "natra-strict")}, "{:.0f}", most=True)
    if said:
        yield ("How many of them are answered per second if all of the pod's traffic has "
               "to be within the cap?", f"{said}.")
    lost = strict_losses(res)
    if lost:
        yield ("Who wins under a strict cap?",
               f"natra with `strict` is no worse in requests/s, p99 and the elephants' "
               f"rates at once in {sum(not what for what in lost.values())} of {len(lost)} "
               "comparisons" + "".join(
                       f"; worse than {peer} at {load} in {', '.join(what)}"
                       for (load, peer), what in lost.items() if what) + ".")


def strict_losses(res):
    """Return, by load and peer, in which of STRICT_WINS natra was worse."""
    found = {}
    for t in strict(res, PEERS):
        words, _, peer = t.name.partition(f", at {t.sense} ")
        if isinstance(t.factor, int):
            load, _, what = words.removeprefix("strict, ").partition(": ")
            lost = found.setdefault((load, peer.removesuffix("'s")), [])
            lost += [] if t.met else [what]
    return found
