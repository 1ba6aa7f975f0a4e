#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests what the benchmark computes of connection tracking's events, and its targets
under stress."""
import struct
import sys
import unittest

import bench                    # noqa: F401, finds the harness
import conntrack
import stress
from report_md import write
from test_bench import run, sample, verdicts
from workloads import targets

SERVER, OTHER = ("10.0.0.2", 80), ("10.0.0.2", 5401)


def attr(kind, data):
    return struct.pack("=HH", 4 + len(data), kind) + data + bytes(-len(data) % 4)


def note(to, sport, state=None, stamp=None, sent=None):
    """Return an event as the kernel sends it, with the time of reading it, 5."""
    tuple_ = attr(1, attr(1, bytes([10, 0, 0, 1])) +
                  attr(2, bytes(map(int, to[0].split("."))))) + \
        attr(2, attr(1, b"\6") + attr(2, sport.to_bytes(2, "big")) +
             attr(3, to[1].to_bytes(2, "big")))
    body = attr(1 | 1 << 15, tuple_)
    if state:
        body += attr(4, attr(1, attr(1, bytes([state]))))
    if stamp:
        body += attr(27, stamp.to_bytes(8, "big"))
    if sent is not None:
        body += attr(9, attr(2, (1).to_bytes(8, "big"))) + \
            attr(10, attr(1, (3).to_bytes(8, "big")) + attr(2, sent.to_bytes(8, "big")))
    kind = 0x100 if sent is None else 0x102
    return 5, struct.pack("=IH14x", 20 + len(body), kind) + body


def connection(sport, begin, end, sent, to=SERVER):
    """Return the events of a connection that ends after `end` - `begin` ns."""
    return [note(to, sport, 1, begin), note(to, sport, 2, begin + 1000),
            note(to, sport, 3, begin + 2000), note(to, sport, 4, end),
            note(to, sport, sent=sent)]


class Collected(unittest.TestCase):
    def test_bytes_and_times_of_a_connection(self):
        found, stamped = conntrack.collect(connection(1024, 10, 10**6 + 10, 500), 80)
        self.assertTrue(stamped)
        self.assertEqual(found, [{1: 10, 2: 1010, 3: 2010, 4: 10**6 + 10, "bytes": 500}])
        self.assertEqual(conntrack.spans_ms(found, conntrack.FIN_WAIT), [1.0])
        self.assertEqual(conntrack.mbits(found), [4.0])     # 500 bytes in 1 ms

    def test_the_same_ports_again_are_another_connection(self):
        """Also if its SYN passes before the first one is forgotten."""
        one, two = connection(1024, 10, 20, 500), connection(1024, 30, 50, 700)
        self.assertEqual([t["bytes"] for t in conntrack.collect(one + two)[0]],
                         [500, 700])
        found, _ = conntrack.collect(one[:4] + two)
        self.assertEqual([t.get("bytes") for t in found], [None, 700])

    def test_other_ports_are_left_out(self):
        found, _ = conntrack.collect(connection(1024, 10, 20, 500) +
                                     connection(1025, 10, 20, 9000, OTHER), 80)
        self.assertEqual([t["bytes"] for t in found], [500])

    def test_unfinished_connections_have_no_throughput(self):
        found, _ = conntrack.collect(connection(1024, 10, 20, 500)[:3] +
                                     [note(SERVER, 1024, sent=400)])
        self.assertEqual(conntrack.mbits(found), [])
        self.assertEqual(len(conntrack.spans_ms(found, conntrack.SYN_RECV)), 1)

    def test_the_time_of_reading_stands_in_for_a_stamp(self):
        found, stamped = conntrack.collect([note(SERVER, 1024, 1)])
        self.assertEqual((found, stamped), ([{1: 5}], False))

    def test_a_message_that_is_cut_short(self):
        _, whole = note(SERVER, 1024, sent=400)
        for cut in range(len(whole)):
            self.assertEqual(conntrack.collect([(5, whole[:cut])]), ([], False))


class Rates(unittest.TestCase):
    def test_connections_that_end_after_the_load_do_not_count(self):
        second = 10**9
        found = [{1: 0, 4: n * second} for n in range(1, 2 * stress.SECONDS + 1)]
        self.assertEqual(stress.per_second(found), 1)
        self.assertEqual(stress.per_second([]), 0)


def row(limiter, **changes):
    return sample("stress", limiter, {"pods": 1}, **dict(dict(
            rps=1000, connections=8000, first_ms_p50=0.02, first_ms_p99=1,
            total_ms_p50=200, total_ms_p99=300, mbit_p10=0.2, mbit_p50=0.3,
            programming_ms=10, programming_ms_worst=20, elephant_in=10, elephant_out=10,
            wire_in=12, wire_out=90), **changes))


class Judged(unittest.TestCase):
    NONE, UPSTREAM = row("none"), row("upstream", mbit_p10=0.01)

    def bad(self, **changes):
        got = verdicts(run(self.NONE, self.UPSTREAM, row("natra", **changes)))
        return [name.partition(": ")[2].partition(",")[0]
                for name, met in got.items() if met is False]

    def test_each_figure_can_miss(self):
        self.assertEqual(self.bad(), [])
        for changes, what in (({"first_ms_p99": 1.51}, "SYN to SYN-ACK"),
                              ({"total_ms_p50": 301}, "SYN to FIN"),
                              ({"mbit_p10": 0.009}, "throughput of the connection at 10 %"),
                              ({"programming_ms": 11}, "limited after"),
                              ({"elephant_out": 10.6}, "elephant out")):
            self.assertEqual(self.bad(**changes), [what])

    def test_nothing_is_demanded_without_natra(self):
        self.assertFalse([t for t in targets(run(self.NONE, self.UPSTREAM))
                          if "stress" in t.name])

    def test_report(self):
        natra = row("natra", configure_ms=3, configure_ms_worst=20, process_ms=2,
                    process_ms_worst=4)
        text, _ = write(run(self.NONE, self.UPSTREAM, natra))
        self.assertIn("| 1 | natra | elephants within the cap, mice beside it | 8000 | – | "
                      "1000 | 0.02 / 1.00 | 200.00 / 300.00 | "
                      "0.20 / 0.30 | 10.0 / 10.0 | 12.0 / 90.0 |", text)
        self.assertIn("| 1 | natra | 10.0 / 20.0 | 3.0 / 20.0 | 2.0 / 4.0 |", text)
        self.assertIn("| 1 | upstream | 10.0 / 20.0 | – | – |", text)
        self.assertIn("natra 1000 connections/s, SYN-ACK after 0.02 ms, 0.20 Mbit/s for "
                      "the slow tenth", text)
        self.assertIn("natractl set takes 3.0 ms beside that load, 20.0 ms at worst", text)


if __name__ == "__main__":
    unittest.main()
