# SPDX-License-Identifier: BSD-2-Clause
"""Draws the report's pictures as SVG, from the results alone."""
import io
import os
import statistics

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot, ticker

import capped_pod
import colours
import mixed
import starts
import svg
import web
import wired
from cells import LIMITERS, OLD_UPSTREAM, RATES, UNCAPPED
from cputime import KINDS
from markdown import name_of
from statistic import interval
from target import WAYS

# With these settings the same figures make the same file.
matplotlib.rcParams.update({
        "svg.hashsalt": "natra", "svg.fonttype": "none", "font.size": 9,
        "font.sans-serif": ["DejaVu Sans"],
        "axes.grid": True, "axes.axisbelow": True, "figure.autolayout": True,
        "grid.color": colours.GRID[0], "legend.framealpha": 1,
        "legend.edgecolor": colours.GRID[0],
        **{part: colours.PAGE[0] for part in (
                "figure.facecolor", "axes.facecolor", "savefig.facecolor",
                "legend.facecolor")},
        **{part: colours.INK[0] for part in (
                "text.color", "axes.edgecolor", "axes.labelcolor", "axes.titlecolor",
                "xtick.color", "ytick.color", "legend.labelcolor")}})
# Tables show these, too: other versions and settings of upstream's plugin.
TABLES_ONLY = (*OLD_UPSTREAM, "upstream-containerd")


def save(figure, out, name):
    drawn = io.StringIO()
    figure.savefig(drawn, format="svg")
    pyplot.close(figure)
    with open(f"{out}/{name}.svg", "w") as f:
        f.write(svg.small(drawn.getvalue()))
    return name


def measured(res, workload):
    """Return the limiters that a workload has samples of, in the same order in each
    chart."""
    names = dict.fromkeys(key[1] for key in res.find(workload))
    return [n for n in dict.fromkeys((*LIMITERS, *names))
            if n in names and n not in TABLES_ONLY]


def edges(stat):
    """Return how far the interval of a mean reaches to both sides of it."""
    found = interval(statistics.fmean, stat.values)
    return (0, 0) if not found else (max(0, stat.mean - found[0]),
                                     max(0, found[1] - stat.mean))


def bars(out, name, panels):
    """Draw panels of (title, unit, {limiter: Stat}, log scale), each limiter with its
    interval and its figure. Limiters that a panel lacks have no bar there."""
    panels = [(title, unit, {n: s for n, s in found.items() if s}, log)
              for title, unit, found, log in panels if any(found.values())]
    names = [n for n in dict.fromkeys(n for p in panels for n in p[2])
             if sum(n in p[2] for p in panels)]
    if len(names) < 2:
        return None
    figure, axes = pyplot.subplots(1, len(panels), squeeze=False, sharey=True,
                                   figsize=(9, 1.1 + 0.28 * len(names)))
    for axis, (title, unit, found, log) in zip(axes[0], panels):
        axis.set(title=title, xlabel=unit)
        # A bar and the figure behind it have to fit in.
        most = max((s.mean + edges(s)[1] for s in found.values()), default=0) or 1
        least = min((s.mean for s in found.values() if s.mean > 0), default=most)
        if log and most >= 10 * least:
            span = most / least
            axis.set(xscale="log", xlim=(least / span ** 0.15, most * span ** 0.55))
            axis.xaxis.set_minor_formatter(ticker.NullFormatter())
        else:
            axis.set_xlim(0, most * 1.35)
        for row, who in enumerate(names):
            stat = found.get(who)
            if not stat:
                continue
            below, above = edges(stat)
            axis.barh(row, stat.mean, 0.7, color=colours.of(who))
            axis.errorbar(stat.mean, row, xerr=[[below], [above]], linewidth=1,
                          color=colours.INK[0], capsize=2)
            axis.annotate(f"{stat.mean:.3g}" if stat.mean < 1000 else
                          f"{stat.mean:.0f}", (stat.mean + above, row), (4, 0),
                          textcoords="offset points", va="center", fontsize=8)
        axis.set_yticks(range(len(names)), [name_of(n) for n in names])
        axis.grid(axis="y", visible=False)
    axes[0][0].invert_yaxis()
    return save(figure, out, name)


def lines(axes, limiters, points):
    """Draw one line for each limiter that has points, which are (x, y) lists."""
    drawn = False
    for name in limiters:
        xy = points(name)
        if xy:
            axes.plot(*xy, label=name_of(name), color=colours.of(name),
                      linewidth=1.4, marker="o" if len(xy[0]) < 10 else "",
                      markersize=3)
            drawn = True
    return drawn


def legend(panels):
    """Name the limiters of all panels beside the last one, where no line is."""
    known = {}
    for axes in panels:
        for handle, label in zip(*axes.get_legend_handles_labels()):
            known.setdefault(label, handle)
    panels[-1].legend(known.values(), known.keys(), fontsize=8, loc="upper left",
                      bbox_to_anchor=(1.01, 1.02), frameon=False)


def contracts(res, out):
    """Draw what each limiter lets through, and what that leaves of the mice."""
    names = ("none", *mixed.PEERS, *(n for n in mixed.CONTRACTS if n != "none"))

    def column(metric):
        return {n: res.get("mixed", n, metric, load="fixed") for n in names}
    return bars(out, "contracts", [
            ("all traffic out of the pod", "Mbit/s", column("wire_out"), True),
            ("its small requests", "answered per second", column("rps_annotated"),
             False),
            ("99 % of these within", "ms", column("p99_ms_annotated"), True)])


def round_trips(res, out):
    return bars(out, "latency", [
            (words, "median, us", {n: res.get("latency", n, "p50_us", stream=stream)
                                   for n in measured(res, "latency")},
             True) for stream, words in (("idle", "no stream"), *(
                     (way, f"stream {words}") for way, words in WAYS.items()))])


def caps(res, out):
    """Draw the error of each cap, a point for each sample, so that the worst is seen
    beside the mean, which is a line."""
    figure, panels = pyplot.subplots(1, 2, figsize=(9, 3.2), sharey=True)
    names = [n for n in measured(res, "sweep") if n != "none"]
    places = [(rate, flows) for rate in RATES for flows in (1, 8)
              if any(res.find("sweep", n, rate=rate, flows=flows) for n in names)]
    for axes, (way, words) in zip(panels, WAYS.items()):
        for i, name in enumerate(names):
            for x, (rate, flows) in enumerate(places):
                error = res.get("sweep", name, f"error_{way}", rate=rate, flows=flows)
                if not error:
                    continue
                at = x + 0.25 * (i - (len(names) - 1) / 2)
                axes.plot([at] * len(error.values), [100 * v for v in error.values], "o",
                          markersize=3, color=colours.of(name))
                axes.plot([at - 0.1, at + 0.1], [100 * error.mean] * 2, linewidth=2,
                          color=colours.of(name))
        for name in names:
            axes.plot([], [], "o-", markersize=3, color=colours.of(name),
                      label=name_of(name))
        axes.axhline(0, color=colours.INK[0], linewidth=0.7)
        axes.set_title(words)
        axes.set_xticks(range(len(places)), [f"{r}\n{n} flow{'s' * (n > 1)}"
                                             for r, n in places])
    panels[0].set_ylabel("off the cap, %")
    legend(panels)
    return save(figure, out, "caps") if names and places else pyplot.close(figure)


def by_count(res, out, name, workload, param, panels):
    """Draw metrics, as panels of (metric, title, unit), by a parameter that counts."""
    def points(limiter, metric):
        got = sorted((dict(k[2])[param], res.stat(k, metric).mean)
                     for k in res.find(workload, limiter) if res.stat(k, metric))
        return tuple(zip(*got)) if got else None

    names = measured(res, workload)
    panels = [p for p in panels if any(points(n, p[0]) for n in names)]
    if not panels:
        return None
    figure, axes = pyplot.subplots(1, len(panels), figsize=(9, 3), squeeze=False)
    for axis, (metric, title, unit) in zip(axes[0], panels):
        lines(axis, names, lambda limiter, metric=metric: points(limiter, metric))
        axis.set(title=title, xscale="log", xlabel=f"{param} on the node", ylabel=unit)
        counts = sorted({dict(k[2])[param] for k in res.find(workload)})
        axis.set_xticks(counts, counts)
        axis.minorticks_off()
        # What whole machines take can be less than before.
        axis.set_ylim(bottom=min(0, axis.get_ylim()[0]))
    legend(axes[0])
    return save(figure, out, name)


def wirings(res, out):
    """Draw what natra keeps of the throughput, by how the pod is wired."""
    found = [wired.kept(res, w) for w in wired.NAMES]
    count = max(map(len, found))
    if not count:
        return None
    figure, panels = pyplot.subplots(1, 2, figsize=(9, 1.1 + 0.25 * count))
    for axes, kept, title in zip(panels, found, ("wirings", "service addresses")):
        for row, (words, part) in enumerate(kept.items()):
            axes.barh(row, part, 0.7, color=colours.of("natra"))
            axes.annotate(f"{part:.2f}", (part, row), (4, 0), va="center", fontsize=8,
                          textcoords="offset points")
        axes.set_yticks(range(len(kept)), list(kept))
        axes.set(title=title, xlabel="natra's part of no limiter's throughput",
                 xlim=(0, max(1.25, 1.2 * max(kept.values(), default=1))))
        axes.axvline(1, color=colours.INK[0], linewidth=0.7)
        axes.grid(axis="y", visible=False)
        axes.invert_yaxis()
    return save(figure, out, "wirings")


def request_cost(res, out):
    """Draw the CPU time of a request far under the cap, by what it was for."""
    figure, panels = pyplot.subplots(1, len(web.KEPT), figsize=(9, 2))
    drawn = False
    for axes, kind in zip(panels, web.KEPT):
        params = {"kind": kind, "cap": UNCAPPED}
        names = [n for n in LIMITERS if res.mean("http", n, "cpu_us", **params)]
        left = [0.0] * len(names)
        for part, shade in zip(KINDS, (1.0, 0.65, 0.35)):
            wide = [res.mean("http", n, f"{part}_us", **params) for n in names]
            axes.barh([name_of(n) for n in names], wide, left=left, alpha=shade,
                      color=[colours.of(n) for n in names])
            left = [a + b for a, b in zip(left, wide)]
            drawn |= bool(names)
        axes.invert_yaxis()
        axes.set(title=f"{kind} requests", xlabel=f"us of CPU for each: {', '.join(KINDS)}")
    return save(figure, out, "request-cost") if drawn else pyplot.close(figure)


def draw(res, out):
    """Draw the pictures that the run has figures for; return {name: caption}."""
    os.makedirs(out, exist_ok=True)
    made = {
            capped_pod.draw(res, out): capped_pod.CAPTION,
            contracts(res, out): "What each limiter lets through and leaves of the mice, "
                                 "at a fixed load and a cap of 10 Mbit/s",
            round_trips(res, out): "Round trips at a cap of 100 Mbit/s",
            caps(res, out): "How far off the cap each sample is, and their means",
            by_count(res, out, "memory", "memory", "pods",
                     [("all_kib", "the kernel's memory for a pod", "KiB"),
                      ("memlock_kib", "of that, programs and maps", "KiB")]):
                "Memory by limited pods on the node",
            bars(out, "starts", list(starts.panels(res).values())): starts.caption(res),
            wirings(res, out): "What natra far above the wire keeps",
            by_count(res, out, "slis", "slis", "pods", [
                    ("programming_ms", "ADD to first limited packet", "ms"),
                    ("client_first_ms_p50", "SYN to SYN-ACK", ""),
                    ("client_total_ms_p50", "whole connection", "")]):
                "What a pod's owner notices, by limited pods on the node",
            request_cost(res, out): "What a request costs far under the cap",
            by_count(res, out, "scale", "pods", "pods", [
                    ("p99_us", "p99 of a round trip", "us"),
                    ("cpu_per_gb", "CPU seconds per GB", "")]):
                "More limited pods on the node"}
    return {name: text for name, text in made.items() if name}
