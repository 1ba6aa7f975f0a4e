#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks that natra judges a kernel by its features. inject.c pretends these kernels:

  rhel9     an old version that has every feature, as RHEL's kernels do
  notstamp  no bpf_skb_set_tstamp: departure times are written as they are
  5.15      no TCX either, and the version says so too
  5.10      lacks what natra cannot do without: one line names all of it
"""
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../harness/python")
from script import run_script, some_of
from cni_jobs import CniRun, use_one_bpffs
from jobs import ID, OLD, Bad, Bench, Run

RATES = (10**7, 2 * 10**7, "off")
MISSING = ("bpf_ktime_get_coarse_ns (Linux 5.11)",
           "BPF atomic instructions (Linux 5.12)",
           "SO_NETNS_COOKIE (Linux 5.14)")


def probe(kernel):
    """Return the exit code and the result of `natractl probe`; the code is 0 if natra
    can work."""
    run = Run("probe", "--json", mode=kernel)
    return run.code, json.loads(run.out)


def root_is_fq(bench):
    return "fq" in bench.pod.run("tc", "qdisc", "show", "dev", "eth0", "root")


def attach(rep, bench, kernel, *more):
    """Attach and detach, and check that nothing is left. Returns what `natractl show`
    reports, or the error."""
    run = Run(*bench.attach_args(*OLD, *more), mode=kernel)
    if run.code:
        rep.equal(f"  {kernel}: exit code", run.code, 1)
        rep.equal("  lines of the error", len(run.err.splitlines()), 1)
        bench.must_be(bench.clean)
        return {"error": run.err.strip()}
    bench.must_be_shaped(RATES)
    show = json.loads(bench.natractl("show", ID, "--json").out)
    show["fq"] = root_is_fq(bench)
    bench.detach()
    bench.must_be(bench.clean)
    return show


def paced(truth):
    """Return the options for all departure times that this machine can have."""
    return ("--edt-pacing", "on", "--ingress-mode", "pace") if truth["fq"] else ()


def says(rep, what, got, wanted):
    rep.check(what, repr(got), f"says {wanted!r}", wanted in got)


def has_all(rep, bench, truth, kernel):
    code, found = probe(kernel)
    rep.equal(f"{kernel}: probe says", found.pop("kernel"), "5.14.0-427.el9.x86_64")
    truth = dict(truth)
    truth.pop("kernel")
    rep.equal("  all else is the truth", (code, found), (0, truth))
    show = attach(rep, bench, kernel, *paced(truth))
    rep.equal("  the mode", show.get("mode"), truth["auto_mode"])
    rep.equal("  departure times; fq", (show.get("edt_active"), show.get("fq")),
              (truth["fq"], truth["fq"]))
    status = CniRun("STATUS", bench, "auto", mode=kernel)
    rep.equal("  the plugin's STATUS: exit code", status.code, 0)


def no_tstamp(rep, bench, truth, kernel):
    tcx = truth["tcx"] and kernel == "notstamp"
    mode = "tcx-podside" if tcx else "clsact-podside"
    code, found = probe(kernel)
    rep.equal(f"{kernel}: probe",
              (code, found["kernel_ok"], found.get("set_tstamp"), found["auto_edt"],
               found["auto_mode"]), (0, True, False, truth["fq"], mode))
    show = attach(rep, bench, kernel, *paced(truth))
    rep.equal("  auto takes; departure times; fq",
              (show.get("mode"), show.get("edt_active"), show.get("fq")),
              (mode, truth["fq"], truth["fq"]))


def too_old(rep, bench, _, kernel):
    code, found = probe(kernel)
    rep.equal(f"{kernel}: probe",
              (code, *(found.get(k) for k in ("kernel_ok", "coarse_clock", "atomics",
                                          "netns_cookie", "set_tstamp"))),
              (3, False, False, False, False, False))
    for what in MISSING:
        says(rep, "  because", found["reason"], what)
    error = attach(rep, bench, kernel).get("error", "")
    rep.equal("  attach", error,
              "natractl: this kernel lacks " + ", ".join(MISSING))
    status = CniRun("STATUS", bench, "auto", mode=kernel).expect(1)
    rep.equal("  the plugin's STATUS", json.loads(status.out)["code"], 50)
    says(rep, "  ", status.out, MISSING[1])


KERNELS = {"rhel9": has_all, "notstamp": no_tstamp, "5.15": no_tstamp,
           "5.10": too_old}


def main(rep, a):
    use_one_bpffs()
    bench = Bench("kernels")
    truth = probe("count")[1]
    try:
        for kernel in a.kernel:
            KERNELS[kernel](rep, bench, truth, kernel)
    except Bad as e:
        rep.check("state", str(e), "as it must be", False)


if __name__ == "__main__":
    run_script(main, some_of("kernel", KERNELS))
