#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests the benchmark's figures of wirings and services, and its targets of them."""
import types
import unittest
import unittest.mock

import bench                    # noqa: F401, finds the harness
import wired
from cells import Unavailable
from report_md import write
from statistic import ENOUGH
from test_bench import NODE, run, sample, verdicts
from workloads import schedule

POD = types.SimpleNamespace(ip="10.88.10.10", port="port10")
CLIENT = types.SimpleNamespace(ip="10.88.11.11", port="port11")
WIRING = types.SimpleNamespace(kind="routed", pairs=[(POD, CLIENT)])


def row(limiter, gbit, cap="far", n=0, workload="wiring", **more):
    params = {"wiring": "bridge", "cap": cap}
    if workload == "service":
        params["path"] = "nftables"
    return sample(workload, limiter, params, n, **dict(dict(
            gbit=gbit, retransmissions_per_gb=5, memory_mib=3, cpu_per_gb=0.4), **more))


class Figures(unittest.TestCase):
    def test_rates_and_costs(self):
        got = wired.figures({"in": 10**9, "out": 10**9}, 16, 3, 8)
        self.assertEqual(got, {"gbit": 1, "gbit_in": 0.5, "gbit_out": 0.5,
                               "retransmissions_per_gb": 4, "cpu_per_gb": 1.5})

    def test_error_of_the_cap(self):
        got = wired.figures({"in": 11 * 10**8, "out": 9 * 10**8}, 8, 3, 8, 10**9)
        self.assertAlmostEqual(got["error_in"], 0.1)
        self.assertAlmostEqual(got["error_out"], -0.1)

    def test_an_emulated_cpu_has_no_cpu_time(self):
        with unittest.mock.patch("wired.EMULATED", True):
            self.assertNotIn("cpu_per_gb", wired.figures({"in": 1}, 1, 1, 1))

    def test_no_traffic_is_no_figure(self):
        with self.assertRaisesRegex(RuntimeError, "no traffic"):
            wired.figures({"in": 0}, 1, 1, 0)


class Apart(unittest.TestCase):
    """What a process in namespaces of its own answers; the namespaces need root."""

    def apart(self, work, *args):
        with unittest.mock.patch("wired.isolate"):
            return wired.apart(work, *args)

    def test_values(self):
        self.assertEqual(self.apart(lambda n: {"x": n + 1}, 4), {"x": 5})

    def test_what_the_kernel_lacks_is_left_out(self):
        def lacks():
            raise wired.Missing("this kernel has no netkit")
        with self.assertRaisesRegex(Unavailable, "no netkit"):
            self.apart(lacks)

    def test_errors(self):
        with self.assertRaisesRegex(RuntimeError, "ZeroDivisionError"):
            self.apart(lambda: 1 / 0)


class Rules(unittest.TestCase):
    def words(self, path, masquerade):
        return "\n".join(" ".join(words) + (given or "") for words, given in
                         wired.rules(path, WIRING, POD, masquerade)).lower()

    def test_each_path_translates_to_the_pod(self):
        for path in wired.PATHS[1:4]:
            for masquerade in (False, True):
                words = self.words(path, masquerade)
                self.assertIn(wired.SERVICE, words)
                self.assertIn(POD.ip, words)
                self.assertEqual("masquerade" in words, masquerade, words)

    def test_a_flowtable_has_both_ends(self):
        self.assertIn("devices = { port10, port11 }", self.words("flowtable", False))


    def test_programs_are_on_the_other_side_of_the_veth(self):
        with unittest.mock.patch.dict("os.environ", NATRA_SERVICE=__file__):
            words = [words for words, _ in wired.rules("ebpf", WIRING, POD, False)]
        self.assertEqual([(w[5], w[-1]) for w in words if w[1] == "filter"],
                         [("egress", "tc/routed_in"), ("ingress", "tc/routed_out")])

    def test_programs_that_are_not_built(self):
        with unittest.mock.patch.dict("os.environ", NATRA_SERVICE="/none"), \
                self.assertRaisesRegex(Unavailable, "NATRA_SERVICE"):
            wired.rules("ebpf", WIRING, POD, False)


class Cells(unittest.TestCase):
    def test_natra_takes_turns_with_no_limiter(self):
        plan = [(n, c.limiter) for n, c in schedule("full", NODE, only=["wiring"])
                if c.param("wiring") == "bridge" and c.param("cap") == "far"]
        first = [name for _, name in plan[::2]]
        self.assertEqual(len(first), ENOUGH)
        self.assertLessEqual(abs(first.count("natra") - first.count("none")), 1)


class Judged(unittest.TestCase):
    def test_throughput_and_caps(self):
        def held(gbit, error, workload="wiring"):
            return [*verdicts(run(
                    row("none", 40, workload=workload), row("natra", gbit, workload=workload),
                    row("natra", 1, "1G", workload=workload, error_in=error)))
                    .values()]
        for workload in wired.NAMES:
            with self.subTest(workload):
                self.assertEqual([v for v in held(39, 0.04, workload) if v is not None],
                                 [True, True])
                self.assertEqual([v for v in held(38, 0.06, workload) if v is not None],
                                 [False, False])

    def test_report(self):
        rows = [row("none", 40), row("natra", 39), row("natra", 1, "1G")]
        text, _ = write(run(*rows, row("none", 30, workload="service")))
        self.assertIn("| bridge | natra, far above | 39.00 | 5 | 0.400 | 3 |", text)
        self.assertIn("| bridge | natra, at 1G | 1.00 |", text)
        self.assertIn("| bridge, service by nftables | no limiter | 30.00 |", text)
        self.assertIn("keeps 0.97 (bridge) to 0.97 (bridge) of", text)

    def test_an_emulated_cpu_has_ratios(self):
        text, _ = write(run(row("none", 40), row("natra", 30), row("natra", 8, "100M"),
                            emulated=True))
        self.assertIn("| natra, at 100M | 0.20 of no limiter's |", text)
        self.assertIn("| natra, far above | 0.75 of no limiter's |", text)
        self.assertNotIn("far under the cap", text)


if __name__ == "__main__":
    unittest.main()
