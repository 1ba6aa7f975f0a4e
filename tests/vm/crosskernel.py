#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks a limited pod on one kernel with its client on another, over a link.

The script runs in both VMs of `pair`. First the second VM has the pod and the first
one the client, then the other way round; each turn is judged where the pod is. The
node in front of the pod routes.
"""
import json
import os
import platform
import socket
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

sys.path.insert(0, os.path.dirname(__file__) + "/../harness/python")
from commands import sh
from isolation import isolate
from limiters import Natra, bits
from load import Http
from meter import Meter
from namespaces import Ns, Pod
from percentiles import percentile
from rig import Rig
from script import option, run_script

CALL_PORT = 7000
CAP, RPS = "10M", 10            # requests a second to each pod
# One VM may be up this much later than the other, if it died and was booted again. A
# turn takes less.
TURN_SECONDS = 180
# Requests to the limited pod may take this much longer than those to another pod at the
# same time, because the streams share an emulated CPU with them more often. A request
# that had to wait for the streams' turn would take some 90 ms more, 45 ms each for its
# SYN and for itself.
MICE_SLACK_MS = {50: 40, 99: 90}


class Place:
    """The addresses of one VM, and the numbers of its pods."""

    def __init__(self, index):
        self.index = index
        self.ip = f"10.78.0.{index + 1}"
        self.mac = f"02:77:ff:00:00:0{index}"
        self.pods = 10 + index, 12 + index


def find_card(mac):
    sh("modprobe", "virtio_net", check=False)      # may be built in
    for _ in range(100):
        for address in Path("/sys/class/net").glob("*/address"):
            if address.read_text().strip() == mac:
                return address.parent.name
        time.sleep(0.05)
    raise RuntimeError(f"no network card with the address {mac}")


def places():
    """Return this VM's place and the other's."""
    index = int(os.environ["NATRA_PAIR"])
    return Place(index), Place(1 - index)


def isolate_with_card():
    """Isolates the script and takes the card along into its network namespace."""
    card, outside = find_card(places()[0].mac), os.open("/proc/self/ns/net", os.O_RDONLY)
    isolate()
    sh("nsenter", f"--net=/proc/self/fd/{outside}", "--", "ip", "link", "set", card,
       "netns", str(os.getpid()), pass_fds=(outside,))
    os.close(outside)


def join(card, me, peer):
    """Bring up the link; neighbours are static, as in the pods."""
    sh("ip", "link", "set", card, "up")
    sh("ip", "addr", "add", f"{me.ip}/24", "dev", card)
    sh("ip", "neigh", "replace", peer.ip, "lladdr", peer.mac, "dev", card,
       "nud", "permanent")
    for number in peer.pods:
        sh("ip", "route", "add", f"10.77.{number}.0/24", "via", peer.ip)


class Client:
    """The client's part of the test, whose methods the pod's VM calls."""

    def __init__(self, node):
        self.node = node

    def release(self):
        return platform.release()

    def start(self, *argv):
        self.node.popen(*argv)

    def wait_port(self, port):
        Rig.wait_port(self.node, port)

    def stop(self):
        self.node.stop(*list(self.node._procs))

    def meter(self):
        return Meter(self.node).read()

    def requests(self, ips, rps, seconds):
        """Open connections to each of the addresses on a clock. Return percentiles in ms
        for each, and how many failed."""
        with ThreadPoolExecutor(len(ips)) as pool:
            return list(pool.map(lambda ip: self._requests(ip, rps, seconds), ips))

    @staticmethod
    def _requests(ip, rps, seconds):
        http = Http(SimpleNamespace(ip=ip, port=80, path="/file", timeout=3))
        http.run(rps, seconds)
        times = sorted(http.times)
        return [percentile(times, p) * 1e3 for p in (50, 99)] + [http.failed]


class Far:
    """Calls the Client in the other VM. A call is a line with its name and
    arguments."""

    def __init__(self, peer):
        self.lines = self.connect(peer).makefile("rw")

    @staticmethod
    def connect(peer):
        """Connect to the other VM, which may still boot or run its turn with the
        pod."""
        deadline = time.monotonic() + TURN_SECONDS
        while True:
            try:
                s = socket.create_connection((peer.ip, CALL_PORT), 5)
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.2)
            else:
                s.settimeout(TURN_SECONDS)      # of a call
                return s

    def close(self):
        self.lines.close()

    def __getattr__(self, name):
        def call(*args):
            print(json.dumps([name, *args]), file=self.lines, flush=True)
            return json.loads(self.lines.readline())
        return call


def serve(me, node):
    """Be the client's part until the pod's closes the connection."""
    client = Client(node)
    with socket.create_server((me.ip, CALL_PORT)) as listener:
        listener.settimeout(TURN_SECONDS)
        connection, _ = listener.accept()
    with connection:
        lines = connection.makefile("rw")
        for line in lines:
            name, *args = json.loads(line)
            print(json.dumps(getattr(client, name)(*args)), file=lines, flush=True)
    client.stop()


class Site(Rig):
    """A rig with two pods but without a client, which is in the other VM."""

    def __init__(self, node, numbers):
        self.node, self.clients = node, []
        self.pods = [Pod(f"pod{i}", number) for i, number in enumerate(numbers)]
        self.pod = self.pods[0]
        self.tmp = tempfile.TemporaryDirectory(prefix="natra-pair-")


def rate_mbit(read, seconds):
    t0, b0 = read()
    time.sleep(seconds)
    t1, b1 = read()
    return (b1 - b0) * 8 / (t1 - t0) / 1e6


def streams(r, far, peer, way):
    """Start four streams into the pod or out of it. Return a function that reads their
    meter."""
    options = ("-P", "4", "-t", "60", "-i", "0", "-C", "cubic")
    if way == "in":
        r.pod.popen("iperf3", "-s", "-p", "5201")
        r.wait_port(r.pod, 5201)
        far.start("iperf3", "-c", r.pod.ip, "-p", "5201", *options)
        return r.into().read
    far.start("iperf3", "-s", "-p", "5202")
    far.wait_port(5202)
    r.pod.popen("iperf3", "-c", peer.ip, "-p", "5202", *options)
    return far.meter


def judge(rep, what, natra, beside, other):
    show, stats = natra.show(), natra.stats()
    rep.shown(what, show["mode"])
    rep.equal(f"{what}: egress has departure times, ingress a pacer",
              (show["edt_active"], show["pace_active"]), (True, True))
    for direction in ("ingress", "egress"):
        rep.least(f"{what}: {direction}, packets paced",
                  stats[direction]["paced"]["packets"], 100)
    rep.shown("requests to the other pod", f"p50 {other[0]:.1f}, p99 {other[1]:.1f} ms")
    rep.most(f"{what}: requests beside streams that failed", beside[2], 0)
    for i, percent in enumerate((50, 99)):
        rep.most(f"{what}: p{percent} of requests beside streams", beside[i],
                 other[i] + MICE_SLACK_MS[percent], " ms")


def capped(r, rep, a, what, far, peer):
    """Measure the pod under its limits: streams each way, and requests beside them and
    to the other pod."""
    ips = [pod.ip for pod in r.pods]
    far.requests(ips, RPS, 0.3)
    natra = Natra(r.pod, "--ingress-mode", "pace").attach(CAP, CAP)
    for way in ("in", "out"):
        procs = list(r.pod._procs)
        read = streams(r, far, peer, way)
        time.sleep(a.settle)
        rep.near(f"{what}: {way}", rate_mbit(read, a.seconds),
                 bits(CAP) / 1e6, 0.02, " Mbit/s")
        if way == "in":
            beside, other = far.requests(ips, RPS, a.requests)
        far.stop()
        r.stop([p for p in r.pod._procs if p not in procs])
    judge(rep, what, natra, beside, other)
    natra.detach()


def measure(rep, a, me, peer, node):
    """Run the pod's part."""
    far, kernel = Far(peer), platform.release()
    client_kernel = far.release()
    what = f"{client_kernel.split('-')[0]} to {kernel.split('-')[0]}"
    rep.true(f"{what}: two kernels", client_kernel != kernel)
    with Site(node, me.pods) as r:
        for pod in r.pods:
            r.nginx(pod=pod)
        rep.measure(what, capped, r, rep, a, what, far, peer)
    far.close()


def main(rep, a):
    me, peer = places()
    node = Ns()
    join(find_card(me.mac), me, peer)
    if me.index == 0:
        serve(me, node)
        measure(rep, a, me, peer, node)
    else:
        measure(rep, a, me, peer, node)
        serve(me, node)


if __name__ == "__main__":
    run_script(main,
        option("--seconds", type=float, default=2.5),
        option("--requests", type=float, default=3, metavar="SECONDS"),
        option("--settle", type=float, default=1.5),
        isolate=isolate_with_card)
