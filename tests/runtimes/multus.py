#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Gives a pod three interfaces by the real Multus, each with limits of its own.

The default network has the pod's annotations, the second the `bandwidth` of its entry in
the pod's networks, and the third the rates of its own list.
"""
import json
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [f"{HERE}/../cni", f"{HERE}/../neighbours"]
import plugin
from built import built
from chain import ARGS, CAP, CAPABILITIES, NATRA, Lan, fails, mains
from libcni import Container
from plugin import attachment, attachments, limits, natractl, pins, programs
from namespaces import Ns
from script import option

GROUP = "/apis/k8s.cni.cncf.io/v1"
NETWORKS = "k8s.v1.cni.cncf.io/networks"
POD = f"/api/v1/namespaces/{ARGS['K8S_POD_NAMESPACE']}/pods/{ARGS['K8S_POD_NAME']}"
MBIT = 1_000_000
# The rates of each interface, into the pod and out of it.
RATES = {"eth0": (CAP, CAP), "net1": (4 * MBIT, 3 * MBIT), "net2": (6 * MBIT, 5 * MBIT)}


class Cluster:
    """An API server with one pod and the definitions of networks."""

    def __init__(self, lists):
        cluster = self
        networks = [
            {"name": "second", "interface": "net1", "bandwidth": {
                "ingressRate": RATES["net1"][0], "ingressBurst": RATES["net1"][0] // 2,
                "egressRate": RATES["net1"][1], "egressBurst": RATES["net1"][1] // 2}},
            {"name": "third", "interface": "net2"}]
        meta = {"namespace": ARGS["K8S_POD_NAMESPACE"]}
        self.objects = {POD: {
            "kind": "Pod", "apiVersion": "v1", "status": {}, "spec": {"containers": []},
            "metadata": dict(meta, name=ARGS["K8S_POD_NAME"], uid=ARGS["K8S_POD_UID"],
                             annotations={NETWORKS: json.dumps(networks)})}}
        for name, conflist in lists.items():
            path = f"{GROUP}/namespaces/{meta['namespace']}/network-attachment-definitions"
            self.objects[f"{path}/{name}"] = {
                "kind": "NetworkAttachmentDefinition", "apiVersion": GROUP[6:],
                "metadata": dict(meta, name=name),
                "spec": {"config": json.dumps(conflist)}}

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def answer(self, thing):
                body = json.dumps(thing or {"kind": "Status", "code": 404}).encode()
                self.send_response(200 if thing else 404)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_GET(self):
                self.answer(cluster.objects.get(self.path.partition("?")[0]))

            def do_PUT(self):
                # Multus notes the status of the networks in the pod's annotations, in
                # protobuf's form; nobody here reads it.
                self.rfile.read(int(self.headers["Content-Length"]))
                self.answer(cluster.objects[POD])

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def kubeconfig(self, path):
        url = f"http://127.0.0.1:{self.server.server_port}"
        with open(path, "w") as f:
            json.dump({"kind": "Config", "apiVersion": "v1", "current-context": "c",
                       "clusters": [{"name": "c", "cluster": {"server": url}}],
                       "contexts": [{"name": "c", "context": {"cluster": "c"}}]}, f)
        return path


def without_routes(main):
    """Only the default network has a default route."""
    return dict(main, ipam={k: v for k, v in main["ipam"].items() if k != "routes"})


def make_lists(r):
    main = {name: plugin for name, (plugin, _, _) in mains(r.tmp.name).items()}

    def conflist(name, *plugins):
        return {"cniVersion": "1.0.0", "name": name, "plugins": list(plugins)}

    into, out = RATES["net2"]
    return (conflist("first", main["ptp"], NATRA),
            {"second": conflist("second", without_routes(main["bridge"]), NATRA),
             "third": conflist("third", without_routes(main["macvlan"]),
                               dict(NATRA, ingressRate=into, ingressBurst=into // 2,
                                    egressRate=out, egressBurst=out // 2))})


def multus_conf(r, first, cluster):
    return {"type": "multus", "capabilities": NATRA["capabilities"],
            "kubeconfig": cluster.kubeconfig(f"{r.tmp.name}/kubeconfig"),
            "cniDir": f"{r.tmp.name}/multus", "binDir": r.bin,
            "logFile": f"{r.tmp.name}/multus.log", "logLevel": "debug",
            "delegates": [first]}


def measure(r, rep, a, pod, ifname, pod_ip):
    peer, peer_ip = {"eth0": ("node", "10.71.0.1"), "net1": ("node", "10.72.0.1"),
                     "net2": ("lan", "10.73.0.1")}[ifname]
    got = r.rates(pod, pod_ip, r.peer(peer), peer_ip, a.settle, a.seconds)
    for way, rate, cap in zip(("in", "out"), got, RATES[ifname]):
        rep.near(f"{ifname}: cap {way}", rate / MBIT, cap / MBIT, 0.10, " Mbit/s")


def address(pod, ifname):
    found = json.loads(pod.run("ip", "-j", "-4", "addr", "show", "dev", ifname))
    return found[0]["addr_info"][0]["local"]


def rates_of(pod):
    return {ifname: limits(attachment(pod.path, ifname))[:2] for ifname in RATES}


def story(r, rep, a, cni, c, pod):
    cni.add(c)
    rep.equal("limits of each interface", rates_of(pod), RATES)
    rep.equal("ids", sorted(x["id"] for x in attachments()),
              sorted(f"{net}/{c.id}/{ifname}" for net, ifname in
                     zip(("first", "second", "third"), RATES)))
    for ifname in RATES:
        rep.equal(f"{ifname}: programs", programs(pod, ifname), [1, 1])
        rep.measure(ifname, measure, r, rep, a, pod, ifname, address(pod, ifname))
    cni.check(c)
    second = attachment(pod.path, "net1")["id"]
    natractl("set", second, "--ingress-rate", "8M")
    cni.check(c)
    rep.equal("a live edit of one", rates_of(pod),
              dict(RATES, net1=(8 * MBIT, RATES["net1"][1])))
    # Multus' CHECK is about the default network only.
    natractl("detach", attachment(pod.path, "eth0")["id"])
    fails(rep, "CHECK without the limits of eth0", cni.check, c,
          words=("not attached",), by="multus")
    cni.delete(c)
    rep.equal("left after DEL", (attachments(), pins()), ([], []))
    cni.delete(c)


def main(rep, a):
    with Lan() as r:
        first, others = make_lists(r)
        cluster = Cluster(others)
        os.symlink(f"{a.programs}/multus", f"{r.bin}/multus")
        for name in os.listdir(plugin.DEBIAN):
            if not os.path.exists(f"{r.bin}/{name}"):
                os.symlink(f"{plugin.DEBIAN}/{name}", f"{r.bin}/{name}")
        cni = r.libcni("multus-cni-network", [multus_conf(r, first, cluster)])
        pod = Ns("pod-multus")
        r.pods.append(pod)
        c = Container("multus0123456789", pod.path, args=ARGS,
                      capability_args=CAPABILITIES)
        try:
            story(r, rep, a, cni, c, pod)
        except Exception:
            with open(f"{r.tmp.name}/multus.log") as f:
                print(f.read()[-3000:])
            raise


if __name__ == "__main__":
    plugin.run_script(main,
        option("--seconds", type=float, default=3),
        option("--settle", type=float, default=2),
        prepare=lambda a: setattr(a, "programs", built("multus")))
