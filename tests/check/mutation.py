# SPDX-License-Identifier: BSD-2-Clause
"""A deliberate mistake, which one test must notice; see `mutations`."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutation:
    name: str
    file: str
    changes: tuple          # pairs of (text, replacement)
    test: str               # the test's name in meson
    args: tuple = ()        # arguments after the test's own
    vm: bool = False


def one(name, file, old, new, test, *args, vm=False):
    return Mutation(name, file, ((old, new),), test, args, vm)


def in_vm(name, file, old, new, test, *args):
    return one(name, file, old, new, test, *args, vm=True)
