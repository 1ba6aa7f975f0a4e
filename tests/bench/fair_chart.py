#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Draws results/fair-convergence.svg, the picture of history.md, from
results/fair-convergence.txt, which is what build/tests/unit/fair_trace prints.

usage: fair_chart.py

It shows K, and the shares of the first stream and of those that come and go. It is text
and lines, which need no library: a test compares the picture with the result.
"""
import os

from capped_pod import THEMES, text

RESULTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "results")
NAME = "fair-convergence"
WIDTH, HEIGHT, LEFT, RIGHT = 760, 330, 60, 16
SECONDS = 11
CAPTION = "15 streams come to one after 3 s and leave after 7 s"
# Each panel is (title, top, height, highest value, marks on its axis).
K_PANEL = ("K", 40, 90, 24, (1, 8, 16, 24))
SHARE_PANEL = ("Share of the rate", 175, 110, 1.1, (0, 0.25, 0.5, 0.75, 1))


def rows():
    with open(f"{RESULTS}/{NAME}.txt") as f:
        return [tuple(map(float, line.split())) for line in f
                if not line.startswith("#")]


def across(seconds):
    return LEFT + (WIDTH - LEFT - RIGHT) * seconds / SECONDS


def down(panel, value):
    _, top, height, most, _ = panel
    return top + height * (1 - min(value, most) / most)


def axes(panel):
    title, top, height, _, marks = panel
    yield text(LEFT, top - 10, title, ' class="title"')
    for mark in marks:
        y = down(panel, mark)
        yield (f'<line class="grid" x1="{LEFT}" y1="{y:.1f}" '
               f'x2="{WIDTH - RIGHT}" y2="{y:.1f}"/>')
        yield text(LEFT - 8, f"{y + 4:.1f}", f"{mark:g}", ' text-anchor="end"')
    for second in range(SECONDS + 1):
        yield text(f"{across(second):.1f}", top + height + 16, second,
                   ' text-anchor="middle"')


def curve(panel, kind, points):
    path = " ".join(f"{across(x):.1f},{down(panel, y):.1f}" for x, y in points)
    return f'<polyline class="{kind}" points="{path}"/>'


def style():
    def rules(theme):
        return " ".join(
                [f".page {{ fill: {theme['page']} }}",
                 f"text {{ fill: {theme['ink']} }}",
                 f".grid {{ stroke: {theme['none']}; stroke-width: 0.4 }}",
                 f".first {{ stroke: {theme['natra']} }}",
                 f".others {{ stroke: {theme['upstream']} }}",
                 f".k {{ stroke: {theme['ink']} }}"])
    return ("<style>text { font: 12px sans-serif } .title { font-weight: bold } "
            "polyline { fill: none; stroke-width: 1.6 } "
            f"{rules(THEMES['light'])} @media (prefers-color-scheme: dark) "
            f"{{ {rules(THEMES['dark'])} }}</style>")


def key(x, kind, words):
    yield f'<polyline class="{kind}" points="{x},161 {x + 24},161"/>'
    yield text(x + 30, 165, words)


def svg():
    found = rows()
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" '
             f'height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">',
             f"<title>{CAPTION}</title>", style(),
             f'<rect class="page" width="{WIDTH}" height="{HEIGHT}"/>',
             *axes(K_PANEL), *axes(SHARE_PANEL),
             *key(300, "first", "of the first stream"),
             *key(480, "others", "of each other one, on average"),
             curve(K_PANEL, "k", [(r[0], r[1]) for r in found]),
             curve(SHARE_PANEL, "first", [(r[0], r[2]) for r in found]),
             curve(SHARE_PANEL, "others", [(r[0], r[3]) for r in found]),
             text(WIDTH - RIGHT, HEIGHT - 8, "seconds", ' text-anchor="end"'),
             "</svg>"]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    with open(f"{RESULTS}/{NAME}.svg", "w") as out:
        out.write(svg())
