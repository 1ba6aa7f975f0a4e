# SPDX-License-Identifier: BSD-2-Clause
"""The colours of the charts, on light and on dark pages. No I/O.

matplotlib writes the light ones into an SVG; a style sheet replaces them where the
reader prefers dark. A viewer that knows no style sheets shows the light chart. The
background belongs to the chart, so that it is readable on any page.
"""

# Each limiter's colour on light pages, and on dark ones.
LIMITERS = {"none": ("#8c959f", "#6e7681"),
            "upstream": ("#d95f02", "#f0883e"),
            "upstream-containerd": ("#a67c00", "#e3b341"),
            "upstream-debian": ("#8a5a1d", "#c69026"),
            "upstream-1.5.1": ("#b35900", "#ffa657"),
            "natra": ("#1b7837", "#3fb950"),
            "natra-pace": ("#7570b3", "#a5a0ea"),
            "natra-strict": ("#0f8585", "#39c5cf"),
            "natra-off": ("#5e7f3b", "#9cc069"),
            "tbf": ("#c2410c", "#ff7b54"),
            "fq_codel": ("#1f78b4", "#58a6ff"),
            "cake": ("#c51b7d", "#f778ba")}
PAGE, INK = ("#ffffff", "#0d1117"), ("#1f2328", "#e6edf3")
GRID = ("#d0d7de", "#3d444d")
PAIRS = (*LIMITERS.values(), PAGE, INK, GRID)


def of(limiter):
    """Return a limiter's colour on light pages; a mode of natra has natra's."""
    known = LIMITERS.get(limiter) or LIMITERS[limiter.split("-")[0]]
    return known[0]


def style(svg):
    """Return the style sheet of a dark page, for the head of this SVG."""
    rules = [f'[style*="{what}: {light}"] {{ {what}: {dark} !important }}'
             for light, dark in PAIRS for what in ("fill", "stroke")
             if f"{what}: {light}" in svg]
    return "<style>* { stroke-linejoin: round }\n@media (prefers-color-scheme: dark) {\n" + "\n".join(rules) + \
        "\n}</style>"


def dark(svg):
    """Return the text of a chart as a dark page shows it."""
    for light, other in PAIRS:
        for what in ("fill", "stroke"):
            svg = svg.replace(f"{what}: {light};", f"{what}: {other};") \
                .replace(f'{what}: {light}"', f'{what}: {other}"')
    return svg
