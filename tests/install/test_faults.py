#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""natractl install and uninstall when they are killed by SIGKILL after each system
call that changes something (INSTALL_EACH_CALL=1: after each call), and when others
write at the same time. At every moment a reader finds a directory that it can
parse."""

import fcntl
import json
import os
import re
import shutil
import subprocess
import threading
import time
import unittest

from node import (BIN, FLANNEL, K3S, LISTS, LOCK, NEW, OLD, SCRATCH, TEMPORARY, Case,
                  Node)

KILLER = os.environ["INSTALL_KILLER"]
# Being killed after a call that changes nothing leaves the same state as before it.
EACH_CALL = bool(os.environ.get("INSTALL_EACH_CALL"))


class Reader(threading.Thread):
    """Reads the chain in a loop, as a runtime does, and keeps each failure."""

    def __init__(self, node):
        super().__init__()
        self.node, self.stop, self.bad, self.seen = node, False, [], set()
        self.rounds = 0

    def run(self):
        while not self.stop:
            for dropins in (False, True):
                try:
                    self.seen.add(tuple(self.node.types(dropins)))
                except FileNotFoundError:
                    # Another way replaced the file after it was listed. A runtime is
                    # told of that, and reads again.
                    pass
                except (ValueError, KeyError, IndexError) as e:
                    self.bad.append(repr(e))
            self.rounds += 1

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stop = True
        self.join()


class Killed(Case):
    """Kills a command in a state that `make` brings about."""

    def killed(self, make, argv, types, finish, half=5):
        node = self.node(*make)
        argv = [KILLER, "N", *argv(node)]
        # LeakSanitizer does not work under ptrace.
        env = dict(os.environ, ASAN_OPTIONS=os.environ.get(
            "ASAN_OPTIONS", "") + ":detect_leaks=0")

        def run(n):
            argv[1] = str(n)
            p = subprocess.run(argv, text=True, capture_output=True, env=env,
                               stdin=subprocess.DEVNULL, timeout=60)
            return p.stdout.splitlines()

        begin = node.state()
        lines = run(0)
        last = next(l for l in lines if l[:5] == "exit ").split()
        self.assertEqual(last[:2], ["exit", "0"])
        end = node.state()
        calls = [int(l.split()[1]) for l in lines if l[:8] == "changes "]
        if EACH_CALL:
            calls = range(1, int(last[2]) + 1)
        killed = changed = 0
        for n in calls:
            self.renew(node, begin)
            if "killed" not in run(n):
                continue
            killed += 1
            if (node.root / LOCK).exists():
                self.assertEqual((node.root / LOCK).stat().st_mode & 0o777, 0o600)
            state = node.state()
            changed += state not in (begin, end)
            for dropins in (False, True):
                self.assertIn(node.types(dropins), types, n)
            self.done(finish(node))
            self.assertEqual(node.state(), end, f"killed behind call {n}")
        self.assertGreater(killed, len(calls) * 0.9)
        self.assertGreaterEqual(changed, half)
        print(f"{killed} of {len(calls)} calls, {changed} left something half")

    def renew(self, node, state):
        """Bring back this state without running natractl."""
        for path in (node.net, node.bin):
            shutil.rmtree(path)
        for path, (mode, *content) in state.items():
            file = node.root / path
            if os.path.lexists(file):
                continue
            if mode.startswith("0o4"):
                file.mkdir()
            elif mode.startswith("0o12"):
                file.symlink_to(content[0])
            else:
                file.write_bytes(content[0])
            if not mode.startswith("0o12"):
                file.chmod(int(mode, 8) & 0o7777)

    PLAIN = ["flannel", "portmap"]
    NATRA = [*PLAIN, "natra"]
    BANDWIDTH = [*PLAIN, "bandwidth"]
    # While an update changes from one way to the other, natra may be in the chain
    # twice.
    BOTH = [*NATRA, "natra"]

    def install(self, *options, runtime=OLD):
        return lambda node: node.argv("install", "--runtime-version", runtime,
                                      *options)

    def test_install_list(self):
        self.killed([{"10-flannel.conflist": FLANNEL}], self.install(),
                    [self.PLAIN, self.NATRA], lambda n: n.install())

    def test_install_dropin(self):
        self.killed([{"10-flannel.conflist": FLANNEL}],
                    self.install(runtime=NEW), [self.PLAIN, self.NATRA],
                    lambda n: n.install(runtime=NEW))

    def prepared(self, lists, *options, **kwargs):
        """Return a function that makes a Node() with natra installed."""
        test = self

        class Prepared(Node):
            def __init__(self):
                super().__init__(lists)
                (self.bin / "bandwidth").write_text("upstream's")
                test.done(self.install(*options, **kwargs))
        return Prepared

    def killed_after(self, prepared, argv, types, finish, half=5):
        self.node = lambda: self.close_later(prepared())
        self.killed([], argv, types, finish, half)

    def close_later(self, node):
        self.addCleanup(node.close)
        return node

    def test_uninstall_list(self):
        self.killed_after(
            self.prepared({"10-flannel.conflist": FLANNEL}),
            lambda n: n.argv("uninstall"), [self.PLAIN, self.NATRA],
            lambda n: n.uninstall())

    def test_uninstall_dropin(self):
        self.killed_after(
            self.prepared({"10-flannel.conflist": FLANNEL}, runtime=NEW),
            lambda n: n.argv("uninstall"), [self.PLAIN, self.NATRA],
            lambda n: n.uninstall())

    def test_from_list_to_dropin(self):
        self.killed_after(
            self.prepared({"10-flannel.conflist": FLANNEL}),
            self.install(runtime=NEW), [self.PLAIN, self.NATRA, self.BOTH],
            lambda n: n.install(runtime=NEW))

    def test_install_bandwidth(self):
        def finish(node):
            # At each moment there is a plugin of that name.
            self.assertIn("bandwidth", node.names())
            return node.install("--mode", "bandwidth")

        def prepared():
            node = Node({"10-flannel.conflist": K3S})
            (node.bin / "bandwidth").write_text("upstream's")
            return node
        self.killed_after(prepared, self.install("--mode", "bandwidth"),
                          [self.BANDWIDTH], finish)

    def test_uninstall_bandwidth(self):
        def finish(node):
            self.assertIn("bandwidth", node.names())
            return node.uninstall()

        self.killed_after(
            self.prepared({"10-flannel.conflist": K3S}, "--mode",
                          "bandwidth"),
            # uninstall brings `bandwidth` back in one step.
            lambda n: n.argv("uninstall"), [self.BANDWIDTH], finish, half=0)


class AtTheSameTime(Case):
    def test_reader(self):
        node = self.node({"10-flannel.conflist": FLANNEL})
        with Reader(node) as reader:
            for _ in range(5):
                for run in (lambda: node.install(),
                            lambda: node.install("--conf", "fastPass=off"),
                            lambda: node.install(runtime=NEW),
                            lambda: node.install(), node.uninstall):
                    self.done(run())
        self.assertEqual(reader.bad, [])
        self.assertLessEqual(reader.seen, {
            ("flannel", "portmap"), ("flannel", "portmap", "natra"),
            ("flannel", "portmap", "natra", "natra")})
        self.assertGreater(len(reader.seen), 1)
        self.assertGreater(reader.rounds, 25)

    WAITED = re.compile(r"natractl: \S+: another installer holds it\n")

    def test_two_installers(self):
        node = self.node({"10-flannel.conflist": FLANNEL})
        ways = [node.argv("install", "--runtime-version", r, "--conf",
                          f"fastPassShare={n}")
                for n in range(1, 4) for r in (OLD, NEW)]
        ways += [node.argv("uninstall")] * 2
        with Reader(node) as reader:
            for _ in range(3):
                running = [subprocess.Popen(w, text=True,
                                            stdout=subprocess.PIPE,
                                            stderr=subprocess.PIPE)
                           for w in ways]
                for p in running:
                    out, err = p.communicate(timeout=60)
                    # On a slow machine an installer's turn may not come within 10 s.
                    if p.returncode != 1 or not self.WAITED.fullmatch(err):
                        self.assertEqual(p.returncode, 0, out + err)
        self.assertEqual(reader.bad, [])
        self.done(node.install())
        self.assertEqual(node.names(), ["00-natra-10-flannel.conflist",
                                        "10-flannel.conflist", "natra"])

    def test_lock_of_another(self):
        node = self.node({"10-flannel.conflist": FLANNEL})
        fd = node.lock()
        p = subprocess.Popen(node.argv("install", "--runtime-version", OLD))
        time.sleep(0.5)
        self.assertIsNone(p.poll())
        os.close(fd)
        self.assertEqual(p.wait(20), 0)
        self.assertFalse((node.root / LOCK).exists())

    def test_lock_of_a_reader(self):
        """Whoever may read the directories may hold a lock on them, but natra's is a file that
        root alone opens."""
        node = self.node({"10-flannel.conflist": FLANNEL})
        for path in (node.net, node.bin, node.root / "var/lib"):
            fd = os.open(path, os.O_RDONLY)
            self.addCleanup(os.close, fd)
            fcntl.flock(fd, fcntl.LOCK_EX)
        self.done(node.install())

    def test_owner_who_does_not_write_in_one_step(self):
        """Calico and AWS write in place, so natra waits for the rest of half a
        list."""
        for lists, options in (
                ({}, ()), ({"20-odd.conflist": LISTS["10-odd.conflist"]},
                           ("--network", "cbr0"))):
            # natra waits a second. On a busy machine the rest may come later than that.
            for _ in range(5):
                node = self.node({"10-flannel.conflist": FLANNEL[:50], **lists})
                begin = time.monotonic()
                p = subprocess.Popen(node.argv("install", "--runtime-version", OLD,
                                               *options))
                time.sleep(0.3)
                with open(node.net / "10-flannel.conflist", "a") as f:
                    f.write(FLANNEL[50:])
                took = time.monotonic() - begin
                if p.wait(20) == 0 or took < 0.9:
                    break
            self.assertEqual(p.returncode, 0)
            self.assertEqual(node.types(), ["flannel", "portmap", "natra"])

    def test_half_a_list_of_another_network(self):
        """The drop-in of that network stays, because nothing would write it again."""
        node = self.node({"10-flannel.conflist": FLANNEL,
                          "20-calico.conflist": LISTS["10-calico.conflist"]})
        self.done(node.install("--network", "k8s-pod-network", runtime=NEW))
        with open(node.net / "20-calico.conflist", "r+") as f:
            f.truncate(50)
        self.done(node.install(runtime=NEW))
        dropins = ["cbr0/90-natra.conf", "k8s-pod-network/90-natra.conf"]
        self.assertEqual([n for n in node.names() if "90-" in n], dropins)
        self.done(node.uninstall())
        self.assertFalse([n for n in node.names() if "90-" in n])

    def test_list_that_keeps_changing(self):
        """In the end natra's list is a copy of the current one, never a mix of two."""
        node = self.node({"10-flannel.conflist": FLANNEL})
        stop = threading.Event()

        def owner():
            n = 0
            while not stop.is_set():
                n += 1
                text = FLANNEL.replace('"cbr0"', f'"cbr0", "round": {n}')
                with open(node.net / "new", "w") as f:
                    f.write(text)
                os.rename(node.net / "new", node.net / "10-flannel.conflist")
        thread = threading.Thread(target=owner)
        thread.start()
        answers = [node.install() for _ in range(5)]
        stop.set()
        thread.join()
        for a in answers:
            if a.code:
                self.one_line(a)
                self.assertRegex(a.err, "changed it at the same time|"
                                        "keeps changing the directories")
        self.done(node.install())
        copy = json.loads((node.net /
                           "00-natra-10-flannel.conflist").read_text())
        primary = json.loads((node.net / "10-flannel.conflist").read_text())
        self.assertEqual(copy["round"], primary["round"])

    def meddling(self, node, command):
        """Return options for a plugin whose STATUS runs a command on the directories:
        STATUS is asked after the lists were read and before anything is written."""
        file = node.root / "meddling"
        file.write_text(f"""#!/bin/sh
            # CNI plugin natra of a test
            PATH=/usr/bin:/bin
            [ $CNI_COMMAND = STATUS ] || echo '{{"supportedVersions":["1.0.0"]}}'
            [ $CNI_COMMAND = VERSION ] || {command}
            """)
        file.chmod(0o755)
        return "--plugin", str(file)

    def test_list_that_changes_each_time(self):
        """The change that was made is printed, though the next one was not made."""
        node = self.node({"10-flannel.conflist": FLANNEL})
        r = node.install(*self.meddling(
            node, f"echo >> {node.net}/10-flannel.conflist"))
        self.one_line(r, "10-flannel.conflist: somebody has changed it at the same time")
        self.assertEqual(r.out, f"copy /{BIN}/natra\n")
        self.assertEqual(node.names(), ["10-flannel.conflist", "natra"])
        (node.bin / "natra").unlink()
        r = node.install("--json", *self.meddling(
            node, f"echo >> {node.net}/10-flannel.conflist"))
        self.one_line(r, r.json["error"])
        self.assertEqual([c["path"] for c in r.json["changes"]], [f"/{BIN}/natra"])

    def test_copy_that_goes_each_time(self):
        node = self.node({"10-flannel.conflist": FLANNEL})
        r = node.install(*self.meddling(node, f"rm -f {node.net}/00-natra-*"))
        self.one_line(r, "somebody keeps changing the directories, natractl has given up")
        self.assertGreater(r.out.count("write"), 3)
        r = node.install("--json", *self.meddling(node, f"rm -f {node.net}/00-natra-*"))
        self.one_line(r, r.json["error"])
        self.assertGreater(len(r.json["changes"]), 3)

    def test_warning_before_a_failure(self):
        """What goes with natra's copy is said, though the plugin could not be removed."""
        node = self.node({"10-flannel.conflist": FLANNEL})
        self.done(node.install())
        file = node.net / "00-natra-10-flannel.conflist"
        conf = json.loads(file.read_text())
        conf["plugins"].append({"type": "istio-cni"})
        file.write_text(json.dumps(conf))
        text = file.read_text()
        # A directory of that name is in the way of the removal.
        (node.bin / TEMPORARY / "x").mkdir(parents=True)
        for options in (), ("--json",):
            r = node.uninstall(*options)
            self.assertEqual(r.code, 1, r)
            warning, error = r.err.splitlines()
            self.assertIn(" goes, and with it plugins", warning)
            self.assertIn("cannot be removed", error)
        self.assertEqual((r.json["changes"], len(r.json["warnings"])), ([], 1))
        self.assertIn(r.json["error"], error)
        self.assertEqual(file.read_text(), text)

    def test_primary_that_goes(self):
        """natra's list is removed once there is another list to copy."""
        node = self.node({"10-flannel.conflist": FLANNEL})
        self.done(node.install())
        (node.net / "10-flannel.conflist").unlink()
        self.one_line(node.install(), "no list of a network plugin yet")
        (node.net / "05-cilium.conflist").write_text(
            LISTS["05-cilium.conflist"])
        self.done(node.install())
        self.assertEqual(node.names(), ["00-natra-05-cilium.conflist",
                                        "05-cilium.conflist", "natra"])

    def test_damaged_copy(self):
        """A crash of the machine has cut off or emptied natra's list."""
        for length in (0, 1, 50, -3):
            node = self.node({"10-flannel.conflist": FLANNEL})
            self.done(node.install())
            file = node.net / "00-natra-10-flannel.conflist"
            text = file.read_text()
            file.write_text(text[:length])
            self.done(node.install())
            self.assertEqual(file.read_text(), text)


class Left(Case):
    def test_stale_temporaries(self):
        node = self.node({"10-flannel.conflist": FLANNEL})
        self.done(node.install(runtime=NEW))
        before = node.state()
        stale = [node.net / TEMPORARY, node.bin / TEMPORARY,
                 node.net / "cbr0" / TEMPORARY]
        for verb in ("install", "uninstall"):
            for file in stale:
                file.write_text('{"half": ')
            r = self.done(node.install(runtime=NEW) if verb == "install"
                          else node.uninstall())
            if verb == "install":
                self.assertEqual(node.state(), before)
                self.assertEqual(r.out.count("remove"), 3)
            self.assertFalse([f for f in stale if f.exists()])
        self.assertEqual(node.names(), ["10-flannel.conflist"])

    def test_empty_directories(self):
        """A killed installer leaves no empty directory but a network's."""
        for runtime in (OLD, NEW):
            for undo in (lambda n: n.install(runtime=OLD), Node.uninstall):
                node = self.node({"10-flannel.conflist": FLANNEL})
                self.done(node.install(runtime=runtime))
                (node.net / "whereabouts.d").mkdir()
                (node.net / "cbr0").mkdir(exist_ok=True)
                (node.net / SCRATCH).touch()
                self.done(undo(node))
                self.assertEqual([p.name for p in node.net.iterdir()
                                  if p.is_dir()], ["whereabouts.d"])
                self.assertNotIn(SCRATCH, node.names())


if __name__ == "__main__":
    unittest.main()
