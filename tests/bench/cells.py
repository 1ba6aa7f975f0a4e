# SPDX-License-Identifier: BSD-2-Clause
"""A measurement, its place in the profiles, and what is common to all of them.

A cell is the same in every profile; a profile is a choice of cells and how often
each is run. So what `ci` measures, `full` measures too.
"""
import dataclasses
import os

LIMITERS = ("none", "upstream", "natra")
# No target asks for these, so they have one sample.
OLD_UPSTREAM = ("upstream-debian", "upstream-1.5.1")
RATES = {"10M": 10**7, "100M": 10**8, "1G": 10**9, "10G": 10**10}
UNCAPPED = "100G"               # far above what a veth carries
# In tests/vm/run without KVM the CPU has a tenth of the speed, so the cells offer less
# load and make fewer pods.
EMULATED = "NATRA_VM" in os.environ and os.environ.get("NATRA_VM_KVM") != "1"


class Unavailable(Exception):
    """This machine cannot run the cell; the text says why."""


@dataclasses.dataclass(frozen=True)
class Node:
    """What this kernel has."""
    modes: tuple = ()           # of attaching
    fq: bool = False            # ingress can be paced
    qdiscs: tuple = ()          # of LIMITERS of the harness, as peers of natra

    @property
    def paced(self):
        """The limiter that paces ingress, in a tuple that is empty without fq."""
        return ("natra-pace",) if self.fq else ()

    @property
    def policed(self):
        """natra as it is where there is no fq, with each word of fastPass: without fq that is
        what natra does by itself."""
        return ("natra-policed", "natra-policed-strict", "natra-policed-off") if self.fq else ()


@dataclasses.dataclass(frozen=True)
class Cell:
    workload: str
    limiter: str
    params: tuple               # of (name, value), sorted
    seconds: float              # about how long it takes
    ci: bool = False
    once: bool = False          # one sample is as good as many
    blocks: int = 1             # samples for each of the profile's; see workloads.py
    why_not: str = ""           # why this machine should not run it

    def param(self, name):
        return dict(self.params)[name]

    def title(self):
        words = " ".join(f"{k}={v}" for k, v in self.params)
        return f"{self.workload} {self.limiter} {words}".rstrip()

    def like(self):
        """Cells that are alike differ in their limiter only."""
        return self.workload, self.params


def cell(workload, limiter, seconds, ci=False, once=False, blocks=1, why_not="",
         **params):
    return Cell(workload, limiter, tuple(sorted(params.items())), seconds, ci,
                once, blocks, why_not)


def cpu_bound():
    """Return why CPU time should not be measured here, or ""."""
    return "an emulated CPU translates each instruction of BPF, so CPU " \
           "time says nothing of a real one's" if EMULATED else ""


def too_many(what, count, most):
    """Return why an emulated CPU is not asked for more than so many, or ""."""
    return f"an emulated CPU takes minutes for so many {what}" \
        if EMULATED and count > most else ""
