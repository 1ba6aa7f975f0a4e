#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests what natractl prints of the attachments that fake_natra.c makes up.
NATRACTL_FAKE is natractl linked with it."""

import errno
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import unittest
import unittest.mock

NATRACTL = os.environ["NATRACTL_FAKE"]
LEFT = "tbf and redirect to bwp0 on veth\\x1b, of the bandwidth plugin"
COUNTERS = ("mice", "admitted", "paced", "marked", "dropped_rate",
            "dropped_horizon", "unlimited", "other")


def run(*args, stdout=subprocess.PIPE, env=None):
    return subprocess.run([NATRACTL, *args], stdin=subprocess.DEVNULL,
                          stdout=stdout, stderr=subprocess.PIPE, timeout=20,
                          env=dict(os.environ, **(env or {})))


def read(*args):
    """Parse output that must be strictly UTF-8 and strictly JSON."""
    return json.loads(run(*args, "--json").stdout.decode())


class Metrics(unittest.TestCase):
    """Tests what natractl metrics writes; unit-metrics tests the format itself."""

    def series(self, *args):
        out = run("metrics", *args)
        self.assertEqual((out.returncode, out.stderr), (0, b""))
        lines = out.stdout.decode("ascii").splitlines()
        found = dict(line.rsplit(" ", 1) for line in lines if line[0] != "#")
        self.assertEqual(len(found), sum(l[0] != "#" for l in lines), "a series twice")
        return found

    def test_series(self):
        found = self.series()
        web = 'namespace="shop",pod="web-0",interface="eth0"'
        self.assertEqual(found[f"natra_unshaped{{{web}}}"], "1")
        # Two attachments have this pod's name, so the second ones say which they are.
        web += ',attachment="web"'
        self.assertEqual(found[f'natra_bytes_total{{{web},direction="ingress",'
                               'verdict="mice"}'], "1500")
        self.assertEqual(found[f'natra_delay_seconds_sum{{{web},direction="egress"}}'],
                         "0.020000000")
        self.assertIn(r'natra_unshaped{interface="\\x1b[2J",attachment="evil"}', found)
        self.assertEqual(found[f'natra_events_total{{{web},direction="egress"}}'], "5")
        self.assertEqual(found[f'natra_events_suppressed_total{{{web},direction="egress"}}'],
                         "7")
        self.assertEqual([found[f'natra_{k}_total{{{web},direction="egress"}}'] for k in
                          ("over_packets", "over_connections")], ["3", "1"])
        self.assertEqual(found["natra_abi_mismatches"], "1")
        # The label is free text.
        self.assertFalse([s for s in found if "xed" in s])

    def test_limit_of_a_class_is_rounded_up(self):
        with unittest.mock.patch.dict(os.environ, NATRA_FAKE_PODS="2", NATRA_FAKE_GROUPS="1"):
            found = [v for s, v in self.series().items() if 'class="cluster"' in s and
                     s.startswith("natra_limit_bytes_per_second")]
        self.assertEqual(found, ["125000001"])

    def test_check_failed(self):
        """An attachment that cannot be checked counts as different, unless natractl itself lacks
        what it needs for that."""
        for number, value in ((errno.EBADE, "1"), (errno.EUCLEAN, "1"), (errno.EIO, "1"),
                              (errno.EMFILE, None), (errno.EPERM, None)):
            with unittest.mock.patch.dict(os.environ, FAKE_CHECK=str(number)):
                found = [v for s, v in self.series().items()
                         if s.startswith("natra_check_failed") and '"evil"' in s]
            self.assertEqual(found, [value] if value else [])

    def test_fewer_series(self):
        most = self.series()
        basic = self.series("--verdicts", "basic")
        for start in ("natra_bytes_total", "natra_backstop_packets_total"):
            self.assertEqual(8 * sum(s.startswith(start) for s in basic),
                             5 * sum(s.startswith(start) for s in most))
        self.assertLess(len(self.series("--aggregate=namespace")), len(most))

    def test_promtool(self):
        promtool = shutil.which("promtool")
        if not promtool:
            self.skipTest("there is no promtool (tools/install-deps monitoring)")
        for args in ([], ["--verdicts=basic"], ["--aggregate=namespace"]):
            p = subprocess.run([promtool, "check", "metrics"], timeout=20,
                               input=run("metrics", *args).stdout, capture_output=True)
            self.assertEqual((p.returncode, p.stdout, p.stderr), (0, b"", b""))

    def test_textfile(self):
        with tempfile.TemporaryDirectory() as tmp:
            path = f"{tmp}/natra.prom"
            for _ in range(2):
                self.assertEqual(run("metrics", "--textfile", path).stdout, b"")
            self.assertEqual(os.listdir(tmp), ["natra.prom"])
            self.assertEqual(os.stat(path).st_mode & 0o777, 0o644)
            with open(path, encoding="ascii") as f:
                self.assertIn("natra_abi_mismatches 1\n", f.read())
            # A write that fails keeps the old file and leaves no other behind.
            os.mkdir(f"{tmp}/dir")
            for bad in (f"{tmp}/dir", f"{tmp}/none/x.prom"):
                out = run("metrics", "--textfile", bad)
                self.assertEqual(out.returncode, 1)
                self.assertIn(f"to '{bad}':".encode(), out.stderr)
                self.assertEqual(out.stderr.count(b"\n"), 1)
            self.assertEqual(sorted(os.listdir(tmp)), ["dir", "natra.prom"])


class Human(unittest.TestCase):
    def test_control_characters_are_escaped(self):
        for args in (["list"], ["show", "evil"], ["show", "web"],
                     ["stats", "evil"], ["top", "evil"]):
            with self.subTest(args=args):
                out = run(*args).stdout
                text = out.decode("ascii").replace("\n", "")
                self.assertTrue(text.isprintable(), text)
        self.assertIn(rb"a\x0ab\xff\xed\xa0\x80\xc2\x9b",
                      run("show", "evil").stdout)

    # natractl's words, and what they print and do not.
    SHOWN = (
        ("show web",
         ["10 Mbit/s (10000000 bit/s), burst 5 Mbit (default)",
          "1.5 Gbit/s (1500000000 bit/s), burst 32 Mbit\n", "tcx-podside (asked: tcx-podside)",
          "ingress mode    police\n", "fast pass       free\n",
          # It also bounds what egress holds.
          "pace limit      50 ms (default)\n"],
         ["ingress pacing", "unshaped:", "peers", "leftovers", "another build"]),
        ("show evil",
         ["ingress mode    pace\n", "pace limit      50 ms (default)\n",
          "fast pass       strict, 70 % of the rate\n", "ingress pacing  on\n",
          "  unshaped peers  10.0.0.0/8, 2001:db8::/32\n",
          "of another build (natractl upgrade)\n", f"  leftovers       {LEFT}\n"], ["class"]),
        ("show bare",
         ["\n  unshaped: no\\x1b fq\n", "10 Mbit/s",
          "  class cluster   ingress unlimited, egress 1 Gbit/s, DSCP 8 46, "
          "peers 10.0.0.0/8, fd00::/8\n"], ["egress pacing"]),
        ("stats bare", ["\nbare, class cluster\n  ingress\n    offered "], ["connections"]),
    )

    def test_shown(self):
        for words, there, absent in self.SHOWN:
            out = run(*words.split()).stdout.decode()
            for text in there:
                self.assertIn(text, out)
            for text in absent:
                self.assertNotIn(text, out)

    def test_hooks_in_order(self):
        out = run("show", "web").stdout.decode()
        self.assertRegex(out, r"0: program 12 early\\x1b \(before this\)\n.*"
                              r"1: program 12 natra_ingress \(this\)\n.*"
                              r"2: filter u32\\x1b priority 3 handle 0\n")
        # An interface that is gone has no hooks to query.
        self.assertNotIn("natra_ingress", run("show", "gone").stdout.decode())

    def test_leftovers(self):
        attach = "attach", "old", "--id", "bare", "--egress-rate", "1M"
        r = run(*attach)
        self.assertEqual(r.returncode, 0)
        self.assertRegex(r.stderr.decode(),
                         r"^natractl: warning: tbf and redirect to bwp0 on "
                         r"veth\\x1b, .* \(--replace-bandwidth removes them\)\n$")
        # What the bandwidth plugin left goes last, unless natra cannot be attached
        # beside it.
        gone = ["drain leftovers of {0}", "remove leftovers of {0}"]
        for name, code, calls in (("old", 0, ["attach to {0}", *gone]),
                                  ("tied", 0, ["attach to {0}", *gone, "attach to {0}"]),
                                  ("taken", 1, ["attach to {0}"]),
                                  ("stuck", 1, ["attach to {0}"])):
            r = run("attach", name, *attach[2:], "--replace-bandwidth",
                    env={"NATRA_FAKE_CALLS": "1"})
            said = [line for line in r.stderr.decode().splitlines()
                    if not line.startswith("natractl: ")]
            self.assertEqual((r.returncode, said),
                             (code, [line.format(name) for line in calls]))
        self.assertEqual(run("attach", "eth0", *attach[2:]).stderr, b"")
        # A mistake in the arguments removes nothing.
        r = run("attach", "old", "--replace-bandwidth")
        self.assertEqual(r.returncode, 2)
        self.assertNotIn(b"remove", r.stderr)

    def test_warns_of_what_runs_before(self):
        for args in (["check", "web"], ["attach", "eth0", "--id", "web",
                                        "--egress-rate", "1M"]):
            with self.subTest(args=args):
                r = run(*args)
                self.assertEqual(r.returncode, 0)
                self.assertRegex(r.stderr, rb"^natractl: warning: program 12 "
                                 rb"early\\x1b on the tcx egress of eth0 "
                                 rb"runs before natra: .+\n$")

    def test_list(self):
        lines = run("list").stdout.decode().splitlines()
        self.assertEqual(len(lines), 6)
        self.assertRegex(lines[2], r"^shop/web-0 +eth0 +- +10M +- +1\.5G +unshaped +bare +no\\x1b fq$")
        self.assertRegex(lines[3], r"^shop/web-0 +eth0 .* gone +gone$")
        self.assertRegex(lines[4], r"^shop/web-0 +eth0 +- +10M +- +1\.5G +ABI 99 +newer$")
        # Of the fake's counters, each reading adds 1500 bytes to those before.
        self.assertRegex(lines[5], r"^shop/web-0 +eth0 +\d+k +10M +[\d.]+k +1\.5G +ok +web$")

    def test_list_wide(self):
        lines = run("list", "--wide").stdout.decode().splitlines()
        self.assertRegex(lines[4], r"^newer +eth0 +10 Mbit/s +1.5 Gbit/s +tcx-podside +on +ABI 99 ")
        self.assertRegex(lines[2], r"^bare .* unshaped: no\\x1b fq$")
        self.assertRegex(lines[3], r"^gone .* gone +shop/web-0$")

    def test_top(self):
        out = run("top", "web").stdout.decode()
        self.assertRegex(out, r"\ningress +tcp +10\.0\.0\.1:443 "
                              r"+10\.0\.0\.2:5000 +3 kB +0 ")
        self.assertRegex(out, r"\ningress +89 +fd01:: +fd02:: +2 kB +0 ")

    def test_counters(self):
        out = run("stats", "bare").stdout.decode()
        ingress = out[out.index("ingress"):out.index("egress")]
        self.assertEqual(
            [(l.split()[0], int(l.split()[1])) for l in
             ingress.splitlines()[1:9]],
            [("offered", 36), *((name, i) for i, name in
                                enumerate(COUNTERS, 1))][:8])
        self.assertRegex(ingress, r"mean delay +3 ms\n")
        self.assertNotIn("up to", ingress)
        self.assertRegex(run("stats", "web").stdout.decode(),
                         r"\n    delays  .*50 % up to 1\.049 ms +90 % up to 2\.097 ms "
                         r" +99 % over 549\.8 s\n")

    def test_connections(self):
        out = run("stats", "web").stdout.decode()
        self.assertRegex(out, r"\n    connections +20 begun +10 accepted  2 refused  "
                              r"4 SYNs again  1 forgotten\n"
                              r"    accepted in +50 % up to 33\.55 ms  90 % up to "
                              r"33\.55 ms  99 % up to 1\.074 s\n")
        self.assertEqual(out.count("connections"), 2)

    def test_errors(self):
        for args in (["show", "no"], ["stats", "no"], ["set", "no", "--egress-rate",
                     "1M"],
                     ["attach", "none", "--egress-rate", "1M"]):
            with self.subTest(args=args):
                r = run(*args)
                self.assertEqual((r.returncode, r.stdout), (1, b""))
                self.assertRegex(r.stderr, rb"^natractl: .+\n$")
        r = run("check", "gone")
        self.assertEqual((r.returncode, r.stdout, r.stderr.count(b"\n")), (3, b"", 1))
        with open("/dev/full", "w", encoding="ascii") as full:
            r = run("list", stdout=full)
        self.assertEqual(r.returncode, 1)
        self.assertIn(b"No space left", r.stderr)

    def test_probe_tells_by_its_exit_code(self):
        r = run("probe")
        self.assertEqual((r.returncode, r.stderr), (3, b""))
        self.assertIn(b"kernel      5.10.0 (lacks what natra needs)\n",
                      r.stdout)
        self.assertRegex(r.stdout, rb"clock +yes\natomics +no\ncookie +no\n"
                                   rb"tstamp +no\n")
        self.assertIn(b"because     this kernel lacks atomics\n", r.stdout)

    def test_detach(self):
        self.assertEqual(run("detach", "a").stderr, b"detach a\n")
        r = run("detach", "none")
        self.assertEqual((r.returncode, r.stderr),
                         (1, b"detach none\nnatractl: ID|POD: 'none' is not attached\n"))
        r = run("detach", "eth0", "--netns", "x")
        self.assertEqual(r.stderr, b"detach web\n")
        r = run("detach", "eth1", "--netns", "x")
        self.assertEqual(r.stderr, b"detach by name\n")

    def test_upgrade(self):
        r = run("upgrade", "web", "gone", "no", "bare")
        self.assertEqual((r.returncode, r.stdout), (1, b""))
        # A failure with one attachment does not keep the others from being upgraded.
        self.assertEqual(r.stderr.splitlines(), [
            b"upgrade web", b"upgrade gone", b"natractl: No such device",
            b"upgrade no", b"natractl: No such file or directory",
            b"upgrade bare"])
        self.assertEqual(run("upgrade", "web").returncode, 0)
        # Without arguments, natractl skips what has no program and is silent about an
        # attachment that has gone meanwhile.
        r = run("upgrade")
        self.assertEqual(r.stderr.splitlines(), [
            b"upgrade newer", b"natractl: Stale file handle",
            b"upgrade evil", b"upgrade web"])
        self.assertEqual((r.returncode, r.stdout), (1, b""))

    def test_what_an_upgrade_would_do(self):
        r = run("upgrade", "--check")
        self.assertEqual((r.returncode, r.stderr), (3, b""))
        self.assertEqual([line.partition(":")[0] for line in r.stdout.decode().splitlines()],
                         ["refused   shop/web-0", "in place  a\\x0ab\\xff\\xed\\xa0\\x80\\xc2\\x9b",
                          "current   shop/web-0"])
        self.assertIn("ABI 99", r.stdout.decode())
        self.assertEqual(run("upgrade", "--check", "web", "evil").returncode, 0)
        layout = {"FAKE_LAYOUT": "1"}
        r = run("upgrade", "--check", "--json", "evil", "bare", env=layout)
        self.assertEqual((r.returncode, [(a["id"], a["upgrade"]) for a in json.loads(r.stdout)]),
                         (3, [("evil", "replaced"), ("bare", "refused")]))
        self.assertEqual(run("upgrade", "--check", "evil", env=layout).returncode, 3)
        # Nothing was upgraded.
        self.assertEqual(r.stderr, b"")
        r = run("upgrade", "--check", "--json", "none", "web")
        self.assertEqual((r.returncode, [[*a, *a.values()][:7] for a in json.loads(r.stdout)]), (1, [
            ["id", "label", "upgrade", "why", *values] for values in (
                ("none", "", "failed"), ("web", "shop/web-0", "current"))]))


class Json(unittest.TestCase):
    def test_names(self):
        evil = next(i for i in read("list") if i.get("id") == "evil")
        self.assertEqual(evil["ifname"], "\x1b[2J")
        self.assertEqual(evil["label"], "a\nb\ufffd\ufffd\ufffd\ufffd\x9b")
        self.assertEqual(evil["netns_inode"], 2**64 - 1)

    def test_subnets(self):
        evil, web = read("show", "evil"), read("show", "web")
        self.assertEqual(evil["unshaped_subnets"],
                         ["10.0.0.0/8", "2001:db8::/32"])
        self.assertEqual(evil["shaped_subnets"], [])
        self.assertEqual((web["shaped_subnets"], web["unshaped_subnets"]),
                         ([], []))
        self.assertEqual(evil["classes"], [])
        self.assertEqual(read("show", "bare")["classes"], [
            {"name": "cluster", "ingress_rate_bits_per_sec": 0,
             "egress_rate_bits_per_sec": 10**9, "dscps": [8, 46],
             "subnets": ["10.0.0.0/8", "fd00::/8"]}])

    def test_stats_of_classes(self):
        stats = read("stats", "bare")
        self.assertEqual([c["name"] for c in stats["classes"]], ["cluster"])
        self.assertEqual(stats["classes"][0]["egress"]["paced"]["packets"], 7)
        self.assertNotIn("classes", read("stats", "evil"))

    def test_leftovers(self):
        self.assertEqual(read("show", "evil")["leftovers"],
                         {"host_ifname": "veth\x1b", "limits_ingress": True, "is_htb": False,
                          "limits_egress": True, "ifb_ifname": "bwp0",
                          "waiting_ns": 250000000})
        self.assertFalse(read("show", "web")["leftovers"]["limits_ingress"])

    def test_unshaped(self):
        bare = next(i for i in read("list") if i.get("id") == "bare")
        self.assertTrue(bare["unshaped"])
        self.assertEqual(bare["reason"], "no\x1b fq")
        self.assertFalse(read("show", "web")["unshaped"])

    def test_other_abi(self):
        newer, web = read("list")[3], read("show", "web")
        self.assertEqual((newer["id"], newer["abi"], newer["other_abi"]), ("newer", 99, True))
        rates = {"ingress_rate_bits_per_sec": 10_000_000, "egress_rate_bits_per_sec": 1_500_000_000}
        self.assertEqual((newer["policy"], newer["effective"]), (rates, rates))
        self.assertNotIn("classes", newer)
        self.assertFalse(web["other_abi"])

    def test_counters_are_exact(self):
        stats = read("stats", "web")
        self.assertEqual(stats["ingress"]["mice"]["packets"], 2**60 + 1)
        self.assertEqual(stats["ingress"]["offered"],
                         stats["ingress"]["mice"])
        self.assertNotIn("backstop", stats)
        self.assertEqual([s["id"] for s in read("stats")],
                         ["bare", "evil", "gone", "web"])
        self.assertIn("backstop", read("stats", "evil"))

    def test_each_counter_has_its_name(self):
        ingress = read("stats", "bare")["ingress"]
        for i, name in enumerate(COUNTERS, 1):
            self.assertEqual(ingress[name],
                             {"packets": i, "bytes": 100 * i}, name)
        self.assertEqual(ingress["offered"], {"packets": 36, "bytes": 3600})
        self.assertEqual(ingress["mean_delay_ns"], 3000000)

    def test_names_that_attach_is_given(self):
        attached = read("attach", "eth0", "--egress-rate", "3M", "--label",
                        "shop/cart-1", "--network", "pods")
        self.assertEqual((attached["label"], attached["network"]),
                         ("shop/cart-1", "pods"))

    def test_top(self):
        top = read("top", "web")
        self.assertEqual(top["egress"], [])
        first, second = top["ingress"]
        self.assertEqual((first["protocol"], first["saddr"], first["dport"]),
                         ("tcp", "10.0.0.1", 5000))
        self.assertEqual((second["protocol"], second["daddr"]),
                         ("89", "fd02::"))
        self.assertEqual(read("top", "web", "-n1", "--direction", "ingress"),
                         {"id": "web", "ingress": [first]})

    def test_uninstall_collects_garbage(self):
        """Only if it has understood what it is asked for."""
        with tempfile.TemporaryDirectory() as root:
            for *more, code, does in (("--net-dir=x", 2, False), ("--dry-run", 1, False), (1, True)):
                r = run("uninstall", "--root", root, *more, env={"NATRA_FAKE_CALLS": "1"})
                self.assertEqual((r.returncode, b"gc\n" in r.stderr), (code, does), r.stderr)

    def test_the_rest(self):
        self.assertEqual(read("gc"), {"removed": 2})
        self.assertEqual(read("check", "web"), {"id": "web", "ok": True})
        self.assertFalse(read("check", "gone")["ok"])
        self.assertEqual(read("upgrade", "web", "gone"),
                         [{"id": "web", "ok": True},
                          {"id": "gone", "ok": False, "error": ""}])
        self.assertEqual(read("upgrade"), [{"id": "newer", "ok": False, "error": ""},
                                           {"id": "web", "ok": True}])
        self.assertFalse(read("show", "evil")["program_is_current"])
        self.assertEqual(read("probe")["auto_mode"], "none")
        self.assertEqual(len(read("show", "web")["hooks"]), 3)
        attached = read("attach", "eth0", "--egress-rate", "3M", "--edt-pacing", "on")
        self.assertEqual(attached["policy"]["egress_rate_bits_per_sec"],
                         3000000)
        self.assertEqual(attached["policy"]["edt_pacing"], "on")


class Events(unittest.TestCase):
    """natractl events"""

    ROW = (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z +(\S+) +(\S+) +tcp +"
           r"10\.0\.0\.1:443 +10\.0\.0\.2:5000 +(\S+) +(\S+)$")

    def rows(self, *args):
        out = run("events", *args)
        self.assertEqual(out.returncode, 0, out.stderr)
        header, *rows = out.stdout.decode("ascii").splitlines()
        self.assertEqual(header.split(), ["TIME", "DIRECTION", "REASON", "PROTO",
                                          "SOURCE", "DESTINATION", "CLASS", "POD"])
        for row in rows:
            self.assertRegex(row, self.ROW)
        return [re.match(self.ROW, row).groups() for row in rows], out.stderr

    def test_table(self):
        rows, err = self.rows()
        self.assertEqual([r[:2] for r in rows], [
            ("egress", "heavy"), ("backstop", "dropped_rate"),
            ("-", "dropped_horizon"), ("egress", "mice_over_share")])
        self.assertEqual([r[2] for r in rows], ["-", "-", "-", "cluster"])
        self.assertEqual([rows[i][3] for i in (0, 2, 3)], ["shop/web-0", "-", "shop/web-0"])
        self.assertIn(r"\x", rows[1][3], "escapes of a label reach the terminal")
        self.assertEqual(err, b"natractl: 3 events were overwritten before they were "
                         b"read\n")

    def test_of_one_pod(self):
        for name in ("web", "shop/web-0"):
            rows, _ = self.rows(name)
            self.assertEqual([r[1] for r in rows], ["heavy", "mice_over_share"])
        out = run("events", "shop/we")
        self.assertEqual(out.returncode, 1)
        self.assertEqual(out.stderr, b"natractl: ID|POD: 'shop/we' is neither the ID nor "
                         b"the label of an attachment\n")

    def test_since(self):
        self.assertEqual(len(self.rows("--since", "15s")[0]), 2)
        for bad in ("5m", "0s", "2h", ""):
            out = run("events", "--since", bad)
            self.assertEqual((out.returncode, out.stdout), (2, b""), bad)
            self.assertIn(b"--since", out.stderr)

    def test_json(self):
        events = [json.loads(line) for line in
                  run("events", "--json").stdout.decode().splitlines()]
        self.assertEqual([e["lost"] for e in events], [0, 0, 3, 0])
        # The event behind the gap may be one that is not asked for.
        for words, lost in ((("web",), [0, 3]), (("--since", "5s"), [3])):
            self.assertEqual([json.loads(line)["lost"] for line in run(
                "events", "--json", *words).stdout.splitlines()], lost)
        self.assertEqual([e["id"] for e in events], ["web", "evil", "", "web"])
        self.assertEqual([e["class"] for e in events], ["", "", "", "cluster"])
        self.assertEqual(events[0]["reason"], "heavy")
        self.assertEqual((events[0]["saddr"], events[0]["dport"]), ("10.0.0.1", 5000))
        self.assertGreater(events[3]["time_ns"], events[0]["time_ns"])

    def test_follow(self):
        with subprocess.Popen([NATRACTL, "events", "--follow", "--json", "web"],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as p:
            told = [json.loads(p.stdout.readline()) for _ in range(5)]
            self.assertEqual({e["id"] for e in told}, {"web"})
            self.assertIn(("over_limit", 3720),
                          [(e["reason"], e["over_limit_percent"]) for e in told])
            p.send_signal(signal.SIGINT)
            p.stdout.read()
            self.assertEqual(p.wait(timeout=10), 0)

    def test_there_are_none(self):
        with unittest.mock.patch.dict(os.environ, NATRA_FAKE_NO_EVENTS="1"):
            out = run("events")
        self.assertEqual((out.returncode, out.stdout), (1, b""))
        self.assertEqual(len(out.stderr.splitlines()), 1)

    def test_over_gates(self):
        """What was over a limit of packets or connections has another counter as well."""
        stats = read("stats", "web")
        self.assertEqual([stats["egress"][f"over_{k}"]["packets"]
                          for k in ("packets", "connections")], [3, 1])
        self.assertEqual(stats["egress"]["offered"], {"packets": 1010, "bytes": 100})

    def test_counters(self):
        self.assertRegex(run("stats", "web").stdout.decode(),
                         r"\n    events +5 reported +7 suppressed\n")
        stats = read("stats", "web")["egress"]
        self.assertEqual((stats["events_reported"], stats["events_suppressed"]), (5, 7))
        self.assertEqual(stats["connections"], {
            "begun": 20, "repeated": 4, "refused": 2, "forgotten": 1,
            "accepted": {"count": 10, "sum_ns": 1500000000,
                         "buckets": [{"up_to_ns": 1 << 25, "count": 9},
                                     {"up_to_ns": 1 << 30, "count": 1}]}})
        self.assertNotIn("connections", read("stats", "bare")["egress"])


class Set(unittest.TestCase):
    def policy(self, *args):
        return read("set", "web", *args)["policy"]

    def test_what_is_not_given_stays(self):
        p = self.policy("--ingress-rate", "20M")
        self.assertEqual(p["ingress_rate_bits_per_sec"], 20000000)
        self.assertEqual(p["ingress_burst_bits"], 0)  # follows the rate
        self.assertEqual(p["egress_rate_bits_per_sec"], 1500000000)
        self.assertEqual(p["egress_burst_bits"], 32000000)
        self.assertEqual(p["attach_mode"], "tcx-podside")

    def test_a_limit_goes_with_its_burst(self):
        for rate, group in ("0", ""), ("unlimited", ""), ("0", "team"):
            with unittest.mock.patch.dict(os.environ, FAKE_GROUP=group):
                p = self.policy("--egress-rate", rate)
            self.assertEqual((p["egress_rate_bits_per_sec"], p["egress_burst_bits"],
                              p["egress_packet_rate_per_sec"]), (0, 0, 1000 if group else 0))

    def test_what_does_not_go_with_what_there_is(self):
        for args, wrong in (
                (["set", "web", "--egress-rate", "0", "--egress-burst", "64k"], "egress-burst: '64k'"),
                (["group", "set", "a", "--ingress-rate", "1M", "--group-floor", "2M"],
                 "group-floor: '2M'")):
            p = run(*args)
            self.assertEqual(p.returncode, 2)
            self.assertIn(f"--{wrong} is refused: ", p.stderr.decode())

    def test_back_to_the_default(self):
        self.assertEqual(self.policy("--egress-burst", "default")["egress_burst_bits"], 0)


class Watch(unittest.TestCase):
    def watch(self, *args, lines):
        with subprocess.Popen([NATRACTL, "stats", "--watch", "1", *args],
                              stdout=subprocess.PIPE, text=True) as process:
            try:
                out = [process.stdout.readline() for _ in range(lines)]
                process.send_signal(signal.SIGINT)
                self.assertEqual(process.wait(timeout=10), 0)
            finally:
                process.kill()
        return out

    def test_intervals(self):
        line = json.loads(self.watch("--json", "web", lines=1)[0])
        self.assertEqual(line["ingress"]["mice"],
                         {"packets": 1, "bytes": 1500})
        self.assertEqual(line["egress"]["mean_delay_ns"], 2000000)
        self.assertEqual(line["egress"]["marked"]["packets"], 0)
        self.assertEqual(line["egress"]["delays"], {
            "count": 10, "sum_ns": 20000000,
            "buckets": [{"up_to_ns": 1 << 20, "count": 6},
                        {"up_to_ns": 1 << 21, "count": 3}, {"count": 1}]})
        self.assertGreater(line["interval_ns"], 900000000)

    def test_what_is_no_counter(self):
        for pod, direction, is_class, values in (("web", "ingress", False, (5000, 250, 2)),
                                                 ("bare", "egress", True, (1000, 150, 3))):
            line = json.loads(self.watch("--json", pod, lines=1)[0])
            now = (line["classes"][0] if is_class else line)[direction]
            self.assertEqual(tuple(now[k] for k in (
                "over_limit_time_ns", "over_limit_percent", "heavy_flows")), values)

    def test_table_of_all(self):
        lines = self.watch(lines=11)
        self.assertRegex(lines[0], r"^ID .*DELAY\n$")
        self.assertRegex(lines[4], r"^/cluster +egress ")
        self.assertRegex(lines[10], r"^web +egress .* 2 ms\n$")

    def test_columns_of_the_table(self):
        """36 packets were offered, of which 11 were dropped, for two reasons."""
        header, line = self.watch("bare", lines=2)
        self.assertEqual(header.split()[2:], [
            "OFFERED", "MICE", "ADMITTED", "PACED", "MARKED", "DROPPED",
            "DELAY"])
        rates = re.findall(r"([0-9.]+) kbit/s|(\d+) bit/s", line)
        rates = [float(k or 0) * 1000 + float(b or 0) for k, b in rates]
        for rate, part in zip(rates, (36, 1, 2, 3, 4, 11), strict=True):
            self.assertAlmostEqual(rate / rates[0], part / 36, delta=0.01)


if __name__ == "__main__":
    unittest.main()
