# SPDX-License-Identifier: BSD-2-Clause
"""Limits a pod by natra, by upstream's plugin, or by a qdisc of tc.

Each limiter has attach(ingress, egress), whose rates are as natractl takes them
or None, and detach().
"""
import json
import os
import shutil
import subprocess
import sys

from commands import sh
from isolation import BPFFS


def bits(text):
    """Return a rate such as 10M in bit/s."""
    unit = {"k": 1e3, "M": 1e6, "G": 1e9}
    return int(float(text[:-1]) * unit[text[-1]]) if text[-1] in unit \
            else int(text)


def find_natractl():
    path = shutil.which(os.environ.get("NATRACTL", "natractl"))
    if not path:
        sys.exit("natractl: not found; NATRACTL may name it")
    return path


class Natra:
    """Runs natractl with a bpffs that is the test's own."""
    name = "natra"

    def __init__(self, pod=None, *options, ident=None):
        self.pod, self.options = pod, options
        self.id = ident or (pod.name if pod else None)

    def run(self, *args, env=None, timeout=20, netns=None):
        """Run natractl and return the finished process, whatever its exit code."""
        argv = [find_natractl(), "--bpffs", BPFFS, *map(str, args)]
        if netns:
            argv = netns._argv(argv)
        return subprocess.run(argv, text=True, timeout=timeout,
                              env=dict(os.environ, **(env or {})),
                              stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE)

    def ok(self, *args, **kw):
        p = self.run(*args, **kw)
        if p.returncode:
            raise RuntimeError(f"natractl {' '.join(map(str, args))}: "
                               f"exit {p.returncode}: "
                               f"{p.stderr.strip() or p.stdout.strip()}")
        return p.stdout

    def json(self, *args, **kw):
        return json.loads(self.ok(*args, "--json", **kw))

    def attach(self, ingress, egress, *more):
        args = []
        if ingress:
            args += ["--ingress-rate", ingress]
        if egress:
            args += ["--egress-rate", egress]
        self.ok("attach", "eth0", "--netns", self.pod.path,
                "--id", self.id, *args, *self.options, *more)
        return self

    def detach(self):
        self.ok("detach", self.id)

    def show(self):
        return self.json("show", self.id)

    def stats(self):
        """Return {"ingress": {"mice": {"packets": n, "bytes": n}, ...}, ...}."""
        return self.json("stats", self.id)

    def edt_active(self):
        return bool(self.show()["edt_active"])

    @staticmethod
    def modes():
        """Return the attach modes that this kernel supports."""
        f = Natra().json("probe")
        return [m for m in ("tcx-podside", "clsact-podside",
                            "tcx-hostside", "clsact-hostside")
                if f[m.split("-")[0]]]


def forgiven(rate, seconds):
    """Return the part of a rate (bit/s) that policed streams may have more in so many seconds:
    in bpf/README.md, "Policing", it is 1/32 of the rate, 67 ms of it once, and a packet of 64 kB.
    A hundredth is for the measurement, and it is 5 % at least."""
    return max(0.05, 1 / 32 + 0.067 / seconds + 65536 * 8 / (rate * seconds) + 0.01)


def stall(seconds):
    """Return the tolerance of a policed flood that is measured for so many seconds. A busy
    machine stops the sender for 0.1 s now and then. The flood's bucket, which holds more than
    that, lets pass afterwards what was missed, so either lies in the span without the other."""
    return 0.02 + 0.1 / seconds


COUNTERS = ("mice", "admitted", "paced", "marked", "dropped_rate",
            "dropped_horizon", "unlimited", "other")


def total(direction, what="bytes", names=COUNTERS):
    """Return the sum of a direction's counters; each packet is in one of them."""
    return sum(direction[k][what] for k in names)


def dropped(direction, what="packets"):
    return total(direction, what, ("dropped_rate", "dropped_horizon"))


def check_delays(rep, what, direction):
    """Check the histogram of delays against the counters, while nothing is sent."""
    h = direction["delays"]
    held = total(direction, "packets", ("paced", "marked"))
    rep.equal(f"{what}: packets in the histogram of delays, their sum, "
              "the sum of its buckets", (h["count"], h["sum_ns"],
                                         sum(b["count"] for b in h["buckets"])),
              (held, direction["delay_sum_ns"], held))
    rep.check(f"{what}: packets were held", held, "> 0", held > 0)
    most = sum(b["count"] * b["up_to_ns"] for b in h["buckets"])
    least = sum(b["count"] * b["up_to_ns"] // 2 for b in h["buckets"]
                if b["up_to_ns"] > 1024)
    rep.check(f"{what}: sum of the delays by the bounds of the buckets",
              f"{h['sum_ns'] / 1e6:.1f}", f"{least / 1e6:.1f} to {most / 1e6:.1f}",
              least <= h["sum_ns"] <= most, " ms")


class Upstream:
    """Calls containernetworking's bandwidth plugin as a runtime does."""
    name = "upstream"
    PLUGIN = "/usr/lib/cni/bandwidth"

    def __init__(self, pod, *_, burst_bits=4294967295):
        # containerd sends a burst of 4294967295 bits for any rate.
        self.pod, self.burst = pod, burst_bits

    def _call(self, command):
        pod = self.pod
        conf = {
                "cniVersion": "1.0.0", "name": "rig",
                "type": "bandwidth",
                "capabilities": {"bandwidth": True},
                "runtimeConfig": {"bandwidth": self.limits},
                "prevResult": {
                        "cniVersion": "1.0.0",
                        "interfaces": [
                                {"name": pod.host, "mac": pod.host_mac},
                                {"name": "eth0", "mac": pod.mac,
                                 "sandbox": pod.path}],
                        "ips": [{"address": f"{pod.ip}/24",
                                 "gateway": pod.gw, "interface": 1}],
                        "routes": [], "dns": {}}}
        env = dict(os.environ, CNI_COMMAND=command,
                   CNI_CONTAINERID=pod.name, CNI_NETNS=pod.path,
                   CNI_IFNAME="eth0", CNI_PATH="/usr/lib/cni")
        # An emulated CPU takes seconds to start what Go has compiled.
        sh(self.PLUGIN, input=json.dumps(conf), env=env, timeout=60)

    def attach(self, ingress, egress):
        if not os.access(self.PLUGIN, os.X_OK):
            raise FileNotFoundError(self.PLUGIN)
        self.limits = {"IngressRate": bits(ingress or "0"),
                       "IngressBurst": self.burst if ingress else 0,
                       "EgressRate": bits(egress or "0"),
                       "EgressBurst": self.burst if egress else 0}
        self._call("ADD")
        return self

    def detach(self):
        self._call("DEL")
        # The plugin leaves both qdiscs to be removed with the interface. Until then
        # they redirect every packet to an ifb that is gone, and it is lost.
        for hook in ("root", "ingress"):
            sh("tc", "qdisc", "del", "dev", self.pod.host, hook,
               check=False)


class Qdisc:
    """Limits by a root qdisc each way, on the host side for what goes into the pod."""

    def __init__(self, pod, *_):
        self.pod = pod

    @staticmethod
    def commands(rate):
        """Return the arguments of tc's commands, each up to the device and from it
        on."""
        raise NotImplementedError

    def attach(self, ingress, egress):
        for rate, run, dev in ((ingress, sh, self.pod.host),
                               (egress, self.pod.run, "eth0")):
            if rate:
                for what, words in self.commands(bits(rate)):
                    run("tc", *what, "dev", dev, *words)
        return self

    def detach(self):
        for run, dev in ((sh, self.pod.host), (self.pod.run, "eth0")):
            run("tc", "qdisc", "del", "dev", dev, "root", check=False)

    def edt_active(self):
        return False


class Tbf(Qdisc):
    """tc's token bucket, which is what upstream's plugin uses. The tests are tested
    with it, too."""
    name = "tbf"

    @staticmethod
    def commands(rate):
        return [(("qdisc", "replace"), (
                "root", "tbf", "rate", f"{rate}bit", "burst",
                str(max(rate // 8 // 100, 70000)), "latency", "25ms"))]


class FqCodel(Qdisc):
    """fq_codel does not limit by itself, so it is htb's leaf."""
    name = "fq_codel"

    @staticmethod
    def commands(rate):
        return [(("qdisc", "replace"), ("root", "handle", "1:", "htb", "default", "1")),
                (("class", "replace"), ("parent", "1:", "classid", "1:1", "htb",
                                        "rate", f"{rate}bit")),
                (("qdisc", "replace"), ("parent", "1:1", "fq_codel"))]


class Cake(Qdisc):
    name = "cake"

    @staticmethod
    def commands(rate):
        return [(("qdisc", "replace"), ("root", "cake", "bandwidth", f"{rate}bit"))]


class NoLimit(Qdisc):
    name = "none"

    @staticmethod
    def commands(rate):
        return []


LIMITERS = {kind.name: kind for kind in (Natra, Upstream, Tbf, FqCodel, Cake, NoLimit)}


def limiter(name, pod, *options):
    return LIMITERS[name](pod, *options)
