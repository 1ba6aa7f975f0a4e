#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Lets each call of natractl or the CNI plugin fail once, or kills them before each.

attach   attach in each mode: after an error the state is as before, after a success
         the interface is fully shaped
change   set, attach over an attachment, detach and gc of a live one: after an
         error either the old or the new state is there, and is whole
kill     SIGKILL before each call that changes the kernel's state; then
         attach repairs it, and gc and detach leave nothing
notcx    on a kernel without TCX, auto takes clsact and says why
cni      ADD, DEL and GC of the plugin: a result or one error object, and
         afterwards DEL and gc leave nothing
cni-kill the same after SIGKILL
fq       errors and SIGKILL in jobs that use the qdisc fq, and only in calls
         about qdiscs: for a VM, which has fq but not the time for the rest

inject.c numbers the calls. With NATRA_SAMPLE, which tools/check sets to the commit, one of five
fails in a run, in each commit another. Two processes share the work, each with a node, a pod and a
bpffs of its own.
"""
import argparse
import json
import os
import signal
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../harness/python")
from isolation import isolate, need_root
from report import skip
from cni_jobs import CniAdd, CniDel, CniGc, CniGcAll, use_one_bpffs
from gso_jobs import DetachGso, KilledSetGso, SetGso
from jobs import (ERRNO, ID, INJECT, MODES, OLD, Again, Attach, Bad, Bench,
                  Detach, Gc, KilledAttach, KilledDetach, KilledReplace,
                  KilledSet, KilledSetClasses,
                  KilledUnpace, Mount, Probe, Replace, Run, Set, SetClasses,
                  Unpace)
from state import left_of

WORKERS = 2
PACE = ("--ingress-mode", "pace")
CNI = {"cni": (CniAdd, CniDel, CniGc, CniGcAll),
       "cni-kill": (CniAdd, CniDel, CniGcAll)}
SHOWN = int(os.environ.get("SHOWN", "8"))       # lines printed of a job that failed


class Tally:
    def __init__(self, job):
        self.row = {"job": job.title(), "injected": 0, "errors": 0,
                    "tolerated": 0, "bad": [], "seconds": 0.0}

    def bad(self, n, call, text):
        self.row["bad"].append(f"{self.row['job']}: call {n} ({call}): {text}")


def inject(job, n, kill):
    """Run one case. Returns its run, or None if the command has no call number n."""
    job.begin()
    run = job.run(mode="kill" if kill else "fail", at=n,
                  error=ERRNO[job.mode])
    return run if run.hit else None


def judge(job, n, run, tally, kill):
    tally.row["injected"] += 1
    if kill:
        if run.code != -signal.SIGKILL:
            raise Bad(f"exit {run.code} after SIGKILL")
        job.killed(run, lambda: inject(job, n, True))
        tally.row["errors"] += 1
        return
    run.expect(0, 1)
    if run.code == 1:
        job.failed(run)
        tally.row["errors"] += 1
    else:
        job.succeeded(run)
        tally.row["tolerated"] += 1


def work(job, kill):
    """Inject every fault of one job. Returns a row with the results."""
    tally = Tally(job)
    begin = time.monotonic()
    for n in (*job.numbers(kill), None):
        run = None
        try:
            run = inject(job, n, kill) if n else None
            if run is None:
                job.end()
                break
            judge(job, n, run, tally, kill)
        except Bad as e:
            tally.bad(n, run.hit if run else "-", str(e))
            job.start_over()
    left = left_of(job.b.gone)
    job.b.gone = []
    if left:
        tally.bad(0, "all", f"objects left: {left}")
    tally.row["seconds"] = time.monotonic() - begin
    return tally.row


def fq_jobs(mode):
    """Return the jobs about fq. For departure times fq is on the pod's side, for pacing
    on the host's: with --edt-pacing auto these jobs have both."""
    jobs = [(c, mode, *PACE) for c in (
            Attach, Replace, Unpace, Detach, KilledAttach, KilledUnpace,
            KilledDetach)]
    return jobs + [(Attach, mode, "--edt-pacing", "on"), (Probe, mode)]


def jobs_of(group, features):
    """Return (class, mode, more options) of the jobs, the longest first."""
    return [j for j in all_jobs_of(group, features)
            if features["only"] in (None, j[0].name)]


def all_jobs_of(group, features):
    modes = [m for m in MODES if features["tcx"] or m.startswith("clsact")]
    if group == "fq":
        return fq_jobs(modes[0])
    if group in CNI:
        return [(c, m) for c in CNI[group] for m in modes[:2]]
    plain = {"attach": (Attach,), "change": (Replace, Set, Again, Gc, Detach),
             "kill": (KilledAttach, KilledReplace, KilledSet, KilledDetach)}
    # A mode is a hook and a side, and two modes cover each hook and each side. That is
    # enough for jobs after the attach.
    some = modes[:1] if features["brief"] else (modes[0], modes[-1])
    jobs = [(c, m) for c in plain[group] for m in modes
            if c in (Attach, KilledAttach) or m in some]
    # Subnets add a map and a pin; they are tested in the first mode.
    subnets = ("--unshaped-subnet", "fd00::/8")
    jobs += [(c, modes[0], *subnets) for c in plain[group]
             if c in (Attach, Replace, Again, KilledAttach)]
    # Classes add two maps to each bank and two to the attachment. These jobs take minutes
    # beside a VM, so only the shortest is among those that are always tried.
    with_classes = {"kill": (KilledSetClasses,)} if features["brief"] else {
        "attach": (Attach,), "change": (SetClasses,),
        "kill": (KilledAttach, KilledSetClasses)}
    jobs += [(c, modes[0], *SetClasses.classes) for c in with_classes.get(group, ())]
    # Only a slow egress that natra judges in the pod makes GSO packets small.
    with_gso = {"change": (SetGso,) if features["brief"] else (SetGso, DetachGso),
                "kill": (KilledSetGso,)}
    jobs += [(c, modes[0]) for c in with_gso.get(group, ())]
    # Connections that are measured add a map for each bank and one for the attachment.
    jobs += [(c, modes[0], "--sli", "on") for c in plain[group]
             if c in (Attach, Replace, Detach, KilledAttach)]
    if group == "attach":
        jobs += [(Mount, modes[0]), (Probe, modes[0])]
    if features["fq"]:
        # With --edt-pacing auto the other jobs have fq on the pod's side already.
        jobs += [(c, m, *PACE) for c in plain[group]
                 for m in some
                 if c in (Attach, Replace, Detach, KilledAttach)]
    if features["fq"] and group == "attach":
        jobs.append((Attach, modes[0], "--edt-pacing", "on"))
    return jobs


def worker(group, features):
    """Run the jobs whose numbers arrive on stdin, and print a row of JSON for each."""
    isolate()
    if group in CNI:
        use_one_bpffs()
    bench = Bench(about="QDISC" if group == "fq" else "")
    jobs = jobs_of(group, features)
    for line in sys.stdin:
        cls, mode, *more = jobs[int(line)]
        row = work(cls(bench, mode, *more), cls.kills or group == "cni-kill")
        print(json.dumps(dict(row, stride=bench.stride)), flush=True)


def run_jobs(group, features):
    """Return the rows of all jobs, which WORKERS processes run."""
    jobs = list(enumerate(jobs_of(group, features)))
    rows = []

    def feed():
        argv = [sys.executable, __file__, group, "--worker", json.dumps(features)]
        with subprocess.Popen(argv, text=True, stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE) as p:
            while jobs:
                number, job = jobs.pop(0)
                print(number, file=p.stdin, flush=True)
                line = p.stdout.readline()
                if not line:
                    rows.append({"job": str(job), "bad": ["worker died"],
                                 "injected": 0, "errors": 0,
                                 "tolerated": 0, "seconds": 0})
                    break
                rows.append(json.loads(line))
            p.stdin.close()

    threads = [threading.Thread(target=feed) for _ in range(WORKERS)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return rows


def show(rows):
    print(f"{'operation':<52}{'faults':>7}{'ended':>7}{'went on':>8}"
          f"{'survived':>9}{'seconds':>8}")
    for r in sorted(rows, key=lambda r: r["job"]):
        print(f"{r['job']:<52}{r['injected']:>7}{r['errors']:>7}"
              f"{r['tolerated']:>8}{r['errors'] + r['tolerated']:>9}"
              f"{r['seconds']:>8.1f}")
    faults = sum(r["injected"] for r in rows)
    bad = [b for r in rows for b in r["bad"]]
    empty = [r["job"] for r in rows if not r["injected"]]
    for r in rows:
        for b in r["bad"][:SHOWN]:
            print(f"FAIL {b}")
        if len(r["bad"]) > SHOWN:
            print(f"FAIL {r['job']}: and {len(r['bad']) - SHOWN} more")
    for job in empty:
        print(f"FAIL {job}: no fault was injected")
    stride = max((r["stride"] for r in rows), default=1)
    if stride > 1:
        print(f"of a slow machine's or a sample's calls: one of {stride}")
    print(f"{faults} faults, {faults - len(bad)} survived")
    return 1 if bad or empty or not rows else 0


def no_tcx():
    """Check what natra does on a kernel without TCX."""
    isolate()
    bench = Bench()

    def run(*args):
        return Run(*args, mode="notcx").expect(0)

    probe = json.loads(run("probe", "--json").out)
    run(*bench.attach_args(*OLD))
    show = json.loads(run("show", ID, "--json").out)
    print(f"probe: tcx {probe['tcx']}, auto {probe['auto_mode']}\n"
          f"show:  {show['mode']}: {show['reason']}")
    try:
        refused = Run(*bench.attach_args(*OLD, "--attach-mode", "tcx-podside"),
                      mode="notcx").expect(1)
        bench.must_be_shaped((10**7, 2 * 10**7, "off"))
        run("detach", ID)
        bench.must_be(bench.clean)
    except Bad as e:
        print(f"FAIL {e}")
        return 1
    print(f"asked: {refused.err.strip()}")
    good = not probe["tcx"] and probe["auto_mode"] == "clsact-podside" and \
        show["mode"] == "clsact-podside" and \
        "not tcx-podside: " in show["reason"] and \
        "TCX" in show["reason"] and "TCX" in refused.err
    print("ok" if good else "FAIL")
    return 0 if good else 1


def arguments():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("group", choices=("attach", "change", "kill", "notcx", "fq", *CNI))
    p.add_argument("--brief", action="store_true",
                   help="test what follows an attach in one mode only, not in two")
    p.add_argument("--only", metavar="NAME",
                   help="test this operation, by its name in the table of results")
    p.add_argument("--worker", type=json.loads, help=argparse.SUPPRESS)
    return p.parse_args()


def main():
    args = arguments()
    need_root()
    if not os.path.exists(INJECT):
        sys.exit("INJECT_LIB: not there")
    if args.group == "notcx":
        return no_tcx()
    if args.worker:
        return worker(args.group, args.worker)
    features = json.loads(Run("probe", "--json").expect(0).out)
    features |= {"brief": args.brief, "only": args.only}
    if args.group == "fq" and not features["fq"]:
        skip("no fq")
    code = show(run_jobs(args.group, features))
    if not features["fq"]:
        print("skipped --edt-pacing on and --ingress-mode pace: no fq")
    return code


if __name__ == "__main__":
    sys.exit(main())
