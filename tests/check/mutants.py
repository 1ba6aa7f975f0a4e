# SPDX-License-Identifier: BSD-2-Clause
"""Makes mistakes in any C function, by rule; see `mutations`."""

import re

import house
from mutation import Change, functions

# What stands between two spaces, and what a mistake puts there.
SWAPS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "&&": "||",
         "||": "&&", "+": "-", "-": "+", "*": "/", "<<": ">>", ">>": "<<", "&": "|",
         "|": "&", "+=": "-=", "-=": "+=", "|=": "&="}
WORDS = {"true": "false", "false": "true", "min": "max", "max": "min"}
OPERATOR = re.compile(r"(?<=\s)(%s)(?=\s)" % "|".join(
        map(re.escape, sorted(SWAPS, key=len, reverse=True))))
WORD = re.compile(r"\b(%s)\b" % "|".join(WORDS))
NUMBER = re.compile(r"(?<![\w.])(\d+)(?=[UL]*\b(?!\.))")
CONDITION = re.compile(r"\bif (?=\()")
RETURN = re.compile(r"\breturn (?!(?:0|NULL|false);)([^;]+);")
# A call or an assignment, but no declaration.
STATEMENT = re.compile(
        r"^\t+((?:\(void\))?(?!(?:if|for|while|switch|return|else|do|case|goto)\b)"
        r"\**[a-z_]\w*(?:(?:->|\.)\w+|\[[^]\n]*\])*(?:\(| [-+*/|&^]?= )[^;{}]*;)", re.M)


def closing(code, at):
    """Return where the parenthesis that opens at `at` is closed."""
    depth = 0
    for i in range(at, len(code)):
        depth += {"(": 1, ")": -1}.get(code[i], 0)
        if not depth:
            return i


def changes_of(text, code, begin, end):
    """Yield (begin, end, replacement) of each mistake in a function's body. `code` is the
    text without comments and strings."""
    for m in OPERATOR.finditer(code, begin, end):
        yield m.start(), m.end(), SWAPS[m[1]]
    for m in WORD.finditer(code, begin, end):
        yield m.start(), m.end(), WORDS[m[1]]
    for m in NUMBER.finditer(code, begin, end):
        yield m.start(1), m.end(1), str(int(m[1]) + 1)
    for m in CONDITION.finditer(code, begin, end):
        last = closing(code, m.end()) + 1
        yield m.end(), last, f"(!{text[m.end():last]})"
    for m in RETURN.finditer(code, begin, end):
        yield m.start(1), m.end(1), "0"
    for m in STATEMENT.finditer(code, begin, end):
        yield m.start(1), m.end(1), ";"


def line_at(text, begin, end):
    """Return the lines that have a part of a text, in one line."""
    first = text.rfind("\n", 0, begin) + 1
    last = text.find("\n", end)
    return " ".join(text[first:last].split())


def of_file(path):
    """Return the mistakes in a file, each with a name that says what and where, but no
    line's number."""
    text = house.read(path)
    code = house.without_comments(text, strings=True)
    code = re.sub(r"^#(?:.*\\\n)*.*$", lambda m: re.sub(r"[^\n]", " ", m[0]), code,
                  flags=re.M)
    made = []
    for name, begin, end in functions(code):
        for at, to, new in changes_of(text, code, begin, end):
            change = Change("", path, at, to, new)
            after = change.made(text)
            what = (f"{name}: {line_at(text, at, to)} => "
                    f"{line_at(after, at, at + len(new))}")
            made.append(Change(what, path, at, to, new))
    return made


def everywhere(rooms):
    """Return the mistakes in the functions of these directories. Headers are left out, because the
    build does not tell which tests are made of one."""
    return [c for path in house.tracked()
            if path.endswith(".c") and path.startswith(rooms) for c in of_file(path)]
