# SPDX-License-Identifier: BSD-2-Clause
"""Counts the bytes that a namespace receives, on the wire and by stream."""
import re
import time

ETH_IPV4_TCP = 14 + 20 + 32     # bytes of header on each TCP segment (timestamps)
ETH_IPV4_UDP = 14 + 20 + 8

PROMPT = 0.002                  # seconds that a reading takes where nothing holds it up
READINGS = 8


def read_promptly(read):
    """Return (time, read()) of a reading that nothing held up, or of the shortest of
    several: what else runs on the machine may get the CPU between the two."""
    best = None
    for _ in range(READINGS):
        begin = time.monotonic()
        value = read()
        took = time.monotonic() - begin
        if best is None or took < best[0]:
            best = took, begin + took / 2, value
        if took <= PROMPT:
            break
    return best[1:]


class Meter:
    """Counts the bytes on the wire that a namespace receives.

    A veth's rx_bytes would be wrong. They count a GSO packet once, with one header; and
    at the pod they count before the ingress hooks, so they include what a limiter drops
    there. The namespace's IP counters come after the hooks: InOctets and InReceives
    count a GSO packet once, and InNoECTPkts + InECT*Pkts + InCEPkts count its segments
    (ip_rcv adds gso_segs; TcpInSegs does not), so

      wire = InOctets + 14 * InReceives + (segments - InReceives) * header.

    This is exact if all GSO packets have headers of one length. Packets to a namespace
    that only forwards would be counted too, so measure at the ends. selftest.py
    compares the result with tbf's count, with offloads on and off.
    """

    def __init__(self, ns, header=ETH_IPV4_TCP):
        self.header = header
        self._files = [ns.netfile(n) for n in ("snmp", "netstat", "snmp6")]

    def read(self):
        """Return (time, wire bytes), both only good for differences."""
        now, c = read_promptly(self.counters)
        segments = sum(n for k, n in c.items()
                       if re.fullmatch("In(NoECT|ECT0|ECT1|CE)Pkts", k))
        return now, (c["InOctets"] + 14 * c["InReceives"] +
                     (segments - c["InReceives"]) * self.header)

    def counters(self):
        """Return the IP and IpExt counters by name, those of IPv4 and IPv6 added up."""
        sums = {}
        for f in self._files:
            f.seek(0)
        for f in self._files[:2]:
            rows = [s.split() for s in f.read().splitlines()
                    if s.startswith(("Ip:", "IpExt:"))]
            for name, value in zip(rows[0][1:], rows[1][1:]):
                sums[name] = int(value)
        for row in self._files[2].read().splitlines():
            name, value = row.split()
            if name.startswith("Ip6In"):
                sums[name[3:]] = sums.get(name[3:], 0) + int(value)
        return sums

    def ce(self):
        """Return the number of packets received with CE."""
        return self.counters()["InCEPkts"]


def wire_rates(meters, seconds):
    """Return the bit/s on the wire at each meter over the same span."""
    before = [m.read() for m in meters]
    time.sleep(seconds)
    after = [m.read() for m in meters]
    return [(b1 - b0) * 8 / (t1 - t0)
            for (t0, b0), (t1, b1) in zip(before, after)]


def goodput(ns, port, flows):
    """Return the bytes that each stream to a port of the namespace has brought, by its
    peer. iperf3's control connection, which has the least, is left out."""
    out = ns.run("ss", "-tiHOn", "sport", "=", f":{port}")
    got = {}
    for line in out.splitlines():
        n = re.search(r"bytes_received:(\d+)", line)
        got[line.split()[4]] = int(n[1]) if n else 0
    most = sorted(got, key=got.get, reverse=True)[:flows]
    return {peer: got[peer] for peer in most}
