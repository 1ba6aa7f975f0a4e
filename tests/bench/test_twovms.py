#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests the benchmark's cells, targets and report of two kernels."""
import io
import unittest
import unittest.mock

import bench                    # noqa: F401, finds the harness
import twovms
from cells import LIMITERS
from report_md import write
from test_bench import NODE, run, sample, verdicts
from workloads import schedule


def row(limiter, **changes):
    return sample("pair", limiter, {}, **dict(dict(
            wire_in=10, wire_out=10, beside_in=10.5, beside_out=11, error_in=0.01, error_out=-0.01,
            p50_ms_annotated=5, p99_ms_annotated=9, failed_annotated=0,
            p50_ms_bystander=4, p99_ms_bystander=8, failed_bystander=0), **changes))


class Pair(unittest.TestCase):
    UPSTREAM = row("upstream", p50_ms_annotated=90, p99_ms_annotated=200)

    def test_cells_are_those_of_two_vms_only(self):
        self.assertFalse([c for _, c in schedule("full", NODE) if c.workload == "pair"])
        with unittest.mock.patch.dict("os.environ", NATRA_PAIR="1"):
            found = [c.limiter for _, c in schedule("ci", NODE, only=["pair"])]
        self.assertEqual(found, [*LIMITERS, "natra-guarded", "natra-charged"])

    def test_a_mode_of_natra_is_its_fast_pass(self):
        for name, options in (("natra", ()), ("natra-charged", ("--fast-pass", "charged"))):
            with unittest.mock.patch("twovms.attachable") as made:
                twovms.attach(name, "pod")
            made.assert_called_once_with("natra", "pod", *options)

    def test_what_is_sent_is_read_of_the_pods_interface(self):
        columns = " ".join(map(str, range(1, 17)))
        pod = unittest.mock.Mock()
        pod.netfile = lambda name: io.StringIO(
                f"Inter-| Receive | Transmit\n face |bytes\n    lo: {columns}\n"
                f"  eth0: {columns.replace('9', '77')}\n") if name == "dev" else None
        self.assertEqual(twovms.sent(pod), 77)

    def test_all_traffic_beside_requests_is_the_limited_pods(self):
        """Each way is read before and after the requests; what the other pod sends to the
        client meanwhile is no traffic of the limited one."""
        done = []
        site = unittest.mock.Mock(pods=[unittest.mock.Mock(), unittest.mock.Mock()])
        site.far.requests = lambda *_: done.append(True) or ["answers"]
        reads = [lambda: (4, 5 * 10**6) if done else (0, 0),
                 lambda: (14, 6 * 10**6) if done else (10, 10**6)]
        with unittest.mock.patch("twovms.sent", lambda pod: 10**6 * bool(done)
                                 if pod is site.pods[1] else None):
            self.assertEqual(twovms.beside(site, reads), (
                    ["answers"], {"in": 10, "out": 8}))

    def bad(self, **changes):
        got = verdicts(run(self.UPSTREAM, row("natra", **changes)))
        return [name.partition(": ")[2] for name, met in got.items() if met is False]

    def test_each_figure_can_miss(self):
        self.assertEqual(self.bad(), [])
        for changes, what in (({"error_out": 0.06}, "cap of 10M out of the pod, error"),
                              ({"p50_ms_annotated": 91}, "requests beside streams, median, "
                                                         "at most upstream's"),
                              ({"failed_annotated": 1}, "requests beside streams that "
                                                        "failed")):
            self.assertEqual(self.bad(**changes), [what])

    def test_report(self):
        text, _ = write(run(self.UPSTREAM, row("natra"), client_kernel="6.1.0"))
        self.assertIn("the client on 6.1.0, in another VM", text)
        self.assertIn("| natra | elephants within the cap, mice beside it | 10.0 / 10.0 | "
                      "10.5 / 11.0 | 5.0 / 9.0 | 4.0 / 8.0 | 0.0 |", text)
        self.assertIn("natra wins: 5.0 ms; upstream 90.0 ms (18 times as much)", text)


if __name__ == "__main__":
    unittest.main()
