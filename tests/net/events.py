#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks what natractl events reports of real traffic.

A stream becomes heavy once, however long it lasts, and while its packets are dropped that
is reported once in a second. A pod that opens heavy flow after heavy flow does not keep
another pod's event from a reader. All readers get the same. Small flows that exceed the
limit together are told once, with the factor.
"""
import json
import os
import sys
import time
from collections import Counter
from subprocess import PIPE

sys.path.insert(0, os.path.dirname(__file__) + "/../harness/python")
from commands import sh
from isolation import BPFFS
from limiters import Natra, bits, find_natractl
from meter import ETH_IPV4_UDP
from rig import Rig
from script import option, run_script

PORT, SPREAD_PORT, SINK_PORT = 5401, 5300, 7000
WINDOW = 2**30 / 1e9            # seconds
AT_ONCE = 16                    # NATRA_EVENT_FLOWS
PATIENCE = 30                   # seconds


def events_of(lim, *args):
    out = lim.ok("events", "--json", *args)
    return [json.loads(line) for line in out.splitlines()]


def hosts(r):
    """Give the first client a thousand addresses beside its own. Return the first."""
    sh("ip", "route", "replace", "10.79.0.0/22", "via", r.client.ip, "dev", r.client.host)
    r.client.run("ip", "route", "replace", "local", "10.79.0.0/22", "dev", "lo")
    return "10.79.0.0"


def stream(r, rep, seconds):
    lim = Natra(r.pod).attach(None, "10M", "--edt-pacing", "off")
    begin = time.monotonic()
    procs = r.elephant(r.pod, r.client, PORT)
    r.wait_flow(r.out_of())
    time.sleep(seconds)
    events, dropped = events_of(lim, lim.id), lim.stats()["egress"]["dropped_rate"]
    windows = (time.monotonic() - begin) / WINDOW + 2
    r.stop(procs)
    reasons = Counter(e["reason"] for e in events)
    rep.shown("packets dropped", dropped["packets"])
    rep.least("packets dropped", dropped["packets"], 10)
    rep.equal("the stream became heavy", reasons["heavy"], 1)
    rep.least("drops were told", reasons["dropped_rate"], 2)
    rep.most("  in as many windows", reasons["dropped_rate"], windows)
    rep.equal("nothing else was told", reasons.total(),
              reasons["heavy"] + reasons["dropped_rate"])
    rep.equal("they are of the stream", {(e["daddr"], e["dport"], e["direction"], e["id"])
                                         for e in events},
              {(r.client.ip, PORT, "egress", lim.id)})
    again = events_of(lim, lim.id)[:len(events)]
    rep.equal("another reader gets as many", len(again), len(events))
    rep.true("  and the same", [e["time_ns"] for e in again] == [e["time_ns"] for e in events])
    table = lim.ok("events", lim.id).splitlines()
    rep.true("the table has them", len(table) > len(events) and "heavy" in table[1])
    lim.detach()


def attach_anew(lim, cap, seconds, groups):
    """Attach again and again, as who edits a pod's annotations can have it: for so long, and
    until so many limits were told, which takes more windows where an attach takes long."""
    begin = time.monotonic()
    for n in range(1000):
        passed = time.monotonic() - begin
        if passed >= seconds and (len(over_limit(lim)) >= groups or passed >= PATIENCE):
            return
        lim.attach(None, cap, "--sli", "off" if n % 2 else "on")
        time.sleep(0.7)


def over_limit(lim):
    return [e for e in events_of(lim) if e["id"] == lim.id and e["reason"] == "over_limit"]


def over(r, rep, mode, seconds):
    """Small flows of four caps together exceed the limit if they are free, and with it the
    same limit of the pod's group, also if the pod is attached anew in each window."""
    cap = bits("1M")
    Natra().ok("group", "set", "team", "--egress-rate", cap)
    lim = Natra(r.pod, "--fast-pass", mode, "--group", "team").attach(None, cap)
    r.load(r.client, "udp-sink", SINK_PORT)
    r.wait_port(r.client, SINK_PORT, "udp")
    meter = r.out_of(header=ETH_IPV4_UDP)
    p = r.load(r.pod, "udp-send", r.client.ip, SINK_PORT, "--ports", 100, "--rate", 4 * cap,
               "--no-wait", "--segments", 1)
    r.wait_flow(meter)
    reader = follow(r)
    begin, before = meter.read()
    told = ["", "team"] if mode == "free" else []
    attach_anew(lim, cap, seconds + 3, len(told))
    end, after = meter.read()
    factor = (after - before) * 8 / (end - begin) / cap
    events = [e for e in end_reader(reader)
              if e["id"] == lim.id and e["reason"] == "over_limit"]
    stats = lim.stats()["egress"]
    r.load_end(p, r.pod, now=True)
    r.stop(None)
    rep.equal(f"{mode}, small flows of {factor:.2f} limits: told",
              sorted(e["group"] for e in events), told)
    for event in events:
        # The event is of one window, in which the sender may have stalled for 0.1 s. While two
        # of the pod's attachments are there, the group hears of a packet twice.
        rep.near(f"  times the limit of {event['group'] or 'the pod'}",
                 event["over_limit_percent"] / 100, factor, 0.15 if event["group"] else 0.1)
        rep.equal("  of a flow", (event["daddr"], event["direction"]),
                  ("-", "egress"))
    rep.equal("  in the counters", bool(stats["over_limit_time_ns"]), mode == "free")
    lim.detach()
    Natra().ok("group", "remove", "team")


def follow(r):
    return r.node.popen(find_natractl(), "--bpffs", BPFFS, "events", "--follow", "--json",
                        text=True, stdout=PIPE)


def end_reader(reader):
    """Return what a reader has got, when it has had time for it."""
    time.sleep(0.5)
    reader.terminate()
    out, _ = reader.communicate(timeout=10)
    return [json.loads(line) for line in out.splitlines()]


def hostile(r, rep, seconds):
    """The first pod sends to a thousand addresses, each of which is a heavy flow at once."""
    loud = Natra(r.pods[0]).attach(None, "4M", "--heavy-hitter-threshold", "1", "--edt-pacing",
                                   "off")
    quiet = Natra(r.pods[1]).attach(None, "10M", "--edt-pacing", "off")
    reader = follow(r)
    begin = time.monotonic()
    r.load(r.client, "udp-sink", SPREAD_PORT)
    r.wait_port(r.client, SPREAD_PORT, "udp")
    others = r.load(r.pod, "udp-spread", hosts(r), SPREAD_PORT, "--hosts", 1000, "--rate",
                    8e6, "--size", 500)
    time.sleep(1)
    procs = r.elephant(r.pods[1], r.clients[1], PORT)
    r.wait_flow(r.out_of(1))
    time.sleep(seconds)
    r.stop([others, *procs])
    windows = (time.monotonic() - begin) / WINDOW + 2
    events = end_reader(reader)
    told = {lim: Counter(e["reason"] for e in events if e["id"] == lim.id)
            for lim in (loud, quiet)}
    rep.equal("the quiet pod's stream became heavy", told[quiet]["heavy"], 1)
    rep.least("the loud pod's flows were told", told[loud]["heavy"], AT_ONCE)
    rep.most("  so many at most", told[loud]["heavy"], AT_ONCE + windows)
    rep.least("  and the others counted", loud.stats()["egress"]["events_suppressed"], 500)
    rep.equal("events lost", sum(e["lost"] for e in events), 0)
    loud.detach()
    quiet.detach()


def main(rep, a):
    with Rig(lanes=2) as r:
        none = Natra().run("events")
        rep.equal("without an attachment: exit code", none.returncode, 1)
        rep.equal("  lines", len(none.stderr.splitlines()), 1)
        rep.measure("stream", stream, r, rep, a.seconds)
        for mode in ("free", "strict"):
            rep.measure(f"over the limit, {mode}", over, r, rep, mode, a.seconds)
        rep.measure("hostile pod", hostile, r, rep, a.seconds)
        rep.equal("after the last detach", Natra().run("events").stderr, none.stderr)


if __name__ == "__main__":
    run_script(main, option("--seconds", type=float, default=3))
