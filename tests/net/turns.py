# SPDX-License-Identifier: BSD-2-Clause
"""Limits a pod by natra and by others by turns, and prints medians as rows of a table."""
import statistics

from limiters import FqCodel, Natra, Upstream
from script import option

# With the burst that containerd gives upstream's plugin, 512 MB, nothing here reaches its limit.
UPSTREAM_BURST_BITS = 1_000_000
NATRA, PEER, POLICED = "natra", "htb + fq_codel", "policed"
OPTIONS = (option("--beside", default="",
                  help="more limiters, by comma: upstream, and into the pod policed"),
           option("--rounds", type=int, default=1))


def limiters(out, beside=""):
    """Return {name: what makes that limiter for a pod}. natra holds packets; into the pod it can
    drop them instead (`policed`)."""
    known = {
            NATRA: lambda pod: Natra(pod, *(() if out else ("--ingress-mode", "pace"))),
            PEER: FqCodel,
            POLICED: lambda pod: Natra(pod, "--ingress-mode", "police"),
            "upstream": lambda pod: Upstream(pod, burst_bits=UPSTREAM_BURST_BITS)}
    names = [NATRA, PEER, *filter(None, beside.split(","))]
    return {name: known[name] for name in names if not (out and name == POLICED)}


def way(out):
    return "out of the pod" if out else "into the pod"


def limited(r, limiter, cap, out):
    return limiter(r.pod).attach(*((None, cap) if out else (cap, None)))


def ends(r, out, lane=0):
    return (r.pod, r.clients[lane]) if out else (r.clients[lane], r.pod)


class Turns:
    """Measures cells in one direction, each `rounds` times with each limiter."""

    def __init__(self, rep, out, a):
        self.rep, self.out, self.rounds = rep, out, a.rounds
        self.limiters = limiters(out, a.beside)
        rep.shown(f"| p50 / p99 ms, Mbit/s | {' | '.join(self.limiters)} |", "")
        rep.shown("|" + "---|" * (1 + len(self.limiters)), "")

    def medians(self, r, what, cap, measure):
        """Print a row, and return {limiter: (p50, p99, Mbit/s)}. measure(source, sink) returns
        these of one turn."""
        got = {name: [] for name in self.limiters}
        for _ in range(self.rounds):
            for name, limiter in self.limiters.items():
                lim = limited(r, limiter, cap, self.out)
                try:
                    got[name].append(measure(*ends(r, self.out)))
                finally:
                    r.stop(None)
                    lim.detach()
        ret = {name: [statistics.median(column) for column in zip(*rows)]
               for name, rows in got.items()}
        cells = [f"{p50:.1f} / {p99:.1f}, {rate:.2f}" for p50, p99, rate in ret.values()]
        self.rep.shown(f"| {what}, {way(self.out)} | {' | '.join(cells)} |", "")
        return ret
