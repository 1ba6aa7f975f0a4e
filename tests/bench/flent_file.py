#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Writes the samples of rrul and nup in a results.json as files for flent, which
plots them: flent -i FILE -p all_scaled -o PICTURE.

usage: flent_file.py RESULTS.json DIR
"""
import gzip
import json
import os
import re
import sys
from datetime import datetime, timezone

FORMAT = 4                      # of flent 1.0 and later
TESTS = {"rrul": "rrul", "nup": "tcp_nup"}
WAYS = {"in": "upload", "out": "download"}
STEP_SECONDS = 0.2


def name_in_flent(test, name):
    """Return what flent calls a series."""
    first, _, rest = name.partition(" ")
    if first == "ping":
        return "Ping (ms) ICMP" if rest == "ICMP" else f"Ping (ms) UDP {rest}"
    return f"TCP upload::{first}" if test == "tcp_nup" else f"TCP {WAYS[first]} {rest}"


def combined(columns, how):
    """Return sums or means of columns, None where one has no figure."""
    return [None if None in row else how(row) for row in zip(*columns)]


def with_sums(test, results):
    """Add what flent makes of the series itself."""
    def mean(row):
        return sum(row) / len(row)
    for way in ("upload", *(("download",) if test == "rrul" else ())):
        some = [v for k, v in results.items() if k.startswith(f"TCP {way}")]
        if some:
            results[f"TCP {way} sum"] = combined(some, sum)
            results[f"TCP {way} avg"] = combined(some, mean)
    if test == "rrul":
        both = [results[f"TCP {way} sum"] for way in WAYS.values()
                if f"TCP {way} sum" in results]
        results["TCP totals"] = combined(both, sum)
        pings = [v for k, v in results.items() if k.startswith("Ping (ms)")]
        results["Ping (ms) avg"] = combined(pings, mean)
    return results


def flent(sample, about):
    """Return a sample as flent's object."""
    test = TESTS[sample["workload"]]
    results = {name_in_flent(test, k): v for k, v in sample["series"].items()}
    length = max(map(len, results.values()))
    begin = datetime.strptime(about["date"], "%Y-%m-%d %H:%M UTC").replace(
            tzinfo=timezone.utc)
    x = [round((i + 1) * STEP_SECONDS, 3) for i in range(length)]
    raw = {k: [{"t": begin.timestamp() + at, "val": v} for at, v in zip(x, column)
               if v is not None] for k, column in results.items()}
    params = " ".join(f"{k}={v}" for k, v in sorted(sample["params"].items()))
    when = begin.strftime("%Y-%m-%dT%H:%M:%S.000000Z")
    return {"version": FORMAT, "x_values": x, "raw_values": raw,
            "results": with_sums(test, results),
            "metadata": {
                    "NAME": test, "TITLE": f"{sample['limiter']} {params}",
                    "HOST": "pod", "HOSTS": ["pod"], "LOCAL_HOST": "client",
                    "TIME": when, "T0": when, "LENGTH": x[-1], "TOTAL_LENGTH": x[-1],
                    "STEP_SIZE": STEP_SECONDS, "IP_VERSION": 4,
                    "TEST_PARAMETERS": {"upload_streams": str(sum(
                            k.startswith("TCP upload") for k in raw))},
                    "KERNEL_NAME": "Linux", "KERNEL_RELEASE": about["kernel"],
                    "NOTE": f"tests/bench/{sample['workload']} of natra, commit "
                            f"{about.get('commit')}"}}


def file_name(sample):
    words = [sample["workload"], sample["limiter"],
             *(str(v) for _, v in sorted(sample["params"].items())),
             str(sample["sample"])]
    return re.sub(r"[^\w.-]+", "_", "-".join(words)) + ".flent.gz"


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with open(sys.argv[1]) as f:
        data = json.load(f)
    some = [s for s in data["samples"] if s["workload"] in TESTS and s.get("series")]
    if not some:
        sys.exit(f"{sys.argv[1]}: no sample of {' or '.join(TESTS)}")
    os.makedirs(sys.argv[2], exist_ok=True)
    for sample in some:
        text = json.dumps(flent(sample, data["machine"]))
        # Without a time the same samples make the same file.
        with open(f"{sys.argv[2]}/{file_name(sample)}", "wb") as f:
            f.write(gzip.compress(text.encode(), mtime=0))
    print(f"{len(some)} files in {sys.argv[2]}")


if __name__ == "__main__":
    main()
