#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks the time from SYN to SYN-ACK that natra measures (attach --sli on) by real
connections: it tells a slow application from a limit that is tight.

Who answers after a known time is a process behind a tun device, in the pod or beyond it:
to what is sent to an address there it answers by itself, and the SYN and its answer pass
the pod's interface as those of any server.
"""
import fcntl
import glob
import os
import re
import select
import socket
import struct
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(__file__) + "/../harness/python")
from commands import bpftool, sh
from frames import checksum, ip4
from isolation import BPFFS
from limiters import Natra, dropped, total
from report import skip
from rig import Rig
from script import option, run_script

DELAY = 0.020
CONNECTIONS = 20
PORT = 80
TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 1, 0x1000
SYN, RST, ACK = 2, 4, 16


class Responder:
    """Answers each SYN to `address` after `delay` seconds, in a thread."""

    def __init__(self, ns, address, delay):
        self.delay, self.address = delay, address
        with ns:
            self.fd = os.open("/dev/net/tun", os.O_RDWR | os.O_CLOEXEC)
            fcntl.ioctl(self.fd, TUNSETIFF,
                        struct.pack("16sH22x", b"slow", IFF_TUN | IFF_NO_PI))
        ns.run("ip", "link", "set", "slow", "up")
        ns.run("ip", "route", "add", address, "dev", "slow")
        ns.sysctl("net/ipv4/ip_forward", "1")
        self.ended = False
        self.thread = threading.Thread(target=self.serve)
        self.thread.start()

    def serve(self):
        while not self.ended:
            if select.select([self.fd], [], [], 0.1)[0]:
                packet = os.read(self.fd, 2000)
                if packet[0] >> 4 == 4 and packet[9] == socket.IPPROTO_TCP:
                    self.answer(packet)

    def answer(self, packet):
        segment = packet[(packet[0] & 15) * 4:]
        sport, dport, seq = struct.unpack("!HHI", segment[:8])
        if segment[13] & (SYN | ACK | RST) != SYN:
            return
        time.sleep(self.delay)
        tcp = struct.pack("!HHIIBBHHH", dport, sport, 1, seq + 1 & 0xffffffff, 0x50,
                          SYN | ACK, 1000, 0, 0)
        pseudo = packet[16:20] + packet[12:16] + struct.pack("!HH", socket.IPPROTO_TCP,
                                                             len(tcp))
        tcp = tcp[:16] + struct.pack("!H", checksum(pseudo + tcp)) + tcp[18:]
        os.write(self.fd, ip4(socket.IPPROTO_TCP, tcp, src=packet[16:20],
                              dst=packet[12:16]))

    def close(self):
        self.ended = True
        self.thread.join()
        os.close(self.fd)


def connect(ns, address, n=CONNECTIONS, port=PORT, wait=5.0):
    """Return how long each of n connections took as its client sees it, and how many
    were refused."""
    times, refused = [], 0
    for _ in range(n):
        with ns:
            s = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        with s:
            # Nobody answers a FIN.
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            s.settimeout(wait)
            begin = time.monotonic()
            try:
                s.connect((address, port))
                times.append(time.monotonic() - begin)
            except ConnectionRefusedError:
                refused += 1
            except TimeoutError:
                pass
    return times, refused


def listener(ns, port, backlog):
    """A server that accepts no connection by itself: its kernel answers."""
    with ns:
        server = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    server.bind(("", port))
    server.listen(backlog)
    return server


def connections(lim, direction):
    return lim.stats()[direction]["connections"]


def median_bound(histogram):
    """The bucket that has the median: (from, to] in seconds."""
    count = 0
    for bucket in histogram["buckets"]:
        count += bucket["count"]
        if count * 2 >= histogram["count"]:
            to = bucket.get("up_to_ns", 2**60)
            return (to / 2 / 1e9, to / 1e9)
    return (0, 0)


def check_delay(rep, what, c, times, delay):
    """The histogram has each connection, and no time that its client did not see."""
    accepted = c["accepted"]
    rep.equal(f"{what}: begun, accepted, refused, forgotten",
              (c["begun"], accepted["count"], c["refused"], c["forgotten"]),
              (len(times), len(times), 0, 0))
    # A stall of a second makes TCP repeat a SYN, and moves the mean away from the median.
    rep.equal("  SYNs again", c["repeated"], 0, exact=False)
    mean = accepted["sum_ns"] / 1e9 / len(times)
    seen = sum(times) / len(times)
    rep.check(f"{what}: mean, beside that of the clients", f"{mean * 1e3:.2f}",
              f"{delay * 1e3:.0f} to {seen * 1e3:.2f}", delay <= mean <= seen, " ms")
    low, high = median_bound(accepted)
    rep.check(f"{what}: the bucket of the median", f"{low * 1e3:.2f} to {high * 1e3:.2f}",
              "that of the mean, or one beside it",
              low / 2 <= mean <= 2 * high, " ms", exact=False)


def in_the_pod(r, rep, mode, *more):
    """Connections to the pod wait for the application, whose pod is far below its limit."""
    lim = Natra(r.pod, "--attach-mode", mode, *more).attach("10M", "10M", "--sli", "on", "--label",
                                                     "shop/web")
    slow = Responder(r.pod, "10.79.0.1", DELAY)
    sh("ip", "route", "replace", "10.79.0.1", "via", r.pod.ip)
    times, _ = connect(r.client, "10.79.0.1")
    check_delay(rep, " ".join((mode, *more, "slow pod")), connections(lim, "ingress"), times, DELAY)
    rep.equal("  of the other direction", connections(lim, "egress")["begun"], 0)
    rep.equal("  dropped by natra", dropped(lim.stats()["ingress"]) +
              dropped(lim.stats()["egress"]), 0)
    text = lim.ok("metrics")
    [count] = re.findall(r'natra_connect_seconds_count{namespace="shop",pod="web",'
                         r'interface="eth0",direction="ingress"} (\d+)', text)
    rep.equal("  in the metrics", int(count), CONNECTIONS)
    slow.close()
    lim.detach()


def beyond_the_pod(r, rep, mode):
    """Connections from the pod wait for a server elsewhere. Only the other direction has
    a rate: both are measured."""
    lim = Natra(r.pod, "--attach-mode", mode).attach("10M", None, "--sli", "on")
    slow = Responder(r.client, "10.79.0.2", DELAY)
    sh("ip", "route", "replace", "10.79.0.2", "via", r.client.ip)
    times, _ = connect(r.pod, "10.79.0.2")
    check_delay(rep, f"{mode}, slow network", connections(lim, "egress"), times, DELAY)
    rep.equal("  of the other direction", connections(lim, "ingress")["begun"], 0)
    stats = lim.stats()["egress"]
    rep.equal("  check", lim.ok("check", lim.id).count("FAIL"), 0)
    rep.equal("  egress counts as unlimited", stats["unlimited"]["packets"],
              stats["offered"]["packets"])
    slow.close()
    lim.detach()


def tight_limit(r, rep):
    """The application is fast and the limit is tight: streams lose packets or wait, and
    connections do not."""
    lim = Natra(r.pod).attach("2M", "2M", "--sli", "on")
    server = listener(r.pod, PORT, 100)
    procs = r.elephants(flows=4)
    r.wait_flow(r.into(), r.out_of())
    time.sleep(2)
    before = connections(lim, "ingress")["begun"]
    times, _ = connect(r.client, r.pod.ip)
    stats = lim.stats()
    r.stop(procs)
    c = stats["ingress"]["connections"]
    rep.equal("tight limit: connections", c["begun"] - before, len(times))
    held = dropped(stats["ingress"]) + total(stats["egress"], "packets", ("paced",)) + \
        dropped(stats["egress"])
    rep.least("tight limit: packets of streams dropped or held", held, 20)
    _, high = median_bound(c["accepted"])
    rep.most("tight limit: median of the connections is up to", high * 1e3, DELAY / 2 * 1e3,
             " ms")
    server.close()
    lim.detach()


def full_queue(r, rep):
    """A server that does not call accept(): its kernel drops SYNs until it does."""
    lim = Natra(r.pod).attach("10M", "10M", "--sli", "on")
    server = listener(r.pod, PORT + 1, 0)
    taken = []

    def accept():
        time.sleep(0.5)
        for _ in range(2):
            taken.append(server.accept()[0])

    connect_one, _ = connect(r.client, r.pod.ip, 1, PORT + 1)
    rep.equal("full queue: the first is accepted at once", len(connect_one), 1)
    thread = threading.Thread(target=accept)
    thread.start()
    times, _ = connect(r.client, r.pod.ip, 1, PORT + 1)
    thread.join()
    c = connections(lim, "ingress")
    rep.equal("full queue: begun, accepted", (c["begun"], c["accepted"]["count"]), (2, 2))
    rep.least("full queue: SYNs again", c["repeated"], 1)
    longest = c["accepted"]["sum_ns"] / 1e9
    rep.check("full queue: time of both", f"{longest:.3f}", f"1 to {sum(times) + 1:.3f}",
              1 <= longest <= sum(times) + sum(connect_one), " s", exact=False)
    rep.equal("full queue: dropped by natra", dropped(lim.stats()["ingress"]), 0)
    for s in taken:
        s.close()
    server.close()
    _, refused = connect(r.client, r.pod.ip, 3, PORT + 1)
    c = connections(lim, "ingress")
    rep.equal("no server: refused, begun", (c["refused"], c["begun"]), (refused, 2 + 3))
    lim.detach()


def fast_open(r, rep):
    """The answer to a SYN with data acknowledges the data, too, if the server takes it."""
    lim = Natra(r.pod).attach("10M", "10M", "--sli", "on")
    server = listener(r.pod, PORT, 8)
    for ns, flags in ((r.client, 0x5), (r.pod, 0x202)):     # without a cookie
        ns.sysctl("net/ipv4/tcp_fastopen", str(flags))
    server.setsockopt(socket.IPPROTO_TCP, socket.TCP_FASTOPEN, 8)
    for _ in range(CONNECTIONS):
        with r.client:
            s = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        s.sendto(bytes(100), socket.MSG_FASTOPEN, (r.pod.ip, PORT))
        accepted = server.accept()[0]
        accepted.close()
        s.close()
    rows = [line.split() for line in r.pod.run("cat", "/proc/net/netstat").splitlines()
            if line.startswith("TcpExt:")]
    rep.equal("fast open: SYNs whose data was taken",
              int(dict(zip(*rows))["TCPFastOpenPassive"]), CONNECTIONS)
    c = connections(lim, "ingress")
    rep.equal("fast open: begun, accepted", (c["begun"], c["accepted"]["count"]),
              (CONNECTIONS, CONNECTIONS))
    server.close()
    lim.detach()


def check_maps(rep, what, tables, some):
    """Check how many tables the banks have, and whether there are banks with room for some."""
    pins = glob.glob(f"{BPFFS}/natra/abi*/engine_*/*/connects")
    ids = {entry["inner_map_id"] for pin in pins
           for entry in bpftool("map", "dump", "pinned", pin) if "inner_map_id" in entry}
    rep.equal(f"{what}: tables, banks for some", (len(ids), bool(pins)), (tables, some))


def costs_nothing_without(r, rep):
    check_maps(rep, "after these", 0, False)
    lim = Natra(r.pod).attach("10M", "10M")
    check_maps(rep, "without sli", 0, False)
    rep.true("  no counters", "connections" not in lim.stats()["ingress"])
    rep.true("  no series", "natra_connect" not in lim.ok("metrics"))
    lim.attach("10M", "10M", "--sli", "on")
    check_maps(rep, "with sli", 1, True)
    rep.equal("  it is shown", lim.show()["policy"]["sli"], "on")
    lim.attach("20M", "10M", "--sli", "on")
    check_maps(rep, "with another rate", 1, True)
    lim.attach("10M", "10M")
    # Banks stay until the last attachment goes.
    check_maps(rep, "off again", 0, True)
    lim.detach()
    check_maps(rep, "detached", 0, False)


def main(rep, a):
    sh("modprobe", "tun", check=False)
    if not os.path.exists("/dev/net/tun"):
        skip("no /dev/net/tun")
    with Rig() as r:
        features = Natra().json("probe")
        for mode in a.mode or Natra.modes():
            rep.measure(f"{mode}, slow pod", in_the_pod, r, rep, mode)
            rep.measure(f"{mode}, slow network", beyond_the_pod, r, rep, mode)
            if features["fq"]:
                rep.measure(f"{mode}, slow pod, paced", in_the_pod, r, rep, mode,
                            "--ingress-mode", "pace")
        rep.measure("tight limit", tight_limit, r, rep)
        rep.measure("full queue", full_queue, r, rep)
        fast_open(r, rep)
        costs_nothing_without(r, rep)


if __name__ == "__main__":
    run_script(main,
        option("--mode", action="append", help="only this attach mode"))
