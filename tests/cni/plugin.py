# SPDX-License-Identifier: BSD-2-Clause
"""Calls a CNI plugin as a runtime does, and examines the state that it left.

The environment names the programs: NATRA_CNI is the plugin, NATRACTL is natractl.
natra's pins are where the plugin puts them, in a bpffs that isolation.isolate() has
mounted for this test alone.
"""
import json
import os
import socket
import subprocess
import sys
import time
from decimal import Decimal

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE + "/../harness/python")
import bpfsys
import isolation
import script
from commands import sh
from limiters import find_natractl
from namespaces import Ns
from report import skip

PINS = "/sys/fs/bpf/natra"
DEBIAN = "/usr/lib/cni"
# `tools/install-deps cni` builds these plugins, which are newer than Debian's.
NEWEST = os.environ.get("NATRA_CNI_NEWEST", "/usr/local/lib/natra-tests/cni")
VERSIONS = ("0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0")
ENV = {"CNI_CONTAINERID": "c0ffee", "CNI_IFNAME": "eth0", "CNI_NETNS": "",
       "CNI_PATH": "/opt/cni/bin", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
SILENT = ("DEL", "CHECK", "GC", "STATUS")


def isolate():
    """Isolates the script, and hides the machine's directories that plugins write to."""
    isolation.isolate()
    for path in ("/var/log", "/var/lib"):
        sh("mount", "-t", "tmpfs", "tmpfs", path)


def run_script(main, *options, **more):
    """Run a test script of the plugin, isolated by isolate() above."""
    script.run_script(main, *options, isolate=isolate, **more)


def find_natra():
    path = os.environ.get("NATRA_CNI", "")
    if not os.access(path, os.X_OK):
        sys.exit("NATRA_CNI does not name natra's CNI plugin")
    return path


def newest(name):
    """Return the path of a program of `tools/install-deps cni`, or None."""
    path = f"{NEWEST}/{name}"
    return path if os.access(path, os.X_OK) else None


def newest_bandwidth():
    """Return the path of the newest of upstream's bandwidth plugins here, or skip."""
    path = newest("bandwidth") or f"{DEBIAN}/bandwidth"
    return need(os.access(path, os.X_OK) and path,
                "upstream's bandwidth plugin (tools/install-deps cni)")


def number(version):
    return tuple(int(n) for n in version.split("."))


def parse(text):
    """Parse JSON and keep each number as it is written, not rounded to a double."""
    return json.loads(text, parse_float=Decimal)


class Answer:
    """The exit code and the output of a plugin."""

    def __init__(self, code, out, err, seconds):
        self.code, self.out, self.err = code, out, err
        self.seconds = seconds

    @property
    def json(self):
        return parse(self.out)

    def error(self):
        """Return the code of its error object; 0 after success."""
        return self.json["code"] if self.code else 0

    def text(self):
        """Return the text of its error."""
        return f'{self.json["msg"]} {self.json.get("details", "")}' \
                if self.code else ""

    def __str__(self):
        return f"exit {self.code}: {self.out.strip()[:200]}" \
               f"{' stderr: ' + self.err[-300:] if self.err else ''}"


def call(path, command, stdin, timeout=20, **env):
    """Run a plugin once, given as a path or a command. stdin is a dict, or the bytes
    themselves; a variable whose value is None is not set."""
    argv = [path] if isinstance(path, str) else path
    if isinstance(stdin, (dict, list)):
        stdin = json.dumps(stdin).encode()
    env = dict(ENV, CNI_COMMAND=command, **env)
    env = {k: v for k, v in env.items() if v is not None}
    begin = time.monotonic()
    p = subprocess.run(argv, input=stdin, env=env, timeout=timeout,
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    return Answer(p.returncode, p.stdout.decode(errors="replace"),
                  p.stderr.decode(errors="replace"),
                  time.monotonic() - begin)


def malformed(answer, command):
    """Return what in an answer violates the protocol; "" if nothing does."""
    if answer.code == 0 and command in SILENT:
        return f"says {answer.out[:80]!r}" if answer.out else ""
    try:
        said = answer.json
    except ValueError:
        return f"{answer}: not JSON"
    if not isinstance(said, dict):
        return f"{answer}: no object"
    if answer.code == 0:
        return "" if isinstance(said.get("cniVersion"), str) else \
               f"{answer}: no cniVersion"
    if answer.code != 1:
        return f"{answer}: exit code not 1"
    if set(said) - {"details"} != {"cniVersion", "code", "msg"}:
        return f"{answer}: keys of the error"
    good = isinstance(said["code"], int) and said["code"] > 0 and \
        isinstance(said["msg"], str) and said["msg"] and \
        isinstance(said.get("details", ""), str) and \
        isinstance(said["cniVersion"], str) and said["cniVersion"]
    return "" if good else f"{answer}: fields of the error"


class Veth(Ns):
    """A namespace with an interface whose peer is in the node, without addresses."""

    def __init__(self, name, host, mac=None, host_mac=None, ifname="eth0"):
        super().__init__(name)
        self.host, self.ifname = host, ifname
        self.mac, self.host_mac = mac, host_mac
        self.link()

    def link(self):
        """Make the interfaces, also after somebody deleted them."""
        sh("ip", "link", "add", self.host,
           *(("address", self.host_mac) if self.host_mac else ()),
           "up", "type", "veth", "peer", "name", self.ifname,
           *(("address", self.mac) if self.mac else ()), "netns", self.name)
        self.run("ip", "link", "set", self.ifname, "up")

    def close(self):
        sh("ip", "link", "del", self.host, check=False)
        os.close(self.fd)
        sh("ip", "netns", "del", self.name, check=False)

    def prev_result(self, version="1.0.0"):
        """Return the result that a main plugin would have given for it."""
        ip = {"address": "10.88.0.10/24", "gateway": "10.88.0.1",
              "interface": 1}
        if version.startswith("0."):
            ip["version"] = "4"
        return {"cniVersion": version,
                "interfaces": [{"name": self.host,
                                "mac": self.host_mac or "02:00:00:00:00:01"},
                               {"name": self.ifname,
                                "mac": self.mac or "02:00:00:00:00:02",
                                "sandbox": self.path}],
                "ips": [ip], "routes": [{"dst": "0.0.0.0/0"}], "dns": {}}


def natractl(*args, check=True):
    argv = [find_natractl(), *map(str, args)]
    p = subprocess.run(argv, text=True, timeout=20, stdin=subprocess.DEVNULL,
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if check and p.returncode:
        raise RuntimeError(f"{argv}: exit {p.returncode}: {p.stderr}")
    return p if not check else p.stdout


def attachments():
    return json.loads(natractl("list", "--json"))


def attachment(path, ifname="eth0"):
    """Return the attachment on an interface, found by its place, or None."""
    inode = os.stat(path).st_ino
    found = [a for a in attachments()
             if (a["netns_inode"], a["ifname"]) == (inode, ifname)]
    if len(found) > 1:
        raise RuntimeError(f"{len(found)} attachments on {ifname}, {path}")
    return found[0] if found else None


def limits(a):
    """Return an attachment's rates in bit/s in and out, and its bursts in bits."""
    return tuple(a["effective"][f"{way}_{what}"]
                 for what in ("rate_bits_per_sec", "burst_bits")
                 for way in ("ingress", "egress")) if a else None


def pins():
    """Return the pins of attachments; empty directories do not count. Programs that
    attachments share, and with them the ring of events, may stay for the next ones
    until `natractl gc`; they are in directories of their own, which do not count
    either."""
    return sorted(os.path.join(d, f) for d, _, files in os.walk(PINS)
                  if "/engine_" not in d and not d.endswith("/events") for f in files)


def has_tcx():
    return bool(json.loads(natractl("probe", "--json"))["tcx"])


def programs(ns, ifname="eth0", name="natra_"):
    """Return how many programs the kernel runs on an interface at ingress and at
    egress: on TCX the programs of all owners, on clsact those of this name."""
    with ns:
        index = socket.if_nametoindex(ifname)
        tcx = [bpfsys.tcx_count(index, kind)
               for kind in (bpfsys.TCX_INGRESS, bpfsys.TCX_EGRESS)]
        return tcx if any(tcx) else [
                sum(name in s for s in sh(
                        "tc", "filter", "show", "dev", ifname, hook,
                        check=False).splitlines())
                for hook in ("ingress", "egress")]


def qdiscs(run, dev):
    """Return the qdiscs except clsact, which natra must not delete because others may
    share it."""
    return [s for s in run("tc", "qdisc", "show", "dev", dev).splitlines()
            if "clsact" not in s]


def need(what, feature):
    """Return `what`, or skip the test if it is missing."""
    if not what:
        skip(feature)
    return what
