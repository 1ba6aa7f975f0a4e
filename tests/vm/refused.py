#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks that each command fails with one line on a kernel that lacks what natra needs.

The line names all that is missing, and nothing is left on the interface.

usage: refused.py KERNEL    boots KERNEL and runs this script there, without argument
"""
import json
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, HERE + "/../cni", HERE + "/../harness/python"]
import machine
import plugin
from isolation import BPFFS
from limiters import Natra, find_natractl
from namespaces import Pod
from report import SKIP

LACKS = "this kernel lacks bpf_ktime_get_coarse_ns (Linux 5.11), " \
        "BPF atomic instructions (Linux 5.12), SO_NETNS_COOKIE (Linux 5.14)"
PARTS = ("coarse_clock", "atomics", "netns_cookie", "set_tstamp")


def boot(kernel):
    reason = machine.cannot(kernel)
    if reason:
        print(reason)
        return SKIP
    os.execv(f"{HERE}/run", ["run", "--timeout", "600", kernel, "--", "env",
                             f"NATRACTL={find_natractl()}", __file__])


def found_on(pod):
    """Return what an attachment would change: the qdiscs and the pins. The directory of the
    ABI stays, as natra's own does."""
    return [pod.run("tc", "qdisc", "show", "dev", "eth0"),
            sorted(os.path.join(d, f) for d, dirs, files in os.walk(BPFFS + "/natra")
                   for f in dirs + files if not f.startswith("abi"))]


def main(rep, _):
    pod = Pod("pod1", 1)
    natra = Natra(pod)
    p = natra.run("probe", "--json")
    found = json.loads(p.stdout)
    rep.shown("kernel", f"{found['kernel']}: {found['reason']}")
    rep.equal("probe: exit code, kernel_ok, " + ", ".join(PARTS),
              (p.returncode, *(found.get(k) for k in ("kernel_ok", *PARTS))),
              (3, False, *(False for _ in PARTS)))
    rep.equal("probe: the mode of auto", found["auto_mode"], "none")
    rep.true("probe: the reason", found["reason"].startswith(LACKS))
    before = found_on(pod)
    for more in ((), ("--edt-pacing", "on"), ("--attach-mode", "clsact-podside")):
        p = natra.run("attach", "eth0", "--netns", pod.path, "--id", "x",
                      "--ingress-rate", "10M", "--egress-rate", "10M", *more)
        rep.equal(f"attach {' '.join(more)}: exit code, standard error",
                  (p.returncode, p.stderr), (1, f"natractl: {LACKS}\n"))
        rep.equal("  the interface and the pins", found_on(pod), before)
    answer = plugin.call(plugin.find_natra(), "STATUS", {
        "cniVersion": "1.1.0", "name": "refused", "type": "natra",
        "logFile": ""})
    rep.equal("the plugin's STATUS", (answer.error(), answer.text().strip()),
              (50, LACKS))
    with tempfile.TemporaryDirectory() as directory:
        path = f"{directory}/10-a.conflist"
        with open(path, "w") as f:
            json.dump({"cniVersion": "1.0.0", "name": "a", "plugins": [{"type": "a"}]}, f)
        p = natra.run("install", "--net-dir", directory, "--bin-dir", directory, "--plugin",
                      plugin.find_natra(), "--runtime-version", "containerd://2.1.0")
        rep.equal("install: exit code, standard error", (p.returncode, p.stderr), (
            1, f"natractl: natra cannot limit on this node, so it is not installed: {LACKS}\n"))
        rep.equal("  the directory", os.listdir(directory), ["10-a.conflist"])
    # The emulated CPU may get only the time that other suites leave.
    p = natra.run("doctor", "--json", timeout=120)
    rep.equal("doctor: exit code, what it finds about the kernel",
              (p.returncode, [f["check"] for f in json.loads(p.stdout)[
                  "findings"] if f["check"] in ("kernel", "bpf", "hooks")]),
              (3, ["kernel"]))
    rep.equal("gc: exit code", natra.run("gc").returncode, 0)


if __name__ == "__main__":
    if len(sys.argv) == 2:
        sys.exit(boot(sys.argv[1]))
    plugin.run_script(main)
