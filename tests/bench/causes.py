# SPDX-License-Identifier: BSD-2-Clause
"""Why natra misses a target of the benchmark, where that is known. No I/O.

A cause that depends on the run is a function of its results and of the target, and returns
nothing where it does not apply.
"""
import re

from statistic import Stat


def not_carried(res, _):
    offered, got = (res.mean("mixed", "none", metric, load="fixed")
                    for metric in ("offered", "rps_annotated"))
    return f"without a limiter {got:.0f} of {offered:.0f} were answered" \
        if offered and got is not None and got < 0.95 * offered else ""


def emulated(res, _):
    """Of what takes all of the CPU: without a limiter, emulated runs have served 114 to 480 requests a
    second at full tilt."""
    return "the CPU is the limit, and it is emulated" if res.data["machine"].get("emulated") else ""


def others_are_answered(res, target):
    """Of a stream under natra's strict cap: the requests that another limiter leaves waiting
    take their part of the rate."""
    load = "fixed" if "fixed" in target.name else "tilt"
    peer = re.search(r"at least (.*)'s$", target.name)[1]
    ours, theirs = (res.mean("mixed", name, "rps_annotated", load=load)
                    for name in ("natra-strict", peer))
    return f"the rest of the rate carries {ours:.0f} requests a second, and {theirs:.0f} with {peer}" \
        if ours and theirs and ours > 1.05 * theirs else ""


def others_keep_awake(res, target):
    """Of a round trip: it is as fast as on a machine that does nothing else."""
    idle = res.get("latency", "none", "p50_us", stream="idle")
    return f"without a limiter and a stream it is {idle.median:.0f} us: a stream at full speed " \
        "keeps the CPUs awake" if idle and target.value <= 1.5 * idle.median else ""


def others_differ(res, _):
    """Of round trips on a node of more pods: without a limiter they differ by as much."""
    found = [stat.mean for key in res.find("pods", "none") if (stat := res.stat(key, "p99_us"))]
    return f"without a limiter and as many pods it goes from {min(found):.0f} to {max(found):.0f} us" \
        if found and max(found) > 1.5 * min(found) else ""


def are_mice(_, target):
    """Of many flows: those that pass more than twice the cap together were not heavy."""
    return "each has less than makes a flow heavy, and by default natra does not hold mice: strict does" \
        if target.measured.mean > 1 else ""


def scatter(_, target):
    """Of what differs from sample to sample by more than the bound allows."""
    both = [f"from {target.digits(min(stat.values))} to {target.show(max(stat.values))}"
            for stat in (target.measured, target.against) if isinstance(stat, Stat) and len(stat.values) > 1]
    return f"samples go {' and '.join(both)}" if both else "it is one sample of each"


UNKNOWN = "the cause is not known"
BURSTS = "policing has no queue to smooth with: where the wire has no delay, a stream goes in bursts, " \
    "one for each of TCP's retransmission timeouts of 0.2 s"
DROPPED = "small flows pass first up to fastPassShare of the rate; what of the rest is dropped comes again " \
    "after 0.2 s, or after 1 s where it opens a connection"
GRACE = "with TCX, attaching waits for grace periods of RCU; the rows of clsact show the rest"
CAUSES = (
    (r"mice beside elephants, fixed load: ", not_carried),
    (r"mice (of both pods )?at full tilt: ", emulated),
    (r"strict, .*: elephant ", others_are_answered),
    (r"strict, .*: p99|.* requests at a cap of .*, natra, strict: ", DROPPED),
    (r"deviation between samples .*, policed: |(wiring|service) .*: cap of .*, error", BURSTS),
    (r"latency beside a stream ", others_keep_awake),
    (r"datagrams .*: the part that arrived",
     "natra drops what a pacing limiter does not let the sender send"),
    (r"\d+ pods at once: |under stress, \d+ pods: limited after|\d+ limited pods on the node: ADD", GRACE),
    (r"under stress, ", emulated),
    (r"(throughput|wiring|service) .*far under the cap|.*CPU seconds per GB", scatter),
    (r"\d+ flows: error of the cap", are_mice),
    (r"ADD, .*: CPU time", "seven eighths of it are the kernel's, which makes maps, programs and links"),
    (r"\d+ limited pods on the node: p99", others_differ),
    (r"kernel memory of a pod, ", "each direction has a sketch and the clocks of its heavy flows, and ingress is "
     "judged on both sides of the veth"),
)


def of(res, target):
    """Return the cause, or UNKNOWN, as a part of a sentence."""
    why = next((why for pattern, why in CAUSES if re.match(pattern, target.name)), "")
    return (why if isinstance(why, str) else why(res, target)) or UNKNOWN
