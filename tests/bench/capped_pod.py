#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Draws DIR/capped-pod.svg, the picture of the README, from DIR/results.json.

It shows what a capped pod's small requests get beside a bulk stream without a limiter,
with upstream's plugin and with natra, for each word of its `fastPass`. It is text and
rectangles, which need no library: the same results make the same file everywhere, so a
test can compare it.
"""
import json
import sys

import colours
from cells import LIMITERS
from statistic import Results

NAME = "capped-pod"
CAPTION = "A capped pod's small requests beside a bulk stream"
ROWS = {"none": "no limiter", "upstream": "upstream's plugin", "natra": "natra",
        "natra-strict": "natra, strict", "natra-off": "natra, off"}
WIDTH, ROW, TOP, LEFT, PANEL, BAR = 760, 30, 58, 128, 212, 118


def panels(res, shown):
    """Return (title, its second line, format, {limiter: figure}) of each panel."""
    def column(metric):
        return {n: res.mean("mixed", n, metric, load="fixed") for n in shown}
    offered = res.mean("mixed", "none", "offered", load="fixed")
    asked = f"per second, of {offered:.0f}" if offered else "per second"
    return (("Bulk stream into the pod", "Mbit/s, the cap is 10", "{:.1f}",
             column("elephant_in")),
            ("Small requests answered", asked, "{:.0f}",
             column("rps_annotated")),
            ("99 % of these answered in", "ms", "{:.1f}",
             column("p99_ms_annotated")))


def style(shown):
    def rules(theme):
        return " ".join([f".page {{ fill: {colours.PAGE[theme]} }}",
                         f"text {{ fill: {colours.INK[theme]} }}",
                         *(f".{n} {{ fill: {colours.LIMITERS[n][theme]} }}" for n in shown)])
    return ("<style>text { font: 12px sans-serif } .title { font-weight: bold } "
            f"{rules(0)} @media (prefers-color-scheme: dark) {{ {rules(1)} }}</style>")


def text(x, y, words, kind=""):
    return f'<text x="{x}" y="{y}"{kind}>{words}</text>'


def bars(left, form, column):
    """Yield one panel's bars, the longest of which is BAR wide, and their figures."""
    most = max((v for v in column.values() if v), default=1)
    for row, (name, value) in enumerate(column.items()):
        y, width = TOP + row * ROW, max(1, BAR * (value or 0) / most)
        yield (f'<rect class="{name}" x="{left}" y="{y}" width="{width:.1f}" '
               'height="20"/>')
        yield text(f"{left + width + 6:.1f}", y + 14,
                   "none" if value is None else form.format(value))


def svg(res):
    """Return the picture, or None for a run that did not measure it."""
    shown = [n for n in ROWS if res.get("mixed", n, "elephant_in", load="fixed")]
    if not set(LIMITERS) <= set(shown):
        return None
    height = TOP + ROW * len(shown) + 6
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" '
             f'height="{height}" viewBox="0 0 {WIDTH} {height}" role="img">',
             f"<title>{CAPTION}</title>", style(shown),
             f'<rect class="page" width="{WIDTH}" height="{height}"/>']
    lines += [text(8, TOP + row * ROW + 14, ROWS[n]) for row, n in enumerate(shown)]
    for i, (title, unit, form, column) in enumerate(panels(res, shown)):
        left = LEFT + i * PANEL
        lines += [text(left, 22, title, ' class="title"'), text(left, 40, unit),
                  *bars(left, form, column)]
    return "\n".join([*lines, "</svg>"]) + "\n"


def draw(res, out):
    """Write the picture and return its name, None if there is none."""
    picture = svg(res)
    if picture is None:
        return None
    with open(f"{out}/{NAME}.svg", "w") as f:
        f.write(picture)
    return NAME


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with open(f"{sys.argv[1]}/results.json") as f:
        if not draw(Results(json.load(f)), sys.argv[1]):
            sys.exit("the run did not measure small requests at a fixed load")


if __name__ == "__main__":
    main()
