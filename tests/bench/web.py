# SPDX-License-Identifier: BSD-2-Clause
"""Measures a capped pod as a server: requests by many connections at once, kept or each a
new one, and what CPU time each costs; a long download with its start; and datagrams.

ab asks, because it takes little CPU of its own: what is compared is the limiters' part.

Seven samples are taken of what a target compares: requests, downloads out of the pod and
datagrams that are nearly as fast as the cap. Everything else has one.
"""
import os
import re
import subprocess
import time

from cells import EMULATED, LIMITERS, UNCAPPED, cell, cpu_bound
from cputime import KINDS, cpu_since, cpu_split
from limiters import bits
from markdown import name_of, ranked, table
from meter import ETH_IPV4_UDP
from mixed import CONTRACTS, PEERS, RIVALS, STRICT, WITHIN
from pods import limiter
from statistic import Stat
from target import WAYS, Target
from web_load import fetch

NAMES = ("http", "download", "udp")
KEPT = {"keep-alive": ("-k",), "fresh": ()}
CONNECTIONS = 40 if EMULATED else 400
SETTLE_SECONDS, SECONDS = 1, 4
MOST_REQUESTS = 10**6           # ab takes 40 bytes for each that there may be
# A cap that binds, and the size and the cap of a download.
BOUND = "10M" if EMULATED else "100M"
DOWNLOAD_MB, DOWNLOAD_RATE = (8, "20M") if EMULATED else (500, "1G")
OFFERED = (0.9, 2)              # datagrams, in parts of the cap
UDP_SECONDS = 2
DATAGRAM = 1400
JUDGED = ("upstream", "natra")  # in downloads and datagrams
PORT, UDP_PORT = 8080, 5300
SEGMENT, ON_WIRE = 1448, 1514   # the bytes of a full TCP segment


def limiters(node):
    return "none", "upstream", "natra", "natra-strict", *node.qdiscs


def cells(node):
    yield from http_cells(node)
    for name in limiters(node):
        seconds = 2 if name == "none" else 6.5 if EMULATED else 5
        yield download_cell(name, seconds, "out", EMULATED or name not in JUDGED)
    for name in ("natra", *node.paced) if node.paced else ():
        yield download_cell(name, 6.5, "in", True)
    for offered in OFFERED[1:] if EMULATED else OFFERED:
        for way in WAYS:
            for name in limiters(node)[1:] if offered > 1 else JUDGED:
                yield cell("udp", name, 6.5 if EMULATED else SETTLE_SECONDS + UDP_SECONDS
                           + 0.3, way=way, rate=BOUND, offered=offered,
                           ci=way == "in" and name in JUDGED,
                           once=EMULATED or offered > 1)


def http_cells(node):
    overhead = 2 if EMULATED else 1
    for kind in KEPT:
        for name in ("none", "upstream", "natra"):
            yield cell("http", name, SECONDS + overhead, ci=True, why_not=cpu_bound(),
                       kind=kind, cap=UNCAPPED, clients=CONNECTIONS)
        for name in (*limiters(node)[1:], *node.paced):
            # On an emulated CPU there is time for the peers with fresh connections only.
            if EMULATED and kind != "fresh" and name in node.qdiscs:
                continue
            # Requests that wait under the cap hold ab up at its end.
            waiting = 2 if kind == "fresh" and not EMULATED else 0
            yield cell("http", name, SECONDS + overhead + waiting, cap=BOUND, kind=kind,
                       clients=CONNECTIONS,
                       ci=not name.startswith((*PEERS[1:], "natra-pace")),
                       once=name not in ("natra-strict", *RIVALS) or
                       EMULATED and kind != "fresh")


def download_cell(name, seconds, way, once):
    return cell("download", name, seconds, ci=way == "out" and name in LIMITERS, way=way,
                rate=DOWNLOAD_RATE, mb=DOWNLOAD_MB, once=once)


def run(r, cell_, lim=None):
    lim = lim or limiter(cell_.limiter)
    values = {"http": http, "download": download, "udp": udp}[cell_.workload](
            r, cell_, lim)
    values.update(r.natra_state(r.pod))
    return values


def http(r, cell_, lim):
    r.add("perf-server", lim, bits(cell_.param("cap")))
    url = r.nginx()
    spread = f"{r.tmp.name}/ab.csv"
    meters, cpu = r.meters(), cpu_split()
    ab = r.client.popen("ab", "-q", "-r", "-l", *KEPT[cell_.param("kind")], "-s", "5",
                        "-c", str(cell_.param("clients")), "-t", str(SECONDS), "-n",
                        str(MOST_REQUESTS), "-e", spread, url, stdout=subprocess.PIPE,
                        text=True)
    r.wait_flow(*meters)
    # The pod's traffic is compared with the cap when the burst is used up.
    time.sleep(SETTLE_SECONDS)
    before = [m.read() for m in meters]
    time.sleep(SECONDS - SETTLE_SECONDS - 0.5)
    after = [m.read() for m in meters]
    said, _ = ab.communicate(timeout=SECONDS + 30)
    cpu = cpu_since(cpu)
    r.client.stop(ab)
    with open(spread) as f:
        values = of_ab(said, f.read())
    values |= {f"{kind}_us": seconds * 1e6 / values["requests"]
               for kind, seconds in cpu.items()}
    values["cpu_us"] = sum(cpu.values()) * 1e6 / values["requests"]
    values |= {f"wire_{way}": (b1 - b0) * 8e-6 / (t1 - t0)
               for way, (t0, b0), (t1, b1) in zip(WAYS, before, after)}
    return values


def of_ab(said, spread):
    """Return the figures of ab's output and of its file of percentages."""
    def number(name):
        return float(re.search(rf"^{name}: +([\d.]+)", said, re.M)[1])

    rows = dict(re.findall(r"^(\d+),([\d.]+)$", spread, re.M))
    done = number("Complete requests")
    if not done:
        raise RuntimeError("no request was answered")
    return {"requests": done, "failed": number("Failed requests"),
            "rps": done / number("Time taken for tests"),
            "p50_ms": float(rows["50"]), "p99_ms": float(rows["99"])}


def download(r, cell_, lim):
    """Fetch a file from the pod, or from the client into the pod."""
    r.add("perf-server", lim, bits(cell_.param("rate")))
    ends = (r.client, r.pod) if cell_.param("way") == "in" else (r.pod, r.client)
    server, asker = ends
    r.nginx(port=PORT, pod=server)
    # Its blocks are not on the disk: what is measured is the network.
    count = cell_.param("mb") * 10**6
    os.truncate(f"{r.tmp.name}/{server.name}/file", count)
    return r.load_end(asker.fork(fetch, server.ip, PORT, "/file", count), asker,
                      seconds=120)


def least_seconds(count, rate):
    """Return how long so many bytes take at a rate on the wire."""
    return count * 8 * ON_WIRE / SEGMENT / rate


def udp(r, cell_, lim):
    cap = bits(cell_.param("rate"))
    r.add("perf-server", lim, cap)
    ends = (r.client, r.pod) if cell_.param("way") == "in" else (r.pod, r.client)
    src, dst = ends
    sink = r.load(dst, "udp-sink", UDP_PORT)
    r.wait_port(dst, UDP_PORT, "udp")
    measure = r.into if cell_.param("way") == "in" else r.out_of
    sender = r.load(src, "udp-send", dst.ip, UDP_PORT, "--rate",
                    cell_.param("offered") * cap, "--size", DATAGRAM)
    meter = measure(header=ETH_IPV4_UDP)
    r.wait_flow(meter)
    time.sleep(SETTLE_SECONDS)
    (t0, b0), cpu = meter.read(), cpu_split()
    time.sleep(UDP_SECONDS)
    (t1, b1), cpu = meter.read(), cpu_since(cpu)
    dst.stop(sink)
    sent = r.load_end(sender, src, now=True)["sent"]
    wire = (b1 - b0) * 8 / (t1 - t0)
    return {"wire": wire / 1e6, "sent": sent / 1e6, "error": wire / cap - 1,
            "arrived": wire / sent, "cpu_per_gb": sum(cpu.values()) / ((b1 - b0) / 1e9)}


def text(values):
    if "rps" in values:
        return (f"{values['rps']:.0f} requests/s, p99 {values['p99_ms']:.1f} ms, "
                f"{values['cpu_us']:.0f} us of CPU each, wire "
                f"{values['wire_in']:.1f} / {values['wire_out']:.1f}")
    if "seconds" in values:
        return (f"{values['seconds']:.2f} s, first byte after "
                f"{values['first_byte_ms']:.1f} ms")
    return f"wire {values['wire']:.1f} of {values['sent']:.1f} Mbit/s"


def compared(res, workload, metric, ours, theirs, words, sense, unit, factor=1, **params):
    """Return a target in a list, or none where one of the two was not measured. Samples
    are compared in pairs, because a machine that is slower for a while is so for both."""
    pair = [Stat(column) for column in
            res.pairs(workload, (ours, theirs), metric, **params) if column]
    demanded = f"{factor} of " if factor != 1 else ""
    return [Target(f"{words}, {name_of(ours)}: at {sense} {demanded}{name_of(theirs)}'s",
                   *pair, sense, unit, factor=factor, paired=True)] if pair else []


def first(res, workload, name):
    """Return a parameter of the first such cell that was measured, or None: a VM's run
    has others than its host's, where the report is made."""
    found = [dict(k[2])[name] for k in res.find(workload)]
    return next((v for v in found if v != UNCAPPED), None)


def targets(res):
    for kind in KEPT:
        words = f"{kind} requests/s far under the cap"
        free = {"kind": kind, "cap": UNCAPPED}
        yield from compared(res, "http", "rps", "natra", "none", words, "least", "/s",
                            0.97, **free)
        yield from compared(res, "http", "rps", "natra", "upstream", words, "least", "/s",
                            **free)
        yield from compared(res, "http", "cpu_us", "natra", "upstream",
                            f"CPU time of a {kind} request far under the cap", "most",
                            " us", **free)
        yield from strict(res, kind, first(res, "http", "cap"))
    for way, words in WAYS.items():
        yield from compared(res, "download", "seconds", "natra", "upstream",
                            f"download {words}, {size(res)}: time", "most", " s", way=way)
        for offered in OFFERED:
            yield from compared(res, "udp", "arrived", "natra", "upstream",
                                f"datagrams {words}, {offered} times the cap: the part "
                                "that arrived", "least", "", 0.95, way=way,
                                offered=offered)


def strict(res, kind, cap):
    """Compare natra that charges mice, too, with those that promise the same."""
    params = {"kind": kind, "cap": cap}
    wire = res.get("http", "natra-strict", "wire_out", **params)
    if wire:
        yield Target(f"{kind} requests at a cap of {cap}, strict: all of the pod's "
                     "traffic out, at most 1.05 of the cap", wire, bits(cap) / 1e6,
                     "most", " Mbit/s", factor=1.05)
    for rival in RIVALS:
        for metric, what, sense, unit in (("rps", "requests/s", "least", "/s"),
                                          ("p99_ms", "p99", "most", " ms")):
            yield from compared(res, "http", metric, "natra-strict", rival,
                                f"{kind} requests at a cap of {cap}: {what}",
                                sense, unit, **params)


def size(res):
    """Return in words what was downloaded at which cap."""
    mb, rate = (first(res, "download", name) for name in ("mb", "rate"))
    return f"{mb // 1000} GB at {rate}" if mb and mb >= 1000 else f"{mb} MB at {rate}"


def http_rows(res, kind, cap):
    for key in res.find("http", kind=kind, cap=cap):
        def get(metric, digits=0, key=key):
            s = res.stat(key, metric)
            return f"{s.mean:.{digits}f}" if s else ""
        if get("rps"):
            yield (name_of(key[1]), CONTRACTS.get(key[1], STRICT),
                   f"{get('wire_in', 1)} / {get('wire_out', 1)}", get("rps"),
                   f"{get('p50_ms', 1)} / {get('p99_ms', 1)}", get("cpu_us"),
                   *(get(f"{kind}_us") for kind in KINDS))


def http_report(res):
    lines = []
    head = ("", WITHIN, "all of the pod's traffic in / out, Mbit/s", "requests/s",
            "p50 / p99, ms", "CPU of a request, us", *(f"{k}, us" for k in KINDS))
    for cap in dict.fromkeys(dict(k[2])["cap"] for k in res.find("http")):
        for kind, words in (("keep-alive", "Connections that are kept"),
                            ("fresh", "A new connection for each request")):
            rows = list(http_rows(res, kind, cap))
            where = "far under the cap" if cap == UNCAPPED else f"at a cap of {cap}"
            if rows:
                lines += [f"{words}, {where}:", "", *table(head, rows)]
    return lines and ["## Requests of many connections", "",
                      f"{first(res, 'http', 'clients')} connections at once ask the "
                      "capped pod for 6 kB as often as they can. CPU time is the whole "
                      "machine's, of client, server and limiter.", "", *lines]


def download_report(res):
    rows = []
    for key in res.find("download"):
        params = dict(key[2])
        found = [res.stat(key, m) for m in (
                "seconds", "first_byte_ms", "first_second_mb")]
        if all(found):
            took, byte, begun = (s.mean for s in found)
            least = least_seconds(params["mb"] * 10**6, bits(params["rate"]))
            rows.append((WAYS[params["way"]], name_of(key[1]), f"{took:.2f}",
                         "" if key[1] == "none" else f"{took / least:.3f}",
                         f"{byte:.2f}", f"{begun:.1f}"))
    return rows and ["## A download", "",
                     f"One connection fetches {size(res)}. *Of "
                     "the cap's time* compares with the time that the cap takes for it, "
                     "headers included; a burst makes it less.", "",
                     *table(("direction", "", "seconds", "of the cap's time",
                             "first byte after, ms", "MB in the first second"), rows)]


def udp_report(res):
    rows = []
    for key in res.find("udp"):
        params = dict(key[2])
        found = [res.stat(key, m) for m in ("sent", "wire", "arrived", "cpu_per_gb")]
        if all(found):
            sent, wire, arrived, cpu = (s.mean for s in found)
            rows.append((params["offered"], WAYS[params["way"]], name_of(key[1]),
                         f"{sent:.1f}", f"{wire:.1f}", f"{arrived:.1%}", f"{cpu:.2f}"))
    return rows and ["## Datagrams", "",
                     f"Datagrams of {DATAGRAM} bytes at a cap of "
                     f"{first(res, 'udp', 'rate')}, for which their sender does not slow "
                     "down. A pacing limiter lets the sender's "
                     "socket wait, so less is sent.", "",
                     *table(("times the cap", "direction", "", "sent, Mbit/s",
                             "on the wire", "arrived", "CPU seconds per GB"), rows)]


def report(res):
    return [*http_report(res), *download_report(res), *udp_report(res)]


def answers(res):
    for kind in KEPT:
        found = {n: [res.mean("http", n, m, kind=kind, cap=UNCAPPED, clients=CONNECTIONS)
                     for m in ("rps", "cpu_us")] for n in ("none", "upstream", "natra")}
        if all(all(pair) for pair in found.values()):
            yield (f"What does a limiter cost a server of {kind} requests?", "; ".join(
                    f"{name_of(n)} {rps:.0f} requests/s at {us:.0f} us of CPU each"
                    for n, (rps, us) in found.items()) + ".")
    found = {name: res.mean("download", name, "seconds", way="out")
             for name in ("natra", "natra-strict", *PEERS)}
    if said := ranked(found, "{:.2f} s"):
        yield f"How long does a download of {size(res)} take?", f"{said}."
