# SPDX-License-Identifier: BSD-2-Clause
"""The report's first page: what the benchmark asks, with the answers of a run and a
chart each. No I/O."""
import footprint
import latency
import mixed
import scale
import slis
import starts
import stress
import sweep
import throughput
import web
import wired

# What is asked, the workloads that answer, and the charts that show it.
QUESTIONS = (
    ("What does each limiter promise, and what is left of small requests?", (mixed,),
     ("capped-pod", "contracts")),
    ("What does a limiter cost in latency and throughput?", (latency, throughput),
     ("latency",)),
    ("Does the cap hold?", (sweep,), ("caps",)),
    ("How fast do pods start, and what do they take?", (starts, footprint),
     ("starts", "memory")),
    ("Does it matter how the pod is wired?", (wired,), ("wirings",)),
    ("What does a pod's owner notice under stress?", (slis, stress), ("slis",)),
    ("What does HTTP cost?", (web,), ("request-cost",)),
    ("Does it scale?", (scale,), ("scale",)))


def page(res, charts, bad):
    """Return the page's lines. `charts` has the captions of those that were drawn; `bad`, the lines of
    what was missed, comes after the first question, for which natra is there."""
    sections, silent = [], []
    for asked, modules, names in QUESTIONS:
        said = [pair for module in modules for pair in module.answers(res)]
        drawn = [name for name in names if name in charts]
        glance = mixed.glance(res) if mixed in modules else []
        if not said and not drawn:
            silent.append(asked)
            continue
        lines = [f"### {asked}", "", *(
                f"- {sentence}" if question == asked else f"- *{question}* {sentence}"
                for question, sentence in said), *(said and [""]), *glance]
        for name in drawn:
            lines += [f"![{charts[name]}]({name}.svg)", ""]
        sections.append(lines)
    sections.insert(1, bad)
    lines = [line for section in sections for line in section]
    if lines:
        lines[:0] = ["## What was asked", "",
                     "In the charts a thin line is the 95 % interval of a mean.", ""]
        if silent:
            lines += ["This run did not ask: " + " ".join(silent), ""]
    return lines
