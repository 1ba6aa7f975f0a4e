# SPDX-License-Identifier: BSD-2-Clause
"""The commands that faults are injected into: how a case begins, and what must be true
after it."""
import errno
import json
import os
import signal
import struct
import subprocess
import sys
import time
import zlib

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../harness/python")
from commands import sh
from isolation import BPFFS, NETNS_DIR
from limiters import find_natractl
from namespaces import Ns, Pod
from state import Watch, pins

INJECT = os.environ.get("INJECT_LIB", "")
MAX_CALLS = 1000
SAMPLE = 5              # of so many calls one fails in a run that tries a sample
USUAL_SECONDS = 0.06    # attach, check and detach, where the CPU is not emulated
ID = "fault.case/1"     # it has dots and a slash, as runtimes' ids do
MODES = ("tcx-podside", "clsact-podside", "tcx-hostside", "clsact-hostside")
OLD = ("--ingress-rate", "10M", "--egress-rate", "20M")
NEW = ("--ingress-rate", "30M", "--egress-rate", "40M")
# Each mode gets another errno; natra handles none of them as a normal answer.
ERRNO = dict(zip(MODES, (errno.ENOMEM, errno.ENOBUFS, errno.EMFILE,
                         errno.EPERM)))


class Bad(Exception):
    """The state or the output is not as it must be."""


class Server:
    """A program that has started once and runs again for each request: see serve.c."""

    servers = {}

    def __init__(self, path):
        env = dict(os.environ, LD_PRELOAD=INJECT, INJECT_SERVE="1")
        if path != find_natractl():
            env["INJECT_PROGRAM"] = "1"
        self.p = subprocess.Popen([path], env=env, stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE)

    @classmethod
    def of(cls, path):
        if path not in cls.servers:
            cls.servers[path] = cls(path)
        return cls.servers[path]

    def run(self, mode, at, error, stdin, env, argv):
        """Return the status as subprocess has it, stdout, stderr and the log."""
        strings = [mode, str(at), str(error), stdin, str(len(env)),
                   *(f"{k}={v}" for k, v in env.items()), *argv]
        data = b"".join(s.encode() + b"\0" for s in strings)
        self.p.stdin.write(struct.pack("=I", len(data)) + data)
        self.p.stdin.flush()
        head = self.p.stdout.read(16)
        if len(head) < 16:
            raise Bad(f"{argv[0]}: the server ended")
        status, *lengths = struct.unpack("=i3I", head)
        texts = [self.p.stdout.read(n).decode(errors="replace")
                 for n in lengths]
        return (os.waitstatus_to_exitcode(status), *texts)


class Run:
    """One run of natractl with a fault, and what it left in the log."""

    def __init__(self, *args, mode="count", at=0, error=0):
        self.args = args
        self.run(find_natractl(), ["natractl", "--bpffs", BPFFS, *args], mode,
                 at, error)

    def run(self, path, argv, mode, at, error, stdin="", env=None):
        self.code, self.out, self.err, log = Server.of(path).run(
                mode, at, error, stdin, env or {}, argv)
        if self.code == -signal.SIGALRM:
            raise Bad(f"{argv[0]} hangs")
        rows = [x.split() for x in log.splitlines()]
        self.calls = [r[2] for r in rows if r[0] == "call"]
        self.hit = next((r[2] for r in rows if r[0] == "hit"), None)
        self.made = [(r[2], int(r[1])) for r in rows if r[0] == "made"]
        left_open = [r for r in rows if r[0] == "open"]
        if left_open:
            raise Bad(f"{argv[0]}: descriptor {left_open[0][1]} is not "
                      f"O_CLOEXEC in front of {left_open[0][2]}")

    def expect(self, *codes):
        lines = self.err.splitlines()
        if self.code not in codes:
            raise Bad(f"{self.args[0]}: exit {self.code}: {self.err.strip()}")
        if self.code == 1 and (len(lines) != 1 or not lines[0].strip()):
            raise Bad(f"{self.args[0]}: not one line: {self.err!r}")
        not_shown = "natractl: done, but cannot show it: "
        if self.code == 0 and lines and not (
                len(lines) == 1 and lines[0].startswith(not_shown)):
            raise Bad(f"{self.args[0]}: success, but says {self.err!r}")
        return self


class Bench:
    """The node with one pod, and the states that a case begins and ends with."""

    def __init__(self, about=""):
        Ns()
        self.gone = []
        self.number = 10
        self.about = about      # only calls with this in their name fail
        self.stride, self.first = 1, 0
        sample = os.environ.get("NATRA_SAMPLE")
        if sample and not about:
            self.stride, self.first = SAMPLE, zlib.crc32(sample.encode())
        self.new_pod()
        # Only an emulated CPU is slow enough; elsewhere a load of other tests must
        # not decide how many calls fail.
        if not about and os.environ.get("NATRA_VM"):
            self.stride = round(self.slowness()) or 1

    def slowness(self):
        """Return how much longer than usual this VM takes, 8 at most."""
        seconds = []
        for _ in range(3):
            begin = time.monotonic()
            self.attach("--attach-mode", "clsact-podside", *OLD)
            self.natractl("check", ID)
            self.detach()
            seconds.append(time.monotonic() - begin)
        return min(min(seconds) / USUAL_SECONDS, 8)

    def new_pod(self):
        self.pod = Pod(f"pod{self.number}", self.number)
        self.watch = Watch(self.pod)
        # The first attach makes natra's directory, which stays.
        self.attach("--attach-mode", "clsact-podside", *OLD)
        self.detach()
        self.clean = self.watch.snapshot()

    def start_over(self):
        """Replace the pod after a fault that left something."""
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
        """It may be that the case has detached already, which natractl calls an error."""
        run = Run("detach", ID)
        run.expect(*((0, 1) if "is not attached" in run.err else (0,)))
        return run

    def policy(self):
        show = json.loads(self.natractl("show", ID, "--json").out)
        return [show["policy"][f"{d}_rate_bits_per_sec"]
                for d in ("ingress", "egress")] + [
                    show["effective"]["sli"]]

    def segs(self):
        return self.watch.snapshot()["gso_max_segs"]

    def must_be(self, wanted, gone=(), directories=True):
        """Check the state. Objects that must be gone are checked when the job ends,
        because the kernel frees them with a delay."""
        text = self.watch.settle(wanted, directories)
        if text:
            raise Bad(text)
        self.gone += gone

    def must_be_shaped(self, *policies):
        """Check that the interface is fully shaped, with one of these policies
        (ingress, egress, sli)."""
        check = Run("check", ID)
        if "natra_gc removes" in check.err:
            # A change that has succeeded could not remove what was there before it.
            self.natractl("gc")
            self.natractl("check", ID)
        else:
            check.expect(0)
        have = self.policy()
        if have not in [list(p) for p in policies]:
            raise Bad(f"limits {have}")


class Job:
    """One command in one mode: how a case begins, and how it may end."""

    name = "?"
    kills = False

    def __init__(self, bench, mode, *more):
        self.b = bench
        self.mode = mode
        self.more = more
        self.options = ("--attach-mode", mode, *more)
        for name in ("policy", "new_policy"):
            if "--sli" in more and hasattr(self, name):
                setattr(self, name, (*getattr(self, name)[:2], "on"))

    def title(self):
        return " ".join((self.name, self.mode, *self.more))

    def run(self, **fault):
        return Run(*self.args(), **fault)

    def begin(self):
        """Make the state that the command starts from."""

    def failed(self, run):
        """Judge the state after exit 1."""

    def succeeded(self, run):
        """Judge the state after a fault that natra could ignore."""

    def end(self):
        """Clean up after the last case."""

    def calls(self, kill=False):
        """Return the names of all numbered calls, from 1."""
        self.begin()
        run = self.run(mode="kill" if kill else "count").expect(0)
        self.succeeded(run)
        return run.calls

    def numbers(self, kill):
        """Return the numbers of the calls that fail. If these are only some of them,
        each mode has others."""
        if self.b.about:
            # The call after these is included, because it asks for their result.
            calls = ["", *self.calls(kill), ""]
            return [n for n in range(1, len(calls) - 1)
                    if self.b.about in calls[n - 1] + calls[n]]
        return range(1 + (MODES.index(self.mode) + self.b.first) % self.b.stride,
                     MAX_CALLS, self.b.stride)

    def start_over(self):
        """Restore the beginning after a case that failed."""
        self.b.start_over()


class Attach(Job):
    name = "attach"
    policy = (10**7, 2 * 10**7, "off")

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
    """A command on an attachment, which is made anew only if a case changed it."""

    limits = OLD
    policy = (10**7, 2 * 10**7, "off")
    new_policy = policy

    def __init__(self, *args):
        super().__init__(*args)
        self.before = None
        self.old = []

    def begin(self):
        if self.before is None:
            self.old = self.b.attach(*self.limits, *self.options).made
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
    new_policy = (3 * 10**7, 4 * 10**7, "off")

    def args(self):
        return ("set", ID, *NEW)

    def same(self):
        """Return the state at the beginning, with GSO packets as they are now: with fq
        each rate has another size."""
        return dict(self.before, gso_max_segs=self.b.segs())

    def failed(self, run):
        self.b.must_be(self.same(), run.made)
        self.b.must_be_shaped(self.policy, self.new_policy)
        self.restore()

    def succeeded(self, run):
        self.b.must_be(self.same(), run.made)
        self.b.must_be_shaped(self.new_policy)
        self.restore()

    def restore(self):
        self.b.natractl("set", ID, *OLD)


class SetClasses(Set):
    """Changes the lists and the rate of a class, too."""

    name = "set classes"
    classes = ("--class", "a=10.1.0.0/16,egress-rate=1M")

    def args(self):
        return ("set", ID, *NEW, "--class", "a=10.2.0.0/16,fd00::/8,egress-rate=3M,dscp=1")

    def restore(self):
        self.b.natractl("set", ID, *OLD, *self.classes, "--class", "a=dscp=none")


class Again(Set):
    """Attaches with other limits over the attachment, which loads nothing."""

    name = "attach again"

    def args(self):
        return self.b.attach_args(*NEW, *self.options)

    def failed(self, run):
        Live.failed(self, run)

    def succeeded(self, run):
        """Accept also that natra has replaced the attachment, where it could not be
        sure of it."""
        self.b.must_be_shaped(self.new_policy)
        self.old += run.made
        if self.b.watch.snapshot() == self.same():
            self.restore()
        else:
            self.forget()


class Replace(Live):
    """Begins to measure connections, which needs new programs beside those that run."""

    name = "replace"
    new_policy = (3 * 10**7, 4 * 10**7, "on")

    def args(self):
        return self.b.attach_args(*NEW, "--sli", "on",
                                  *self.options)


class Unpace(Live):
    """Changes back to police: fq is removed on the host's side and stays on the
    pod's."""

    name = "unpace"
    new_policy = (3 * 10**7, 4 * 10**7, "off")

    def args(self):
        return self.b.attach_args(*NEW, "--attach-mode", self.mode,
                                  "--ingress-mode", "police")


class Gc(Live):
    """Runs gc: a live attachment is not garbage, whatever fails meanwhile."""

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
        # An empty directory may stay until the next detach removes it, and the ring of
        # events, where the fault was in what looks after it.
        ring = [p for p in pins(directories=False) if run.hit and p.endswith("/ring")]
        programs = dict(self.b.clean, pins=ring)
        self.b.must_be(programs, self.old, directories=False)
        self.failed(run)


class Mount(Attach):
    """Attaches while bpffs is not mounted; where it is mounted afterwards does not
    matter."""

    name = "attach, no bpffs"
    about = ("statfs64", "mount", "mkdir")

    def numbers(self, kill):
        return [n for n, call in enumerate(self.calls(kill), 1)
                if call in self.about]

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

    def end(self):
        """Each case has detached what it has attached."""

    def restore(self):
        if not os.path.ismount(BPFFS):
            sh("mount", "-t", "bpf", "bpf", BPFFS)
        os.makedirs(f"{BPFFS}/natra", mode=0o700, exist_ok=True)


class Probe(Job):
    """Runs the probe, which tries qdiscs in a namespace of its own."""

    name = "probe"

    def args(self):
        return ("probe", "--json")

    def run(self, **fault):
        """Count a result as success: the exit code also says whether the kernel is
        suitable."""
        run = super().run(**fault)
        run.code *= not run.out
        return run

    def failed(self, run):
        self.b.must_be(self.b.clean, run.made)

    def succeeded(self, run):
        self.failed(run)


class KilledAttach(Attach):
    """Kills an attach: gc alone cleans up, and another attach repairs the state."""

    name = "kill attach"
    kills = True

    def killed(self, run, kill_again):
        self.b.natractl("gc")
        if Run("check", ID).code == 0:
            # It was killed while it reported its success.
            self.b.must_be_shaped(self.policy)
            self.b.detach()
        self.b.must_be(self.b.clean, run.made)
        self.begin()
        run = kill_again()
        self.b.attach(*OLD, *self.options)
        self.b.must_be_shaped(self.policy)
        self.b.detach()
        self.b.must_be(self.b.clean, run.made)


class Killed:
    """Kills a command on a live attachment: attach repairs the state, and nothing old
    stays."""

    kills = True

    def killed(self, run, _):
        records = [p for p in pins() if p.endswith("/meta")]
        if len(records) > 1 and Run("check", ID).code == 0:
            raise Bad(f"CHECK passes beside {records}")
        self.old += run.made + self.b.attach(*OLD, *self.options).made
        self.b.must_be_shaped(self.policy)
        self.forget()


class KilledSet(Killed, Set):
    name = "kill set"


class KilledSetClasses(Killed, SetClasses):
    """What is left has all that was set before, or all that is set now, or CHECK says that
    it has not; gc does not hide that."""

    name = "kill set classes"

    def killed(self, run, kill_again):
        for gc in (False, True):
            if gc:
                self.b.natractl("gc")
            if Run("check", ID).code == 0:
                shown = json.loads(Run("show", ID, "--json").out)
                has = (shown["policy"]["ingress_rate_bits_per_sec"],
                       [(c["egress_rate_bits_per_sec"], c["dscps"], c["subnets"])
                        for c in shown["classes"]])
                if has not in ((self.policy[0], [(10**6, [], ["10.1.0.0/16"])]),
                               (self.new_policy[0], [(3 * 10**6, [1],
                                                      ["10.2.0.0/16", "fd00::/8"])])):
                    raise Bad(f"CHECK passes {has}")
        super().killed(run, kill_again)


class KilledReplace(Killed, Replace):
    name = "kill replace"


class KilledUnpace(Killed, Unpace):
    name = "kill unpace"


class KilledDetach(Killed, Detach):
    name = "kill detach"
