# SPDX-License-Identifier: BSD-2-Clause
"""The benchmarks of ADDs share this: both plugins, and how a result is written."""
import os

import cost
import machine
import plugin
from static_build import static_natra


def prepare(arguments, command):
    """Build both plugins. `command` is how the benchmark is called."""
    arguments.upstream = plugin.newest_bandwidth()
    arguments.natra = static_natra()
    arguments.load = os.getloadavg()[0]
    if arguments.result:
        arguments.printed = machine.printed_by(command)


def load_modules(arguments, pod):
    """Run an ADD of each plugin, which also fills the caches."""
    for path in (arguments.upstream, arguments.natra):
        cost.launch(path, pod)
        cost.delete(path, pod)


def write(arguments, what, text):
    """Write a result: what was measured, on which machine, and its text."""
    if not arguments.result:
        return
    with open(arguments.result, "w") as f:
        print(f"""\
{what}
{arguments.printed}
Machine: {machine.line()}, Linux {os.uname().release}. natra is
a static build, upstream's plugin {machine.newest_plugins() or "Debian's"}. Load before: \
{arguments.load:.2f}.
""", text, sep="\n", file=f)
