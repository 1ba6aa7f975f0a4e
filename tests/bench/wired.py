# SPDX-License-Identifier: BSD-2-Clause
"""Measures streams to and from pods that are wired to their node in each of the usual
ways, and streams to a service's address, which the node translates into a pod's.

Each cell has namespaces of its own, so that nothing of one wiring is left for the next.
"""
import copy
import json
import os
import time

from cells import EMULATED, RATES, UNCAPPED, Unavailable, cell
from commands import sh
from isolation import isolate
from limiters import Natra
from markdown import name_of, spread, table
from statistic import Stat
from stream import Stream
from target import WAYS, Target
from throughput import busy_seconds
from wirings import BRIDGE, Missing, Wiring, batch
from wirings import NAMES as PLAIN

NAMES = ("wiring", "service")
WIRINGS = ("proxyarp", *PLAIN)
CAP = "100M" if EMULATED else "1G"
FAR = "far"                     # above what is carried
# Whose throughput is told apart from no limiter's; the others have one sample.
JUDGED = ("proxyarp", "bridge", "macvlan")
JUDGED_PATHS = ("pod", "nftables")
LEAST = 0.97                    # of no limiter's, as on the wiring of throughput.py
SETTLE_SECONDS = 1
SECONDS = 1.5
# Policed streams go in bursts, one for each of TCP's retransmission timeouts of 0.2 s: one more or
# less of them should be less than what an error is judged by.
CAPPED_SECONDS = 6
FLOWS = 2                       # each way
# What a node does with connections to SERVICE. "pod": nothing, they go to the pod's own.
PATHS = ("pod", "iptables", "nftables", "flowtable", "ebpf")
SERVICE = "10.96.0.10"
# With bridge-nf-call-iptables the node also looks into what it bridges. Without it an
# answer that is bridged would not be translated, so the node is made to be the client.
SERVED = ("routed", "bridge", "bridge-nf")
# What iptables, nft and tc say of what the kernel does not have.
MISSING = ("No such file or directory", "not supported", "Unknown qdisc")
GATEWAY = "169.254.1.1"         # of all pods where the node answers ARP for it


def seconds_of(cap):
    return SECONDS if cap == FAR else CAPPED_SECONDS


def cells(_):
    """Measure the most usual ways as often as the profile asks for, but on an emulated
    CPU, where a cell takes long."""
    def seconds(cap):
        return 2 + SETTLE_SECONDS + seconds_of(cap) + (7 if EMULATED else 0)

    kinds = (("none", FAR), ("natra", FAR), ("natra", CAP))
    for name in WIRINGS:
        for lim, cap in kinds:
            yield cell("wiring", lim, seconds(cap), ci=name in ("proxyarp", "bridge"),
                       once=EMULATED or cap == CAP or name not in JUDGED, wiring=name,
                       cap=cap)
    for wiring in SERVED[:1] if EMULATED else SERVED:
        for path in PATHS:
            usual = path in JUDGED_PATHS and wiring == "routed"
            for lim, cap in kinds if usual and not EMULATED else kinds[:2]:
                yield cell("service", lim, seconds(cap), ci=usual, wiring=wiring, path=path,
                           once=EMULATED or cap == CAP or not usual, cap=cap)


def apart(work, *args):
    """Return work(*args) of a process in namespaces of its own, which end with it. Its
    answer is JSON."""
    out, into = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.close(out)
            isolate()
            try:
                answer = {"values": work(*args)}
            except (Missing, Unavailable) as e:
                answer = {"missing": str(e)}
            except Exception as e:      # for the report, as any cell's
                answer = {"error": f"{type(e).__name__}: {e}"}
            with open(into, "w") as f:
                json.dump(answer, f)
            code = 0
        finally:
            os._exit(code)
    os.close(into)
    with open(out) as f:
        text_ = f.read()
    os.waitpid(pid, 0)
    answer = json.loads(text_ or '{"error": "no answer"}')
    if "missing" in answer:
        raise Unavailable(answer["missing"])
    if "error" in answer:
        raise RuntimeError(answer["error"])
    return answer["values"]


def by_proxy_arp(wiring):
    """Give each routed end an address without a subnet, and a gateway that is nobody's:
    the node answers ARP for it, as for all that it would send elsewhere by its default
    route."""
    batch(["link add uplink0 type veth peer name uplink1", "link set uplink1 up",
           "link set uplink0 up", "route add 0.0.0.0/0 dev uplink0"])
    for end in (e for pair in wiring.pairs for e in pair):
        batch([f"addr flush dev {end.port}",
               f"route add {end.ip}/32 dev {end.port}"])
        wiring.node.sysctl(f"net.ipv4.conf.{end.port}.proxy_arp", "1")
        # The kernel waits for up to this before it answers for somebody else.
        wiring.node.sysctl(f"net.ipv4.neigh.{end.port}.proxy_delay", "0")
        batch(["addr flush dev eth0", f"addr add {end.ip}/32 dev eth0",
               f"route add {GATEWAY}/32 dev eth0 scope link",
               f"route add 0.0.0.0/0 via {GATEWAY} dev eth0"], end.name)


def wire(name, lanes):
    """Return that many pairs of a pod and its client, and the node."""
    wiring = Wiring({"proxyarp": "routed", "bridge-nf": "bridge"}.get(name, name),
                    [1500] * lanes)
    if name == "proxyarp":
        by_proxy_arp(wiring)
    if wiring.kind == "bridge":
        if name == "bridge-nf":
            sh("modprobe", "br_netfilter", check=False)     # may be built in
        try:
            with open("/proc/sys/net/bridge/bridge-nf-call-iptables", "w") as f:
                f.write("01"[name == "bridge-nf"])
        except FileNotFoundError:
            if name == "bridge-nf":
                raise Missing("this kernel has no bridge netfilter") from None
    return wiring


def by_programs(wiring, pod):
    """Return the commands for service.bpf.c on the host side of the pod's veth."""
    program = os.environ.get("NATRA_SERVICE", "")
    if not os.access(program, os.R_OK):
        raise Unavailable("NATRA_SERVICE does not name service.bpf.o")
    # The programs' names are by direction of the pod, the hooks' by that of the veth.
    hooks = (("in", "egress"), ("out", "ingress"))
    return [(("ip", "route", "add", f"{SERVICE}/32", "via", pod.ip), None),
            (("tc", "qdisc", "add", "dev", pod.port, "clsact"), None),
            *((("tc", "filter", "add", "dev", pod.port, hook, "bpf", "direct-action",
                "object-file", program, "section", f"tc/{wiring.kind}_{way}"), None)
              for way, hook in hooks)]


def rules(path, wiring, pod, masquerade):
    """Return the commands, and their input, that make the node translate SERVICE."""
    if path == "ebpf":
        return by_programs(wiring, pod)
    if path == "iptables":
        chains = [("-N", "SERVICES"), ("-N", "SERVICE"), ("-N", "POD"),
                  ("-A", "POD", "-p", "tcp", "-j", "DNAT", "--to-destination", pod.ip),
                  ("-A", "SERVICE", "-j", "POD"),
                  ("-A", "SERVICES", "-d", SERVICE, "-p", "tcp", "-j", "SERVICE"),
                  ("-A", "PREROUTING", "-j", "SERVICES")]
        if masquerade:
            chains.append(("-A", "POSTROUTING", "-m", "conntrack", "--ctstate", "DNAT",
                           "-j", "MASQUERADE"))
        return [(("iptables", "-t", "nat", *words), None) for words in chains]
    lines = [f"map pods {{ type ipv4_addr : ipv4_addr; elements = {{ {SERVICE} : "
             f"{pod.ip} }}; }}",
             "chain before { type nat hook prerouting priority dstnat; "
             "dnat to ip daddr map @pods; }"]
    if masquerade:
        lines.append("chain after { type nat hook postrouting priority srcnat; "
                     "ct status dnat masquerade; }")
    if path == "flowtable":
        devices = ", ".join(end.port for pair in wiring.pairs for end in pair)
        lines += [f"flowtable fast {{ hook ingress priority 0; devices = {{ {devices} "
                  "}; }", "chain past { type filter hook forward priority 0; "
                  "meta l4proto tcp ct state established flow add @fast; }"]
    return [(("nft", "-f", "-"), "\n".join(["table ip service {", *lines, "}"]))]


def serve(path, name, wiring):
    """Let the node translate SERVICE. Return the pod as its clients should address it."""
    pod, client = wiring.pairs[0]
    if path == "pod":
        return pod
    if wiring.kind == "bridge":
        for what in ("all", BRIDGE):
            wiring.node.sysctl(f"net.ipv4.conf.{what}.send_redirects", "0")
        batch([f"addr add 10.88.0.1/24 dev {BRIDGE}"])
        batch([f"route add {SERVICE}/32 via 10.88.0.1 dev eth0"], client.name)
    for words, given in rules(path, wiring, pod, name == "bridge"):
        try:
            sh(*words, **({"input": given} if given else {}))
        except RuntimeError as e:
            if any(missing in str(e) for missing in MISSING):
                raise Unavailable(f"this kernel has nothing for {path}") from e
            raise
    pod = copy.copy(pod)
    pod.ip = SERVICE
    return pod


def available_mib():
    with open("/proc/meminfo") as f:
        return next(int(line.split()[1]) for line in f
                    if line.startswith("MemAvailable")) / 1024


def sent_again(ends):
    """Return how many segments these namespaces have sent a second time."""
    count = 0
    for end in ends:
        with end.netfile("snmp") as f:
            names, values = (line.split() for line in f if line.startswith("Tcp:"))
        count += int(values[names.index("RetransSegs")])
    return count


def measure(workload, limiter_, params, skew):
    """Set up a cell and return its figures. A wiring has a lane for each direction; a
    service has one, into the pod."""
    memory = available_mib()
    ways = ("in", "out") if workload == "wiring" else ("in",)
    wiring = wire(params["wiring"], len(ways))
    cap = RATES.get(params["cap"])
    rate = str(int(cap * skew)) if cap else UNCAPPED
    if limiter_ != "none":
        for pod, _ in wiring.pairs:
            Natra(pod).attach(rate, rate)
    streams = {}
    for way, (pod, client) in zip(ways, wiring.pairs):
        if workload == "service":
            pod = serve(params["path"], params["wiring"], wiring)
        src, dst = (client, pod) if way == "in" else (pod, client)
        streams[way] = [Stream(src, dst, 4) for _ in range(FLOWS)]
    ends = [end for pair in wiring.pairs for end in pair]
    time.sleep(SETTLE_SECONDS)
    cpu, again, begin = busy_seconds(), sent_again(ends), time.monotonic()
    before = {way: sum(s.wire_bytes() for s in some) for way, some in streams.items()}
    time.sleep(seconds_of(params["cap"]))
    moved = {way: sum(s.wire_bytes() for s in some) - before[way]
             for way, some in streams.items()}
    cpu, again, span = (busy_seconds() - cpu, sent_again(ends) - again,
                        time.monotonic() - begin)
    values = figures(moved, span, cpu, again, cap)
    values["memory_mib"] = memory - available_mib()
    if limiter_ != "none":
        shown = Natra(wiring.pairs[0][0]).show()
        values["mode"] = shown["mode"]
    return values


def figures(moved, span, cpu, again, cap=None):
    """Return the figures of bytes that were moved each way in `span` seconds."""
    gb = sum(moved.values()) / 1e9
    if not gb:
        raise RuntimeError("no traffic")
    values = {"gbit": gb * 8 / span, "retransmissions_per_gb": again / gb}
    if not EMULATED:            # there CPU time says nothing of a real one's
        values["cpu_per_gb"] = cpu / gb
    for way, n in moved.items():
        values[f"gbit_{way}"] = n * 8e-9 / span
        if cap:
            values[f"error_{way}"] = n * 8 / span / cap - 1
    return values


def run(_, cell_, lim=None):
    return apart(measure, cell_.workload, cell_.limiter, dict(cell_.params),
                 lim.skew if lim else 1)


def text(values):
    return (f"{values['gbit']:.2f} Gbit/s, {values['retransmissions_per_gb']:.0f} "
            "retransmissions per GB" + (
                f", {values['cpu_per_gb']:.3f} CPU seconds per GB"
                if "cpu_per_gb" in values else ""))


def places(res, workload):
    """Return the wirings, and the paths of services, that were measured."""
    return list(dict.fromkeys(tuple((k, v) for k, v in key[2] if k != "cap")
                              for key in res.find(workload)))


def words_of(place):
    place = dict(place)
    path = place.get("path")
    return place["wiring"] + ("" if path is None else ", pod's address" if path == "pod"
                              else f", service by {path}")


def targets(res):
    for workload in NAMES:
        for place in places(res, workload):
            params, what = dict(place), words_of(place)
            natra, none = (Stat(column) if column else None for column in
                           res.pairs(workload, ("natra", "none"), "gbit", cap=FAR,
                                     **params))
            # An emulated CPU carries less of what runs more instructions.
            if natra and not res.data["machine"].get("emulated"):
                yield Target(f"{workload} {what}: far under the cap at least {LEAST} of "
                             "no limiter's", natra, none, "least", " Gbit/s",
                             factor=LEAST, centre="median", paired=True)
            for key in res.find(workload, "natra", **params):
                cap = dict(key[2])["cap"]
                for way, words in WAYS.items() if cap != FAR else ():
                    error = res.stat(key, f"error_{way}")
                    if error:
                        yield Target(f"{workload} {what}: cap of {cap} {words}, error",
                                     error, 5, "most", " %", centre="error")


def rows_of(res, workload, emulated):
    for place in places(res, workload):
        params = dict(place)
        none = res.get(workload, "none", "gbit", cap=FAR, **params)
        for key in res.find(workload, **params):
            def get(metric, key=key):
                return res.stat(key, metric)
            lim, cap = key[1], dict(key[2])["cap"]
            gbit = get("gbit")
            if not gbit:
                continue
            limited = name_of(lim) if lim == "none" else "natra, " + (
                    "far above" if cap == FAR else f"at {cap}")
            yield (words_of(place), limited,
                   f"{gbit.median / none.median:.2f} of no limiter's"
                   if emulated and none and lim != "none" else spread(gbit, 2),
                   spread(get("retransmissions_per_gb"), 0),
                   spread(get("cpu_per_gb"), 3), spread(get("memory_mib"), 0))


def report(res):
    emulated = res.data["machine"].get("emulated")
    head = ("", "", "Gbit/s", "retransmissions per GB", "CPU seconds per GB",
            "memory, MiB")
    wirings, services = (list(rows_of(res, w, emulated)) for w in NAMES)
    if not wirings and not services:
        return []
    return ["## Wirings", "",
            f"The table shows medians, the least and the most. {FLOWS} TCP streams go "
            "each way, each way to a pod of its own; a service has streams into its pod "
            "only. *Memory* is by how much less the machine had available than before "
            "the pods were there, with all their sockets.", "",
            *table(head, wirings),
            *(services and [
                    f"The client's node translates the service's address {SERVICE} into "
                    "the pod's. With *bridge* it also takes the client's place, because "
                    "it does not see bridged answers; with *bridge-nf* "
                    "(bridge-nf-call-iptables) it does. *ebpf* is a program on the host "
                    "side of the pod's veth, without connection tracking.", ""]),
            *table(head, services)]


def kept(res, workload):
    """Return what natra far above the wire keeps of no limiter's throughput, by place."""
    found = {}
    for place in places(res, workload):
        both = [res.get(workload, name, "gbit", cap=FAR, **dict(place))
                for name in ("natra", "none")]
        if all(both):
            found[words_of(place)] = both[0].median / both[1].median
    return found


def answers(res):
    for workload, question in (("wiring", "Does the wiring matter?"),
                               ("service", "Does a service's address matter?")):
        found = kept(res, workload)
        if found:
            worst, best = (f(found, key=found.get) for f in (min, max))
            yield (question,
                   f"natra far above the wire keeps {found[worst]:.2f} ({worst}) to "
                   f"{found[best]:.2f} ({best}) of the throughput without a limiter.")
