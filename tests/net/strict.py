#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks that with --fast-pass strict the cap holds for mice and elephants together.

A client opens connections on a clock, whatever becomes of the earlier ones, so that the
mice out of the pod are multiples of the 10M cap. An elephant runs beside them in each
direction. If there is room for all mice, as many go to a second pod at the same time,
which has neither a limit nor elephants; theirs may not take much longer. The cap also holds
for greedy streams of which each stays small, and for one client that fetches file after file.
"""
import os
import sys
import time

sys.path.insert(0, os.path.dirname(__file__) + "/../harness/python")
from limiters import Natra, bits, forgiven
from meter import wire_rates
from percentiles import judge_latency
from rig import Elephant, Rig
from script import option, run_script

CAP = "10M"
SHARE = 0.8                     # natra's default fast-pass share
STREAMS_CAP = "100M"
FILE = 100000                   # bytes, under 0.1 s of the cap
FILES_PORT = 5900
SERVER = f"""
import socket, sys
server = socket.create_server(("", {FILES_PORT}), backlog=512)
while True:
    c, _ = server.accept()
    try:
        c.recv(1)
        c.sendall(bytes(int(sys.argv[1])))
    except OSError:
        pass
    c.close()
"""
CLIENT = f"""
import socket, sys
while True:
    try:
        with socket.create_connection((sys.argv[1], {FILES_PORT}), 3) as s:
            s.sendall(b"G")
            while s.recv(65536):
                pass
    except OSError:
        pass
"""


def request_size(r):
    """Measure and return the wire bytes out of the pod per request."""
    meter = r.out_of()
    before = meter.read()[1]
    p = r.load(r.client, "http", r.pod.ip, 80, "/file", "--rps", 200,
               "--seconds", 1)
    done = r.load_end(p, r.client)["done"]
    return (meter.read()[1] - before) / done


def opened(r):
    """Return how many connections the client has begun."""
    with r.client.netfile("snmp") as f:
        names, values = [s.split() for s in f if s.startswith("Tcp:")]
    return int(values[names.index("ActiveOpens")])


def mice(r, a, lane, rps):
    return r.load(r.clients[lane], "http", r.pods[lane].ip, 80, "/file", "--rps", rps,
                  "--seconds", a.seconds + a.settle)


def one(r, a, rps, lim, compared, cap=CAP):
    """Send mice at `rps` beside elephants, and if they are `compared` to the other pod,
    too."""
    if lim:
        lim.attach(cap, cap)
    paced = bool(lim) and lim.edt_active()
    ins = Elephant(r, r.client, r.pod, 5401, "in")
    out = Elephant(r, r.pod, r.client, 5402, "out")
    r.wait_flow(*r.meters())
    time.sleep(a.settle)
    p = mice(r, a, 0, rps)
    other = mice(r, a, 1, rps) if compared else None
    opens, end = opened(r), time.monotonic() + 10
    while opened(r) - opens < 5 and time.monotonic() < end:
        time.sleep(0.02)
    time.sleep(a.settle)
    start = time.monotonic()
    rates = wire_rates(r.meters(), a.seconds - 0.2)
    end = time.monotonic()
    got = r.load_end(p, r.client)
    if compared:
        got["other"] = r.load_end(other, r.clients[1])
    got["wire"], got["seconds"], got["paced"] = rates, end - start, paced
    got["elephant"] = [ins.rate(start, end), out.rate(start, end)]
    r.stop(ins.procs + out.procs)
    if lim:
        lim.detach()
    return got


def show(rep, name, got):
    rep.shown(name, f"mice {got['offered']:.0f}/s offered, "
              f"{got['done']:.0f} served, {got['failed']} failed, p99 "
              f"{got['p99_ms']:.1f} ms; wire in {got['wire'][0] / 1e6:.2f} "
              f"out {got['wire'][1] / 1e6:.2f}; elephants in "
              f"{got['elephant'][0] / 1e6:.2f} out "
              f"{got['elephant'][1] / 1e6:.2f} Mbit/s")


def most(paced, rate, seconds):
    """Return the bound on what may come of a rate in so many seconds. Nothing is forgiven where
    packets are paced."""
    return (1 + (0.05 if paced else forgiven(rate, seconds))) * rate


def offered(r, rep, a, m, rps, lim):
    """Send mice at `rps`, which is `m` times the cap."""
    cap = bits(CAP)
    got = one(r, a, rps, lim, m < SHARE)
    show(rep, f"{m:g} x cap", got)
    for i, way in enumerate(("in", "out")):
        paced = got["paced"] and way == "out"
        rep.most(f"{m:g} x cap: sum {way}", got["wire"][i] / 1e6,
                 most(paced, cap, got["seconds"]) / 1e6, " Mbit/s")
        # If mice crowd out the acknowledgements, the stream into the pod does not
        # have to fill its cap, but has to keep its part. The rate of one policed stream
        # swings around its cap for longer than this measurement takes.
        if way == "out" or m < SHARE:
            rep.least(f"{m:g} x cap: sum {way}", got["wire"][i] / 1e6,
                      (0.95 if paced else 0.9) * cap / 1e6, " Mbit/s")
        rep.least(f"{m:g} x cap: elephant {way}", got["elephant"][i] / 1e6,
                  0.15 * cap / 1e6, " Mbit/s")
    if m < SHARE:
        judge_latency(rep, f"{m:g} x cap", got, got["other"])


def streams(r, rep, a, n, lim):
    """Streams are small flows where they are many: each has less than makes it heavy."""
    lim.attach(None, STREAMS_CAP)
    sums = {5601 + i // 100: min(100, n - i) for i in range(0, n, 100)}
    procs = [r.stream_server(r.client, port) for port in sums]
    procs += [r.stream_client(r.pod, r.client, port, flows) for port, flows in sums.items()]
    r.wait_flow(r.out_of())
    time.sleep(2 * a.settle)
    rate = wire_rates([r.out_of()], a.seconds)[0]
    limit = most(lim.edt_active(), bits(STREAMS_CAP), a.seconds)
    r.stop(procs)
    lim.detach()
    rep.most(f"{n} greedy streams: sum out", rate / 1e6, limit / 1e6, " Mbit/s")
    rep.least(f"{n} greedy streams: sum out", rate / 1e6, 0.9 * bits(STREAMS_CAP) / 1e6,
              " Mbit/s")


def files(r, rep, a, lim):
    """One client fetches file after file, each on a new connection and a small flow."""
    server = r.pod.popen(sys.executable, "-c", SERVER, str(FILE))
    r.wait_port(r.pod, FILES_PORT)
    lim.attach(None, CAP)
    client = r.client.popen(sys.executable, "-c", CLIENT, r.pod.ip)
    r.wait_flow(r.out_of())
    time.sleep(2 * a.settle)
    rate = wire_rates([r.out_of()], a.seconds)[0]
    r.stop([client, server])
    lim.detach()
    rep.most("one client, file after file: sum out", rate / 1e6, 1.1 * bits(CAP) / 1e6,
             " Mbit/s")
    rep.least("one client, file after file: sum out", rate / 1e6, 0.5 * bits(CAP) / 1e6,
              " Mbit/s")


def main(rep, a):
    cap = bits(CAP)
    with Rig(lanes=2) as r:
        for pod in r.pods:
            r.nginx(pod=pod)
        size = request_size(r)
        rep.shown("wire bytes out of the pod per request",
                  f"{size:.0f}")
        lim = Natra(r.pod, "--fast-pass", "strict")
        for m in map(float, a.multiples.split(",")):
            rep.measure(f"{m:g} x cap", offered, r, rep, a, m,
                        m * cap / 8 / size, lim)
        for n in map(int, a.streams.split(",")):
            rep.measure(f"{n} streams", streams, r, rep, a, n, lim)
        rep.measure("files", files, r, rep, a, lim)


if __name__ == "__main__":
    run_script(main,
        option("--multiples", default="0.2,0.5,1,5"),
        option("--streams", default="10,100,1000"),
        option("--seconds", type=float, default=6),
        option("--settle", type=float, default=2))
