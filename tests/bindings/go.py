#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Run the tests of the Go package, on this kernel, with each way to build it.

Each way builds the package's tests, looks at the package with go vet, and runs the tests
in namespaces of their own:

  cgo     with the shared library
  static  with the archive, as one file that needs no other
  none    with CGO_ENABLED=0: natractl alone
  race    with the shared library and Go's race detector
"""
import re
import subprocess
import tempfile
from pathlib import Path

import gotest
import script

WAYS = {
        "cgo": {"library": True},
        "static": {"library": True, "args": [
            "-tags", "natra_static,netgo,osusergo", "-ldflags",
            "-linkmode external -extldflags -static"]},
        "none": {"library": False},
        "race": {"library": True, "args": ["-race"]},
}
OLDER = "0.0.7"
OLDER_SOURCE = f"""const char *natra_version(void);
const char *natra_version(void) {{ return "{OLDER}"; }}
"""
# Walks that fail when they have told of an attachment with subnets.
BROKEN_SOURCE = """#include <natra/natra.h>
static struct natra_info info = {.sz = sizeof(info), .id = "told", .policy.shaped_subnets_len = 1};
static int fail(struct natra *n)
{
	struct natra_info none = {.sz = sizeof(none)};
	return natra_query(n, "broken", &none);
}
int natra_foreach_attachment(struct natra *n, natra_attachment_fn fn, void *arg)
{
	fn(arg, &info);
	return fail(n);
}
int natra_foreach_stats(struct natra *n, natra_stats_fn fn, void *arg)
{
	fn(arg, &info, 0);
	return fail(n);
}
"""


def prepare(arguments):
    """Build what the ways need, while the script still sees the network."""
    arguments.tmp = tempfile.mkdtemp(prefix="natra-go-", dir="/var/tmp")
    arguments.library = gotest.install()
    for way in arguments.way:
        library = arguments.library if WAYS[way]["library"] else None
        args = WAYS[way].get("args", [])
        gotest.go(gotest.PACKAGE, "vet", *args[:2 if "-tags" in args else 0], "./...",
                  library=library)
        gotest.go(gotest.PACKAGE, "test", "-c", *args, "-o", f"{arguments.tmp}/{way}",
                  library=library)
    for name, source in (("older", OLDER_SOURCE), ("broken", BROKEN_SOURCE)):
        path = Path(arguments.tmp) / f"{name}.c"
        path.write_text(source)
        subprocess.run(["cc", "-shared", "-fPIC", f"-I{arguments.library}/include",
                        "-o", f"{arguments.tmp}/{name}.so", path], check=True)


def run_tests(report, arguments, way, *options, **more):
    """Run the tests that were built, and check how many of them ran."""
    library = arguments.library if WAYS[way]["library"] else None
    env = gotest.environment(library, NATRA_TEST_ISOLATED="1", **more)
    p = subprocess.run([f"{arguments.tmp}/{way}", "-test.v", *options], env=env, text=True,
                       cwd=gotest.PACKAGE, stdout=subprocess.PIPE,
                       stderr=subprocess.STDOUT, timeout=gotest.SECONDS)
    passed = re.findall(r"^ *--- PASS: (\S+)", p.stdout, re.M)
    failed = re.findall(r"^ *--- FAIL: (\S+)", p.stdout, re.M)
    skipped = re.findall(r"^ *--- SKIP: (\S+)", p.stdout, re.M)
    if p.returncode or failed:
        print(p.stdout)
    report.check(f"{way}: tests of {len(passed)} that failed", len(failed), 0,
                 not failed and p.returncode == 0)
    return passed, skipped


def run_way(report, arguments, way):
    passed, skipped = run_tests(report, arguments, way)
    report.equal(f"{way}: skipped", sorted(skipped),
                 ["TestBrokenWalk", "TestCost", "TestOlderLibrary"])
    backends = ["library", "natractl"] if WAYS[way]["library"] else ["natractl"]
    found = sorted(n.partition("/")[2] for n in passed if n.startswith("TestLife/"))
    report.equal(f"{way}: back ends", found, backends)
    report.true(f"{way}: examples", any(n.startswith("Example") for n in passed))
    file = subprocess.run(["readelf", "-d", f"{arguments.tmp}/{way}"], text=True,
                          stdout=subprocess.PIPE).stdout
    needed = "libnatra.so.0" in file
    report.equal(f"{way}: needs libnatra.so", needed, way in ("cgo", "race"))
    if way == "cgo":
        passed, _ = run_tests(report, arguments, way, "-test.run", "TestOlderLibrary",
                               LD_PRELOAD=f"{arguments.tmp}/older.so",
                               NATRA_TEST_OLDER=OLDER)
        report.equal(f"{way}: with an older library", passed, ["TestOlderLibrary"])
        passed, _ = run_tests(report, arguments, way, "-test.run", "TestBrokenWalk",
                              LD_PRELOAD=f"{arguments.tmp}/broken.so",
                              NATRA_TEST_BROKEN_WALK="1")
        report.equal(f"{way}: walks that fail", passed, ["TestBrokenWalk"])


def main(report, arguments):
    try:
        for way in arguments.way:
            run_way(report, arguments, way)
    finally:
        subprocess.run(["rm", "-rf", arguments.tmp], check=True)


if __name__ == "__main__":
    script.run_script(main, script.some_of("way", WAYS), prepare=prepare)
