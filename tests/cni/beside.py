#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks that ADD says when a mode that was asked for does not hold beside the network's own
programs on the host side, which it knows by their names: it refuses, or warns with "onError":
"continue", and names the modes that hold."""
import contextlib
import os
import socket

import plugin
from plugin import Veth, attachment, call, find_natra, has_tcx, pins
import bpfsys
from commands import sh

LOG = "/var/log/natra.log"
ACCEPT = [(0xb7, 0, 0, 0), (0x95, 0, 0, 0)]
HOOKS = {"ingress": bpfsys.TCX_INGRESS, "egress": bpfsys.TCX_EGRESS}


@contextlib.contextmanager
def links(pod, name):
    """Both hooks have a program of this name by TCX."""
    index = socket.if_nametoindex(pod.host)
    fds = [bpfsys.load(ACCEPT, name.encode())]
    fds += [bpfsys.tcx_link(fds[0], index, kind) for kind in HOOKS.values()]
    yield
    for fd in fds:
        os.close(fd)


@contextlib.contextmanager
def filters(pod, name, program=""):
    """Both hooks have a filter of this name."""
    fd = bpfsys.load(ACCEPT, program.encode())
    bpfsys.pin(fd, f"/sys/fs/bpf/{name}")
    os.close(fd)
    sh("tc", "qdisc", "add", "dev", pod.host, "clsact", check=False)
    for hook in HOOKS:
        sh("tc", "filter", "add", "dev", pod.host, hook, "protocol", "all", "prio", "1", "handle",
           "1", "bpf", "direct-action", "object-pinned", f"/sys/fs/bpf/{name}")
    yield
    sh("tc", "qdisc", "del", "dev", pod.host, "clsact")
    os.unlink(f"/sys/fs/bpf/{name}")


# What is there; the mode; the directions that are lost, or "" if it holds as long as natra-agent
# runs, or None; whose program that is.
ROWS = (
    (links, "cil_from_contai", "tcx-podside", None, ""),
    (links, "cil_from_contai", "auto", None, ""),
    (links, "cil_from_contai", "tcx-hostside", "ingress", "Cilium"),
    (links, "cil_from_contai", "clsact-hostside", "ingress and egress", "Cilium"),
    (links, "cali_tc_main", "tcx-hostside", "ingress", "Calico"),
    (links, "somebody", "clsact-hostside", None, ""),
    (filters, "cil_from_contai", "tcx-hostside", "ingress", "Cilium"),
    (filters, "cil_from_contai", "clsact-hostside", "ingress", "Cilium"),
    (filters, "cil_from_contai", "clsact-podside", None, ""),
    (filters, "handle_ingress", "tcx-hostside", None, ""),
    (filters, "handle_ingress", "clsact-hostside", "", "AWS's network policy agent"),
)


def said():
    with open(LOG) as f:
        return f.read()


def beside(rep, pod, there, name, mode, lost, owner):
    what = f"{mode} beside {name}"
    conf = {"cniVersion": "1.0.0", "name": "beside", "type": "natra", "attachMode": mode,
            "logFile": LOG,
            "runtimeConfig": {"bandwidth": {"ingressRate": 10**7, "egressRate": 10**7}},
            "prevResult": pod.prev_result()}
    named = name if there is links or not name.startswith("cil") else ""
    with there(pod, name):
        for on_error in "fail", "continue":
            open(LOG, "w").close()
            a = call(find_natra(), "ADD", dict(conf, onError=on_error), CNI_NETNS=pod.path)
            refused = bool(lost) and on_error == "fail"
            rep.equal(f"{what}, {on_error}: exit code", a.code, int(refused))
            if refused:
                rep.true(f"{what}: what is said", all(
                    w in a.text() for w in (f"does not limit {lost} beside {owner}", named,
                                            "podside")), a.text())
                rep.equal(f"{what}: pins left", pins(), [])
            else:
                rep.true(f"{what}, {on_error}: it is attached", attachment(pod.path))
                rep.equal(f"{what}, {on_error}: warnings", [
                    "does not limit" in said(), "only while natra-agent runs" in said()],
                    [bool(lost), lost == ""])
            call(find_natra(), "DEL", conf, CNI_NETNS=pod.path)


def main(rep, _):
    pod = Veth("pod", "veth0")
    for row in ROWS:
        if has_tcx() or (row[0] is filters and "tcx" not in row[2]):
            beside(rep, pod, *row)
    pod.close()


if __name__ == "__main__":
    plugin.run_script(main)
