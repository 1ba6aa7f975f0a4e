# SPDX-License-Identifier: BSD-2-Clause
"""A Debian 12 to install packages in: its root directory is one of `tools/install-deps
release`, with all changes in memory. Call its functions in namespaces of the test's own."""
import os
import subprocess
import sys
from pathlib import Path

from isolation import NETNS_DIR, mount
from report import skip

SOURCE = Path(__file__).resolve().parents[2]
CACHE = Path(os.environ.get("NATRA_CACHE") or "/var/cache/natra")
BASE = CACHE / "debian-12"
ROOTS = "/tmp/natra-machine"


def run(*argv, seconds=600, code=0, **more):
    p = subprocess.run([str(a) for a in argv], text=True, stdin=subprocess.DEVNULL,
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                       timeout=seconds, **more)
    if p.returncode != code:
        raise RuntimeError(f"{' '.join(map(str, argv))}: exit {p.returncode}: "
                           f"{p.stdout[-4000:]}")
    return p.stdout


def need():
    if os.geteuid():
        skip("not root")
    if not (BASE / "usr/bin/dpkg").exists():
        skip(f"{BASE} (tools/install-deps release)")


def packages(arch, to, revision=1, change=None):
    """Build the packages from a stage, which is kept while the test runs, or is copied
    from the directory NATRA_STAGES. `change` may edit the stage's installed tree first."""
    stage = Path(to) / f"stage-{arch}"
    if not stage.exists() and "NATRA_STAGES" in os.environ:
        run("cp", "-a", f"{os.environ['NATRA_STAGES']}/{stage.name}", stage)
    if not stage.exists():
        run(SOURCE / "tools/package/stage", arch, stage)
    if change:
        change(stage / "tree")
    out = Path(to) / f"packages-{arch}-{revision}"
    said = run(SOURCE / "tools/package/build", "--revision", revision, arch, stage, out)
    return [Path(line) for line in said.split()]


def plain_root(name):
    """Make a root directory and return where it is. It goes with the test's namespaces;
    nothing may delete its files, because the host's /dev can be among them."""
    memory = f"{ROOTS}/{name}"
    os.makedirs(ROOTS, exist_ok=True)
    if not os.path.ismount(ROOTS):
        mount("tmpfs", ROOTS)
    to = f"{memory}/root"
    os.makedirs(to)
    for part in ("upper", "work"):
        os.makedirs(f"{memory}/{part}")
    run("mount", "-t", "overlay", "overlay", "-o",
        f"lowerdir={BASE},upperdir={memory}/upper,workdir={memory}/work", to)
    return to


def make_root(name, packages_dir):
    """Make a root directory as plain_root() does, with this machine's devices and with the
    packages in /packages."""
    to = plain_root(name)
    os.makedirs(f"{to}/packages")
    run("mount", "--bind", packages_dir, f"{to}/packages")
    for part in ("proc", "sys", "dev"):
        run("mount", "--rbind", f"/{part}", f"{to}/{part}")
    os.makedirs(f"{to}{NETNS_DIR}", exist_ok=True)
    return to


def share_pods(root):
    """Show the network namespaces of the pods there."""
    run("mount", "--rbind", NETNS_DIR, f"{root}{NETNS_DIR}")


def within(root, *argv, **more):
    env = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8",
           "DEBIAN_FRONTEND": "noninteractive"}
    return run("chroot", root, *argv, env=env, **more)


def files(root):
    """The files of the packages' directories, without what dpkg and ldconfig write."""
    found = set()
    for top in ("usr", "etc", "lib", "opt"):
        for directory, _, names in os.walk(f"{root}/{top}"):
            found |= {f"{directory}/{n}".removeprefix(root) for n in names}
    return {f for f in found if not f.startswith("/etc/ld.so.cache")}


def note(text):
    print(f"     {text}", file=sys.stderr, flush=True)
