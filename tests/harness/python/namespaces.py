# SPDX-License-Identifier: BSD-2-Clause
"""Makes network namespaces: the node's, and those of pods on veths of the node."""
import os
import subprocess

from commands import ip_batch, sh
from forked import Forked
from isolation import CLONE_NEWNET, NETNS_DIR, libc

SYSCTLS = {
        # The machine's default may be bbr, which hides loss from the tests. Sockets
        # that do not ask for an algorithm get reno: a namespace may not default to
        # cubic unless the machine's tcp_allowed_congestion_control lists it. Elephants
        # ask for cubic.
        "net/ipv4/tcp_congestion_control": "reno",
        "net/ipv4/ip_local_port_range": "1024 65000",
        "net/ipv4/tcp_tw_reuse": "1",
        "net/ipv4/tcp_no_metrics_save": "1",
        "net/ipv4/tcp_ecn": "2",
        "net/ipv4/tcp_rmem": "4096 131072 6291456",
        "net/ipv4/tcp_wmem": "4096 16384 4194304",
        "net/ipv4/tcp_max_syn_backlog": "8192",
        "net/core/somaxconn": "8192",
        "net/ipv4/icmp_ratelimit": "0",
        "net/ipv4/ip_forward": "1",
        "net/ipv6/conf/all/forwarding": "1",
        "net/ipv6/conf/all/accept_dad": "0",
        "net/ipv6/conf/default/accept_dad": "0",
        "net/ipv6/conf/default/accept_ra": "0",
        "net/ipv6/conf/default/router_solicitations": "0",
        "net/ipv6/conf/default/autoconf": "0",
}


class Ns:
    """A network namespace; the one without a name is the script's own, the node."""

    def __init__(self, name=None, exists=False):
        self.name = name
        if name is None:
            self.path = "/proc/self/ns/net"
        else:
            if not exists:
                sh("ip", "netns", "add", name)
            self.path = f"{NETNS_DIR}/{name}"
        self.fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        self._procs = []
        with self:
            for key, value in SYSCTLS.items():
                self._set(key, value)
        if not exists:
            self.run("ip", "link", "set", "lo", "up")

    def _set(self, key, value):
        try:
            with open(f"/proc/sys/{key}", "w") as f:
                f.write(value)
        except FileNotFoundError:
            pass                # the setting is not per namespace on this kernel

    def sysctl(self, key, value):
        with self:
            self._set(key.replace(".", "/"), value)

    def __enter__(self):
        """Move this thread into the namespace, to open sockets and /proc/net files
        there."""
        self._back = os.open("/proc/thread-self/ns/net",
                             os.O_RDONLY | os.O_CLOEXEC)
        self._setns(self.fd)
        return self

    def __exit__(self, *_):
        self._setns(self._back)
        os.close(self._back)

    @staticmethod
    def _setns(fd):
        libc("setns", fd, CLONE_NEWNET)

    def _argv(self, args):
        if self.name is None:
            return list(args)
        return ["nsenter", f"--net={self.path}", "--", *args]

    def run(self, *args, **kw):
        return sh(*self._argv(args), **kw)

    def popen(self, *args, **kw):
        """Start a process in the namespace; stop() ends it by its pid."""
        kw.setdefault("stdout", subprocess.DEVNULL)
        kw.setdefault("stderr", subprocess.DEVNULL)
        kw.setdefault("stdin", subprocess.DEVNULL)
        p = subprocess.Popen(self._argv(args), **kw)
        self._procs.append(p)
        return p

    def fork(self, work, *args):
        """Call work(*args) in the namespace, in a copy of this process."""
        self._procs.append(Forked(self, work, *args))
        return self._procs[-1]

    def stop(self, *procs):
        for p in procs:
            if p.poll() is None:
                p.kill()
            p.wait(timeout=10)
            if p in self._procs:
                self._procs.remove(p)

    def netfile(self, name):
        """Open a /proc/net file, which shows this namespace wherever it is read."""
        with self:
            return open(f"/proc/thread-self/net/{name}")


class Pod(Ns):
    """A namespace with eth0, whose peer `host` is in the node.

    eth0 has IPv4 10.77.N.2 and IPv6 fd77:N::2, and the node's end has .1 and ::1.
    Neighbours are static, so that no ARP or ND mixes with what is counted.
    """

    def __init__(self, name, number, offloads=True, mtu=1500):
        super().__init__(name)
        self.host = f"veth{number}"
        self.ip = f"10.77.{number}.2"
        self.ip6 = f"fd77:{number}::2"
        self.gw, self.gw6 = f"10.77.{number}.1", f"fd77:{number}::1"
        self.mac = f"02:77:00:00:{number:02x}:02"
        self.host_mac = f"02:77:00:00:{number:02x}:01"
        ip_batch([f"link add {self.host} address {self.host_mac} mtu {mtu} "
                  f"type veth peer name eth0 address {self.mac} mtu {mtu} "
                  f"netns {name}",
                  *self._up(self.host, self.gw, self.gw6, self.ip, self.ip6,
                            self.mac)])
        ip_batch([*self._up("eth0", self.ip, self.ip6, self.gw, self.gw6,
                            self.host_mac),
                  f"route add 0.0.0.0/0 via {self.gw} dev eth0",
                  f"route add ::/0 via {self.gw6} dev eth0"], name)
        if not offloads:
            self.offloads_off()

    @staticmethod
    def _up(dev, ip, ip6, peer, peer6, peer_mac):
        return [f"link set {dev} addrgenmode none", f"link set {dev} up",
                f"addr add {ip}/24 dev {dev}",
                f"addr add {ip6}/64 dev {dev} nodad",
                *(f"neigh replace {addr} lladdr {peer_mac} dev {dev} "
                  "nud permanent" for addr in (peer, peer6))]

    def close(self):
        sh("ip", "link", "del", self.host, check=False)
        os.close(self.fd)
        sh("ip", "netns", "del", self.name, check=False)

    def offloads_off(self):
        off = ("tso", "off", "gso", "off", "gro", "off")
        sh("ethtool", "-K", self.host, *off)
        self.run("ethtool", "-K", "eth0", *off)
