# SPDX-License-Identifier: BSD-2-Clause
"""A change of the source that a test must notice, and where it is; see `mutations`."""

import re
from dataclasses import dataclass

import house


@dataclass(frozen=True)
class Mistake:
    """A row of mistakes.py. The text is that of one function or macro, whatever its white
    space and whichever file of the directory it is in."""
    name: str
    room: str               # the directory
    place: str              # the function or macro
    old: str
    new: str
    test: str               # the test's name in meson
    vm: bool = False


@dataclass(frozen=True)
class Change:
    """What is from `begin` to `end` of a file becomes `new`."""
    name: str
    file: str
    begin: int
    end: int
    new: str
    tests: tuple = ()       # one of which has to fail
    vm: bool = False

    def made(self, text):
        return text[:self.begin] + self.new + text[self.end:]


class TableError(Exception):
    """A row does not fit the source."""


def functions(code):
    """Yield the name and the two ends of each function's body in a text without
    comments."""
    at = [0]
    for line in code.splitlines(keepends=True):
        at.append(at[-1] + len(line))
    for name, line, length in house.c_functions(code.splitlines()):
        yield name, at[line - 1], at[line - 1 + length]


def macros(code):
    for m in re.finditer(r"^#define (\w+)((?:.*\\\n)*.*)$", code, re.M):
        yield m[1], m.start(2), m.end(2)


def pattern(text):
    """Return an expression for the text with any white space between its words."""
    return re.compile(r"\s*".join(map(re.escape, re.findall(r"\w+|[^\w\s]", text))))


def meanings(mistake, files):
    """Yield the changes that a row can mean. `files` has texts by their path."""
    old = pattern(mistake.old)
    for path, text in files.items():
        if not path.startswith(f"{mistake.room}/") or mistake.place not in text:
            continue
        code = house.without_comments(text)
        for name, begin, end in (*functions(code), *macros(code)):
            if name == mistake.place:
                for m in old.finditer(code, begin, end):
                    yield Change(mistake.name, path, m.start(), m.end(), mistake.new,
                                 (mistake.test,), mistake.vm)


def change(mistake, files):
    """Return the one change that a row means."""
    some = list(meanings(mistake, files))
    if len(some) != 1:
        raise TableError(f"{mistake.name}: {mistake.place} in {mistake.room}/ has "
                         f"{len(some)} times, not once: {mistake.old}")
    if some[0].made(files[some[0].file]) == files[some[0].file]:
        raise TableError(f"{mistake.name}: changes nothing")
    return some[0]
