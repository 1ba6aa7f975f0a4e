# SPDX-License-Identifier: BSD-2-Clause
"""Runs a test script: parses its options, isolates it, and ends with its report.

The script's docstring is what --help prints.
"""
import argparse
import sys

from isolation import isolate as isolate_script
from report import Report


def option(*names, **settings):
    """Return an option for run_script(), in the words of argparse's add_argument."""
    return names, settings


def some_of(name, names):
    """Return an option for the names of what to do; without one it is all of them."""
    def known(text):
        if text not in names:
            raise argparse.ArgumentTypeError(f"'{text}' is none of {', '.join(names)}")
        return text

    return option(name, nargs="*", type=known, default=list(names),
                  help=f"of {', '.join(names)}; default: all")


MODES = option("--mode", help="modes, by comma; default: all there are")
LIMITER = option("--limiter", default="natra", choices=["natra", "tbf", "upstream"],
                 help="what caps the pod; the others show that the test can fail")


def chosen(parts, only):
    """Return those of a dict that an option names by comma, or all of it if it names none."""
    names = only.split(",") if only else list(parts)
    unknown = set(names) - set(parts)
    if unknown:
        sys.exit(f"--only: {', '.join(unknown)} is none of {', '.join(parts)}")
    return {name: part for name, part in parts.items() if name in names}


def arguments(*options):
    """Return the arguments of the script that runs."""
    parser = argparse.ArgumentParser(
            description=sys.modules["__main__"].__doc__,
            formatter_class=argparse.RawDescriptionHelpFormatter)
    for names, settings in options:
        parser.add_argument(*names, **settings)
    return parser.parse_args()


def run_script(main, *options, prepare=None, isolate=isolate_script):
    """Call main(report, arguments) isolated, and exit with the report's code.

    prepare(arguments) is called first, while the script still sees the machine's
    directories and network. It may add to the arguments.
    """
    args = arguments(*options)
    if prepare:
        prepare(args)
    isolate()
    report = Report()
    main(report, args)
    report.end()
