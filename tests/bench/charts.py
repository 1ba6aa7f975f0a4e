# SPDX-License-Identifier: BSD-2-Clause
"""Draws the report's pictures as SVG."""
import os

import matplotlib

matplotlib.use("Agg")
# With these settings the same figures make the same file.
matplotlib.rcParams.update({"svg.hashsalt": "natra", "svg.fonttype": "none",
                            "font.size": 9, "axes.grid": True,
                            "grid.alpha": 0.3, "figure.autolayout": True})
from matplotlib import pyplot

import capped_pod
import headofline
import rrul
import web
from cells import LIMITERS, UNCAPPED
from cputime import KINDS
from target import WAYS

COLOURS = {"none": "#888888", "upstream": "#d95f02",
           "upstream-containerd": "#e6ab02", "upstream-debian": "#a6761d",
           "natra": "#1b7837", "natra-pace": "#7570b3",
           "natra-charged": "#17a2a2", "tbf": "#d95f02", "fq_codel": "#1f78b4",
           "cake": "#e7298a"}
LABELS = {"none": "no limiter", "upstream": "upstream",
          "upstream-containerd": "upstream, containerd's burst",
          "upstream-debian": "upstream 1.1.1", "natra": "natra",
          "natra-pace": "natra, paced ingress",
          "natra-charged": "natra, charged", "tbf": "tbf", "fq_codel": "fq_codel",
          "cake": "cake"}
STRICT = ("upstream", "fq_codel", "cake", "natra-charged", "natra")


# In a dark page black becomes white and a colour keeps its hue.
DARK = "<style>@media (prefers-color-scheme: dark) { svg { filter: invert(0.93) " \
    "hue-rotate(180deg) } }</style>"


def save(figure, out, name):
    path = f"{out}/{name}.svg"
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
    with open(path) as f:
        head, end, rest = f.read().partition("<defs>")
    with open(path, "w") as f:
        f.write(head + DARK + "\n " + end + rest)
    return name


def lines(axes, limiters, points):
    """Draw one line for each limiter that has points, which are (x, y) lists."""
    drawn = False
    for name in limiters:
        xy = points(name)
        if xy:
            axes.plot(*xy, label=LABELS[name], color=COLOURS[name],
                      linewidth=1.2)
            drawn = True
    if drawn:
        axes.legend(fontsize=8)
    return drawn


def steps(rows, width):
    """Return means over wider intervals of rows (when an interval ended, its rate)."""
    bins = {}
    for (t0, _), (t1, y) in zip([(0, 0), *rows], rows):
        bins.setdefault(int(t0 / width), []).append((t1 - t0, y))
    return ([(i + 0.5) * width for i in bins],
            [sum(w * y for w, y in b) / max(1e-9, sum(w for w, _ in b))
             for b in bins.values()])


def rate(res, out):
    """Draw the first seconds of one stream under a cap of 10M, both ways. Steps are
    half a second because one GSO packet takes 50 ms at that rate."""
    figure, panels = pyplot.subplots(1, 2, figsize=(9, 3), sharey=True)
    drawn = False
    for axes, way in zip(panels, ("in", "out")):
        def points(name, way=way):
            rows = res.series("sweep", name, f"{way} Mbit/s", rate="10M",
                              flows=1)
            return rows and steps(rows, 0.5)
        drawn |= lines(axes, ("upstream-containerd", "upstream", "natra",
                              "natra-pace"), points)
        axes.set_yscale("log")
        axes.axhline(10, color="black", linewidth=0.7, linestyle=":")
        axes.set_title("into the pod" if way == "in" else "out of the pod")
        axes.set_xlabel("seconds since the first byte")
    panels[0].set_ylabel("Mbit/s on the wire")
    return save(figure, out, "rate-10M") if drawn else pyplot.close(figure)


def cdf(res, out, workload, rows, name, unit):
    """rows: (panel's title, series, params); the series are quantiles, or
    (percentile, value)."""
    figure, panels = pyplot.subplots(1, len(rows), figsize=(9, 3),
                                     sharey=True, squeeze=False)
    drawn = False
    for axes, (title, series, params) in zip(panels[0], rows):
        def points(limiter, series=series, params=params):
            got = res.series(workload, limiter, series, **params)
            if not got:
                return None
            if isinstance(got[0], (list, tuple)):
                return [v for _, v in got], [p for p, _ in got]
            return got, [100 * i / (len(got) - 1) for i in range(len(got))]
        drawn |= lines(axes, ("none", "upstream", "natra", "natra-pace"),
                       points)
        axes.set_xscale("log")
        axes.set_title(title)
        axes.set_xlabel(unit)
    panels[0][0].set_ylabel("percent")
    return save(figure, out, name) if drawn else pyplot.close(figure)


def mice(res, out):
    """Draw the requests a second of both pods at full tilt."""
    names = [n for n in ("none", "upstream", "natra")
             if res.mean("mixed", n, "rps_total", load="tilt")]
    if not names:
        return None
    figure, axes = pyplot.subplots(figsize=(6, 2.6))
    left = [0.0] * len(names)
    most = max(res.mean("mixed", n, "rps_total", load="tilt") for n in names)
    for pod, words, shade in (("annotated", "capped", 1.0),
                              ("bystander", "bystander", 0.45)):
        wide = [res.mean("mixed", n, f"rps_{pod}", load="tilt") for n in names]
        bars = axes.barh([LABELS[n] for n in names], wide, left=left,
                         color=[COLOURS[n] for n in names], alpha=shade)
        axes.bar_label(bars, [f"{w:.0f} {words}" if w > 0.2 * most else ""
                              for w in wide],
                       label_type="center", fontsize=8)
        left = [a + b for a, b in zip(left, wide)]
    axes.invert_yaxis()
    axes.set_xlabel("requests/s, each on a new connection")
    return save(figure, out, "mice")


def slis(res, out):
    """Draw medians against the number of limited pods on the node."""
    figure, panels = pyplot.subplots(1, 3, figsize=(9, 3))
    drawn = False
    for axes, (metric, title) in zip(panels, (
            ("programming_ms", "ADD to first limited packet"),
            ("client_first_ms_p50", "SYN to SYN-ACK"),
            ("client_total_ms_p50", "whole connection"))):
        def points(name, metric=metric):
            got = [(dict(k[2])["pods"], res.stat(k, metric))
                   for k in res.find("slis", name)]
            got = [(n, s.mean) for n, s in got if s]
            return tuple(zip(*got)) if got else None
        drawn |= lines(axes, ("none", "upstream", "natra"), points)
        axes.set_title(title, fontsize=9)
        axes.set_xscale("log")
        axes.set_xlabel("pods")
        axes.set_ylim(bottom=0)
    panels[0].set_ylabel("ms")
    return save(figure, out, "slis") if drawn else pyplot.close(figure)


def head_of_line(res, out):
    """Draw what a flow waits by its share of the cap, beside the streams."""
    figure, panels = pyplot.subplots(1, 2, figsize=(9, 3), sharey=True)
    drawn = False
    for axes, (way, words) in zip(panels, WAYS.items()):
        def points(name, way=way):
            got = [(share, res.mean("head-of-line", name, f"p99_ms_{share}", way=way,
                                    elephants=headofline.JUDGED))
                   for share in headofline.SHARES]
            got = [(share, ms) for share, ms in got if ms]
            return tuple(zip(*got)) if got else None
        drawn |= lines(axes, ("none", *STRICT), points)
        axes.set(xscale="log", yscale="log", title=words,
                 xlabel="percent of the cap that it asks for")
        axes.set_xticks(headofline.SHARES, headofline.SHARES)
        axes.minorticks_off()
    panels[0].set_ylabel("p99, ms")
    return save(figure, out, "head-of-line") if drawn else pyplot.close(figure)


def probes(res, out):
    """Draw the probe BE of rrul over time."""
    rates = rrul.rates_of(res) or [None]
    figure, panels = pyplot.subplots(1, len(rates), figsize=(9, 3), sharey=True,
                                     squeeze=False)
    drawn = False
    for axes, rate_ in zip(panels[0], rates):
        def points(name, rate_=rate_):
            got = res.series("rrul", name, "ping BE", rate=rate_)
            got = got and [((i + 1) * rrul.STEP_SECONDS, ms)
                           for i, ms in enumerate(got) if ms]
            return tuple(zip(*got)) if got else None
        drawn |= lines(axes, ("none", *STRICT), points)
        axes.set(yscale="log", title=f"cap of {rate_}", xlabel="seconds")
    panels[0][0].set_ylabel("round trip, ms")
    return save(figure, out, "rrul") if drawn else pyplot.close(figure)


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
            bars = axes.barh([LABELS[n] for n in names], wide, left=left, alpha=shade,
                             color=[COLOURS[n] for n in names])
            axes.bar_label(bars, [part] * len(names), label_type="center", fontsize=7)
            left = [a + b for a, b in zip(left, wide)]
            drawn |= bool(names)
        axes.invert_yaxis()
        axes.set(title=f"{kind} requests", xlabel="us of CPU for each")
    return save(figure, out, "request-cost") if drawn else pyplot.close(figure)


def draw(res, out):
    """Draw the pictures that the run has figures for; return {name: caption}."""
    os.makedirs(out, exist_ok=True)
    made = {
            capped_pod.draw(res, out): capped_pod.CAPTION,
            rate(res, out): "One stream under a cap of 10 Mbit/s, from its "
                            "first byte",
            mice(res, out): "Requests a second at full tilt beside an elephant "
                            "each way",
            cdf(res, out, "mixed", [
                    ("capped pod", "annotated ms", {"load": "fixed"}),
                    ("pod beside it", "bystander ms", {"load": "fixed"})],
                "mice-cdf", "ms"): "Time of a request at a fixed load",
            cdf(res, out, "latency", [
                    (title, "us", {"stream": s}) for s, title in (
                            ("idle", "idle"), ("in", "stream into the pod"),
                            ("out", "stream out of the pod"))],
                "latency-cdf", "us"): "Round trips at a cap of 100 Mbit/s",
            head_of_line(res, out): "How long a request waits beside "
                                    f"{headofline.JUDGED} streams at a cap of 10 Mbit/s",
            probes(res, out): "A probe beside 4 + 4 streams",
            request_cost(res, out): "What a request costs far under the cap",
            slis(res, out): "What a pod's owner notices, by limited pods on "
                            "the node"}
    return {name: text for name, text in made.items() if name}
