# SPDX-License-Identifier: BSD-2-Clause
"""A node for the tests of metrics: limited pods, an agent, and a Prometheus that scrapes
it. The script that uses it is isolated; see isolation.py."""
import http.client
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.parse

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.realpath(f"{HERE}/../..")
MONITORING = f"{TOP}/tools/deploy/monitoring"
for part in ("harness/python", "agent"):
    sys.path.insert(0, f"{TOP}/tests/{part}")
from report import skip
import drawing

PORT = 19090


def need(*programs):
    for program in programs:
        if not shutil.which(program):
            skip(f"no {program} (tools/install-deps monitoring)")


def get(port, path, headers=None, timeout=30):
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    try:
        c.request("GET", path, headers=headers or {})
        r = c.getresponse()
        return r.status, r.read().decode()
    finally:
        c.close()


def series(text):
    """{series: value} of an answer."""
    return {name: float(value) for name, value in
            (line.rsplit(" ", 1) for line in text.splitlines() if line[:1] not in ("", "#"))}


def quick_rules():
    """The rules with times that a test can wait for."""
    with open(f"{MONITORING}/rules.yaml") as f:
        return re.sub(r"for: \d+m", "for: 3s", f.read()).replace("[5m]", "[15s]")


class Prometheus:
    def __init__(self, targets):
        self.dir = tempfile.mkdtemp(prefix="natra-prometheus-")
        with open(f"{self.dir}/rules.yaml", "w") as f:
            f.write(quick_rules())
        with open(f"{self.dir}/prometheus.yml", "w") as f:
            json.dump({"global": {"scrape_interval": "1s", "scrape_timeout": "1s",
                                  "evaluation_interval": "1s"},
                       "rule_files": ["rules.yaml"],
                       "scrape_configs": [{"job_name": "natra", "honor_labels": True,
                                           "static_configs": [{"targets": targets}]}]}, f)
        self.process = subprocess.Popen(
            ["prometheus", f"--config.file={self.dir}/prometheus.yml",
             f"--storage.tsdb.path={self.dir}/data",
             f"--web.listen-address=127.0.0.1:{PORT}", "--log.level=warn"],
            stdin=subprocess.DEVNULL)
        self.wait("up", 90)

    def query(self, expr):
        """[({label: value}, value)]; an error of Prometheus is one here."""
        try:
            status, body = get(PORT, "/api/v1/query?" + urllib.parse.urlencode({"query": expr}))
        except OSError:
            return []
        if status == 503:  # it starts
            return []
        answer = json.loads(body)
        if answer["status"] != "success":
            raise RuntimeError(f"{expr}: {answer['error']}")
        return [(r["metric"], float(r["value"][1])) for r in answer["data"]["result"]]

    def over(self, expr, begin, end):
        """[({label: value}, [(time, value)])] of a stretch of time."""
        _, body = get(PORT, "/api/v1/query_range?" + urllib.parse.urlencode(
            {"query": expr, "start": begin, "end": end, "step": 3}))
        found = []
        for one in json.loads(body)["data"]["result"]:
            points = [(when, float(value)) for when, value in one["values"] if value != "NaN"]
            if points:
                found.append((one["metric"], points))
        return found

    def wait(self, expr, seconds=60):
        """Return what a query has once it has something, or nothing."""
        end = time.monotonic() + seconds
        while True:
            found = self.query(expr)
            if found or time.monotonic() > end:
                return found
            time.sleep(0.3)

    def value(self, expr):
        """The sum of a query's values."""
        return sum(value for _, value in self.query(expr))

    def alerts(self, state="firing"):
        return {labels["alertname"]
                for labels, _ in self.query(f'ALERTS{{alertstate="{state}"}}')}

    def told(self):
        """The alerts that fire or will, each with its pod and direction."""
        return {" ".join(labels.get(name, "-") for name in ("alertname", "pod", "direction"))
                for labels, _ in self.query("ALERTS")}

    def close(self):
        self.process.terminate()
        self.process.wait(30)
        shutil.rmtree(self.dir, ignore_errors=True)


def dashboard():
    """Return the panels, each with its queries, whose variables are filled in."""
    with open(f"{MONITORING}/dashboard.json") as f:
        panels = json.load(f)["panels"]
    return [(p, [re.sub(r"\$\w+", ".*", target["expr"].replace("$__rate_interval", "15s"))
                 for target in p.get("targets", ())]) for p in panels]


# Nothing is held without fq.
OF_FQ = ("Mean delay", "Longest delays")


def is_of_what_is_wrong(panel):
    """Whether this is a table that has no rows while all is well."""
    return panel["type"] == "table" and panel["title"] != "How they are limited"


def draw_dashboard(prometheus, seconds=90):
    """Return a picture of what the panels show now."""
    now = time.time()
    found = [[prometheus.over(q, now - seconds, now) for q in queries]
             for _, queries in dashboard()]
    return drawing.draw([p for p, _ in dashboard()], found, (now - seconds, now))


def check_dashboard(r, prometheus, has_fq):
    for panel, queries in dashboard():
        title = panel["title"]
        if is_of_what_is_wrong(panel) or (not has_fq and title in OF_FQ):
            queries = []
        empty = [q for q in queries if not prometheus.wait(q, 20)]
        r.true(f"dashboard: {title}", not empty, f"no data: {empty}" if empty else "data")
    for rule in ("offered", "passed", "utilisation", "loss", "connect_p99_seconds",
                 *(("delay_seconds", "delay_p99_seconds") if has_fq else ())):
        found = prometheus.wait(f"natra:{rule}", 20)
        r.true(f"rule natra:{rule}", found, f"{len(found)} series")
