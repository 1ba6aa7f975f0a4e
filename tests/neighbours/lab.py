# SPDX-License-Identifier: BSD-2-Clause
"""Runs natra beside a neighbour, a real one, on the node of tests/kube.

For each attach mode the agent's pod installs natra, and a limited pod gets streams in both
directions, from beyond the node and from a pod on it. They go on while the neighbour is
restarted, its policy is changed, natra is upgraded, and uninstalled. A line of a table says what
came out: Mbit/s in and out, how many connections the neighbour's policy allowed or denied as it
says, the most that passed in any 10 ms and in any second of all this, in parts of the limit, and
what natra says of it: first what ADD does, then natractl's check and doctor.
"""
import json
import math
import os
import socket
import sys
import time
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [f"{HERE}/../kube", f"{HERE}/../cni"]
import kube
from agentpod import Agent, manifest
from commands import sh
from image import NEXT, read_archive, write_next
from install import KEPT, exit_codes, own_files
from limiters import Natra
from node import NAME, PODS, WORK, Program, wait, write
from place import isolate_node
from pods import rates
from plugin import attachments, natractl, pins
from script import option
from traffic import Recorder, Traffic

MBIT = 1_000_000
CAPS = {"in": 10 * MBIT, "out": 5 * MBIT}
MODE = option("--mode", help="attach modes, by comma; default: all of natra's")
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
POLICIES = "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies"
NEXT_NATRACTL = f"{WORK}/next-natractl"
# The streams' ports are above these. A policy allows the second one after its change.
DENIED, LATER = 900, 901
# A bucket has so many seconds of the rate, and that of the backstop in the pod so many at 10 Mbit/s.
# Programs of another build begin with a full one, so two of them can be in one second. Without a
# limit hundreds of times as much passes.
BURST, BACKSTOP_BURST, BURSTS = 0.5, 0.97, 1.9
SPAN = 3        # seconds of a measurement
# So many times its cap a direction has that a mode leaves without a limit. Its streams send no
# more than the other number, since the machine could do nothing else beside tens of Gbit/s.
UNLIMITED, OFFERED = 3, 20
# Cilium compiles programs before a policy is in force.
CHANGE_SECONDS = 180
BOTH = ("in", "out")
KEYS = ("beside", "mode", "at first", "same node", "policy", "it restarts", "its policy changes",
        "natra upgraded", "natra uninstalled", "policy held", "most in 10 ms", "most in 1 s",
        "ADD", "check", "doctor")
# What doctor says of every pod here: this kernel may have no fq.
OF_THE_KERNEL = {"not-paced"}


class Neighbour:
    """What runs beside natra. A subclass starts it, and says what it does."""
    name = None
    policies = False
    # By mode, the directions in which natra says that no limit holds beside it, and those of
    # them that have none.
    said, lost = {}, {}
    # The modes in which it removes natra's hook into the pod, until natra-agent puts it back. What
    # passes in that time is not judged, but that the limit is back then.
    gaps = ()
    # The modes in which nothing that natra has on the host side sees what comes into the pod, so that
    # the backstop judges it alone.
    backstop = ()
    health = None       # the address, or the request, that wait_healthy() asks

    def __init__(self, cluster):
        self.cluster, self.node, self.api = cluster, cluster.node, cluster.api
        self.program = None

    def prepare(self):
        """Write what has to be there before the runtime starts."""

    def start(self):
        """Start it, and return when it works."""
        raise NotImplementedError

    def stop(self):
        self.program.stop(30)

    def restart(self):
        self.stop()
        self.start()

    def natra_is_there(self):
        """natra was installed."""

    def natra_goes(self):
        """natra's uninstalling pod runs."""

    def pods_are_gone(self):
        """The pods have ended, and natra's uninstalling pod waits for that."""

    def run(self, program, *words):
        self.program = Program(program.rpartition("/")[2], program, *words)
        return self.program

    def log(self):
        return self.program.tail(40) if self.program else "did not start"

    def give_range(self):
        """Give the node its pods' addresses, as a controller of the cluster does."""
        self.api.patch(f"/api/v1/nodes/{NAME}", {"spec": {
            "podCIDR": PODS, "podCIDRs": [PODS]}})

    def wait_healthy(self, seconds):
        """Wait until the program says by HTTP that it works."""
        def healthy():
            try:
                with urllib.request.urlopen(self.health, timeout=2):
                    return True
            except OSError:
                return False

        wait(lambda: self.program.running() and healthy(), self.log, seconds, 0.5)


def service_account(node):
    """Let programs on the node reach the API server as they do in a pod."""
    directory = "/var/run/secrets/kubernetes.io/serviceaccount"
    os.makedirs(directory, exist_ok=True)
    with open(f"{WORK}/tls/apiserver.crt") as f:
        write(f"{directory}/ca.crt", f.read())
    write(f"{directory}/token", node.token)
    write(f"{directory}/namespace", "kube-system")
    host, port = node.api.host, node.api.port
    os.environ.update(KUBERNETES_SERVICE_HOST=host, KUBERNETES_SERVICE_PORT=str(port),
                      NODE_NAME=NAME, MULTUS_NODE_NAME=NAME, K8S_NODE_NAME=NAME)


class Lanes(Traffic):
    """Streams into the limited pod and out of it, of which each direction counts as one."""

    def __init__(self, limited, others, unlimited):
        self.streams = {}
        for other in others:
            self.streams |= Traffic(other, {other.name: limited}).streams
        for (_, way), stream in self.streams.items():
            if way in unlimited:
                stream.send_at_most(OFFERED * CAPS[way] / len(others))

    def read(self):
        now, each = super().read()
        return now, {way: sum(n for (_, w), n in each.items() if w == way) for way in CAPS}

    def shares(self, seconds):
        """Return the bit/s of each stream by itself."""
        begin, before = super().read()
        time.sleep(seconds)
        end, after = super().read()
        return {k: (after[k] - before[k]) * 8 / (end - begin) for k in before}


def table(*rows):
    for row in rows:
        print("| " + " | ".join(row) + " |", flush=True)


def connects(src, dst, port, seconds=1):
    """Return whether src can connect to a port of dst."""
    with dst:
        listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("", port))
    listener.listen()
    with src:
        s = socket.socket()
    s.settimeout(seconds)
    try:
        s.connect((dst.ip, port))
        return True
    except OSError:
        return False
    finally:
        s.close()
        listener.close()


def in_and_out(rates_):
    return f"{rates_['in'] / MBIT:.1f}, {rates_['out'] / MBIT:.1f}"


def policy(*ports):
    """Return a policy for the limited pod: the streams' ports and these, both ways."""
    allowed = [{"protocol": "TCP", "port": 1024, "endPort": 65535}] + \
        [{"protocol": "TCP", "port": port} for port in ports]
    return {"metadata": {"name": "limited"}, "spec": {
        "podSelector": {"matchLabels": {"name": "limited"}},
        "policyTypes": ["Ingress", "Egress"],
        "ingress": [{"ports": allowed}], "egress": [{"ports": allowed}]}}


class Scene:
    """The limited pod in one attach mode, and what it got so far."""

    def __init__(self, neighbour, agent, mode):
        self.neighbour, self.agent, self.mode = neighbour, agent, mode
        self.cluster, self.report = neighbour.cluster, neighbour.cluster.report
        self.said, self.lost = neighbour.said.get(mode, ()), neighbour.lost.get(mode, ())
        self.backstop = mode in neighbour.backstop

    def words(self):
        """Return the agent's arguments. ADD refuses a mode that loses a limit unless it is told
        to go on."""
        return [f"--conf=attachMode={self.mode}",
                *(["--conf=onError=continue"] if self.said else [])]

    def install(self):
        self.agent.start(arguments=self.words())
        self.neighbour.natra_is_there()

    def annotations(self):
        return rates(*(f"{rate // MBIT}M" for rate in CAPS.values()))

    def limits(self):
        """Return the rates in and out of the pods that natra limits."""
        return {"limited": tuple(CAPS.values())}

    def pods(self):
        found = self.cluster.pods.start({"limited": self.annotations(), "peer": None})
        self.limited, self.peer = found["limited"], found["peer"]
        self.report.equal(f"{self.mode}: limits", self.cluster.rates(), self.limits())
        self.report.equal("  mode", self.attachment()["mode"], self.mode)

    @staticmethod
    def attachment():
        return next(a for a in attachments() if a["label"].endswith("/limited"))

    def allows(self, what, **wanted):
        """Compare what the policy lets pass with what it says."""
        client = self.cluster.client
        for port, good in wanted.items():
            port = int(port.lstrip("p"))
            for way, src, dst in (("in", client, self.limited), ("out", self.limited, client)):
                try:
                    wait(lambda: connects(src, dst, port) == good, "policy", CHANGE_SECONDS)
                    got = good
                except RuntimeError:
                    got = not good
                self.verdicts.append(got == good)
                self.report.equal(f"  {what}: port {port} {way}, allowed", got, good, exact=False)

    def policed(self, what, ports, **wanted):
        """Make the policy of these ports, if the neighbour has policies."""
        if not self.neighbour.policies:
            self.cells.append("–")
            return
        path, thing = POLICIES, policy(*ports)
        if what == "policy changed":
            self.cluster.api.patch(f"{path}/limited", {"spec": thing["spec"]})
        else:
            self.cluster.api.create(path, thing)
        self.allows(what, **wanted)
        self.measure(what)

    def measure(self, what):
        """Measure both directions, and note them for the table."""
        def cell():
            got = self.lanes.rates(SPAN)
            for way, rate in got.items():
                name, part = f"  {what}: {way}", rate / CAPS[way]
                if way in self.lost:
                    self.report.least(f"{name}, without a limit", part, UNLIMITED)
                elif way == "in" and self.backstop and what != "at first":
                    # A change of the neighbour's may stop the streams, and the bucket's burst
                    # comes behind that.
                    self.report.least(f"{name}, of the cap", part, 0.9)
                    self.report.most(f"{name}, of the cap", part, 1.1 + BACKSTOP_BURST / SPAN)
                else:
                    self.report.near(name, rate / MBIT, CAPS[way] / MBIT, 0.1, " Mbit/s")
            return got
        self.cells.append(in_and_out(self.report.measure(f"{self.mode}, {what}", cell)))

    def measure_each(self):
        """Look that each stream has a share, and note that of the pod on this node."""
        shares = self.lanes.shares(2)
        for (name, way), rate in shares.items():
            self.report.least(f"  {name}, {way}: has a share", rate / CAPS[way], 0.05)
        self.cells.append(in_and_out({way: shares[self.peer.name, way] for way in BOTH}))

    def check_fails(self, name):
        """Return whether natractl check fails. Counting begins anew when natra-agent puts a hook
        back, and has to tell within a minute what is lost."""
        try:
            return wait(lambda: natractl("check", name, check=False).returncode != 0, "check",
                        60 if self.lost else 0, 1)
        except RuntimeError:
            return False

    def judge(self):
        """Return what natra says of the pod: by ADD, check and doctor."""
        attachment = self.attachment()
        self.report.equal("  mode", attachment["mode"], self.mode)
        check_fails = self.check_fails(attachment["id"])
        doctor = json.loads(natractl("doctor", "--json", check=False).stdout)
        found = {f["check"] for f in doctor["findings"] if "limited" in f["subject"]}
        self.report.equal("  doctor says does-not-hold", "does-not-hold" in found,
                          bool(self.said))
        self.report.equal("  check says ok", not check_fails, not self.lost)
        return ["warns" if self.said else "ok", "fails" if check_fails else "ok",
                ", ".join(sorted(found - OF_THE_KERNEL)) or "sound"]

    def upgrade(self):
        self.agent.stop()
        self.agent.start(image=NEXT, arguments=self.words())
        wait(self.is_current, self.agent.trouble, 30)
        self.measure("natra upgraded")

    def is_current(self):
        """Return whether the limits run the programs of the next build, as that says."""
        said = sh(NEXT_NATRACTL, "list", "--json")
        return all(a["program_is_current"] for a in json.loads(said))

    def uninstall(self):
        self.agent.stop()
        self.agent.start(objects=manifest("uninstall"), wait_ready=False)
        codes = wait(lambda: exit_codes(self.agent.pod()["status"]), self.agent.trouble, 60)
        self.report.equal("  natra uninstalled: exit code while a pod needs it", codes[-1],
                          KEPT)
        self.neighbour.natra_goes()
        wait(lambda: not own_files(), lambda: f"{own_files()} {self.agent.trouble()}", 90)
        self.measure("natra uninstalled")

    def end(self):
        self.lanes.close()
        self.cluster.pods.end(["limited", "peer"])
        self.neighbour.pods_are_gone()
        if self.neighbour.policies:
            self.cluster.api.delete(f"{POLICIES}/limited")
        wait(self.agent.ready, self.agent.trouble, 120)
        self.agent.stop()
        self.report.equal("  left of natra", (attachments(), pins(), own_files()), ([], [], {}))

    def peaks(self, recorder, begin):
        """Return the most in 10 ms and in a second, as multiples of the cap, of what has one."""
        found = []
        for way in BOTH:
            if way in self.lost or way == "in" and self.mode in self.neighbour.gaps:
                continue
            most = [recorder.most(begin, seconds, lambda other, way=way:
                                  CAPS[way] if other == way else math.inf) for seconds in (0.01, 1)]
            burst = BURSTS * (BACKSTOP_BURST if way == "in" and self.backstop else BURST)
            self.report.most(f"  {way}: most in 10 ms, of the cap", most[0], burst / 0.01)
            self.report.most(f"  {way}: most in a second, of the cap", most[1], 1 + burst)
            found.append(most)
        return [max(of) for of in zip(*found)]

    def play(self):
        """Return the line of the table."""
        self.cells, self.verdicts = [], []
        self.install()
        self.pods()
        self.lanes = Lanes(self.limited, (self.cluster.client, self.peer), self.lost)
        recorder = Recorder(self.lanes, 0.01)
        time.sleep(2)
        begin = time.monotonic()
        self.measure("at first")
        self.measure_each()
        self.policed("policy", [], **{f"p{DENIED}": False})
        self.neighbour.restart()
        self.measure("neighbour restarted")
        self.policed("policy changed", [LATER],
                     **{f"p{DENIED}": False, f"p{LATER}": True})
        said = self.judge()
        self.upgrade()
        self.uninstall()
        recorder.stop()
        self.report.equal("  streams that have ended", self.lanes.ended(), [])
        peaks = self.peaks(recorder, begin)
        self.end()
        held = f"{sum(self.verdicts)} of {len(self.verdicts)}" if self.verdicts else "–"
        return [self.neighbour.name, self.mode, *self.cells, held,
                *([f"{peak:.1f}" for peak in peaks] or ["–", "–"]), *said]


def all_scenes(neighbour, agent, arguments):
    """Play the scene of each attach mode."""
    table(KEYS, ["---"] * len(KEYS))
    for mode in arguments.mode.split(",") if arguments.mode else Natra.modes():
        # A scene in which a bound failed is played once more, as a whole.
        table(neighbour.cluster.report.measure(mode, Scene(neighbour, agent, mode).play))


def run(kind, *options, play=all_scenes, isolate=isolate_node):
    """Call play(neighbour, agent, arguments) on a node, whose place isolate() makes, with a neighbour,
    an object of kind(cluster, arguments)."""
    def main(cluster, arguments):
        node = cluster.node
        neighbour = kind(cluster, arguments)
        service_account(node)
        neighbour.prepare()
        node.begin()
        neighbour.start()
        wait(node.ready, neighbour.log, 120)
        cluster.report.shown("versions", node.versions())
        node.load_image(arguments.image)
        write_next(f"{WORK}/next.tar", arguments.image)
        node.load_image(f"{WORK}/next.tar")
        with open(NEXT_NATRACTL, "wb") as f:
            f.write(read_archive(f"{WORK}/next.tar")["bin/natractl"])
        os.chmod(NEXT_NATRACTL, 0o755)
        agent = Agent(cluster)
        agent.create_objects()
        cluster.report.tries = 2
        play(neighbour, agent, arguments)
        neighbour.stop()

    def told(cluster, arguments):
        try:
            main(cluster, arguments)
        except Exception:
            for name in os.listdir("/var/log"):
                if name.endswith(".log"):
                    print(f"--- {name}\n{sh('tail', '-n', '30', f'/var/log/{name}')}")
            raise

    if play is all_scenes:
        options = (MODE, *options)
    kube.run_script(told, *options, isolate=isolate)
