# SPDX-License-Identifier: BSD-2-Clause
"""Keeps what fair.py measured in a JSON file, and makes a table of it."""
import json
import os
import statistics
import subprocess
import sys

# machine.py of the benchmark describes the machine; it needs tests/cni/plugin.py.
for part in ("bench", "cni"):
    sys.path.append(f"{os.path.dirname(os.path.abspath(__file__))}/../{part}")
from fair_scenarios import SCENARIOS
from machine import describe
from report_md import table

# The columns, and the way of a qdisc that compares with natra's.
COLUMNS = {"before": "natra before", "natra": "natra after", "tbf": "tbf",
           "fq_codel": "fq_codel", "cake": "cake"}
FILE = "fair.json"
PEERS_WAY = {"edt": "out", "pace": "in", "police": "in"}


def commit(program):
    """Return the newest commit of what a build in a clone is made of."""
    p = subprocess.run(["git", "-C", os.path.dirname(program), "log", "-1",
                        "--format=%h", "--", ":/bpf", ":/include", ":/src"],
                       text=True, capture_output=True, check=False)
    return p.stdout.strip() or None


def medians(samples):
    """Return the median of each figure in samples of the same form."""
    if isinstance(samples[0], dict):
        return {k: medians([s[k] for s in samples]) for k in samples[0]}
    return statistics.median(samples)


def words(params):
    return " ".join(str(v) if k == "rate" else f"{k} {v}" for k, v in params.items()
                    if k not in ("way", "shares"))


def opened(path, builds, remark):
    """Return the results in a directory, to which this run adds. A remark says what
    else a reader has to know of the machine."""
    about = describe()
    try:
        with open(f"{path}/{FILE}") as f:
            data = json.load(f)
    except FileNotFoundError:
        os.makedirs(path, exist_ok=True)
        data = {"machine": about, "builds": {}, "samples": [], "left_out": []}
    for key in ("kernel", "cpus"):
        if about[key] != data["machine"][key]:
            raise SystemExit(f"{path}/{FILE}: {key} {data['machine'][key]}, "
                             f"and {about[key]} here")
    if remark:
        data["remark"] = remark
    for label, program in builds.items():
        data["builds"][label] = commit(program)
    return Results(path, data)


class Results:
    """The samples of one machine and kernel."""

    def __init__(self, path, data):
        self.path, self.data = path, data

    def samples(self, label, scenario, params):
        return [s["values"] for s in self.data["samples"] if
                (s["limiter"], s["scenario"], s["params"]) ==
                (label, scenario, params)]

    def have(self, label, scenario, wanted, rounds):
        left_out = [(x["scenario"], x["params"]) for x in self.data["left_out"]]
        return all(len(self.samples(label, scenario, p)) >= rounds or
                   (scenario, p) in left_out for p in wanted)

    def add(self, label, scenario, params, values):
        self.data["samples"].append({"limiter": label, "scenario": scenario,
                                     "params": params, "values": values})
        self.save()

    def leave_out(self, scenario, wanted, why):
        self.data["left_out"] += [{"scenario": scenario, "params": p, "why": why}
                                  for p in wanted]
        self.save()

    def save(self):
        new = f"{self.path}/{FILE}.new"
        with open(new, "w") as f:
            json.dump(self.data, f, indent=1)
            f.write("\n")
        os.rename(new, f"{self.path}/{FILE}")

    def figure(self, label, scenario, params, number):
        """Return a check of the scenario on the medians, or None."""
        way = params["way"] if label in ("natra", "before") else \
            PEERS_WAY[params["way"]]
        samples = self.samples(label, scenario, {**params, "way": way})
        if not samples:
            return None
        return list(SCENARIOS[scenario].checks({**params}, medians(samples)))[number]

    def rows(self, scenario):
        """Yield what was measured of natra, a row for each figure."""
        seen = []
        for s in self.data["samples"]:
            key = s["scenario"], s["params"]
            if s["scenario"] != scenario or key in seen or \
                    s["params"]["way"] not in PEERS_WAY:
                continue
            seen.append(key)
            checks = list(SCENARIOS[scenario].checks(s["params"], s["values"]))
            for number in range(len(checks)):
                yield s["params"], [self.figure(label, *key, number)
                                    for label in COLUMNS]

    def table(self, scenario):
        rows = []
        for params, figures in self.rows(scenario):
            first = figures[1] or figures[0]
            rows.append((params["way"], words(params), first.what, *map(cell, figures),
                         first.demanded() + (first.unit if first.bounded() else "")))
        rows.sort(key=lambda r: (r[0], r[1].split()[0]))
        return table(("way", "", "figure", *COLUMNS.values(), "demanded"), rows)

    def report(self):
        about = self.data["machine"]
        lines = [f"# Fair shares: Linux {about['kernel']}" +
                 (", an emulated VM" if about.get("emulated") else ""), "",
                 f"{about['date']}, {about['cpus']} CPUs ({about['cpu']}). natra before "
                 f"is {self.data['builds'].get('before')}, after "
                 f"{self.data['builds'].get('natra')}. "
                 f"{self.data.get('remark', '')}".rstrip(), "",
                 "A figure is the median of its samples, and one in bold misses what is "
                 "demanded of natra. natra's ways are edt (out of the pod), pace and "
                 "police (into it); beside them stand qdiscs at the same interface with "
                 "the same cap. fq_codel is htb's leaf. Where netem is there the round "
                 "trip is 10 ms into the pod, unless rtt_ms says otherwise. *Idle* is "
                 "the mean of the same requests before the elephants started.", ""]
        for name, scenario in SCENARIOS.items():
            rows = self.table(name)
            if rows:
                lines += [f"## {name}", "", scenario.__doc__.split("\n\n")[0], "", *rows]
        for x in self.data["left_out"]:
            lines.append(f"- left out: {x['scenario']} {words(x['params'])}: {x['why']}")
        return "\n".join(lines).rstrip() + "\n"

    def write(self):
        with open(f"{self.path}/report.md", "w") as f:
            f.write(self.report())


def cell(check):
    if check is None:
        return ""
    text = f"{check.value:.3f}" if check.value < 10 else f"{check.value:.0f}"
    if not check.met():
        text = f"**{text}**"
    return f"{text} ({check.more})" if check.more else text
