#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests natractl call: requests in JSON and their answers, with a library that makes its
attachments up. NATRACTL_FAKE is the binary."""
import errno
import json
import os
import signal
import subprocess
import tempfile
import unittest

NATRACTL = os.environ["NATRACTL_FAKE"]
UINT64_MAX = 2**64 - 1


def call(*requests):
    """Return the exit code, the greeting and the answers."""
    text = "".join(r if isinstance(r, str) else json.dumps(r) + "\n" for r in requests)
    p = subprocess.run([NATRACTL, "--json", "call"], input=text, text=True,
                       stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=20)
    first, *rest = [json.loads(line) for line in p.stdout.splitlines()]
    return p.returncode, first, rest


def answer(name, **members):
    [found] = call({"call": name, **members})[2]
    return found


class Call(unittest.TestCase):
    def refused(self, text, name, code=errno.EINVAL, **members):
        found = answer(name, **members)
        self.assertEqual((found["errno"], found["error"]), (code, text))

    def test_session(self):
        code, first, rest = call({"call": "query", "id": "web"}, {"call": "query", "id": "no"},
                                 {"call": "events_open"}, {"call": "events_read"},
                                 {"call": "events_read"})
        self.assertEqual(code, 0)
        self.assertRegex(first["version"], r"^\d+\.\d+\.\d+$")
        self.assertEqual([r["errno"] for r in rest], [0, errno.ENOENT, 0, 0, 0])
        self.assertEqual(rest[0]["result"]["id"], "web")
        self.assertEqual(rest[0]["result"]["netns_inode"], UINT64_MAX)
        self.assertEqual(rest[1]["error"], os.strerror(errno.ENOENT))
        self.assertEqual([e["lost"] for e in rest[3]["result"]], [0, 0, 3, 0])

    def test_code(self):
        """An error has a code if its errno does not say all."""
        attach = {"policy": {"egress_rate_bits_per_sec": 5}}
        self.assertEqual(answer("attach", target={"ifname": "taken"}, **attach)["code"],
                         "other_qdisc")
        self.assertEqual(answer("policy_annotate", policy={}, allowed=["sli"], annotations={
            "natra.io/sli": "x"})["about"], "natra.io/sli")
        for key in ("code", "about"):
            self.assertNotIn(key, answer("attach", target={"ifname": "stuck"}, **attach))
        self.assertNotIn("code", answer("query", id="web"))
        bad = answer("policy_check", policy={"horizon_ns": -1})
        self.assertEqual((bad["code"], bad["about"]), ("field", "policy.horizon_ns"))

    def test_detach(self):
        self.assertEqual(answer("detach", target={"id": "web"}),
                         {"errno": 0, "result": {"removed": True}})

    def test_numbers(self):
        """The policy comes back as it was given, however large the numbers are."""
        policy = {"ingress_rate_bits_per_sec": 5, "egress_rate_bits_per_sec": "7",
                  "egress_burst_bits": str(UINT64_MAX), "horizon_ns": 2**53 - 1,
                  "fast_pass": "strict", "attach_mode": 2, "edt_pacing": "2"}
        found = answer("attach", target={"ifname": "eth0", "id": "web"}, policy=policy)
        self.assertEqual(found["errno"], 0, found)
        got = found["result"]["effective"]
        self.assertEqual([got[key] for key in policy],
                         [5, 7, UINT64_MAX, 2**53 - 1, "strict", "clsact-podside", "off"])

    def test_bad_numbers(self):
        for bad in (-1, 1.5, 2**53, str(UINT64_MAX + 1), "1e3", "", " 1", True, [], "10M"):
            with self.subTest(bad=bad):
                self.refused("policy.horizon_ns: is not a whole number from 0 to "
                             f"{UINT64_MAX}", "policy_check", policy={"horizon_ns": bad})
        for bad in (2**32, "no-mode", {}):
            with self.subTest(bad=bad):
                self.refused(f"policy.attach_mode: is not a whole number from 0 to {2**32 - 1}",
                             "policy_check", policy={"attach_mode": bad})

    def test_the_library_refuses(self):
        self.refused("horizon_ns: 9000000001 is over 9000000000", "policy_check",
                     policy={"horizon_ns": 9000000001})
        self.refused("policy: missing", "policy_check")
        self.refused("shaped_subnets: 1 beside 2 unshaped_subnets", "policy_check", policy={
            "shaped_subnets": ["10.0.0.0/8"], "unshaped_subnets": ["10.0.0.0/8", "x"]})

    def test_unknown(self):
        version = call()[1]["version"]
        self.refused(f"call: natractl {version} has no 'fly'", "fly", errno.EOPNOTSUPP)
        for name, members in (("wings", {"wings": 2}),
                              ("policy.wings", {"policy": {"wings": 2}}),
                              ("target.wings", {"target": {"wings": 2}})):
            call_of = "check" if name == "policy.wings" else "attach"
            self.refused(f"{name}: natractl {version} does not know it", call_of, **members)

    def test_wrong_types(self):
        for text, members in (("target: is not an object", {"target": "eth0"}),
                              ("target.ifname: is not a string", {"target": {"ifname": 1}}),
                              ("policy: is not an object", {"policy": []}),
                              ("policy.shaped_subnets: is not an array",
                               {"policy": {"shaped_subnets": "10.0.0.0/8"}}),
                              ("policy.shaped_subnets: has what is no string",
                               {"policy": {"shaped_subnets": [1]}})):
            with self.subTest(text):
                self.refused(text, "attach", **members)
        self.refused("keep: is not an array", "gc", keep="web")
        self.refused("log: is neither true nor false", "open", log=1)
        for line in ("web\n", "[]\n", "{\n", '"\n', "null\n", "{} {}\n"):
            with self.subTest(line):
                _, _, [found] = call(line)
                self.assertEqual(found["error"], "request: is not an object of JSON")

    def test_classes(self):
        found = answer("policy_check", policy={"ingress_rate_bits_per_sec": 5000, "classes": [
            {"name": "lan", "subnets": ["10.0.0.0/8"], "egress_rate_bits_per_sec": "7"},
            {"name": "voice", "dscps": [0, 63], "subnets": None}]})
        self.assertEqual(found["errno"], 0, found)
        version = call()[1]["version"]
        for text, classes in (
                (": is not an array", {}), ("[0]: is not an object", ["lan"]),
                ("[0].name: is not a string", [{"name": 1}]),
                (f"[1].wings: natractl {version} does not know it", [{}, {"wings": 1}]),
                ("[0].egress_rate_bits_per_sec: is not a whole number from 0 to "
                 f"{UINT64_MAX}", [{"egress_rate_bits_per_sec": "1M"}]),
                ("[0].dscps: is not an array", [{"dscps": 1}]),
                ("[0].dscps: is not a whole number from 0 to 63", [{"dscps": [64]}]),
                ("[0].subnets: has what is no string", [{"subnets": [1]}])):
            with self.subTest(text):
                self.refused("policy.classes" + text, "policy_check",
                             policy={"classes": classes})
        self.refused("classes: 9 are more than 8", "policy_check",
                     policy={"ingress_rate_bits_per_sec": 5000, "classes": [
                         {"name": f"c{i}"} for i in range(9)]})

    def test_annotations(self):
        """Each is read as far as it is allowed; a bad one is an error, or left out and
        logged."""
        asks = {"call": "policy_annotate", "policy": {"ingress_rate_bits_per_sec": 5000},
                "allowed": ["ingress-packet-rate", "natra.io/fast-pass", "classes"],
                "annotations": {"qos.projectcalico.org/ingressPacketRate": "10k",
                                "natra.io/classes": "lan=10.0.0.0/8,egress-rate=1G",
                                "natra.io/fast-pass": "slow", "natra.io/sli": "on"}}
        bad = "annotation natra.io/fast-pass: 'slow': is not free, strict or off"
        found = call(asks)[2][-1]
        self.assertEqual((found["errno"], found["error"]), (errno.EINVAL, bad))
        *lines, found = call({"call": "open", "log": True}, {**asks, "skip_bad": True})[2][1:]
        self.assertEqual([line["line"] for line in lines], [
            bad + ": ignored", "annotation natra.io/sli is not in allowAnnotations: ignored"])
        got = found["result"]
        self.assertEqual((got["ingress_rate_bits_per_sec"], got["ingress_packet_rate_per_sec"],
                          got["fast_pass"], got["sli"], got["classes"]),
                         (5000, 10000, "free", "off", [
                             {"name": "lan", "ingress_rate_bits_per_sec": 0,
                              "egress_rate_bits_per_sec": 10**9, "dscps": [],
                              "subnets": ["10.0.0.0/8"]}]))
        found = answer("policy_annotate", allow_all=True,
                       annotations={"kubernetes.io/egress-bandwidth": "1M"})["result"]
        self.assertEqual(found["egress_rate_bits_per_sec"], 10**6)
        self.refused("allowAnnotations: 'fly' is not an annotation that natra knows",
                     "policy_annotate", allowed=["fly"])
        self.refused("annotations: is not an object", "policy_annotate", annotations=5)
        self.refused("annotations.a: is not a string", "policy_annotate", annotations={"a": 5})

    def test_annotations_of_a_pod(self):
        """A pod has the default of its namespace, and at most the maximum, whatever it asks for."""
        IN, OUT = "kubernetes.io/ingress-bandwidth", "kubernetes.io/egress-bandwidth"
        rules = {"shop": {"default": {"ingressRate": "3M"}, "max": {"egressRate": "2M"},
                          "fastPass": "strict", "allowAnnotations": ["egress-burst"]},
                 "*": {"max": {"egressRate": "1M"}}, "free": {}}
        gone = "/nowhere/namespaces.json"
        with tempfile.NamedTemporaryFile("w") as f:
            json.dump(rules, f)
            f.flush()

            def got(pod, annotations, **members):
                found = answer("policy_annotate_pod", pod=pod, annotations=annotations,
                               **{"namespaces": f.name, **members})
                self.assertEqual(found["errno"], 0, found)
                result = found["result"]
                return (*(result["policy"][f"{way}_rate_bits_per_sec"] / 1e6 for way in
                          ("ingress", "egress")), result["policy"]["fast_pass"]), result

            for pod, annotations, want in (
                    ("shop/web", {}, (3, 2, "strict")),
                    ("shop/web", {IN: "9M", OUT: "9M"}, (9, 2, "strict")),
                    ("shop/web", {OUT: "1M", "natra.io/fast-pass": "free"}, (3, 1, "strict")),
                    ("other/web", {OUT: "9M"}, (0, 1, "free")),
                    ("free/web", {OUT: "9M"}, (0, 9, "free"))):
                with self.subTest(pod=pod, annotations=annotations):
                    self.assertEqual(got(pod, annotations)[0], want)
            # The rule's list counts in place of the caller's, and the rates are without all of it.
            bursts = {"natra.io/egress-burst": "500k", "natra.io/sli": "on"}
            _, result = got("shop/web", bursts, allowed=["sli"])
            self.assertEqual([(result[key]["egress_burst_bits"], result[key]["sli"])
                              for key in ("policy", "rates")], [(500000, "off"), (0, "off")])
            self.assertEqual(result["rates"]["egress_rate_bits_per_sec"], 2000000)
            self.assertIn(f"{OUT}: 9000000 is over the maximum", got("shop/web", {OUT: "9M"})[1]["note"])
            # A wrong value is an error, or no way around the maximum.
            for pod in ("shop/web", "free/web"):
                self.refused(f"annotation {OUT}: '9': is not a rate from 1k to 1P", "policy_annotate_pod",
                             annotations={OUT: "9"}, pod=pod, namespaces=f.name)
            rates, result = got("shop/web", {OUT: "9"}, skip_bad=True)
            self.assertEqual(rates, (3, 2, "strict"))
            self.assertIn("is not a rate", result["note"])
            # So is a file: but where bad values are left out the pod goes on, as by the plugin.
            self.assertEqual(got("shop/web", {OUT: "9M"}, namespaces=gone)[0], (0, 9, "free"))
            rates, result = got("shop/web", {OUT: "9M"}, namespaces=gone, skip_bad=True,
                                require_namespaces=True)
            self.assertEqual((rates, result["note"]), (
                (0, 9, "free"), f"{gone}: is not there: the pod has no maximum"))
            self.refused(f"{gone}: is not there", "policy_annotate_pod", errno.EBADMSG, pod="shop/web",
                         namespaces=gone, require_namespaces=True)
            f.truncate(3)
            self.refused(f"{f.name}: is not JSON at byte 3 of 3", "policy_annotate_pod", errno.EBADMSG,
                         pod="shop/web", namespaces=f.name)
            self.refused("namespaces: is not an absolute path", "policy_annotate_pod", namespaces="x")

    def test_names_of_a_pods_rates(self):
        """Only Kubernetes' own names need no leave; the library takes Calico's for the same rates."""
        OUT, calico = "kubernetes.io/egress-bandwidth", "qos.projectcalico.org/egressBandwidth"
        asks = {"call": "policy_annotate_pod", "pod": "shop/web",
                "annotations": {calico: "9M", "natra.io/sli": "on", "natra.io/egress-burst": "500k"}}
        for allowed, rate, ignored in (([], 0, ["egress-burst", "sli"]), (["egress-burst"], 0, ["sli"]),
                                       (["egress-burst", OUT], 9000000, ["sli"])):
            with self.subTest(allowed=allowed):
                *lines, found = call({"call": "open", "log": True},
                                     {**asks, "allowed": allowed, "skip_bad": True})[2][1:]
                self.assertEqual([found["result"][key]["egress_rate_bits_per_sec"]
                                  for key in ("policy", "rates")], [rate, 0])
                self.assertEqual(sorted(line["line"] for line in lines if "not in allow" in line["line"]), [
                    f"annotation natra.io/{name} is not in allowAnnotations: ignored" for name in ignored])

    def test_a_wrong_rate_of_a_pod(self):
        """It rids a pod of nothing that it has anyway, and a pod that has nothing is told."""
        OUT = "kubernetes.io/egress-bandwidth"
        wrong = f"annotation {OUT}: '9': is not a rate from 1k to 1P"
        with tempfile.NamedTemporaryFile("w") as f:
            json.dump({"shop": {"default": {"ingressRate": "3M"}}}, f)
            f.flush()
            asks = {"annotations": {OUT: "9"}, "namespaces": f.name, "skip_bad": True}
            for pod, policy, want in (("shop/web", {}, (3000000, "")),
                                      ("free/web", {"ingress_rate_bits_per_sec": 4000}, (4000, "")),
                                      ("free/web", {"group": "team"}, (0, "team"))):
                with self.subTest(pod=pod, policy=policy):
                    found = answer("policy_annotate_pod", pod=pod, policy=policy, **asks)
                    self.assertEqual(found["errno"], 0, found)
                    got = found["result"]["policy"]
                    self.assertEqual((got["ingress_rate_bits_per_sec"], got.get("group") or ""), want)
                    self.assertEqual(found["result"]["note"], wrong)
            self.refused(wrong, "policy_annotate_pod", pod="free/web", **asks)

    def test_a_pod_is_named_in_full(self):
        for pod in ({}, {"pod": "web"}):
            self.refused(f"pod: '{pod.get('pod', '')}' is not namespace/name", "policy_annotate_pod", **pod)
        self.refused("namespaces: is missing, and require_namespaces is true", "policy_annotate_pod",
                     pod="shop/web", require_namespaces=True)

    def test_an_error_is_of_its_call(self):
        _, _, rest = call({"call": "policy_check", "policy": {"horizon_ns": "9000000001"}},
                          {"call": "parse_rate", "text": "fast"},
                          {"call": "parse_rate", "text": "1.5G"})
        self.assertEqual(rest[1]["error"], os.strerror(errno.EINVAL))
        self.assertEqual(rest[2]["result"]["value"], 1500000000)

    def test_lists(self):
        found = answer("foreach_attachment")["result"]
        self.assertEqual([one.get("id") for one in found],
                         ["newer", "bare", "evil", "gone", "web"])
        found = answer("foreach_stats")["result"]
        self.assertEqual([("stats" in one, one["info"].get("id")) for one in found],
                         [(False, "newer"), (True, "web"), (False, "bare"), (True, "evil"),
                          (True, "gone")])
        [flow, other] = answer("top", id="web", direction=0)["result"]
        self.assertEqual((flow["ip_protocol"], flow["dport"], other["ip_version"]),
                         (6, 5000, 6))
        self.assertEqual(answer("top", id="web", direction=1)["result"], [])

    def test_ends_by_a_signal(self):
        with subprocess.Popen([NATRACTL, "call"], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE) as p:
            p.stdout.readline()
            p.send_signal(signal.SIGTERM)
            self.assertEqual(p.wait(10), 0)

    def test_a_signal_lets_the_call_end_and_no_other_begin(self):
        code, _, rest = call({"call": "gc", "network": "ends", "keep": []},
                             {"call": "query", "id": "web"})
        self.assertEqual((code, [r["errno"] for r in rest]), (0, [0]))


if __name__ == "__main__":
    unittest.main()
