#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs a node for a long time, and shows that nothing that natra holds grows, and no limit is lost.

Pods come and go, of four kinds, in groups and with classes of peers; the annotations of those that
run are edited; metrics are scraped, and natractl is asked; the agent's pod is replaced once; and two
pods have a stream all the time. Each minute all of it pauses, so that exactly the same pods are
there, and what natra, its agent and the node hold is counted (sample.py). In the end all pods go.
"""
import collections
import glob
import json
import os
import random
import re
import sys
import threading
import time
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
# The modules of this directory take precedence.
sys.path += [f"{HERE}/../{part}" for part in ("harness/python", "cni", "net", "bench")]
import kube
import machine
import sample
from agentpod import Agent
from leaks import LEAKS
from node import wait, write_network
from plugin import PINS, attachments, natractl, pins
from pods import IN, OUT, rates
from script import option
from traffic import Recorder, Traffic

MBIT = 1_000_000
CHURN_THREADS = 2
# So many times in a run what is held is counted, or once a minute if that is less.
SAMPLES_MIN = 12
TEAM, CLASSES = "natra.test/team", "natra.io/classes"
TEAMS = ("blue", "red")
KINDS = ("both", "one way", "group", "classes")
NEAR, FAR = "near", "far"
CONF = ('--conf=group={"name": "{namespace}/{annotation:' + TEAM + '}", "ingressRate": "400M", '
        '"egressRate": "400M"}', f'--conf=allowAnnotations=["{CLASSES}"]')
CAPS = {"in": 20 * MBIT, "out": 10 * MBIT}
CAP_TOLERANCE, SPAN_SECONDS = 0.03, 60
# What doctor says of every pod here: this kernel may have no fq.
OF_THE_KERNEL = {"not-paced"}
EDIT_SECONDS = 10
SCRAPE_SECONDS = 5
PLUGIN_LOG = "/var/log/natra-cni.log"
# So much of what was asked for has to come in the time that is left beside the counts.
CHURN_PART = 0.5
# What has to be nought in each scrape.
SOUND = re.compile(r"^(natra_(?:failed_pods|failed_groups|stuck_jobs|scrape_errors|lost_events|"
                   r"unreadable_events|unreadable_results|contested_hooks|hook_repairs|"
                   r"conflist_repairs|check_failed|refused_edits)(?:_total)?)(?:\{.*\})? ([\d.e+]+)$", re.M)
SHOWN_LINES = 12
COLUMNS = ("minute", "pods", "edits", "life", "rss KiB", "descriptors", "threads", "pins", "maps",
           "programs", "links", "memlock KiB", "banks", "spare slots", "files", "netns", "SUnreclaim KiB",
           "series", "in", "out")


def wanted(place, number, odd=False):
    """Return annotations of the pod in this place, by a number. Those of `odd` are such as an edit
    may ask for: other directions and classes than the kind has."""
    kind = KINDS[place % len(KINDS)]
    into, out = f"{1 + number % 50}M", f"{1 + number % 40}M"
    if kind == "one way":
        return rates(into, out if odd else None)
    if kind == "group":
        return rates(into, None if odd else out) | {TEAM: TEAMS[place // len(KINDS) % len(TEAMS)]}
    if kind == "classes":
        return rates(into, out) | {CLASSES: f"{FAR if odd else NEAR}=10.77.0.0/16,"
                                            f"ingress-rate={into},egress-rate={out}"}
    return rates(None if odd else into, out)


def meant(annotations):
    """Return what these annotations are in force: rates in and out, the group, the classes."""
    def bits(key):
        return int(annotations.get(key, "0M")[:-1]) * MBIT

    group = f"default/{annotations[TEAM]}" if TEAM in annotations else ""
    classes = [(annotations[CLASSES].split("=")[0], bits(IN), bits(OUT))] \
        if CLASSES in annotations else []
    return bits(IN), bits(OUT), group, classes


def in_force():
    """Return the same of each limited pod."""
    return {a["label"].rpartition("/")[2]: (
            a["effective"]["ingress_rate_bits_per_sec"], a["effective"]["egress_rate_bits_per_sec"],
            a["group"], [(c["name"], c["ingress_rate_bits_per_sec"], c["egress_rate_bits_per_sec"])
                         for c in a["classes"]]) for a in attachments()}


class Work:
    """Something that a thread does again and again, and that can be paused between two times."""

    def __init__(self, soak, every):
        self.soak, self.every, self.count = soak, every, 0
        self.rests = threading.Lock()
        self.thread = threading.Thread(target=self.run, daemon=True)

    def run(self):
        while not self.soak.over.wait(self.every * random.uniform(0.8, 1.2)):
            with self.rests:
                try:
                    self.once()
                    self.count += 1
                except Exception as e:  # noqa: BLE001  (the thread would end unseen)
                    self.soak.wrong(f"{type(self).__name__}: {type(e).__name__}: {e}")

    def once(self):
        raise NotImplementedError


class Churn(Work):
    """Replaces one of its pods, and checks the limits of the new one."""

    def __init__(self, soak, every, places):
        super().__init__(soak, every)
        self.places, self.pods = places, soak.pods_of_thread()
        self.turns = 0

    def once(self):
        place = self.places[self.turns % len(self.places)]
        self.turns += 1
        soak, number = self.soak, place + self.turns
        name, annotations = f"pod{place}-{self.turns}", wanted(place, number)
        with soak.lock:
            old, _ = soak.living.pop(place)
        self.pods.start({name: annotations}, 120)
        soak.check_started(name, annotations)
        self.pods.end([old], 120)
        with soak.lock:
            soak.living[place] = name, annotations


class Edits(Work):
    """Edits the annotations of a pod that runs."""

    def __init__(self, soak, every):
        super().__init__(soak, every)
        self.pods = soak.pods_of_thread()

    def ask(self, place, annotations):
        """Edit the pod. The lock is held: it may not end meanwhile."""
        name, before = self.soak.living[place]
        gone = dict.fromkeys(before.keys() - annotations.keys())
        self.pods.annotate(name, annotations | gone)
        self.soak.living[place] = name, annotations

    def once(self):
        with self.soak.lock:
            if not self.soak.living:
                return
            place = random.choice(list(self.soak.living))
            self.ask(place, wanted(place, random.randrange(1000), odd=random.random() < 0.25))

    def restore(self):
        """Ask for what has the shape that the kinds begin with."""
        with self.soak.lock:
            for place, (_, before) in self.soak.living.items():
                shape = wanted(place, 7)
                if shape.keys() != before.keys() or FAR in before.get(CLASSES, NEAR):
                    self.ask(place, shape)


class Asks(Work):
    """Scrapes the metrics, and asks natractl about the pods with streams."""

    def once(self):
        for name in self.soak.streamed:
            natractl("check", f"default/{name}")
        natractl("list")
        if self.soak.agent_away:
            return
        text = scrape()
        for name, value in SOUND.findall(text):
            if float(value):
                self.soak.unsound[name] += 1


def scrape():
    with urllib.request.urlopen("http://127.0.0.1:9810/metrics", timeout=10) as answer:
        return answer.read().decode()


class Soak:
    """All of it, on one node."""

    def __init__(self, cluster, agent, arguments):
        self.cluster, self.agent, self.arguments = cluster, agent, arguments
        self.lock, self.over, self.begin = threading.Lock(), threading.Event(), time.monotonic()
        self.objects = sample.Objects()
        self.living, self.started, self.wrongs, self.rows = {}, 0, [], []
        self.unsound, self.agent_away, self.life = collections.Counter(), False, 1
        self.warnings, self.log_lines, self.findings = {}, set(), []
        self.complaints = len(sample.complaints() or ())
        self.streamed = {f"stream-{way}": way for way in CAPS}
        self.works = []

    def minute(self):
        return (time.monotonic() - self.begin) / 60

    def wrong(self, text):
        self.wrongs.append(f"minute {self.minute():.1f}: {text}"[:800])

    def pods_of_thread(self):
        pods = self.cluster.pods.copy()
        pods.running = self.cluster.pods.running
        return pods

    def check_started(self, name, annotations):
        some = attachments()
        self.objects.note(some)
        got = in_force().get(name)
        if got != meant(annotations):
            self.wrong(f"{name} started with {got}, not {meant(annotations)}")
        self.started += 1

    def populate(self):
        """Start the pods, and the streams."""
        count, pods = self.arguments.pods, self.cluster.pods
        self.living = {place: (f"pod{place}-0", wanted(place, place))
                       for place in range(count)}
        streams = {f"stream-{way}": rates(*(f"{CAPS[way] // MBIT}M" if way == w else None for w in CAPS))
                   for way in CAPS}
        running = pods.start(dict(self.living.values()) | streams, 300)
        for name, annotations in self.living.values():
            self.check_started(name, annotations)
        self.traffic = Traffic(self.cluster.client, {}, ())
        for name, way in self.streamed.items():
            self.traffic.streams |= Traffic(self.cluster.client, {name: running[name]}, (way,)).streams
        self.recorder = Recorder(self.traffic, 1)

    def work(self):
        """Start the threads."""
        every, count = self.arguments.every * CHURN_THREADS, self.arguments.pods
        self.edits = Edits(self, 1 / self.arguments.edits)
        self.works = [self.edits, Asks(self, SCRAPE_SECONDS),
                      *(Churn(self, every, range(n, count, CHURN_THREADS)) for n in range(CHURN_THREADS))]
        self.begin = time.monotonic()
        for work in self.works:
            work.thread.start()

    def held(self, seconds):
        """Wait until all that was asked for is in force."""
        want = {name: meant(annotations) for name, annotations in self.living.values()}

        def missing():
            got = in_force()
            return [f"{name} has {got.get(name)}, not {what}" for name, what in want.items()
                    if got.get(name) != what]
        try:
            wait(lambda: not missing(), "", seconds, 0.2)
        except RuntimeError:
            for text in missing():
                self.wrong(f"{seconds} s after the last edit {text}")

    def rest(self):
        """Pause, count, and go on."""
        for work in self.works:
            work.rests.acquire()
        try:
            self.edits.restore()
            self.held(EDIT_SECONDS)
            if self.arguments.leak:
                LEAKS[self.arguments.leak][0]()
            self.rows.append(self.count())
            self.ask_doctor()
        finally:
            for work in self.works:
                work.rests.release()

    def count(self):
        pid = self.agent.pid()
        series = sum(not line.startswith("#") for line in scrape().splitlines())
        row = sample.sample(pid, self.objects)
        got = self.recorder.span(time.monotonic() - 12, 10) if len(self.recorder.rows) > 15 else {}
        return {"minute": round(self.minute(), 1), "pods": self.started, "edits": self.edits.count,
                "life": self.life, "series": series, **row,
                **{way: round(got.get((name, way), 0) / MBIT, 2) for name, way in self.streamed.items()},
                "open": sample.descriptors(pid)}

    def ask_doctor(self):
        """Ask what is wrong with a node at rest, and read what was said meanwhile."""
        found = json.loads(natractl("doctor", "--json", check=False).stdout)["findings"]
        self.findings += [f"minute {self.minute():.1f}: {f['check']} {f['subject']}: {f['text']}"
                          for f in found if f["check"] not in OF_THE_KERNEL]
        for name in [*self.streamed, *(name for name, _ in self.living.values())]:
            answer = natractl("check", f"default/{name}", check=False)
            if answer.returncode:
                self.findings.append(f"minute {self.minute():.1f}: check {name}: {answer.stderr.strip()}")
        restarts = self.agent.pod()["status"]["containerStatuses"][0]["restartCount"]
        self.findings += [f"the agent was started again {restarts} times"] * bool(restarts)
        self.read_events()
        self.read_logs()

    def read_events(self):
        """Remember all warnings, which the API server keeps for an hour."""
        for e in self.cluster.pods.events():
            if e.get("type") == "Warning" and e["involvedObject"].get("namespace") == "default":
                self.warnings[e["metadata"]["uid"]] = \
                    f"{e['involvedObject']['name']}: {e['reason']}: {e['message'][:200]}"

    def read_logs(self):
        """Remember the errors and warnings of the plugin, and of the agent that runs, which repeats some."""
        text = self.agent.log()
        for path in glob.glob(f"{PLUGIN_LOG}*"):
            with open(path) as f:
                text += f.read()
        self.log_lines |= {line for line in text.splitlines() if re.search(r"\blevel=(error|warn)", line)}

    def replace_agent(self):
        """Replace the agent's pod as a rollout does, while pods come and go."""
        self.read_logs()
        with self.works[1].rests:
            self.agent_away = True
        self.agent.stop()
        time.sleep(self.arguments.every)
        self.cluster.report.shown("the next agent's pod to ready, s", f"{self.agent.start(arguments=CONF):.1f}")
        self.life += 1
        self.agent_away = False

    def run(self):
        """Count until the time is over, and replace the agent in the middle."""
        seconds = self.arguments.minutes * 60
        count = max(SAMPLES_MIN, int(seconds / 60))
        for n in range(1, count + 1):
            time.sleep(max(0, self.begin + n * seconds / count - time.monotonic()))
            self.rest()
            if not n % max(1, count // SHOWN_LINES):
                print(line(self.rows[-1]), flush=True)
            if n == count // 2:
                self.replace_agent()
        for work in self.works:
            work.rests.acquire()
        self.over.set()
        for work in self.works:
            work.rests.release()
            work.thread.join()
        self.recorder.stop()


def line(row):
    return "| " + " | ".join(str(row[name]) for name in COLUMNS) + " |"


def judge_streams(soak):
    """Check each whole minute of each stream."""
    report, rows = soak.cluster.report, soak.recorder.rows
    spans = int((rows[-1][0] - rows[0][0] - 1) // SPAN_SECONDS)
    for stream in rows[0][1]:
        cap = CAPS[stream[1]]
        got = [soak.recorder.rate(stream, rows[0][0] + n * SPAN_SECONDS, SPAN_SECONDS)
               for n in range(spans)]
        if got:
            report.near(f"{stream[0]}: worst of {len(got)} minutes", max(got, key=lambda r: abs(r / cap - 1))
                        / MBIT, cap / MBIT, CAP_TOLERANCE, " Mbit/s")
    report.equal("connections that have ended", soak.traffic.ended(), [])


def none(report, what, found):
    report.check(what, len(found), 0, not found)
    for text in list(found)[:20]:
        print(f"     {text}")


def verdicts(soak):
    report = soak.cluster.report
    sample.judge(report, soak.rows)
    judge_descriptors(soak)
    judge_streams(soak)
    asked = soak.arguments.minutes * 60 / soak.arguments.every
    report.least(f"pods that were replaced, of {asked:.0f}", soak.started - soak.arguments.pods,
                 CHURN_PART * asked)
    none(report, "of pods that started and edits: wrong", soak.wrongs)
    none(report, "warnings in events", list(soak.warnings.values()))
    none(report, "what is said of the node at rest", soak.findings)
    errors = sorted(text for text in soak.log_lines if "level=error" in text)
    none(report, "errors in the logs of the agent and the plugin", errors)
    none(report, "ADD that failed", [text for text in errors if "command=ADD" in text])
    report.equal("metrics of faults that were not 0", dict(soak.unsound), {})
    now = sample.complaints()
    none(report, "complaints of the kernel" + (" (unreadable)" if now is None else ""),
         (now or [])[soak.complaints:])
    for text, times in collections.Counter(re.sub(r"time=\S+|\d+", "N", text)
                                           for text in soak.log_lines if "level=warn" in text).most_common(8):
        report.shown(f"  {times} warnings of the log", text[:200])


def judge_descriptors(soak):
    """Show what the agent has open if that has changed."""
    most, least = (f(soak.rows[1:], key=lambda row: row["descriptors"]) for f in (max, min))
    more = collections.Counter(most["open"]) - collections.Counter(least["open"])
    if more:
        soak.cluster.report.shown("the agent had open besides", dict(more))


def all_go(soak, before):
    """End all pods, and the agent. Nothing may be left of them."""
    report, cluster = soak.cluster.report, soak.cluster
    soak.traffic.close()
    cluster.pods.end(list(cluster.pods.phases()), 300)
    time.sleep(1)
    after = sample.node()
    for name in ("netns", "interfaces", "results", "addresses", "tasks", "files", "half-written files"):
        report.equal(f"without pods: {name}", after[name], before[name])
    report.equal("  attachments, and pins but that of all groups", (attachments(), [
        path for path in pins() if not path.endswith("/groups/map")]), ([], []))
    report.equal("  groups", json.loads(natractl("group", "show", "--json")), [])
    soak.read_events()
    soak.read_logs()
    soak.agent.stop()
    natractl("gc")
    report.equal("without an agent, after natractl gc: pins", sample.entries(PINS), [])
    none(report, f"  of {len(soak.objects.ever)} programs, maps and links that were seen, left",
         [f"{kind} {number}" for kind, number in soak.objects.left()])


def write_table(soak, path):
    report, args = soak.cluster.report, soak.arguments
    with open(path, "w") as f:
        print(f"""{args.printed}
{soak.versions}.
{args.pods} pods of four kinds and two with streams, one replaced every {args.every:g} s, annotations edited {args.edits:g} times
a second, for {args.minutes:g} minutes: tests/kube/soak.py --minutes {args.minutes:g}. Each line is a
moment in which all of it paused. in and out are Mbit/s of the two streams for 10 s before.
{report.checked - report.failed} of {report.checked} checks were good.

| {" | ".join(COLUMNS)} |
{"|---" * len(COLUMNS)}|""", file=f)
        for n, row in enumerate(soak.rows, 1):
            if not n % max(1, len(soak.rows) // SHOWN_LINES):
                print(line(row), file=f)


def main(cluster, arguments):
    report = cluster.report
    write_network()
    cluster.node.start()
    report.shown("versions", cluster.node.versions())
    agent = Agent.install(cluster, *CONF)
    soak = Soak(cluster, agent, arguments)
    soak.versions, before = cluster.node.versions(), sample.node()
    soak.populate()
    print(f"| {' | '.join(COLUMNS)} |")
    soak.work()
    soak.run()
    verdicts(soak)
    all_go(soak, before)
    if arguments.table:
        write_table(soak, arguments.table)


def prepare(arguments):
    if arguments.table:
        arguments.table = os.path.abspath(arguments.table)
        arguments.printed = machine.printed_by("kube/soak.py")


if __name__ == "__main__":
    kube.run_script(
        main,
        option("--minutes", type=float, default=120, help="default: 120"),
        option("--pods", type=int, default=20, help="that are there at a time; default: 20"),
        option("--every", type=float, default=4, metavar="SECONDS",
               help="a pod is replaced by another one; default: 4"),
        option("--edits", type=float, default=1, help="of annotations in a second; default: 1"),
        option("--leak", choices=LEAKS, help="leave this behind, each time that it is counted"),
        option("--table", metavar="FILE", help="write the result there"), prepare=prepare)
