# SPDX-License-Identifier: BSD-2-Clause
"""Makes pods as a runtime does: ptp, host-local and the limiter under test, in
libcni's order. The client is behind a routed hop, the node."""
import os
import tempfile
from dataclasses import dataclass, field

import plugin
from chain import NATRA, ipam
from libcni import Container, Libcni
from plugin import DEBIAN
from commands import sh
from limiters import LIMITERS
from namespaces import Ns, Pod
from rig import Rig

# 4294967295 bits is what containerd sends with any rate, and the most that
# upstream's plugin takes.
CONTAINERD_BURST = 4294967295
# Peers of natra that are a root qdisc each way.
QDISCS = ("tbf", "fq_codel", "cake")
# The keys that natra's element has for each word behind "natra-" in a limiter's name.
WORDS = {"pace": {"ingressMode": "pace"}, "policed": {"edtPacing": "off"},
         "strict": {"fastPass": "strict"}, "off": {"fastPass": "off"}}
UPSTREAM = {"type": "bandwidth", "capabilities": {"bandwidth": True}}


@dataclass(frozen=True)
class Limiter:
    """The chain's last plugin and what the runtime passes to it."""
    name: str
    program: str = None         # the plugin; None: the chain ends before it
    element: dict = field(default_factory=dict, hash=False)
    # natra recognises the runtime's placeholder burst and uses 0.5 s of the rate.
    # Upstream's plugin takes it literally, so it is given natra's burst here.
    burst_seconds: float = None
    skew: float = 1             # a rig that can fail: caps this much too high
    qdisc: type = None          # of the harness; it limits instead of a plugin

    def capabilities(self, rate):
        rate = int(rate * self.skew)
        burst = CONTAINERD_BURST if self.burst_seconds is None else \
            min(CONTAINERD_BURST, int(rate * self.burst_seconds))
        return {"bandwidth": {"IngressRate": rate, "IngressBurst": burst,
                              "EgressRate": rate, "EgressBurst": burst}}


def natra(name="natra", skew=1, **keys):
    return Limiter(name, plugin.find_natra(), dict(NATRA, **keys), skew=skew)


def limiter(name):
    """Return the limiter of a name in cells.py, None if its program is missing."""
    if name == "none":
        return Limiter("none")
    if name == "natra":
        return natra()
    if name in QDISCS:
        return Limiter(name, qdisc=LIMITERS[name])
    if name.startswith("natra-"):
        words = name.split("-")[1:]
        if not set(words) <= set(WORDS):
            return natra(name, attachMode="-".join(words))
        return natra(name, **{k: v for word in words for k, v in WORDS[word].items()})
    debian = f"{DEBIAN}/bandwidth"
    path = debian if name == "upstream-debian" else \
        plugin.newest("bandwidth-1.5.1") if name == "upstream-1.5.1" else \
        plugin.newest("bandwidth") or debian
    if not path or not os.access(path, os.X_OK):
        return None
    return Limiter(name, path, UPSTREAM,
                   None if name == "upstream-containerd" else 0.5)


def qdiscs_here():
    """Return those of QDISCS that this kernel has."""
    found = []
    for name in QDISCS:
        try:
            for what, words in LIMITERS[name].commands(10**7):
                sh("tc", *what, "dev", "lo", *words)
            found.append(name)
        except RuntimeError:
            pass                # tc says that the kernel has none
        sh("tc", "qdisc", "del", "dev", "lo", "root", check=False)
    return tuple(found)


class ChainPod(Ns):
    """A pod whose interface the chain made; close() is the runtime's DEL."""

    def __init__(self, cluster, name, lim, rate=None, before=None):
        super().__init__(name)
        self.limiter = lim
        plugins = [{"type": "ptp",
                    "ipam": ipam("10.71.0.0/16", cluster.tmp.name)}]
        if lim.program:
            plugins.append(lim.element)
        self._cni = Libcni({"cniVersion": "1.0.0", "name": "bench",
                            "plugins": plugins},
                           [cluster.directory(lim), DEBIAN], cluster.tmp.name)
        self._container = Container(
                f"{name}-0123456789", self.path,
                capability_args=lim.capabilities(rate) if rate else {})
        try:
            result = self._cni.add(self._container, before and
                                   (lambda kind, got: before(self, kind, got)))
        except Exception:
            self.close()
            raise
        self.set_addresses(result)
        if lim.qdisc and rate:
            lim.qdisc(self).attach(str(rate), str(rate))
        self.add_seconds = {k: a.seconds for k, a in self._cni.answers.items()}

    def set_addresses(self, result):
        self.host = result["interfaces"][0]["name"]
        self.ip = result["ips"][0]["address"].split("/")[0]

    def close(self):
        self._cni.delete(self._container)
        os.close(self.fd)
        sh("ip", "netns", "del", self.name, check=False)


class Cluster(Rig):
    """A node without pods, and clients."""

    def __init__(self, clients=2):
        self.node = Ns()
        # With an address, a pod's host side would send packets of its own.
        self.node.sysctl("net.ipv6.conf.default.addr_gen_mode", "1")
        self.clients = [Pod(f"client{i}", 20 + i) for i in range(clients)]
        self.client = self.clients[0]
        self.pods = []
        self.tmp = tempfile.TemporaryDirectory(prefix="natra-bench-")

    @property
    def pod(self):
        return self.pods[0]

    def directory(self, lim):
        """Return a directory in which libcni finds the limiter and nothing else."""
        path = f"{self.tmp.name}/bin-{lim.name}"
        if lim.program and not os.path.exists(path):
            os.mkdir(path)
            os.symlink(lim.program, f"{path}/{lim.element['type']}")
        return path

    def add(self, name, lim, rate=None, before=None):
        pod = ChainPod(self, name, lim, rate, before)
        self.pods.append(pod)
        return pod

    @staticmethod
    def natra_state(pod):
        """Return how natra is attached there, or nothing if it is not."""
        a = plugin.attachment(pod.path) \
            if pod.limiter.element.get("type") == "natra" else None
        return {"mode": a["mode"], "edt": bool(a["edt_active"]),
                "pace": bool(a["pace_active"])} if a else {}

    def clear(self):
        """End the processes in the pods and clients, and remove the pods."""
        self.stop(None)
        while self.pods:
            self.pods.pop().close()

    def __exit__(self, *exc):
        self.clear()
        super().__exit__(*exc)
