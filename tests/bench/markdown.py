# SPDX-License-Identifier: BSD-2-Clause
"""Parts of a report: names, figures, tables. No I/O."""

NAMES = {"none": "no limiter", "upstream": "upstream",
         "upstream-debian": "upstream, Debian's",
         "upstream-1.5.1": "upstream 1.5.1 (htb)",
         "upstream-containerd": "upstream, containerd's burst",
         "natra-pace": "natra, paced ingress",
         "natra-policed-strict": "natra, policed, strict",
         "natra-policed-off": "natra, policed, off"}

# What differs by less than this part is said to be level.
LEVEL = 0.05


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


def factor(ratio):
    return f"{ratio:.0f}" if ratio >= 100 else f"{ratio:.3g}"


def ranked(found, form, most=False):
    """Say who wins among limiters with a figure, and by how much, or return "" if there
    are no two of them. No limiter is no rival, as it keeps no promise."""
    rivals = sorted(((v, n) for n, v in found.items() if v is not None and n != "none"),
                    reverse=most)
    if len(rivals) < 2:
        return ""
    (best, first), (second, _) = rivals[:2]
    level = abs(second - best) <= LEVEL * max(abs(best), abs(second))
    rest = [f"{name_of(n)} {form.format(v)}" + (
            f" ({factor(v / best)} times as much)" if best and not level else "")
            for v, n in rivals[1:]]
    none = found.get("none")
    return (f"{name_of(first)} {'is level with the next' if level else 'wins'}: "
            f"{form.format(best)}; {'; '.join(rest)}" + (
                    f"; without a limiter {form.format(none)}"
                    if none is not None else ""))


def table(head, rows):
    """Return a table's lines, with a dash where a figure was not measured."""
    if not rows:
        return []
    return ["| " + " | ".join(head) + " |", "|" + "---|" * len(head),
            *("| " + " | ".join(str(c) or "–" for c in r) + " |"
              for r in rows), ""]
