# SPDX-License-Identifier: BSD-2-Clause
"""Measures pods that start at the same time, as after a node's boot: the whole chain of
plugins for each, and how many are ready per second."""
import statistics
import time
from concurrent.futures import ThreadPoolExecutor

import plugin
from cells import LIMITERS, cell, cpu_bound
from markdown import figure, name_of, ranked, table
from pods import limiter
from target import Target

NAMES = ("starts",)
CAP = 10**7
AT_ONCE = 64
MODES = ("natra-clsact-podside", "natra-tcx-podside")
SHOWN = (*LIMITERS, "natra-pace", *MODES)


def cells(node):
    """Let each limiter start pods on a node that has none, and natra also where another
    pod, or the agent, has loaded the programs."""
    modes = (m for m in MODES if m[len("natra-"):] in node.modes)
    for name in (*LIMITERS, *node.paced, *modes):
        for loaded in (False, True) if name == "natra" else (False,):
            yield cell("starts", name, {"none": 5, "upstream": 6}.get(name, 7),
                       ci=name in LIMITERS and not loaded,
                       once=loaded or name not in ("natra", "upstream"),
                       why_not=cpu_bound(), pods=AT_ONCE, loaded=loaded)


def run(r, cell_, lim=None):
    lim = lim or limiter(cell_.limiter)
    if lim.element.get("type") == "natra":
        plugin.natractl("gc")   # programs that earlier pods left
    if cell_.param("loaded"):
        r.add("first", lim, CAP)
    names = [f"pod{i}" for i in range(cell_.param("pods"))]
    begin = time.monotonic()
    with ThreadPoolExecutor(len(names)) as pool:
        pods = list(pool.map(lambda name: r.add(name, lim, CAP), names))
    seconds = time.monotonic() - begin
    chain = sorted(sum(p.add_seconds.values()) * 1e3 for p in pods)
    values = {"per_second": len(pods) / seconds, "chain_ms": statistics.median(chain),
              "chain_worst_ms": chain[-1]}
    own = [p.add_seconds[lim.element["type"]] * 1e3 for p in pods if lim.program]
    if own:
        values["add_ms"], values["add_worst_ms"] = statistics.median(own), max(own)
    values.update(r.natra_state(r.pods[-1]))
    return values


def text(values):
    return f"{values['per_second']:.1f} pods/s, chain {values['chain_ms']:.0f} ms, " \
           f"worst {values['chain_worst_ms']:.0f}"


def targets(res):
    ours, theirs = (res.get("starts", name, "per_second", loaded=False)
                    for name in ("natra", "upstream"))
    if ours and theirs:
        yield Target(f"{AT_ONCE} pods at once: pods per second, at least upstream's",
                     ours, theirs, "least", "/s")


def panels(res):
    """Return the chart's panels that the run has figures for, as {what: (title, unit,
    {limiter: Stat}, log scale)}."""
    adds = {n: res.get("add", "both", f"wall_ms {who}") for n, who in (
            ("upstream", "upstream"), (MODES[0], "natra clsact"), (MODES[1], "natra tcx"))}
    pods = {n: res.get("starts", n, "per_second", loaded=False)
            for n in SHOWN}
    found = {"how long an ADD takes": ("one ADD", "ms", adds, False),
             "how many pods start": (f"{AT_ONCE} pods at once", "ready per second", pods,
                                     False)}
    return {what: panel for what, panel in found.items() if any(panel[2].values())}


def caption(res):
    what = ", and ".join(panels(res))
    return what[:1].upper() + what[1:]


def report(res):
    rows = []
    for key in res.find("starts"):
        def get(metric, digits=1, key=key):
            return figure(res.stat(key, metric), digits)
        rows.append((name_of(key[1]) + (", programs loaded before" if dict(key[2])[
                             "loaded"] else ""), get("per_second"), get("chain_ms", 0),
                     get("chain_worst_ms", 0), get("add_ms", 0),
                     get("add_worst_ms", 0)))
    return rows and [
            "## Many pods at once", "",
            f"{AT_ONCE} pods start at the same time on a node that has none. Times are "
            "in ms: of the chain of ptp, host-local and the limiter, and of the limiter's "
            "own ADD.", "",
            *table(("", "pods per second", "chain, median", "chain, worst",
                    "ADD, median", "ADD, worst"), rows)]


def answers(res):
    found = {name: res.mean("starts", name, "per_second", loaded=False)
             for name in SHOWN}
    if said := ranked(found, "{:.0f}", most=True):
        yield "How many pods start per second?", f"{said} ({AT_ONCE} at once)."
