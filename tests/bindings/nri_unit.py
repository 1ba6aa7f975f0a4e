#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Run the unit tests of tools/nri, which need neither root nor a runtime."""
import gotest

print(gotest.go(gotest.ROOT / "tools/nri", "test", "-count=1", "-v", "./..."))
