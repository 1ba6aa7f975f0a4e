#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The packages are upgraded to those of a build of the next ABI and taken back, under a pod's traffic.

What passes in any 10 ms of it is compared with the same streams without natra.
"""
import json
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE / "../harness/python")]
import machine
from isolation import isolate
from machine import SOURCE, run, within
from report import Report, skip
from rig import Elephant, Rig

RATE = 10_000_000
SHORT = 0.01
# Each of the two versions lets a burst of half a second pass at once: 50 times what the cap
# carries in 10 ms.
MOST = 120
LIMIT = ("attach", "eth0", "--netns", "pod0", "--id", "shop/web", "--ingress-rate", "10M",
         "--egress-rate", "10M")


class Recorder(threading.Thread):
    """Reads two meters all the time, and knows the most that came in a span."""

    def __init__(self, meters):
        super().__init__(daemon=True)
        self.meters, self.rows, self.ends = meters, [[] for _ in meters], False
        self.start()

    def run(self):
        while not self.ends:
            for rows, meter in zip(self.rows, self.meters):
                rows.append(meter.read())
            time.sleep(0.002)

    def end(self, seconds=SHORT):
        """Stop, and return the highest rate of each meter in a span, in parts of the cap."""
        self.ends = True
        self.join()
        best = [0, 0]
        for i, rows in enumerate(self.rows):
            first = 0
            for now, count in rows:
                while now - rows[first + 1][0] >= seconds:
                    first += 1
                then, old = rows[first]
                if now - then >= seconds:
                    best[i] = max(best[i], (count - old) * 8 / (now - then) / RATE)
        return best


def streams(rig):
    found = [Elephant(rig, rig.pod, rig.client, 5201, "out"),
             Elephant(rig, rig.client, rig.pod, 5202, "into")]
    rig.wait_flow(*rig.meters())
    return found


def natractl(root, *args, code=0):
    return within(root, "/usr/sbin/natractl", *args, code=code)


def foreseen(root):
    """Return what the installed natractl says of the pod before anything is done."""
    p = subprocess.run(["chroot", root, "/usr/sbin/natractl", "upgrade", "--check", "--json"],
                       text=True, stdout=subprocess.PIPE, timeout=60)
    return [a["upgrade"] for a in json.loads(p.stdout)], p.returncode


def change(report, rig, root, revision, what):
    """Install the packages of a revision, and let their natractl replace the limits."""
    def install():
        within(root, "dpkg", "-i", "--force-downgrade",
               *(f"/packages/packages-amd64-{revision}/{p.name}" for p in sorted(
                   Path(root, f"packages/packages-amd64-{revision}").glob("*.deb"))
                 if "-dev_" not in p.name))

    recorder = Recorder(rig.meters())
    install()
    report.equal(f"{what}: upgrade --check", foreseen(root), (["refused"], 3))
    natractl(root, *LIMIT)
    time.sleep(1)
    for way, most in zip(("into", "out of"), recorder.end()):
        report.most(f"  most in any 10 ms {way} the pod, of the cap", most, MOST)
    report.equal("  upgrade --check then", foreseen(root), (["current"], 0))
    return json.loads(natractl(root, "show", "shop/web", "--json"))["abi"]


def main():
    machine.need()
    if not shutil.which("rpmbuild"):
        skip("rpmbuild (tools/install-deps release)")
    report = Report()
    with tempfile.TemporaryDirectory(prefix="natra-upgrade-", dir="/var/tmp") as work:
        machine.packages("amd64", work)
        run(SOURCE / "tools/package/stage", "amd64", f"{work}/next", "-Dnext_abi=true")
        run(SOURCE / "tools/package/build", "--revision", 2, "amd64", f"{work}/next",
            f"{work}/packages-amd64-2")
        isolate()
        root = machine.make_root("debian", work)
        with Rig() as rig:
            recorder = Recorder(rig.meters())
            streams(rig)
            time.sleep(2)
            report.least("without natra: most in any 10 ms, of the cap",
                         min(recorder.end()), 1.5 * MOST)
            within(root, "dpkg", "-i", *(f"/packages/packages-amd64-1/{p.name}" for p in sorted(
                Path(work, "packages-amd64-1").glob("*.deb")) if "-dev_" not in p.name))
            machine.share_pods(root)
            natractl(root, *LIMIT)
            first = json.loads(natractl(root, "show", "shop/web", "--json"))["abi"]
            time.sleep(2)
            report.equal("the next ABI", change(report, rig, root, 2, "upgrade"), first + 1)
            report.equal("the first ABI", change(report, rig, root, 1, "rollback"), first)
            natractl(root, "detach", "shop/web")
            rig.stop(None)
    report.end()


if __name__ == "__main__":
    main()
