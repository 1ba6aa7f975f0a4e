# SPDX-License-Identifier: BSD-2-Clause
"""Computes percentiles, and judges the latency of requests beside capped streams."""

# Two processes that do the same on two busy cores differ by a tick of the scheduler, which
# is 4 ms long. A request that waits in the queue of a token bucket takes 30 ms or more.
NOISE_MS = 5


def percentile(ordered, p):
    if not ordered:
        return float("inf")
    return ordered[min(len(ordered) - 1, int(len(ordered) * p / 100))]


def most_beside(rep, what, limited, other):
    """Check a percentile, in ms, of requests to a limited pod with streams, by that of
    the same requests at the same time to a pod that has neither."""
    rep.most(what, limited, max(1.5 * other, other + NOISE_MS), " ms")
