# SPDX-License-Identifier: BSD-2-Clause
"""Makes a node's files below a directory, with something wrong, and reads what natractl
doctor reports."""
import atexit
import base64
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE + "/../install")
from node import FLANNEL, NEW, OLD, PLUGIN, Answer, Case, Node as InstalledNode

NATRACTL = os.environ["NATRACTL"]
ANNOTATIONS = "io.kubernetes.cri.pod-annotations"
FOUND = 3
# Without privileges doctor looks at files only, and says so.
BARE = ("setpriv", "--bounding-set=-all", "--inh-caps=-all") \
        if os.geteuid() == 0 else ()


PAGE = os.path.join(HERE, "../../tools/deploy/THROTTLED.md")


def page_blocks():
    """Return the blocks of output in the page "Is my pod throttled?", as lists of
    lines."""
    with open(PAGE, encoding="utf-8") as f:
        return [b.strip().splitlines() for b in f.read().split("```")[1::2]]

# What a process of a pod runs.
PACKET_SOCKETS = """
import socket, sys
s = [socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(p)) for p in (3, 2048, 0)]
print()
sys.stdin.read()
"""


class Node(InstalledNode):
    """A node on which natra is installed, as a drop-in unless `runtime` is an old one."""

    installed = {}          # runtime: a directory with both directories of a node

    def __init__(self, lists=None, runtime=NEW, installed=True):
        super().__init__({"10-flannel.conflist": FLANNEL}
                         if lists is None else lists)
        self.runtime = runtime
        # A plugin that is not installed has its library beside it.
        (self.bin.parent / "src").symlink_to(
            os.path.dirname(os.path.realpath(PLUGIN)) + "/../src")
        if installed:
            self.install_once()

    def install_once(self):
        """Install natra, or copy what an earlier installation wrote, which is quicker:
        natractl waits for the disk."""
        if self.runtime in self.installed:
            before = self.installed[self.runtime]
            for part in (self.net, self.bin):
                shutil.copytree(before / part.relative_to(self.root), part,
                                dirs_exist_ok=True)
            return
        answer = self.install(runtime=self.runtime)
        assert answer.code == 0, answer
        before = self.installed[self.runtime] = Path(tempfile.mkdtemp(
            prefix="natra-install-"))
        atexit.register(shutil.rmtree, before)
        for part in (self.net, self.bin):
            shutil.copytree(part, before / part.relative_to(self.root))

    def doctor(self, *args, bare=True, options=(), bpffs=None):
        return Answer(subprocess.run(
                [*(BARE if bare else ()), NATRACTL, "--bpffs",
                 str(bpffs or self.root / "bpf"), "doctor", "--root",
                 str(self.root), "--runtime-version", self.runtime, *options,
                 *args], text=True, timeout=60, stdin=subprocess.DEVNULL,
                capture_output=True))

    def findings(self, *args, **more):
        """Return {check: finding}."""
        answer = self.doctor("--json", *args, **more)
        assert answer.code in (0, FOUND), answer
        found = {f["check"]: f for f in answer.json["findings"]}
        faults = [f for f in found.values() if not f["note"]]
        assert (answer.code == FOUND) == bool(faults) != answer.json["sound"], answer
        return found

    def shown(self, finding):
        """Return both lines of a finding as they are printed on a node of which `/` is
        the root."""
        return [f"{finding['subject']}: {'note: ' * finding['note']}{finding['text']}",
                "    " + re.sub(" --runtime-version '[^']*'| --runtime-version [^ ']+|"
                              " --bpffs [^ ']+", "", finding["mend"])]

    @property
    def dropin(self):
        return next(self.net.glob("*/90-natra.conf"))

    @property
    def copy(self):
        return next(self.net.glob("00-natra-*"))

    @property
    def list(self):
        return self.net / "10-flannel.conflist"

    def edit(self, path, change):
        """Let `change` change the JSON of a file."""
        conf = json.loads(path.read_text())
        change(conf)
        path.write_text(json.dumps(conf))

    def by_hand(self, *elements, first=()):
        """Write these elements into the node's own list, and take out natra's drop-in."""
        def add(conf):
            conf["plugins"] = [*first, *conf["plugins"], *elements]
        self.dropin.unlink()
        self.edit(self.list, add)

    def pod(self, name, bandwidth=None, annotations=None, element=None,
            netns=None):
        """Put a pod that was made with natra into libcni's cache. `element` are keys
        of natra's element; False: the list had no natra."""
        plugins = [{"type": "flannel"}]
        if element is not False:
            plugins.append({"type": "natra", "capabilities": {
                "bandwidth": True, ANNOTATIONS: True}, **(element or {})})
        args = {ANNOTATIONS: annotations}
        if bandwidth:
            args["bandwidth"] = bandwidth
        path = self.root / "var/lib/cni/results"
        path.mkdir(parents=True, exist_ok=True)
        (path / f"cbr0-{name}-eth0").write_text(json.dumps({
            "kind": "cniCacheV1", "containerId": name, "ifName": "eth0",
            "networkName": "cbr0", "netns": netns or f"/run/netns/{name}",
            "config": base64.b64encode(json.dumps({
                "cniVersion": "1.0.0", "name": "cbr0",
                "plugins": plugins}).encode()).decode(),
            "cniArgs": [["K8S_POD_NAMESPACE", "shop"],
                        ["K8S_POD_NAME", name]],
            "capabilityArgs": args,
            "result": {"cniVersion": "1.0.0", "interfaces": []}}))


NATRA = {"type": "natra", "capabilities": {"bandwidth": True,
                                           ANNOTATIONS: True}}
