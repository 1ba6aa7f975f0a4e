#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""tests/vm/run boots a VM again that dies or hangs before its command starts, and no
other.

A script takes the place of virtme-ng. It does with each boot what the test says, and
writes what the guest would write.
"""
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

RUN = Path(__file__).resolve().parent / "run"
KERNEL = "6.12"
# Each boot does what the plan says: it dies at once, hangs, dies after the command has
# started, or lets the command exit with this number.
FAKE = """\
#!/bin/sh
for word; do
	case $word in
	*/script) state=${{word#sh }} ;;
	esac
done
state=${{state%/script}}
echo boot >>{top}/boots
boot=$(wc -l <{top}/boots)
what=$(sed -n "${{boot}}p" {top}/plan)
case $what in
die)
	echo "[    3.9] Oops: int3: 0000"
	echo "[    4.0] the last line"
	exit 1
	;;
hang)
	exec sleep 60
	;;
die-later)
	echo begun >"$state/out"
	exit 1
	;;
*)
	echo done >"$state/out"
	echo "$what" >"$state/code"
	;;
esac
"""


class Boot(unittest.TestCase):
    def run_with(self, *plan, options=()):
        """Return the exit code, the number of boots and the output."""
        with tempfile.TemporaryDirectory(dir="/tmp") as top:
            top = Path(top)
            (top / "vng-0.dir/bin").mkdir(parents=True)
            (top / "vng-0").symlink_to("vng-0.dir")
            fake = top / "vng-0.dir/bin/vng"
            fake.write_text(FAKE.format(top=top))
            fake.chmod(0o755)
            (top / f"kernels/{KERNEL}/boot").mkdir(parents=True)
            (top / f"kernels/{KERNEL}/boot/vmlinuz-0").touch()
            (top / f"kernels/{KERNEL}/package").touch()
            (top / "plan").write_text("\n".join(plan) + "\n")
            r = subprocess.run([RUN, *options, KERNEL, "--", "true"], text=True,
                               env={**os.environ, "NATRA_CACHE": str(top)},
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               timeout=60)
            return r.returncode, len((top / "boots").read_text().split()), r.stdout

    def test_a_boot_that_dies_is_repeated(self):
        code, boots, out = self.run_with("die", "die", "0")
        self.assertEqual((code, boots), (0, 3), out)
        for boot in (1, 2):
            self.assertIn(f"{KERNEL} died in boot {boot} of 3, before the command "
                          "started: [    3.9] Oops: int3: 0000\n", out)
        self.assertNotIn("last line", out)

    def test_the_third_is_the_last(self):
        code, boots, out = self.run_with("die", "die", "die", "0")
        self.assertEqual((code, boots), (125, 3), out)
        self.assertIn("the last line", out)

    def test_a_boot_that_hangs_is_repeated_once(self):
        options = ("--boot-timeout", "2")
        code, boots, out = self.run_with("hang", "0", options=options)
        self.assertEqual((code, boots), (0, 2), out)
        self.assertIn(f"{KERNEL} hung in boot 1 of 3", out)
        code, boots, out = self.run_with("hang", "hang", "0", options=options)
        self.assertEqual((code, boots), (125, 2), out)

    def test_a_command_that_began_is_not_repeated(self):
        code, boots, out = self.run_with("die-later", "0")
        self.assertEqual((code, boots), (125, 1), out)

    def test_a_command_that_fails_is_not_repeated(self):
        self.assertEqual(self.run_with("3", "0")[:2], (3, 1))


if __name__ == "__main__":
    unittest.main()
