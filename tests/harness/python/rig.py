# SPDX-License-Identifier: BSD-2-Clause
"""Pods as network namespaces, limiters, and byte counting, for tests/net.

isolate() lets the script go on in network, mount and pid namespaces of its
own: nothing touches the machine's network, and when the script ends or is
killed, the kernel ends its children and removes interfaces, qdiscs, mounts and
pins with the namespaces. The network namespace that the script then runs in is
the "node"; pods hang off it by veths and the node routes between them.
"""
import contextlib
import ctypes
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

SKIP = 77
CLONE_NEWNS, CLONE_NEWPID, CLONE_NEWNET = 0x20000, 0x20000000, 0x40000000
MS_REC, MS_PRIVATE = 0x4000, 0x40000
PR_SET_PDEATHSIG = 1
NETNS_DIR = "/run/netns"
BPFFS = "/tmp/natra-bpffs"
RCU_EXPEDITED = "/sys/kernel/rcu_expedited"
ETH_IPV4_TCP = 14 + 20 + 32     # bytes of header on each TCP segment (timestamps)
ETH_IPV4_UDP = 14 + 20 + 8
LOAD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "load.py")

_libc = ctypes.CDLL(None, use_errno=True)


def sh(*args, check=True, timeout=20, **kw):
    """Run a command to its end; its stdout."""
    p = subprocess.run(args, text=True, timeout=timeout,
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, **kw)
    if check and p.returncode:
        raise RuntimeError(f"{' '.join(args)}: exit {p.returncode}: "
                           f"{p.stderr.strip() or p.stdout.strip()}")
    return p.stdout


def ip_batch(lines, ns=None):
    """Commands of ip, in one process: starting one takes long in a VM."""
    where = ["-n", ns] if ns else []
    sh("ip", *where, "-batch", "-", input="\n".join(lines) + "\n")


def bpftool(*args):
    """Its answer; again while it trips over an object that is being freed."""
    for last in (False,) * 20 + (True,):
        try:
            return json.loads(sh("bpftool", "-j", *args))
        except RuntimeError as e:
            if last or "temporarily unavailable" not in str(e):
                raise
        time.sleep(0.05)


def called_programs(map_id):
    """Ids of the programs in an array of programs."""
    return [int.from_bytes(bytes(int(b, 16) for b in e["value"]), sys.byteorder)
            for e in bpftool("map", "dump", "id", str(map_id)) if "value" in e]


def skip(feature):
    """End the script as skipped; the last line names what is missing."""
    print(f"skip: {feature}", flush=True)
    sys.exit(SKIP)


def libc(name, *args):
    if getattr(_libc, name)(*args):
        e = ctypes.get_errno()
        raise OSError(e, f"{name}: {os.strerror(e)}")


def mount(kind, target, flags=0):
    libc("mount", kind.encode(), target.encode(), kind.encode(), flags, None)


def isolate():
    """Give the script namespaces of its own; call it first. By a fork: to start
    Python a second time takes seconds in a VM."""
    if os.geteuid():
        skip("not root")
    libc("unshare", CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWPID)
    sys.stdout.flush()
    child = os.fork()
    if child:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        os._exit(code if code >= 0 else 128 - code)
    # Ctrl-C and a meson timeout reach the parent; the pid namespace dies with it.
    libc("prctl", PR_SET_PDEATHSIG, signal.SIGKILL)
    sys.stdout.reconfigure(line_buffering=True)
    # As pid 1 there, the default action must be asked for.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    mount("none", "/", MS_REC | MS_PRIVATE)
    mount("proc", "/proc")
    os.makedirs(NETNS_DIR, exist_ok=True)
    mount("tmpfs", NETNS_DIR)
    os.makedirs(BPFFS, exist_ok=True)
    mount("bpf", BPFFS)
    # /sys shows the network namespace that it was mounted from.
    mount("sysfs", "/sys")
    mount("bpf", "/sys/fs/bpf")


@contextlib.contextmanager
def usual_rcu():
    """Grace periods of RCU as long as on any node, while natra's calls, which wait
    for them, are measured: tools/check has the kernel hurry."""
    with open(RCU_EXPEDITED) as f:
        was = f.read()
    if int(was):
        set_rcu_expedited("0")
    try:
        yield
    finally:
        if int(was):
            set_rcu_expedited(was)


def set_rcu_expedited(value):
    with open(RCU_EXPEDITED, "w") as f:
        f.write(value)


SYSCTLS = {
        # The machine's default may be bbr, which hides loss from the tests. reno
        # is for who does not ask: a namespace may not default to cubic unless the
        # machine's tcp_allowed_congestion_control lists it. Elephants ask.
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
    """A network namespace; name None is the one of the script, the node."""

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
            pass                # not per namespace on this kernel

    def sysctl(self, key, value):
        with self:
            self._set(key.replace(".", "/"), value)

    def __enter__(self):
        """Let this thread open sockets and /proc/net files here."""
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
        """Start a process here; stop() ends it, by its pid."""
        kw.setdefault("stdout", subprocess.DEVNULL)
        kw.setdefault("stderr", subprocess.DEVNULL)
        kw.setdefault("stdin", subprocess.DEVNULL)
        p = subprocess.Popen(self._argv(args), **kw)
        self._procs.append(p)
        return p

    def stop(self, *procs):
        for p in procs:
            if p.poll() is None:
                p.kill()
            p.wait(timeout=10)
            if p in self._procs:
                self._procs.remove(p)

    def netfile(self, name):
        """An open /proc/net file; reads stay in this namespace."""
        with self:
            return open(f"/proc/thread-self/net/{name}")


class Pod(Ns):
    """A namespace with eth0, whose peer `host` is in the node.

    IPv4 10.77.N.2 and IPv6 fd77:N::2, the node's end is .1 and ::1.
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


class Meter:
    """Bytes on the wire that a namespace takes in.

    A veth's rx_bytes do not do. They count a GSO packet once, with one header;
    and at the pod they count before the ingress hooks, so also what a limiter
    drops there. The namespace's IP counters come after the hooks: InOctets and
    InReceives count a GSO packet once, and InNoECTPkts + InECT*Pkts + InCEPkts
    its segments (ip_rcv adds gso_segs; TcpInSegs does not), so
      wire = InOctets + 14 * InReceives + (segments - InReceives) * header.
    Exact if all GSO packets have headers of one length. Packets to a
    namespace that only forwards would be counted too: measure at the ends.
    selftest.py compares with tbf's count, with offloads on and off.
    """

    def __init__(self, ns, header=ETH_IPV4_TCP):
        self.header = header
        self._files = [ns.netfile(n) for n in ("snmp", "netstat", "snmp6")]

    def read(self):
        """(time, wire bytes), both only good for differences."""
        c = self.counters()
        now = time.monotonic()
        segments = sum(n for k, n in c.items()
                       if re.fullmatch("In(NoECT|ECT0|ECT1|CE)Pkts", k))
        return now, (c["InOctets"] + 14 * c["InReceives"] +
                     (segments - c["InReceives"]) * self.header)

    def counters(self):
        """IP and IpExt counters by name, IPv4 and IPv6 together."""
        sums = {}
        for f in self._files:
            f.seek(0)
        for f in self._files[:2]:
            rows = [s.split() for s in f.read().splitlines()
                    if s.startswith(("Ip:", "IpExt:"))]
            for name, value in zip(rows[0][1:], rows[1][1:]):
                sums[name] = int(value)
        for row in self._files[2].read().splitlines():
            name, value = row.split()
            if name.startswith("Ip6In"):
                sums[name[3:]] = sums.get(name[3:], 0) + int(value)
        return sums

    def ce(self):
        """Packets received with CE."""
        return self.counters()["InCEPkts"]


def wire_rates(meters, seconds):
    """bit/s on the wire at each meter over the same span."""
    before = [m.read() for m in meters]
    time.sleep(seconds)
    after = [m.read() for m in meters]
    return [(b1 - b0) * 8 / (t1 - t0)
            for (t0, b0), (t1, b1) in zip(before, after)]


def wire_rate(ns, seconds, **kw):
    return wire_rates([Meter(ns, **kw)], seconds)[0]


class Rig:
    """The node, and lanes of a pod under test and a client beyond the node.

    A test that measures both directions at once takes two lanes, one for
    each: in one lane the acknowledgements of the one direction's stream add
    2 % to the other's figure.
    """

    def __init__(self, lanes=1, **kw):
        self.node = Ns()
        self.pods = [Pod(f"pod{i}", 10 + i, **kw) for i in range(lanes)]
        self.clients = [Pod(f"client{i}", 20 + i, **kw)
                        for i in range(lanes)]
        self.pod, self.client = self.pods[0], self.clients[0]
        self.tmp = tempfile.TemporaryDirectory(prefix="natra-net-")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop(None)
        for pod in self.pods + self.clients:
            pod.close()
        self.tmp.cleanup()

    def stop(self, procs):
        """End these processes, or all that were started."""
        for ns in (*self.clients, *self.pods, self.node):
            ns.stop(*[p for p in list(ns._procs)
                      if procs is None or p in procs])

    def into(self, lane=0, header=ETH_IPV4_TCP):
        """Meter of what reaches the pod."""
        return Meter(self.pods[lane], header)

    def out_of(self, lane=0, header=ETH_IPV4_TCP):
        """Meter of what the client receives; only the pod sends to it."""
        return Meter(self.clients[lane], header)

    def meters(self):
        return [self.into(), self.out_of()]

    def netem(self, delay_ms, lanes=None):
        """Half of the round trip each way, outside of the pods."""
        half = ("root", "netem", "delay", f"{delay_ms / 2}ms",
                "limit", "100000")
        for client in [self.clients[i] for i in
                       lanes or range(len(self.clients))]:
            client.run("tc", "qdisc", "add", "dev", "eth0", *half)
            sh("tc", "qdisc", "add", "dev", client.host, *half)

    @staticmethod
    def wait_port(ns, port, proto="tcp", seconds=20):
        end = time.monotonic() + seconds
        want = f":{port:04X} "
        listening = {"tcp": " 0A ", "udp": " 07 "}[proto]
        while time.monotonic() < end:
            for f in (proto, proto + "6"):
                with ns.netfile(f) as table:
                    if any(want in s[:45] and listening in s
                           for s in table):
                        return
            time.sleep(0.02)
        raise RuntimeError(f"nobody listens on {proto} port {port}")

    def wait_flow(self, *meters, seconds=20):
        """Traffic passes each meter; a slow machine takes a while to start
        a sender, and settling begins after that."""
        before = [m.read()[1] for m in meters]
        end = time.monotonic() + seconds
        while any(m.read()[1] - b < 5000 for m, b in zip(meters, before)):
            if time.monotonic() > end:
                raise RuntimeError(f"no traffic in {seconds} s")
            time.sleep(0.01)

    def stream_server(self, ns, port):
        server = ns.popen("iperf3", "-s", "-p", str(port))
        self.wait_port(ns, port)
        return server

    @staticmethod
    def stream_client(src, dst, port, flows=1, seconds=600,
                      congestion="cubic", options=()):
        return src.popen("iperf3", "-c", dst.ip, "-p", str(port), "-P",
                         str(flows), "-t", str(seconds), "-i", "0",
                         "-C", congestion, *options)

    def elephant(self, src, dst, port, *args, **kw):
        """TCP streams from src to dst; the processes, for stop()."""
        server = self.stream_server(dst, port)
        return [self.stream_client(src, dst, port, *args, **kw), server]

    def elephants(self, flows=1, seconds=600):
        """Both directions at once. Servers first: on two cores, streams that
        nothing limits leave little for one to start in."""
        ways = ((self.client, self.pod, 5201), (self.pod, self.client, 5202))
        procs = [self.stream_server(dst, port) for _, dst, port in ways]
        procs += [self.stream_client(*way, flows, seconds) for way in ways]
        self.wait_flow(*self.meters())
        return procs

    def load(self, ns, *args, **kw):
        """Start load.py in a namespace."""
        return ns.popen(sys.executable, LOAD, *map(str, args),
                        text=True, stdout=subprocess.PIPE, **kw)

    def load_end(self, proc, ns, seconds=30, now=False):
        """What load.py reported at its end, which may be asked for."""
        if now:
            proc.terminate()
        out, _ = proc.communicate(timeout=seconds)
        ns.stop(proc)
        return json.loads(out)

    def nginx(self, size=6000, port=80, pod=None):
        """A web server in the pod with a file of `size` bytes; the URL."""
        pod = pod or self.pod
        root = f"{self.tmp.name}/{pod.name}"
        os.makedirs(root, exist_ok=True)
        for d in (self.tmp.name, root):
            os.chmod(d, 0o755)
        with open(f"{root}/file", "wb") as f:
            f.write(b"x" * size)
        with open(f"{root}/nginx.conf", "w") as f:
            f.write(f"""user root; daemon off; worker_processes 1;
pid {root}/pid; error_log /dev/null;
events {{ worker_connections 8192; }}
http {{ access_log off; client_body_temp_path {root}/b;
proxy_temp_path {root}/p; fastcgi_temp_path {root}/f;
uwsgi_temp_path {root}/u; scgi_temp_path {root}/s;
server {{ listen {port} backlog=8192; root {root}; }} }}
""")
        pod.popen("nginx", "-c", f"{root}/nginx.conf")
        self.wait_port(pod, port)
        return f"http://{pod.ip}:{port}/file"

    def hey_times(self, url, seconds, clients=50, per_client=20, timeout=5):
        """Fresh connections, `per_client` a second each or as many as go for
        0: of each request that was answered, seconds to connect and in all."""
        out = self.client.run(
                "hey", "-disable-keepalive", "-z", f"{seconds}s",
                "-c", str(clients),
                *(("-q", str(per_client)) if per_client else ()),
                "-t", str(timeout), "-o", "csv", url,
                timeout=seconds + timeout + 15)
        rows = [r.split(",") for r in out.splitlines()[1:]]
        return [(float(r[1]), float(r[0])) for r in rows if r[6] == "200"]

    def hey(self, url, seconds, clients=50, per_client=20, timeout=5):
        """Fresh connections at a fixed rate: what came of them."""
        times = sorted(t for _, t in self.hey_times(
                url, seconds, clients, per_client, timeout))
        return {"rps": len(times) / seconds,
                "p50_ms": percentile(times, 50) * 1e3,
                "p99_ms": percentile(times, 99) * 1e3,
                "offered": clients * per_client}

    def sockperf(self, seconds, per_second=500, port=5600):
        """Round trips over one TCP connection to the server that
        sockperf_server() started: us by percentile."""
        out = self.client.run(
                "sockperf", "under-load", "--tcp", "-i", self.pod.ip,
                "-p", str(port), "--mps", str(per_second),
                "--reply-every", "1", "--full-rtt", "--no-rdtsc", "-m", "64",
                "-t", str(seconds), timeout=seconds + 20)
        return {float(p): float(us) for p, us in re.findall(
                r"percentile (\d+\.\d+)\s*=\s*([\d.]+)", out)}

    def sockperf_server(self, port=5600):
        self.pod.popen("sockperf", "server", "--tcp", "-p", str(port))
        self.wait_port(self.pod, port)


def goodput(ns, port, flows):
    """Bytes that each stream to a port of the namespace has brought, by its
    peer; iperf3's control connection, which has the least, is left out."""
    out = ns.run("ss", "-tiHOn", "sport", "=", f":{port}")
    got = {}
    for line in out.splitlines():
        n = re.search(r"bytes_received:(\d+)", line)
        got[line.split()[4]] = int(n[1]) if n else 0
    most = sorted(got, key=got.get, reverse=True)[:flows]
    return {peer: got[peer] for peer in most}


class Elephant:
    """A stream whose receiver says when it got how much.

    iperf3's control connection suffers from what starves the streams, and
    the wire carries others' bytes too; this counts the stream alone.
    """

    def __init__(self, r, src, dst, port, name):
        self.log = f"{r.tmp.name}/{name}"
        with open(self.log, "w") as f:
            receiver = dst.popen(sys.executable, LOAD, "tcp-recv",
                                 str(port), stdout=f)
        r.wait_port(dst, port)
        self.procs = [receiver,
                      src.popen(sys.executable, LOAD, "tcp-send",
                                dst.ip, str(port))]

    def rate(self, start, end):
        """bit/s on the wire in a span of time.monotonic()."""
        with open(self.log) as f:
            rows = [s.split() for s in f if s.endswith("\n")]
        at = [(float(t), int(n)) for t, n in rows]
        got = [max((n for t, n in at if t <= edge), default=0)
               for edge in (start, end)]
        return (got[1] - got[0]) * 8 / (end - start) * 1514 / 1448


def p99_limit_ms(idle):
    """Return how long requests may take beside capped streams: 1.5 times the p99 of
    requests that have the machine to themselves, or 2 ms more than that if this is
    longer, because on two cores p99 varies so much by itself."""
    return max(1.5 * idle, idle + 2)


def percentile(ordered, p):
    if not ordered:
        return float("inf")
    return ordered[min(len(ordered) - 1, int(len(ordered) * p / 100))]
