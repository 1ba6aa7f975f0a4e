#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The commands of `natractl doctor`, run as they are, give a pod all that it had or was to
have. Needs root, as test_pods.py."""
import json
import os
import subprocess
import unittest

from patient import NATRACTL
from test_pods import BPFFS, ID, RATES, States, changed, host_qdisc, isolate, packet_socket, remove_pins, run

CLASSES = ("lan=10.0.0.0/8,fd00::/8,ingress-rate=2G,egress-rate=1G,dscp=46,dscp=0",
           "free=192.168.0.0/16", "voice=egress-rate=3M,dscp=8-10")


class Mends(States):
    def limits(self, p):
        shown = json.loads(p.tool("--json", "show", ID))
        return {k: shown[k] for k in ("classes", "shaped_subnets", "unshaped_subnets")}

    def test_classes_and_subnets(self):
        p = self.patient()
        p.attach(*(w for c in CLASSES for w in ("--class", c)),
                 "--unshaped-subnet", "172.16.0.0/12")
        before = self.limits(p)
        self.assertEqual([c["dscps"] for c in before["classes"]], [[0, 46], [], [8, 9, 10]])
        remove_pins(p)
        p.mend(p.find()["differs"]["mend"])
        self.assertEqual((self.limits(p), p.find()), (before, {}))

    def test_classes_of_an_attachment_that_is_moved(self):
        """The policy is another one, and the lists are those of the attachment."""
        p = self.patient()
        packet_socket(p)
        p.tool("set", ID, "--class", CLASSES[0], "--unshaped-subnet", "172.16.0.0/12")
        before = self.limits(p)
        p.mend(p.find()["packet-socket"]["mend"])
        self.assertEqual(self.limits(p), before)

    def test_classes_of_a_wish(self):
        p = self.patient()
        p.pod("web", RATES, None, {"classes": [
            {"name": "lan", "subnets": ["10.0.0.0/8"], "egressRate": "1G"}]})
        p.mend(p.find()["not-attached"]["mend"])
        self.assertEqual([(c["name"], c["egress_rate_bits_per_sec"], c["subnets"])
                          for c in self.limits(p)["classes"]], [("lan", 10**9, ["10.0.0.0/8"])])
        self.assertEqual(p.find(), {})

    def test_bpffs(self):
        """What was looked at by --bpffs is mended there; without it there is none to name."""
        p = self.patient()
        changed(p)
        for words, begin in ((("--bpffs", BPFFS), f"natractl --bpffs {BPFFS} set "),
                             ((), "natractl set ")):
            out = subprocess.run(
                [NATRACTL, *words, "--json", "doctor", "--root", str(p.root),
                 "--runtime-version", p.runtime, "shop/web"], text=True, check=False,
                capture_output=True, timeout=60).stdout
            mends = {f["check"]: f["mend"] for f in json.loads(out)["findings"]}
            self.assertTrue(mends["changed"].startswith(begin), mends)

    def test_annotation_that_was_refused(self):
        """libcni keeps the value that the pod was made with, whatever it is now: where the limits
        hold by now, that is no fault any more, and no command changes them again."""
        rate, fast = "kubernetes.io/egress-bandwidth", "natra.io/fast-pass"
        for check, annotations, keys, mend in (
                ("wrong-rate", {rate: "10m"}, None, f"{rate}=10M"),
                ("wrong-annotation", {fast: "often"}, {"allowAnnotations": ["fast-pass"]},
                 f"{fast}-"),
                ("unknown-annotation", {"natra.io/fastpass": "off"}, None, "natra.io/fastpass-")):
            with self.subTest(check=check):
                p = self.patient()
                p.pod("web", RATES, annotations, keys)
                found = p.find()[check]
                self.assertEqual((found["note"], found["mend"]), (
                    False, f"kubectl -n shop annotate --overwrite pod web {mend}"))
                p.attach()
                found = p.find()
                self.assertEqual((list(found), found[check]["note"], found[check]["mend"]), (
                    [check], True, "kubectl -n shop describe pod web"))
                self.assertTrue(found[check]["text"].startswith("when it was made: "), found)
                if check == "wrong-rate":
                    p.tool("set", ID, "--egress-rate", "0")
                    self.assertFalse(p.find()[check]["note"])
                self.doCleanups()

    def test_unshaped(self):
        """What the record lacks, the pod's configuration may have; without both attach would be
        asked for no limit, which it refuses."""
        def start(p, *keys):
            p.pod("web", RATES, None, *keys)
            run(os.environ["NATRA_UNSHAPED"], BPFFS, str(p.path), ID, "shop/web", "0")

        p = self.patient()
        start(p)
        p.mend(p.find()["unshaped"]["mend"])
        self.assertEqual(p.find(), {})
        p.detach()
        start(p, {"horizon": "1 year"})
        found = p.find()
        self.assertEqual({c: f["mend"] for c, f in found.items()},
                         dict.fromkeys(("unshaped", "wrong-order"), "kubectl -n shop delete pod web"))

    def test_notes(self):
        """A pod with a note is sound: a script that asks for the exit code hears of faults alone."""
        p = self.patient()
        changed(p)
        answer = p.doctor("shop/web", bare=False, bpffs=BPFFS)
        self.assertEqual((answer.code, answer.out.count("\n")), (0, 3), answer)
        self.assertRegex(answer.out, r"^sound: natra .* 1 limited\nshop/web: note: its limits were")
        answer = p.doctor("--json", "shop/web", bare=False, bpffs=BPFFS)
        self.assertEqual((answer.code, answer.json["sound"], answer.json["findings"][0]["note"]),
                         (0, True, True))
        host_qdisc(p)
        answer = p.doctor("--json", "shop/web", bare=False, bpffs=BPFFS)
        self.assertEqual((answer.code, answer.json["sound"], [
            f["note"] for f in answer.json["findings"]]), (3, False, [False]))


if __name__ == "__main__":
    isolate()
    run("ip", "link", "set", "lo", "up")
    unittest.main()
