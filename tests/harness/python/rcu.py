# SPDX-License-Identifier: BSD-2-Clause
"""Gives RCU its usual grace periods while a script measures natra's calls."""
import contextlib

RCU_EXPEDITED = "/sys/kernel/rcu_expedited"


@contextlib.contextmanager
def usual_rcu():
    """Make grace periods of RCU as long as on any node. natra's calls wait for them,
    and tools/check has the kernel expedite them."""
    with open(RCU_EXPEDITED) as f:
        was = f.read()
    if int(was):
        set_rcu_expedited("0")
    try:
        yield
    finally:
        if int(was):
            set_rcu_expedited(was)


def set_rcu_expedited(value):
    with open(RCU_EXPEDITED, "w") as f:
        f.write(value)
