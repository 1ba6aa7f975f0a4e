#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests what the plugin makes of each outcome of the library: calls, result, error
object, log. CNI_FAKE is the plugin linked with fake_cni_natra.c."""

import errno
import json
import os
import subprocess
import tempfile
import threading
import time
import unittest
from pathlib import Path

# The plugin, and before it what runs programs of a cross build.
FAKE = [*os.environ["NATRA_RUNNER"].split(), os.environ["CNI_FAKE"]]
SOURCE = Path(__file__).resolve().parents[2]
VERSIONS = ["0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"]
# This is the only network namespace that exists without root.
NETNS = "/proc/self/ns/net"
ENV = {"CNI_CONTAINERID": "c1", "CNI_IFNAME": "eth0", "CNI_NETNS": NETNS,
       "CNI_NETNS_OVERRIDE": "1", "CNI_PATH": "/opt/cni/bin",
       "CNI_ARGS": "K8S_POD_NAMESPACE=shop;K8S_POD_NAME=web-0"}
RESULT = {"cniVersion": "1.1.0", "ips": [{"address": "10.1.2.3/24"}]}
ID = "net/c1/eth0"
DETACH = f"detach id={ID}"
ATTACH = (f"attach id={ID} ifname=eth0 netns={NETNS} network=net "
          "label=shop/web-0 in=10000000/0 out=0/0 shaped=0 unshaped=0")


class Case(unittest.TestCase):
    def setUp(self):
        tmp = tempfile.TemporaryDirectory(prefix="natra-cni-")
        self.addCleanup(tmp.cleanup)
        self.calls_file = f"{tmp.name}/calls"
        self.log_file = f"{tmp.name}/log"

    def conf(self, **keys):
        conf = {"cniVersion": "1.1.0", "name": "net", "ingressRate": 10000000,
                "logFile": self.log_file, "prevResult": RESULT}
        conf.update(keys)
        return {k: v for k, v in conf.items() if v is not ...}

    def cni(self, command, conf=None, stdout=subprocess.PIPE, **env):
        """Return exit code and stdout of one call; env may say what the fake
        returns."""
        for path in (self.calls_file, self.log_file):
            Path(path).unlink(missing_ok=True)
        if not isinstance(conf, (bytes, str)):
            conf = json.dumps(self.conf() if conf is None else conf)
        if isinstance(conf, str):
            conf = conf.encode()
        env = dict(ENV, CNI_COMMAND=command, FAKE_CALLS=self.calls_file, **env)
        r = subprocess.run(FAKE, input=conf, stdout=stdout, timeout=20,
                           stderr=subprocess.PIPE, env={
                               k: str(v) for k, v in env.items()
                               if v is not None})
        self.assertEqual(r.stderr, b"")
        return r.returncode, r.stdout.decode() if r.stdout else ""

    def read(self, path):
        return Path(path).read_text() if os.path.exists(path) else ""

    @property
    def calls(self):
        return self.read(self.calls_file).splitlines()

    @property
    def log(self):
        return self.read(self.log_file)

    def succeeds(self, command, conf=None, says="", **env):
        code, out = self.cni(command, conf, **env)
        self.assertEqual((code, out.strip()), (0, says))

    def fails(self, code, command, conf=None, words="", **env):
        status, out = self.cni(command, conf, **env)
        self.assertEqual(status, 1, out)
        error = json.loads(out)
        self.assertEqual(error["code"], code, error)
        self.assertIn(words, error["msg"])
        self.assertIn(error["cniVersion"], VERSIONS)
        return error


class Add(Case):
    def test_shaped(self):
        self.succeeds("ADD", says=json.dumps(RESULT))
        self.assertEqual(self.calls, [ATTACH])
        self.assertRegex(self.log, r"^time=\S+ level=info command=ADD "
                         r"network=net containerid=c1 ifname=eth0 "
                         r'pod=shop/web-0 msg=shaped mode=tcx-podside .*'
                         r'duration_ms=[0-9.]+\n$')

    def test_without_a_log(self):
        for keys in ({"logFile": ""}, {"logLevel": "warn"}):
            self.succeeds("ADD", self.conf(**keys), json.dumps(RESULT))
            self.assertEqual(self.log, "")

    def test_nothing_to_limit(self):
        for keys in ({"ingressRate": ...}, {"ingressRate": 0},
                     {"ingressRate": None}, {"ingressRate": ..., "runtimeConfig":
                      {"bandwidth": {"IngressRate": 0, "IngressBurst": 0}}}):
            self.succeeds("ADD", self.conf(**keys), json.dumps(RESULT))
            self.assertEqual(self.calls, [DETACH])
            self.assertIn("nothing to limit", self.log)
        # If there is nothing to limit, CNI_NETNS need not be a namespace.
        self.succeeds("ADD", self.conf(ingressRate=0), json.dumps(RESULT),
                      CNI_NETNS="/nosuch", FAKE_detach=-errno.EPERM)

    def test_the_group_goes_meanwhile(self):
        """A pod whose group was all that limited it is not attached then."""
        conf = self.conf(ingressRate=..., group={"name": "blue"})
        self.succeeds("ADD", conf, json.dumps(RESULT), FAKE_looks=1,
                      FAKE_attach=-errno.ENOENT, FAKE_code="no_group")
        self.assertEqual([c.split()[0] for c in self.calls],
                         ["foreach_group", "attach", "detach"])
        self.assertIn("there is no group 'blue'", self.log)
        self.assertIn('msg="nothing to limit"', self.log)

    def test_codes(self):
        for error, code in (("EPERM", 103), ("EACCES", 103), ("EBUSY", 102),
                            ("EOPNOTSUPP", 101), ("ESTALE", 104),
                            ("ENODEV", 105), ("ENOMEM", 11), ("EAGAIN", 11),
                            ("EIO", 100), ("EINVAL", 100), ("ENOENT", 100)):
            self.fails(code, "ADD", words="attach fails",
                       FAKE_attach=-getattr(errno, error))
            self.assertEqual(self.calls[-1], ATTACH)
            self.assertRegex(self.log, "^time=.* level=error .*"
                             f'msg="attach fails" .*code={code}\n$')
        for error, name, code in (("EBUSY", "locked", 11), ("EBUSY", "other_id", 102),
                                  ("EOPNOTSUPP", "other_qdisc", 102)):
            self.fails(code, "ADD", words="attach fails", FAKE_code=name,
                       FAKE_attach=-getattr(errno, error))

    def test_on_error_continue(self):
        conf = self.conf(onError="continue")
        for record in (0, -errno.EIO):
            self.succeeds("ADD", conf, json.dumps(RESULT),
                          FAKE_attach=-errno.EBUSY, FAKE_record_unshaped=record)
            self.assertEqual(self.calls[-1], f"record_unshaped id={ID} "
                             "in=10000000 reason=attach fails")
            self.assertRegex(self.log, 'level=error .*msg="not shaped.*'
                             'error="attach fails"')
            self.assertEqual("cannot be recorded" in self.log, record != 0)

    def test_on_error_continue_is_not_for_mistakes(self):
        for keys in ({"egressRate": -5}, {"fastPass": "x"},
                     {"prevResult": ...}, {"ingressBurst": -1}):
            self.fails(7, "ADD", self.conf(onError="continue", **keys))
            self.assertEqual(self.calls, [])
        self.fails(8, "ADD", self.conf(onError="continue"),
                   CNI_NETNS="/nosuch", words="/nosuch")
        self.fails(8, "ADD", self.conf(onError="continue"),
                   CNI_NETNS_OVERRIDE=None)
        self.assertEqual(self.calls, [])

    def test_leftovers(self):
        self.succeeds("ADD", says=json.dumps(RESULT), FAKE_tbf=1)
        self.assertEqual(self.calls, [ATTACH])  # attach itself warns of the leftovers
        conf = self.conf(replaceBandwidth=True)
        self.succeeds("ADD", conf, says=json.dumps(RESULT), FAKE_tbf=1)
        self.assertEqual(self.calls[1:3], [
            f"remove_leftovers ifname=eth0 netns={NETNS}", ATTACH])
        self.assertRegex(self.log, "level=warn .*removed.*'veth7': tbf")
        # The redirect stays though the ifb that it leads to is gone.
        self.succeeds("ADD", conf, says=json.dumps(RESULT), FAKE_redirect=1)
        self.assertEqual(self.calls[1:3], [
            f"remove_leftovers ifname=eth0 netns={NETNS}", ATTACH])
        self.assertIn("'veth7': redirect to nowhere", self.log)
        self.succeeds("ADD", conf, says=json.dumps(RESULT))
        self.assertEqual(self.calls[1:], [ATTACH])
        self.fails(103, "ADD", conf, FAKE_tbf=1,
                   FAKE_remove_leftovers=-errno.EPERM)
        self.assertNotIn(ATTACH, self.calls)
        # If the search for leftovers fails, attach reports the reason.
        self.succeeds("ADD", conf, says=json.dumps(RESULT),
                      FAKE_find_leftovers=-errno.EIO)
        self.assertIn(ATTACH, self.calls)

    def test_a_result_that_nobody_takes(self):
        """If the result cannot be written, ADD has failed and is undone."""
        with open("/dev/full", "w") as full:
            code, _ = self.cni("ADD", stdout=full)
        self.assertEqual(code, 1)
        self.assertEqual(self.calls[-1], DETACH)
        reader, writer = os.pipe()
        os.close(reader)
        code, _ = self.cni("ADD", stdout=writer)
        os.close(writer)
        self.assertEqual(code, 1)
        self.assertEqual(self.calls[-1], DETACH)

    def test_a_slow_reader_gets_all(self):
        conf = self.conf(prevResult=dict(RESULT, x="y" * 3000000))
        for blocking in (True, False):
            reader, writer = os.pipe()
            os.set_blocking(writer, blocking)
            chunks = []

            def drain():
                while chunk := os.read(reader, 1000):
                    chunks.append(chunk)
            thread = threading.Thread(target=drain)
            thread.start()
            code, _ = self.cni("ADD", conf, stdout=writer)
            os.close(writer)
            thread.join()
            os.close(reader)
            self.assertEqual(code, 0)
            self.assertEqual(json.loads(b"".join(chunks)), conf["prevResult"])

    def test_an_id_that_is_too_long(self):
        conf = self.conf(name="n" * 250)
        self.fails(4, "ADD", conf, words="255")
        self.assertEqual(self.calls, [])
        self.succeeds("ADD", self.conf(name="n" * 250, ingressRate=0),
                      json.dumps(RESULT))
        self.succeeds("DEL", conf)
        self.fails(110, "CHECK", conf)
        self.assertEqual(self.calls, [])

    def test_examples(self):
        """natra's element of each example is read as a runtime would send it."""
        examples = sorted((SOURCE / "cni/examples").iterdir())
        self.assertGreaterEqual(len(examples), 5)
        for example in examples:
            conf = json.loads(example.read_text())["plugins"][-1]
            conf.update(self.conf(ingressRate=...), runtimeConfig={
                "bandwidth": {"IngressRate": 10000000,
                              "IngressBurst": 4294967295,
                              "EgressRate": 0, "EgressBurst": 0}})
            self.succeeds("ADD", conf, json.dumps(RESULT))
            self.assertIn(ATTACH, self.calls)

    def test_the_log_cannot_be_forged(self):
        self.succeeds("ADD", says=json.dumps(RESULT), CNI_ARGS=(
            "K8S_POD_NAMESPACE=a\nlevel=error;K8S_POD_NAME=\x1b[31m\"b"))
        self.assertEqual(len(self.log.splitlines()), 1)
        self.assertIn(r'pod="a\x0alevel=error/\x1b[31m\"b"', self.log)


class Del(Case):
    def test_nothing_of_the_configuration_matters(self):
        for keys in ({}, {"prevResult": ...}, {"ingressRate": "x"},
                     {"ingressRate": 5, "ingressBurst": -1},
                     {"runtimeConfig": 5}, {"prevResult": "x"},
                     {"attachMode": 7, "logLevel": "x", "onError": []}):
            self.succeeds("DEL", self.conf(**keys))
            self.assertEqual(self.calls,
                             [f"detach_there id={ID} netns={NETNS}"])

    def test_without_a_netns(self):
        for netns in (None, ""):
            self.succeeds("DEL", CNI_NETNS=netns)
            self.assertEqual(self.calls, [DETACH])

    def test_a_netns_that_is_in_the_way(self):
        self.succeeds("DEL", FAKE_detach_there=-errno.ENOTDIR)
        self.assertEqual(self.calls[1:], [DETACH])

    def test_own_netns_is_refused_when_all_is_done(self):
        self.fails(8, "DEL", CNI_NETNS_OVERRIDE=None)
        self.assertEqual(len(self.calls), 1)

    def test_errors(self):
        for error, code in (("EIO", 111), ("EPERM", 103), ("ENOMEM", 11)):
            self.fails(code, "DEL", CNI_NETNS="", words="detach fails",
                       FAKE_detach=-getattr(errno, error))

    def test_hidden_netns(self):
        """The pod can be removed all the same, and a lock is another matter."""
        self.succeeds("DEL", FAKE_detach_there=-errno.EBUSY)
        self.assertEqual(self.calls, [f"detach_there id={ID} netns={NETNS}"])
        self.assertIn("level=warn", self.log)
        self.assertIn("detach_there fails", self.log)
        self.assertIn('msg="left to gc"', self.log)
        self.fails(11, "DEL", words="detach_there fails", FAKE_code="locked",
                   FAKE_detach_there=-errno.EBUSY)

    def test_leftovers(self):
        conf = self.conf(replaceBandwidth=True)
        self.succeeds("DEL", conf, FAKE_remove_leftovers=-errno.EIO)
        self.assertEqual(self.calls[-1],
                         f"remove_leftovers ifname=eth0 netns={NETNS}")
        self.succeeds("DEL", conf, CNI_NETNS="")
        self.succeeds("DEL", self.conf(replaceBandwidth="yes"), CNI_NETNS="")
        self.assertEqual(self.calls, [DETACH])

    def test_junk_is_still_junk(self):
        self.fails(6, "DEL", "{")
        self.fails(7, "DEL", self.conf(name=...))
        self.assertEqual(self.calls, [])


class Check(Case):
    def test_a_pod_that_only_its_group_limits(self):
        """Its attachment is gone, which CHECK has to find without a rate of the pod's."""
        gone = {"FAKE_query": -errno.ENOENT, "FAKE_check": -errno.ENOENT}
        group = {"name": "{namespace}", "egressRate": 5}
        conf = self.conf(ingressRate=..., group=group)
        self.fails(110, "CHECK", conf, words="check fails", **gone)
        # ADD may have left it out of the group, or there is none for it.
        self.succeeds("CHECK", dict(conf, onError="continue"), **gone)
        self.succeeds("CHECK", conf, CNI_ARGS="", **gone)
        self.succeeds("CHECK", dict(conf, group={"name": "blue"}), **gone)

    def test_as_it_was_set(self):
        self.succeeds("CHECK")
        self.assertEqual(self.calls, [f"check id={ID} policy=no"])
        self.assertEqual(self.log, "")
        self.succeeds("CHECK", self.conf(logLevel="debug"))
        self.assertIn("command=CHECK", self.log)

    def test_nothing_to_limit(self):
        for query in (0, -errno.ENOENT, -errno.EIO):
            self.succeeds("CHECK", self.conf(ingressRate=0, allowAnnotations=["sli"]),
                          FAKE_check=-errno.EIO, FAKE_query=query)
            self.assertEqual(self.calls, [f"query id={ID}"])

    def test_limits_that_were_set_later(self):
        """Those of `natractl set`, or of an edit of the pod."""
        self.succeeds("CHECK", self.conf(ingressRate=...), FAKE_limited=1)
        self.assertEqual(self.calls, [f"query id={ID}", f"check id={ID} policy=no"])
        self.fails(110, "CHECK", self.conf(ingressRate=...), words="check fails",
                   FAKE_limited=1, FAKE_check=-errno.EBADE)

    def test_what_only_an_annotation_asks_for(self):
        """ADD has limited the pod by it, so an attachment that is missing was lost."""
        gone = {"FAKE_query": -errno.ENOENT, "FAKE_check": -errno.ENOENT}
        key = "io.kubernetes.cri.pod-annotations"
        for name, value in (("qos.projectcalico.org/egressBandwidth", "5M"),
                            ("natra.io/classes", "lan=10.0.0.0/8,egress-rate=5M")):
            conf = self.conf(ingressRate=..., allowAnnotations=[name],
                             runtimeConfig={key: {name: value}})
            self.fails(110, "CHECK", conf, words="check fails", **gone)
            self.fails(110, "CHECK", dict(conf, onError="continue"), **gone)
            for other in ({"allowAnnotations": ["sli"]}, {"runtimeConfig": {}},
                          {"runtimeConfig": {key: {name: "x"}}}):
                self.succeeds("CHECK", dict(conf, **other), **gone)
                self.assertEqual(self.calls, [f"query id={ID}"])

    def test_differences(self):
        for error, code in (("EBADE", 110), ("ENOENT", 110), ("ENODEV", 105),
                            ("ESTALE", 104), ("EPERM", 103)):
            self.fails(code, "CHECK", words="check fails",
                       FAKE_check=-getattr(errno, error))

    def test_a_pod_that_may_run_unshaped(self):
        conf = self.conf(onError="continue")
        self.succeeds("CHECK", conf, FAKE_check=-errno.EBADE, FAKE_unshaped=1)
        self.assertRegex(self.log, 'level=warn .*error="check fails"')
        self.fails(110, "CHECK", conf, FAKE_check=-errno.EBADE)
        self.fails(110, "CHECK", FAKE_check=-errno.EBADE, FAKE_unshaped=1)
        # There is no record either, so the plugin asks whether this node can have one.
        self.fails(110, "CHECK", conf, FAKE_check=-errno.ENOENT)
        self.succeeds("CHECK", conf, FAKE_check=-errno.ENOENT,
                      FAKE_status=-errno.EOPNOTSUPP)


class Gc(Case):
    def gc(self, **keys):
        return self.conf(**{"cni.dev/valid-attachments": ..., **keys})

    def test_what_is_valid_is_kept(self):
        for attachments, keep in (
                (None, "0"), ([], "0"),
                ([{"containerID": "a", "ifname": "eth0"}], "1 net/a/eth0"),
                ([{"containerID": "a", "ifname": "eth0"},
                  {"ContainerID": "b", "IfName": "net1", "x": 1}],
                 "2 net/a/eth0 net/b/net1"),
                ([{"containerID": "a" * 300, "ifname": "eth0"}], "0")):
            self.succeeds("GC", self.gc(
                **{"cni.dev/valid-attachments": attachments}),
                CNI_CONTAINERID="", CNI_IFNAME="", CNI_NETNS="")
            self.assertEqual(self.calls, [f"gc network=net keep={keep}"])
            self.assertIn("level=info", self.log)
            self.assertIn("removed=2", self.log)

    def test_unknown_is_not_empty(self):
        self.succeeds("GC", self.gc())
        self.succeeds("GC", self.gc(**{"cni.dev/attachments": []}))
        self.assertEqual(self.calls, [])

    def test_a_list_that_cannot_be_read_removes_nothing(self):
        for attachments in ("x", 5, {}, ["a"], [{}], [{"containerID": "a"}],
                            [{"containerID": 5, "ifname": "eth0"}], [None]):
            self.fails(7, "GC", self.gc(
                **{"cni.dev/valid-attachments": attachments}),
                words="cni.dev/valid-attachments")
            self.assertEqual(self.calls, [])
        # The first one was never attached.
        self.fails(7, "GC", self.gc(**{"cni.dev/valid-attachments": [
            {"containerID": "a" * 300, "ifname": "eth0"}, {"ifname": "eth0"}]}),
                   words="cni.dev/valid-attachments[1]: lacks ")

    def test_errors_and_bad_keys(self):
        conf = self.gc(ingressRate="x", attachMode=5,
                       **{"cni.dev/valid-attachments": []})
        self.succeeds("GC", conf)
        self.fails(111, "GC", conf, FAKE_gc=-errno.EIO, words="gc fails")
        self.fails(4, "GC", conf, CNI_PATH=None, words="CNI_PATH")


class Others(Case):
    def test_status(self):
        for env in ({}, {"CNI_CONTAINERID": "", "CNI_NETNS": "",
                         "CNI_IFNAME": "", "CNI_ARGS": "", "CNI_PATH": None}):
            self.succeeds("STATUS", self.conf(prevResult=...), **env)
            self.assertEqual((self.calls, self.log), (["status"], ""))
        for error in ("EPERM", "EOPNOTSUPP", "ENOENT"):
            self.fails(50, "STATUS", words="status fails",
                       FAKE_status=-getattr(errno, error))
        # An ADD would refuse each of these values.
        for key, value in (("fastPass", "paid"), ("ingressRate", "x"),
                           ("logFile", "relative"), ("egressBurst", 1)):
            self.fails(7, "STATUS", self.conf(**{key: value}),
                       words="egress" if key == "egressBurst" else key)
            self.assertNotIn("status", self.calls)

    def test_version_reads_nothing(self):
        said = ('{"cniVersion":"1.1.0","supportedVersions":'
                + json.dumps(VERSIONS, separators=(",", ":")) + "}")
        for conf in ("", "junk", '{"cniVersion":"9.9"}'):
            self.succeeds("VERSION", conf, said)
            self.assertEqual(self.calls, [])

    def test_commands_of_later_versions(self):
        for command, since in (("ADD", 0), ("DEL", 0), ("CHECK", 2), ("GC", 4),
                               ("STATUS", 4)):
            for i, version in enumerate(VERSIONS):
                conf = self.conf(cniVersion=version, prevResult=dict(
                    RESULT, cniVersion=version))
                if i >= since:
                    self.assertEqual(self.cni(command, conf)[0], 0)
                    continue
                error = self.fails(1, command, conf, command)
                self.assertEqual(error["cniVersion"], version)
                self.assertEqual(self.calls, [])
            self.fails(1, command, self.conf(cniVersion="0.2.0"))

    def test_commands_that_are_none(self):
        for command in ("add", "FOO", "ADD ", "version"):
            self.fails(4, command, words=f"unknown CNI_COMMAND: {command}")

    def test_an_error_is_ascii_whatever_was_said(self):
        error = self.fails(7, "ADD", self.conf(fastPass="\x1b\u00e9\n\"\\"))
        self.assertIn('\\x1b\\xc3\\xa9\\x0a"\\', error["msg"])
        error = self.fails(4, "ADD", CNI_CONTAINERID=b"\xff\xfe".decode(
            errors="surrogateescape"))
        self.assertEqual(error["details"], "\\xff\\xfe")

    def test_closed_descriptors(self):
        for closed in ("<&-", ">&-", "2>&-", "<&- >&- 2>&-"):
            r = subprocess.run(
                ["/bin/sh", "-c", f'exec "$@" {closed}', "sh", *FAKE],
                input=json.dumps(self.conf()).encode(), timeout=20,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                env=dict(ENV, CNI_COMMAND="ADD", FAKE_CALLS=self.calls_file))
            self.assertEqual(r.returncode, 0 if closed == "2>&-" else 1)
        self.assertNotIn("{", self.log)

    def test_a_slow_writer_is_waited_for(self):
        """The plugin also waits if its stdin is a pipe that does not block."""
        reader, writer = os.pipe()
        os.set_blocking(reader, False)
        plugin = subprocess.Popen(
            FAKE, stdin=reader, stdout=subprocess.PIPE,
            env=dict(ENV, CNI_COMMAND="ADD", FAKE_CALLS=self.calls_file))
        os.close(reader)
        text = json.dumps(self.conf()).encode()
        for part in (text[:10], text[10:]):
            time.sleep(0.1)
            os.write(writer, part)
        os.close(writer)
        out, _ = plugin.communicate(timeout=20)
        self.assertEqual((plugin.returncode, json.loads(out)), (0, RESULT))

    def test_input_that_is_too_large(self):
        # A pod may have annotations of 256 KiB, which JSON may make six times as long.
        self.assertEqual(self.cni("ADD", self.conf(x="y" * (3 << 19)))[0], 0)
        conf = self.conf(x="y" * (17 << 20))
        self.fails(6, "ADD", conf, "is over")
        self.assertEqual(self.calls, [])


if __name__ == "__main__":
    unittest.main()
