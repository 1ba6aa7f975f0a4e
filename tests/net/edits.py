#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks that who may change a limit gets nothing for the change.

A pod sends GSO datagrams, each of which takes a fourth of a second at its limit, ten
times as many as that, while its limit gets lower by 1 bit/s ten times a second, or while
it is attached anew four times a second. It must not get more than without. Nor does a member
of a group that is attached in a loop cost the group its rate. Nor do classes whose sum is the limit
let more pass because the rate goes from one to the other, or because one of them comes and goes.
"""
import contextlib
import os
import socket
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(__file__) + "/../harness/python")
from commands import sh
from limiters import Natra, bits
from meter import ETH_IPV4_UDP
from rig import Rig
from script import option, run_script

CAP = "2M"
UDP_SEGMENT = 103
SEGMENT, SEGMENTS = 1400, 45
PORT = 5300
GROUP_CAP = "20M"
MODES = "tcx-hostside", "clsact-podside"
# A packet more or less is a tenth of what passes.
OVER = 1.2


class Sender:
    """Sends ten times the cap until it is closed."""

    def __init__(self, r, cap=CAP, segments=SEGMENTS):
        self.data = bytes(SEGMENT * segments)
        self.pause = len(self.data) * 8 / (10 * bits(cap))
        with r.pod:
            self.sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.sock.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, SEGMENT)
        self.sock.connect((r.client.ip, PORT))
        self.sock.setblocking(False)
        self.ends = threading.Event()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def move_rate(self, lim, n):
        """Give nearly all of the rate to a class that has just been slow, or was not there, or to
        the rest, and send to that one."""
        to_class = n % 3 == 1
        rates = bits(CAP) // 10, bits(CAP) * 9 // 10
        rest, of_class = rates if to_class else rates[::-1]
        self.sock.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, 4 if to_class else 0)
        lim.attach(str(rest), str(rest), *([] if n % 3 == 2 else [
            "--class", f"c=dscp=1,ingress-rate={of_class},egress-rate={of_class}"]))
        time.sleep(0.25)

    def run(self):
        while not self.ends.wait(self.pause):
            try:
                self.sock.send(self.data)
            except OSError:
                pass  # a drop of natra's

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.ends.set()
        self.thread.join()
        self.sock.close()


def nothing(lim, n):
    time.sleep(0.1)


def lower(lim, n):
    lim.ok("set", lim.id, "--egress-rate", str(bits(CAP) - 1 - n))
    time.sleep(0.1)


def attach_anew(lim, n):
    lim.attach(CAP, CAP, "--sli", "off" if n % 2 else "on")
    time.sleep(0.25)


def attach_in_a_loop(lim, n):
    lim.attach("1G", "1G", "--sli", "off" if n % 2 else "on")


def rate(r, a, lim, change, cap=CAP):
    """Return the rate that arrives while changes are made, as a multiple of the cap."""
    time.sleep(a.settle)
    meter, n = r.out_of(header=ETH_IPV4_UDP), 0
    begin, before = meter.read()
    while time.monotonic() < begin + a.seconds:
        change(lim, n)
        n += 1
    end, after = meter.read()
    return (after - before) * 8 / (end - begin) / bits(cap)


def group(rep, a):
    """While a member is attached anew two attachments judge its packets, and the group must not
    pay twice."""
    with udp_rig() as r:
        Natra().ok("group", "set", "team", "--egress-rate", GROUP_CAP)
        lim = Natra(r.pod, "--attach-mode", MODES[0], "--group", "team", "--fast-pass",
                    "strict")
        lim.attach("1G", "1G")
        with Sender(r, GROUP_CAP, 10):
            rep.near("times the group's rate, its member attached in a loop",
                     rate(r, a, lim, attach_in_a_loop, GROUP_CAP), 1, 0.12)


@contextlib.contextmanager
def udp_rig():
    with Rig() as r:
        sh("ethtool", "-K", r.client.host, "tso", "off", "gso", "off",
           "tx-udp-segmentation", "off")
        r.load(r.client, "udp-sink", PORT)
        r.wait_port(r.client, PORT, "udp")
        yield r


def main(rep, a):
    rep.measure("group", group, rep, a)
    for mode in MODES:
        with udp_rig() as r:
            lim = Natra(r.pod, "--attach-mode", mode, "--fast-pass", "strict")
            lim.attach(CAP, CAP)
            with Sender(r) as sender:
                without = rate(r, a, lim, nothing)
                rep.near(f"{mode}: times the cap, without changes", without, 1, OVER - 1)
                changes = [lower, attach_anew]
                if mode == MODES[-1]:
                    changes.append(sender.move_rate)
                for change in changes:
                    rep.most(f"{mode}: the same, {change.__name__}",
                             rate(r, a, lim, change), OVER * max(1, without))


run_script(main, option("--seconds", type=float, default=5),
           option("--settle", type=float, default=2))
