# SPDX-License-Identifier: BSD-2-Clause
"""Parts of a report: names, figures, tables. No I/O."""

NAMES = {"none": "no limiter", "upstream": "upstream",
         "upstream-debian": "upstream, Debian's",
         "upstream-containerd": "upstream, containerd's burst",
         "natra-pace": "natra, paced ingress"}


def name_of(limiter):
    return NAMES.get(limiter, limiter.replace("-", ", ", 1))


def figure(stat, digits=1):
    """Return the mean, with the deviation if there are several samples."""
    if stat is None:
        return ""
    text = f"{stat.mean:.{digits}f}"
    return text if stat.sd is None else f"{text} ± {stat.sd:.{digits}f}"


def spread(stat, digits):
    """Return the median, with the range if there are several samples."""
    if stat is None:
        return ""
    text = f"{stat.median:.{digits}f}"
    return text if len(stat.values) == 1 else \
        f"{text} ({min(stat.values):.{digits}f} to " \
        f"{max(stat.values):.{digits}f})"


def table(head, rows):
    """Return a table's lines, with a dash where a figure was not measured."""
    if not rows:
        return []
    return ["| " + " | ".join(head) + " |", "|" + "---|" * len(head),
            *("| " + " | ".join(str(c) or "–" for c in r) + " |"
              for r in rows), ""]
