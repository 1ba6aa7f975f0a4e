# SPDX-License-Identifier: BSD-2-Clause
"""The input that golden.py feeds the plugin: captures of runtimes, in each version.

A row is a capture and the limits that it asks for; golden.py has the rules that hold for
all rows. unit-cni-bandwidth, -conf, -env and -result have what else runtimes may send.
"""
import copy
import json
import os
from dataclasses import dataclass, field

from plugin import ENV, HERE, VERSIONS, parse

CAPTURES = f"{HERE}/captures"
M10 = 10_000_000
# natra uses 0.5 s of the rate in place of the placeholder bursts that runtimes send.
BURST = M10 // 2
BOTH, INTO = (M10, M10, BURST, BURST), (M10, 0, BURST, 0)
# These are the codes of errors other than version, environment and JSON.
ANY = frozenset(range(2, 1000)) - {4, 6}


@dataclass
class Row:
    name: str
    conf: dict
    limits: tuple = None        # after ADD: rates in bit/s, bursts in bits
    pod: str = "pod"            # name of its network namespace
    env: dict = field(default_factory=dict)
    add: tuple = None           # (error codes, words of the message) where ADD must fail
    native: str = None          # the version of the capture
    versions: tuple = VERSIONS + ("0.1.0", "0.2.0", "9.9.9")

    def stdin(self, version):
        if version == self.native:
            return literal(self.name)
        return json.dumps(with_version(self.conf, version)).encode()


def literal(name):
    with open(f"{CAPTURES}/{name}.json", "rb") as f:
        return f.read()


def environment(name):
    """Return the variables that the runtime set, or none if no capture has them."""
    path = f"{CAPTURES}/{name}.env"
    if not os.path.exists(path):
        return {}
    with open(path) as f:
        return dict(s.rstrip("\n").split("=", 1) for s in f)


def with_version(conf, version):
    """Return the conf as libcni would send it, with the prevResult in the same
    version."""
    conf = copy.deepcopy(conf)
    if "cniVersion" in conf:
        conf["cniVersion"] = version
    prev = conf.get("prevResult")
    if isinstance(prev, dict) and "cniVersion" in prev:
        prev["cniVersion"] = version
        for ip in prev.get("ips", []):
            ip.pop("version", None)
            if version.startswith("0."):
                ip["version"] = "6" if ":" in ip["address"] else "4"
    return conf


def sandbox(conf):
    """Return the name of the captured pod's network namespace, and its interfaces."""
    links = (conf.get("prevResult") or {}).get("interfaces", [])
    pod = [i for i in links if "sandbox" in i]
    host = [i for i in links if i["name"].startswith("veth")]
    return (os.path.basename(pod[0]["sandbox"]), pod[0],
            host[0] if host else None) if pod else None


LIMITS = {
        "cnitool-v1.1.0-ADD": (M10, M10, 1000000, 1000000),
        "cnitool-v1.1.0-CHECK": (M10, M10, 1000000, 1000000),
        "cnitool-v1.1.0-DEL": (M10, M10, 1000000, 1000000),
        "cnitool-v1.1.0-GC": None,
        "cnitool-v1.1.0-STATUS": None,
        "ctrd1.6-ADD": BOTH,
        "ctrd1.6-ADD-ingress-only": INTO,
        "ctrd1.6-ADD-no-annotation": None,
        "ctrd1.6-DEL-again-no-prevResult": BOTH,
        "ctrd1.6-DEL-first": BOTH,
        "ctrd1.6-DEL-netns-gone": BOTH,
        "ctrd1.6-macvlan-ADD": BOTH,
        "ctrd1.6-nocaps-ADD": None,
        "ctrd1.6-ptp-ADD": BOTH,
        "ctrd1.6-v0.3.1-ADD": BOTH,
        "ctrd1.6-v0.3.1-DEL": BOTH,
        "ctrd2.4-v1.1.0-ADD": BOTH,
        "ctrd2.4-v1.1.0-STATUS": None,
}


def captures():
    for name, limits in LIMITS.items():
        conf = parse(literal(name))
        pod = sandbox(conf)
        env = environment(name)
        env.pop("CNI_COMMAND", None)
        if pod and "CNI_NETNS" not in env:
            env["CNI_NETNS"] = pod[1]["sandbox"]
        row = Row(name, conf, limits, pod[0] if pod else "pod", env,
                  native=conf["cniVersion"])
        if "prevResult" not in conf:
            row.add = no_prev(limits)
        yield row


def no_prev(limits):
    """Return the outcome of an ADD without a prevResult. A chained plugin that has
    something to do needs one; if it has nothing to do, success and an error are both
    right, but not a crash."""
    return (frozenset({7} if limits else {0, 7}), "chained")


def rows():
    for row in captures():
        row.env = dict(ENV, CNI_NETNS=f"/run/netns/{row.pod}") | row.env
        yield row
