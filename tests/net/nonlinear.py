#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks that natra reads headers that are outside the linear area of a packet.

No kernel's BPF_PROG_TEST_RUN makes such packets, but a packet socket does. In front of
natra stands a program that drops every packet whose IP header is linear, so natra
cannot have read the packets that it counts then directly. The flow must be the one that
the same headers have in a linear packet.
"""
import errno
import os
import sys
import time

sys.path.insert(0, os.path.dirname(__file__) + "/../harness/python")
import bpfsys
from frames import Sender, eth, ext6, ip4, ip6, tcp, udp
from isolation import BPFFS
from limiters import Natra, total
from rig import Rig
from script import run_script

SIZE = 6000                     # of the payload, in bytes
COPIES = 3
IP_ENDS = 14 + 20
VLAN = (0x8100, 5)

# Each makes a frame with a payload. The linear ones of the first four take natra's fast
# path.
FRAMES = {
        "IPv4 TCP": lambda p: eth(0x800, ip4(6, tcp(p))),
        "IPv4 UDP": lambda p: eth(0x800, ip4(17, udp(p))),
        "IPv6 TCP": lambda p: eth(0x86dd, ip6(6, tcp(p))),
        "IPv6 UDP": lambda p: eth(0x86dd, ip6(17, udp(p))),
        "IPv4 UDP with options":
                lambda p: eth(0x800, ip4(17, udp(p), 0, bytes(8))),
        "IPv6 UDP, two extension headers":
                lambda p: eth(0x86dd, ip6(0, ext6(60) + ext6(17) + udp(p))),
        "IPv4 UDP in a VLAN":
                lambda p: eth(0x800, ip4(17, udp(p)), VLAN),
}


class Gate:
    """Drops linear packets, in front of natra's filter where an interface sends."""

    def __init__(self, ns, dev):
        self.where = (ns, "dev", dev, "egress", "prio", "1")
        self.pin = f"{BPFFS}/drop_linear_{dev}"
        prog = bpfsys.load_drop_linear(IP_ENDS)
        bpfsys.pin(prog, self.pin)
        os.close(prog)
        self._tc("add", "bpf", "direct-action", "object-pinned", self.pin)

    def _tc(self, verb, *more):
        ns, *where = self.where
        ns.run("tc", "filter", verb, *where, *more)

    def close(self):
        self._tc("del")
        os.unlink(self.pin)


def flows(lim, direction, packets):
    """Return (packets, bytes) of each flow, once natra has counted that many
    packets."""
    end = time.monotonic() + 2
    while total(lim.stats()[direction], "packets") < packets and \
            time.monotonic() < end:
        time.sleep(0.01)
    return [(f["packets"], f["bytes"])
            for f in lim.json("top", lim.id)[direction]]


def one(rep, lim, direction, at, name, frame):
    small, large = frame(b"x"), frame(bytes(SIZE))
    sender = Sender(*at)
    lim.attach("10G", "10G")
    sender.plain.send(small)
    before = flows(lim, direction, 1)
    gate = Gate(*at)
    try:
        sender.plain.send(small)        # the gate drops it
    except OSError as e:
        if e.errno != errno.ENOBUFS:
            raise
    for _ in range(COPIES):
        sender.send_nonlinear(large)
    after = flows(lim, direction, 1 + COPIES)
    gate.close()
    lim.detach()
    rep.equal(f"{direction} {name}: linear", before, [(1, len(small))])
    rep.equal(f"{direction} {name}: and not linear", after,
              [(1 + COPIES, len(small) + COPIES * len(large))])


def main(rep, _):
    with Rig(mtu=9000) as r:
        time.sleep(2.5)         # the kernel's multicast reports are out by then
        # The gate is a filter, which has its place behind TCX programs. All
        # flows are heavy, so that all are listed.
        lim = Natra(r.pod, "--attach-mode", "clsact-podside", "--fast-pass", "off")
        # The host side judges what comes into the pod.
        for direction, at in (("ingress", (r.node, r.pod.host)), ("egress", (r.pod, "eth0"))):
            for name, frame in FRAMES.items():
                one(rep, lim, direction, at, name, frame)


if __name__ == "__main__":
    run_script(main)
