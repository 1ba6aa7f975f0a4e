#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests what natractl's command line refuses and how, and that it does so before it
calls the kernel. It needs no root; NATRACTL is the binary."""

import os
import re
import shlex
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

NATRACTL = os.environ["NATRACTL"]
SOURCE = Path(__file__).resolve().parents[2] / "tools/natractl"
MAN = (SOURCE / "natractl.8.scd").read_text()
# This is no directory, so a command that reaches the library gets no further.
BPFFS = "/dev/null/bpffs"

RATES = ["10Q", "", " 1M", "1M ", "-1M", "0x10", "nan", "inf", "1e",
         "10M/s", "ten", "10m", "1.1P", "99999999999999999999", "0k", "\x1b[1m", "1\n2"]
SIZES = ["10Q", "", "-1", "1 M", "nan", "0", "big", "99999999999999999999"]
TIMES = ["10", "", "5 s", "-1s", "1m30", "0s", "0", "3601s", "soon", "nans"]
NUMBERS = ["", "0", "-1", "+1", "1.5", "x", "1x", "99999999999999999999"]
NAMES = ["", "AUTO", "auto ", "0", "none", "auto|on|off"]

# This names every option that takes a value, with values that it must refuse.
BAD = {
    "--bpffs": ["", "relative"],
    "--netns": [""],
    "--id": ["", "i" * 256],
    "--network": ["", "n" * 256],
    "--label": ["", "l" * 256],
    "--ingress-rate": RATES,
    "--egress-rate": RATES,
    "--ingress-burst": SIZES,
    "--egress-burst": SIZES,
    "--heavy-hitter-threshold": SIZES,
    "--horizon": TIMES + ["9001ms"],
    "--pace-limit": TIMES + ["9001ms"],
    "--fast-pass": NAMES + ["paid", "charged", "guarded"],
    "--fast-pass-share": NUMBERS + ["1001", "80%"],
    "--ingress-packet-rate": SIZES + ["1000000001"],
    "--egress-packet-rate": SIZES + ["1000000001"],
    "--ingress-connection-rate": SIZES + ["1000000001"],
    "--egress-connection-rate": SIZES + ["1000000001"],
    "--group": ["", "g" * 128],
    "--group-limits": ["", "ingress-rate", "egress-rate=fast"],
    "--group-weight": NUMBERS + ["65"],
    "--group-floor": RATES + ["0", "unlimited"],
    "--parent": ["", "g" * 128],
    "--attach-mode": NAMES + ["tcx"],
    "--edt-pacing": NAMES + ["yes"],
    "--ingress-mode": NAMES + ["shape"],
    "--sli": NAMES + ["yes"],
    "--shaped-subnet": ["", "10.0.0.0", "10.0.0.0/33", "10.0.0.0/8\n",
                        "::/129", "pod/8"],
    "--unshaped-subnet": ["", "10.0.0.0", "10.0.0.0/33", "10.0.0.0/8 "],
    "--class": ["", "=10.0.0.0/8", "a b=10.0.0.0/8", "a=10.0.0.0", "a=10.0.0.0/33",
                "a=ingress-rate=fast", "a=egress-rate=10m", "a=dscp=64", "a=dscp=9-8", "a=,",
                "a=10.0.0.0/8\n", "a" * 32],
    "--direction": NAMES + ["in", "both"],
    "--flows": NUMBERS + ["577"],
    "--watch": NUMBERS + ["86401"],
    "--textfile": ["", "f" * 4001],
    "--verdicts": NAMES + ["some"],
    "--aggregate": NAMES + ["pod"],
    "--agent": ["", "9810", "localhost:9810", "127.0.0.1", "127.0.0.1:http"],
    "--interval": NUMBERS + ["61"],
    "--since": TIMES + ["2h"],
    "--pid": NUMBERS + ["4194305"],
    "--on-error": NAMES + ["ignore"],
    "--namespaces": ["", "natra/namespaces.json"],
}
# `install` and `attach` have different options of the same name.
INSTALL_BAD = {
    "--mode": NAMES[:-1] + ["present", "tcx-podside"],
    "--platform": NAMES[:-1] + ["k8s"],
    "--net-dir": ["", "etc/cni/net.d"],
    "--bin-dir": ["", "opt/cni/bin"],
    "--plugin": [""],
    "--conf": ["", "=", "fastPass", "=free", "type=x", "capabilities={}",
               "fastpasss=free", "k" * 80 + "=1", "a\x1b=1"],
    "--network": ["", "n" * 256, "..", "../net", "a/b", ".a", "a b"],
    "--root": ["", "host"],
    "--runtime-version": ["", "2.1.0", "containerd", "rkt://1.30.0",
                          "containerd://", "containerd github.com/v2"],
}
# Each command has one valid argument list here, without optional arguments.
COMMANDS = {
    "attach": ["eth0", "--netns", "/dev/null/netns", "--ingress-rate", "1G",
               "--egress-rate", "1G"],
    "set": ["web", "--ingress-rate", "1G", "--egress-rate", "1G"],
    "detach": ["web"],
    "list": [],
    "show": ["web"],
    "stats": ["web"],
    "top": ["web"],
    "events": [],
    "group": ["set", "team", "--ingress-rate", "1G", "--egress-rate", "1G"],
    "metrics": [],
    "probe": [],
    "gc": [],
    "check": ["web"],
    "upgrade": [],
    "doctor": ["--root", "/dev/null"],
    "hook": ["--on-error", "fail", "--ingress-rate", "1G", "--egress-rate", "1G"],
    "install": ["--root", "/dev/null"],
    "uninstall": ["--root", "/dev/null"],
    "call": [],
    "help": [],
    "version": [],
}
# Every command that accepts the option accepts this value. unit-quantity and unit-fields
# have the other ones.
GOOD = {
    "--ingress-rate": ["1.5G", "0", "unlimited"],
    "--ingress-burst": ["64k", "default"],
    "--heavy-hitter-threshold": ["125000", "default"],
    "--horizon": ["9s", "default"],
    "--fast-pass-share": ["1000", "default"],
    "--attach-mode": ["auto", "clsact-hostside"],
    "--ingress-packet-rate": ["10k", "unlimited", "default"],
    "--sli": ["on"],
    "--direction": ["ingress", "egress"],
    "--shaped-subnet": ["10.0.0.0/8"],
    "--class": ["a=10.0.0.0/8,ingress-rate=1M,egress-rate=unlimited,dscp=46"],
}


def natractl(*args):
    return subprocess.run([NATRACTL, "--bpffs", BPFFS, *args], text=True,
                          stdin=subprocess.DEVNULL, capture_output=True,
                          errors="surrogateescape", timeout=20)


def bad_values(command, name):
    if command.endswith(("install", "doctor")) and name in INSTALL_BAD:
        return INSTALL_BAD[name]
    return BAD[name]


def escaped(text):
    return "".join(c if " " <= c <= "~" else f"\\x{ord(c):02x}" for c in text)


def options_of(command):
    """Return {name: takes a value} of the options in `natractl COMMAND --help`."""
    lines = natractl(command, "--help").stdout.split("Options:\n")[1]
    found = re.findall(r"^  (-\S+?)(?:, -\w)?( \S+)?(?:  .*)?$", lines, re.M)
    return {name: bool(metavar) for name, metavar in found}


class Cli(unittest.TestCase):
    def refused(self, args, begin):
        r = natractl(*args)
        self.assertEqual((r.returncode, r.stdout), (2, ""), r.stderr)
        self.assertEqual(r.stderr.count("\n"), 1, r.stderr)
        self.assertTrue(r.stderr[:-1].isprintable(), repr(r.stderr))
        self.assertTrue(r.stderr.startswith("natractl: " + begin), r.stderr)

    def accepted(self, *args):
        r = natractl(*args)
        self.assertIn(r.returncode, (0, 1), r.stderr)
        return r

    def test_every_option_refuses_bad_values(self):
        for command, args in COMMANDS.items():
            for name, takes_value in options_of(command).items():
                if not takes_value:
                    continue
                for value in bad_values(command, name):
                    begin = f"{name}: '{escaped(value)}' "
                    with self.subTest(command=command, option=begin):
                        self.refused([command, *args, name, value], begin)
                        if name.startswith("--"):
                            self.refused([command, f"{name}={value}", *args]
                                         if name not in args else
                                         [command, *args, f"{name}={value}"],
                                         begin)

    def test_good_values(self):
        for name, values in GOOD.items():
            for command in ("attach", "set", "top"):
                if name not in options_of(command):
                    continue
                for value in values:
                    with self.subTest(command=command, option=name,
                                      value=value):
                        self.accepted(command, *COMMANDS[command], name, value)

    def test_option_without_its_value(self):
        for command, args in COMMANDS.items():
            for name, takes_value in options_of(command).items():
                with self.subTest(command=command, option=name):
                    if takes_value:
                        self.refused([command, *args, name],
                                     f"{name}: needs a value")
                    else:
                        self.refused([command, *args, f"{name}=1"],
                                     f"{name}: '1' ")

    def test_options_of_other_commands(self):
        known = set().union(*(options_of(c) for c in COMMANDS))
        for command, args in COMMANDS.items():
            for name in known - set(options_of(command)):
                with self.subTest(command=command, option=name):
                    self.refused([command, *args, name, "1"],
                                 f"{name}: not an option of '{command}'")

    def test_unknown_options(self):
        for command, args in COMMANDS.items():
            for name in ("--bogus", "--jso", "-x", "-jx", "--help-me"):
                with self.subTest(command=command, option=name):
                    shown = "-x" if name == "-jx" else name
                    self.refused([command, *args, name], f"{shown}: ")
        self.refused(["--bogus=1\x1b", "list"], "--bogus=1\\x1b: ")
        self.refused(["--netns", "a", "list"], "--netns: ")

    def test_arguments(self):
        self.refused(["atach"], "COMMAND: 'atach' is not known (is it attach?)")
        self.refused(["help", "zzz"], "COMMAND: 'zzz' is not known (see")
        self.refused(["set", "web", "--ingres-rate", "1M"],
                     "--ingres-rate: unknown option (is it --ingress-rate?)")
        self.refused([""], "COMMAND: '' ")
        for command, args in COMMANDS.items():
            with self.subTest(command=command):
                # `upgrade` takes many arguments, up to a limit.
                many = ["x"] * 1024 if command == "upgrade" else []
                self.refused([command, *args, *many, "one", "two"],
                             f"{command}: '")
        for command in ("set", "detach", "show", "check", "attach"):
            with self.subTest(command=command):
                self.refused([command], f"{command}: ")
        for command in ("set", "detach", "show", "stats", "top", "check",
                        "upgrade"):
            with self.subTest(command=command):
                args = COMMANDS[command][1:]
                self.refused([command, "", *args], "ID|POD: '' is empty")
                self.refused([command, "i" * 256, *args], "ID|POD: 'iii")
        for name in ("", "i" * 16, "a/b", "a b", "a\tb"):
            with self.subTest(ifname=name):
                begin = f"IFNAME: '{escaped(name)}' "
                self.refused(["attach", name, "--ingress-rate", "1M"], begin)
                self.refused(["detach", name, "--netns", "a"], begin)

    def test_what_a_command_needs(self):
        self.refused(["attach", "eth0"], "attach: needs --ingress-rate")
        self.refused(["attach", "eth0", "--ingress-rate", "0", "--egress-rate",
                      "unlimited"], "attach: needs --ingress-rate")
        self.refused(["attach", "eth0", "--ingress-rate", "1M", "--egress-burst",
                      "64k"], "--egress-burst: '64k' ")
        self.refused(["attach", "eth0", "--ingress-rate", "1M", "--group-weight", "2"],
                     "--group-weight: '2' is refused: group_weight: 2 without a group")
        self.refused(["group"], "group: set|show|remove [NAME]... is missing")
        self.refused(["group", "change", "a"], "group: 'change' is not one of")
        self.refused(["group", "remove"], "remove: NAME is missing")
        self.refused(["group", "set", ""], "NAME: '' is empty")
        self.refused(["group", "show", "a", "--ingress-rate", "1M"],
                     "show: takes no limits")
        self.refused(["set", "web"], "set: has nothing to change")
        self.refused(["set", "web", "--json"], "set: has nothing to change")
        # The attachment may have a rate already.
        self.accepted("set", "web", "--ingress-burst", "64k")

    def test_subnets(self):
        attach = ["attach", *COMMANDS["attach"]]
        shaped, unshaped = "--shaped-subnet", "--unshaped-subnet"
        self.accepted(*attach, shaped, "10.0.0.0/8", shaped, "fd00::/8")
        self.accepted("set", "web", shaped, "10.0.0.0/8")
        self.refused(["set", "web", unshaped, "10.0.0.0"], f"{unshaped}: '10.0.0.0' ")
        # The bad one is named, wherever it stands.
        self.refused([*attach, shaped, "10.0.0.0/8", shaped, "fd00::/129",
                      shaped, "11.0.0.0/8"], f"{shaped}: 'fd00::/129' ")
        self.refused([*attach, shaped, "10.0.0.0/8", unshaped, "fd00::/8"],
                     f"{unshaped}: 'fd00::/8' cannot stand beside {shaped}")
        self.refused([*attach, unshaped, "fd00::/8", shaped, "10.0.0.0/8"],
                     f"{shaped}: '10.0.0.0/8' cannot stand beside {unshaped}")
        many = [w for i in range(1024)
                for w in (unshaped, f"10.{i // 256}.{i % 256}.0/24")]
        self.accepted(*attach, *many)
        self.refused([*attach, *many, unshaped, "11.0.0.0/8"],
                     f"{unshaped}: '11.0.0.0/8' is one more than")

    def test_classes(self):
        attach = ["attach", *COMMANDS["attach"]]
        self.accepted(*attach, "--class", "a=10.0.0.0/8,ingress-rate=1M",
                      "--class", "b=10.0.0.0/9,fd00::/8,ingress-rate=1M")
        # They alone limit a direction.
        self.accepted("attach", "eth0", "--class", "a=10.0.0.0/8,ingress-rate=1M")
        self.refused([*attach, "--class", "a=10.0.0.0/8", "--class", "b=10.1.0.0/8"],
                     "--class: 'b=10.1.0.0/8' is refused: "
                     "classes: '10.0.0.0/8' is in 'a' and in 'b'")
        self.refused([*attach, "--class", "a=10.0.0.0/8,ingress-rate=x,dscp=1"],
                     "--class: 'a=10.0.0.0/8,ingress-rate=x,dscp=1' has an item that is not "
                     "CIDR, ingress-rate=RATE, egress-rate=RATE or dscp=N: 'ingress-rate=x'")
        self.accepted(*attach, "--class", "a=10.0.0.0/8", "--unshaped-subnet", "fd00::/8")
        self.refused([*attach, "--class", "a=10.0.0.0/8",
                      "--unshaped-subnet", "10.0.0.0/8"], "--class: 'a=10.0.0.0/8' is "
                     "refused: classes: '10.0.0.0/8' is in 'unshaped_subnets' and in 'a'")
        many = [w for i in range(8) for w in ("--class", f"c{i}=10.{i}.0.0/16")]
        self.accepted(*attach, *many)
        self.refused([*attach, *many, "--class", "d=11.0.0.0/8"],
                     "--class: 'd=11.0.0.0/8' is one more than")

    def test_pid(self):
        limit = ["--ingress-rate", "1M"]
        for pid in BAD["--pid"]:
            with self.subTest(pid=pid):
                self.refused(["attach", "eth0", *limit, "--pid", pid],
                             f"--pid: '{pid}' is not ")
        self.refused(["attach", "eth0", *limit, "--pid", "1", "--netns", "a"],
                     "--pid: '1' cannot stand beside --netns")
        gone = subprocess.Popen(["true"])
        gone.wait()
        self.refused(["attach", "eth0", *limit, "--pid", str(gone.pid)],
                     f"--pid: '{gone.pid}' is no process here: ")
        self.accepted("attach", "eth0", *limit, "--pid", str(os.getpid()))

    def test_order_of_words(self):
        rest = ["--egress-rate=1M", "--ingress-rate", "1M"]
        for args in (["web", *rest], [*rest, "web"], [*rest, "--", "web"],
                     ["--egress-rate=1M", "web", "--ingress-rate", "1M"]):
            with self.subTest(args=args):
                self.accepted("set", *args)
        self.refused(["set", *rest, "--", "web", "--json"], "set: '--json' ")
        self.accepted("show", "--", "--json")
        self.accepted("--", "list")
        self.accepted("upgrade", "a", "--json", "b", "--", "--json")
        self.refused(["upgrade", "a", "", "b"], "ID|POD: '' is empty")
        self.accepted("top", "-jn5", "web")
        self.accepted("top", "web", "-n", "5", "-vv")
        # The last one counts.
        self.accepted("set", "web", "--ingress-rate", "bad", "--ingress-rate", "1M")

    def test_help(self):
        r = natractl("--help")
        self.assertEqual((r.returncode, r.stderr), (0, ""))
        names = re.findall(r"^  (\w+)", r.stdout, re.M)
        # All that follows `complete` are its arguments, options as well.
        self.assertEqual(sorted(names), sorted([*COMMANDS, "complete"]))
        self.assertEqual(natractl("help").stdout, r.stdout)
        bare = natractl()
        self.assertEqual((bare.returncode, bare.stdout), (2, ""))
        self.assertLess(bare.stderr.count("\n"), 24)
        for command in COMMANDS:
            with self.subTest(command=command):
                r = natractl(command, "--help")
                self.assertEqual((r.returncode, r.stderr), (0, ""))
                self.assertIn(f"Usage: natractl {command} ", r.stdout)
                self.assertEqual(natractl(command, "-h").stdout, r.stdout)
                self.assertIn(f"*{command}*", MAN)
                self.assertEqual(natractl("help", command).stdout, r.stdout)
                for name in options_of(command):
                    self.assertIn(f"*{name}*", MAN)

    def completed(self, *words):
        r = natractl("complete", *words)
        self.assertEqual((r.returncode, r.stderr), (0, ""))
        return r.stdout.split()

    def test_complete(self):
        self.assertEqual(sorted(self.completed("")), sorted([*COMMANDS, "complete"]))
        for command in COMMANDS:
            with self.subTest(command=command):
                self.assertEqual(self.completed(command[:-1]).count(command), 1)
                self.assertEqual(sorted(self.completed("--bpffs", "/x", command, "-")),
                                 sorted(options_of(command)))
        modes = ["auto", "tcx-podside", "clsact-podside", "tcx-hostside", "clsact-hostside"]
        self.assertEqual(self.completed("attach", "--attach-mode", ""), modes)
        self.assertEqual(self.completed("attach", "--attach-mode", "="), modes)
        self.assertEqual(self.completed("attach", "--attach-mode", "=", "au"), ["auto"])
        self.assertEqual(self.completed("install", "--mode", "d"), ["dropin"])
        self.assertEqual(self.completed("attach", "l"), ["lo"])
        self.assertEqual(self.completed("install", "--net-dir", "/et"), [":dir"])
        self.assertEqual(self.completed("metrics", "--textfile", ""), [":file"])
        self.assertEqual(self.completed("attach", "--ingress-rate", ""), [])

    def test_shells(self):
        """Each shell hands its words on: natractl is found by its path."""
        tmp = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, tmp)
        os.symlink(NATRACTL, f"{tmp}/natractl")
        env = {**os.environ, "PATH": f"{tmp}:{os.environ['PATH']}", "HOME": tmp}
        for shell, script in (
            ("bash", f". {SOURCE}/natractl.bash; COMP_WORDS=(natractl attach --attach-mode tcx-);"
                     "COMP_CWORD=3; _natractl natractl tcx- --attach-mode;"
                     'printf "%s\\n" "${COMPREPLY[@]}"'),
            ("fish", f"source {SOURCE}/natractl.fish;"
                     "complete -C 'natractl attach --attach-mode tcx-'"),
            ("zsh", f"words=(natractl attach --attach-mode tcx-); CURRENT=4;"
                    "compadd() { print -l ${(P)2} };"
                    f". {SOURCE}/natractl.zsh"),
        ):
            with self.subTest(shell=shell):
                if not shutil.which(shell):
                    self.skipTest(f"there is no {shell}")
                r = subprocess.run([shell, "-c", script], text=True, capture_output=True,
                                   env=env, timeout=20)
                self.assertEqual((sorted(r.stdout.split()), r.stderr),
                                 (["tcx-hostside", "tcx-podside"], ""))

    def test_version(self):
        r = natractl("--version")
        self.assertRegex(r.stdout, r"^natractl \d+\.\d+\.\d+\n$")
        self.assertEqual(natractl("version").stdout, r.stdout)
        r = natractl("version", "--json")
        self.assertRegex(r.stdout, r'"version":\s*"\d+\.\d+\.\d+"')

    def test_examples_of_the_man_page(self):
        blocks = re.findall(r"^```$(.*?)^```$", MAN, re.M | re.S)
        text = "".join(blocks).replace("\\\\\n", " ")
        examples = [shlex.split(l) for l in text.splitlines() if l.strip()]
        self.assertGreater(len(examples), 8)
        for example in examples:
            with self.subTest(example=shlex.join(example)):
                self.assertEqual(example[0], "natractl")
                args = ["/dev/null/netns" if before == "--netns" else word
                        for before, word in zip(example, example[1:])]
                if args[0] in ("doctor", "install", "uninstall"):
                    # The example must not change this machine.
                    args += COMMANDS[args[0]]
                self.accepted(*args)


if __name__ == "__main__":
    unittest.main()
