#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Measures the first ADDs of a node, beside upstream's plugin.

Some of these cost natra more than later ones do, because they load the programs that several
attachments share. A round begins on a node that has none of natra's programs and runs the
ADDs of one plugin in a row. The committed result is made by

    tests/bench/first_adds.py --result tests/bench/results/first-adds-6.18.txt

in a built tree (build/, or NATRA_BUILD names meson's directory); root.
"""
import statistics
import time

import built_tree

built_tree.use("cni", "kube", "harness/python", NATRACTL="tools/natractl/natractl",
               NATRA_LAUNCH="tests/cni/launch")
import adds
import cost
import plugin
from markdown import table
from plugin import Veth, has_tcx
from rcu import usual_rcu
from script import option

PODS = 16
# The CPU of natra's ADDs, to upstream's. More means that fewer pods share the loaded programs, or
# that these take longer to load.
MOST = 1.3
COLUMNS = ("wall_ms", "cpu_ms")


def in_a_row(path, pods, **keys):
    """Return the measures of the ADDs of all pods, one after the other."""
    rows = []
    with usual_rcu():
        for pod in pods:
            # The kernel still frees things of the last ADD, which would delay this one.
            time.sleep(cost.SETTLE_SECONDS)
            rows.append(cost.launch(path, pod, **keys))
    for pod in pods:
        cost.delete(path, pod)
    return rows


def measure(arguments):
    """Return the rounds of each plugin."""
    do = {"upstream": (arguments.upstream, {}),
          "natra clsact": (arguments.natra, {"attachMode": "clsact-podside"})}
    if has_tcx():
        do["natra tcx"] = (arguments.natra, {"attachMode": "tcx-podside"})
    pods = [Veth(f"n{i}", f"v{i}") for i in range(PODS)]
    adds.load_modules(arguments, pods[0])
    got = {name: [] for name in do}
    for _ in range(arguments.rounds):
        for name, (path, keys) in do.items():
            # Upstream's DEL leaves qdiscs on which its next ADD fails.
            cost.renew(pods)
            plugin.natractl("gc")
            got[name].append(in_a_row(path, pods, **keys))
    for pod in pods:
        pod.close()
    plugin.natractl("gc")
    return got


def medians(rounds, column):
    """Return the median over the rounds of the ADD at each place in the row."""
    i = cost.MEASURE.index(column)
    return [statistics.median(row[i] for row in place) for place in zip(*rounds)]


def rows(got):
    for name, rounds in got.items():
        for column in COLUMNS:
            places = medians(rounds, column)
            twice = 2 * statistics.median(places)
            yield (name, column.replace("_ms", "").replace("cpu", "CPU"),
                   f"{places[0]:.1f}", f"{statistics.median(places[1:]):.1f}",
                   f"{max(places[1:]):.1f}", f"{sum(ms > twice for ms in places)}",
                   f"{sum(places):.0f}")


def text(got):
    return "\n".join(table(("", "", "the first", "median of the others",
                            "highest median of the others", "twice the median and more",
                            f"all {PODS}"), list(rows(got))))


def prepare(arguments):
    adds.prepare(arguments, f"first_adds.py --rounds {arguments.rounds}")


def main(report, arguments):
    got = measure(arguments)
    print(text(got))
    for name in got:
        if name == "upstream":
            continue
        cpu = {who: sum(medians(got[who], "cpu_ms")) for who in (name, "upstream")}
        report.most(f"{name}: CPU of the first {PODS} ADDs, to upstream's",
                    cpu[name] / cpu["upstream"], MOST)
    if not report.failed:
        adds.write(arguments, f"""\
The first {PODS} ADDs of a node, in ms: medians of {arguments.rounds} rounds. Each begins
without natra's programs.""", text(got))


if __name__ == "__main__":
    plugin.run_script(main,
                      option("--rounds", type=int, default=9),
                      option("--result",
                             help="write the table and how it was made to this file"),
                      prepare=prepare)
