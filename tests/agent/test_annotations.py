#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""natra-agent follows natra's own annotations of running pods, and Calico's, if the
plugin's configuration allows them."""

import parallel
from podnode import natra, wait_until
from test_live import IN, OUT, Case


class Annotations(Case):
    def test_own_annotations(self):
        plugins = ["ptp", natra(allowAnnotations=["ingress-burst"])]
        self.node.attached("net/a/eth0", 1000000, 0)
        self.pod(annotations={IN: "1M"}, plugins=plugins)
        self.start()
        self.api.put("a", {IN: "1M", "natra.io/ingress-burst": "80k",
                           "natra.io/fast-pass": "off"})
        wait_until(lambda: self.calls("configure"), "no change")
        self.assertIn("burst=80000", self.calls("configure")[0])
        self.agent.wait("natra.io/fast-pass is not in allowAnnotations")

    def test_ceiling(self):
        """With "lowest" the configuration's rate is a ceiling for edits, also of a pod whose
        annotation counts in place of what the runtime has sent."""
        for allowed in [], [IN, OUT]:
            with self.subTest(allowed=allowed):
                name = f"p{len(allowed)}"
                self.node.attached(f"net/{name}/eth0", 5000000, 0)
                self.pod(name, {IN: "5M"}, ["ptp", natra(
                    precedence="lowest", ingressRate=10000000, allowAnnotations=allowed)])
                if not self.agent:
                    self.start()
                for annotations, limits in (({IN: "1G", OUT: "1G"}, (10000000, 1000000000)),
                                            ({IN: "4M"}, (4000000, 0)), ({}, (10000000, 0))):
                    self.api.put(name, annotations)
                    self.until(name, limits, 10)

    def test_changed_configuration(self):
        """A pod keeps the configuration that it was made with, also when it is edited; one that
        was made without natra has the agent's."""
        own = natra(precedence="lowest", egressRate=7000000)
        for name, plugins in ("a", ["ptp", own]), ("b", ["ptp"]):
            self.node.attached(f"net/{name}/eth0", 1000000, 7000000)
            self.pod(name, {IN: "1M"}, plugins)
        self.start("--conf", "precedence=lowest", "--conf", "egressRate=3000000")
        self.until("b", (1000000, 3000000))
        self.api.put("a", {IN: "2M"})
        self.until("a", (2000000, 7000000))

    def test_packets_and_connections(self):
        """Limits of packets and connections follow their annotations, Calico's as well,
        if they are allowed and their direction has a rate."""
        plugins = ["ptp", natra(
            allowAnnotations=["ingress-packet-rate", "egress-connection-rate"])]
        self.node.attached("net/a/eth0", 1000000, 0)
        self.pod(annotations={IN: "1M"}, plugins=plugins)
        self.start()
        packets = {"qos.projectcalico.org/ingressPacketRate": "10k"}
        self.api.put("a", {IN: "1M", "natra.io/egress-packet-rate": "5k", **packets})
        wait_until(lambda: self.calls("configure"), "no change")
        self.assertIn("packets=10000,0 connections=0,0", self.calls("configure")[0])
        self.agent.wait("natra.io/egress-packet-rate is not in allowAnnotations")
        self.api.put("a", {IN: "1M", "natra.io/egress-connection-rate": "7", **packets})
        wait_until(lambda: self.api.events, self.agent.log)
        self.assertIn("natra.io/egress-connection-rate: '7': needs a rate",
                      self.api.events[0][1]["message"])
        self.api.put("a", {IN: "1M", OUT: "2M", "natra.io/egress-connection-rate": "7",
                           "natra.io/ingress-packet-rate": "20k", **packets})
        self.until("a", (1000000, 2000000))
        self.assertIn("packets=20000,0 connections=0,7", self.calls("configure")[-1])
        self.api.put("a", {IN: "1M", OUT: "2M"})
        wait_until(lambda: len(self.calls("configure")) == 3, "no removal")
        self.assertIn("packets=0,0 connections=0,0", self.calls("configure")[-1])


if __name__ == "__main__":
    parallel.main(live=True)
