#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""natractl install and uninstall: each way into the chain, with the lists that network
plugins write, and an uninstall that restores everything."""

import ctypes
import json
import os
import struct
import subprocess
import time
import unittest
from pathlib import Path

from node import (BIN, FLANNEL, K3S, LISTS, MARK, NET, NEW, OLD, PLUGIN,
                  SCRATCH, SINGLE, Answer, Case)

CAPABILITIES = {"bandwidth": True, "io.kubernetes.cri.pod-annotations": True}
ELEMENT = {"type": "natra", "capabilities": CAPABILITIES, MARK: "natractl"}


def elements(text):
    conf = json.loads(text)
    return conf["plugins"] if "plugins" in conf else [conf]


class Modes(Case):
    def whole_story(self, node, *options, **kwargs):
        """Run a dry run, install, install again and uninstall."""
        before = node.state()
        dry = self.done(node.install(*options, "--dry-run", "--json",
                                     **kwargs)).json
        self.assertEqual(node.state(), before)
        printed = self.done(node.install(*options, "--json", **kwargs)).json
        self.assertEqual(dry, printed)
        after = node.state(times=True)
        self.foresaw(node, dry, before, node.state())
        again = self.done(node.install(*options, "--json", **kwargs)).json
        self.assertEqual(again["changes"], [])
        self.assertEqual(node.state(times=True), after)
        return printed

    def foresaw(self, node, dry, before, after):
        """Check that the dry run named each file that changed, and its content."""
        files = {str((node.root / c["path"].lstrip("/")).relative_to(node.root)):
                 c for c in dry["changes"] if c["action"] != "reload"}
        changed = {p for p in {*before, *after} if before.get(p) !=
                   after.get(p) and not os.path.isdir(node.root / p)
                   and not before.get(p, after.get(p))[0].startswith("0o4")}
        self.assertEqual(changed, set(files))
        for path, change in files.items():
            if change["action"] == "write":
                self.assertEqual(after[path], ["0o100600",
                                               change["after"].encode()])
            elif change["action"] == "copy":
                self.assertEqual(after[path], [
                    "0o100755", Path(PLUGIN).read_bytes()])

    def goes_back(self, node, before):
        r = self.done(node.uninstall())
        self.assertEqual(node.state(), before, r)
        self.assertEqual(self.done(node.uninstall()).out, "")

    def test_the_directories_themselves_stay(self):
        """containerd watches a directory by its inode."""
        for runtime in (OLD, NEW):
            node = self.node({"10-flannel.conflist": FLANNEL})
            inodes = [d.stat().st_ino for d in (node.net, node.bin)]
            self.whole_story(node, runtime=runtime)
            self.done(node.uninstall())
            self.assertEqual([d.stat().st_ino for d in (node.net, node.bin)], inodes)

    def test_list(self):
        for name, text in LISTS.items():
            with self.subTest(list=name):
                node = self.node({name: text})
                before = node.state()
                printed = self.whole_story(node)
                self.assertEqual(printed["mode"], "list")
                self.assertIn("containerd 1.6.20", printed["reason"])
                copy = (node.net / f"00-natra-{name}").read_text()
                conf = json.loads(copy)
                self.assertEqual(conf.pop("plugins"),
                                 [*elements(text), ELEMENT])
                self.assertEqual(conf, {k: v for k, v in json.loads(
                    text).items() if k != "plugins"})
                # Every byte of the owner's list is in the copy, in its place.
                at = copy.index(',', copy.rindex("}", 0, copy.index(
                    '{"type":"natra"')))
                self.assertEqual(copy[:at] + copy[copy.index(
                    "}", copy.index(MARK)) + 1:], text)
                self.assertEqual(node.types()[-1], "natra")
                self.goes_back(node, before)

    def test_dropin(self):
        for name, text in LISTS.items():
            with self.subTest(list=name):
                node = self.node({name: text})
                before = node.state()
                printed = self.whole_story(node, runtime=NEW)
                self.assertEqual(printed["mode"], "dropin")
                network = json.loads(text)["name"]
                file = node.net / network / "90-natra.conf"
                self.assertEqual(json.loads(file.read_text()), ELEMENT)
                self.assertEqual((node.net / name).read_text(), text)
                self.assertEqual(node.types(dropins=True)[-1], "natra")
                self.goes_back(node, before)

    def test_bandwidth(self):
        for kind in ("file", "link", "none"):
            with self.subTest(previous=kind):
                node = self.node({"10-flannel.conflist": K3S})
                previous = node.bin / "bandwidth"
                if kind == "file":
                    previous.write_bytes(b"\x7fELF upstream")
                    previous.chmod(0o751)
                elif kind == "link":
                    previous.symlink_to("../data/cni")
                before = node.state()
                self.done(node.install("--mode", "bandwidth"))
                self.assertEqual(previous.read_bytes(),
                                 Path(PLUGIN).read_bytes())
                self.assertEqual(node.names()[0], "10-flannel.conflist")
                kept = ["bandwidth.before-natra"] if kind != "none" else []
                self.assertEqual(node.names()[1:], ["bandwidth", *kept])
                after = node.state(times=True)
                self.assertNotIn("copy", self.done(node.install(
                    "--mode", "bandwidth")).out)
                self.assertIn("says no requireNamespaces", self.done(node.install(
                    "--mode", "bandwidth", "--conf", "requireNamespaces=true")).err)
                self.refused(node, "--mode", "bandwidth", "--conf", "requireNamespaces=true",
                             "--conf", "fastPass=off", words=["cannot be written into"])
                self.assertEqual(node.state(times=True), after)
                if kind == "none":
                    # The list still names the plugin.
                    r = self.done(node.uninstall(), 3)
                    self.assertIn("10-flannel.conflist names it", r.err)
                else:
                    self.goes_back(node, before)

    def test_bandwidth_is_put_back_by_its_owner(self):
        """RKE2's installer puts its plugin back when it starts; the newest one is
        kept."""
        node = self.node({"10-flannel.conflist": K3S})
        (node.bin / "bandwidth").write_text("old")
        self.done(node.install("--mode", "bandwidth"))
        (node.bin / "new").write_text("new")
        os.rename(node.bin / "new", node.bin / "bandwidth")
        before = node.state()
        del before[f"{BIN}/bandwidth.before-natra"]
        self.done(node.install("--mode", "bandwidth"))
        self.done(node.uninstall())
        self.assertEqual(node.state(), before)

    def test_bandwidth_is_removed_by_somebody(self):
        """natra's copy is then the only one of upstream's plugin."""
        for undo in (lambda n: n.uninstall(), lambda n: n.install()):
            node = self.node({"10-flannel.conflist": K3S})
            (node.bin / "bandwidth").write_text("upstream's")
            self.done(node.install("--mode", "bandwidth"))
            (node.bin / "bandwidth").unlink()
            self.done(undo(node))
            self.assertEqual((node.bin / "bandwidth").read_text(),
                             "upstream's")
            self.assertNotIn("bandwidth.before-natra", node.names())

    def test_list_in_the_place_of_bandwidth(self):
        for runtime in (OLD, NEW):
            with self.subTest(runtime=runtime):
                node = self.node({"10-flannel.conflist": K3S})
                before = node.state()
                printed = self.whole_story(
                    node, "--conf", "ingressRate=7000000", runtime=runtime)
                self.assertEqual(printed["mode"], "list")
                self.assertIn("bandwidth", printed["reason"])
                self.assertEqual(node.types(), ["flannel", "portmap", "natra"])
                natra = node.chain()[1][-1]
                self.assertEqual(natra["ingressRate"], 7000000)
                self.assertEqual(natra["shapedSubnets"], ["10.0.0.0/8"])
                self.goes_back(node, before)

    def test_single(self):
        node = self.node({"10-one.conf": SINGLE})
        before = node.state()
        printed = self.whole_story(node, runtime=NEW)
        self.assertEqual(printed["mode"], "list")
        self.assertEqual(node.chain(), ("one", [json.loads(SINGLE), ELEMENT]))
        self.assertEqual(json.loads((node.net /
                                     "00-natra-10-one.conflist").read_text())
                         ["cniVersion"], "0.4.0")
        self.goes_back(node, before)

    def test_only_inlined_plugins(self):
        for value in ("true", '"True"'):
            text = FLANNEL.replace('"plugins"',
                                   f'"loadOnlyInlinedPlugins": {value},'
                                   ' "plugins"')
            node = self.node({"10-flannel.conflist": text})
            printed = self.whole_story(node, runtime=NEW)
            self.assertEqual(printed["mode"], "list")
            self.assertIn("loadOnlyInlinedPlugins", printed["reason"])
            self.done(node.uninstall())
            self.refused(node, "--mode", "dropin", runtime=NEW,
                         words=["loadOnlyInlinedPlugins"])

    def test_from_one_mode_to_another(self):
        node = self.node({"10-flannel.conflist": FLANNEL})
        before = node.state()
        for runtime, dropins in ((OLD, False), (NEW, True), (OLD, False)):
            self.done(node.install(runtime=runtime))
            self.assertEqual(node.types(dropins=True).count("natra"), 1)
            self.assertEqual(node.types(dropins=False).count("natra"),
                             0 if dropins else 1)
        self.goes_back(node, before)

    def test_conf(self):
        node = self.node({"10-flannel.conflist": FLANNEL})
        self.done(node.install(
            "--conf", "fastpass=strict", "--conf", "fastPassShare=50",
            "--conf", 'allowAnnotations=["natra.io/fast-pass"]',
            "--conf", "heavyHitterThreshold=125k", "--conf", "logFile=",
            "--conf", "egressRate=1", "--conf", "egressRate=1000000",
            "--conf", "replaceBandwidth=true", "--conf", "horizon=1s"))
        self.assertEqual(node.chain()[1][-1], {
            **ELEMENT, "fastPass": "strict", "fastPassShare": 50,
            "allowAnnotations": ["natra.io/fast-pass"],
            "heavyHitterThreshold": "125k", "logFile": "",
            "egressRate": 1000000, "replaceBandwidth": True, "horizon": "1s"})
        # Keys that are not given again are gone.
        self.done(node.install())
        self.assertEqual(node.chain()[1][-1], ELEMENT)

    def test_values_that_the_plugin_refuses(self):
        node = self.node({"10-flannel.conflist": FLANNEL})
        for word in ("fastPass=paid", "logFile=relative", "ingressBurst=1000",
                     "shapedSubnets=[1]"):
            key = word.split("=")[0]
            with self.subTest(conf=word):
                self.refused(node, "--conf", word, words=[
                    "refuses its configuration", key.replace("Burst", "")])

    def test_the_difference_on_paper(self):
        node = self.node({"10-flannel.conflist": FLANNEL})
        self.done(node.install())
        file = node.net / "00-natra-10-flannel.conflist"
        old = file.read_text().splitlines()
        out = self.done(node.install("--conf", "fastPass=off",
                                     "--dry-run")).out.splitlines()
        begin = out.index(f"+++ /{NET}/{file.name}") + 1
        end = next(i for i, l in enumerate(out) if l.startswith("reload"))
        hunk = out[begin + 1:end]
        self.done(node.install("--conf", "fastPass=off"))
        new = file.read_text().splitlines()
        self.assertRegex(out[begin], r"^@@ -\d+,\d+ \+\d+,\d+ @@$")
        first, length = map(int, out[begin].split()[1][1:].split(","))
        self.assertEqual([l[1:] for l in hunk if l[0] in " -"],
                         old[first - 1:first - 1 + length])
        first, length = map(int, out[begin].split()[2][1:].split(","))
        self.assertEqual([l[1:] for l in hunk if l[0] in " +"],
                         new[first - 1:first - 1 + length])
        self.assertEqual(sum(l[0] in "-+" for l in hunk), 2)


class Use(Case):
    def uninstall_under_pods(self, node, *options):
        """Uninstall while attachments cannot be listed, which counts as a pod."""
        attachments = node.root / "bpf/natra"
        fd = node.lock()
        p = subprocess.Popen(node.argv("uninstall", *options), text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        time.sleep(0.5)
        attachments.symlink_to("natra")
        os.close(fd)
        out, err = p.communicate(timeout=20)
        attachments.unlink()
        return Answer(subprocess.CompletedProcess(p.args, p.returncode, out, err))

    def test_results_name_the_plugin(self):
        node = self.node({"10-flannel.conflist": FLANNEL})
        self.done(node.install())
        copy = (node.net / "00-natra-10-flannel.conflist").read_text()
        multus = json.dumps({"type": "multus", "delegates": [json.loads(copy)]})
        for text, cache in ((copy, "results"), ('{"type": "natra"}', "results"),
                            (multus, "results"), (copy, "multus/results")):
            with self.subTest(list=text[:20], cache=cache):
                result = node.result(text, cache)
                r = self.done(node.uninstall(), 3)
                self.assertIn(f"/var/lib/cni/{cache}/{result.name} names it", r.err)
                self.assertEqual(node.names(), ["10-flannel.conflist",
                                                "natra"])
        node.result(FLANNEL, "multus/results")
        node.result(copy)
        self.assertTrue(self.done(node.uninstall("--json"), 3).json[
            "plugin_kept"])
        node.result(FLANNEL)
        self.done(node.uninstall())
        self.assertEqual(node.names(), ["10-flannel.conflist"])

    def test_torn_results(self):
        """A loss of power leaves files that are empty or cut off."""
        for torn in ("", '{"kind": "cniCacheV1", "config": "eyJ0eX', None):
            node = self.node({"10-flannel.conflist": FLANNEL})
            result = node.result(FLANNEL if torn is not None else "{")
            if torn is not None:
                result.write_text(torn)
            self.done(node.install())
            r = self.done(node.uninstall("--json"))
            self.assertEqual([w.split(": ")[0] for w in r.json["warnings"]],
                             [f"/var/lib/cni/results/{result.name}"])
            self.assertIn(f"{result.name}: cannot be read", r.err)
            self.assertEqual(node.names(), ["10-flannel.conflist"])

    def test_pods_are_counted_behind_the_locks(self):
        """Pods are counted once natra has the locks; one that starts while it waits
        for them must count."""
        node = self.node({"10-flannel.conflist": FLANNEL})
        self.done(node.install())
        self.assertIn("attachments cannot be listed", self.done(
            self.uninstall_under_pods(node), 3).err)
        self.assertEqual(node.names(), ["10-flannel.conflist", "natra"])

    def test_bandwidth_comes_back_under_pods(self):
        """The list goes on to name the plugin, and would give each new pod natra's limits.
        Only CRI-O calls CHECK, at which upstream's fails for a pod that natra limits."""
        for runtime, code in ((None, 0), ("containerd x v2.4.2", 0), ("crio version 1.34.1", 3)):
            with self.subTest(runtime=runtime):
                node = self.node({"10-flannel.conflist": K3S})
                if runtime:
                    node.put_runtime(f"usr/bin/{runtime.split()[0]}", runtime)
                (node.bin / "bandwidth").write_text("upstream's")
                before = node.state()
                self.done(node.install("--mode", "bandwidth"))
                after = node.state()
                r = self.done(self.uninstall_under_pods(node), code)
                if code:
                    self.assertIn("until --force brings that plugin back", r.err)
                    self.assertEqual(node.state(), after)
                    r = self.done(self.uninstall_under_pods(node, "--force"))
                self.assertIn("until natractl gc", r.err)
                self.assertEqual(node.state(), before)

    def test_force(self):
        node = self.node({"10-flannel.conflist": FLANNEL})
        self.done(node.install())
        node.result('{"type": "natra"}')
        self.done(node.uninstall("--force"))
        self.assertEqual(node.names(), ["10-flannel.conflist"])

    def test_the_list_goes_before_the_plugin(self):
        for runtime in (OLD, NEW):
            node = self.node({"10-flannel.conflist": FLANNEL})
            printed = self.done(node.install("--json", runtime=runtime)).json
            self.assertEqual([c["action"] for c in printed["changes"]],
                             ["copy", "write", "reload"])
            dry = self.done(node.uninstall("--json", "--dry-run")).json
            printed = self.done(node.uninstall("--json")).json
            self.assertEqual(dry, printed)
            self.assertEqual([(c["action"], os.path.basename(c["path"]))
                              for c in printed["changes"]][1:],
                             [("reload", SCRATCH), ("remove", "natra")])


class Watch:
    """Records what a runtime's watcher of one directory is printed."""

    NAMES = {2: "write", 0x40: "from", 0x80: "to", 0x100: "create",
             0x200: "remove"}

    def __init__(self, path):
        self.libc = ctypes.CDLL(None)
        self.fd = self.libc.inotify_init1(os.O_NONBLOCK)
        self.libc.inotify_add_watch(self.fd, str(path).encode(),
                                    sum(self.NAMES))

    def events(self):
        found = []
        try:
            data = os.read(self.fd, 65536)
        except BlockingIOError:
            data = b""
        os.close(self.fd)
        while data:
            _, mask, _, size = struct.unpack("=iIII", data[:16])
            name = data[16:16 + size].rstrip(b"\0").decode()
            found.append((self.NAMES.get(mask & 0xfff, "?"), name))
            data = data[16 + size:]
        return found


class Reload(Case):
    def test_the_last_word_is_one_that_containerd_hears(self):
        """containerd ignores CREATE and does not watch subdirectories."""
        for runtime in (OLD, NEW):
            node = self.node({"10-flannel.conflist": FLANNEL})
            for run in (lambda: node.install(runtime=runtime),
                        node.uninstall):
                watch = Watch(node.net)
                self.done(run())
                self.assertEqual(watch.events()[-2:],
                                 [("write", SCRATCH), ("remove", SCRATCH)])
            watch = Watch(node.net)
            self.done(node.uninstall())
            self.assertEqual(watch.events(), [])

    def test_a_killed_one_is_made_up_for(self):
        node = self.node({"10-flannel.conflist": FLANNEL})
        self.done(node.install(runtime=NEW))
        (node.net / SCRATCH).touch()
        watch = Watch(node.net)
        self.done(node.install(runtime=NEW))
        self.assertEqual(watch.events()[-1], ("remove", SCRATCH))


if __name__ == "__main__":
    unittest.main()
