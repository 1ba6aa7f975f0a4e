#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Builds and tests the Rust crates of tools/bindings/rust with Debian's cargo.

It runs their tests, those that call the kernel with pods of the test's own, compares what
they refuse with what C refuses, builds the documentation without a warning, and checks
that the committed bindings are those of natra.h. `--vendored` lets natra-sys build the
library itself.
"""
import os
import re
import subprocess
import sys
import tempfile

import isolation
from commands import sh
from namespaces import Pod
from report import skip
from script import option, run_script

HERE = os.path.dirname(os.path.abspath(__file__))
CRATES = f"{HERE}/../../tools/bindings/rust"
BUILD = os.environ["NATRA_BUILD"]
# The tests of natra/tests/kernel.rs, each of which has a pod.
PODS = 7
KERNEL_TESTS = 8
OLDER = "0.0.7"
OLDER_SOURCE = f"""const char *natra_version(void);
const char *natra_version(void) {{ return "{OLDER}"; }}
"""
OLDER_PC = f"""Name: libnatra
Description: an older one
Version: {OLDER}
Libs: -lnatra
"""


def cargo(*args, **env):
    """Run cargo offline and return the finished process."""
    return subprocess.run(
        ["/usr/bin/cargo", *args], cwd=CRATES, text=True, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=dict(
            os.environ, PATH=f"/usr/bin:/bin:{os.environ['PATH']}",
            CARGO_NET_OFFLINE="true", CARGO_HOME=f"{BUILD}/rust/home",
            LD_LIBRARY_PATH=f"{BUILD}/src", **{
                "CARGO_TARGET_DIR": f"{BUILD}/rust",
                "PKG_CONFIG_PATH": f"{BUILD}/meson-uninstalled", **env}))


def passed(output):
    return sum(map(int, re.findall(r"^test result: ok. (\d+) passed", output, re.M)))


def run(report, what, *args, least=0, **env):
    p = cargo(*args, **env)
    report.check(what, f"exit {p.returncode}, {passed(p.stdout)} tests",
                 f"exit 0, {least} or more", p.returncode == 0 and
                 passed(p.stdout) >= least and "warning" not in p.stdout)
    if p.returncode or "warning" in p.stdout:
        print(p.stdout[-6000:])
    return p


def kernel_tests(report, features):
    pods = [Pod(f"rust{i}", i) for i in range(PODS)]
    run(report, "tests that call the kernel", "test", "-p", "natra", *features,
        "--test", "kernel", "--", "--ignored", least=KERNEL_TESTS,
        NATRA_TEST_BPFFS=isolation.BPFFS,
        NATRA_TEST_PODS=",".join(p.name for p in pods),
        NATRA_TEST_PEER=f"{pods[1].ip}:9")
    for pod in pods:
        pod.close()
    report.equal("records left", sh("find", isolation.BPFFS, "-name", "meta"), "")


def refusals(report, features):
    """Compare the texts of both languages, line by line."""
    rust = cargo("run", "-q", "-p", "natra", *features, "--example", "refusals", "--",
                 isolation.BPFFS)
    c = sh(os.environ["NATRA_REFUSALS"], isolation.BPFFS)
    report.least("refusals", len(c.splitlines()), 24)
    for ours, theirs in zip(rust.stdout.splitlines(), c.splitlines()):
        report.equal(theirs.split(":")[0], ours, theirs)
    report.true("all of them", rust.stdout == c, "the same" if rust.stdout == c else
                f"{rust.stdout[-1000:]} {c[-1000:]}")
    linked = "libnatra" in sh("ldd", f"{BUILD}/rust/debug/examples/refusals")
    report.equal("linked with the shared library", linked, not features)


def bindings(report):
    if not all(os.access(f"/usr/bin/{p}", os.X_OK) for p in ("bindgen", "rustfmt")):
        report.shown("bindings", "no bindgen here, so not compared")
        return
    with open(f"{CRATES}/natra-sys/src/bindings.rs") as f:
        committed = f.read()
    made = sh(f"{CRATES}/natra-sys/bindgen")
    report.true("bindings are those of natra.h", made == committed,
                "the same" if made == committed else
                "run natra-sys/bindgen >src/bindings.rs")


def older_library(report):
    """A library that is older than the crate is refused in one line, when it is loaded and
    when a program is built with it."""
    with tempfile.TemporaryDirectory(prefix="natra-rust-", dir="/var/tmp") as tmp:
        with open(f"{tmp}/older.c", "w") as f:
            f.write(OLDER_SOURCE)
        sh("cc", "-shared", "-fPIC", "-o", f"{tmp}/older.so", f"{tmp}/older.c")
        p = subprocess.run([f"{BUILD}/rust/debug/examples/refusals", isolation.BPFFS],
                           text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                           env=dict(os.environ, LD_PRELOAD=f"{tmp}/older.so",
                                    LD_LIBRARY_PATH=f"{BUILD}/src"), timeout=60)
        said = f"libnatra {OLDER} is older than this crate, "
        report.check("an older library is loaded", p.stdout.strip(), said,
                     p.returncode == 1 and said in p.stdout and p.stdout.count("\n") == 1)
        with open(f"{tmp}/libnatra.pc", "w") as f:
            f.write(OLDER_PC)
        p = cargo("build", "-p", "natra-sys", CARGO_TARGET_DIR=f"{tmp}/target",
                  PKG_CONFIG_PATH=tmp)
        lines = [line.strip() for line in p.stdout.splitlines() if "natra-sys: " in line]
        report.check("an older library is linked", "".join(lines), f"natra-sys: {OLDER}",
                     p.returncode != 0 and len(lines) == 1 and OLDER in lines[0])


def main(report, arguments):
    features = ["--features", "vendored"] if arguments.vendored else []
    run(report, "tests", "test", "--workspace", *features, least=7)
    run(report, "documentation", "doc", "--no-deps", *features, RUSTDOCFLAGS="-D warnings")
    bindings(report)
    refusals(report, features)
    # The library in a program that is linked with it is as old as the crate.
    if not features:
        older_library(report)
    kernel_tests(report, features)


def prepare(_):
    if not os.access("/usr/bin/cargo", os.X_OK):
        skip("cargo is not installed (tools/install-deps rust)")


if __name__ == "__main__":
    run_script(main, option("--vendored", action="store_true",
                            help="natra-sys builds libnatra"), prepare=prepare)
