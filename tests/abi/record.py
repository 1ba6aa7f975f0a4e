#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The ABI of libnatra as a text: the members of structs with their offsets and sizes, the
values of enums and macros, the types of callbacks, and the functions with their versions.

usage: record.py >record.txt

record.txt is what was promised last. test abi compares the headers with it, and lets pass
what only adds something; the record is made again for a release, and where a promise that
nobody relies on yet is changed on purpose.
"""
import re
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
RECORD = Path(__file__).with_name("record.txt")
# The end of a struct: a later version's members take its bytes from the front.
SPARE = ("room", "reserved")
# Other structs and arrays contain these, which begin with their size.
CONTAINED = ("natra_policy", "natra_class")
# Arrays in structs are as long as these. A newer library may have more of all else that has a
# most, and each enum ends with one.
SIZES = ("NATRA_ID_MAX", "NATRA_NAME_MAX", "NATRA_CLASS_NAME_MAX", "NATRA_GROUP_NAME_MAX")
PROGRAM = """#include <natra/natra.h>
#include <stdio.h>
int main(void)
{
%s	return 0;
}
"""


def headers(source=SOURCE):
    text = "".join(h.read_text() for h in sorted((source / "include/natra").glob("*.h")))
    return re.sub(r"/\*.*?\*/", "", text, flags=re.S)


def structs(text):
    """Return the names of the members of each struct."""
    found = {}
    for name, body in re.findall(r"^struct (\w+) \{\n(.*?)^\};", text, re.M | re.S):
        if name.startswith("natra_bare"):  # C++ only
            continue
        found[name] = [re.search(r"(\w+)(\[.*\])?$", member.strip())[1]
                       for line in re.findall(r"[^;{}]+;", body)
                       for member in line[:-1].split(",")]
    return found


def constants(text):
    enums = [re.match(r"\w+", c.strip())[0]
             for body in re.findall(r"^enum \w+ \{(.*?)\};", text, re.M | re.S)
             for c in body.split(",") if c.strip()]
    macros = re.findall(r"^#define (NATRA_\w+_(?:MAX|BUCKETS|PER_SEC))\s+\S", text, re.M)
    return enums + macros


def functions(text, versions):
    """Return the declarations of functions and callbacks, each in one line."""
    flat = re.sub(r"\s+", " ", text)
    flat = flat.replace("* ", "*")
    callbacks = re.findall(r"typedef (\w+) \(\*(natra_\w+)\)([^;]*);", flat)
    declared = re.findall(r"NATRA_API ([^;(]*?)(natra_\w+)(\([^;]*);", flat)
    node = {name: match[1] for match in
            re.finditer(r"^(NATRA_[\d.]+) \{(.*?)^\}", versions, re.M | re.S)
            for name in re.findall(r"\t(natra_\w+);", match[2])}
    return ({f"typedef {name}": kind + args for kind, name, args in callbacks} |
            {name: f"{kind}{args} {node.get(name, 'hidden')}" for kind, name, args in declared})


def values(text):
    """Return the lines of a program that prints all sizes, offsets and values."""
    lines = []
    for name, members in structs(text).items():
        lines.append(f'printf("{name} %zu\\n", sizeof(struct {name}));')
        lines += [f'printf("{name}.{m} %zu %zu\\n", offsetof(struct {name}, {m}), '
                  f'sizeof(((struct {name} *)0)->{m}));' for m in members]
    lines += [f'printf("{c} %llu\\n", (unsigned long long){c});' for c in constants(text)]
    return "".join(f"\t{line}\n" for line in lines)


def measure(run_program, text):
    """Return a tuple of numbers for each name, of what a program of these headers says."""
    return {name: tuple(map(int, numbers)) for name, *numbers in
            map(str.split, run_program(PROGRAM % values(text)).splitlines())}


def asserts(measured):
    """Return a program that can be compiled only where all is as it was measured."""
    lines = []
    for name, numbers in measured.items():
        of, _, member = name.partition(".")
        what = [(f"offsetof(struct {of}, {member})", numbers[0]),
                (f"sizeof(((struct {of} *)0)->{member})", numbers[-1])] if member else \
            [(f"sizeof(struct {of})" if of.startswith("natra") else of, numbers[0])]
        lines += [f'_Static_assert({is_} == {n}ULL, "{name}");' for is_, n in what]
    return "#include <natra/natra.h>\n" + "\n".join(lines) + "\n"


def write(measured, declared):
    """Return the record: a struct and its members, or an enum's values, are one paragraph."""
    parts = []
    for name, numbers in measured.items():
        of, _, member = name.partition(".")
        item = "\xa0".join([f".{member}" if member else of, *map(str, numbers)])
        # An enum's first value is 0.
        if member or not of.startswith("natra") and numbers != (0,):
            parts[-1].append(item)
        else:
            parts.append([item])
    lines = [line.replace("\xa0", " ") for part in parts for line in
             textwrap.wrap(", ".join(part), 90, subsequent_indent="\t")]
    return "\n".join(lines + [f"{name}: {of}" for name, of in declared.items()]) + "\n"


def read(text):
    measured, declared, of = {}, {}, ""
    for line in re.sub(r"\n\t", " ", text).splitlines():
        if ": " in line:
            name, _, rest = line.partition(": ")
            declared[name] = rest
            continue
        for item in line.split(", "):
            name, *numbers = item.split()
            of = name if name[0] != "." else of
            measured[name if name[0] != "." else of + name] = tuple(map(int, numbers))
    return measured, declared


def is_promised(name, old, now):
    """Return whether a number is as the record has it, or what may grow has grown."""
    was, member = old[name], name.partition(".")[2]
    if member in SPARE:
        # It may be used up; what took its bytes is judged by its place.
        return now is None or sum(now) == sum(was)
    if now is None:
        return False
    if name.endswith("_MAX") and name not in SIZES or \
            not member and f"{name}.sz" in old and name not in CONTAINED:
        return now >= was
    return now == was


def may_be_new(name, numbers, old):
    """Return whether a member that the record lacks is where old programs have zeros."""
    of, _, member = name.partition(".")
    if not member or of not in old:
        return True
    spare = [old[f"{of}.{s}"] for s in SPARE if f"{of}.{s}" in old]
    return numbers[0] >= old[of][0] or any(
        begin <= numbers[0] and sum(numbers) <= begin + size for begin, size in spare)


def broken(record, measured, declared):
    """Return the names of what is not as the record promises."""
    old, said = read(record)
    return ([n for n in old if not is_promised(n, old, measured.get(n))] +
            [n for n in measured if n not in old and not may_be_new(n, measured[n], old)] +
            [n for n, was in said.items() if declared.get(n) != was])


def run_here(text):
    with tempfile.TemporaryDirectory() as tmp:
        (Path(tmp) / "natra").mkdir()
        (Path(tmp) / "natra/version.h").touch()
        subprocess.run(["cc", "-x", "c", "-", "-o", f"{tmp}/out", f"-I{SOURCE}/include",
                        f"-I{tmp}"], input=text, text=True, check=True)
        return subprocess.run([f"{tmp}/out"], stdout=subprocess.PIPE, text=True,
                              check=True).stdout


if __name__ == "__main__":
    of = headers()
    sys.stdout.write(write(measure(run_here, of), functions(
        of, (SOURCE / "src/libnatra.map").read_text())))
