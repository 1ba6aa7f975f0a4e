#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests the benchmark's arithmetic: cells, targets, and what it reads of connection
tracking's events."""
import json
import sys
import tempfile
import unittest
import unittest.mock

import bench                    # finds the harness
import conntrack
import mixed as mice
import sweep as streams
import throughput
import workloads
from cells import LIMITERS, Node, cell
from statistic import ENOUGH, Results
from workloads import missed, schedule, targets

NODE = Node(("tcx-podside", "clsact-podside"))
SWEEP = {"rate": "10M", "flows": 1, "ways": "in+out"}


def sample(workload, limiter, params, n=0, **values):
    return {"workload": workload, "limiter": limiter, "params": params,
            "sample": n, "values": values}


def sweep(limiter, wires, edt=False):
    """Return one sample for each pair of rates in and out, in Mbit/s."""
    return [sample("sweep", limiter, SWEEP, n, edt=edt, wire_in=i, wire_out=o,
                   error_in=i / 10 - 1, error_out=o / 10 - 1, goodput_in=i,
                   goodput_out=o, seconds_sd_in=0, seconds_sd_out=0,
                   retransmissions_in=0, retransmissions_out=0,
                   first_second_mb_in=1, first_second_mb_out=1)
            for n, (i, o) in enumerate(wires)]


def mixed(limiter, load, rps, p99, bystander=500):
    return sample("mixed", limiter, {"load": load}, rps_annotated=rps,
                  p99_ms_annotated=p99, rps_bystander=bystander,
                  p99_ms_bystander=20, rps_total=rps + bystander,
                  elephant_in=10, elephant_out=10)


def run(*samples, **machine):
    return Results({
            "format": 2, "profile": "ci", "seconds": 5,
            "machine": dict({"kernel": "6.12", "cpus": 2, "cpu": "x",
                             "date": "today"}, **machine),
            "left_out": [{"cell": "sweep natra rate=10G", "why": "too much"}],
            "samples": list(samples)})


def verdicts(res):
    return {t.name: t.met for t in targets(res)}


class Cells(unittest.TestCase):
    def test_ci_is_part_of_full(self):
        ci = {c for _, c in schedule("ci", NODE)}
        full = {c for _, c in schedule("full", NODE)}
        self.assertLess(ci, full)
        self.assertEqual({c.workload for c in ci},
                         {c.workload for c in full})

    def test_samples(self):
        plan = schedule("full", NODE)
        capped = cell("sweep", "natra", streams.CELL_SECONDS, ci=True, **SWEEP)
        self.assertEqual([n for n, c in plan if c == capped], [*range(ENOUGH)])
        self.assertTrue(all(n == 0 for n, c in plan if c.once))

    def test_each_sample_is_run_once(self):
        plan = schedule("full", NODE)
        self.assertEqual(len(plan), len(set(plan)))

    def test_only(self):
        self.assertEqual({c.workload for _, c in schedule(
                "full", NODE, only=["slis", "add"])}, {"slis", "add"})

    def test_ingress_is_paced_where_there_is_fq(self):
        for fq in (False, True):
            found = {c.workload for _, c in schedule("ci", Node(NODE.modes, fq))
                     if c.limiter == "natra-pace"}
            self.assertEqual(found, {"sweep", "latency"} if fq else set())

    def test_qdiscs_of_the_kernel_are_peers(self):
        plan = schedule("full", Node(qdiscs=("tbf", "cake")), only=["mixed"])
        self.assertLessEqual({"tbf", "cake"}, {c.limiter for _, c in plan})
        self.assertNotIn("fq_codel", {c.limiter for _, c in plan})

    def test_limiters_take_turns(self):
        """Each is before and after each other one equally often, but for one sample."""
        plan = [c for _, c in schedule("full", NODE) if c.workload == "mixed"
                and c.param("load") == "tilt" and c.limiter in ("upstream", "natra")]
        first = [c.limiter for c in plan[::2]]
        self.assertEqual(len(first), ENOUGH)
        self.assertLessEqual(abs(first.count("natra") - first.count("upstream")), 1)

    def test_modes_take_turns_with_what_they_are_compared_with(self):
        plan = [(n, c.limiter) for n, c in schedule(
                "full", NODE, only=["throughput"])]
        blocks = {}
        for n, name in plan:
            blocks.setdefault(n, []).append(name)
        self.assertEqual([*blocks], sorted(blocks))
        for n, names in blocks.items():
            self.assertLessEqual(set(LIMITERS), set(names))
            self.assertEqual(names.index("none") < names.index("natra"),
                             (n // throughput.BLOCKS + n % throughput.BLOCKS) % 2 == 0)
        self.assertEqual(plan.count((0, "natra-tcx-podside")), 1)

    def test_an_emulated_cpu_is_not_asked_for_cpu_time(self):
        plan = [c for _, c in schedule("full", NODE)]
        self.assertFalse(any(c.why_not for c in plan))
        with unittest.mock.patch("cells.EMULATED", True):
            left = {c.workload for _, c in schedule("full", NODE) if not c.why_not}
        self.assertEqual({c.workload for c in plan} - left,
                         {"throughput", "per-packet", "add", "starts"})

    def test_the_wire_comes_first(self):
        first = schedule("ci", NODE, only=["sweep"])[0][1]
        self.assertEqual(first.limiter, "none")

    def test_each_workload_has_what_the_frame_calls(self):
        for module in workloads.MODULES:
            for name in ("NAMES", "cells", "run", "text", "targets", "report",
                         "answers"):
                self.assertTrue(hasattr(module, name), f"{module.__name__}: {name}")


class Resumed(unittest.TestCase):
    ABOUT = {"kernel": "6.12", "cpu": "x", "cpus": 2, "natra": "0.1", "commit": "c"}

    def kept(self, **changes):
        with tempfile.TemporaryDirectory() as d:
            path = f"{d}/results.json"
            bench.save(path, [sample("mixed", "none", {"load": "tilt"}, 3)],
                       {"profile": "full", "machine": self.ABOUT, "seconds": 9})
            return bench.kept(path, "full", dict(self.ABOUT, **changes))

    def test_what_is_there_is_not_measured_again(self):
        run_ = bench.Run(None, self.kept()["samples"])
        wanted = cell("mixed", "none", 1, load="tilt")
        self.assertEqual([run_.have(n, wanted) for n in (2, 3)], [False, True])

    def test_a_failed_cell_is_measured_again(self):
        failed = dict(sample("mixed", "none", {"load": "tilt"}), error="no traffic")
        self.assertFalse(bench.Run(None, [failed]).have(
                0, cell("mixed", "none", 1, load="tilt")))

    def test_other_machines_and_builds_are_not_mixed(self):
        for what in ("kernel", "cpus", "commit"):
            with self.assertRaisesRegex(SystemExit, f"results.json: {what} .* other "):
                self.kept(**{what: "other"})

    def test_the_wire_is_known_again(self):
        wire = sample("sweep", "none", dict(SWEEP, rate="none"), wire_in=900,
                      wire_out=800)
        with self.assertRaisesRegex(bench.Unavailable, "carries 800 Mbit/s"):
            bench.Run(None, [wire]).fits(cell("sweep", "natra", 1, **dict(
                    SWEEP, rate="1G")))


class Sockets(unittest.TestCase):
    LISTED = """\
0 0 [::ffff:10.71.0.2]:5201 [::ffff:10.77.20.2]:1026 cubic bytes_received:700
0 0 [::ffff:10.71.0.2]:5201 [::ffff:10.77.20.2]:1024 cubic rto:201
"""

    def grown(self, before, after, flows=1):
        return streams.grown("x", before, after, flows)

    def test_counters_of_a_list(self):
        found = streams.by_socket(self.LISTED, r"bytes_received:(\d+)")
        self.assertEqual(sorted(found.values()), [0, 700])

    def test_growth(self):
        self.assertEqual(self.grown({1: 5, 2: 0}, {1: 8, 2: 1}), 4)

    def test_other_sockets_fail(self):
        for after in ({1: 8}, {1: 8, 3: 0}, {1: 8, 2: 0, 3: 0}):
            with self.assertRaises(RuntimeError):
                self.grown({1: 5, 2: 0}, after)

    def test_too_few_sockets_fail(self):
        with self.assertRaises(RuntimeError):
            self.grown({1: 5, 2: 0}, {1: 8, 2: 0}, flows=2)

    def test_what_went_back_fails(self):
        with self.assertRaises(RuntimeError):
            self.grown({1: 5, 2: 3}, {1: 80, 2: 2})


class Targets(unittest.TestCase):
    def cap(self, rates, edt=False):
        return [good for name, good in
                verdicts(run(*sweep("natra", [rates], edt))).items()
                if name.startswith("cap of")]

    def test_cap(self):
        self.assertEqual(self.cap((10.4, 9.6)), [True, True])
        self.assertEqual(self.cap((10.6, 9.4)), [False, False])

    def test_paced_egress_is_held_to_more(self):
        self.assertEqual(self.cap((10.4, 10.4), edt=True), [True, False])
        self.assertEqual(self.cap((10.4, 10.1), edt=True), [True, True])

    def test_paced_ingress_is_held_to_more(self):
        def held(pace):
            return verdicts(run(sample(
                    "sweep", "natra-pace", dict(SWEEP, ways="in"), pace=pace,
                    error_in=0.04)))
        self.assertEqual([held(p)["cap of 10M into the pod, 1 flow, "
                                  f"{name}: error"]
                          for p, name in ((True, "paced"), (False, "policed"))],
                         [False, True])

    def test_deviation(self):
        steady, unsteady = [(10, 10)] * 3, [(9, 10), (10, 10), (11, 10)]
        for natra, upstream, good in ((steady, unsteady, True),
                                      (unsteady, steady, False)):
            got = verdicts(run(*sweep("natra", natra),
                               *sweep("upstream", upstream)))
            self.assertEqual([v for k, v in got.items()
                              if k.startswith("deviation")], [good, True])

    def test_deviation_is_that_of_all_cells(self):
        def rows(limiter, **rates):
            return [sample("sweep", limiter, dict(SWEEP, rate=rate), n, wire_in=w)
                    for rate, column in rates.items() for n, w in enumerate(column)]
        found = {t.name: t for t in targets(run(
                *rows("natra", _1=(9, 10, 11) * 2, _2=(50,) * 6),
                *rows("upstream", _1=(98, 100, 102) * 2, _2=(50,) * 6)))}
        target = found["deviation between samples into the pod, policed: at most "
                       "upstream's"]
        # The variances of natra's cells are 80 and 0 squares of a percent, upstream's 3.2
        # and 0.
        self.assertAlmostEqual(target.value, 40 ** 0.5)
        self.assertAlmostEqual(target.bound, 1.6 ** 0.5)
        self.assertEqual(target.judged, "missed by 6 samples")

    def test_how_far_apart_samples_lie_is_told(self):
        res = run(*sweep("natra", [(9, 10), (10, 10), (11, 10)]),
                  *sweep("upstream", [(9.8, 9), (10, 10), (10.2, 11)]))
        said = dict(streams.answers(res))
        self.assertEqual(said["How far do samples lie apart into the pod, policed?"],
                         "natra 10.00 %, upstream 2.00 % (standard deviations; at most "
                         "upstream's: missed by 3 samples).")

    def test_deviation_of_paced_ingress_has_a_row_of_its_own(self):
        paced = [sample("sweep", "natra-pace", dict(SWEEP, ways="in"), n,
                        pace=True, wire_in=w) for n, w in enumerate((9, 10, 11))]
        upstream = sweep("upstream", [(10, 10), (10, 10), (10.1, 10)])
        found = {t.name: t for t in targets(run(
                *paced, *sweep("natra", [(10, 10)] * 3), *upstream))}
        name = "deviation between samples into the pod, {}: at most upstream's"
        self.assertIs(found[name.format("policed")].met, True)
        self.assertIs(found[name.format("paced")].met, False)
        self.assertEqual(found[name.format("paced")].value, 10)

    def test_throughput_is_judged_by_medians(self):
        def rows(limiter, *gbit):
            return [sample("throughput", limiter, {}, n, gbit=g, cpu_per_gb=1)
                    for n, g in enumerate(gbit)]
        found = targets(run(*rows("none", 90, 100, 101),
                            *rows("natra", 50, 97, 98),
                            *rows("natra-x", 99, 96, 40)))
        bad, = missed(found)
        self.assertIn("natra-x: at least 0.97", bad.name)
        self.assertIn("from 40.0 to 99.0 and from 90.0 to 101.0", bad.cause)

    def test_mice(self):
        def rows(rps, p99, tilt):
            got = verdicts(run(
                    mixed("none", "fixed", 500, 20),
                    mixed("natra", "fixed", rps, p99),
                    mixed("none", "tilt", 1000, 100, 900),
                    mixed("upstream", "tilt", 60, 1800, 5000),
                    mixed("natra", "tilt", tilt, 20, 5000)))
            return [v for k, v in got.items() if k.startswith("mice")]
        self.assertEqual(rows(480, 29, 6000), [True] * 5)
        self.assertEqual(rows(470, 31, 599), [False, False, False, True, True])
        self.assertEqual(rows(480, 29, 50), [True, True, False, True, False])

    def test_the_cause_is_told_where_the_machine_carries_less(self):
        def causes(carried):
            base = mixed("none", "fixed", carried, 20)
            base["values"]["offered"] = 500
            found = targets(run(base, mixed("natra", "fixed", 10, 50)))
            return [t.cause for t in found if "fixed load" in t.name]
        self.assertEqual(causes(500), ["", ""])
        self.assertEqual(causes(400), ["without a limiter 400 of 500 were "
                                       "answered"] * 2)

    def test_the_cause_is_told_where_an_emulated_cpu_is_the_limit(self):
        def causes(**machine):
            found = targets(run(mixed("none", "tilt", 500, 20),
                                mixed("natra", "tilt", 400, 20), **machine))
            return [bool(t.cause) for t in missed(found)]
        self.assertEqual(causes(emulated=True), [True])
        self.assertEqual(causes(), [False])

    def test_no_answers_at_all_miss(self):
        bad = mixed("natra", "fixed", 0, None)
        del bad["values"]["p99_ms_annotated"]
        got = verdicts(run(mixed("none", "fixed", 500, 20), bad))
        self.assertIn(False, got.values())

    def test_what_was_not_measured_has_no_verdict(self):
        self.assertEqual(set(verdicts(run()).values()), {None})

    def test_latency(self):
        def at(limiter, stream, us):
            return sample("latency", limiter, {"stream": stream}, p50_us=us)
        got = verdicts(run(at("natra", "idle", 100), at("natra", "in", 151),
                           at("natra", "out", 150),
                           at("natra-pace", "in", 149)))
        self.assertEqual([v for k, v in got.items() if "of idle" in k],
                         [False, True, True])
        got = verdicts(run(at("natra", "in", 151), at("none", "in", 100)))
        self.assertIs(got["latency beside a stream into the pod: median, at most 1.5 "
                          "of no limiter's beside the same stream"], False)

    def test_a_strict_cap_is_won_in_everything_or_not_at_all(self):
        def rows(rps, p99, elephant):
            ours = mixed("natra-charged", "tilt", rps, p99)
            ours["values"].update(elephant_in=elephant, wire_in=10.4, wire_out=10.6)
            res = run(ours, mixed("cake", "tilt", 60, 100), mixed("tbf", "tilt", 80, 100))
            return mice.strict_losses(res), verdicts(res)
        self.assertEqual(rows(70, 90, 10)[0], {
                ("full tilt", "cake"): [], ("full tilt", "tbf"): ["requests/s"]})
        self.assertEqual(rows(80, 90, 9)[0], {
                ("full tilt", name): ["elephant into the pod"] for name in ("cake", "tbf")})
        self.assertEqual(rows(70, 110, 10)[0]["full tilt", "cake"], ["p99"])
        got = rows(70, 90, 9)[1]
        self.assertFalse([name for name in got if "tbf" in name])
        self.assertEqual([got[f"charged, full tilt: {what}"] for what in (
                "all of the pod's traffic in, at most 1.05 of the cap",
                "all of the pod's traffic out, at most 1.05 of the cap",
                "elephant into the pod, at least cake's")], [True, False, False])

    def test_memory_of_the_count_that_is_demanded_is_judged(self):
        def memory(name, pods, kib):
            return sample("memory", name, {"pods": pods}, memlock_kib=kib, all_kib=kib)
        res = run(memory("natra", 1, 500), memory("natra", 50, 90),
                  memory("natra", 500, 80), memory("upstream", 50, 47))
        got = {t.name: t for t in targets(res)}
        self.assertEqual(got["kernel memory of a pod, by memlock"].value, 90)
        self.assertIs(got["kernel memory of a pod, all kinds: at most upstream's"].met,
                      False)

    def test_more_pods_and_flows(self):
        def at(what, count, **values):
            return sample(what, "natra", {what: count}, **values)
        got = verdicts(run(at("pods", 1, add_ms=4, p99_us=100, cpu_per_gb=0.2),
                           at("pods", 500, add_ms=7, p99_us=140, cpu_per_gb=0.21),
                           at("flows", 64, error=-0.06), at("flows", 1, error=0.01)))
        self.assertEqual([v for k, v in got.items() if k.startswith("500 limited")],
                         [False, True, True])
        self.assertEqual([v for k, v in got.items() if "flows: error" in k],
                         [True, False])

    def test_footprint(self):
        def add(natra_kib):
            return verdicts(run(sample(
                    "add", "both", {}, **{"rss_kib natra clsact": natra_kib,
                                          "rss_kib upstream": 10000})))
        name = "ADD, clsact: peak RSS, at most half of upstream's"
        self.assertIs(add(5000)[name], True)
        self.assertIs(add(5001)[name], False)


class Conntrack(unittest.TestCase):
    @staticmethod
    def attr(kind, data):
        length = 4 + len(data)
        return length.to_bytes(2, "little") + kind.to_bytes(2, "little") + \
            data + bytes(-length % 4)

    def event(self, state, stamp=None):
        a = self.attr
        body = a(1 | 1 << 15, a(1, a(1, bytes([10, 0, 0, 1])) +
                                a(2, bytes([10, 0, 0, 2]))) +
                 a(2, a(1, b"\6") + a(2, b"\x30\x39") + a(3, b"\x00\x50"))) + \
            a(4, a(1, a(1, bytes([state]))))
        if stamp:
            body += a(27, stamp.to_bytes(8, "big"))
        head = (20 + len(body)).to_bytes(4, "little") + \
            (0x100).to_bytes(2, "little") + bytes(10) + bytes(4)
        return head + body

    @unittest.skipUnless(sys.byteorder == "little", "written for such")
    def test_events(self):
        data = self.event(1, 123) + self.event(2)
        self.assertEqual([conntrack.parse(m) for m in conntrack.messages(data)],
                         [(("10.0.0.2", 80, 12345), 1, 123),
                          (("10.0.0.2", 80, 12345), 2, None)])

    def test_cut_short(self):
        whole = self.event(1, 123)
        for cut in range(len(whole)):
            for m in conntrack.messages(whole[:cut]):
                conntrack.parse(m)


if __name__ == "__main__":
    unittest.main()
