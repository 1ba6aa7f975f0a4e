# SPDX-License-Identifier: BSD-2-Clause
"""A node's file system below a directory, with the lists that network plugins
write, on which natractl install runs. Needs no root.

The variables NATRACTL and NATRA_CNI name the programs.
"""
import fcntl
import json
import os
import shutil
import stat
import subprocess
import tempfile
import unittest
from pathlib import Path

NATRACTL = os.environ["NATRACTL"]
PLUGIN = os.environ["NATRA_CNI"]
EXAMPLES = Path(__file__).resolve().parents[2] / "cni/examples"
NET, BIN = "etc/cni/net.d", "opt/cni/bin"
OLD, NEW = "containerd://1.6.20", "containerd://2.1.0"
MARK = "natra.io/installed-by"
SCRATCH = ".natra-install.reload"
TEMPORARY = ".natra-install.tmp"
LOCK = "var/lib/natra/install.lock"
HIDES = "until natractl install runs again"

# A list as k3s and Calico before 3.30 write it. Its spaces, tabs, numbers and keys
# must stay as they are, though a parser may lose them.
K3S = """{
  "name":"cbr0",
  "cniVersion":"1.0.0",
  "plugins":[
    {
      "type":"flannel",
      "delegate":{ "hairpinMode":true, "forceAddress":true,
        "isDefaultGateway":true }
    },
    {"type":"portmap", "capabilities":{"portMappings":true}},
    {"type":"bandwidth", "capabilities":{"bandwidth":true},
     "ingressRate": 5000000, "shapedSubnets": ["10.0.0.0/8"]}
  ]
}
"""
ODD = """{"x-first": 18446744073709551615, "cniVersion": "0.3.1",\t"name": "odd",
\t"nested": {"plugins": ["no, ] {\\"", 1e300]}, "plugins" : [
\t\t{"type": "ptp", "s": "] }, {\\\\", "big": 12345678901234567890, "e": {}},
\t\t{"type": "tuning", "list": [[], [1]]}
\t] , "disableCheck":true}"""


def example(name):
    """Return a list of cni/examples as its owner writes it, without natra."""
    conf = json.loads((EXAMPLES / name).read_text())
    conf["plugins"].pop()
    return json.dumps(conf, indent=2) + "\n"


LISTS = {
    "10-flannel.conflist": example("10-flannel.conflist"),
    "10-calico.conflist": example("10-calico.conflist"),
    "05-cilium.conflist": example("04-cilium.conflist"),
    "10-aws.conflist": example("05-aws.conflist"),
    "10-odd.conflist": ODD,
}
FLANNEL = LISTS["10-flannel.conflist"]
SINGLE = '{"cniVersion": "0.4.0", "name": "one", "type": "ptp"}\n'


class Answer:
    def __init__(self, p):
        self.code, self.out, self.err = p.returncode, p.stdout, p.stderr

    @property
    def other(self):
        """What is on standard error but the warning that each copy of a list has."""
        return "".join(l for l in self.err.splitlines(True) if HIDES not in l)

    @property
    def json(self):
        return json.loads(self.out)

    def __str__(self):
        return f"exit {self.code}: {self.out}{self.err}"


class Node:
    """A node's directories; `lists` is the content of the configuration directory."""

    def __init__(self, lists=None, net=NET, bin_dir=BIN):
        self.root = Path(tempfile.mkdtemp(prefix="natra-install-"))
        self.net, self.bin = self.root / net, self.root / bin_dir
        self.net.mkdir(parents=True)
        self.bin.mkdir(parents=True, exist_ok=True)
        (self.root / "bpf").mkdir()
        (self.root / "var/lib").mkdir(parents=True, exist_ok=True)
        for name, text in (lists or {}).items():
            (self.net / name).write_text(text)

    def close(self):
        shutil.rmtree(self.root, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def argv(self, verb, *options):
        plugin = ["--plugin", PLUGIN] if verb == "install" and \
                "--plugin" not in options else []
        return [NATRACTL, "--bpffs", str(self.root / "bpf"), verb, "--root",
                str(self.root), *plugin, *options]

    def natractl(self, verb, *options):
        return Answer(subprocess.run(
                self.argv(verb, *options), text=True, timeout=60,
                stdin=subprocess.DEVNULL, capture_output=True))

    def install(self, *options, runtime=OLD):
        more = ("--runtime-version", runtime) if runtime else ()
        return self.natractl("install", *more, *options)

    def uninstall(self, *options):
        return self.natractl("uninstall", *options)

    def result(self, text, cache="results"):
        """Put a pod that was made with this list into libcni's cache."""
        import base64
        path = self.root / "var/lib/cni" / cache
        path.mkdir(parents=True, exist_ok=True)
        file = path / "cbr0-0123-eth0"
        file.write_text(json.dumps({
            "kind": "cniCacheV1", "containerId": "0123", "ifName": "eth0",
            "networkName": "cbr0", "result": {},
            "config": base64.b64encode(text.encode()).decode()}))
        return file

    def put(self, path, text):
        """Write a file outside of both directories."""
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)
        return self.root / path

    def put_runtime(self, path, says):
        """Put a runtime there that answers this to --version."""
        self.put(path, f"#!/bin/sh\n/bin/cat <<.\n{says}\n.\n").chmod(0o755)

    def names(self):
        """Return all files below the lists' directory, and the names in the
        plugins' one."""
        return sorted(str(p.relative_to(self.net)) for p in
                      self.net.rglob("*") if not p.is_dir()) + sorted(
                      p.name for p in self.bin.iterdir())

    def lock(self):
        """Hold the installers' lock; return its descriptor."""
        path = self.root / LOCK
        path.parent.mkdir(exist_ok=True)
        fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(fd, fcntl.LOCK_EX)
        return fd

    def state(self, times=False):
        """Return each path with its mode and content, and with `times` also inode and
        mtime, which show whether it was written again."""
        found = {}
        lock = (self.root / LOCK, *(self.root / LOCK).parents[:2])
        for path in sorted(self.root.rglob("*")):
            # An agent takes the lock for a moment now and then.
            if path in lock:
                continue
            st = path.lstat()
            what = [oct(st.st_mode)]
            if stat.S_ISLNK(st.st_mode):
                what.append(os.readlink(path))
            elif stat.S_ISREG(st.st_mode):
                what.append(path.read_bytes())
            if times:
                what += [st.st_ino, st.st_mtime_ns]
            found[str(path.relative_to(self.root))] = what
        return found

    def chain(self, dropins=False):
        """Return the chain that a runtime reads from the directory, as libcni does:
        the first list, with `dropins` together with the drop-ins for it."""
        first = sorted(p for p in self.net.iterdir() if p.name.endswith((
                ".conf", ".conflist", ".json")))[0]
        conf = json.loads(first.read_text(errors="replace"))
        if not first.name.endswith(".conflist"):
            return conf["name"], [conf]
        plugins = conf["plugins"]
        if dropins and not conf.get("loadOnlyInlinedPlugins"):
            plugins = plugins + [
                json.loads(p.read_text()) for p in sorted(
                    (self.net / conf["name"]).glob("*.conf"))]
        return conf["name"], plugins

    def types(self, dropins=False):
        return [p["type"] for p in self.chain(dropins)[1]]


class Case(unittest.TestCase):
    def node(self, *args, **kwargs):
        node = Node(*args, **kwargs)
        self.addCleanup(node.close)
        return node

    def done(self, answer, code=0):
        self.assertEqual(answer.code, code, answer)
        return answer

    def one_line(self, answer, *words):
        self.assertEqual((answer.code, answer.err.count("\n")), (1, 1), answer)
        for word in words:
            self.assertIn(word, answer.err)

    def refused(self, node, *options, words=(), code=1, **kwargs):
        """Check that install fails with one clear line and changes nothing."""
        before = node.state(times=True)
        answer = node.install(*options, **kwargs)
        self.assertEqual((answer.code, answer.out), (code, ""), answer)
        self.assertEqual(answer.err.count("\n"), 1, answer)
        for word in words:
            self.assertIn(word, answer.err)
        self.assertEqual(node.state(times=True), before)
        return answer
