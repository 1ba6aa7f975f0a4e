#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks that nobody on a bridge keeps a limited pod from resolving addresses.

One pod asks for addresses that nobody has, as fast as it can: the bridge sends each of
these broadcasts to all others. Meanwhile the limited pod resolves the addresses of a peer,
and the peer those of the pod.
"""
import os
import socket
import struct
import sys
import time

sys.path.insert(0, os.path.dirname(__file__) + "/../harness/python")
from limiters import Natra
from script import MODES, option, run_script
from wirings import Wiring

RATE = "100k"
ADDRESSES = 5
FLOOD = 3000                    # in a second
WAIT_S = 0.9                    # less than until the kernel asks again


def own(end, version):
    """Return more addresses of an end."""
    n = end.number
    return [f"10.88.0.{100 + 10 * (n - 10) + i}" if version == 4 else f"fd88::{n}:{i + 1}"
            for i in range(ADDRESSES)]


def arp_request(src, n):
    return (b"\xff" * 6 + src + struct.pack("!HHHBBH", 0x806, 1, 0x800, 6, 4, 1) + src +
            bytes([10, 88, 9, 1]) + bytes(6) + struct.pack("!I", 10 << 24 | n)).ljust(60, b"\0")


def solicitation(src, n):
    """The checksum is wrong, which no bridge looks at."""
    body = struct.pack("!BBHI", 135, 0, 0, 0) + socket.inet_pton(
            socket.AF_INET6, f"fd88::9:{n % 65536:x}") + b"\1\1" + src
    return (b"\x33\x33\0\0\0\1" + src + struct.pack("!HIHBB", 0x86dd, 6 << 28, len(body),
                                                    58, 255) +
            socket.inet_pton(socket.AF_INET6, "fe80::9") +
            socket.inet_pton(socket.AF_INET6, "ff02::1") + body)


def flood(version, seconds):
    """Ask, with the interface's own MAC address."""
    make = arp_request if version == 4 else solicitation
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    s.bind(("eth0", 0))
    src = s.getsockname()[4]
    start = time.monotonic()
    n = 0
    while time.monotonic() - start < seconds:
        s.send(make(src, n))
        n += 1
        time.sleep(max(0, start + n / FLOOD - time.monotonic()))
    print(n / (time.monotonic() - start))


def resolved(asker, other, version):
    """Return how many of the other's addresses are resolved in time."""
    asker.run("ip", f"-{version}", "neigh", "flush", "dev", "eth0")
    family = socket.AF_INET if version == 4 else socket.AF_INET6
    with asker:
        s = socket.socket(family, socket.SOCK_DGRAM)
    for address in own(other, version):
        s.sendto(b"", (address, 9))
    time.sleep(WAIT_S)
    s.close()
    known = [line.split() for line in
             asker.run("ip", f"-{version}", "neigh", "show", "dev", "eth0").splitlines()]
    return sum(line[0] in own(other, version) and "lladdr" in line for line in known)


def during(rep, what, version, pod, peer, flooder, rounds):
    sender = flooder.fork(flood, version, rounds * 2 * (WAIT_S + 0.2) + 1)
    time.sleep(0.7)
    got = [[resolved(*ends, version) for _ in range(rounds)]
           for ends in ((pod, peer), (peer, pod))]
    out, _ = sender.communicate(timeout=60)
    flooder.stop(sender)
    rep.least(f"{what}: questions of the neighbour, in a second", float(out), FLOOD / 3)
    for who, some in zip(("pod", "peer"), got):
        rep.equal(f"{what}: addresses that the {who} resolves, of {ADDRESSES * rounds}",
                  sum(some), ADDRESSES * rounds, exact=False)


def main(rep, a):
    (pod, peer), (flooder, _) = Wiring("bridge", [1500, 1500]).pairs
    for end in (pod, peer):
        for version in (4, 6):
            for address in own(end, version):
                end.run("ip", "addr", "add", f"{address}/{24 if version == 4 else 64}",
                        "dev", "eth0", *(["nodad"] if version == 6 else []))
    for mode in a.mode.split(",") if a.mode else Natra.modes():
        lim = Natra(pod, "--attach-mode", mode).attach(RATE, RATE)
        for version, name in ((4, "ARP"), (6, "neighbour discovery")):
            rep.measure(f"{mode} {name}", during, rep, f"{mode}, {name}", version, pod, peer,
                        flooder, a.rounds)
        lim.detach()


if __name__ == "__main__":
    run_script(main, MODES, option("--rounds", type=int, default=2))
