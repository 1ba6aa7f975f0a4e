#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""tests/vm/run boots a VM again that dies or hangs before its command starts, and no
other. A guest of another architecture finds its own root directory, and in it what it needs
of this machine. tests/vm/suite runs what a defect of the emulator kept from running.

A script takes the place of virtme-ng. It does with each boot what the test says, and
writes what the guest would write.
"""
import os
import runpy
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
SUITE = runpy.run_path(str(Path(__file__).resolve().parent / "suite"))

RUN = Path(__file__).resolve().parent / "run"
TOP = RUN.parents[2]
KERNEL, FOREIGN = "6.12", "6.12-arm64"
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
int3-later)
	echo begun >"$state/out"
	echo "[   90.1] Oops: int3: 0000 [#1] PREEMPT SMP"
	exit 1
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


# This one exits with the number of what the guest would not find.
FAKE_FOREIGN = """\
#!/bin/sh
root={top}/arm64
for word; do
	case $word in
	*/script) state=${{word#sh }} ;;
	--root=$root) given=1 ;;
	esac
done
state=${{state%/script}}
echo "$*" >"$state/out"
code=0
case "$*" in *"--arch arm64"*"--rwdir=$state=$state"*) ;; *) code=1 ;; esac
[ "${{given-}}" ] || code=2
[ -e "$root{source}/meson.build" ] || code=3
[ -e "$root{top}/work/file" ] || code=4
[ -e "$root/lib/modules/0/modules.dep" ] || code=5
echo "$code" >"$state/code"
"""


def fake_vng(top, text, kernel):
    (top / "vng-0.dir/bin").mkdir(parents=True)
    (top / "vng-0").symlink_to("vng-0.dir")
    fake = top / "vng-0.dir/bin/vng"
    fake.write_text(text)
    fake.chmod(0o755)
    modules = top / f"kernels/{kernel}/lib/modules/0"
    modules.mkdir(parents=True)
    (modules / "modules.dep").touch()
    (top / f"kernels/{kernel}/boot").mkdir()
    (top / f"kernels/{kernel}/boot/vmlinuz-0").touch()
    (top / f"kernels/{kernel}/package").touch()


def fake_root(top):
    """Make a root directory that tools/cross/root takes for its own."""
    wanted = subprocess.run(
        ["bash", "-c", 'eval "$(sed -n "/^release=/p; /^new=/,/^wanted=/p" "$1")"; '
         'echo "$wanted"', "bash", TOP / "tools/cross/root"], text=True, check=True,
        stdout=subprocess.PIPE).stdout
    (top / "arm64/usr/lib/modules").mkdir(parents=True)
    (top / "arm64/lib").symlink_to("usr/lib")
    (top / "arm64/wanted").write_text(wanted)


class Foreign(unittest.TestCase):
    @unittest.skipIf(os.geteuid(), "only root can mount")
    def test_what_the_guest_sees(self):
        with tempfile.TemporaryDirectory(dir="/tmp") as top:
            top = Path(top)
            fake_vng(top, FAKE_FOREIGN.format(top=top, source=TOP), FOREIGN)
            fake_root(top)
            (top / "work").mkdir()
            (top / "work/file").touch()
            r = subprocess.run([RUN, FOREIGN, "--", "true"], text=True, cwd=top / "work",
                               env={**os.environ, "NATRA_CACHE": str(top)},
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               timeout=60)
            self.assertEqual(r.returncode, 0, r.stdout)
            # Outside of the VM nothing has been mounted there.
            self.assertFalse((top / f"arm64{TOP}/meson.build").exists())
            self.assertEqual(list((top / "arm64/lib/modules").iterdir()), [])


class Boot(unittest.TestCase):
    def run_with(self, *plan, options=()):
        """Return the exit code, the number of boots and the output."""
        with tempfile.TemporaryDirectory(dir="/tmp") as top:
            top = Path(top)
            fake_vng(top, FAKE.format(top=top), KERNEL)
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

    def test_the_emulator_is_named(self):
        code, boots, out = self.run_with("int3-later", "0")
        self.assertEqual((code, boots), (126, 1), out)
        self.assertIn("QEMU's int3 defect", out)

    def test_a_command_that_fails_is_not_repeated(self):
        self.assertEqual(self.run_with("3", "0")[:2], (3, 1))


class Suite(unittest.TestCase):
    LINES = [f"{name}|60|alone|true" for name in ("first", "second", "third")]

    def run_with(self, *vms):
        """Run VMs that exit with a code after these tests. Return the last code, the
        names that the VMs were given, the results and what is counted as repeated."""
        with tempfile.TemporaryDirectory(dir="/tmp") as top:
            listing, results = Path(top) / "list", Path(top) / "vm.results"
            results.write_text("")
            given, left = [], list(vms)

            def run():
                names = [l.split("|")[0] for l in listing.read_text().splitlines()]
                code, done = left.pop(0)
                given.append(names)
                with open(results, "a") as f:
                    f.writelines(f"{name} PASS\n" for name in names[:done])
                return code
            code = SUITE["run_tests"](run, listing, results, self.LINES)
            good = SUITE["complete"](results, self.LINES)
            cells = results.with_suffix(".cells")
            again = cells.read_text() if cells.exists() else ""
            return code, given, good, again

    def test_what_the_emulator_kept_from_running_runs(self):
        self.assertEqual(self.run_with((126, 1), (0, 2)),
                         (0, [["first", "second", "third"], ["second", "third"]], True,
                          "again: second: in a second VM\n"))

    def test_the_second_vm_is_the_last(self):
        code, given, good, _ = self.run_with((126, 0), (126, 1), (0, 2))
        self.assertEqual((code, len(given), good), (126, 2, False))

    def test_a_guest_that_dies_is_not_run_again(self):
        code, given, good, again = self.run_with((125, 1), (0, 2))
        self.assertEqual((code, len(given), good, again), (125, 1, False, ""))


if __name__ == "__main__":
    unittest.main()
