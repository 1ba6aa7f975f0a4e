#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Counts the false alarms of `natractl check` over a time: what it says of limits that hold.

In each attach mode a pod has streams in and out of it, one to a peer that is exempt and one to
itself by a service, and in each round short connections, an edit, and offloads that go off or
on. Another pod of the round lives for a moment. check is asked of each at the end of a round.
In the end a socket goes around a hook, which check must tell.
"""
import os
import resource
import socket
import sys
import time
from pathlib import Path

sys.path.insert(0, os.path.dirname(__file__) + "/../harness/python")
from commands import sh
from frames import Sender, eth, ip4, udp
from limiters import Natra
from namespaces import Pod
from rig import Rig
from script import option, run_script

SERVICE, SHORT_PORT = "10.96.0.{}", 5400
CONNECTIONS = 20
# The streams of a pod must carry a sixteenth of its limits, beside the connections of a round.
LEAST_MB_PER_S, CONNECTIONS_MB = 0.1, CONNECTIONS * 0.005
# The comparison needs a MB of each direction.
MOMENT_BYTES, DATAGRAM = 1_500_000, 1200
RATES = ("8M", "5M")


class Lane:
    """A pod in one attach mode, and what was asked of it and of those that live for a moment."""

    def __init__(self, r, number, mode, seconds):
        self.r, self.mode = r, mode
        self.pod, self.client = r.pods[number], r.clients[number]
        self.exempt = r.clients[(number + 1) % len(r.clients)]
        self.asked = self.alarms = self.moments = 0
        self.before = 0         # GB carried when the round began
        self.said = []
        self.words = ("--attach-mode", mode)
        self.natra = Natra(self.pod, *self.words, "--unshaped-subnet",
                           f"{self.exempt.ip}/32").attach(*RATES)
        with self.pod:
            self.listener = socket.create_server(("", SHORT_PORT), backlog=CONNECTIONS)
        # By default iperf3 looks at its clock each millisecond.
        slow = ("-b", "2M", "--pacing-timer", "50000")
        for port, (src, dst, options) in enumerate((
                (self.client, self.pod, ()), (self.pod, self.client, ()),
                (self.pod, self.exempt, slow)), 5200 + 10 * number):
            r.elephant(src, dst, port, seconds=seconds, options=options)
        r.stream_server(self.pod, 5199)
        self.pod.popen("iperf3", "-c", SERVICE.format(number + 1), "-p", "5199", "-t",
                       str(seconds), *slow)

    def connect(self):
        """Make short connections into the pod."""
        for _ in range(CONNECTIONS):
            with self.client:
                s = socket.socket()
            with s:
                s.settimeout(5)
                try:
                    s.connect((self.pod.ip, SHORT_PORT))
                    s.sendall(bytes(4096))
                except TimeoutError:    # the streams have taken all of the limit
                    continue
                self.listener.accept()[0].close()

    def ask(self, natra):
        p = natra.run("check", natra.id)
        self.asked += 1
        if p.returncode:
            self.alarms += 1
            self.said.append(f"{self.mode}, {natra.id}: {p.stderr.strip()}")

    def moment(self):
        """Limit a pod that sends and gets a little, ask of it, and remove it."""
        pod = Pod("moment", 99)
        natra = Natra(pod, *self.words).attach("1G", "1G")
        for src, dst in ((pod, self.client), (self.client, pod)):
            with src, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
                for _ in range(MOMENT_BYTES // DATAGRAM):
                    s.sendto(bytes(DATAGRAM), (dst.ip, 9))
        self.ask(natra)
        self.moments += 1
        natra.detach()
        pod.close()

    def round(self, n):
        self.before = self.carried()
        self.connect()
        self.natra.ok("set", self.natra.id, "--ingress-rate", RATES[0] if n % 2 else "12M")
        word = "on" if n % 2 else "off"
        self.pod.run("ethtool", "-K", "eth0", "tso", word, "gso", word, "gro", word)
        self.ask(self.natra)

    def carried(self):
        with open(f"/proc/{os.getpid()}/net/dev") as f:
            words = next(x for x in f if x.strip().startswith(f"{self.pod.host}:")).split()
        return (int(words[1]) + int(words[9])) / 1e9

    def row(self):
        return [self.mode, self.asked - self.moments, self.moments, self.alarms,
                f"{self.carried():.2f}"]


def services(r):
    """Send what goes to a service's address back to the pod that sent it."""
    pods = list(enumerate(r.pods, 1))
    sh("nft", "-f", "-", input="table ip hairpin {\nchain pre {\n"
       "type nat hook prerouting priority dstnat\n" + "".join(
           f"ip daddr {SERVICE.format(n)} dnat to {pod.ip}\n" for n, pod in pods) +
       "}\nchain post {\ntype nat hook postrouting priority srcnat\n" + "".join(
           f"ip saddr {pod.ip} ip daddr {pod.ip} masquerade\n" for _, pod in pods) + "}\n}\n")


def write_table(a, lanes, seconds):
    with open(a.table, "w", encoding="utf-8") as f:
        print(f"""What natractl check says of limits that hold, for {seconds:.0f} s at a load of
{os.getloadavg()[2]:.0f}: tests/net/alarms.py --seconds {a.seconds} --table FILE.
Linux {os.uname().release}, {os.cpu_count()} CPUs; {a.commit}.

| mode | asked of a pod that stays | of pods of a moment | alarms | GB carried |
|---|---|---|---|---|""", file=f)
        for lane in lanes:
            print("| " + " | ".join(map(str, lane.row())) + " |", file=f)
        for text in (said for lane in lanes for said in lane.said):
            print(f"\n{text}", file=f)


def goes_around(lane):
    """Send around the pod's hook."""
    sender = Sender(lane.pod, "eth0")
    sender.bypass_qdisc(True)
    frame = eth(0x0800, ip4(17, udp(bytes(DATAGRAM))))
    sent = 0
    while sent < 40e6:
        sent += sender.plain.send(frame)


def main(rep, a):
    modes = Natra.modes()
    with Rig(lanes=len(modes)) as r:
        services(r)
        lanes = [Lane(r, n, mode, a.seconds + 600) for n, mode in enumerate(modes)]
        begin = time.monotonic()
        n = 0
        while time.monotonic() - begin < a.seconds or n < len(lanes):
            due = time.monotonic() + a.round
            for lane in lanes:
                lane.round(n)
            lanes[n % len(lanes)].moment()
            n += 1
            if a.table:
                write_table(a, lanes, time.monotonic() - begin)
            time.sleep(max(0, due - time.monotonic()))
        for lane in lanes:
            # Less than a MB of a direction says nothing.
            rep.least(f"{lane.mode}: GB carried", lane.carried(), 0.005)
            rep.least("  MB carried in the last round", 1000 * (lane.carried() - lane.before),
                      LEAST_MB_PER_S * a.round + CONNECTIONS_MB)
            rep.equal(f"{lane.mode}: alarms of {lane.asked} that were asked", lane.alarms, 0)
        for text in (said for lane in lanes for said in lane.said):
            print(f"     {text}")
        around = next(lane for lane in lanes if lane.mode.endswith("podside"))
        goes_around(around)
        around.ask(around.natra)
        rep.true("a socket around the hook: check tells it",
                 "is bypassed" in "".join(around.said[-1:]))
    took = sum(sum(resource.getrusage(who)[:2])
               for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    rep.shown("of one CPU, %", f"{100 * took / (time.monotonic() - begin):.1f}")


def prepare(a):
    a.commit = sh("git", "-c", "safe.directory=*", "-C", Path(__file__).parent, "describe",
                  "--always", "--dirty", check=False).strip()


if __name__ == "__main__":
    run_script(main, option("--seconds", type=int, default=3600, help="default: 3600"),
               option("--round", type=float, default=10, help="of seconds; default: 10"),
               option("--table", metavar="FILE", help="write the result there, anew each round"),
               prepare=prepare)
