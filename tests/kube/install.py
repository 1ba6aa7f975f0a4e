#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Installs natra by its agent's pod, repairs, upgrades and uninstalls it.

Pods start and stop all the time. None may fail to, and no pod may be without its limit
from the agent's first readiness to the uninstallation, in which limits of pods that run
stay, too.
"""
import glob
import hashlib
import json
import os
import threading
import time

import kube
from agentpod import Agent, manifest
from image import NEXT, write_next
from node import BIN_DIR, NET_DIR, WORK, wait, write_network
from pods import rates
from plugin import pins
from traffic import Recorder, Traffic

MBIT = 1_000_000
IN_MBIT, OUT_MBIT = 10, 5
CHURN_THREADS = 2
# A program of another layout begins with a full burst, half a second of the rate.
FIRST_SECOND = 1.9
KEPT = 3                        # exit code: a pod still needs the plugin


def cap(stream):
    return (IN_MBIT if stream[1] == "in" else OUT_MBIT) * MBIT


def both():
    return rates(f"{IN_MBIT}M", f"{OUT_MBIT}M")


class Churn:
    """Starts and stops pods all the time, and checks the limit of each."""

    def __init__(self, cluster):
        self.cluster, self.started, self.wrong = cluster, 0, []
        self.limited = True
        self._end = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(n,), daemon=True)
                         for n in range(CHURN_THREADS)]
        for thread in self._threads:
            thread.start()

    def _run(self, number):
        pods = self.cluster.pods.copy()
        turn = 0
        while not self._end.is_set():
            turn += 1
            name, rate = f"churn{number}-{turn}", turn % 50 + 1
            expected = self.limited
            try:
                pods.start({name: rates(f"{rate}M", f"{rate}M")}, 60)
                got = self.cluster.rates().get(name)
                # Either is right if `limited` is None or has changed meanwhile.
                if expected is not None and expected == self.limited and got != (
                        (rate * MBIT, rate * MBIT) if expected else None):
                    self.wrong.append(f"{name} has {got}, limited: {expected}")
                pods.end([name], 60)
            except Exception as e:  # noqa: BLE001  (the thread would end unseen)
                self.wrong.append(f"{name}: {e}"[:600])
                return
            self.started += 1

    def more(self, count):
        """Wait until that many more pods have come and gone."""
        target = self.started + count
        wait(lambda: self.wrong or self.started >= target, "churn hangs", 120)

    def stop(self):
        self._end.set()
        for thread in self._threads:
            thread.join()


def file_hash(path):
    try:
        with open(path, "rb") as f:
            return hashlib.sha256(f.read()).hexdigest()
    except FileNotFoundError:
        return None


def net_files():
    """Return the text of each file of the runtime's networks."""
    found = {}
    for path in glob.glob(f"{NET_DIR}/**", recursive=True):
        if os.path.isfile(path):
            with open(path) as f:
                found[path] = f.read()
    return found


def own_files():
    return {path: text for path, text in net_files().items() if '"natra"' in text}


def someone_edits(cluster):
    """Delete and change what natra has installed; it must come back."""
    report, before = cluster.report, own_files()
    binary = file_hash(f"{BIN_DIR}/natra")
    for path in before:
        os.unlink(path)
    begin = time.monotonic()
    wait(lambda: own_files() == before, lambda: f"{net_files()}", 15, 0.005)
    report.most("natra's file deleted, to repaired", time.monotonic() - begin, 2, " s")
    (path, text), = before.items()
    # Calico and AWS write in place like this.
    changed = json.loads(text)
    changed.get("plugins", [changed])[-1]["onError"] = "fail"
    with open(path, "w") as f:
        json.dump(changed, f)
    begin = time.monotonic()
    wait(lambda: own_files() == before, lambda: f"{net_files()}", 15, 0.005)
    report.most("natra's file rewritten in place, to repaired",
                time.monotonic() - begin, 2, " s")
    os.unlink(f"{BIN_DIR}/natra")
    begin = time.monotonic()
    wait(lambda: file_hash(f"{BIN_DIR}/natra") == binary, "there is no plugin", 15)
    report.most("plugin deleted, to repaired", time.monotonic() - begin, 2, " s")


def check_rates(report, what, traffic):
    def cell():
        for stream, rate in traffic.rates(2).items():
            report.near(f"{what}, {stream[0]}, {stream[1]}", rate / MBIT,
                        cap(stream) / MBIT, 0.1, " Mbit/s")
    report.measure(what, cell)


def upgrade(cluster, agent, churn):
    """Replace the agent's pod by that of another build, as a rollout does."""
    report, before = cluster.report, file_hash(f"{BIN_DIR}/natra")
    agent.stop()
    churn.more(2)
    report.true("plugin stays without an agent", file_hash(f"{BIN_DIR}/natra") == before)
    write_next(f"{WORK}/next.tar", cluster.arguments.image)
    cluster.node.load_image(f"{WORK}/next.tar")
    seconds = agent.start(image=NEXT)
    report.shown("the next build's pod to ready, s", f"{seconds:.1f}")
    report.true("  another plugin", file_hash(f"{BIN_DIR}/natra") != before)
    churn.more(4)
    report.true("  running pods' programs were upgraded", "upgraded" in agent.log())


def exit_codes(status):
    """Return the exit codes of an init container's runs, as far as they are known."""
    states = [s for c in status.get("initContainerStatuses", ())
              for s in (c.get("lastState", {}), c.get("state", {}))]
    return [s["terminated"]["exitCode"] for s in states if "terminated" in s]


def uninstall(cluster, agent, churn, standing):
    """Put the uninstalling pod in the agent's place, while pods run."""
    report = cluster.report
    limits = {name: cluster.rates()[name] for name in standing}
    agent.stop()
    churn.limited = None
    begin = time.monotonic()
    agent.start(objects=manifest("uninstall"), wait_ready=False)
    wait(lambda: not own_files(), lambda: f"{own_files()} {agent.trouble()}", 30)
    report.shown("uninstalling pod to natra's files gone, s",
                 f"{time.monotonic() - begin:.1f}")
    churn.limited = False
    codes = wait(lambda: exit_codes(agent.pod()["status"]), agent.trouble, 30)
    report.equal("exit code while pods need the plugin", codes[-1], KEPT)
    report.true("  the plugin is there", file_hash(f"{BIN_DIR}/natra"))
    churn.more(4)
    report.equal("  limits of the pods that run", {
        name: cluster.rates().get(name) for name in standing}, limits)


def uninstalled(cluster, agent):
    """No pod needs natra any more: the uninstalling pod gets ready."""
    report = cluster.report
    begin = time.monotonic()
    wait(agent.ready, agent.trouble, 120)
    report.shown("last pod's end to the uninstalling pod ready, s",
                 f"{time.monotonic() - begin:.1f}")
    report.equal("  the plugin", file_hash(f"{BIN_DIR}/natra"), None)
    report.equal("  attachments and pins", (cluster.rates(), pins()), ({}, []))
    agent.stop()


def main(cluster, _):
    report = cluster.report
    primary = write_network()
    with open(primary) as f:
        list_before = f.read()
    cluster.node.start()
    report.shown("versions", cluster.node.versions())
    standing = cluster.pods.start({"before": both()})
    report.equal("limits before natra", cluster.rates(), {})
    agent = Agent.install(cluster)
    report.equal("a pod that ran before", cluster.rates(),
                 {"before": (IN_MBIT * MBIT, OUT_MBIT * MBIT)})
    standing |= cluster.pods.start({"after": both()})
    report.shown("natra's files", " ".join(own_files()))
    traffic = Traffic(cluster.client, standing)
    time.sleep(2)
    check_rates(report, "installed", traffic)
    someone_edits(cluster)
    recorder, begin = Recorder(traffic), time.monotonic()
    churn = Churn(cluster)
    churn.more(2)
    upgrade(cluster, agent, churn)
    uninstall(cluster, agent, churn, standing)
    churn.stop()
    recorder.stop()
    report.most("most in any second, of the cap", recorder.most(begin, 1, cap),
                FIRST_SECOND)
    check_rates(report, "uninstalled, pods that run", traffic)
    traffic.close()
    report.check("pods that started and stopped meanwhile", churn.started, ">= 12",
                 churn.started >= 12)
    report.equal("  of them failed, or without limits", churn.wrong, [])
    with open(primary) as f:
        report.true("the primary list is as it was", f.read() == list_before)
    cluster.pods.end(list(standing))
    uninstalled(cluster, agent)


if __name__ == "__main__":
    kube.run_script(main)
