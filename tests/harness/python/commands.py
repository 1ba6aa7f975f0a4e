# SPDX-License-Identifier: BSD-2-Clause
"""Runs commands to their end, and reads what ip(8) and bpftool(8) answer."""
import json
import subprocess
import sys
import time


def sh(*args, check=True, timeout=20, **kw):
    """Run a command to its end and return its standard output."""
    p = subprocess.run(args, text=True, timeout=timeout,
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, **kw)
    if check and p.returncode:
        raise RuntimeError(f"{' '.join(args)}: exit {p.returncode}: "
                           f"{p.stderr.strip() or p.stdout.strip()}")
    return p.stdout


def ip_batch(lines, ns=None):
    """Run commands of ip in one process, because starting one takes long in a VM."""
    where = ["-n", ns] if ns else []
    sh("ip", *where, "-batch", "-", input="\n".join(lines) + "\n")


def bpftool(*args):
    """Return bpftool's answer. It is run again while it fails because an object is
    being freed."""
    for last in (False,) * 20 + (True,):
        try:
            return json.loads(sh("bpftool", "-j", *args))
        except RuntimeError as e:
            if last or "temporarily unavailable" not in str(e):
                raise
        time.sleep(0.05)


def called_programs(map_id):
    """Return the ids of the programs in an array of programs."""
    return [int.from_bytes(bytes(int(b, 16) for b in e["value"]), sys.byteorder)
            for e in bpftool("map", "dump", "id", str(map_id)) if "value" in e]
