# SPDX-License-Identifier: BSD-2-Clause
"""Keeps what fair.py measured in a JSON file, and makes a table of it."""
import json
import os
import statistics
import sys

# machine.py of the benchmark describes the machine; it needs tests/cni/plugin.py.
for part in ("bench", "cni"):
    sys.path.append(f"{os.path.dirname(os.path.abspath(__file__))}/../{part}")
import fair_peers
from fair_lanes import NATRAS
from fair_peers import PEERS_WAY
from fair_scenarios import SCENARIOS
from machine import commit_of, describe
from markdown import table

COLUMNS = {"before": "natra before", "natra": "natra", "strict": "natra, strict",
           "tbf": "tbf", "fq_codel": "fq_codel", "cake": "cake"}
FILE = "fair.json"


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
        found = data["builds"].setdefault(label, [])
        if commit_of(program) not in found:
            found.append(commit_of(program))
    return Results(path, data)


class Results:
    """The samples of one machine and kernel."""

    def __init__(self, path, data):
        self.path, self.data = path, data

    def samples(self, label, scenario, params):
        return [s["values"] for s in self.data["samples"] if
                (s["limiter"], s["scenario"], s["params"]) ==
                (label, scenario, params)]

    def have(self, label, scenario, params, rounds):
        return len(self.samples(label, scenario, params)) >= rounds or any(
            (x["scenario"], x["params"]) == (scenario, params)
            for x in self.data["left_out"])

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

    def checks(self, label, scenario, params, by="checks"):
        """Return what the scenario says of the medians of a limiter, with the
        parameters of natra's that it stands beside, or None without samples."""
        own = params if label in NATRAS else \
            {**params, "way": PEERS_WAY[params["way"]]}
        samples = self.samples(label, scenario, own)
        return list(getattr(SCENARIOS[scenario], by)(params, medians(samples))) \
            if samples else None

    def params(self, label, scenario):
        """Return what was measured of a limiter."""
        found = []
        for s in self.data["samples"]:
            if (s["limiter"], s["scenario"]) == (label, scenario) and \
                    s["params"] not in found:
                found.append(s["params"])
        return found

    def columns(self):
        return [label for label in COLUMNS
                if any(s["limiter"] == label for s in self.data["samples"])]

    def rows(self, scenario):
        """Yield what was measured of natra, a row for each figure."""
        seen = []
        for params in (p for label in NATRAS for p in self.params(label, scenario)):
            if params in seen or params["way"] not in PEERS_WAY:
                continue
            seen.append(params)
            found = [self.checks(label, scenario, params) for label in self.columns()]
            for row in zip(*(f for f in found if f)):
                row = list(row)
                yield params, [row.pop(0) if f else None for f in found]

    def table(self, scenario):
        rows = []
        for params, figures in self.rows(scenario):
            # A row is a figure that one of natra's columns has.
            first = next(f for f in figures if f)
            rows.append((params["way"], words(params), first.what, *map(cell, figures),
                         first.demanded() + (first.unit if first.bounded() else "")))
        rows.sort(key=lambda r: (r[0], r[1].split()[0]))
        return table(("way", "", "figure", *(COLUMNS[x] for x in self.columns()),
                      "demanded"), rows)

    def build(self, label):
        """Return the commits of a limiter; there may be several, in their order."""
        return ", then ".join(map(str, self.data["builds"].get(label, [])))

    def report(self):
        about = self.data["machine"]
        lines = [f"# Fair shares: Linux {about['kernel']}" +
                 (", an emulated VM" if about.get("emulated") else ""), "",
                 f"{about['date']}, {about['cpus']} CPUs ({about['cpu']}). natra is "
                 f"{self.build('natra')}" + (f", and before it was {self.build('before')}"
                                             if "before" in self.columns() else "") +
                 f". {self.data.get('remark', '')}".rstrip(), "",
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
        lines += fair_peers.section(self, words)
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
