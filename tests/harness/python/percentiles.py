# SPDX-License-Identifier: BSD-2-Clause
"""Computes percentiles, and judges the latency of requests beside capped streams."""
import time

CLOCK_MONOTONIC_COARSE = 6      # linux/time.h; Python has no name for it
# Some kernels' ticks are 10 ms long. Where they are shorter than 4 ms, a scheduler's slice is not.
TICK_MS = max(4, time.clock_getres(CLOCK_MONOTONIC_COARSE) * 1e3)
# Two processes that do the same on two busy cores differ by a tick of the scheduler in a few of
# their requests, and by less in most. A request that waits in the queue of a token bucket takes
# 28 ms or more.
NOISE_MS = 1 + TICK_MS
MEDIAN_NOISE_MS = 2


def percentile(ordered, p):
    if not ordered:
        return float("inf")
    return ordered[min(len(ordered) - 1, int(len(ordered) * p / 100))]


def most_ms(other_ms, noise_ms=NOISE_MS):
    """Return the bound on the time of a request that takes `other_ms` in another pod at
    that time."""
    return max(1.5 * other_ms, other_ms + noise_ms)


def judge_latency(rep, what, limited, other):
    """Check the percentiles of requests to a limited pod with streams by those of the
    same requests at the same time to a pod that has neither. The p99 is judged by the
    other's p99.9: a busy machine that stops for a moment a dozen times may by that set
    the p99 of one pod and just not that of the other, while a queue delays every
    request."""
    rep.most(f"{what}: median", limited["p50_ms"],
             most_ms(other["p50_ms"], MEDIAN_NOISE_MS), " ms")
    rep.most(f"{what}: p99", limited["p99_ms"],
             most_ms(other["p999_ms"]), " ms")
