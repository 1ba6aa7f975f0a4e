#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""natractl install finds out whose lists and plugins are where, and which runtime reads
them."""

import shutil
import time
import unittest

from node import BIN, FLANNEL, LISTS, NET, NEW, OLD, Case

CRIO = "cri-o://1.32.0"


class Places(Case):
    def test_platforms(self):
        k3s = "var/lib/rancher/k3s/agent/etc/cni/net.d"
        snap = "var/snap/microk8s/current"
        for name, net, bin_dir, more in (
                ("default", NET, BIN, ""),
                ("k3s", k3s, "var/lib/rancher/k3s/data/cni", ""),
                ("k3d", k3s, "bin", "bin/k3s"),
                ("rke2", NET, BIN, "var/lib/rancher/rke2/agent"),
                ("microk8s", f"{snap}/args/cni-network",
                 f"{snap}/opt/cni/bin", ""),
                ("gke", NET, "home/kubernetes/bin", ""),
                ("openshift", "run/multus/cni/net.d", "var/lib/cni/bin",
                 "etc/cni/multus/net.d")):
            with self.subTest(platform=name):
                node = self.node({"10-flannel.conflist": FLANNEL}, net,
                                 bin_dir)
                if more:
                    (node.root / more).mkdir(parents=True)
                if name == "openshift":
                    (node.root / NET).mkdir(parents=True)
                    (node.root / BIN).mkdir(parents=True)
                for options in (("--dry-run",), ("--platform", "auto"),
                                ("--platform", name)):
                    printed = self.done(node.install("--json", *options)).json
                    self.assertEqual((printed["net_dir"], printed["bin_dir"]),
                                     (f"/{net}", f"/{bin_dir}"))
                self.assertEqual(node.types()[-1], "natra")
                self.done(node.uninstall())

    def test_own_directories(self):
        node = self.node({"10-flannel.conflist": FLANNEL}, "srv/net",
                         "srv/bin")
        (node.root / "var/lib").rmdir()
        (node.root / "var").rmdir()
        dirs = ("--net-dir", "/srv/net", "--bin-dir", "/srv/bin")
        self.done(node.install(*dirs))
        self.assertEqual(node.types()[-1], "natra")
        self.done(node.uninstall(*dirs))
        self.refused(node, words=["directory '/etc/cni/net.d'"])
        self.refused(node, "--net-dir", "/srv/net",
                     words=["directory '/opt/cni/bin'"])
        # One directory serves for both.
        self.done(node.install("--net-dir", "/srv/net", "--bin-dir",
                               "/srv/net"))

    def test_links_in_the_place_of_the_lock(self):
        """A symbolic link may be above natra's own directory, but is none itself."""
        for name, target, word in (
                ("var/lib", "/srv/lib", None), ("var/lib", "/none", "link to nothing"),
                ("var", "none", "link to nothing"), ("var/lib/natra", "/srv", "directory"),
                ("var/lib/natra", "/none", "directory")):
            with self.subTest(name=name, target=target):
                node = self.node({"10-flannel.conflist": FLANNEL})
                (node.root / "srv/lib").mkdir(parents=True)
                path = node.root / name
                if path.exists():
                    shutil.rmtree(path)
                path.symlink_to(target)
                begin = time.monotonic()
                if word:
                    self.refused(node, words=["/var/lib/natra/install.lock: ", word])
                    # It would try 10 s for a lock that another one holds.
                    self.assertLess(time.monotonic() - begin, 8)
                else:
                    self.done(node.install())

    def test_runtime(self):
        debian = "containerd github.com/containerd/containerd 1.6.20~ds1 1.6"
        new = "containerd github.com/containerd/containerd/v2 v2.4.2 0123abc"
        k3s = "containerd github.com/k3s-io/containerd v2.0.4-k3s2"
        for programs, mode, words in (
                ({}, "list", "not known"),
                ({"usr/bin/containerd": debian}, "list", "containerd 1.6.20"),
                ({"usr/bin/containerd": new}, "dropin", "containerd 2.4.2"),
                ({"usr/local/bin/containerd": "containerd x v2.1.0-rc.1"},
                 "dropin", "containerd 2.1.0"),
                ({"var/lib/rancher/k3s/data/current/bin/containerd": k3s},
                 "list", "containerd 2.0.4"),
                ({"usr/bin/crio": "crio version 1.33.0\nGitCommit: 9.9.9"},
                 "dropin", "crio 1.33.0"),
                ({"usr/bin/crio": "crio version 1.32.4"}, "list", "1.32.4"),
                ({"usr/bin/crio": "crio version 1.34.1",
                  "usr/bin/containerd": debian}, "list", "containerd 1.6.20"),
                ({"usr/bin/containerd": "oops"}, "list", "not known")):
            with self.subTest(programs=programs):
                node = self.node({"10-flannel.conflist": FLANNEL})
                for path, says in programs.items():
                    node.put_runtime(path, says)
                printed = self.done(node.install("--json", runtime=None)).json
                self.assertEqual(printed["mode"], mode, printed)
                self.assertIn(words, printed["reason"])
        node = self.node({"10-flannel.conflist": FLANNEL})
        r = self.done(node.install("--mode", "dropin", runtime=None))
        self.assertIn("warning", r.err)
        self.refused(node, "--mode", "dropin", words=["1.6.20"])

    def test_runtime_of_kubelet(self):
        """cri-dockerd reads no drop-ins, whatever containerd Docker has."""
        flags = "var/lib/kubelet/kubeadm-flags.env"
        yaml = "var/lib/kubelet/config.yaml"
        docker = '"--container-runtime-endpoint=unix:///run/cri-dockerd.sock --x"'
        for files, mode, words in (
                ({}, "dropin", "containerd 2.4.2 and"),
                ({flags: f"KUBELET_KUBEADM_ARGS={docker}"}, "list", "cri-dockerd does"),
                ({flags: f"X={docker}", yaml: "containerRuntimeEndpoint: "
                  "unix:///run/containerd/containerd.sock"}, "list", "cri-dockerd does"),
                ({yaml: "a: 1\ncontainerRuntimeEndpoint: ''\n"}, "dropin", "and"),
                ({yaml: 'containerRuntimeEndpoint: "unix:///var/run/crio/crio.sock"'},
                 "dropin", "crio 1.34.1 reads"),
                ({yaml: "containerRuntimeEndpoint: /run/containerd/containerd.sock"},
                 "dropin", "containerd 2.4.2 reads"),
                ({"usr/bin/cri-dockerd": "cri-dockerd 0.4.0 (abc)"}, "list",
                 "cri-dockerd 0.4.0")):
            with self.subTest(files=files):
                node = self.node({"10-flannel.conflist": FLANNEL})
                for path, text in {"usr/bin/containerd": "containerd x v2.4.2",
                                   "usr/bin/crio": "crio version 1.34.1", **files}.items():
                    (node.put_runtime if "bin" in path else node.put)(path, text)
                printed = self.done(node.install("--json", runtime=None)).json
                self.assertEqual(printed["mode"], mode, printed)
                self.assertIn(words, printed["reason"])
        for text, word in (("docker://29.1.0", "docker 29.1.0"),
                           ("cri-dockerd://0.4.0", "cri-dockerd 0.4.0")):
            node = self.node({"10-flannel.conflist": FLANNEL})
            self.assertIn(word, self.done(node.install(runtime=text)).out)

    def settings(self, files, runtime, *options):
        """Install on a node with these files of the runtime's; return the directories in
        which natra is, and the warnings, or None and the error."""
        node = self.node({"10-flannel.conflist": FLANNEL})
        for path in ("usr/lib/cni", "srv/net"):
            (node.root / path).mkdir(parents=True)
        (node.root / "srv/net/10-flannel.conflist").write_text(FLANNEL)
        for path, text in files.items():
            node.put(path, text)
        r = node.install("--json", *options, runtime=runtime)
        if r.code:
            return None, r.other
        dirs = (r.json["net_dir"], r.json["bin_dir"])
        for path in dirs:
            self.assertTrue([n for n in (node.root / path[1:]).rglob("*")
                             if "natra" in n.name])
        return dirs, r.other

    def test_directories_of_the_runtime(self):
        main, more = "etc/containerd/config.toml", "etc/containerd/conf.d/%s.toml"
        usual, debian = ("/etc/cni/net.d", "/opt/cni/bin"), ("/srv/net", "/usr/lib/cni")
        cri = '[plugins."io.containerd.grpc.v1.cri".cni]\n'
        both = 'bin_dir = "/usr/lib/cni"\nconf_dir = "/srv/net"\n'
        runtime = "[plugins.'io.containerd.cri.v1.runtime'.cni]\n"
        imports = f"imports = ['/{more % '*'}']\nversion = 2\n"
        for files, version, dirs in (
                ({main: f"version = 2\n{cri}{both}"}, OLD, debian),
                ({main: f"[plugins.cri.cni]\n{both}"}, OLD, debian),
                ({main: f"version = 3\n{runtime}bin_dirs = [\n '/usr/lib/cni', # x\n]\n"
                  "conf_dir = '/srv/net'"}, NEW, debian),
                ({main: f"version = 3\n{runtime}bin_dirs = ['/none', '/opt/cni/bin']"},
                 NEW, usual),
                ({main: 'plugins."io.containerd.grpc.v1.cri".cni = {bin_dir = '
                  '"/usr/lib/cni", conf_dir = "/srv/net"}'}, OLD, debian),
                ({main: f'disabled_plugins = ["cri"]\n{cri}{both}'}, OLD, usual),
                ({main: f'disabled_plugins = ["io.x"]\n{cri}{both}'}, OLD, debian),
                ({"etc/crio/crio.conf": "[crio.network]\nplugin_dirs = ['/usr/lib/cni']"},
                 "cri-o://1.32.0", ("/etc/cni/net.d", "/usr/lib/cni")),
                ({main: f'{cri}bin_dir = "${{SNAP}}/x"'}, OLD, usual),
                ({main: imports, more % "a": cri + both}, OLD, debian),
                ({main: imports, more % ".a": cri + both}, OLD, debian),
                ({main: imports + cri + both, more % "a": "[plugins]\n", more % "b": cri +
                  'bin_dir = "/opt/cni/bin"'}, "containerd://2.0.0",
                 ("/srv/net", "/opt/cni/bin")),
                # containerd before 2.0 takes the section of the last file.
                ({main: imports + cri + both, more % "a": cri + "max_conf_num = 1"}, OLD,
                 usual),
                ({main: "imports = ['conf.d/a.toml']", more % "a": cri + both}, OLD, debian),
                ({main: "imports = ['config.toml']\n" + cri + both}, OLD, debian),
                ({main: cri + both, "etc/crio/crio.conf": ""}, "cri-o://1.32.0", usual),
                ({"etc/crio/crio.conf": "[crio.network]\nplugin_dirs = ['/none/']\n",
                  "etc/crio/crio.conf.d/10-x.conf": "[crio]\n[crio.network]\n"
                  'network_dir = "/srv/net/"\nplugin_dir = "/usr/lib/cni/"'},
                 "cri-o://1.32.0", ("/srv/net/", "/usr/lib/cni/")),
                ({main: cri + both}, "docker://29.1.0", usual)):
            with self.subTest(files=files):
                self.assertEqual(self.settings(files, version), (dirs, ""))
        self.assertIn("'/etc/*/x.toml' cannot be followed", self.settings(
            {main: "imports = ['/etc/*/x.toml']"}, OLD)[1])
        # containerd reads each file once, also where drop-ins import their own directory.
        own = {more % n: imports for n in range(12)}
        self.assertEqual(self.settings({main: imports, **own, more % "x": cri + both}, OLD),
                         (debian, ""))
        # A chain of imports may be long, but not without end.
        for length, dirs, words in ((100, debian, ""),
                                    (300, usual, "x256.toml: over 256 files")):
            chain = {f"etc/containerd/x{n}.toml": f"imports = ['x{n + 1}.toml']\n"
                     for n in range(1, length)}
            found, err = self.settings({main: "imports = ['x1.toml']\n", **chain,
                                        f"etc/containerd/x{length}.toml": cri + both}, OLD)
            self.assertEqual(found, dirs)
            self.assertIn(words, err)
        self.assertIn("conf.d: over 64 files", self.settings(
            {main: imports, **{more % n: "" for n in range(65)}}, OLD)[1])
        # Who names the platform or a directory is told.
        files = {main: cri + both}
        self.assertIn("plugins are looked for in /usr/lib/cni, and not in /opt/cni/bin",
                      self.settings(files, OLD, "--platform", "default")[1])
        self.assertIn("lists are looked for in /srv/net, and not in /etc/cni/net.d",
                      self.settings({main: cri + 'conf_dir = "/srv/net"'}, OLD,
                                    "--platform", "default")[1])
        dirs, err = self.settings(files, OLD, "--bin-dir", "/opt/cni/bin")
        self.assertEqual(dirs, ("/srv/net", "/opt/cni/bin"))
        self.assertIn("warning: /etc/containerd/config.toml: plugins are looked for", err)

    def test_toml(self):
        """A file is read as a whole, or natra says which line it cannot read."""
        behind = '\n[plugins.cri.cni]\nbin_dir = "/usr/lib/cni"\n'
        for text in ('a = 1\r\n# x\r\n', 'a.b."c.d" = "x # \\"\\t"  # y', "x = 'a\\b'",
                     'a = """\n[plugins.cri]\n"x" \\\n  y"""', "a = '''\nx = [\n'''",
                     "a = [1, 2.5, [true], {b = 'c', d.e = 1979-05-27T07:32:00Z},\n]",
                     "[[a]]\nb = 1\n[[a]]\nb = 2\n[a.c]\nb = 3", "a = []\nb = {}",
                     '[ a . "b" ]\nc = 1_000'):
            with self.subTest(text=text):
                dirs, err = self.settings({"etc/containerd/config.toml": text + behind}, OLD)
                self.assertEqual((dirs[1], err), ("/usr/lib/cni", ""))
        for text, line in (('a = "x\nb = 1', 1), ("a = 1\na = 2", 2), ("a", 1), ("a = ", 1),
                           ("\n[a", 2), ("[a]]", 1), ("[[a]", 1), ("a = 1 b = 2", 1),
                           ("a = [1 2]", 1), ("a = [\n1,\n", 3), ('a = """x', 1),
                           ('a = "\\u00e9"', 1), ("a = 1\n[a]", 2), ("= 1", 1),
                           ("a.b = 1\na.b.c = 2", 2), ("a = {b = 1", 1), ('a = "x\\"', 1),
                           ("a = " + 70 * "[", 1), ("[" + 70 * "a." + "a]", 1),
                           ("[[a]]\n[a]\n[[a.b]]\na = !", 4)):
            with self.subTest(text=text):
                dirs, err = self.settings({"etc/containerd/config.toml": text}, OLD)
                self.assertIn(f"config.toml: line {line} cannot be read", err)
                self.assertEqual(dirs[1], "/opt/cni/bin")

    def test_network_of_crio(self):
        """CRI-O takes the first list of the network that it is told, else the first list."""
        main, more = "etc/crio/crio.conf", "etc/crio/crio.conf.d/%s.conf"
        said = '[crio.network]\ncni_default_network = "%s"\n'
        calico = said % "k8s-pod-network"
        lists = {"00-aaa.conflist": FLANNEL, "20-calico.conflist": LISTS["10-calico.conflist"],
                 "30-calico.conflist": LISTS["10-calico.conflist"]}

        def node(files, more_lists=()):
            node = self.node({**lists, **dict(more_lists)})
            for path, text in files.items():
                node.put(path, text)
            return node

        for files in ({main: calico}, {main: said % "cbr0", more % 10: calico},
                      {main: calico, more % 10: "[crio.network]\nplugin_dirs = []\n"}):
            with self.subTest(files=files):
                there = node(files)
                before = there.state()
                printed = self.done(there.install("--json", runtime=CRIO)).json
                self.assertEqual(printed["mode"], "list")
                copy = there.net / "00-natra-20-calico.conflist"
                self.assertIn('"natra"', copy.read_text())
                for network, words in (("cbr0", "is not the list that the runtime uses"),
                                       ("x", "no list of network 'x'")):
                    self.refused(there, "--network", network, runtime=CRIO, words=[words])
                # It is the first of its network, though not of all.
                (there.net / "30-calico.conflist").rename(there.net / "00-calico.conflist")
                self.refused(there, runtime=CRIO, words=["00-calico.conflist comes before"])
                (there.net / "00-calico.conflist").rename(there.net / "30-calico.conflist")
                self.done(there.uninstall())
                self.assertEqual(there.state(), before)
        # Without the key, or with containerd, the first list counts.
        for files, runtime in (({main: said % ""}, CRIO), ({main: calico, more % 10: said % ""},
                               CRIO), ({main: calico}, OLD)):
            with self.subTest(files=files, runtime=runtime):
                self.refused(node(files), runtime=runtime, words=["00-aaa.conflist comes before"])
        self.refused(node({main: said % "x"}), runtime=CRIO,
                     words=["no list of network 'x'", "cni_default_network"])
        # Multus' list delegates to the first of the others.
        there = node({main: said % "m"}, {"05-multus.conf": '{"cniVersion": "0.3.1", '
                                          '"name": "m", "type": "multus"}'}.items())
        (there.net / "00-aaa.conflist").unlink()
        self.assertIn("Multus reads no drop-ins", self.done(there.install(
            runtime="cri-o://1.33.0")).out)

    def test_plugins_elsewhere(self):
        node = self.node({"10-flannel.conflist": FLANNEL})
        other = node.root / "usr/lib/cni"
        other.mkdir(parents=True)
        (other / "portmap").touch()
        self.refused(node, words=["10-flannel.conflist", "/usr/lib/cni", "--bin-dir"])
        self.done(node.install("--bin-dir", "/usr/lib/cni"))
        self.done(node.uninstall("--bin-dir", "/usr/lib/cni"))
        (node.bin / "flannel").touch()
        self.done(node.install())

    def test_a_pod_has_an_interface_of_each_list(self):
        """natra's copy would be one more."""
        conf = "etc/containerd/config.toml"
        for number in (0, 2):
            text = f'[plugins."io.containerd.grpc.v1.cri".cni]\nmax_conf_num = {number}'
            for options in ((), ("--mode", "list")):
                self.assertIn(f"/{conf}: max_conf_num is {number}", self.settings(
                    {conf: text}, OLD, *options)[1])
            self.assertEqual(self.settings({conf: text}, NEW)[1], "")


if __name__ == "__main__":
    unittest.main()
