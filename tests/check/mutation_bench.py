# SPDX-License-Identifier: BSD-2-Clause
"""Deliberate mistakes in the benchmark; see mutation_table.py."""

from mutation import one

TABLE = [
    one("bench-judges-the-best-share", "tests/bench/headofline.py",
        "found = [max(row) for row in found", "found = [min(row) for row in found",
        "unit-loads"),
    one("bench-judges-flows-over-their-share", "tests/bench/headofline.py",
        "if s / 100 < 1 / (elephants + 1)]", "if s / 100 < 1 / elephants]", "unit-loads"),
    one("bench-judges-by-one-sample", "tests/bench/headofline.py",
        "once=count != JUDGED or name ==", "once=count == JUDGED or name ==",
        "unit-loads"),
    one("bench-compares-other-contracts", "tests/bench/web.py",
        'yield from compared(res, "http", metric, "natra-charged", peer,',
        'yield from compared(res, "http", metric, "natra", peer,', "unit-loads"),
    one("bench-believes-a-download-cut-short", "tests/bench/web_load.py",
        """                raise ConnectionError(f"ended after {have} of {size} bytes")""",
        "                break", "unit-loads"),
    one("bench-forgets-lost-probes", "tests/bench/rrul.py",
        'values[f"lost_{name}"] = 1 - len(took) / max(1, rows["sent"])',
        'values[f"lost_{name}"] = 0', "unit-loads"),
    one("bench-takes-any-icmp-for-an-answer", "tests/bench/rrul_probe.py",
        "if (kind, ident) == (ECHO_REPLY, self.ident) else None", "", "unit-loads"),
    one("bench-swaps-the-ways-for-flent", "tests/bench/flent_file.py",
        '"in": "upload", "out": "download"', '"in": "download", "out": "upload"',
        "unit-loads"),
]
