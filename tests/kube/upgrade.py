#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Upgrades natra by its chart to a build of the next ABI, and rolls back by helm, with a real API
server and kubelet, while pods send and receive.

No moment may be without the limit: what passes in any 10 ms is compared with a pod without one.
"""
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../deploy")
import kube
from agentpod import DEPLOY, Agent
from cache import HELM, need
from chart import MBIT, Helm, rollout
from commands import sh
from node import wait, write_network
from plugin import attachments
from pods import rates
from script import option
from traffic import Recorder, Traffic

NEXT = "natra.test/next:1"
RATE = 10 * MBIT
SHORT = 0.01
# Each of the two versions lets a burst of half a second pass at once: 50 times what the cap
# carries in 10 ms.
MOST = 120


def cap(_):
    return RATE


def abis():
    """Return the ABI of each attachment."""
    return sorted({a["abi"] for a in attachments()})


def changed(cluster, helm, agent, words, what):
    """Let helm change the agent's image, and return what the rollout took."""
    begin = time.monotonic()
    helm(*words)
    agent.stop()
    rollout(agent, helm)
    cluster.report.shown(f"{what}: helm to ready, s", f"{time.monotonic() - begin:.1f}")


def way(cluster, helm, agent, recorder, words, what, wanted):
    report, begin = cluster.report, time.monotonic()
    changed(cluster, helm, agent, words, what)
    wait(lambda: abis() == wanted, lambda: f"{abis()} {agent.trouble()}", 60)
    time.sleep(1)
    report.equal(f"{what}: ABI", abis(), wanted)
    report.equal("  limits", cluster.rates(), {"web": (RATE, RATE)})
    report.most("  most in any 10 ms, of the cap",
                recorder.most(begin, SHORT, cap), MOST)
    report.most("  most in any second, of the cap",
                recorder.most(begin, 1, cap), 1.9)


def main(cluster, arguments):
    write_network()
    cluster.node.start()
    report, helm, agent = cluster.report, Helm(cluster), Agent(cluster)
    for image in (arguments.image, arguments.next):
        cluster.node.load_image(image)
    helm("install", "natra", f"{DEPLOY}/chart")
    rollout(agent, helm)
    pods = cluster.pods.start({"web": rates("10M", "10M"), "free": {}})
    # Streams without a limit take the machine, so they end before the upgrade begins.
    traffic = Traffic(cluster.client, {"free": pods["free"]})
    recorder, begin = Recorder(traffic, 0.002), time.monotonic()
    time.sleep(2)
    recorder.stop()
    report.least("without natra: most in any 10 ms, of the cap",
                 recorder.most(begin, SHORT, cap), 1.5 * MOST)
    traffic.close()
    traffic, first = Traffic(cluster.client, {"web": pods["web"]}), abis()
    recorder = Recorder(traffic, 0.002)
    time.sleep(2)
    repository, tag = NEXT.split(":")
    way(cluster, helm, agent, recorder,
        ("upgrade", "natra", f"{DEPLOY}/chart", "--reuse-values", "--set-string",
         f"image.repository={repository},image.tag={tag}"), "upgrade",
        [abi + 1 for abi in first])
    way(cluster, helm, agent, recorder, ("rollback", "natra"), "rollback", first)
    recorder.stop()
    traffic.close()


def prepare(arguments):
    """Build the image of the next ABI, while the script still sees the machine's directories."""
    if not arguments.next:
        arguments.next = sh(f"{DEPLOY}/image", NEXT, timeout=1800,
                            env=dict(os.environ, NATRA_NEXT_ABI="1")).split("\n")[0]


if __name__ == "__main__":
    need(HELM)
    kube.run_script(main, option("--next", help="archive of the image of the next ABI, "
                                 f"named {NEXT}; default: build it"), prepare=prepare)
