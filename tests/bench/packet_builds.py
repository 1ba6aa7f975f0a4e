#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Compares what a packet takes in the programs of two builds.

tests/bpf/per_packet of this build and of another one, in a built clone of another commit,
run by turns. Each figure is the least of its runs, because a busy neighbour of the CPU makes a
program slower by a third for seconds, and a long one by more than a short one. The committed
result is made by

    tests/bench/packet_builds.py --before OTHER/build/tests/bpf/per_packet
        --result tests/bench/results/packets-before-fair-6.18.txt

in a built tree (build/, or NATRA_BUILD names meson's directory); root.
"""
import os
import re
import subprocess
import sys

import built_tree

built_tree.use("cni", "harness/python", NATRA_PER_PACKET="tests/bpf/per_packet")
import machine
from markdown import table
from report import skip
from script import arguments, option

EMPTY = "empty"
SKIP = 77


def measure(program, options):
    """Return the ns of each row of one run. A run that begins anew prints its rows again."""
    p = subprocess.run([program, *options], text=True, timeout=600, check=False,
                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    if p.returncode == SKIP:
        skip(p.stdout.strip().splitlines()[-1])
    rows = re.findall(r"^(\w+(?: \w+)*) +([\d.]+) ns", p.stdout, re.M)
    if not rows or "packets went elsewhere" in p.stdout:
        sys.exit(f"{program}: {p.stdout.strip()[-200:]}")
    return {name: float(ns) for name, ns in rows}


def least(runs, name):
    return min(run[name] for run in runs)


def above(runs, name):
    """Return the time of a row above the empty program."""
    return least(runs, name) - least(runs, EMPTY)


def rows(before, now):
    for name in now[0]:
        if name == EMPTY or name not in before[0]:
            continue
        one, other = above(before, name), above(now, name)
        yield (name, f"{one:.1f}", f"{other:.1f}", f"{other - one:+.1f}",
               *(f"{above(runs, name) / above(runs, 'reference'):.2f}"
                 for runs in (before, now)))


def head(a, empty):
    return f"""\
Nanoseconds of a packet above an empty program ({empty:.1f} ns): the least of {a.runs} runs of
either build, by turns, each per_packet {" ".join(a.words)}. Before is
{machine.commit_of(a.before)}, now {machine.commit_of(os.environ["NATRA_PER_PACKET"])}. The reference is a program that
paces one class by departure times. {a.printed}
Load before: {a.load:.2f}.
"""


def main():
    a = arguments(option("--before", required=True, metavar="PER_PACKET"),
                  option("--runs", type=int, default=20),
                  option("--repeat", type=int, default=30000),
                  option("--rounds", type=int, default=3),
                  option("--result", help="write the table to this file"))
    a.words = ["--repeat", str(a.repeat), "--rounds", str(a.rounds)]
    a.load = os.getloadavg()[0]
    if a.result:
        a.printed = machine.printed_by("bench/packet_builds.py")
    before, now = [], []
    for _ in range(a.runs):
        before.append(measure(a.before, a.words))
        now.append(measure(os.environ["NATRA_PER_PACKET"], a.words))
    empty = least(before + now, EMPTY)
    text = "\n".join(table(("", "before", "now", "more", "of the reference before", "now"),
                           list(rows(before, now))))
    print(text)
    if a.result:
        with open(a.result, "w") as f:
            print(head(a, empty), text, sep="\n", file=f)


if __name__ == "__main__":
    main()
