# SPDX-License-Identifier: BSD-2-Clause
"""Describes the machine on which the figures were taken."""
import os
import platform
import re
import subprocess
import time

import plugin
from cells import EMULATED
from limiters import find_natractl


def say(*argv):
    """Return the first line of what a program prints about itself, or None."""
    try:
        p = subprocess.run(argv, text=True, stdin=subprocess.DEVNULL,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                           timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = [s.strip() for s in p.stdout.splitlines() if s.strip()]
    return lines[0] if lines else None


def package(name):
    return say("dpkg-query", "-W", "-f", "${Version}", name)


def newest_plugins():
    try:
        with open(f"{plugin.NEWEST}/version") as f:
            return f.read().split()[1]
    except (OSError, IndexError):
        return None


def cpu():
    with open("/proc/cpuinfo") as f:
        m = re.search(r"^model name\s*: (.*)$", f.read(), re.M)
    return m[1] if m else platform.machine()


def memory_gib():
    return round(os.sysconf("SC_PAGESIZE") * os.sysconf("SC_PHYS_PAGES") /
                 2 ** 30, 1)


def possible_cpus():
    """Return how many CPUs the kernel reserves memory for, also such as never run."""
    with open("/sys/devices/system/cpu/possible") as f:
        return int(re.split("[-,]", f.read().strip())[-1]) + 1


def line():
    """Return the machine in words, for the head of a result."""
    return f"{cpu()}, {os.cpu_count()} cores, {memory_gib():.0f} GiB"


def commit():
    """Return the commit of this tree, marked if the tree has other changes."""
    root = os.path.dirname(os.path.abspath(__file__))
    return subprocess.run(["git", "-c", "safe.directory=*", "describe", "--always",
                           "--dirty", "--abbrev=10"], cwd=root, text=True,
                          stdout=subprocess.PIPE, check=True).stdout.strip()


def printed_by(command, about=None):
    """Return the line of a result that says what has printed it, and where. `about` is the commit that
    was measured, this tree's if there is none."""
    return (f"Printed by tests/{command} at commit {about or commit()} on "
            f"{time.strftime('%Y-%m-%d', time.gmtime())}: {line()}, Linux {os.uname().release}.")


def describe():
    """Return plain values for the JSON and the report's last section."""
    return {
            "date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
            "kernel": os.uname().release,
            "vm": os.environ.get("NATRA_VM"),
            "emulated": EMULATED or None,
            "cpu": cpu(),
            "cpus": os.cpu_count(),
            "possible_cpus": possible_cpus(),
            "memory_gib": memory_gib(),
            "natra": say(find_natractl(), "--version"),
            "commit": os.environ.get("NATRA_COMMIT") or None,
            "upstream": newest_plugins(),
            "upstream-debian": package("containernetworking-plugins"),
            "iperf3": say("iperf3", "--version"),
            "hey": package("hey"),
            "nginx": package("nginx"),
            "sockperf": package("sockperf"),
    }
