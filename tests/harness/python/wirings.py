# SPDX-License-Identifier: BSD-2-Clause
"""Wires a pod's interface to its node and to others in each of the usual ways.

Wiring(name, mtus) has for each MTU a pair of a pod and a client beyond the node, which
are namespaces with an eth0, `ip` and `ip6`. It raises Missing if this kernel has no
such device.
"""
import errno
import functools
import subprocess
from concurrent.futures import ThreadPoolExecutor

import rtnl
from commands import ip_batch
from namespaces import Ns

NAMES = ("routed", "bridge", "macvlan", "ipvlan-l2", "ipvlan-l3", "netkit-l2",
         "netkit-l3")
# Only these have the host-side interface that hostside modes need.
WITH_HOST_PEER = ("routed", "bridge")
LOWER = "lower0"        # the parent of macvlan and ipvlan devices
BRIDGE = "br0"
# Interfaces in the node keep this MTU: where the node routes, packets of IPv6's BIG TCP
# would be too big for a smaller one, by the 8 bytes of their jumbo header.
NODE_MTU = 9000
GSO_BYTES, BIG_TCP_BYTES = 65536, 196608


class Missing(Exception):
    """This kernel cannot make such a link."""


def side_by_side(call, things):
    """Call a function for each thing, two at a time: processes take long to start in a
    VM."""
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(call, things))


@functools.cache
def _modprobe(kind):
    """Load the module for a kind of device; Debian's kernels have each as a module."""
    subprocess.run(["modprobe", kind], stderr=subprocess.DEVNULL, check=False)


def batch(lines, ns=None, kind=None):
    """Run commands of ip. Raise Missing if the kernel has no links of that kind."""
    try:
        ip_batch(lines, ns)
    except RuntimeError as e:
        if kind and ("Unknown device type" in str(e) or
                     "not supported" in str(e)):
            raise Missing(f"this kernel has no {kind}") from e
        raise


def add_netkit(port, mode, mtu, ns):
    _modprobe("netkit")
    try:
        rtnl.add_netkit(port, mode, mtu, ns.fd)
    except OSError as e:
        if e.errno == errno.EOPNOTSUPP:
            raise Missing("this kernel has no netkit") from e
        raise


class End(Ns):
    """A namespace for an eth0, whose peer in the node is `port`."""

    def __init__(self, name, number, mtu, routed):
        super().__init__(name, exists=True)
        self.number, self.mtu, self.routed = number, mtu, routed
        self.port = f"port{number}"
        net, net6 = "10.88.0", "fd88:"
        if routed:              # each end has a subnet of its own
            net, net6 = f"10.88.{number}", f"fd88:{number}:"
        self.gw, self.gw6 = f"{net}.1", f"{net6}:1"
        self.ip, self.ip6 = f"{net}.{number}", f"{net6}:{number}"

    def up(self):
        """Configure eth0 in the namespace."""
        lines = ["link set lo up", f"link set eth0 mtu {self.mtu} up",
                 f"addr add {self.ip}/24 dev eth0",
                 f"addr add {self.ip6}/64 dev eth0 nodad"]
        if self.routed:
            lines += [f"route add 0.0.0.0/0 via {self.gw} dev eth0",
                      f"route add ::/0 via {self.gw6} dev eth0"]
        batch(lines, self.name)

    def gateway(self):
        """Return the commands that configure the node's end."""
        return [f"link set {self.port} up",
                f"addr add {self.gw}/24 dev {self.port}",
                f"addr add {self.gw6}/64 dev {self.port} nodad"]


class Wiring:
    """Pairs of a pod and a client on one node, the script's namespace."""

    def __init__(self, name, mtus):
        self.kind, _, self.mode = name.partition("-")
        self.stacked = self.kind in ("macvlan", "ipvlan")
        self.node = Ns()
        names = [(f"{role}{i}", mtu) for i, mtu in enumerate(mtus)
                 for role in ("pod", "client")]
        batch([f"netns add {name}" for name, _ in names])
        routed = self.kind in ("routed", "netkit")
        ends = [End(name, number, mtu, routed)
                for number, (name, mtu) in enumerate(names, 10)]
        self._link(ends)
        side_by_side(End.up, ends)
        self.pairs = list(zip(ends[::2], ends[1::2]))

    def _link(self, ends):
        """Make the interfaces, and the devices in the node that they need."""
        veth = "link add {} mtu %d type veth peer name {} mtu %d" % (
                NODE_MTU, NODE_MTU)
        lines = []
        if self.kind == "bridge":
            lines = [f"link add {BRIDGE} mtu {NODE_MTU} type bridge",
                     f"link set {BRIDGE} up"]
        elif self.stacked:
            lines = [veth.format(LOWER, "lower1"), f"link set {LOWER} up",
                     "link set lower1 up"]
        for end in ends:
            if self.stacked:
                lines.append(f"link add link {LOWER} name eth0 netns {end.name} "
                             f"mtu {NODE_MTU} type {self.kind} "
                             f"mode {self.mode or 'bridge'}")
            elif self.kind == "netkit":
                add_netkit(end.port, self.mode, NODE_MTU, end)
            else:
                lines.append(veth.format(end.port, "eth0") +
                             f" netns {end.name}")
            if self.kind == "bridge":
                lines.append(f"link set {end.port} master {BRIDGE} up")
            if end.routed:
                lines += end.gateway()
        if self.stacked:
            _modprobe(self.kind)
        batch(lines, kind=self.kind)

    def set_big_tcp(self, pair, on):
        """Set whether a pair's packets may be over 64 kB. Return the IP versions for
        which this kernel does it."""
        size = BIG_TCP_BYTES if on else GSO_BYTES
        versions = {4, 6}
        if self.stacked:
            versions &= rtnl.set_gso_max(LOWER, BIG_TCP_BYTES)
        for end in pair:
            with end:
                versions &= rtnl.set_gso_max("eth0", size)
            if not self.stacked:
                versions &= rtnl.set_gso_max(end.port, size)
        return versions
