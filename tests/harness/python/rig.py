# SPDX-License-Identifier: BSD-2-Clause
"""Sets up a node with pods and clients, and starts traffic between them."""
import json
import os
import re
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

import load
from commands import sh
from meter import ETH_IPV4_TCP, Meter
from namespaces import Ns, Pod
from percentiles import percentile

LOAD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "load.py")


class Rig:
    """The node, and lanes, each with a pod under test and a client beyond the node.

    A test that measures both directions at once takes two lanes, one for each: in a
    single lane the acknowledgements of one direction's stream add 2 % to the other's
    figure.
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
        """End these processes, or all that were started if procs is None."""
        for ns in (*self.clients, *self.pods, self.node):
            ns.stop(*[p for p in list(ns._procs)
                      if procs is None or p in procs])

    def into(self, lane=0, header=ETH_IPV4_TCP):
        """Return a meter of what reaches the pod."""
        return Meter(self.pods[lane], header)

    def out_of(self, lane=0, header=ETH_IPV4_TCP):
        """Return a meter of what the client receives; only the pod sends to it."""
        return Meter(self.clients[lane], header)

    def meters(self):
        return [self.into(), self.out_of()]

    def netem(self, delay_ms, lanes=None):
        """Delay packets outside of the pods by half of the round trip each way."""
        half = ("root", "netem", "delay", f"{delay_ms / 2}ms",
                "limit", "100000")
        for client in [self.clients[i] for i in
                       lanes or range(len(self.clients))]:
            client.run("tc", "qdisc", "replace", "dev", "eth0", *half)
            sh("tc", "qdisc", "replace", "dev", client.host, *half)

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
        """Wait until traffic passes each meter: a slow machine takes a while to start a
        sender, and settling begins after that."""
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
        """Start TCP streams from src to dst and return the processes, for stop()."""
        server = self.stream_server(dst, port)
        return [self.stream_client(src, dst, port, *args, **kw), server]

    def elephants(self, flows=1, seconds=600):
        """Start streams in both directions. The servers start first, because on two
        cores streams that nothing limits leave little time for one to start in."""
        ways = ((self.client, self.pod, 5201), (self.pod, self.client, 5202))
        procs = [self.stream_server(dst, port) for _, dst, port in ways]
        procs += [self.stream_client(*way, flows, seconds) for way in ways]
        self.wait_flow(*self.meters())
        return procs

    @staticmethod
    def load(ns, *args):
        """Start load.py in a namespace."""
        return ns.fork(load.main, list(map(str, args)))

    def load_end(self, proc, ns, seconds=30, now=False):
        """Return what load.py reported at its end; `now` ends it first."""
        if now:
            proc.terminate()
        out, _ = proc.communicate(timeout=seconds)
        ns.stop(proc)
        return json.loads(out)

    def nginx(self, size=6000, port=80, pod=None):
        """Start a web server in the pod with a file of `size` bytes, and return its
        URL."""
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

    def hey_times(self, url, seconds, clients=50, per_client=20, timeout=5, lane=0):
        """Open fresh connections, `per_client` a second from each client, or as many as
        possible if that is 0. Return the seconds to connect and in all of each request
        that was answered."""
        out = self.clients[lane].run(
                "hey", "-disable-keepalive", "-z", f"{seconds}s",
                "-c", str(clients),
                *(("-q", str(per_client)) if per_client else ()),
                "-t", str(timeout), "-o", "csv", url,
                timeout=seconds + timeout + 15)
        rows = [r.split(",") for r in out.splitlines()[1:]]
        return [(float(r[1]), float(r[0])) for r in rows if r[6] == "200"]

    def hey(self, url, seconds, clients=50, per_client=20, timeout=5, lane=0):
        """Open fresh connections at a fixed rate; return how many were answered and how
        fast."""
        times = sorted(t for _, t in self.hey_times(
                url, seconds, clients, per_client, timeout, lane))
        return {"rps": len(times) / seconds,
                "p50_ms": percentile(times, 50) * 1e3,
                "p99_ms": percentile(times, 99) * 1e3,
                "p999_ms": percentile(times, 99.9) * 1e3,
                "offered": clients * per_client}

    def on_lanes(self, measure):
        """Return measure(0), measure(1) and so on, which run at the same time."""
        with ThreadPoolExecutor(len(self.pods)) as pool:
            return list(pool.map(measure, range(len(self.pods))))

    def sockperf(self, seconds, per_second=500, port=5600, lane=0):
        """Return the round trip times in us, by percentile, over one TCP connection to
        the server that sockperf_server() started."""
        out = self.clients[lane].run(
                "sockperf", "under-load", "--tcp", "-i", self.pods[lane].ip,
                "-p", str(port), "--mps", str(per_second),
                "--reply-every", "1", "--full-rtt", "--no-rdtsc", "-m", "64",
                "-t", str(seconds), timeout=seconds + 20)
        return {float(p): float(us) for p, us in re.findall(
                r"percentile (\d+\.\d+)\s*=\s*([\d.]+)", out)}

    def sockperf_server(self, port=5600, lane=0):
        self.pods[lane].popen("sockperf", "server", "--tcp", "-p", str(port))
        self.wait_port(self.pods[lane], port)


class Elephant:
    """A stream whose receiver logs how many bytes it had at what time.

    iperf3's control connection suffers from whatever starves the streams, and the wire
    carries other traffic as well; this counts the stream alone.
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
        """Return the bit/s on the wire in a span of time.monotonic()."""
        with open(self.log) as f:
            rows = [s.split() for s in f if s.endswith("\n")]
        at = [(float(t), int(n)) for t, n in rows]
        got = [max((n for t, n in at if t <= edge), default=0)
               for edge in (start, end)]
        return (got[1] - got[0]) * 8 / (end - start) * 1514 / 1448
