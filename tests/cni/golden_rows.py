# SPDX-License-Identifier: BSD-2-Clause
"""The input that golden.py feeds the plugin: captures of runtimes, and variations.

A row is a configuration and the outcome that the specification and natra's own rules
demand for it; golden.py has the rules that hold for all rows.
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
# Rows that do not depend on the version use only these.
SOME = ("0.3.0", "1.0.0", "1.1.0", "9.9.9")
# These are the codes of errors other than version, environment and JSON.
ANY = frozenset(range(2, 1000)) - {4, 6}


@dataclass
class Row:
    name: str
    conf: object                # bytes, or a dict that gets the version
    limits: tuple = None        # after ADD: rates in bit/s, bursts in bits
    pod: str = "pod"            # name of its network namespace
    env: dict = field(default_factory=dict)
    # (error codes, words of the message) where the command must fail
    parsing: tuple = None       # for each command that reads the conf
    add: tuple = None
    native: str = None          # version that a literal capture has
    versions: tuple = VERSIONS + ("0.1.0", "0.2.0", "9.9.9")

    def stdin(self, version):
        if version == self.native or isinstance(self.conf, bytes):
            return literal(self.name) if self.native else self.conf
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
        "ctrd1.6-ADD-egress-only": (0, M10, 0, BURST),
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


def base():
    conf = parse(literal("ctrd1.6-ADD"))
    conf["prevResult"]["interfaces"][1:] = [
            {"name": "vethpod", "mac": "02:00:00:00:00:01"},
            {"name": "eth0", "mac": "02:00:00:00:00:02",
             "sandbox": "/run/netns/pod"}]
    return conf


def bandwidth(**values):
    """Return the base with only these values in runtimeConfig.bandwidth."""
    conf = base()
    conf["runtimeConfig"]["bandwidth"] = values
    return conf


def static(runtime=True, **values):
    conf = dict(base(), **values)
    if not runtime:
        del conf["runtimeConfig"]["bandwidth"]
    return conf


def changed(key, value):
    """Return the base with one value replaced; the key is a path with dots."""
    conf = base()
    *path, last = key.split("/")
    place = conf
    for k in path:
        place = place[k]
    place[last] = value
    return conf


def without(*keys):
    conf = base()
    for key in keys:
        *path, last = key.split("/")
        place = conf
        for k in path:
            place = place[k]
        del place[last]
    return conf


def limit_rows():
    """Return rows about what counts as a limit. unit-cni-bandwidth has the others."""
    yield Row("all zero", bandwidth(IngressRate=0, IngressBurst=0,
                                    EgressRate=0, EgressBurst=0))
    yield Row("runtimeConfig absent", without("runtimeConfig"))
    yield Row("CRI-O", bandwidth(ingressRate=M10, ingressBurst=34359738359,
                                 egressRate=M10, egressBurst=34359738359),
              BOTH)
    yield Row("a burst from the runtime",
              bandwidth(IngressRate=M10, IngressBurst=8000000),
              (M10, 0, 8000000, 0))
    yield Row("a burst by the operator",
              static(False, ingressRate=M10, ingressBurst=4294967295),
              (M10, 0, 4294967295, 0))
    yield Row("burst without rate", bandwidth(IngressBurst=8000000),
              add=({7}, "if burst is set, rate must also be set"))
    yield Row("static over runtime", static(egressRate=M10),
              (0, M10, 0, BURST))
    yield Row("capabilities absent", without("capabilities"), BOTH)
    yield Row("1 MiB of annotations", changed(
            "runtimeConfig/io.kubernetes.cri.pod-annotations",
            {f"example.org/a{i}": json.dumps({"spec": 'a"b\\c' * 6500})
             for i in range(16)}), BOTH)


def prev_rows():
    """Return rows about the forms that a prevResult may have."""
    yield Row("no prevResult", without("prevResult"), BOTH,
              add=no_prev(BOTH))
    yield Row("prevResult null", changed("prevResult", None), BOTH,
              add=no_prev(BOTH))
    yield Row("no prevResult, no limits",
              without("prevResult", "runtimeConfig"), add=no_prev(None))
    yield Row("no interfaces", without("prevResult/interfaces"), BOTH)
    yield Row("interfaces empty", changed("prevResult/interfaces", []), BOTH)
    yield Row("interfaces null", changed("prevResult/interfaces", None), BOTH)
    yield Row("interfaces wrong", changed(
            "prevResult/interfaces",
            [{"name": "eth0", "sandbox": "eth0"}, {"name": "nosuch7"}]), BOTH)
    odd = {"big": 2**64 - 1, "bigger": 9007199254740993, "minus": -2**63,
           "text": "h\u00e9\u4e16\U0001f600\\\"\n\u007f", "nul": "a\u0000b",
           "deep": [[[[{"a": [None, True, False, {}]}]]]], "": "empty key",
           "small": 1e-7, "mtu": 1500}
    conf = base()
    conf.update(odd, args={"cni": odd}, ipam={}, dns={"search": ["x"]},
                disableCheck=False)
    conf["prevResult"].update(odd)
    conf["prevResult"]["interfaces"][1].update(odd, socketPath="/s", pciID="1")
    conf["prevResult"]["routes"][0].update(mtu=1400, priority=2**32 - 1)
    conf["prevResult"]["ips"].append({"address": "fd00::2/64"})
    yield Row("unknown fields", conf, BOTH)
    yield Row("unknown fields, no limits",
              {k: v for k, v in conf.items() if k != "runtimeConfig"})


def text_rows():
    """Return rows with what only the text shows, because parsing loses it."""
    text = json.dumps(base())
    doubled = text.replace('"cniVersion": "1.0.0", "name"',
                           '"cniVersion": "9.9.9", "name": "other", '
                           '"cniVersion": "1.0.0", "name"')
    doubled = doubled.replace('"IngressRate": 10000000',
                              '"IngressRate": 5, "ingressrate": 10000000')
    one = ("1.0.0",)
    yield Row("duplicate keys: the last wins", doubled.encode(), BOTH,
              versions=one)
    for name, stdin in (("nothing", b""), ("cut off", text[:-1].encode()),
                        ("a list", b"[]"), ("more behind it", text.encode() + b"}"),
                        ("too deep", b'{"a":' * 200000 + b"1" + b"}" * 200000)):
        yield Row(f"bad JSON: {name}", stdin, parsing=({6}, ""),
                  versions=one)
    yield Row("name absent", without("name"), parsing=({7}, ""), versions=SOME)
    yield Row("cniVersion absent", json.dumps(without("cniVersion")).encode(),
              parsing=({1}, ""), versions=one)


def env_rows():
    """Return rows in which a variable is bad; unit-cni-env has the others."""
    def row(name, value, **kw):
        shown = "unset" if value is None else repr(value)[:24]
        return Row(f"{name} {shown}", base(), BOTH, env={name: value},
                   versions=SOME, **kw)
    for name in ("CNI_CONTAINERID", "CNI_IFNAME", "CNI_NETNS", "CNI_PATH", "CNI_ARGS"):
        yield row(name, None)
    yield row("CNI_CONTAINERID", "../x")
    yield row("CNI_ARGS", "A=" + "x" * 100000)
    for path in ("/run/netns/nosuch", "/etc/hostname"):
        yield row("CNI_NETNS", path, add=(ANY, path))
    yield row("CNI_IFNAME", "net7", add=(ANY, "net7"))
    yield Row("no such netns, no limits", without("runtimeConfig"),
              env={"CNI_NETNS": "/run/netns/nosuch"})
    yield Row("own netns", base(), BOTH, env={"CNI_NETNS": "/proc/self/ns/net"},
              add=({8}, ""))
    yield Row("own netns, override", without("runtimeConfig"),
              env={"CNI_NETNS": "/proc/self/ns/net", "CNI_NETNS_OVERRIDE": "1"})


def rows():
    for table in (captures, limit_rows, prev_rows, text_rows, env_rows):
        for row in table():
            default = dict(ENV, CNI_NETNS=f"/run/netns/{row.pod}")
            row.env = dict(default, **row.env)
            if table is limit_rows:
                row.versions = SOME
            yield row
