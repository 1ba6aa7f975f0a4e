#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""natra never replaces the mq of an interface with several transmit queues by fq.

  mq        the kernel gives such an interface an mq by default: with it AUTO
            leaves departure times out, and --edt-pacing on fails
  own mq    an mq that somebody installed is left alone in the same way
  down      an interface that has never been up has no qdisc yet: what it will
            have is judged by its transmit queues
  veth      a veth with several queues but no mq can pace with fq at its root
  single    with one transmit queue fq replaces the default, which comes back
"""
import json
import os
import sys

sys.path.insert(0, os.path.dirname(__file__) + "/../harness/python")
from limiters import Natra
from namespaces import Ns
from script import run_script

QUEUES = 4
IFB = ("ip", "link", "add", "eth0", "numtxqueues")


def qdiscs(ns):
    """Return kind, handle and place of each qdisc, as one line."""
    return ", ".join(" ".join(line.split()[1:5]).replace(" refcnt", "")
                     for line in ns.run("tc", "qdisc", "show", "dev",
                                        "eth0").splitlines())


def left_alone(rep, ns, what, text):
    before = qdiscs(ns)
    lim = Natra(ns)
    p = lim.run("attach", "eth0", "--netns", ns.path, "--id", lim.id,
                "--egress-rate", "10M", "--edt-pacing", "on")
    rep.check(f"{what}: --edt-pacing on", f"exit {p.returncode}: {p.stderr.strip()}",
              f"exit 1, {text!r}",
              p.returncode == 1 and text in p.stderr and
              len(p.stderr.splitlines()) == 1)
    rep.equal("  qdiscs after it", qdiscs(ns), before)
    lim.attach(None, "10M")
    show = lim.show()
    rep.equal("  --edt-pacing auto: departure times; qdiscs",
              (show["edt_active"], qdiscs(ns)), (False, before))
    rep.check("  because", repr(show["reason"]), f"says {text!r}",
              f"no edt: {text}" in show["reason"])
    lim.detach()
    rep.equal("  qdiscs after detach", qdiscs(ns), before)


def paced(rep, ns, what, fq):
    before = qdiscs(ns)
    lim = Natra(ns).attach(None, "10M")
    root = qdiscs(ns)
    rep.equal(f"{what}: departure times; fq at the root",
              (lim.edt_active(), root.startswith("fq 6e61: root")), (fq, fq))
    lim.detach()
    rep.equal("  qdiscs after detach", qdiscs(ns), before)


def multi_queue(rep):
    with_mq = "qdisc 'mq' has a queue for each transmit queue"
    with Ns("several") as ns:
        ns.run(*IFB, str(QUEUES), "type", "ifb")
        ns.run("ip", "link", "set", "eth0", "up")
        rep.equal("several transmit queues: the default root",
                  qdiscs(ns).split(",")[0], "mq 0: root")
        left_alone(rep, ns, "mq", with_mq)
        ns.run("tc", "qdisc", "add", "dev", "eth0", "root", "handle", "7:",
               "mq")
        left_alone(rep, ns, "own mq", "qdisc 'mq' (handle 7:) is installed")


def main(rep, _):
    fq = json.loads(Natra().run("probe", "--json").stdout)["fq"]
    multi_queue(rep)
    with Ns("veth") as ns:
        ns.run(*IFB, str(QUEUES), "type", "veth", "peer", "name", "eth1")
        ns.run("ip", "link", "set", "eth0", "up")
        paced(rep, ns, "veth", fq)
    with Ns("single") as ns:
        ns.run(*IFB, "1", "type", "ifb")
        ns.run("ip", "link", "set", "eth0", "up")
        paced(rep, ns, "single", fq)
    if os.path.exists("/dev/net/tun"):
        with Ns("down") as ns:
            ns.run("ip", "tuntap", "add", "mode", "tap", "name", "eth0",
                   "multi_queue")
            left_alone(rep, ns, "down", "the interface has 256 transmit queues")


if __name__ == "__main__":
    run_script(main)
