#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs the chain of chain.py through the real libcni, by its own cnitool: with Debian's
ptp and cniVersion 1.0.0, and with the newest ptp and 1.1.0."""
import json
import os
import subprocess
import tempfile

import plugin
from chain import ARGS, CAPABILITIES, LIMITS, NATRA, ipam
from plugin import (DEBIAN, attachment, attachments, find_natra, limits,
                    natractl, newest, pins)
from namespaces import Ns


class Cnitool:
    def __init__(self, path, net, netns, plugins, conf_dir):
        self.argv = lambda verb: [path, verb, net, netns]
        self.env = dict(os.environ, NETCONFPATH=conf_dir, CNI_IFNAME="eth0",
                        CNI_PATH=plugins, CAP_ARGS=json.dumps(CAPABILITIES),
                        CNI_ARGS=";".join(f"{k}={v}" for k, v in ARGS.items()))

    def __call__(self, verb):
        return subprocess.run(self.argv(verb), env=self.env, text=True,
                              timeout=20, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def story(rep, tool, version, ptp_dir, tmp):
    net = f"tool-{version}"
    conf_dir = f"{tmp}/{version}"
    os.mkdir(conf_dir)
    os.mkdir(f"{conf_dir}/bin")
    os.symlink(find_natra(), f"{conf_dir}/bin/natra")
    with open(f"{conf_dir}/10-natra.conflist", "w") as f:
        json.dump({"cniVersion": version, "name": net, "plugins": [
                {"type": "ptp", "ipam": ipam("10.75.0.0/24", tmp)},
                NATRA]}, f)
    pod = Ns(net)
    cni = Cnitool(tool, net, pod.path, f"{conf_dir}/bin:{ptp_dir}", conf_dir)

    def works(verb):
        p = cni(verb)
        rep.check(f"{version}: cnitool {verb}", f"{p.returncode} "
                  f"{p.stderr.strip()[:150]}", "0", not p.returncode)
        return p

    result = json.loads(works("add").stdout)
    rep.equal(f"{version}: interfaces of the result",
              [i["name"] for i in result["interfaces"]][-1:], ["eth0"])
    rep.equal(f"{version}: version of the result", result["cniVersion"],
              version)
    info = attachment(pod.path)
    rep.equal(f"{version}: limits", limits(info), LIMITS)
    works("check")
    natractl("set", info["id"], "--egress-rate", "7M")
    works("check")
    works("status")
    natractl("detach", info["id"])
    p = cni("check")
    rep.check(f"{version}: cnitool check when detached", p.stderr.strip()[:90],
              "failure of natra", p.returncode and "not attached" in p.stderr)
    works("del")
    works("del")
    rep.equal(f"{version}: left", (attachments(), pins()), ([], []))
    # GC, as cnitool calls it, deletes the attachments that are in cnitool's cache.
    works("add")
    works("gc")
    rep.equal(f"{version}: left after gc", (attachments(), pins()), ([], []))
    works("del")


def main(rep, _):
    tool = plugin.need(newest("cnitool"), "cnitool (tools/install-deps cni)")
    with tempfile.TemporaryDirectory(prefix="natra-cni-") as tmp:
        for version, ptp_dir in (("0.4.0", DEBIAN), ("1.0.0", DEBIAN),
                                 ("1.1.0", plugin.NEWEST)):
            if os.access(f"{ptp_dir}/ptp", os.X_OK):
                story(rep, tool, version, ptp_dir, tmp)
            else:
                rep.shown(f"{version} left out", f"no ptp in {ptp_dir}")


if __name__ == "__main__":
    plugin.run_script(main)
