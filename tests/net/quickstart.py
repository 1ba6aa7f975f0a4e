#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The table that tools/quickstart shows a visitor must say what the README says."""
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE + "/../harness/python")
from demo import CAP
from isolation import need_root
from limiters import bits, find_natractl
from script import option, run_script

QUICKSTART = HERE + "/../../tools/quickstart"
# The groups are the name, what is kept within the cap, both streams and then all of the
# pod's traffic in Mbit/s, requests a second, and their p99 or "none".
ROW = re.compile(r"^(\S.*?) +(nothing|streams|everything)" + r" +([0-9.]+)" * 4 +
                 r" +(\d+) +([0-9.]+ ms|none)$", re.M)
# A policed stream has losses at the end of its burst and recovers in the seconds after
# that, so this does not check how exact the rate is.
LEAST, MOST = 0.75, 1.15
# With `strict` requests that could use all of it leave a stream a fifth.
STREAM_LEAST = 0.18


def quickstart(rep, a):
    r = subprocess.run([QUICKSTART, "--seconds", str(a.seconds), "--natractl",
                        find_natractl()], stdin=subprocess.DEVNULL, text=True,
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                       timeout=120, check=False)
    print(r.stdout)
    rep.equal("exit code", r.returncode, 0)
    rows = {name: [*map(float, figures[:5]), kept]
            for name, kept, *figures in ROW.findall(r.stdout)}
    free, natra = (next((v for k, v in rows.items() if k.startswith(start)), None)
                   for start in ("before", "after"))
    rep.true("a row without a limit and one of natra", free and natra)
    if free and natra:
        cap = bits(CAP) / 1e6
        for i, way in enumerate(("in", "out")):
            rep.least(f"{way}: stream without a limit", free[i], 10 * cap, " Mbit/s")
            rep.least(f"{way}: stream with natra", natra[i], LEAST * cap, " Mbit/s")
            rep.most(f"{way}: stream with natra", natra[i], MOST * cap, " Mbit/s")
        # All requests that are answered without a limit must be answered, except those
        # that were under way at the end.
        rep.least("requests answered beside the streams", natra[4],
                  0.9 * min(free[4], 1000), "/s")
    strict = rows.get("after: natra, strict")
    rep.true("a row of natra that charges requests", strict)
    if strict:
        for i, way in enumerate(("in", "out"), 2):
            rep.most(f"{way}: all traffic, strict", strict[i], MOST * bits(CAP) / 1e6,
                     " Mbit/s")
            rep.least("  the stream's part", strict[i - 2] * 1e6 / bits(CAP), STREAM_LEAST)
        rep.least("out: all traffic that is not charged", natra[3],
                  1.5 * MOST * bits(CAP) / 1e6, " Mbit/s")
    rep.equal("what each row says that it keeps", [row[-1] for name, row in rows.items()
                                                   if name.startswith(("before", "after"))],
              ["nothing", "streams", "everything"])
    rep.true("the last line names natractl",
             r.stdout.strip().endswith(find_natractl()))


def main(rep, a):
    rep.measure("quickstart", quickstart, rep, a)


if __name__ == "__main__":
    # tools/quickstart isolates itself.
    run_script(main, option("--seconds", type=int, default=3), isolate=need_root)
