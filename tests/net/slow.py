#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Counts datagrams that arrive at the slowest rates.

800 bit/s must hold, but for one packet of debt. A higher rate that is set later
frees the pod from a debt of hours.
"""
import os
import socket
import sys
import time

sys.path.insert(0, os.path.dirname(__file__) + "/../harness/python")
from limiters import Natra
from meter import ETH_IPV4_UDP
from namespaces import Ns, Pod
from script import run_script

PORT = 5000
SIZE = 200                      # on the wire
RATE = 800 / 8                  # bytes/s
BURST = RATE / 2
SECONDS, PER_SECOND = 5, 20
FREED = 40                      # datagrams after the rate was raised
HORIZON = 2                     # s for which fq may hold earlier packets


class Way:
    """Sends datagrams from one namespace to another, and counts those that arrive."""

    def __init__(self, src, dst, ip):
        with src:
            self.out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        with dst:
            self.inn = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.inn.bind((ip, PORT))
        self.inn.setblocking(False)
        self.out.connect((ip, PORT))

    def send(self, size=SIZE):
        self.out.send(bytes(size - ETH_IPV4_UDP))

    def arrived(self):
        count = 0
        try:
            while self.inn.recv(65536):
                count += 1
        except BlockingIOError:
            return count


class Case:
    """A pod with the same slow rate both ways."""

    def __init__(self, number, name, rate, *options):
        self.name, self.rate = name, rate
        self.pod = Pod(f"slow{number}", number)
        node = Ns()
        self.ways = {"in": Way(node, self.pod, self.pod.ip),
                     "out": Way(self.pod, node, self.pod.gw)}
        self.natra = Natra(self.pod, *options).attach(rate, rate)


def send_all(cases, count):
    """Return how many datagrams arrived, by case and way."""
    for _ in range(count):
        for case in cases:
            for way in case.ways.values():
                way.send()
        time.sleep(1 / PER_SECOND)
    return {(c, w): way.arrived() for c in cases for w, way in c.ways.items()}


def main(rep, _):
    cases = [Case(1, "800 bit/s, edt off", 800, "--edt-pacing", "off"),
             Case(2, "800 bit/s", 800),
             Case(3, "1 bit/s", 1)]
    for case in cases:
        rep.shown(f"{case.name}: departure times",
                  case.natra.edt_active())
    # At 1 bit/s this packet takes 12000 s, unless one of the kernel's own came before
    # it.
    for way in cases[2].ways.values():
        way.send(1500)
        time.sleep(0.1)
        way.arrived()
    begin = time.monotonic()
    got = send_all(cases, SECONDS * PER_SECOND)
    took = time.monotonic() - begin
    for (case, way), count in got.items():
        most = (BURST + RATE * took) / SIZE + 1 if case.rate == 800 else 0
        least = (RATE * (took - HORIZON)) / SIZE - 1 if case.rate == 800 else 0
        rep.check(f"{case.name}, {way}: arrived in {took:.1f} s", count,
                  f"{least:.1f} to {most:.1f}", least <= count <= most)
    for case in cases:
        case.natra.ok("set", case.natra.id, "--ingress-rate", "10M", "--egress-rate",
                      "10M")
    time.sleep(0.2)
    send_all(cases, HORIZON * PER_SECOND)
    # Packets that had to wait up to the horizon have left by then.
    time.sleep(0.5)
    for case in cases:
        for way in case.ways.values():
            way.arrived()
    got = send_all(cases, FREED)
    for (case, way), count in got.items():
        rep.check(f"{case.name}, {way}: at 10M arrived", count,
                  f">= {FREED - 2} of {FREED}", count >= FREED - 2)


if __name__ == "__main__":
    run_script(main)
