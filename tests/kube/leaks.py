# SPDX-License-Identifier: BSD-2-Clause
"""Leaves something behind, as a natra with a mistake would, to show that soak.py notices."""
import os

import bpfsys
from commands import sh
from plugin import PINS, attachments

COUNT = [0]


def name():
    COUNT[0] += 1
    return f"leak{COUNT[0]}"


def pin():
    """A program of an attachment that went keeps its pin."""
    directory = f"{PINS}/{name()}"
    os.mkdir(directory)
    fd = bpfsys.load_pass()
    bpfsys.pin(fd, f"{directory}/meta")
    os.close(fd)


def program():
    """Somebody holds a program of each attachment that is there, also when it has gone."""
    for a in attachments():
        for leg in ("ingress", "egress", "host"):
            if a[f"{leg}_prog_id"]:
                bpfsys.prog_by_id(a[f"{leg}_prog_id"])


def file():
    os.makedirs("/var/lib/natra", exist_ok=True)
    with open(f"/var/lib/natra/{name()}", "w"):
        pass


def half():
    with open(f"/etc/cni/net.d/.natra-{name()}", "w"):
        pass


def result():
    with open(f"/var/lib/cni/results/{name()}-eth0", "w"):
        pass


def netns():
    sh("ip", "netns", "add", name())


def interface():
    sh("ip", "link", "add", name(), "type", "veth", "peer", "name", f"{name()}")


# Each kind has a function that leaves it behind, and the figure that shows it.
LEAKS = {"pin": (pin, "pins"), "program": (program, "objects of before"), "file": (file, "files"),
         "half": (half, "half-written files"), "result": (result, "results"),
         "netns": (netns, "netns"), "interface": (interface, "interfaces")}
