#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What upstream's bandwidth plugin, called as a runtime does, leaves on a pod's
veth: natractl tells of it, and --replace-bandwidth removes it."""
import os
import socket
import sys

sys.path.insert(0, os.path.dirname(__file__) + "/../harness/python")
from commands import sh
from limiters import Natra, Upstream
from namespaces import Ns, Pod
from report import skip
from script import run_script

NONE = {"tbf": False, "ingress_redirect": False, "ifb_ifname": ""}


def node(pod):
    """Qdiscs and interfaces that the plugin could have touched."""
    return (sh("tc", "qdisc", "show", "dev", pod.host),
            sh("ip", "-o", "link", "show", "type", "ifb"))


def gets_out(pod):
    """Whether a datagram of the pod reaches the node."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.bind((pod.gw, 5300))
        s.settimeout(2)
        pod.run(sys.executable, "-c", "import socket; s = socket.socket("
                f"type=socket.SOCK_DGRAM); s.sendto(b'x', ('{pod.gw}', 5300))")
        try:
            return s.recv(1) == b"x"
        except TimeoutError:
            return False


def told(natra):
    return {k: v for k, v in natra.show()["leftovers"].items()
            if k != "host_ifname"}


def one(rep, pod, ingress, egress):
    what = f"ingress {ingress}, egress {egress}"
    clean = node(pod)
    natra = Natra(pod)
    upstream = Upstream(pod).attach(ingress, egress)
    p = natra.run("attach", "eth0", "--netns", pod.path, "--id", pod.name,
                  "--ingress", "10M", "--egress", "10M", "--edt", "off")
    rep.equal(f"{what}: attaching succeeds and warns",
              (p.returncode, p.stderr.count("warning:")), (0, 1))
    found = told(natra)
    rep.equal(f"{what}: what is told",
              (found["tbf"], found["ingress_redirect"],
               found["ifb_ifname"][:3]),
              (bool(ingress), bool(egress), "bwp" if egress else ""))
    p = natra.run("attach", "eth0", "--netns", pod.path, "--id", pod.name,
                  "--ingress", "10M", "--egress", "10M", "--edt", "off",
                  "--replace-bandwidth")
    rep.equal(f"{what}: --replace-bandwidth", (p.returncode, p.stderr),
              (0, ""))
    rep.true(f"{what}: nothing is left", node(pod) == clean)
    rep.equal(f"{what}: nothing is told", told(natra), NONE)
    rep.true(f"{what}: natra stays",
             natra.run("check", pod.name).returncode == 0)
    # The plugin may still be called for the end of the pod.
    upstream._call("DEL")
    natra.detach()


def after_del(rep, pod):
    """DEL takes the ifb and leaves the redirect to it."""
    clean = node(pod)
    upstream = Upstream(pod).attach("10M", "10M")
    upstream._call("DEL")
    rep.true("after DEL: nothing of the pod gets out", not gets_out(pod))
    natra = Natra(pod).attach("10M", "10M", "--edt", "off",
                              "--replace-bandwidth")
    rep.true("after DEL and --replace-bandwidth: it does", gets_out(pod))
    rep.true("after DEL: nothing is left", node(pod) == clean)
    natra.detach()


def main(rep, _):
    if not os.access(Upstream.PLUGIN, os.X_OK):
        skip(Upstream.PLUGIN)
    with Ns():
        pod = Pod("pod", 1)
        try:
            Upstream(pod).attach("1M", "1M").detach()
        except RuntimeError as e:
            skip(f"the plugin does not work here: {e}")
        for ingress, egress in (("10M", "10M"), ("10M", None), (None, "10M")):
            one(rep, pod, ingress, egress)
        after_del(rep, pod)
        pod.close()


if __name__ == "__main__":
    run_script(main)
