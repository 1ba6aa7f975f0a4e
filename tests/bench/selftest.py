#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The benchmark can fail: a limiter that is known to be wrong is reported as
such, in the report's first lines, and the right one beside it is not.

The wrong limiters are natra with a cap 20 % too high and natra without its fast pass,
also where it is under stress.
"""

import bench                    # finds the harness
import cells
import mixed
import plugin
import pods
import stress
import sweep
import wired
from report_md import write
from statistic import Results
from workloads import WORKLOADS, missed, targets

CAP = "cap of 10M"
MICE = "mice beside elephants, fixed load"
WIRING = "wiring proxyarp: cap"
STRESS = "under stress, 1 pods: SYN to"


def results(*samples):
    """Return a run with these samples."""
    return Results({"format": 2, "profile": "selftest", "seconds": 0,
                    "machine": {"kernel": "", "date": "", "cpus": 0, "cpu": ""},
                    "left_out": [], "samples": list(samples)})


def judge(rep, what, res, expected):
    """`expected` maps starts of the names of targets to whether they are met."""
    found = targets(res)
    for start, good in expected:
        some = [t for t in found if t.name.startswith(start) and
                t.met is not None]
        rep.check(f"{what}: {start}", ", ".join(t.text() for t in some)
                  or "not measured", "met" if good else "missed",
                  some and all(t.met for t in some) == good, exact=False)
    first = write(res)[0].splitlines()[2]
    said = bool(missed(found)) == first.startswith("**")
    rep.true(f"{what}: the report's first line agrees", said, first)


def right_and_wrong(rep):
    capped = {"rate": "10M", "flows": 8, "ways": "in+out"}
    loaded = {"load": "fixed"}
    right = pods.natra()

    with pods.Cluster() as r:
        def take(workload, name, lim, params, words=""):
            run = bench.Run(r)
            run.one(0, cells.cell(workload, name, 0, **params), lim)
            sample, = run.samples
            rep.shown(f"{workload} {name} {words}", sample.get("error") or
                      WORKLOADS[workload].text(sample["values"]))
            return sample

        base = take("mixed", "none", None, loaded)
        good = results(base, take("mixed", "natra", right, loaded),
                       take("sweep", "natra", right, capped))
        skew, skewed_words = pods.natra(skew=1.2), "cap 20 % too high"
        skewed = results(take("sweep", "natra", skew, capped, skewed_words))
        loose = {"wiring": "proxyarp", "cap": wired.CAP}
        wired_right = results(take("wiring", "natra", right, loose))
        wired_wrong = results(take("wiring", "natra", skew, loose, skewed_words))
        slow = results(base, take("mixed", "natra",
                                  pods.natra(fastPass="off"), loaded,
                                  "fast pass off"))
        busy, right_busy, slow_busy = (
                take("stress", name, lim, {"pods": 1}, words) for name, lim, words in (
                        ("none", None, ""), ("natra", right, ""),
                        ("natra", pods.natra(fastPass="off"), "fast pass off")))
    judge(rep, "natra", good, ((CAP, True), (f"{MICE}: requests", True)))
    judge(rep, "cap 20 % too high", skewed, ((CAP, False),))
    judge(rep, "fast pass off", slow, ((f"{MICE}: requests", False),))
    judge(rep, "natra", results(busy, right_busy), ((STRESS, True),))
    judge(rep, "natra", wired_right, ((WIRING, True),))
    judge(rep, skewed_words, wired_wrong, ((WIRING, False),))
    judge(rep, "fast pass off", results(busy, slow_busy), ((STRESS, False),))


def main(rep, _):
    sweep.WINDOW_SECONDS = wired.CAPPED_SECONDS
    # These times are shorter than the profiles' because the mistakes that are looked
    # for have large effects.
    mixed.SETTLE_SECONDS, mixed.SECONDS = 1.5, {"fixed": 3, "tilt": 3}
    stress.SETTLE_SECONDS, stress.SECONDS, stress.TIMEOUT = 1.5, 3, 5
    rep.measure("right and wrong limiters", right_and_wrong, rep)


if __name__ == "__main__":
    plugin.run_script(main)
