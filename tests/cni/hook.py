#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""natractl hook with containers that share a network namespace, and with annotations that
are wrong in some way: no container that asks for limits runs without any."""
import json
import subprocess

import plugin
from limiters import find_natractl
from plugin import Veth, attachments, natractl

IN, OUT = "kubernetes.io/ingress-bandwidth", "kubernetes.io/egress-bandwidth"
# Beside a rate; the last ones are no annotations of natra's.
SAID = ((IN, "10Q"), (IN, 5), ("natra.io/fast-pass", "often"), ("natra.io/ingress-burst", "1k"),
        ("natra.io/classes", "lan=x"), ("natra.io/egress-packet-rate", "-1"),
        ("natra.io/edt-pacing", []))
OTHERS = (("natra.io/group", "g" * 300), ("natra.io/horizon", "1ns"))


def hook(status, name, annotations, pid=0):
    """Return what the hook says."""
    p = subprocess.run([find_natractl(), "hook"], text=True, capture_output=True, timeout=20,
                       input=json.dumps({"id": name, "status": status, "pid": pid,
                                         "annotations": annotations}))
    assert p.returncode == 0, p
    return p.stderr.strip()


def begin(pod):
    """Return a process in the namespace."""
    p = subprocess.Popen(["nsenter", f"--net={pod.path}", "sh", "-c", "echo; exec cat"],
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert p.stdout.readline() == b"\n"
    return p


def ids():
    return [a["id"] for a in attachments()]


def shared(rep, pod):
    first, second = begin(pod), begin(pod)
    hook("creating", "first", {IN: "10M"}, first.pid)
    rep.true("a second container beside it", "oci/first/eth0" in hook(
        "creating", "second", {IN: "10M"}, second.pid))
    first.communicate()
    # Nobody is in its namespace, but it is not the hook's.
    other = Veth("cnioci", "vcnioci")
    natractl("attach", "eth0", "--netns", other.path, "--id", "oci/pod/eth0", "--network", "oci",
             "--egress-rate", "1M")
    hook("stopped", "none", {})
    rep.true("what the plugin has in a network of the name stays", "oci/pod/eth0" in ids())
    natractl("detach", "oci/pod/eth0")
    other.close()
    rep.equal("the first one ends", (hook("stopped", "first", {}), ids()),
              ("", ["oci/first/eth0"]))
    second.communicate()
    rep.equal("the second one ends", (hook("stopped", "second", {}), ids()), ("", []))


def wrong(rep, pod):
    process = begin(pod)
    for mbit, (name, value) in enumerate(SAID + OTHERS, 20):
        said = hook("creating", "odd", {OUT: f"{mbit}M", name: value}, process.pid)
        limits = [a["policy"]["egress_rate_bits_per_sec"] for a in attachments()]
        rep.equal(f"{name}: {str(value)[:8]}: {said[:120]}", limits, [mbit * 10**6])
        rep.equal("  it is said", name in said, (name, value) in SAID)
    process.communicate()
    hook("stopped", "odd", {})


def main(rep, _):
    pod = Veth("hook", "veth-hook")
    try:
        shared(rep, pod)
        wrong(rep, pod)
    finally:
        pod.close()


if __name__ == "__main__":
    plugin.run_script(main)
