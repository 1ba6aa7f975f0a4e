#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests the workloads of requests beside elephants, of a server of many connections, and
those of flent: their cells, what they make of samples, and what they read."""
import gzip
import json
import os
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import unittest
import unittest.mock
from pathlib import Path

import bench                    # finds the harness
import flent_file
import headofline
import rrul
import rrul_probe
import web
from cells import Node
from fair_scenarios import rr_load
from meter import ETH_IPV4_TCP
from statistic import ENOUGH, Results
from workloads import WORKLOADS, schedule

HERE = Path(__file__).resolve().parent
ABOUT = {"kernel": "6.12", "cpus": 2, "cpu": "x", "date": "2026-11-24 02:52 UTC",
         "commit": "c"}
NODE = Node(qdiscs=("tbf", "fq_codel", "cake"), fq=True)
AB = """\
Complete requests:      1200
Failed requests:        3
Time taken for tests:   4.000 seconds
"""


def sample(workload, limiter, params, n=0, **values):
    return {"workload": workload, "limiter": limiter, "params": params, "sample": n,
            "values": values, "series": {}}


def run(*samples):
    return Results({"format": 2, "machine": ABOUT, "samples": samples, "left_out": []})


def verdicts(module, *samples):
    return {t.name: t.verdict for t in module.targets(run(*samples))}


def beside(limiter, p99, n=0, way="in", elephants=4, **more):
    """Return a sample in which the p99 of each share is this."""
    values = {"idle_ms": 1, "wire": 10, "elephants": 9, **more}
    for share in headofline.SHARES:
        values |= {f"p99_ms_{share}": p99, f"mean_ms_{share}": p99 / 2,
                   f"answered_{share}": 1, **more}
    return sample("head-of-line", limiter, {"way": way, "elephants": elephants}, n,
                  **values)


class Plan(unittest.TestCase):
    def test_what_targets_are_made_of_has_enough_samples(self):
        plan = [c for _, c in schedule("full", NODE, only=["head-of-line"])]
        for name in ("natra", "natra-charged", "upstream", "fq_codel", "cake"):
            judged = [c for c in plan if c.limiter == name and
                      c.param("elephants") == headofline.JUDGED]
            self.assertEqual(len(judged), 2 * ENOUGH, name)

    def test_paced_ingress_is_a_row_where_there_is_fq(self):
        for fq in (True, False):
            plan = [c for _, c in schedule("full", Node(fq=fq))]
            found = {c.workload for c in plan if c.limiter == "natra-pace"}
            for workload in ("head-of-line", "rrul", "http", "download", "stress", "pods",
                             "flows", "starts"):
                self.assertEqual(workload in found, fq, workload)

    def test_each_peer_of_the_kernel_is_in_each_table(self):
        for workload in ("head-of-line", "http", "download", "udp", "rrul", "nup"):
            plan = {c.limiter for _, c in schedule("full", NODE, only=[workload])}
            self.assertLessEqual({"natra", "natra-charged", "upstream", *NODE.qdiscs},
                                 plan, workload)

    def test_each_cell_can_be_shown(self):
        """A name that a cell has and its module does not would end in no table."""
        for _, c in schedule("full", NODE):
            self.assertIn(c.workload, WORKLOADS[c.workload].NAMES)


class HeadOfLine(unittest.TestCase):
    WHAT = "requests of 1, 5, 10 % of the cap beside 4 elephants into the pod, "

    def test_the_share_is_on_the_wire(self):
        for share in headofline.SHARES:
            size, per_second = rr_load(headofline.CAP, share)
            self.assertAlmostEqual(
                    (size + ETH_IPV4_TCP) * 8 * per_second / headofline.CAP,
                    share / 100, places=6)

    def test_flows_under_their_fair_share(self):
        self.assertEqual(headofline.fair(1), [1, 5, 10, 20])
        self.assertEqual(headofline.fair(4), [1, 5, 10])
        self.assertEqual(headofline.fair(16), [1, 5])

    def test_the_worst_share_counts_in_each_sample(self):
        found = headofline.worst(run(
                beside("natra", 3, 0, p99_ms_5=7), beside("natra", 4, 1, p99_ms_50=99)),
                "natra", "in", "p99_ms")
        self.assertEqual(found.values, (7, 4))

    def test_a_failed_sample_does_not_count(self):
        self.assertEqual(headofline.worst(
                run(beside("natra", 3), sample("head-of-line", "natra", {
                        "way": "in", "elephants": 4}, 1)), "natra", "in", "p99_ms").values,
                (3,))

    def test_targets(self):
        got = verdicts(headofline, *(beside(name, p99, n) for n in range(ENOUGH)
                                     for name, p99 in (("natra", 3 + n % 2 / 10),
                                                       ("natra-charged", 30 + n % 2),
                                                       ("upstream", 1000 + n % 2),
                                                       ("cake", 20 + n % 2))))
        self.assertEqual(got[self.WHAT + "natra: largest p99, at most upstream's"], "met")
        self.assertEqual(got[self.WHAT + "natra, charged: largest p99, at most cake's"],
                         "missed")
        self.assertEqual(got[self.WHAT + "natra: largest mean, at most 1.5 of idle and "
                             "5 ms more"], "met")

    def test_a_mean_as_of_a_queue_misses(self):
        got = verdicts(headofline, *(beside("natra", 20, n) for n in range(ENOUGH)))
        self.assertEqual(got[self.WHAT + "natra: largest mean, at most 1.5 of idle and "
                             "5 ms more"], "missed")

    def test_report_shows_what_was_not_answered(self):
        text = "\n".join(headofline.report(run(beside("upstream", 12, answered_20=0.4))))
        self.assertIn("| upstream | all of the pod's packets within the cap | 10.0 | 9.0 | "
                      "1.0 | 6.0 / 12.0 |", text)


class Web(unittest.TestCase):
    def test_what_ab_says(self):
        got = web.of_ab(AB, "Percentage served,Time in ms\n0,1.5\n50,21.250\n99,99.5\n")
        self.assertEqual(got, {"requests": 1200, "failed": 3, "rps": 300,
                               "p50_ms": 21.25, "p99_ms": 99.5})

    def test_no_answer_is_an_error(self):
        with self.assertRaisesRegex(RuntimeError, "no request was answered"):
            web.of_ab(AB.replace("1200", "0"), "")

    def test_least_time_of_a_download(self):
        self.assertAlmostEqual(web.least_seconds(1448 * 1000, 1514 * 8), 1000)

    def test_the_pods_whole_traffic_is_judged(self):
        def of(wire):
            got = verdicts(web, *(sample(
                    "http", "natra-charged", {"kind": "fresh", "cap": web.BOUND}, n,
                    wire_out=wire + n / 100) for n in range(ENOUGH)))
            return got[f"fresh requests at a cap of {web.BOUND}, charged: all of the "
                       "pod's traffic out, at most 1.05 of the cap"]
        self.assertEqual([of(104), of(106)], ["met", "missed"])

    def test_a_strict_cap_is_compared_with_strict_ones(self):
        params = {"kind": "keep-alive", "cap": web.BOUND}
        rows = [sample("http", name, params, n, rps=rps + n, p99_ms=ms + n / 10)
                for n in range(ENOUGH) for name, rps, ms in (
                        ("natra", 9000, 1), ("natra-charged", 2000, 50),
                        ("upstream", 1900, 40))]
        got = {k: v for k, v in verdicts(web, *rows).items() if "keep-alive" in k}
        self.assertEqual(list(got.values()), ["met", "missed"])
        self.assertFalse([k for k in got if "natra:" in k])

    def fetched(self, body, size):
        """Return fetch()'s figures of a server that answers with these bytes."""
        server = socket.create_server(("127.0.0.1", 0))

        def answer():
            s, _ = server.accept()
            s.recv(1000)
            s.sendall(b"HTTP/1.0 200 OK\r\n\r\n" + body)
            s.close()
        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        try:
            with unittest.mock.patch("builtins.print") as said:
                web.fetch("127.0.0.1", server.getsockname()[1], "/file", size)
            return json.loads(said.call_args[0][0])
        finally:
            thread.join(5)
            server.close()

    def test_a_download(self):
        got = self.fetched(bytes(10 ** 6), 10 ** 6)
        self.assertLessEqual(got["connect_ms"], got["first_byte_ms"])
        self.assertLessEqual(got["first_byte_ms"], got["seconds"] * 1e3)
        self.assertEqual(got["first_second_mb"], 1)

    def test_a_download_that_ends_early_fails(self):
        with self.assertRaisesRegex(ConnectionError, "after 1000 of 1001"):
            self.fetched(bytes(1000), 1001)


    def test_a_report_of_a_vm_is_made_on_its_host(self):
        """The VM has other caps and sizes than this machine."""
        text = "\n".join(web.report(run(
                sample("http", "natra", {"kind": "fresh", "cap": "33M", "clients": 44},
                       rps=1, wire_in=1, wire_out=2),
                sample("download", "natra", {"way": "in", "mb": 55, "rate": "66M"},
                       seconds=1, first_byte_ms=2, first_second_mb=3))))
        for words in ("44 connections", "at a cap of 33M", "55 MB at 66M"):
            self.assertIn(words, text)


class Probes(unittest.TestCase):
    def test_each_probe_comes_back_in_its_class(self):
        """On this machine's loopback, ICMP too where it may be sent."""
        marks = {"BE": 0, "EF": 0xb8}
        if os.geteuid() == 0:
            marks["ICMP"] = None
        pid = os.fork()
        if not pid:
            try:
                rrul_probe.echo()
            finally:
                os._exit(1)
        try:
            with unittest.mock.patch("builtins.print") as said:
                rrul_probe.probe("127.0.0.1", marks, 0.5)
        finally:
            os.kill(pid, 9)
            os.waitpid(pid, 0)
        got = json.loads(said.call_args[0][0])
        self.assertEqual({name: (rows["sent"], len(rows["answers"]) >= 9)
                          for name, rows in got.items()},
                         {name: (10, True) for name in marks})

    def test_icmp_of_others_is_no_answer(self):
        probe = object.__new__(rrul_probe.Probe)
        probe.icmp, probe.ident = True, 7

        def number(kind, ident):
            return probe.number_of(bytes(rrul_probe.IP_BYTES) + struct.pack(
                    rrul_probe.ICMP_HEAD, kind, 0, 0, ident, 3))
        self.assertEqual([number(0, 7), number(8, 7), number(0, 8)], [3, None, None])

    def test_checksum(self):
        # The example of RFC 1071, section 3.
        self.assertEqual(rrul_probe.checksum(bytes.fromhex("0001f203f4f5f6f7")),
                         0xffff - 0xddf2)

    def test_answers_that_never_came_are_lost(self):
        values, series = rrul.of_probes(
                {"BE": {"sent": 4, "answers": [[10.1, 1], [10.3, 3], [10.35, 5]]}}, 10)
        self.assertEqual((values["lost_BE"], values["p50_ms_BE"]), (0.25, 3))
        self.assertEqual(series["ping BE"][:3], [1, 4, None])

    def test_no_answer_at_all(self):
        values, series = rrul.of_probes({"EF": {"sent": 4, "answers": []}}, 10)
        self.assertEqual(values, {"lost_EF": 1})
        self.assertEqual(set(series["ping EF"]), {None})


class Streams(unittest.TestCase):
    def test_rates_of_notes(self):
        noted = rrul.Noted([])
        noted.rows = [(0, [0, 0]), (1, [125000, 0]), (2, [125000, 250000])]
        self.assertEqual(noted.mbits(), [[1, 0], [0, 2]])
        self.assertEqual(noted.means(), [0.5, 1])

    def test_unfair_streams_miss(self):
        def of(jain):
            got = verdicts(rrul, *(sample("nup", "natra", {
                    "mix": "cubic", "rate": "100M"}, n, jain=jain - n / 1000)
                    for n in range(ENOUGH)))
            return got["16 streams (cubic), natra: Jain's index"]
        self.assertEqual([of(0.99), of(0.9)], ["met", "missed"])

    def test_report_tells_lost_probes(self):
        values = {f"{m}_{w}": 9.5 for m in ("wire", "sum", "jain") for w in ("in", "out")}
        text = "\n".join(rrul.report(run(sample(
                "rrul", "upstream", {"rate": "77M"}, **values, p50_ms_BE=2, p99_ms_BE=3,
                lost_BE=0.25, lost_EF=1))))
        self.assertIn("| 2.0 / 3.0 (25% lost) | – | none | – |", text)
        self.assertIn("cap of 77M", text)


class Flent(unittest.TestCase):
    ROW = {"workload": "rrul", "limiter": "natra", "params": {"rate": "10M"},
           "sample": 2, "values": {}, "series": {
                   "in BE": [1, 2], "in EF": [3, 4], "out BE": [5, 6],
                   "ping BE": [0.5, None], "ping ICMP": [1.5, 2]}}

    def test_series_have_flents_names_and_sums(self):
        got = flent_file.flent(self.ROW, ABOUT)
        self.assertEqual(got["x_values"], [0.2, 0.4])
        self.assertEqual(got["results"], {
                "TCP upload BE": [1, 2], "TCP upload EF": [3, 4],
                "TCP download BE": [5, 6], "Ping (ms) UDP BE": [0.5, None],
                "Ping (ms) ICMP": [1.5, 2], "TCP upload sum": [4, 6],
                "TCP upload avg": [2, 3], "TCP download sum": [5, 6],
                "TCP download avg": [5, 6], "TCP totals": [9, 12],
                "Ping (ms) avg": [1, None]})
        self.assertEqual([r["val"] for r in got["raw_values"]["Ping (ms) UDP BE"]], [0.5])
        self.assertEqual(got["metadata"]["NAME"], "rrul")

    def test_streams_are_numbered(self):
        row = {**self.ROW, "workload": "nup", "params": {"mix": "cubic,cubic ecn"},
               "series": {"1 cubic": [1], "2 cubic ecn": [2], "ping ICMP": [3]}}
        self.assertEqual(set(flent_file.flent(row, ABOUT)["results"]), {
                "TCP upload::1", "TCP upload::2", "TCP upload sum", "TCP upload avg",
                "Ping (ms) ICMP"})
        self.assertEqual(flent_file.file_name(row), "nup-natra-cubic_cubic_ecn-2.flent.gz")

    def test_files(self):
        with tempfile.TemporaryDirectory() as d:
            with open(f"{d}/results.json", "w") as f:
                json.dump({"machine": ABOUT, "samples": [self.ROW]}, f)
            made = []
            for out in ("a", "b"):
                subprocess.run([HERE / "flent_file.py", f"{d}/results.json", f"{d}/{out}"],
                               check=True, stdout=subprocess.DEVNULL)
                made.append(Path(f"{d}/{out}/rrul-natra-10M-2.flent.gz").read_bytes())
            self.assertEqual(*made)
            self.assertEqual(json.loads(gzip.decompress(made[0]))["version"], 4)


if __name__ == "__main__":
    sys.exit(unittest.main())
