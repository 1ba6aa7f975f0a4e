#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Let each call that natractl makes fail once, or kill it in front of each.

usage: faults.py attach|change|kill|notcx

attach  attach in each mode: after an error all is as it was, after a success
        the interface is fully shaped
change  set, attach over an attachment, detach and gc of a live one: after an
        error the old or the new state is there whole
kill    SIGKILL in front of each call that changes the kernel's state; then
        attach repairs it, and gc and detach leave nothing
notcx   on a kernel without TCX, auto takes clsact and says why

The calls are numbered by inject.c. The work is shared by two processes, each
with a node, a pod and a bpffs of its own.
"""
import errno
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../harness")
import rig
from limiters import find_natractl
from rig import BPFFS, NETNS_DIR, Ns, Pod, sh
from state import Watch, left_of, pins

INJECT = os.environ.get("INJECT_LIB", "")
WORKERS = 2
SLOW_SECONDS = 20       # no run takes that long: it hangs
MAX_CALLS = 1000
SHOWN = 8               # lines of a job that failed
ID = "fault.case/1"     # dots and a slash, as runtimes have them
PODSIDE = ("tcx-podside", "clsact-podside")
MODES = (*PODSIDE, "tcx-hostside", "clsact-hostside")
OLD = ("--ingress", "10M", "--egress", "20M")
NEW = ("--ingress", "30M", "--egress", "40M")
# Each mode has another errno, none of which natra takes for an answer.
ERRNO = dict(zip(MODES, (errno.ENOMEM, errno.EIO, errno.EMFILE,
                         errno.EPERM)))


class Bad(Exception):
    """What is not as it must be."""


class Run:
    """One natractl with a fault, and what it left in the log."""

    def __init__(self, *args, mode="count", at=0, error=0):
        self.args = args
        with tempfile.NamedTemporaryFile("r") as log:
            env = dict(os.environ, LD_PRELOAD=INJECT, INJECT_LOG=log.name,
                       INJECT_MODE=mode, INJECT_AT=str(at),
                       INJECT_ERRNO=str(error))
            try:
                p = subprocess.run([find_natractl(), "--bpffs", BPFFS, *args],
                                   env=env, text=True, timeout=SLOW_SECONDS,
                                   stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
            except subprocess.TimeoutExpired:
                raise Bad(f"{args[0]} hangs") from None
            rows = [x.split() for x in log.read().splitlines()]
        self.code, self.out, self.err = p.returncode, p.stdout, p.stderr
        self.calls = [r[2] for r in rows if r[0] == "call"]
        self.hit = next((r[2] for r in rows if r[0] == "hit"), None)
        self.made = [(r[2], int(r[1])) for r in rows if r[0] == "made"]

    def expect(self, *codes):
        lines = self.err.splitlines()
        if self.code not in codes:
            raise Bad(f"{self.args[0]}: exit {self.code}: {self.err.strip()}")
        if self.code == 1 and (len(lines) != 1 or not lines[0].strip()):
            raise Bad(f"{self.args[0]}: not one line: {self.err!r}")
        if self.code == 0 and lines:
            raise Bad(f"{self.args[0]}: success, but says {self.err!r}")
        return self


class Bench:
    """The node with one pod, and the states to begin and end with."""

    def __init__(self):
        Ns()
        self.gone = []
        self.number = 10
        self.new_pod()

    def new_pod(self):
        self.pod = Pod(f"pod{self.number}", self.number)
        self.watch = Watch(self.pod)
        # The first attach makes natra's directory, which stays.
        self.attach("--mode", "clsact-podside", *OLD)
        self.detach()
        self.clean = self.watch.snapshot()

    def start_over(self):
        """After a fault that left something: throw the pod away."""
        for path in reversed(pins()):
            (os.rmdir if os.path.isdir(path) else os.unlink)(path)
        self.pod.close()
        self.number = 10 + (self.number - 9) % 200
        self.new_pod()

    def natractl(self, *args):
        return Run(*args).expect(0)

    def attach_args(self, *more):
        return ("attach", "eth0", "--netns", f"{NETNS_DIR}/{self.pod.name}",
                "--id", ID, *more)

    def attach(self, *more):
        return self.natractl(*self.attach_args(*more))

    def detach(self):
        return self.natractl("detach", ID)

    def policy(self):
        show = json.loads(self.natractl("show", ID, "--json").out)
        return [show["policy"][f"{d}_rate_bits_per_sec"]
                for d in ("ingress", "egress")] + [
                    show["effective"]["sketch_width"]]

    def must_be(self, wanted, gone=(), directories=True):
        """Objects that must be gone are looked for when the job ends: the
        kernel frees them some time after."""
        text = self.watch.settle(wanted, directories)
        if text:
            raise Bad(text)
        self.gone += gone

    def must_be_shaped(self, *policies):
        """Whole, with one of these (ingress, egress, sketch width)."""
        self.natractl("check", ID)
        have = self.policy()
        if have not in [list(p) for p in policies]:
            raise Bad(f"limits {have}")


class Job:
    """One command in one mode; how a case begins, and how it may end."""

    name = "?"

    def __init__(self, bench, mode, *more):
        self.b = bench
        self.mode = mode
        self.more = more
        self.options = ("--mode", mode, *more)

    def title(self):
        return " ".join((self.name, self.mode, *self.more))

    def begin(self):
        """Bring about the state in front of the command."""

    def failed(self, run):
        """Judge the state after exit 1."""

    def succeeded(self, run):
        """Judge the state after a fault that natra could do without."""

    def end(self):
        """After the last case."""

    def numbers(self):
        """Which calls fail, one after the other."""
        return range(1, MAX_CALLS)

    def start_over(self):
        """After a case that was bad."""
        self.b.start_over()


class Attach(Job):
    name = "attach"
    policy = (10**7, 2 * 10**7, 2048)

    def args(self):
        return self.b.attach_args(*OLD, *self.options)

    def begin(self):
        if self.mode.startswith("clsact"):
            self.b.watch.forget_clsact()

    def failed(self, run):
        self.b.must_be(self.b.clean, run.made)

    def succeeded(self, run):
        self.b.must_be_shaped(self.policy)
        self.b.detach()
        self.b.must_be(self.b.clean, run.made)

    def end(self):
        self.b.detach()
        self.b.must_be(self.b.clean)


class Live(Job):
    """A command on an attachment: made anew only where a case changed it."""

    policy = (10**7, 2 * 10**7, 2048)
    new_policy = policy

    def __init__(self, *args):
        super().__init__(*args)
        self.before = None
        self.old = []

    def begin(self):
        if self.before is None:
            self.old = self.b.attach(*OLD, *self.options).made
            self.before = self.b.watch.snapshot()

    def start_over(self):
        super().start_over()
        self.before = None

    def forget(self):
        self.b.detach()
        self.b.must_be(self.b.clean, self.old)
        self.before = None

    def failed(self, run):
        self.b.must_be(self.before, run.made)
        self.b.must_be_shaped(self.policy)

    def succeeded(self, run):
        self.b.must_be_shaped(self.new_policy)
        self.old += run.made
        self.forget()

    def end(self):
        if self.before is not None:
            self.forget()


class Set(Live):
    name = "set"
    new_policy = (3 * 10**7, 4 * 10**7, 2048)

    def args(self):
        return ("set", ID, *NEW)

    def failed(self, run):
        self.b.must_be(self.before, run.made)
        self.b.must_be_shaped(self.policy, self.new_policy)
        self.restore()

    def succeeded(self, run):
        self.b.must_be(self.before, run.made)
        self.b.must_be_shaped(self.new_policy)
        self.restore()

    def restore(self):
        self.b.natractl("set", ID, *OLD)


class Again(Set):
    """The same attachment with other limits: nothing is loaded."""

    name = "attach again"

    def args(self):
        return self.b.attach_args(*NEW, *self.options)

    def failed(self, run):
        Live.failed(self, run)

    def succeeded(self, run):
        """It may have been replaced, where natra could not be sure of it."""
        self.b.must_be_shaped(self.new_policy)
        self.old += run.made
        if self.b.watch.snapshot() == self.before:
            self.restore()
        else:
            self.forget()


class Replace(Live):
    """Another sketch needs other programs, beside the ones that run."""

    name = "replace"
    new_policy = (3 * 10**7, 4 * 10**7, 512)

    def args(self):
        return self.b.attach_args(*NEW, "--sketch-width", "512",
                                  *self.options)


class Gc(Live):
    """A live attachment is not garbage, whatever fails meanwhile."""

    name = "gc"

    def args(self):
        return ("gc",)

    def succeeded(self, run):
        self.failed(run)


class Detach(Live):
    name = "detach"

    def args(self):
        return ("detach", ID)

    def failed(self, run):
        self.b.detach()
        self.b.must_be(self.b.clean, self.old)
        self.before = None

    def succeeded(self, run):
        # An empty directory may stay until the next one removes it.
        programs = dict(self.b.clean, pins=[])
        self.b.must_be(programs, self.old, directories=False)
        self.failed(run)


class Mount(Attach):
    """bpffs is not mounted yet; where it is afterwards does not matter."""

    name = "attach, no bpffs"
    calls = ("statfs64", "mount", "mkdir")

    def numbers(self):
        self.begin()
        run = self.b.natractl(*self.args())
        self.succeeded(run)
        return [n for n, call in enumerate(run.calls, 1)
                if call in self.calls]

    def begin(self):
        sh("umount", BPFFS)

    def failed(self, run):
        self.b.must_be(dict(self.b.clean, pins=[]), run.made,
                       directories=False)
        self.restore()

    def succeeded(self, run):
        self.b.must_be_shaped(self.policy)
        self.b.detach()
        self.failed(run)

    def restore(self):
        if not os.path.ismount(BPFFS):
            sh("mount", "-t", "bpf", "bpf", BPFFS)
        os.makedirs(f"{BPFFS}/natra", mode=0o700, exist_ok=True)


class KilledAttach(Attach):
    """gc alone cleans, and attach repairs."""

    name = "kill attach"

    def killed(self, run, kill_again):
        self.b.natractl("gc")
        self.b.must_be(self.b.clean, run.made)
        self.begin()
        run = kill_again()
        self.b.attach(*OLD, *self.options)
        self.b.must_be_shaped(self.policy)
        self.b.detach()
        self.b.must_be(self.b.clean, run.made)


class Killed:
    """Of a live attachment: attach repairs, and nothing old stays."""

    def killed(self, run, _):
        self.old += run.made + self.b.attach(*OLD, *self.options).made
        self.b.must_be_shaped(self.policy)
        self.forget()


class KilledSet(Killed, Set):
    name = "kill set"


class KilledReplace(Killed, Replace):
    name = "kill replace"


class KilledDetach(Killed, Detach):
    name = "kill detach"


class Tally:
    def __init__(self, job):
        self.row = {"job": job.title(), "injected": 0, "errors": 0,
                    "tolerated": 0, "bad": [], "seconds": 0.0}

    def bad(self, n, call, text):
        self.row["bad"].append(f"{self.row['job']}: call {n} ({call}): {text}")


def inject(job, n, kill):
    """One case; its run, or None if the command has no call number n."""
    job.begin()
    run = Run(*job.args(), mode="kill" if kill else "fail", at=n,
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
    """Every fault of one job, and what came of it."""
    tally = Tally(job)
    begin = time.monotonic()
    for n in job.numbers():
        run = None
        try:
            run = inject(job, n, kill)
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


def jobs_of(group, features):
    """(class, mode, more options) of all jobs, the longest first."""
    modes = [m for m in MODES if features["tcx"] or m.startswith("clsact")]
    plain = {"attach": (Attach,), "change": (Replace, Set, Again, Gc, Detach),
             "kill": (KilledAttach, KilledReplace, KilledSet, KilledDetach)}
    jobs = [(c, m) for c in plain[group] for m in modes]
    if group == "attach":
        jobs.append((Mount, modes[0]))
    if features["fq"]:
        edt = [(m, "--edt", "on") for m in modes if m in PODSIDE]
        pace = [(m, "--ingress-mode", "pace") for m in modes]
        jobs += [(c, *x) for c in plain[group] for x in edt + pace
                 if c in (Attach, Replace, Detach, KilledAttach)]
    return jobs


def worker(group, features):
    """Does the jobs whose numbers come in, a row of JSON for each."""
    rig.isolate()
    bench = Bench()
    jobs = jobs_of(group, features)
    for line in sys.stdin:
        cls, mode, *more = jobs[int(line)]
        row = work(cls(bench, mode, *more), group == "kill")
        print(json.dumps(row), flush=True)


def run_jobs(group, features):
    """Rows of all jobs, done by WORKERS processes."""
    jobs = list(enumerate(jobs_of(group, features)))
    rows = []

    def feed():
        argv = [sys.executable, __file__, group, json.dumps(features)]
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


def show(rows, kill):
    print(f"{'operation':<44}{'faults':>7}{'killed' if kill else 'error':>7}"
          f"{'' if kill else 'went on':>8}{'survived':>9}{'seconds':>8}")
    for r in sorted(rows, key=lambda r: r["job"]):
        print(f"{r['job']:<44}{r['injected']:>7}{r['errors']:>7}"
              f"{'' if kill else r['tolerated']:>8}"
              f"{r['errors'] + r['tolerated']:>9}{r['seconds']:>8.1f}")
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
    print(f"{faults} faults, {faults - len(bad)} survived")
    return 1 if bad or empty or not rows else 0


def no_tcx():
    """What an old kernel gets."""
    rig.isolate()
    bench = Bench()

    def run(*args):
        return Run(*args, mode="notcx").expect(0)

    probe = json.loads(run("probe", "--json").out)
    run(*bench.attach_args(*OLD))
    show = json.loads(run("show", ID, "--json").out)
    print(f"probe: tcx {probe['tcx']}, auto {probe['auto_mode']}\n"
          f"show:  {show['mode']}: {show['reason']}")
    try:
        refused = Run(*bench.attach_args(*OLD, "--mode", "tcx-podside"),
                      mode="notcx").expect(1)
        bench.must_be_shaped((10**7, 2 * 10**7, 2048))
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


def main():
    if len(sys.argv) not in (2, 3) or sys.argv[1] not in (
            "attach", "change", "kill", "notcx"):
        sys.exit(__doc__)
    if os.geteuid():
        rig.skip("not root")
    if not os.path.exists(INJECT):
        sys.exit("INJECT_LIB: not there")
    group = sys.argv[1]
    if group == "notcx":
        return no_tcx()
    if len(sys.argv) == 3:
        return worker(group, json.loads(sys.argv[2]))
    features = json.loads(Run("probe", "--json").expect(0).out)
    code = show(run_jobs(group, features), group == "kill")
    if not features["fq"]:
        print("without --edt on and --ingress-mode pace: no fq")
    return code


if __name__ == "__main__":
    sys.exit(main())
