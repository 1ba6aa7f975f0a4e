#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests what natractl install refuses or warns of, and whose files it leaves alone."""

import json
import os
import time
import unittest
from pathlib import Path

from node import (BIN, EXAMPLES, FLANNEL, HIDES, K3S, LISTS, MARK, NET, NEW, OLD, PLUGIN,
                  SCRATCH, SINGLE, Case)


class Harm(Case):
    def test_no_list_yet(self):
        node = self.node()
        self.refused(node, words=["no list", NET])
        (node.net / "00-multus.conf").write_text(
            '{"cniVersion": "0.3.1", "name": "m", "type": "multus"}')
        self.refused(node, words=["no list"])
        self.refused(node, "--network", "x", words=["'x'"])
        (node.net / "10-half.conflist").write_text(FLANNEL[:50])
        self.refused(node, "--network", "x", words=[
            "no list of network 'x'", "10-half.conflist is not a JSON"])

    def test_list_of_loopback_only(self):
        """It says nothing of the network plugin, whose list would be hidden by its copy."""
        lo = {"cniVersion": "1.0.0", "name": "lo"}
        for name, conf in (("99-lo.conf", {"type": "loopback"}),
                           ("99-lo.conflist", {"plugins": [{"type": "loopback"}]})):
            with self.subTest(name=name):
                node = self.node({name: json.dumps({**lo, **conf})})
                for runtime in OLD, NEW:
                    for options in (), ("--network", "lo"):
                        self.refused(node, *options, runtime=runtime, words=[
                            "no list of a network plugin yet", name])
                (node.net / "10-flannel.conflist").write_text(FLANNEL)
                self.done(node.install())
                self.assertEqual(node.types(), ["flannel", "portmap", "natra"])

    def test_list_that_is_no_list(self):
        """libcni.json has more of them."""
        self.refused(self.node({"10-a.conflist": "\0"}), words=["not a JSON object"])
        text = FLANNEL.replace('"1.0.0"', '"0.2.0"')
        self.refused(self.node({"10-a.conflist": text}), words=["0.2.0"])

    def test_network_name_that_leads_elsewhere(self):
        for name in ("../../../evil", "a/b", "..", ".", "", "a b"):
            with self.subTest(name=name):
                text = FLANNEL.replace('"cbr0"', json.dumps(name))
                node = self.node({"10-a.conflist": text})
                self.refused(node, runtime=NEW, words=["name"])
                self.refused(node, words=["name"])

    def test_cilium_exclusive(self):
        node = self.node({"05-cilium.conflist": LISTS["05-cilium.conflist"],
                          "10-aws.conflist.cilium_bak": "{}"})
        left = node.net / "10-aws.conflist.cilium_bak"
        words = ["cni.exclusive=false", f"{NET}/{left.name}: ", "remove that file"]
        self.refused(node, words=words)
        self.refused(node, "--mode", "list", words=words)
        self.done(node.install(runtime=NEW))
        self.assertEqual(node.types(dropins=True)[-1], "natra")
        self.done(node.uninstall())
        self.assertTrue(left.exists())
        # Cilium never gives the old name back.
        left.unlink()
        self.done(node.install())
        self.assertEqual(node.types()[-1], "natra")

    def test_copy_that_cilium_has_renamed(self):
        node = self.node({"05-cilium.conflist": LISTS["05-cilium.conflist"]})
        before = node.state()
        self.done(node.install())
        copy = node.net / "00-natra-05-cilium.conflist"
        left = copy.rename(f"{copy}.cilium_bak")
        # A file of this name that has no mark is not natra's own.
        other = node.net / "00-natra-10-aws.conflist.cilium_bak"
        other.write_text("{}")
        self.refused(node, words=[left.name])
        self.done(node.uninstall())
        self.refused(node, words=[other.name])
        other.unlink()
        self.assertEqual(node.state(), before)
        self.done(node.install())
        self.assertEqual(node.types()[-1], "natra")

    def test_istio(self):
        text = json.loads(FLANNEL)
        text["plugins"].append({"type": "istio-cni"})
        istio = json.dumps(text)
        for file in ("02-istio-cni.conflist", "02-other.conflist"):
            with self.subTest(file=file):
                node = self.node({file: istio, "10-flannel.conflist": FLANNEL})
                before = node.state()
                self.refused(node, words=[file, "hide"])
                self.refused(node, "--mode", "list", words=[file])
                self.done(node.install(runtime=NEW))
                self.assertEqual(node.types(dropins=True),
                                 ["flannel", "portmap", "istio-cni", "natra"])
                self.done(node.uninstall())
                self.assertEqual(node.state(), before)
        # In the network plugin's own list, istio-cni is only one more plugin.
        node = self.node({"10-flannel.conflist": istio})
        self.done(node.install())
        self.assertEqual(node.types(),
                         ["flannel", "portmap", "istio-cni", "natra"])

    def test_others_write_into_natras_copy(self):
        """Istio's and Linkerd's installers append their plugin to the list that the runtime
        uses, and Go writes it in another layout."""
        istio, linkerd = {"type": "istio-cni", "x": 1}, {"type": "linkerd-cni"}
        for name, text in (("10-flannel.conflist", FLANNEL), ("10-one.conf", SINGLE),
                           ("10-k3s.conflist", K3S)):
            for at, guests in ((99, [istio]), (99, [istio, linkerd]), (1, [linkerd])):
                with self.subTest(list=name, at=at, guests=guests):
                    node = self.node({name: text})
                    self.done(node.install())
                    copy = node.net / f"00-natra-{name.split('.')[0]}.conflist"
                    conf = json.loads(copy.read_text())
                    plain = list(conf["plugins"])
                    conf["plugins"][at:at] = guests
                    copy.write_text(json.dumps(conf, sort_keys=True))
                    before = node.state(times=True)
                    self.assertEqual(self.done(node.install("--json")).json["changes"], [])
                    self.assertEqual(node.state(times=True), before)
                    # They stay when something else changes, which their installers would
                    # have to repair.
                    self.done(node.install("--conf", "fastPass=off"))
                    found = json.loads(copy.read_text())["plugins"]
                    plain[-1]["fastPass"] = "off"
                    self.assertEqual(found, plain + guests)
                    self.done(node.uninstall())
                    self.assertEqual(node.names(), [name])
        # What the original has no more goes, and natra's element is restored.
        node = self.node({"10-flannel.conflist": FLANNEL})
        self.done(node.install())
        copy = node.net / "00-natra-10-flannel.conflist"
        own = copy.read_text()
        for change in (lambda p: p.insert(1, {"type": "tuning"}), lambda p: p.pop(0),
                       lambda p: p[-1].update(fastPass="off"),
                       lambda p: p.append(p.pop(0))):
            conf = json.loads(own)
            change(conf["plugins"])
            copy.write_text(json.dumps(conf))
            self.done(node.install())
            self.assertEqual(node.types()[:3], ["flannel", "portmap", "natra"])
            self.assertEqual(json.loads(copy.read_text())["plugins"][:3],
                             json.loads(own)["plugins"])

    def test_guests_of_a_copy_that_goes(self):
        """Their installers do not know that their plugin is nowhere any more."""
        istio, linkerd = {"type": "istio-cni"}, {"type": "linkerd-cni"}

        def with_guests(text, *guests):
            node = self.node({"10-flannel.conflist": text})
            self.done(node.install())
            copy = node.net / "00-natra-10-flannel.conflist"
            conf = json.loads(copy.read_text())
            conf["plugins"] += guests
            copy.write_text(json.dumps(conf))
            return node

        def calico(node):
            (node.net / "10-flannel.conflist").unlink()
            (node.net / "10-calico.conflist").write_text(LISTS["10-calico.conflist"])
            return node.install("--json")

        def uninstall(node):
            return node.uninstall("--json")

        def dropin(node):
            return node.install("--json", runtime=NEW)

        for text, guests, change in (
                (FLANNEL, [istio, linkerd], uninstall), (FLANNEL, [linkerd], calico),
                (FLANNEL, [istio], dropin), (K3S, [linkerd], uninstall),
                (FLANNEL, [], uninstall), (FLANNEL, [], calico), (K3S, [], uninstall)):
            with self.subTest(list=text[:20], guests=guests, change=change.__name__):
                r = self.done(change(with_guests(text, *guests)))
                told = [w for w in r.json["warnings"] if " goes, " in w]
                self.assertEqual(len(told), bool(guests), r)
                if guests:
                    self.assertIn(f"/{NET}/00-natra-10-flannel.conflist goes", told[0])
                    self.assertTrue(told[0].endswith(": " + ", ".join(
                        g["type"] for g in guests)), told)
        # A plugin that the list itself has does not go with the copy.
        text = json.loads(FLANNEL)
        text["plugins"].append(istio)
        self.assertNotIn(" goes, ", self.done(with_guests(
            json.dumps(text)).uninstall()).err)
        # They go along when the list gets another name.
        for text in FLANNEL, K3S:
            node = with_guests(text, linkerd)
            before = node.types()
            (node.net / "10-flannel.conflist").rename(node.net / "20-flannel.conflist")
            self.assertEqual(self.done(node.install()).other, "")
            self.assertEqual(node.names(), ["00-natra-20-flannel.conflist",
                                            "20-flannel.conflist", "natra"])
            self.assertEqual(node.types(), before)
            self.assertEqual(node.types()[-1], "linkerd-cni")

    def test_rules_for_namespaces_that_cannot_be_removed(self):
        node = self.node({"10-flannel.conflist": FLANNEL})
        self.done(node.install())
        (node.root / "var/lib/natra/namespaces.json/x").mkdir(parents=True)
        self.one_line(node.uninstall(), "natractl: /var/lib/natra/namespaces.json: Is a directory")
        self.assertEqual(node.names(), ["10-flannel.conflist"])
        self.done(node.install())
        said = node.uninstall("--json").json
        self.assertEqual(said["error"], "/var/lib/natra/namespaces.json: Is a directory")
        self.assertGreater(len(said["changes"]), 1)

    def test_copy_of_natras_own_list(self):
        """Istio may copy natra's list as the primary one; the copy is Istio's. What it says of
        namespaces holds as long as it is there."""
        node = self.node({"10-flannel.conflist": FLANNEL})
        namespaces = node.root / "var/lib/natra/namespaces.json"
        require = "--conf", "requireNamespaces=true"
        self.done(node.install(*require))
        namespaces.parent.mkdir(exist_ok=True)
        namespaces.write_text("{}")
        text = json.loads((node.net /
                           "00-natra-10-flannel.conflist").read_text())
        text["plugins"].append({"type": "istio-cni"})
        istio = node.net / "02-istio-cni.conflist"
        istio.write_text(json.dumps(text))
        for keys in (), require:
            r = self.done(node.install("--json", *keys))
            self.assertEqual(r.json["mode"], "present")
            self.assertNotIn("requireNamespaces", r.err)
        self.assertEqual(node.types(), ["flannel", "portmap", "natra",
                                        "istio-cni"])
        self.refused(node, "--conf", "fastPass=off", *require, words=["not natra's to change"])
        r = self.done(node.uninstall(), 3)
        self.assertIn("02-istio-cni.conflist names it", r.err)
        self.assertTrue(istio.exists())
        # Its element still asks for the file.
        self.assertTrue(namespaces.exists())
        istio.unlink()
        self.done(node.uninstall("--dry-run"))
        self.assertTrue(namespaces.exists())
        self.done(node.uninstall())
        self.assertFalse(namespaces.parent.exists())

    def test_multus(self):
        multus = '{"cniVersion": "0.3.1", "name": "m", "type": "multus"}'
        node = self.node({"00-multus.conf": multus,
                          "10-flannel.conflist": FLANNEL})
        # Multus itself reads the lists to which it delegates, without their drop-ins.
        r = self.done(node.install(runtime=NEW))
        self.assertIn("Multus", r.err)
        self.assertIn("Multus reads no drop-ins", r.out)
        self.assertIn("00-natra-10-flannel.conflist", node.names())
        self.assertEqual((node.net / "00-multus.conf").read_text(), multus)
        # The copy stays while Multus' pod is not there, which takes its list away.
        for plugin in "multus", "multus-shim":
            (node.net / "00-multus.conf").unlink()
            (node.bin / plugin).touch()
            self.assertIn("Multus reads no drop-ins", self.done(node.install(runtime=NEW)).out)
            self.assertEqual(node.types(dropins=True), ["flannel", "portmap", "natra"])
            (node.bin / plugin).unlink()
            (node.net / "00-multus.conf").write_text(multus)
        # Where Multus itself has gone, the runtime reads drop-ins as ever.
        (node.net / "00-multus.conf").unlink()
        self.done(node.install(runtime=NEW))
        self.assertNotIn("00-natra-10-flannel.conflist", node.names())

    def test_multus_that_delegates_to_natras_list(self):
        """Thin Multus copies the first list into its own, thick Multus names it by a
        path of its own; on OpenShift its list is elsewhere."""
        openshift = "run/multus/cni/net.d", "var/lib/cni/bin"
        copy = "00-natra-10-flannel.conflist"
        for dirs in ((NET, BIN), openshift):
            for key in ("delegates", "clusterNetwork"):
                with self.subTest(dirs=dirs, key=key):
                    node = self.node({"10-flannel.conflist": FLANNEL}, *dirs)
                    path = node.net
                    if dirs is openshift:
                        path = node.root / "etc/kubernetes/cni/net.d"
                        path.mkdir(parents=True)
                    self.done(node.install())
                    value = "/host/x/" + copy
                    if key == "delegates":
                        value = [json.loads((node.net / copy).read_text())]
                    multus = path / "00-multus.conf"
                    multus.write_text(json.dumps({
                        "cniVersion": "0.3.1", "name": "m", "type": "multus-shim", key: value}))
                    self.done(node.install())
                    for _ in range(2):
                        r = self.done(node.uninstall(), 3)
                        self.assertIn(str(multus).removeprefix(str(node.root)), r.err)
                    self.assertTrue((node.bin / "natra").exists())
                    self.assertEqual((node.net / copy).exists(),
                                     key == "clusterNetwork")
                    if key == "clusterNetwork":
                        self.done(node.uninstall("--force"))
                    multus.unlink()
                    self.done(node.uninstall())
                    self.assertFalse((node.bin / "natra").exists())

    def test_several(self):
        lists = {"10-flannel.conflist": FLANNEL,
                 "20-calico.conflist": LISTS["10-calico.conflist"]}
        node = self.node(lists)
        r = self.done(node.install())
        self.assertIn("20-calico.conflist stays without natra", r.err)
        self.done(node.uninstall())
        self.refused(node, "--network", "k8s-pod-network",
                     words=["20-calico.conflist", "not the list"])
        self.done(node.install("--network", "k8s-pod-network", runtime=NEW))
        self.done(node.install(runtime=NEW))
        # Each network has a drop-in, which is removed when the network's list is.
        self.assertEqual([n for n in node.names() if "90-" in n],
                         ["cbr0/90-natra.conf",
                          "k8s-pod-network/90-natra.conf"])
        (node.net / "20-calico.conflist").unlink()
        self.done(node.install(runtime=NEW))
        self.assertEqual([n for n in node.names() if "90-" in n],
                         ["cbr0/90-natra.conf"])

    def test_many_lists(self):
        """Their number is others' business."""
        lists = {f"{n}-x.conf": SINGLE.replace("one", f"x{n}") for n in range(100, 300)}
        node = self.node({"10-flannel.conflist": FLANNEL, **lists})
        before = node.state()
        self.done(node.install())
        self.assertEqual(node.types(), ["flannel", "portmap", "natra"])
        self.done(node.uninstall())
        self.assertEqual(node.state(), before)

    def test_dropin_of_bandwidth(self):
        """Both would limit, if the runtime reads drop-ins."""
        node = self.node({"10-flannel.conflist": FLANNEL})
        (node.net / "cbr0").mkdir()
        (node.net / "cbr0/50-x.conf").write_text('{"type": "bandwidth"}')
        for name in "abcdefgh":
            (node.net / f"cbr0/{name}.conf").write_text('{"type": "tuning"}')
        for mode in ("auto", "dropin", "list"):
            self.refused(node, "--mode", mode, runtime=NEW,
                         words=["cbr0/50-x.conf has the plugin bandwidth"])
        self.refused(node, "--mode", "dropin", runtime=None, words=["50-x.conf"])
        self.assertIn("50-x.conf calls the plugin bandwidth",
                      self.done(node.install(runtime=None)).err)
        self.assertEqual(self.done(node.install()).other, "")
        self.done(node.uninstall())
        (node.bin / "bandwidth").write_text("upstream's")
        self.refused(node, "--mode", "bandwidth", words=["no plugin bandwidth"])
        self.done(node.install("--mode", "bandwidth", runtime=NEW))
        self.assertEqual((node.bin / "bandwidth").read_bytes(), Path(PLUGIN).read_bytes())

    def test_list_that_comes_later(self):
        """A copy of podman's list sorts before it, until natra is installed again."""
        node = self.node({"87-podman.conflist": FLANNEL.replace("cbr0", "podman")})
        for _ in range(2):
            r = self.done(node.install("--json"))
            self.assertEqual(["87-podman.conflist" in w for w in r.json["warnings"]
                              if HIDES in w], [True])
            self.assertEqual(r.err.count(HIDES), 1)
        (node.net / "10-calico.conflist").write_text(LISTS["10-calico.conflist"])
        self.assertEqual(node.chain()[0], "podman")
        self.done(node.install())
        self.assertEqual(node.chain()[0], "k8s-pod-network")
        self.assertNotIn("00-natra-87-podman.conflist", node.names())
        # A drop-in hides nothing.
        self.assertNotIn(HIDES, self.done(node.install(runtime=NEW)).err)

    def test_list_that_comes_first(self):
        node = self.node({"00-aaa.conflist": FLANNEL})
        self.refused(node, words=["00-aaa.conflist", "before"])
        self.done(node.install(runtime=NEW))

    def test_list_with_natra(self):
        text = (EXAMPLES / "10-flannel.conflist").read_text()
        node = self.node({"10-flannel.conflist": text})
        before = node.state()
        for runtime in (OLD, NEW):
            told = self.done(node.install("--json", runtime=runtime)).json
            self.assertEqual(told["mode"], "present")
            self.assertEqual(node.names(), ["10-flannel.conflist", "natra"])
        self.refused(node, "--conf", "fastPass=off", words=["has natra"])
        self.refused(node, "--mode", "dropin", words=["has natra"])
        # The plugin reads the file of namespaces without the key, too.
        r = self.done(node.install("--conf", "requireNamespaces=true"))
        self.assertIn("says no requireNamespaces: pods that start", r.err)
        r = self.done(node.uninstall("--force"), 3)
        self.assertIn("10-flannel.conflist names it", r.err)
        (node.net / "10-flannel.conflist").write_text(FLANNEL)
        self.done(node.uninstall())
        (node.net / "10-flannel.conflist").write_text(text)
        self.assertEqual(node.state(), before)

    def test_calico_with_its_own_limits(self):
        text = LISTS["10-calico.conflist"]
        r = self.done(self.node({"10-calico.conflist": text}).install())
        self.assertIn("Calico 3.30", r.err)
        old = json.loads(text)
        old["plugins"].append({"type": "bandwidth"})
        r = self.done(self.node({
            "10-calico.conflist": json.dumps(old)}).install())
        self.assertEqual(r.other, "")

    def test_files_of_others_under_natras_names(self):
        node = self.node({"10-flannel.conflist": FLANNEL})
        own = node.net / "00-natra-10-flannel.conflist"
        own.write_text(LISTS["10-calico.conflist"])
        self.refused(node, words=["natra's list"])
        own.unlink()
        (node.net / "cbr0").mkdir()
        dropin = node.net / "cbr0/90-natra.conf"
        dropin.write_text('{"type": "natra"}')
        self.refused(node, runtime=NEW, words=["90-natra.conf", "own"])
        dropin.unlink()
        (node.bin / "natra").write_text("#!/bin/sh\n")
        self.refused(node, words=["natra", "not natra's plugin"])
        r = self.done(node.uninstall())
        self.assertIn("not natra's plugin, and stays", r.err)
        self.assertTrue((node.bin / "natra").exists())
        # A link may lead to natra's plugin, but is none.
        (node.bin / "natra").unlink()
        (node.bin / "natra").symlink_to(PLUGIN)
        self.refused(node, words=[f"/{BIN}/natra: is there, and is a symbolic link"])
        r = self.done(node.uninstall())
        self.assertIn(f"/{BIN}/natra is a symbolic link, and stays", r.err)
        self.assertTrue((node.bin / "natra").is_symlink())

    def test_dropin_of_others_needs_the_plugin(self):
        """Without the plugin each ADD would fail, so not even --force removes it."""
        for file, link in (("90-natra.conf", ""), ("50-mine.conf", "file"),
                           ("90-natra.conf", "directory")):
            with self.subTest(file=file, link=link):
                node = self.node({"10-flannel.conflist": FLANNEL})
                self.done(node.install())
                if link == "directory":
                    (node.root / "mine").mkdir()
                    (node.net / "cbr0").symlink_to("/mine")
                    dropin = node.root / "mine" / file
                else:
                    (node.net / "cbr0").mkdir()
                    dropin = node.net / "cbr0" / file
                if link == "file":
                    (node.root / "mine").write_text('{"type": "natra"}')
                    dropin.symlink_to("/mine")
                else:
                    # Even with natra's mark, the drop-in is not natra's own behind
                    # such a link.
                    dropin.write_text('{"type": "natra"%s}' % (
                        f', "{MARK}": "x"' if link else ""))
                self.done(node.uninstall("--dry-run"), 3)
                r = self.done(node.uninstall("--force"), 3)
                self.assertIn(f"/{NET}/cbr0/{file} names it", r.err)
                self.assertTrue((node.bin / "natra").exists())
                self.assertTrue(dropin.is_symlink() or dropin.exists())
                dropin.unlink()
                self.done(node.uninstall())
                self.assertFalse((node.bin / "natra").exists())

    def test_copy_that_nobody_marked(self):
        """A list that looks like natra's copy, written by another installer, counts as
        natra's."""
        text = json.loads(FLANNEL)
        text["plugins"].append({"type": "natra"})
        node = self.node({"10-flannel.conflist": FLANNEL,
                          "00-natra-10-flannel.conflist": json.dumps(text)})
        self.done(node.install(runtime=NEW))
        self.assertNotIn("00-natra-10-flannel.conflist", node.names())
        self.assertEqual(node.types(dropins=True)[-1], "natra")

    def test_copy_without_natra(self):
        """Somebody has taken natra's element out of natra's own copy of a list, of a
        configuration of one plugin, and of a list with the bandwidth plugin."""
        for name, text in (("10-flannel.conflist", FLANNEL), ("10-one.conf", SINGLE),
                           ("10-k3s.conflist", K3S)):
            node = self.node({name: text})
            self.done(node.install())
            copy = node.net / f"00-natra-{name.split('.')[0]}.conflist"
            before = copy.read_text()
            taken_out = json.loads(before)
            taken_out["plugins"] = [p for p in taken_out["plugins"]
                                    if p["type"] != "natra"]
            copy.write_text(json.dumps(taken_out))
            self.done(node.install())
            self.assertEqual(copy.read_text(), before)
            copy.write_text(json.dumps(taken_out))
            self.done(node.uninstall())
            self.assertEqual(node.names(), [name])
            # It is natra's only under its network's name.
            copy.write_text(json.dumps(dict(taken_out, name="other")))
            self.refused(node, words=["not natra's own"])
            self.done(node.uninstall())
            self.assertTrue(copy.exists())

    def test_links(self):
        node = self.node({"10-flannel.conflist": FLANNEL})
        victim = node.root / "victim"
        victim.write_text("precious")
        for path, runtime in (("etc/cni/net.d/00-natra-10-flannel.conflist",
                               OLD), ("opt/cni/bin/natra", OLD),
                              ("etc/cni/net.d/cbr0/90-natra.conf", NEW)):
            with self.subTest(link=path):
                link = node.root / path
                link.parent.mkdir(exist_ok=True)
                link.symlink_to(victim)
                self.refused(node, runtime=runtime)
                link.unlink()
        (node.net / "cbr0").rmdir()
        (node.net / "cbr0").symlink_to(node.root)
        self.refused(node, runtime=NEW, words=["directory of its own"])
        (node.net / "cbr0").unlink()
        # These are names that natra uses for a moment.
        for path in (node.net / ".natra-install.tmp",
                     node.bin / ".natra-install.tmp"):
            path.symlink_to(victim)
        self.done(node.install())
        self.assertEqual(victim.read_text(), "precious")
        self.assertEqual(node.names(), [
            "00-natra-10-flannel.conflist", "10-flannel.conflist", "natra"])
        (node.net / SCRATCH).symlink_to(victim)
        self.assertEqual(node.install("--conf", "fastPass=off").code, 1)
        self.assertEqual(victim.read_text(), "precious")

    def test_paths_stay_below_the_root(self):
        """An absolute link is resolved in the host's root directory, not in the
        container's."""
        node = self.node()
        outside = self.node({"10-calico.conflist":
                             LISTS["10-calico.conflist"]})
        (node.root / "real").mkdir()
        (node.root / "real/10-flannel.conflist").write_text(FLANNEL)
        node.net.rmdir()
        node.net.symlink_to("/real")
        (node.root / "real/05-x.conflist").symlink_to(
            "/../../../" + str(outside.net / "10-calico.conflist"))
        r = node.install()
        self.assertEqual(r.code, 1, r)
        (node.root / "real/05-x.conflist").unlink()
        self.done(node.install())
        self.assertTrue((node.root /
                         "real/00-natra-10-flannel.conflist").exists())

    def test_plugin_that_is_none(self):
        node = self.node({"10-flannel.conflist": FLANNEL})
        other = node.root / "other"
        other.write_bytes(b"\x7fELF something else")
        self.refused(node, "--plugin", str(other), words=["natra's CNI plugin"])
        self.refused(node, "--plugin", "/nowhere", words=["'/nowhere'"])
        # This is an executable for another machine.
        other.write_bytes(b"\x7fELF CNI plugin natra 0.1.0" + bytes(100))
        self.refused(node, "--plugin", str(other), words=["cannot run"])

    def test_plugin_that_does_not_end(self):
        """A plugin that closes its output, or writes too much, is killed, because
        another installer may wait for the directories."""
        node = self.node({"10-flannel.conflist": FLANNEL})
        other = node.root / "other"
        pid = node.root / "pid"
        for command, why, least in (
                ("exec >&-; exec sleep 50", "Connection timed out", 9),
                ("head -c 65537 /dev/zero; exec sleep 50", "File too large",
                 0)):
            with self.subTest(plugin=command):
                other.write_text(f"""#!/bin/sh
                    # CNI plugin natra of a test
                    PATH=/usr/bin:/bin
                    echo $$ > {pid}
                    {command}
                    """)
                other.chmod(0o755)
                begin = time.monotonic()
                self.one_line(node.install("--plugin", str(other)),
                              "cannot run on this machine", why)
                took = time.monotonic() - begin
                self.assertTrue(least < took < least + 8, took)
                self.assertFalse(os.path.exists(
                    f"/proc/{pid.read_text().strip()}"))
                self.assertEqual(node.names(), ["10-flannel.conflist"])

    def test_upgrade_and_use(self):
        """A plugin in use is replaced by another version, and never written over."""
        node = self.node({"10-flannel.conflist": FLANNEL})
        self.done(node.install())
        file = node.bin / "natra"
        with open(file, "rb") as running:
            inode = file.stat().st_ino
            # The plugin finds its library from here.
            other = node.root / "build/cni/other"
            other.parent.mkdir(parents=True)
            (node.root / "build/src").symlink_to(
                Path(PLUGIN).resolve().parents[1] / "src")
            other.write_bytes(Path(PLUGIN).read_bytes() + b"newer")
            other.chmod(0o755)
            self.done(node.install("--plugin", str(other)))
            self.assertNotEqual(file.stat().st_ino, inode)
            self.assertEqual(running.read(), Path(PLUGIN).read_bytes())
        self.assertEqual(file.read_bytes(), other.read_bytes())


if __name__ == "__main__":
    unittest.main()
