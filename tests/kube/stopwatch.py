#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Counts the commands and the seconds from the files of a release to a capped pod, by chart, by manifest
and by package, and from "my pod is slow" to its answer. Each command of `kubectl natra` is used on the way.

The commands are those of the pages, by a shell. What a cluster has and this node has not is stood in
for, and is no command: the DaemonSet's controller, and the scheduler.
"""
import atexit
import copy
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
from pathlib import Path

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, f"{HERE}/../deploy")
sys.path.append(f"{HERE}/../bench")     # behind this directory, which has a pods.py, too
import kube
import machine
from agentpod import DEPLOY, ROOT, Agent
from api import Refused
from cache import HELM, need
from commands import sh
from node import NAME, WORK, wait, write, write_network
from pods import IN, OUT, pod_object, rates
from script import option, some_of
from traffic import Traffic

SPACE = "kube-system"
RATE = 10_000_000
VERSION = re.search(r" version: '(.*)'", Path(f"{ROOT}/meson.build").read_text())[1]
# The image is named by its digest, as in a registry; containerd's transfer service (without --local)
# does not name that of an index.
IMPORT = "ctr -n k8s.io images import --local --digests --base-name {} natra-{}.oci.tar"
READY = f"kubectl -n {SPACE} rollout status daemonset/natra-agent --timeout=60s"
ANNOTATE = f"kubectl annotate pod web {IN}=10M {OUT}=10M"
# What the table says of each, and the most commands.
STEPS = {"chart": ("files to a capped pod, by chart", 4), "manifest": ("by manifest", 4),
         "package": ("by package, on a node", 4), "slow": ('"my pod is slow" to its answer', 2)}
# A busy machine starts containers slowly.
SECONDS = 60


class Watch:
    """Runs an operator's commands in a directory, and counts them."""

    def __init__(self, report, name, directory, env):
        self.report, self.name, self.directory, self.env = report, name, directory, env
        self.count, self.begin = 0, time.monotonic()

    def __call__(self, command):
        self.count += 1
        p = subprocess.run(["bash", "-c", command], cwd=self.directory, env=self.env, text=True,
                           timeout=90, stdin=subprocess.DEVNULL, capture_output=True)
        print(f"     $ {command}", flush=True)
        if p.returncode:
            raise RuntimeError(f"{command}: exit {p.returncode}: {p.stdout}{p.stderr}")
        return p.stdout

    def end(self):
        seconds = time.monotonic() - self.begin
        text, most = STEPS[self.name]
        self.report.most(f"{self.name}: commands", self.count, most)
        self.report.most("  seconds", seconds, SECONDS)
        return f"| {text} | {self.count} | {seconds:.1f} |"


class Controller(threading.Thread):
    """Makes and removes the agent's pod as the DaemonSet comes and goes, and says when it is ready."""

    PATH = f"/apis/apps/v1/namespaces/{SPACE}/daemonsets/natra-agent"

    def __init__(self, cluster):
        super().__init__(daemon=True)
        # A connection is one thread's.
        self.cluster = copy.copy(cluster)
        self.cluster.pods = cluster.pods.copy()
        self.api = self.cluster.api = self.cluster.pods.api
        self.ends, self.agent = False, None
        self.start()

    def daemon_set(self):
        try:
            return self.api.get(self.PATH)
        except Refused as e:
            if e.status != 404:
                raise
            return None

    def status(self, found):
        ready = int(self.agent.ready())
        status = {"observedGeneration": found["metadata"]["generation"], "currentNumberScheduled": 1,
                  "desiredNumberScheduled": 1, "updatedNumberScheduled": 1, "numberMisscheduled": 0,
                  "numberReady": ready, "numberAvailable": ready}
        if found["status"].get("numberReady") != ready or "observedGeneration" not in found["status"]:
            self.api.patch(f"{self.PATH}/status", {"status": status})

    def run(self):
        while not self.ends:
            found = self.daemon_set()
            if found and not self.agent:
                agent = Agent(self.cluster)
                agent.objects, agent.space = [found], SPACE
                agent.start(wait_ready=False)
                self.agent = agent
            elif found:
                self.status(found)
            elif self.agent:
                self.agent.stop()
                self.agent = None
            time.sleep(0.05)

    def end(self):
        wait(lambda: not self.agent, "the agent stays", 60)
        self.ends = True
        self.join()


def make_release(to, archive, registry):
    """Make what tools/release makes for this machine's architecture and the stopwatch takes."""
    with tarfile.open(archive) as tar:
        [image] = json.load(tar.extractfile("index.json"))["manifests"]
    chart = f"{to}/chart/natra"
    shutil.copytree(f"{DEPLOY}/chart", chart)
    values = Path(chart, "values.yaml")
    values.write_text(re.sub(r"(?m)^  digest: .*", f"  digest: {image['digest']}", re.sub(
        r"(?m)^  repository: .*", f"  repository: {registry}", values.read_text())))
    with tarfile.open(f"{to}/natra-chart-{VERSION}.tgz", "w:gz") as tar:
        tar.add(chart, "natra")
    sh(f"{DEPLOY}/manifests", f"{to}/manifests", timeout=120,
       env=dict(os.environ, CHART=chart, HELM=HELM))
    shutil.copy(f"{to}/manifests/default/install/natra.yaml", f"{to}/install-default.yaml")
    shutil.copy(archive, f"{to}/natra-{VERSION}.oci.tar")


def make_packages(to):
    stage = f"{to}/stage"
    if "NATRA_STAGES" in os.environ:
        stage = f"{os.environ['NATRA_STAGES']}/stage-amd64"
    else:
        sh(f"{ROOT}/tools/package/stage", "amd64", stage, timeout=1800)
    sh(f"{ROOT}/tools/package/build", "amd64", stage, to, timeout=120)


def made_at(release):
    """Return the commit of a release's files, as their provenance has it."""
    with open(f"{release}/provenance.json") as f:
        statement = json.load(f)
    [source] = statement["predicate"]["buildDefinition"]["resolvedDependencies"]
    return source["digest"]["gitCommit"][:10]


def is_capped(cluster, pods):
    """Measure that the pod's traffic is within its limit, and return the traffic."""
    traffic = Traffic(cluster.client, pods)
    time.sleep(1)
    for stream, rate in traffic.rates(2).items():
        cluster.report.most(f"  {stream[1]} the pod, Mbit/s", rate / 1e6, 1.2 * RATE / 1e6)
    return traffic


def limited(cluster):
    wait(lambda: cluster.rates() == {"web": (RATE, RATE)}, lambda: f"{cluster.rates()}", 60, 0.02)


def by_cluster(cluster, watch, install, remove):
    """Install natra on the cluster, and limit a pod that runs already."""
    pods = cluster.pods.start({"web": {}})
    controller = Controller(cluster)
    watch.begin = time.monotonic()
    watch(IMPORT.format(cluster.arguments.registry, VERSION))
    watch(install)
    watch(READY)
    watch(ANNOTATE)
    limited(cluster)
    rows = {watch.name: watch.end()}
    traffic = is_capped(cluster, pods)
    if watch.name == "chart":
        rows["slow"] = slow(watch)
        each_command(watch, cluster)
    traffic.close()
    cluster.pods.end(["web"])
    Watch(watch.report, "", watch.directory, watch.env)(remove)
    controller.end()
    images = [i for i in cluster.node.ctr("images", "ls", "-q").split()
              if i.startswith(cluster.arguments.registry)]
    cluster.node.ctr("images", "rm", "--sync", *images)
    sh(os.environ["NATRACTL"], "uninstall", "--platform", "default")
    return rows


def slow(before):
    """A pod has a stream each way, and its owner asks why it is slow."""
    watch = Watch(before.report, "slow", before.directory, before.env)
    said = watch("kubectl natra doctor default/web")
    watch.report.check("  doctor", said.strip()[-100:], "its limits hold", "sound" in said)
    said = watch("kubectl natra stats default/web")
    watch.report.true("  stats: it loses or waits for packets at its limit", bool(
        re.search(r"(dropped|marked|paced)\D+[1-9]", said)))
    return watch.end()


def each_command(before, cluster):
    """Use each command of kubectl natra, while the pod has a stream each way."""
    report, watch = before.report, Watch(before.report, "", before.directory, before.env)
    pod = "default/web"
    for words, wanted in {
            "status": rf"^{NAME} +ready +{VERSION} .* (paced|policed) +{re.escape(platform.release())}$",
            "list": rf"^{NAME}:\n(.*\n)*{pod} +\S+ +\S+ +10M +\S+ +10M +ok ",
            "list --wide": rf"^{NAME}:\n(.*\n)*.* 10 Mbit/s +10 Mbit/s .* ok +{pod}$",
            "doctor": rf"^{NAME}:\nsound: natra {VERSION} .* 1 limited$",
            f"show {pod}": rf"label +{pod}(.*\n)* +ingress +10 Mbit/s(.*\n)*.*\(this\)",
            f"check {pod}": "^ok$",
            "top": rf"^{NAME}:\n(.*\n)*{pod} +\S+ +ingress +10M ",
            f"top {pod}": r"^ingress +tcp +\S+:\d+",
            "events": rf"^{NAME}:\n(.*\n)*.* heavy .*{pod}$",
            f"events {pod}": rf" heavy .*{pod}$"}.items():
        said = watch(f"kubectl natra {words}")
        report.check(f"  {words}", said.strip()[-60:], wanted, bool(
            re.search(wanted, said, re.M)))
    sysdump(watch, cluster, pod)


def sysdump(watch, cluster, pod):
    """What a bug report needs is in one file that others cannot read, without secrets."""
    report, path = watch.report, Path(watch.directory, watch("kubectl natra sysdump").strip())
    report.equal("  sysdump: its mode", path.stat().st_mode & 0o777, 0o600)
    with tarfile.open(path) as tar:
        files = {m.name.split("/", 1)[1]: tar.extractfile(m).read().decode()
                 for m in tar.getmembers() if m.isfile()}
    path.unlink()
    parts = ("version", "probe", "list", "stats", "groups", "events", "metrics", "doctor", "log", "log-before", "pod")
    report.equal("  sysdump: its files", sorted(files), sorted(
        ("agents", "version", *(f"{NAME}/{part}" for part in parts))))
    # The agent has not begun anew, so it has no log before.
    report.equal("  sysdump: parts that failed", [
        name for name, text in files.items() if re.search(r"^exit \d+$", text, re.M)], [f"{NAME}/log-before"])
    report.equal("  sysdump: the pod is in", [
        part for part in ("list", "metrics") if pod.split("/")[1] not in files[f"{NAME}/{part}"]], [])
    everything = "".join(files.values())
    hidden = [cluster.node.token, *Path(cluster.node.key).read_text().split("\n")[1:3]]
    report.equal("  sysdump: secrets", [re.findall(r"eyJ[\w-]{16,}|PRIVATE KEY", everything), [
        text for text in hidden if text in everything]], [[], []])


def by_package(cluster, watch):
    """Install the packages on the node; a pod that starts then has its limits by annotations."""
    annotated = {"web": rates("10M", "10M")}
    write(f"{watch.directory}/web.json", json.dumps(pod_object("web", annotated["web"])))
    watch.begin = time.monotonic()
    watch(f"dpkg -i natractl_{VERSION}*_amd64.deb natra-cni_{VERSION}*_amd64.deb")
    watch("natractl install --platform default")
    watch("kubectl apply -f web.json")
    pods = cluster.pods.started(annotated)
    watch("natractl check default/web")
    limited(cluster)
    rows = {watch.name: watch.end()}
    is_capped(cluster, pods).close()
    cluster.pods.end(["web"])
    sh("natractl", "uninstall", "--platform", "default")
    return rows


def private_usr():
    """Let packages be installed without changing the machine's /usr."""
    for name in ("upper", "work"):
        os.makedirs(f"/run/natra-usr/{name}")
    sh("mount", "-t", "overlay", "overlay", "-o",
       "lowerdir=/usr,upperdir=/run/natra-usr/upper,workdir=/run/natra-usr/work", "/usr")


def main(cluster, a):
    private_usr()
    write_network()
    cluster.node.start()
    report, node = cluster.report, cluster.node
    report.shown("versions", node.versions())
    path = f"{os.path.dirname(HELM)}:{a.kubectl}:{ROOT}/tools/kubectl:{os.environ['PATH']}"
    env = dict(os.environ, PATH=path, HOME=WORK, KUBECONFIG=node.admin_kubeconfig("stopwatch"))
    chart, manifest = f"natra-chart-{VERSION}.tgz", "install-default.yaml"
    ways = {
        "chart": lambda w: by_cluster(
            cluster, w, f"helm install natra {chart} -n {SPACE} --set platform=default",
            f"helm uninstall natra -n {SPACE}"),
        "manifest": lambda w: by_cluster(cluster, w, f"kubectl apply -f {manifest}",
                                         f"kubectl delete -f {manifest}"),
        "package": lambda w: by_package(cluster, w),
    }
    rows = {}
    for way in a.way:
        rows |= ways[way](Watch(report, way, a.release, env))
    table = "\n".join(["| from | commands | seconds |", "|---|---|---|",
                       *(rows[name] for name in STEPS if name in rows), ""])
    if a.table:
        write(a.table, f"{a.printed}\n{a.made}, one run of each way; the load was {a.load:.0f} before it "
              f"and {os.getloadavg()[0]:.0f} behind it.\n\n{table}")
    print(table)


def prepare(a):
    if a.table:
        a.printed, a.load = machine.printed_by("kube/stopwatch.py"), os.getloadavg()[0]
        a.made = f"A release of commit {made_at(a.release)}" if a.release else "Files made of this commit"
    a.kubectl = sh(f"{ROOT}/tests/kube/build", "kubectl", timeout=1800).strip()
    a.registry = "ghcr.io/" + sh(f"{ROOT}/tools/repository").split("/")[1].lower() + "/natra"
    # What is written beside the files goes with the node.
    release = a.release and os.path.realpath(a.release)
    a.release = tempfile.mkdtemp(prefix="natra-stopwatch-", dir="/var/tmp")
    atexit.register(shutil.rmtree, a.release, ignore_errors=True)
    if release:
        for name in os.listdir(release):
            os.symlink(f"{release}/{name}", f"{a.release}/{name}")
        return
    make_release(a.release, a.image, a.registry)
    if "package" in a.way:
        make_packages(a.release)


if __name__ == "__main__":
    need(HELM)
    kube.run_script(main, some_of("way", ("chart", "manifest", "package")),
                    option("--table", help="write the table to this file"),
                    option("--release", help="a directory of tools/release; default: build what is "
                           "taken from it"), prepare=prepare)
