# SPDX-License-Identifier: BSD-2-Clause
"""Runs a real containerd in the namespaces of place.py. A client of its interface (cri/)
starts pods in the place of a kubelet."""
import atexit
import os
import shutil
import subprocess
import sys
import tempfile
import time

import gotest

sys.path.append(str(gotest.ROOT / "tests/kube"))
from commands import sh  # noqa: E402
from image import PAUSE, write_pause  # noqa: E402
from namespaces import Ns  # noqa: E402
from node import (BIN_DIR, CONTAINERD_2, DEBIAN_CNI, NET_DIR, SOCKET,  # noqa: E402
                  Program, wait, write, write_network)
from report import skip  # noqa: E402

PROGRAMS = ("runc", "nft")
WORK = "/run/runtime-test"
SECONDS = 60


def prepare(arguments):
    """Build containerd and its client, or skip. This must be called before the machine's
    directories are hidden."""
    for name in PROGRAMS:
        if not shutil.which(name):
            skip(f"{name} (tools/install-deps kube)")
    if not os.path.exists(f"{DEBIAN_CNI}/ptp"):
        skip("ptp (tools/install-deps cni)")
    built = subprocess.run([gotest.ROOT / "tests/kube/build", "containerd"], text=True,
                           stdout=subprocess.PIPE)
    if built.returncode:
        skip("containerd (tests/kube/build says why)")
    arguments.bin = built.stdout.strip()
    arguments.tmp = tempfile.mkdtemp(prefix="natra-runtime-", dir="/var/tmp")
    # The process that stays outside of the node's file systems has to do it.
    atexit.register(remove, arguments.tmp, os.getpid())
    gotest.go(gotest.HERE / "cri", "build", "-o", f"{arguments.tmp}/cri", ".")


def remove(path, pid):
    if os.getpid() == pid:
        shutil.rmtree(path)


class Runtime:
    """containerd, with a list that has ptp alone. `plugins` are other plugins that lists
    may name: their paths by their types."""

    def __init__(self, arguments, plugins):
        self.cri = f"{arguments.tmp}/cri"
        os.environ["PATH"] = f"{arguments.bin}:{os.environ['PATH']}"
        for path in (WORK, NET_DIR, BIN_DIR):
            os.makedirs(path, exist_ok=True)
        for name in ("ptp", "host-local", "loopback"):
            shutil.copy(f"{DEBIAN_CNI}/{name}", BIN_DIR)
        # A copy of natra would not find the library of the build.
        for name, path in plugins.items():
            os.symlink(path, f"{BIN_DIR}/{name}")
        write_network()
        sh("ip", "link", "set", "lo", "up")
        self.conf = write(f"{WORK}/containerd.toml", CONTAINERD_2.format(
            image=PAUSE, bin=BIN_DIR, net=NET_DIR))
        self.start()
        write_pause(f"{WORK}/pause.tar")
        sh("ctr", "-n", "k8s.io", "images", "import", f"{WORK}/pause.tar",
           timeout=SECONDS)

    def start(self):
        self.program = Program("containerd", "containerd", "--config", self.conf)
        wait(self.ready, self.program.tail)

    def ready(self):
        self.program.running()
        return not subprocess.run([self.cri, SOCKET, "ready"], stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL).returncode

    def run(self, name, *annotations):
        """Start a pod and return it, with the seconds that this took."""
        begin = time.monotonic()
        pod = sh(self.cri, SOCKET, "run", name, *annotations, timeout=SECONDS).strip()
        return Started(self, pod, time.monotonic() - begin)

    def started(self, name, good, *annotations, after=lambda: None):
        """Return a pod for which good(pod) is true. One that is not is stopped, after() is
        called, and another is started: containerd reads a new list a moment later."""
        def one():
            pod = self.run(f"{name}-{time.monotonic_ns()}", *annotations)
            if good(pod):
                return pod
            pod.stop()
            after()
            return None

        return wait(one, self.program.tail)


class Started(Ns):
    """A pod that containerd has started."""

    def __init__(self, runtime, pod, seconds):
        self.runtime, self.id, self.seconds = runtime, pod, seconds
        state, netns, self.ip = sh(runtime.cri, SOCKET, "status", pod).split()
        self.runs = state == "SANDBOX_READY"
        super().__init__(os.path.basename(netns), exists=True)

    def stop(self):
        os.close(self.fd)
        sh(self.runtime.cri, SOCKET, "stop", self.id, timeout=SECONDS)
