# SPDX-License-Identifier: BSD-2-Clause
"""Rewrites a picture of matplotlib's: what looks the same is one element, which is one
line, and a coordinate has one decimal. No I/O."""
import re
from xml.etree import ElementTree

import colours

SVG, LINK = "{http://www.w3.org/2000/svg}", "{http://www.w3.org/1999/xlink}href"
NUMBER = re.compile(r"-?\d*\.\d+|-?\d+")


def short(text):
    """Round the coordinates in a text."""
    return re.sub(r"(?<!\w)-?\d+\.\d+", lambda m: f"{float(m[0]):.1f}"
                  .removesuffix(".0"), " ".join(text.split()))


def moved(d, x, y):
    numbers = iter(range(len(d)))
    return NUMBER.sub(lambda m: str(float(m[0]) + (y if next(numbers) % 2 else x)), d)


class Picture:
    def __init__(self, text):
        self.root = ElementTree.fromstring(text)
        self.marks = {p.get("id"): p for p in self.root.iter(f"{SVG}path") if p.get("id")}
        self.clips = list(self.root.iter(f"{SVG}clipPath"))

    def mark(self, use):
        """Return the attributes of a mark, which a line or a dot stands for."""
        mark, x, y = self.marks[use.get(LINK)[1:]], use.get("x"), use.get("y")
        d = mark.get("d")
        if "C" not in d:
            return f'{use.get("style")}; {mark.get("style")}', moved(d, float(x), float(y))
        radius = float(NUMBER.findall(d)[1])
        colour = re.search("stroke: (#[0-9a-f]+)", use.get("style"))[1]
        return (f"fill: none; stroke: {colour}; stroke-width: {2 * radius + 1}; "
                "stroke-linecap: round", f"M {x} {y} h 0")

    def elements(self, group, clip=None):
        """Yield what is drawn as pairs of what it looks like and what it is."""
        found = []
        for e in group:
            kind, where = e.tag.removeprefix(SVG), e.get("clip-path", clip)
            if e.get("transform"):      # a text, or a group for one with a power
                found.append(("text", e))
            elif kind == "g":
                name = e.get("id", "")
                inner = list(self.elements(e, where))
                if name.startswith("axes_"):
                    inner = [("open", name), *inner, ("close", name)]
                found += inner
            elif kind in ("path", "use"):
                style, d = self.mark(e) if kind == "use" else (e.get("style"), e.get("d"))
                found.append(((style, where), short(d)))
        if group.get("id", "").startswith("matplotlib.axis_"):
            # The lines of a grid, and its ticks, do not cover each other.
            found.sort(key=lambda f: str(f[0]))
        return found

    def lines(self):
        """Yield a line for each element; paths of one look that follow each other are
        one."""
        look, paths = None, []
        for kind, what in [*self.elements(self.root), (None, None)]:
            if kind != look and paths:
                style, clip = look
                yield (f'<path d="{" ".join(paths)}"' +
                       (f' clip-path="{clip}"' if clip else "") + f' style="{style}"/>')
                paths = []
            look = kind
            if kind == "open":
                yield f'<g id="{what}">'
            elif kind == "close":
                yield "</g>"
            elif kind == "text":
                yield self.plain(what)
            elif kind:
                paths.append(what)

    @staticmethod
    def plain(element):
        """Return an element with what is in it as text."""
        for e in element.iter():
            e.tag = e.tag.removeprefix(SVG)
            e.attrib = {k: v if k == "style" else short(v)
                        for k, v in e.attrib.items()}
        element.tail = ""
        return re.sub(r">\s+<", "><", ElementTree.tostring(element, "unicode"))


def small(text):
    """Return the picture, with the colours that a dark page shows."""
    picture = Picture(text)
    body = "\n".join([*(f"<defs>{picture.plain(c)}</defs>" for c in picture.clips),
                      *picture.lines()])
    size = " ".join(f'{k}="{short(picture.root.get(k))}"'
                    for k in ("width", "height", "viewBox"))
    return (f'<svg xmlns="http://www.w3.org/2000/svg" {size}>\n'
            f"{colours.style(body)}\n{body}\n</svg>\n")
