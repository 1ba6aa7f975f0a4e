# SPDX-License-Identifier: BSD-2-Clause
"""A lane for fair.py: a pod behind a limiter, and what flows through it in one
direction."""
import os
import shutil
import socket
import sys
import time
from types import SimpleNamespace

from commands import sh
from isolation import BPFFS
from limiters import Natra, bits, limiter
from load import udp_send
from stream import Streams, child, end

# The way of a lane says whether it leads into the pod, natra's options for it, and the
# round trip in ms where netem can make one: two segments of a policed TCP that is 50 us
# away are more in flight than any cap here holds.
WAYS = {"edt": (False, ("--edt-pacing", "on"), 0),
        "pace": (True, ("--ingress-mode", "pace"), 10),
        "police": (True, ("--ingress-mode", "police"), 10),
        "out": (False, (), 0),
        "in": (True, (), 10)}
# The limiters that are natra, with the options of each; `before` is another build.
NATRAS = {"natra": (), "strict": ("--fast-pass", "strict"), "before": ()}
UDP_PORT = 5300
LANES = 4           # with more at once an emulated CPU measures itself


def ways_of(name, fq):
    """Return the ways to try a limiter. Senders are beyond what drops packets, because
    a drop where the sender itself is would be congestion that TCP is told of."""
    if name not in NATRAS:
        return ("out", "in")
    return ("edt", "pace", "police") if fq else ("police",)


def use_build(natractl):
    """Let natractl be this one, and forget what another one pinned."""
    if os.environ.get("NATRACTL") != natractl:
        shutil.rmtree(f"{BPFFS}/natra", ignore_errors=True)
    os.environ["NATRACTL"] = natractl


class Lane:
    """A pair of a pod and a client."""

    def __init__(self, r, number, netem):
        self.r, self.number, self.netem = r, number, netem
        self.pod, self.client = r.pods[number], r.clients[number]

    def start(self, name, way, rate, rtt_ms=None, options=()):
        """Limit the pod to a rate in the direction of the way."""
        self.into, words, own_rtt_ms = WAYS[way]
        self.rtt_ms = own_rtt_ms if rtt_ms is None else rtt_ms
        self.cap = bits(rate)
        ends = (self.client, self.pod)
        self.src, self.dst = ends if self.into else ends[::-1]
        if not self.netem:
            self.rtt_ms = 0
        if self.rtt_ms:
            self.r.netem(self.rtt_ms, [self.number])
        self.limiter = Natra(self.pod, *words, *NATRAS[name], *options) \
            if name in NATRAS else limiter(name, self.pod)
        self.limiter.attach(*((rate, None) if self.into else (None, rate)))

    def stop(self):
        self.limiter.detach()
        if self.rtt_ms:
            self.client.run("tc", "qdisc", "del", "dev", "eth0", "root")
            sh("tc", "qdisc", "del", "dev", self.client.host, "root")

    def meter(self, header):
        number = self.number
        return self.r.into(number, header) if self.into else \
            self.r.out_of(number, header)

    def streams(self, congestion, ecn=False, **kw):
        """Start a stream for each congestion control, in the lane's direction."""
        self.src.sysctl("net.ipv4.tcp_ecn", "1" if ecn else "2")
        return Streams(self.src, self.dst, congestion, **kw)

    def flood(self, rate, port=UDP_PORT, **options):
        return Flood(self.src, self.dst, port, rate, **options)


class Flood:
    """Sends datagrams at a rate, even if they are dropped. With `pause` it rests for
    that many seconds, and then sends for as many."""

    def __init__(self, src, dst, port, rate, **options):
        a = SimpleNamespace(ip=dst.ip, port=port, rate=rate, size=1400, tos=0, ports=1,
                            clock=None, no_wait=False, segments=0,
                            seconds=3600, count=float("inf"), pause=0)
        vars(a).update(options)
        a.seconds = a.pause or a.seconds
        # Nobody reads: the counters of IP say what arrives. But without a socket there
        # would be an ICMP answer to each datagram.
        with dst:
            self._sink = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._sink.bind((dst.ip, port))
        self._child = child(self._run, src, a)

    @staticmethod
    def _run(src, a):
        # The script's output must not have what udp_send prints at its end.
        sys.stdout = open(os.devnull, "w")
        with src:
            while True:
                udp_send(a)
                time.sleep(a.pause)

    def close(self):
        end(self._child)
        self._sink.close()
