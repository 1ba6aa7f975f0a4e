# SPDX-License-Identifier: BSD-2-Clause
"""The rooms of src/ and tools/, the units in them, and who includes whom.

A unit is a header and the source of the same name: engine.h and engine.c. A
file whose header has another name, such as hook_tcx.c, is a unit of its own.
"""

import posixpath
import re
from pathlib import PurePath

import house

# The rooms of src/. The order is from the lowest to the highest: a room may include itself and those before
# it.
ORDER = ("util", "base", "policy", "kernel", "state", "attach", "api")


def room_of(path):
    """"state" for src/state/engine.c; "" for a file directly below src/."""
    parts = PurePath(path).parts
    return parts[1] if len(parts) > 2 else ""


def unit_of(path):
    """"state/engine" for src/state/engine.c, "tools/agent/live" for tools/agent/live.c."""
    return str(PurePath(path).with_suffix("")).removeprefix("src/")


def local_includes(text):
    """(line number, name) of each #include "name"."""
    text = house.without_comments(text)
    for number, line in enumerate(text.splitlines(), 1):
        m = re.match(r'\s*#\s*include\s*"([^"]+)"', line)
        if m:
            yield number, m[1]


def resolve(path, name, files):
    """The one of the files that `path` means by `name`, or None."""
    beside = posixpath.normpath(f"{PurePath(path).parent}/{name}")
    for found in (f"src/{name}", beside):
        if found in files:
            return found
    return None


def arrows(files):
    """{file: {files that it includes}} of {path: text}, among these files."""
    return {path: {found for _, name in local_includes(text)
                   if (found := resolve(path, name, files))}
            for path, text in files.items()}


def between(graph, name_of):
    """The same graph between units or rooms, without arrows to oneself."""
    result = {}
    for path, targets in graph.items():
        mine = result.setdefault(name_of(path), set())
        mine |= {name_of(t) for t in targets} - {name_of(path)}
    return result


def circles(graph):
    """Sets of two or more that reach each other, by Tarjan's algorithm."""
    index, low, stack, found = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for target in sorted(graph.get(node, ())):
            if target not in index:
                visit(target)
                low[node] = min(low[node], low[target])
            elif target in stack:
                low[node] = min(low[node], index[target])
        if low[node] == index[node]:
            circle = stack[stack.index(node):]
            del stack[stack.index(node):]
            if len(circle) > 1:
                found.append(sorted(circle))

    for node in sorted(graph):
        if node not in index:
            visit(node)
    return sorted(found)
