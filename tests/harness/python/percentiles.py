# SPDX-License-Identifier: BSD-2-Clause
"""Computes percentiles, and the p99 that requests beside capped streams may have."""


def percentile(ordered, p):
    if not ordered:
        return float("inf")
    return ordered[min(len(ordered) - 1, int(len(ordered) * p / 100))]


def p99_limit_ms(idle):
    """Return how long requests may take beside capped streams: 1.5 times the p99 of
    requests that have the machine to themselves, or 2 ms more than that if this is
    longer, because on two cores p99 varies so much by itself."""
    return max(1.5 * idle, idle + 2)
