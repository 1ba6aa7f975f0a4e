# SPDX-License-Identifier: BSD-2-Clause
"""The jobs for the CNI plugin: whatever fails, the runtime gets a result or one error
object, and DEL and gc leave nothing."""
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../cni")
from jobs import Attach, Bad, Live, Run
from plugin import Answer, find_natra, malformed
from commands import sh
from isolation import BPFFS, NETNS_DIR

RATES = {"ingressRate": 10**7, "egressRate": 2 * 10**7}


def use_one_bpffs():
    """Bind the test's bpffs to the usual path, because the plugin has no option for
    it."""
    sh("umount", "/sys/fs/bpf")
    sh("mount", "--bind", BPFFS, "/sys/fs/bpf")


class CniRun(Run):
    """One run of the plugin."""

    def __init__(self, command, bench, attach_mode, mode="count", at=0,
                 error=0, **keys):
        self.args = (command,)
        path = f"{NETNS_DIR}/{bench.pod.name}"
        conf = dict({"cniVersion": "1.1.0", "name": "faults", "type": "natra",
                     "attachMode": attach_mode, "logFile": "/dev/null",
                     "runtimeConfig": {"bandwidth": RATES},
                     "prevResult": {"cniVersion": "1.1.0", "interfaces": [
                             {"name": "eth0", "sandbox": path}], "ips": []}},
                    **keys)
        env = {"CNI_COMMAND": command, "CNI_CONTAINERID": "fault.case",
               "CNI_IFNAME": "eth0", "CNI_NETNS": path,
               "CNI_PATH": "/opt/cni/bin"}
        self.run(find_natra(), ["natra"], mode, at, error, json.dumps(conf),
                 env)

    def expect(self, *codes):
        answer = Answer(self.code, self.out, self.err, 0)
        if self.code not in codes:
            raise Bad(f"{self.args[0]}: {answer}")
        wrong = malformed(answer, self.args[0])
        if wrong or self.err:
            raise Bad(f"{self.args[0]}: {wrong or self.err}")
        return self


class Cni:
    """A job that runs a command of the plugin."""

    command = "?"
    keys = {}

    def run(self, **fault):
        return CniRun(self.command, self.b, self.mode, **self.keys, **fault)

    def remove(self, made):
        """Clean up as a runtime does, which trusts nothing but the success of the last
        DEL."""
        CniRun("DEL", self.b, self.mode).expect(0)
        self.b.natractl("gc")
        self.b.must_be(self.b.clean, made)


class CniAdd(Cni, Attach):
    name = "ADD"
    command = "ADD"

    def failed(self, run):
        state = self.b.watch.snapshot()
        hooks = ("host", "pod", "tcx host", "tcx pod")
        # The interface must be as before, unless only the report of the success failed:
        # then it must be fully shaped.
        if any(state[h] != self.b.clean[h] for h in hooks):
            CniRun("CHECK", self.b, self.mode).expect(0)
        self.remove(run.made)

    def succeeded(self, run):
        CniRun("CHECK", self.b, self.mode).expect(0)
        self.remove(run.made)

    def end(self):
        self.remove([])

    def killed(self, run, kill_again):
        self.remove(run.made)
        self.begin()
        again = kill_again()
        CniRun("ADD", self.b, self.mode).expect(0)
        self.succeeded(again)


class CniLive(Cni, Live):
    """A job on an attachment that ADD has made."""

    def begin(self):
        if self.before is None:
            self.old = CniRun("ADD", self.b, self.mode).expect(0).made
            self.before = self.b.watch.snapshot()

    def forget(self):
        self.remove(self.old)
        self.before = None


class CniDel(CniLive):
    name = "DEL"
    command = "DEL"

    def failed(self, run):
        self.old += run.made
        self.forget()

    def succeeded(self, run):
        self.failed(run)

    def killed(self, run, _):
        self.failed(run)


class CniGc(CniLive):
    """GC on a node where all pods are valid, and on one where none is."""

    name = "GC"
    command = "GC"
    keys = {"cni.dev/valid-attachments": [
            {"containerID": "fault.case", "ifname": "eth0"}]}

    def failed(self, run):
        CniRun("CHECK", self.b, self.mode).expect(0)
        self.b.must_be(self.before, run.made)

    def succeeded(self, run):
        self.failed(run)


class CniGcAll(CniDel):
    name = "GC, nothing valid"
    command = "GC"
    keys = {"cni.dev/valid-attachments": []}
