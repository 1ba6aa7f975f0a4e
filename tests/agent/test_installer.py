#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""natra-agent installs the plugin, keeps it installed when others change the
directories, stops to fight, and touches nobody's file but natra's own."""
import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, HERE + "/../install"]
import parallel
from agent import Agent, cpu_s, words
from node import FLANNEL, K3S, LISTS, NEW, OLD, PLUGIN, Node

OWN = "00-natra-10-flannel.conflist"
DROPIN = "cbr0/90-natra.conf"


class Case(unittest.TestCase):
    lists = {"10-flannel.conflist": FLANNEL}

    def setUp(self):
        self.node = Node(self.lists)
        self.addCleanup(self.node.close)

    def agent(self, *options, runtime=OLD, **more):
        agent = Agent("--no-pods", "--root", str(self.node.root), "--plugin", PLUGIN,
                      "--runtime-version", runtime, "--bpffs",
                      str(self.node.root / "bpf"), *options, **more)
        self.addCleanup(agent.__exit__)
        return agent

    def until(self, true, what="", timeout=40):
        end = time.monotonic() + timeout

        def is_true():
            try:
                return true()
            except FileNotFoundError:  # between a listing and a look
                return False

        while not is_true():
            if time.monotonic() > end:
                raise AssertionError(f"{what}\n{self.agent_log()}")
            time.sleep(0.02)

    def agent_log(self):
        return getattr(self, "last", None) and self.last.log()

    def valid(self):
        """Each list in the directory is JSON."""
        for path in self.node.net.rglob("*.conf*"):
            try:
                json.loads(path.read_text())
            except FileNotFoundError:
                pass


class Install(Case):
    WITHOUT_BPF = ["setpriv", "--bounding-set", "-sys_admin,-bpf,-perfmon", "--inh-caps", "-all"]

    def test_where_natra_cannot_limit(self):
        """A runtime that calls it there starts no pod that has limits: it is not installed, and what
        is there stays."""
        # An image may bring natra, which nobody calls.
        shutil.copy(PLUGIN, self.node.bin / "natra")
        before = self.node.names()
        agent = self.agent(prefix=self.WITHOUT_BPF)
        agent.wait("natra cannot limit on this node, so it is not installed: this process lacks")
        self.assertEqual(self.node.names(), before)
        agent.wait_ready(False)
        agent.__exit__()
        self.agent().wait_ready()
        before, plugin = self.node.names(), (self.node.bin / "natra").read_bytes()
        (self.node.bin / "natra").write_bytes(plugin + b"of another build")
        agent = self.agent(prefix=self.WITHOUT_BPF)
        agent.wait("natra cannot limit on this node: this process lacks")
        self.until(lambda: (self.node.bin / "natra").read_bytes() == plugin)
        self.assertEqual(self.node.names(), before)

    def test_namespaces(self):
        """No list calls natra before the plugin has the namespaces' maximums, which ADD needs then."""
        file = self.node.root / "namespaces.json"
        agent = self.agent("--namespaces", str(file))
        agent.wait("natra limits no other pods before it was read once")
        time.sleep(0.3)
        self.assertEqual(self.node.names(), ["10-flannel.conflist"])
        file.write_text("{}")
        agent.wait_ready()
        self.assertIs(self.node.chain()[1][-1]["requireNamespaces"], True)

    def test_namespaces_and_lists_of_others(self):
        """Lists that natra may not change lack the key that ADD needs them by, and are taken as
        they are."""
        file = self.node.root / "namespaces.json"
        file.write_text("{}")
        own = json.loads(FLANNEL)
        own["plugins"].append({"type": "natra", "capabilities": {"bandwidth": True}})
        path = self.node.net / "10-flannel.conflist"
        for mode, made, text in (("auto", "present", json.dumps(own)),
                                 ("bandwidth", "bandwidth", K3S)):
            path.write_text(text)
            agent = self.last = self.agent("--namespaces", str(file), "--mode", mode)
            agent.wait_ready()
            self.assertEqual(words(agent.wait("msg=installed"))["mode"], made)
            agent.wait("says no requireNamespaces: pods that start")
            self.assertEqual(path.read_text(), text)
            agent.stop()

    def test_list(self):
        agent = self.agent()
        agent.wait_ready()
        self.assertEqual(self.node.names(),
                         [OWN, "10-flannel.conflist", "natra"])
        line = words(agent.wait("msg=installed"))
        self.assertEqual((line["mode"], line["net_dir"], line["bin_dir"]),
                         ("list", "/etc/cni/net.d", "/opt/cni/bin"))
        self.assertEqual(agent.stop(), 0)
        # The end of the agent is no removal.
        self.assertEqual(self.node.names(),
                         [OWN, "10-flannel.conflist", "natra"])

    def test_same_as_natractl(self):
        """It makes the same files as the command, so each may follow the other."""
        self.agent("--conf", "onError=continue").wait_ready()
        before = self.node.state(times=True)
        p = self.node.install("--conf", "onError=continue")
        self.assertEqual((p.code, self.node.state(times=True)), (0, before))

    def test_bad_conf(self):
        agent = self.agent("--conf", "fastPass=no")
        line = words(agent.wait("level=error"))
        self.assertIn("refuses its configuration", line["msg"])
        body = agent.wait_ready(False)
        self.assertIn("[-] install: the plugin refuses", body)
        self.assertIn('natra_ready{part="install"} 0\n', agent.get("/metrics")[1])
        self.assertEqual(self.node.names(), ["10-flannel.conflist"])

    def test_no_install(self):
        agent = self.agent("--no-install")
        agent.wait_ready()
        time.sleep(0.3)
        self.assertEqual(self.node.names(), ["10-flannel.conflist"])

    def test_no_plugin(self):
        os.rename(self.node.root / "bpf", self.node.root / "b")
        agent = self.agent("--plugin", "/nonexistent")
        agent.wait("plugin '/nonexistent': cannot be read")

    def test_read_only_after_install(self):
        self.agent().wait_ready()
        before = self.node.state(times=True)
        agent = self.agent()
        agent.wait_ready()
        self.assertEqual(self.node.state(times=True), before)
        self.assertEqual(agent.count("msg=written"), 0)


class Unwatched(Case):
    def test_no_inotify(self):
        """The agent goes on without events, and says so once."""
        if subprocess.run(["unshare", "-Ur", "true"]).returncode:
            self.skipTest("no user namespaces")
        # The user namespace has no BPF, so natra would not be installed for the first time.
        self.agent().wait_ready()
        agent = self.last = self.agent(prefix=[
            "unshare", "-Ur", "sh", "-c",
            "echo 0 > /proc/sys/user/max_inotify_instances && exec \"$@\"", "sh"])
        self.assertIn("Too many open files", agent.wait("no inotify"))
        agent.wait_ready()
        self.assertIn(OWN, self.node.names())
        # The second look follows if a directory was not watched before.
        time.sleep(1)
        self.assertEqual(agent.count("looked at every 60 s only"), 1, agent.log())
        self.assertEqual(agent.stop(), 0)


class Late(Case):
    lists = {}

    def test_list_comes_later(self):
        agent = self.agent()
        self.assertIn("no list of a network plugin yet",
                      agent.wait("part=install"))
        agent.wait_ready(False)
        self.assertEqual(agent.count("level=error"), 0)
        (self.node.net / "10-flannel.conflist").write_text(FLANNEL)
        agent.wait_ready()
        self.assertIn(OWN, self.node.names())

    def test_directory_comes_later(self):
        shutil.rmtree(self.node.net)
        agent = self.agent()
        agent.wait_ready(False)
        agent.wait("No such file or directory")
        self.node.net.mkdir()
        (self.node.net / "10-flannel.conflist").write_text(FLANNEL)
        agent.wait_ready()

    def test_list_in_pieces(self):
        agent = self.agent()
        agent.wait("no list of a network plugin yet")
        with open(self.node.net / "10-flannel.conflist", "w") as f:
            for c in range(0, len(FLANNEL), 40):
                f.write(FLANNEL[c:c + 40])
                f.flush()
                time.sleep(0.02)
        agent.wait_ready()
        self.valid()


class Repair(Case):
    def start(self, *options, runtime=OLD):
        agent = self.last = self.agent(*options, runtime=runtime)
        agent.wait_ready()
        self.good = self.node.state()
        # The directories are watched from the second look on.
        time.sleep(1)
        return agent

    def repaired(self, times=1, timeout=40):
        self.until(lambda: self.node.state() == self.good, "repair", timeout)
        self.until(lambda: self.last.count("msg=repaired") >= times, "log")

    def test_each_file(self):
        self.start()
        for n, path in enumerate((self.node.net / OWN, self.node.bin / "natra")):
            path.unlink()
            # That is before the periodic look, which is every 60 s.
            self.repaired(n + 1)

    def write(self, name, text):
        """Replace a file in one step: natra takes an empty one for its own."""
        (self.node.root / "new").write_text(text)
        os.rename(self.node.root / "new", self.node.net / name)

    def remove_dropins(self):
        try:
            shutil.rmtree(self.node.net / "cbr0")
        except OSError as e:
            if e.errno != errno.ENOTEMPTY:
                raise
            return False
        return True

    def test_dropin_and_its_directory(self):
        self.start(runtime=NEW)
        (self.node.net / DROPIN).unlink()
        self.repaired(1)
        time.sleep(1)
        # The agent may write the file again before its directory is removed.
        self.until(self.remove_dropins)
        self.repaired(2)
        time.sleep(1)
        # The new directory is watched, too.
        (self.node.net / DROPIN).unlink()
        self.repaired(3)

    def test_replaced_by_another_s(self):
        """A file without natra's mark is left alone, even under natra's name."""
        for runtime, name, says in ((NEW, DROPIN, "is not natra's own"),
                                    (OLD, OWN, "is not a JSON object")):
            agent = self.start(runtime=runtime)
            self.write(name, "null")
            self.assertIn(says, agent.wait("level=error"))
            agent.wait_ready(False)
            time.sleep(1)
            self.assertEqual((self.node.net / name).read_text(), "null")
            (self.node.net / name).unlink()
            self.repaired()
            agent.wait_ready()
            agent.stop()

    def test_content(self):
        self.start()
        text = (self.node.net / OWN).read_text()
        for n, wrong in enumerate(("", "{", text[:-20])):
            (self.node.net / OWN).write_text(wrong)
            self.repaired(n + 1)

    def test_element_taken_out(self):
        """Somebody edits natra's copy, and leaves what the original has."""
        for primary in (FLANNEL, K3S):
            (self.node.net / "10-flannel.conflist").write_text(primary)
            agent = self.start()
            changed = json.loads((self.node.net / OWN).read_text())
            changed["plugins"] = [p for p in changed["plugins"]
                                  if p["type"] != "natra"]
            (self.node.net / OWN).write_text(json.dumps(changed))
            self.repaired()
            (self.node.net / OWN).write_text(primary)
            self.repaired(2)
            agent.wait_ready()
            # The agent leaves a list alone if somebody has added to it.
            changed["plugins"].append({"type": "tuning"})
            self.write(OWN, json.dumps(changed))
            self.assertIn("is not natra's own", agent.wait("level=error"))
            agent.stop()
            (self.node.net / OWN).unlink()

    def test_primary_changes(self):
        self.start()
        primary = self.node.net / "10-flannel.conflist"
        changed = json.loads(FLANNEL)
        changed["plugins"][0]["delegate"] = {"mtu": 1400}
        # Calico writes in place, others rename.
        primary.write_text(json.dumps(changed))
        self.until(lambda: '"mtu"' in (self.node.net / OWN).read_text(), "in place")
        temporary = self.node.net / "tmp"
        temporary.write_text(FLANNEL)
        os.rename(temporary, primary)
        self.until(lambda: '"mtu"' not in (self.node.net / OWN).read_text(), "rename")
        self.assertEqual(primary.read_text(), FLANNEL)

    def test_primary_renamed_and_deleted(self):
        agent = self.start()
        os.rename(self.node.net / "10-flannel.conflist",
                  self.node.net / "20-flannel.conflist")
        self.until(lambda: "00-natra-20-flannel.conflist" in self.node.names()
                   and OWN not in self.node.names(), "renamed")
        (self.node.net / "20-flannel.conflist").unlink()
        agent.wait_ready(False)
        self.valid()

    def test_guests_that_go(self):
        """The log names them, though natra's way in is the same as before."""
        agent = self.start()
        copy = self.node.net / OWN
        conf = json.loads(copy.read_text())
        conf["plugins"].append({"type": "linkerd-cni"})
        copy.write_text(json.dumps(conf))
        (self.node.net / "05-calico.conflist").write_text(LISTS["10-calico.conflist"])
        self.assertIn(f"{OWN} goes, ", agent.wait(": linkerd-cni"))

    def test_files_of_others(self):
        self.start()
        for name in ("87-podman.conflist", "99-loopback.conf"):
            (self.node.net / name).write_text(K3S)
        (self.node.bin / "other").write_text("x")
        before = self.node.state()
        (self.node.net / OWN).unlink()
        self.until(lambda: self.node.state() == before, "repair")

    def test_overflow_of_events(self):
        with open("/proc/sys/fs/inotify/max_queued_events") as f:
            events = int(f.read())
        agent = self.start()
        agent.process.send_signal(signal.SIGSTOP)
        # Two names in turn, because equal events in a row become one.
        for n in range(events // 2 + 1000):
            for name in "ab":
                os.close(os.open(self.node.net / f"{name}.tmp",
                                 os.O_WRONLY | os.O_CREAT))
                os.unlink(self.node.net / f"{name}.tmp")
            if n * 4 > events + 2000:
                break
        (self.node.net / OWN).unlink()
        agent.process.send_signal(signal.SIGCONT)
        self.repaired()

    def test_flood_of_events(self):
        """The agent looks at most once in half a second, whatever happens."""
        agent = self.start()

        def changes(seconds, pause_s):
            begin, end = cpu_s(agent.process.pid)[1], time.monotonic() + seconds
            while time.monotonic() < end:
                (self.node.net / "noise").write_text("x")
                time.sleep(pause_s)
            time.sleep(1)
            return cpu_s(agent.process.pid)[1] - begin
        # Each of these ten is seen by a look of its own.
        of_one = changes(7, 0.7) / 10
        self.assertLess(changes(3, 0), 2 * (3 / 0.5 + 2) * of_one + 0.02)
        (self.node.net / "noise").unlink()
        (self.node.net / OWN).unlink()
        self.repaired()

    def test_memory(self):
        agent = self.start()
        agent.check_memory("RssAnon", 1600)


class Fight(Case):
    def remove(self):
        (self.node.net / OWN).unlink()

    def take_out(self):
        """Make natra's copy one of the original's text."""
        if '"natra"' not in (self.node.net / OWN).read_text():
            raise FileNotFoundError
        (self.node.net / OWN).write_text(FLANNEL)

    def test_stops_and_says_so(self):
        self.stops(self.remove)

    def test_stops_if_the_element_is_taken_out(self):
        self.stops(self.take_out)

    def stops(self, undo):
        agent = self.last = self.agent("--repairs", "3/20")
        agent.wait_ready()
        time.sleep(1)
        stop = threading.Event()
        removals = []

        def adversary():
            while not stop.wait(0.02):
                try:
                    undo()
                    removals.append(time.monotonic())
                except FileNotFoundError:
                    pass

        thread = threading.Thread(target=adversary)
        thread.start()
        try:
            line = words(agent.wait("somebody undoes what natra installs"))
            self.assertEqual(line["level"], "error")
            self.assertIn(OWN, line["msg"])
            self.assertIn("3 times in 20 s", line["msg"])
            body = agent.wait_ready(False)
            self.assertIn("[-] install: somebody undoes", body)
            time.sleep(0.3)
            count = len(removals)
            time.sleep(3)
            self.assertEqual(len(removals), count, "it does not go on")
            self.assertEqual(agent.get("/healthz")[0], 200)
        finally:
            stop.set()
            thread.join()
        # Nobody interferes any more: it is repaired as soon as the time has passed.
        self.until(lambda: OWN in self.node.names() and
                   '"natra"' in (self.node.net / OWN).read_text(), "peace")
        agent.wait_ready()
        self.assertEqual((self.node.net / "10-flannel.conflist").read_text(),
                         FLANNEL)

    def test_other_gives_way(self):
        """A list that is put right by somebody else ends the fight."""
        agent = self.last = self.agent("--repairs", "1/600")
        agent.wait_ready()
        time.sleep(1)
        text = (self.node.net / OWN).read_bytes()
        (self.node.net / OWN).unlink()
        agent.wait("msg=repaired")
        time.sleep(1)
        (self.node.net / OWN).unlink()
        agent.wait("somebody undoes what natra installs")
        (self.node.net / OWN).write_bytes(text)
        os.chmod(self.node.net / OWN, 0o600)
        agent.wait_ready()


if __name__ == "__main__":
    parallel.main()
