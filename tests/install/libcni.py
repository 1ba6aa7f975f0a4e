#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The real libcni 1.1 and 1.3 read the lists of libcni.json, and what natra makes of those
that it takes. Builds a Go program with each from the Go module proxy. --record writes what
they and natra say now; look at the difference."""
import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "bindings")]
from gotest import go
from test_libcni import FILE, RUNTIMES, corpus, install, make_node, with_natra

MODULES = {"1.1": "v1.1.2", "1.3": "v1.3.0"}


def build(version, tmp):
    """Return a program that reads directories by this libcni."""
    path = Path(tmp) / version
    path.mkdir()
    shutil.copy(HERE / "libcni/main.go", path)
    go(path, "mod", "init", "reader")
    go(path, "get", f"github.com/containernetworking/cni@{MODULES[version]}")
    go(path, "build", "-o", "reader", ".")
    return path / "reader"


def read(program, directory):
    return json.loads(subprocess.run([program, directory], text=True, check=True,
                                     stdout=subprocess.PIPE,
                                     stderr=subprocess.DEVNULL).stdout)


def look(case, version, program):
    """Return what libcni reads, why natra refuses, and what libcni reads afterwards."""
    with make_node(case) as node:
        before = read(program, node.net)
        why = install(node, version)
        return before, why, read(program, node.net)


def wrong(before, why, after):
    """Return what is wrong if natra has taken a list; "" if nothing is."""
    if why:
        return "" if after == before else f"natra refuses, and changes it to {after}"
    if not before:
        return "natra takes what libcni refuses"
    if not after:
        return "libcni refuses what natra has written"
    same = (before["name"], before["version"], sorted(with_natra(before["types"])))
    found = (after["name"], after["version"], sorted(after["types"]))
    return "" if same == found else f"libcni reads {after}, before {before}"


def main():
    args = argparse.ArgumentParser(description=__doc__)
    args.add_argument("--record", action="store_true")
    record = args.parse_args().record
    cases, failures = corpus(), 0
    count = {"both take": 0, "natra only refuses": 0, "both refuse": 0}
    with tempfile.TemporaryDirectory() as tmp:
        programs = {v: build(v, tmp) for v in RUNTIMES}
        for name, case in cases.items():
            said = {}
            for version, program in programs.items():
                before, why, after = look(case, version, program)
                bad = wrong(before, why, after)
                if not record and (before, why) != (case[version],
                                                    case["natra"][version]):
                    bad = f"libcni: {before}, natra: '{why}', recorded otherwise"
                if bad:
                    failures += 1
                    print(f"{name}, libcni {version}: {bad}")
                count["both take" if not why else "natra only refuses" if before
                      else "both refuse"] += 1
                case[version], said[version] = before, why
            case["natra"] = said
    if record:
        FILE.write_text("{\n" + ",\n".join(
            f"{json.dumps(k)}: {json.dumps(v)}" for k, v in cases.items()) + "\n}\n")
    print(f"{len(cases)} lists by two versions: {count}, {failures} wrong")
    return failures > 0


if __name__ == "__main__":
    sys.exit(main())
