#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""natra-agent and those who may end its work: natractl uninstall, Cilium, and SIGKILL."""
import contextlib
import fcntl
import os
import random
import signal
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, HERE + "/../install"]
import parallel
from agent import words
from node import FLANNEL, LISTS, NEW, OLD
from test_installer import OWN, Case

OF_CILIUM = "00-natra-05-cilium.conflist"
SEED = int(os.environ.get("NATRA_SEED", time.time_ns() % 1000000))


def ps(*options):
    return subprocess.run(["ps", *options], text=True, capture_output=True).stdout


def jobs_of(agent):
    """Return the processes that the agent has started."""
    return ps("-o", "pid=", "--ppid", str(agent.process.pid)).split()


class Uninstall(Case):
    """The agent does not put back what `natractl uninstall` removes."""

    def removed(self, agent):
        line = words(agent.wait("natra was uninstalled from this node"))
        self.assertEqual(line["level"], "warn")
        body = agent.wait_ready(False)
        self.assertIn("[-] install: natra was uninstalled", body)
        before = self.node.state()
        time.sleep(1.2)
        self.assertEqual(self.node.names(), ["10-flannel.conflist"])
        self.assertEqual(self.node.state(), before)
        self.assertEqual(agent.get("/healthz")[0], 200)

    def start(self, *options, runtime=OLD):
        agent = self.last = self.agent(*options, runtime=runtime)
        agent.wait_ready()
        # The directories are watched from the second look on.
        time.sleep(1)
        return agent

    def uninstall(self):
        p = self.node.uninstall()
        self.assertEqual(p.code, 0, str(p))

    def test_stops(self):
        for runtime in (OLD, NEW):
            with self.subTest(runtime=runtime):
                agent = self.start(runtime=runtime)
                self.uninstall()
                self.removed(agent)
                self.assertEqual(agent.count("msg=repaired"), 0)
                self.assertEqual(agent.stop(), 0)
                # It is the start of an agent that installs.
                agent = self.agent(runtime=runtime)
                agent.wait_ready()
                agent.stop()
                self.uninstall()

    def test_while_it_waits(self):
        """The agent learns of it only when all is over."""
        agent = self.start()
        agent.process.send_signal(signal.SIGSTOP)
        (self.node.net / OWN).unlink()
        self.uninstall()
        agent.process.send_signal(signal.SIGCONT)
        self.removed(agent)

    def job_that_waits(self, agent):
        """Return the job that wants the installers' lock, which the test has. Those that look
        come and go."""
        first_seen, found = {}, []

        def waits():
            now = time.monotonic()
            found[:] = [job for job in jobs_of(agent)
                        if now - first_seen.setdefault(job, now) > 0.5]
            return found
        self.until(waits, "no job waits")
        return int(found[0])

    def test_while_a_repair_waits(self):
        """A repair that waits for the directory finds it uninstalled."""
        agent = self.start()
        fd = self.node.lock()
        self.addCleanup(os.close, fd)
        (self.node.net / OWN).unlink()
        job = self.job_that_waits(agent)
        # The agent lets a job go on that somebody has stopped.
        agent.process.send_signal(signal.SIGSTOP)
        os.kill(job, signal.SIGSTOP)
        fcntl.flock(fd, fcntl.LOCK_UN)
        self.uninstall()
        os.kill(job, signal.SIGCONT)
        agent.process.send_signal(signal.SIGCONT)
        self.removed(agent)

    def test_at_the_same_time(self):
        """Repairs and removals in any order end with the removal."""
        rounds = random.Random(SEED)
        for _ in range(4):
            agent = self.start("--repairs", "64/1")
            (self.node.net / OWN).unlink()
            time.sleep(rounds.random() * 0.15)
            self.uninstall()
            agent.wait("natra was uninstalled from this node")
            time.sleep(0.7)
            self.assertEqual(self.node.names(), ["10-flannel.conflist"],
                             f"NATRA_SEED={SEED}\n{agent.log()}")
            agent.stop()

    def test_nothing_removed(self):
        """A dry run, and a removal by hand, are no removal."""
        agent = self.start()
        before = self.node.state()
        p = self.node.uninstall("--dry-run")
        self.assertEqual(p.code, 0, str(p))
        time.sleep(0.5)
        (self.node.net / OWN).unlink()
        agent.wait("msg=repaired")
        self.assertEqual(self.node.state(), before)


class Cilium(Case):
    def test_exclusive(self):
        """With cni.exclusive it renames the lists of others as soon as they appear."""
        agent = self.last = self.agent()
        agent.wait_ready()
        time.sleep(1)
        stop, renamed = threading.Event(), []

        def cilium():
            own = self.node.net / "05-cilium.conflist"
            own.write_text(LISTS["05-cilium.conflist"])
            while not stop.wait(0.01):
                for path in self.node.net.glob("*.conflist"):
                    if path != own:
                        # The agent may remove its list first.
                        with contextlib.suppress(FileNotFoundError):
                            os.rename(path, f"{path}.cilium_bak")
                            renamed.append(path.name)

        thread = threading.Thread(target=cilium)
        thread.start()
        try:
            self.assertIn("cni.exclusive=false", agent.wait("level=error"))
            agent.wait_ready(False)
            time.sleep(2)
        finally:
            stop.set()
            thread.join()
        # The agent does not write another list for each one that was renamed. If it looks
        # before the first is renamed, it writes one for Cilium's, and no more.
        self.assertEqual(len(renamed), len(set(renamed)), renamed)
        self.assertIn(set(renamed) - {"10-flannel.conflist"},
                      ({OWN}, {OF_CILIUM}, {OWN, OF_CILIUM}))
        self.assertEqual(self.node.names(), sorted(
            ["05-cilium.conflist", "natra", "10-flannel.conflist.cilium_bak"] +
            [f"{name}.cilium_bak" for name in renamed if "natra" in name]))
        self.assertEqual(
            (self.node.net / "10-flannel.conflist.cilium_bak").read_text(), FLANNEL)


class Killed(Case):
    def test_nothing_runs_on(self):
        """A job ends with the agent that has started it."""
        # The job waits 10 s for it.
        fd = self.node.lock()
        self.addCleanup(os.close, fd)
        agent = self.last = self.agent()
        self.until(lambda: jobs_of(agent), "no job")
        agent.process.kill()
        agent.process.wait()
        self.until(lambda: str(self.node.root) not in ps("-eo", "args"), "it goes on", 5)


if __name__ == "__main__":
    parallel.main()
