#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Limits a pod in the real gVisor, whose network stack has packet sockets on eth0.

Streams pass one way and then the other: the acknowledgements of one are not part of the other's
figure then. What reaches the pod is counted by the host side's own counter, behind natra: no stack
of the kernel's in the pod sees it. No more than the limit may pass. How near to it the streams come
is bounded by what the same ones get by tbf: a sandbox that gets little CPU sends less, and gVisor's
TCP takes long to recover from losses.
"""
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE + "/../harness/python")
from built import built
from commands import sh
from limiters import Natra, Tbf, bits
from meter import wire_rates
from report import skip
from rig import Rig
from script import MODES, option, run_script
from stream import CHUNK_BYTES

CAP = "2M"
PORTS = {"in": 5201, "out": 5202}
STREAMS = 4
BUSYBOX = "/bin/busybox"


class HostSide:
    """Counts what a pod's host side has sent into it, with offloads off."""

    def __init__(self, pod):
        self.path = f"/sys/class/net/{pod.host}/statistics/tx_bytes"

    def read(self):
        with open(self.path) as f:
            return time.monotonic(), int(f.read())


class Sandbox:
    """A container that runs a command in a shell."""

    def __init__(self, r, programs, command):
        directory = f"{r.tmp.name}/bundle"
        self.runsc = [f"{programs}/runsc", f"--root={r.tmp.name}/runsc", "--ignore-cgroups",
                      "--network=sandbox"]
        os.makedirs(f"{directory}/root/bin")
        shutil.copy(BUSYBOX, f"{directory}/root/bin/busybox")
        with open(f"{directory}/config.json", "w") as f:
            json.dump({
                "ociVersion": "1.0.0", "root": {"path": "root"},
                "process": {"user": {"uid": 0, "gid": 0}, "cwd": "/", "env": ["PATH=/bin"],
                            "args": ["/bin/busybox", "sh", "-c", command]},
                "mounts": [{"destination": "/proc", "type": "proc", "source": "proc"},
                           {"destination": "/dev", "type": "tmpfs", "source": "tmpfs"}],
                "linux": {"namespaces": [{"type": "pid"}, {"type": "mount"}, {"type": "ipc"},
                                         {"type": "network", "path": r.pod.path}]}}, f)
        self.process = subprocess.Popen([*self.runsc, "run", "--bundle", directory, "box"],
                                        stdin=subprocess.DEVNULL)

    def end(self):
        sh(*self.runsc, "kill", "box", "KILL", check=False)
        self.process.wait(20)


def serve():
    """Send to who connects to the first port, and receive from who does to the second."""
    def work(way, s):
        data = bytearray(CHUNK_BYTES)
        while True:
            if way == "in":
                s.sendall(data)
            elif not s.recv_into(data):
                return

    def accept(way, listener):
        while True:
            s, _ = listener.accept()
            threading.Thread(target=work, args=(way, s), daemon=True).start()

    for way, port in PORTS.items():
        listener = socket.socket()
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"cubic")
        listener.bind(("", port))
        listener.listen()
        threading.Thread(target=accept, args=(way, listener), daemon=True).start()
    threading.Event().wait()


def scene(rep, a, mode, way):
    with Rig(offloads=False) as r:
        r.client.fork(serve)
        r.wait_port(r.client, PORTS[way])
        meter = HostSide(r.pod) if way == "in" else r.out_of()
        limit = Natra(r.pod, "--attach-mode", mode, "--fast-pass", "off").attach(CAP, CAP)
        stream = f"busybox nc {r.client.ip} {PORTS[way]}"
        stream = f"sleep 600 | {stream} >/dev/null" if way == "in" else f"{stream} </dev/zero"
        box = Sandbox(r, a.programs, f"{stream} & " * STREAMS + "wait")
        try:
            r.wait_flow(meter)
            time.sleep(a.settle)
            rate, = wire_rates([meter], a.seconds)
            limit.detach()
            without, = wire_rates([meter], 2)
            Tbf(r.pod).attach(CAP, CAP)
            time.sleep(a.settle)
            by_tbf, = wire_rates([meter], a.seconds)
        finally:
            box.end()
    rep.shown(f"{mode}, {way}: without natra, of the limit", f"{without / bits(CAP):.1f}")
    rep.shown("  by tbf", f"{by_tbf / bits(CAP):.3f}")
    rep.most("  by natra", rate / bits(CAP), 1.02, " of the limit")
    rep.least("  by natra", rate / max(by_tbf, 1), 0.25, " of tbf's")
    return rate / bits(CAP), by_tbf / bits(CAP)


def main(rep, a):
    print("| gVisor, in parts of the limit | in | by tbf | out | by tbf |\n|---|---|---|---|---|")
    for mode in a.mode.split(",") if a.mode else Natra.modes():
        found = [rep.measure(f"{mode}, {way}", scene, rep, a, mode, way) for way in PORTS]
        print("| " + " | ".join((mode, *(f"{part:.2f}" for of in found for part in of))) + " |")


def prepare(a):
    if not os.path.exists(BUSYBOX):
        skip("busybox is not installed (tools/install-deps neighbours)")
    a.programs = built("gvisor")


if __name__ == "__main__":
    run_script(main, MODES, option("--seconds", type=float, default=6),
               option("--settle", type=float, default=6), prepare=prepare)
