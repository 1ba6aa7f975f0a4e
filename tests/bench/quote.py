#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Copies figures from the committed results into the documents that quote them.

usage: tests/bench/quote.py [DOCUMENT...]    (default: those of tests/check/figures)

A line `<!-- figures: PATH -->` says where the table after it is from. Each row is replaced
by the result's row that begins with the same cells, in the result's first table with the
same head and all these rows; what is quoted once more is of the second one. What cannot be
found there, and prose or output whose figures have changed, is printed for a person to
write, and then the exit code is 1.
"""
import difflib
import os
import sys

sys.path.append(f"{os.path.dirname(os.path.abspath(__file__))}/../check")
import house

FIGURES = house.load_script("figures")


def cells(row):
    return [c.strip() for c in row.strip().strip("|").split("|")]


def tables(lines):
    """Yield (head, rows) of each table of Markdown, as lists of cells."""
    head, rows = None, []
    for before, line in zip(["", *lines], [*lines, ""]):
        if line.startswith("|---"):
            head, rows = cells(before), []
        elif head and line.startswith("|"):
            rows.append(cells(line))
        elif head:
            yield head, rows
            head = None


def key_length(rows):
    """Return how many cells at the begin of a row tell it from all others."""
    return next((n for n in range(1, len(rows[0])) if
                 len({tuple(r[:n]) for r in rows}) == len(rows)), len(rows[0]))


def row_like(quoted, rows):
    """Return the one of the rows that begins as a quoted one, or None."""
    n = key_length(rows)
    return next((row for row in rows if row[:n] == quoted[:n]), None)


def new_table(lines, result):
    """Return a table with the result's figures, and what was not found."""
    head, quoted = cells(lines[0]), [cells(line) for line in lines[2:]]
    found = [[row_like(row, rows) for row in quoted]
             for other, rows in tables(result) if other == head and rows]
    whole = [rows for rows in found if None not in rows]
    if not whole:
        return lines, [f"no table with the head {lines[0]} has all these rows"]
    made = []
    for at, row in enumerate(whole[0]):
        before = whole[0][:at].count(row)
        if before == len(whole):
            return lines, [f"{' | '.join(quoted[at])} is there more often than in the result"]
        made.append(f"| {' | '.join(whole[before][at])} |")
    return [*lines[:2], *made], []


def nearest(lines, result):
    """Return the result's line that is most like a paragraph."""
    words = FIGURES.plain(" ".join(lines)).split()
    with_figures = [line for line in result if FIGURES.figures(line)] or [""]
    return max(with_figures, key=lambda line: difflib.SequenceMatcher(
            None, words, line.split()).ratio())


def renewed(lines, result):
    """Return a paragraph with the result's figures, and what a person has to do."""
    if not list(FIGURES.from_result(lines, result)):
        return lines, []
    if lines[0].startswith("|"):
        return new_table(lines, result)
    return lines, [f"this says \"{FIGURES.plain(' '.join(lines))}\", and the result "
                   f"\"{nearest(lines, result)}\""]


def document(text, read):
    """Return a document with new figures, and pairs of a line's number and what is left
    to do. `read` returns the text of a result."""
    lines, todo, source, edits = text.splitlines(), [], None, []
    for number, some in FIGURES.paragraphs(lines):
        mark = FIGURES.MARK.match(some[0])
        if source and not mark:
            made, left = renewed(some, read(source).splitlines())
            edits.append((number - 1, len(some), made))
            todo += [(number, f"{source}: {what}") for what in left]
        source = mark[1] if mark else None
    for begin, count, made in reversed(edits):
        lines[begin:begin + count] = made
    return "\n".join(lines) + "\n", todo


def main():
    left = 0
    for name in sys.argv[1:] or FIGURES.DOCUMENTS:
        path = house.ROOT / name
        before = path.read_text()
        after, todo = document(before, house.read)
        if after != before:
            path.write_text(after)
            print(f"{name}: has new figures")
        for number, what in todo:
            print(f"{name}:{number}: {what}")
        left += len(todo)
    sys.exit(1 if left else 0)


if __name__ == "__main__":
    main()
