#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Makes DIR/report.md and its charts from DIR/results.json."""
import argparse
import json
import sys

import compare
from statistic import Results
from targets import WAYS, missed, paced, targets

NAMES = {"none": "no limiter", "upstream": "upstream",
         "upstream-debian": "upstream, Debian's",
         "upstream-containerd": "upstream, containerd's burst",
         "natra-pace": "natra, paced ingress"}


def name_of(limiter):
    return NAMES.get(limiter, limiter.replace("-", ", ", 1))


def figure(stat, digits=1):
    """Return the mean, with the deviation if there are several samples."""
    if stat is None:
        return ""
    text = f"{stat.mean:.{digits}f}"
    return text if stat.sd is None else f"{text} ± {stat.sd:.{digits}f}"


def spread(stat, digits):
    """Return the median, with the range if there are several samples."""
    if stat is None:
        return ""
    text = f"{stat.median:.{digits}f}"
    return text if len(stat.values) == 1 else \
        f"{text} ({min(stat.values):.{digits}f} to " \
        f"{max(stat.values):.{digits}f})"


def table(head, rows):
    """Return a table's lines, with a dash where a figure was not measured."""
    if not rows:
        return []
    return ["| " + " | ".join(head) + " |", "|" + "---|" * len(head),
            *("| " + " | ".join(str(c) or "–" for c in r) + " |"
              for r in rows), ""]


def verdict(res):
    """Return the first lines: what was missed, what failed, what was not run."""
    found = targets(res)
    bad = missed(found)
    judged = [t for t in found if t.met is not None]
    lines = [f"**{len(bad)} of {len(judged)} targets missed.**" if bad else
             f"All {len(judged)} targets that this run measured were met."
             if judged else "This run measured nothing that has a target.", ""]
    failed = res.errors()
    if failed:
        lines[0] += f" **{len(failed)} measurements failed.**"
    done = len(res.data["samples"]) + len(res.data["left_out"])
    planned = res.data.get("planned", done)
    if done < planned:
        lines[0] += f" **Stopped after {done} of {planned} measurements.**"
    lines += [f"- missed: {t.text()}" for t in bad]
    lines += [f"- failed: {cell}: {' '.join(text.split())}"
              for cell, text in failed]
    if len(lines) > 2:
        lines.append("")
    return lines, found


def per_second(rps, p99):
    if rps is None:
        return ""
    return f"{rps.mean:.0f} / " + (f"{p99.mean:.1f} ms" if p99 else "none")


def mixed(res):
    rows = {"fixed": [], "tilt": []}
    for key in res.find("mixed"):
        def get(metric, key=key):
            return res.stat(key, metric)
        if not get("rps_total"):
            continue
        rows[dict(key[2])["load"]].append((
                name_of(key[1]),
                f"{get('elephant_in').mean:.1f} / "
                f"{get('elephant_out').mean:.1f}",
                *(per_second(get(f"rps_{pod}"), get(f"p99_ms_{pod}"))
                  for pod in ("annotated", "bystander")),
                figure(get("rps_total"), 0)))
    offered = res.mean("mixed", "none", "offered", load="fixed")
    head = ("", "elephant in / out, Mbit/s", "capped pod's mice rps / p99",
            "bystander's rps / p99", "mice total, rps")
    if not any(rows.values()):
        return []
    return ["## Mice beside elephants", "",
            "One pod is capped at 10 Mbit/s each way and has a TCP stream each "
            "way; both pods serve 6 kB files, each on a new connection.", "",
            *(rows["tilt"] and ["At full tilt:", ""]),
            *table(head, rows["tilt"]),
            *(rows["fixed"] and ["At a fixed load" + (
                    f", {offered:.0f} requests/s to each pod:" if offered
                    else ":"), ""]),
            *table(head, rows["fixed"])]


def sweep(res):
    rows, wire = [], []
    emulated = res.data["machine"].get("emulated")
    for key in res.find("sweep"):
        params = dict(key[2])
        for way, words in WAYS.items():
            def get(metric, key=key, way=way):
                return res.stat(key, f"{metric}_{way}")
            if not get("wire"):
                continue
            if key[1] == "none":
                wire.append((params["flows"], words, params["ways"],
                             figure(get("wire"), 0)))
                continue
            dev = get("wire").relative_sd
            name = name_of(key[1])
            if key[1].startswith("natra"):
                name = "natra, paced" if paced(res, key, way) else \
                    "natra, policed"
            rows.append((
                    params["rate"], params["flows"], words, name,
                    figure(get("wire"), 2), f"{get('error').mean:+.2%}",
                    "" if dev is None else f"{dev:.2%}",
                    figure(get("seconds_sd"), 2), figure(get("goodput"), 2),
                    figure(get("retransmissions"), 0),
                    figure(get("first_second_mb"), 2)))
    if not rows:
        return []
    return ["## The cap", "",
            "Caps are in bit/s and rates in Mbit/s. *Wire* counts the headers "
            "of each segment, and *error* compares it with the cap. *Between "
            "samples* is the standard deviation of the samples' means in "
            "percent, *between seconds* that of single seconds within a "
            "sample, in Mbit/s. *Goodput* is what the receivers took" + (
                    "; here it is rough, because ss, which reports it, takes "
                    "some tenths of a second to start." if emulated else "."), "",
            *table(("cap", "flows", "direction", "limiter", "wire", "error",
                    "between samples", "between seconds", "goodput",
                    "retransmissions/s", "MB in the first second"), rows),
            *(wire and ["Without a limiter:", ""]),
            *table(("flows", "direction", "directions at once", "Mbit/s"),
                   wire)]


def latency(res):
    rows = []
    for name in dict.fromkeys(k[1] for k in res.find("latency")):
        row = [name_of(name)]
        for stream in ("idle", "in", "out"):
            p50, p99 = (res.mean("latency", name, m, stream=stream)
                        for m in ("p50_us", "p99_us"))
            row.append("" if p50 is None else
                       f"{p50 / 1e3:.2f} / {p99 / 1e3:.2f}")
        rows.append(row)
    return rows and [
            "## Latency under load", "",
            "The table shows p50 / p99 in ms of the round trips of one TCP "
            "connection at a cap of 100 Mbit/s.", "",
            *table(("", "idle", "stream into the pod",
                    "stream out of the pod"), rows)]


def slis(res):
    rows, stamped = [], False
    for key in res.find("slis"):
        def get(metric, key=key):
            return figure(res.stat(key, metric), 2)
        stamped |= any(s["values"].get("stamped") for s in res.cells[key])
        rows.append((
                dict(key[2])["pods"], name_of(key[1]), get("chain_ms"),
                get("programming_ms"),
                *(f"{get(f'{m}_p50')} / {get(f'{m}_p99')}" for m in (
                        "client_first_ms", "conntrack_first_ms",
                        "client_total_ms", "conntrack_total_ms"))))
    rows.sort(key=lambda r: r[0])
    source = "the kernel's stamps" if stamped else "the time of reading"
    return rows and [
            "## What a pod's owner notices", "",
            "Times are in ms, p50 / p99. *Limited after* is the time from the "
            "start of the limiter's ADD to the first packet into the pod that "
            "it saw. The client measures from SYN to SYN-ACK and from SYN to the "
            "end; connection tracking on the node measures from SYN to SYN-ACK "
            f"and to the first FIN ({source}).", "",
            *table(("limited pods", "", "ADD of the chain", "limited after",
                    "SYN-ACK, client", "SYN-ACK, node", "end, client",
                    "FIN, node"), rows)]


def mean_add(res):
    mean = {who: figure(res.get("add", "both", f"mean_cpu_ms {who}"), 2)
            for who in ("natra", "upstream")}
    return ["Some of natra's ADDs also load programs for the next pods. On a node "
            f"that fills up, the mean CPU time of an ADD is {mean['natra']} ms, and "
            f"upstream's {mean['upstream']} ms.", ""] if all(mean.values()) else []


def cost(res):
    moved = []
    for name in dict.fromkeys(k[1] for k in res.find("throughput")):
        mode = next((s["values"]["mode"] for k in res.find("throughput", name)
                     for s in res.cells[k] if "mode" in s["values"]), "")
        found = {m: res.get("throughput", name, m)
                 for m in ("gbit", "cpu_per_gb")}
        if found["gbit"]:
            moved.append((name_of(name), mode, len(found["gbit"].values),
                          spread(found["gbit"], 1),
                          spread(found["cpu_per_gb"], 3)))
    adds = []
    for who in ("upstream", "natra clsact", "natra tcx", "two links"):
        got = [res.get("add", "both", f"{m} {who}")
               for m in ("wall_ms", "cpu_ms", "rss_kib")]
        if got[0]:
            adds.append(("the kernel's two TCX links alone"
                         if who == "two links" else who,
                         *(figure(s, 2) for s in got)))
    memory = []
    for key in res.find("memory"):
        memory.append((name_of(key[1]), dict(key[2])["pods"], *(
                figure(res.stat(key, m)) for m in (
                        "slab_kib", "SUnreclaim_kib", "KernelStack_kib",
                        "PageTables_kib", "VmallocUsed_kib", "Percpu_kib",
                        "memlock_kib"))))
    packets = [(m[:-len(" ns")], figure(res.get("per-packet", "natra", m)))
               for k in res.find("per-packet") for m in res.metrics(k)]
    if not (moved or adds or memory or packets):
        return []
    return ["## Cost", "",
            *(moved and ["The cap is far above what the wire carries, and streams "
                         "run both ways. The table shows medians, and the least and "
                         "the most of the samples:", ""]),
            *table(("", "mode", "samples", "Gbit/s", "CPU seconds per GB"),
                   moved),
            *(adds and ["One ADD takes, as medians:", ""]),
            *table(("", "wall, ms", "CPU, ms", "peak RSS, KiB"), adds),
            *mean_add(res),
            *(memory and ["The table shows the kernel's memory for each limited "
                          "pod in KiB. All columns but *memlock* compare the whole "
                          "machine before and after, so whatever else runs adds or "
                          "takes a few KiB. *memlock* is what the kernel charges "
                          "for natra's programs and maps; most of it is part of "
                          "vmalloc, too.", ""]),
            *table(("", "pods", "slab, stacks and page tables", "slab",
                    "stacks", "page tables", "vmalloc", "per-CPU", "memlock"),
                   memory),
            *(packets and ["A packet spends this time in natra's programs, in ns "
                           "(BPF_PROG_TEST_RUN):", ""]),
            *table(("program", "ns"), packets)]


def target_table(found):
    rows = []
    for t in found:
        rows.append((t.name,
                     "" if t.value is None else t.show(t.value),
                     "" if t.bound is None else
                     f"{'≤' if t.sense == 'most' else '≥'} {t.show(t.bound)}",
                     {True: "met", False: "**missed**",
                      None: "not measured"}[t.met]))
    return ["## Targets", "", *table(("", "measured", "demanded", ""), rows)]


def changed(res, old):
    why = compare.comparable(old, res)
    if why:
        return [f"Not compared with the earlier run: {why}.", ""], 0
    found = compare.changes(old, res)
    bad = [c for c in found if c.worse]
    lines = [f"{len(bad)} of {len(found)} figures are worse than in the run of "
             f"{old.data['machine']['date']}.", "",
             *(f"- **worse**: {c.text()}" for c in bad), ""]
    return lines, len(bad)


def machine(res):
    about = res.data["machine"]
    return ["## Machine", "", *table(("", ""), [
            (k, v) for k, v in about.items() if v is not None])]


def left_out(res):
    """Return a line for each reason, with the cells that were left out for it."""
    cells = {}
    for x in res.data["left_out"]:
        cells.setdefault(x["why"], {})[x["cell"]] = 0
    return cells and ["Left out:", "", *(
            f"- {', '.join(names)}: {why}" for why, names in cells.items()), ""]


def write(res, old=None, charts=None):
    """Return the report's text and how many figures are worse than in `old`."""
    about = res.data["machine"]
    first, found = verdict(res)
    where = f"Linux {about['kernel']}" + (
            " in an emulated VM" if about.get("emulated") else
            " in a VM" if about.get("vm") else "")
    compared, worse = changed(res, old) if old else ([], 0)
    lines = [f"# natra's benchmark: {where}", "", *first, *compared,
             f"Profile `{res.data['profile']}`, {about['date']}, "
             f"{res.data['seconds']} s, {about['cpus']} CPUs ({about['cpu']}).",
             *(["The CPU is emulated: compare a figure with the others of this "
                "run only."] if about.get("emulated") else []),
             "Where there are several samples, a figure is their mean, ± their "
             "standard deviation.", "",
             *left_out(res)]
    for part in (mixed, sweep, latency, slis, cost):
        lines += part(res)
    for name, caption in (charts or {}).items():
        lines += [f"![{caption}]({name}.svg)", ""]
    lines += target_table(found) + machine(res)
    return "\n".join(lines).rstrip() + "\n", worse


def load(path):
    with open(path) as f:
        return Results(json.load(f))


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("dir")
    p.add_argument("--compare", metavar="OLD.json")
    a = p.parse_args()
    import charts               # what is above needs no matplotlib

    res = load(f"{a.dir}/results.json")
    text, worse = write(res, load(a.compare) if a.compare else None,
                        charts.draw(res, a.dir))
    with open(f"{a.dir}/report.md", "w") as f:
        f.write(text)
    print(text.split("\nProfile")[0].split("\n", 2)[2].strip())
    sys.exit(1 if worse else 0)


if __name__ == "__main__":
    main()
