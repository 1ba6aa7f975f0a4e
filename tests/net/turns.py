# SPDX-License-Identifier: BSD-2-Clause
"""Limits a pod by natra and by htb with fq_codel by turns, and prints rows of a table."""
from limiters import FqCodel, Natra

NATRA, PEER = "natra", "htb + fq_codel"


def natra(out):
    """Return what makes natra for a pod, where it holds packets."""
    return lambda pod: Natra(pod, *(() if out else ("--ingress-mode", "pace")))


def way(out):
    return "out of the pod" if out else "into the pod"


def limited(r, limiter, cap, out):
    return limiter(r.pod).attach(*((None, cap) if out else (cap, None)))


def ends(r, out, lane=0):
    return (r.pod, r.clients[lane]) if out else (r.clients[lane], r.pod)


class Turns:
    """Measures cells in one direction with each limiter."""

    def __init__(self, rep, out):
        self.rep, self.out = rep, out
        self.limiters = {NATRA: natra(out), PEER: FqCodel}
        rep.shown(f"| p50 / p99 ms, Mbit/s | {' | '.join(self.limiters)} |", "")
        rep.shown("|" + "---|" * (1 + len(self.limiters)), "")

    def row(self, r, what, cap, measure):
        """Print a row, and return natra's (p50, p99, Mbit/s), which measure(source, sink)
        returns of a turn."""
        got = {}
        for name, limiter in self.limiters.items():
            lim = limited(r, limiter, cap, self.out)
            try:
                got[name] = measure(*ends(r, self.out))
            finally:
                r.stop(None)
                lim.detach()
        cells = [f"{p50:.1f} / {p99:.1f}, {rate:.2f}" for p50, p99, rate in got.values()]
        self.rep.shown(f"| {what}, {way(self.out)} | {' | '.join(cells)} |", "")
        return got[NATRA]
