# SPDX-License-Identifier: BSD-2-Clause
"""Draws the dashboard's panels as SVG, from what a Prometheus answers to their queries. Grafana
itself is in no registry that the tests reach, so this is not how it looks there to the pixel: the
titles, the queries, their legends and units are those of dashboard.json."""
import re
from html import escape

WIDTH, ROW, GAP, TOP = 460, 190, 12, 30
PLOT = (10, 34, WIDTH - 20, 88)         # x, y, width and height inside of a panel
LEGEND, MOST = 4, 6                     # lines of the legend, and of a plot
COLOURS = ("#1f78b4", "#1b7837", "#d95f02", "#7570b3", "#c51b7d", "#a67c00")
STYLE = """<style>
text { font: 11px "DejaVu Sans", sans-serif; fill: #1f2328 } .title { font-weight: bold }
.row { font-size: 14px; font-weight: bold } .soft { fill: #59636e } .big { font-size: 26px }
rect { fill: #f6f8fa; stroke: #d1d9e0 } .page { fill: #fff; stroke: none }
path { fill: none; stroke-width: 1.3 } .base { stroke: #d1d9e0 }
@media (prefers-color-scheme: dark) { text { fill: #e6edf3 } .soft { fill: #9198a1 }
rect { fill: #161b22; stroke: #30363d } .page { fill: #0d1117 } .base { stroke: #30363d } }
</style>"""
UNITS = {"Bps": "B/s", "pps": "packets/s", "cps": "/s", "ops": "/s", "s": "s", "short": ""}


def amount(value, unit):
    """Return a value as people read it."""
    if unit == "percentunit":
        return f"{100 * value:.3g} %"
    end = UNITS[unit]
    if unit == "s" and 0 < value < 1:
        return f"{1000 * value:.3g} ms"
    for prefix in ("", "k", "M", "G"):
        if abs(value) < 999.5:
            break
        value /= 1000
    return f"{value:.3g} {prefix}{end}".strip()


def legend(form, labels):
    return " ".join(re.sub(r"\{\{(\w+)\}\}", lambda m: labels.get(m[1], ""), form).split())


def path(points, span, top, box):
    """Return the outline of a series in a box; one without a value at some time has a gap."""
    x0, y0, width, height = box
    words, before = [], None
    for when, value in points:
        x = x0 + width * (when - span[0]) / ((span[1] - span[0]) or 1)
        y = y0 + height * (1 - min(value / top, 1))
        words.append(f"{'L' if before is not None and when - before < 10 else 'M'}{x:.0f} {y:.1f}")
        before = when
    return " ".join(words)


def plot(panel, found, span):
    """Yield the elements of a panel with lines, of which the largest are shown."""
    unit = panel["fieldConfig"]["defaults"]["unit"]
    named = [(legend(target["legendFormat"], labels), points) for target, answer in
             zip(panel["targets"], found) for labels, points in answer]
    named.sort(key=lambda one: -max(v for _, v in one[1]))
    more, named = len(named) - MOST, named[:MOST]
    top = max((v for _, points in named for _, v in points), default=0) or 1
    x, y, width, height = PLOT
    yield f'<path class="base" d="M{x} {y} h{width} M{x} {y + height} h{width}"/>'
    yield f'<text class="soft" x="{x}" y="{y - 4}">{amount(top, unit)}</text>'
    for at, (name, points) in enumerate(named):
        yield f'<path stroke="{COLOURS[at]}" d="{path(points, span, top, PLOT)}"/>'
        if at < LEGEND:
            line = y + height + 15 + 13 * at
            yield (f'<path stroke="{COLOURS[at]}" stroke-width="3" d="M{x} {line - 4} h12"/>'
                   f'<text x="{x + 17}" y="{line}">{escape(name)[:52]}</text>'
                   f'<text class="soft" x="{x + width}" y="{line}" text-anchor="end">'
                   f'{amount(points[-1][1], unit)}</text>')
    more += max(len(named) - LEGEND, 0)
    if more > 0:
        yield (f'<text class="soft" x="{x + width}" y="{y - 4}" text-anchor="end">'
               f'{more} more</text>')


def table(panel, found):
    """Yield the rows of a table, as many as there is room for."""
    unit = panel["fieldConfig"]["defaults"]["unit"]
    rows = [(" ".join(labels.get(key, "") for key in ("namespace", "pod", "interface", "direction",
                                                      "mode")), points[-1][1])
            for answer in found for labels, points in answer]
    for at, (name, value) in enumerate(sorted(rows)[:9]):
        yield (f'<text x="10" y="{40 + 15 * at}">{escape(" ".join(name.split()))}</text>'
               f'<text class="soft" x="{WIDTH - 10}" y="{40 + 15 * at}" text-anchor="end">'
               f'{amount(value, unit)}</text>')
    if not rows:
        yield '<text class="soft" x="10" y="40">none</text>'


def number(found):
    value = sum(points[-1][1] for answer in found for _, points in answer)
    yield f'<text class="big" x="10" y="62">{value:.0f}</text>'


def draw(panels, found, span):
    """Return the picture of panels, as dashboard.json has them, and of what each query of each
    has found: pairs of labels and points, which are pairs of a time and a value."""
    body, x, y = [], 0, 0
    for panel, answers in zip(panels, found):
        if panel["type"] == "row":
            y += (ROW if x else 0) + TOP
            x = 0
            body.append(f'<text class="row" x="{GAP}" y="{y - 8}">{panel["title"]}</text>')
            continue
        small = panel["type"] == "stat"
        inner = number(answers) if small else table(panel, answers) if panel["type"] == "table" \
            else plot(panel, answers, span)
        width, height = ((2 * WIDTH + GAP - 5 * GAP) // 6 if small else WIDTH,
                         80 if small else ROW - GAP)
        body.append(f'<g transform="translate({GAP + x},{y})"><rect width="{width}" '
                    f'height="{height}" rx="4"/><text class="title" x="10" y="18">'
                    f'{escape(panel["title"])}</text>{"".join(inner)}</g>')
        x += width + GAP
        if x + width > 2 * WIDTH + 2 * GAP:
            x, y = 0, y + height + GAP
    y += ROW if x else 0
    size = f"{2 * WIDTH + 3 * GAP} {y + GAP}"
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size}" '
            f'width="{size.split()[0]}" height="{size.split()[1]}">\n{STYLE}\n'
            f'<rect class="page" width="100%" height="100%"/>\n' + "\n".join(body) + "\n</svg>\n")
