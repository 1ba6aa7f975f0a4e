#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The container that the manifest describes installs, limits a running pod and keeps
what others limit; without any one of its capabilities it does not. Needs root."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

import cache
from container import (make_root, readyz, sh, start, start_pod, stop, write_result)

IMAGE = os.environ.get("NATRA_IMAGE_ROOT", f"{cache.SOURCE}/build-image/context/rootfs")
RATE = 10_000_000
# The agent with all capabilities is ready before this time, also on a busy machine. One
# that lacks any gets several times what that took, and no less than a few seconds.
LIMIT_S, LACKING_S, TIMES = 30, 4, 4


def isolated():
    """Run this script again as the first process of a node."""
    root = tempfile.mkdtemp(prefix="natra-deploy-")
    try:
        return subprocess.run(
            ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--net",
             "--mount-proc", sys.executable, os.path.abspath(__file__), root],
            timeout=850, stdin=subprocess.DEVNULL).returncode
    finally:
        shutil.rmtree(root)


def natractl(*args):
    return sh("/image/bin/natractl", *args)


def limited():
    return {a["id"] for a in json.loads(natractl("--json", "list"))}


def doctor(pod_spec, capabilities, args):
    """Return what `kubectl natra doctor` finds, which gives the agent's own places."""
    place = [a for a in args if a.startswith(("--root", "--platform", "--net-dir", "--bin-dir"))]
    pid = start(pod_spec, capabilities, ["doctor", "--json", *place], "/tmp/doctor",
                "/bin/natractl", 1)
    os.waitpid(pid, 0)
    text = open("/tmp/doctor").read()
    return {f["check"]: f["text"] for f in json.loads(text)["findings"]} if text else "no answer"


class Trial:
    """One run of the agent with some capabilities on a node without natra."""

    def __init__(self, pod_spec, capabilities, seconds):
        others = start_pod()
        natractl("attach", "eth0", "--netns", f"/proc/{others.pid}/ns/net", "--id",
                 "others", "--ingress-rate", "1M", "--attach-mode", "clsact-podside")
        args = [a for a in pod_spec["containers"][0]["args"] if "NODE_NAME" not in a]
        pid = start(pod_spec, capabilities, args, "/tmp/log")
        begin = time.monotonic()
        self.status, self.body = readyz()
        while self.status != 200 and time.monotonic() < begin + seconds:
            time.sleep(0.1)
            self.status, self.body = readyz()
        self.took_s = time.monotonic() - begin
        self.limited = limited()
        self.log = open("/tmp/log").read()
        self.files = sorted(
            f"{d}/{f}" for top in ("/etc/cni", "/opt/cni") for d, _, names in os.walk(top)
            for f in names)
        self.doctor = None if self.status != 200 else doctor(pod_spec, capabilities, args)
        self.code = stop(pid)
        self.undo()
        others.kill()
        others.wait()

    @staticmethod
    def undo():
        for a in limited():
            natractl("detach", a)
        natractl("uninstall", "--root=/", "--force")
        natractl("gc")

    def wrong(self):
        """Return what the agent has not done."""
        return [text for text, good in {
            "ready": self.status == 200,
            "the runtime's version": "containerd 2.4.2" in self.log,
            "list or drop-in": any("natra" in f for f in self.files if "net.d" in f),
            "plugin": "/opt/cni/bin/natra" in self.files,
            "adopted": "pods/mine/eth0" in self.limited,
            "others' limits stay": "others" in self.limited,
            "ends by SIGTERM": self.code == 0,
            "doctor": self.doctor == {},
        }.items() if not good]


def run(root):
    make_root(root)
    os.makedirs(f"{root}/{cache.SOURCE}")
    sh("cp", "-r", f"{IMAGE}/.", f"{root}/image")
    for name in ("proc", "sys", "dev", "host", "run/netns", "sys/fs/bpf",
                 "var/lib/natra"):
        os.makedirs(f"{root}/image/{name}", exist_ok=True)
    yaml = cache.import_yaml()
    # The version that helm takes for a cluster's is that of its own build.
    chart = yaml.safe_load_all(sh(cache.HELM, "template", "natra", "--kube-version", "1.34.0",
                                  f"{cache.DEPLOY}/chart"))
    spec = next(o for o in chart
                if o["kind"] == "DaemonSet")["spec"]["template"]["spec"]
    os.chroot(root)
    os.chdir("/")
    sh("ip", "link", "set", "lo", "up")
    mine = start_pod("mine")
    write_result("mine", RATE)
    failed, seconds = 0, LIMIT_S
    wanted = spec["containers"][0]["securityContext"]["capabilities"]["add"]
    for without in [None, *wanted]:
        trial = Trial(spec, [c for c in wanted if c != without], seconds)
        if not without:
            seconds = max(LACKING_S, TIMES * trial.took_s)
        wrong = trial.wrong()
        good = bool(wrong) == bool(without)
        print(f"{'ok  ' if good else 'FAIL'} {'without ' + without if without else 'all'}: "
              f"{'missing: ' + ', '.join(wrong) if wrong else 'nothing is missing'}")
        if not good:
            failed += 1
            print(trial.doctor, trial.status, trial.body, trial.files, trial.limited, trial.log)
        sys.stdout.flush()
    mine.kill()
    mine.wait()
    return 1 if failed else 0


def main():
    if os.geteuid():
        print("skipped: needs root")
        return 77
    cache.need(f"{IMAGE}/bin/natra-agent", f"{cache.CACHE}/venv")
    return run(sys.argv[1]) if len(sys.argv) > 1 else isolated()


if __name__ == "__main__":
    sys.exit(main())
