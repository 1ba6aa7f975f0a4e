#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""`kubectl natra` with a stub of kubectl, and with a real one where there is one, and an API
server that is made up.
NATRACTL_FAKE is natractl linked with fake_natra.c, which runs in the place of the agents'."""
import contextlib
import hashlib
import os
import pty
import re
import shutil
import signal
import subprocess
import tarfile
import tempfile
import time
import unittest
from pathlib import Path

from fake_cluster import Cluster

TOOL = Path(__file__).resolve().parents[2] / "tools/kubectl/kubectl-natra"
KUBECTL = shutil.which("kubectl")
STUB = Path(__file__).resolve().with_name("stub_kubectl.py")
AGENTS = {"kube-system/natra-agent-1", "kube-system/natra-agent-2"}


class Arguments(unittest.TestCase):
    """What is wrong is said before kubectl is called."""

    def test_wrong(self):
        for words, says in ((["stats"], "stats: needs a NAMESPACE/POD"),
                            (["stats", "a/b", "--watch", "1"], "stats: --watch needs a terminal"),
                            (["events", "a/b", "-jf"], "events: -jf needs a terminal"),
                            (["events", "--since"], "--since: needs a value"),
                            (["events", "--follow"],
                             "'--follow' has to stand behind a NAMESPACE/POD"),
                            (["list", "--wise"], "list: unknown option '--wise'"),
                            (["events", "--since", "1h", "--follow"],
                             "'--follow' has to stand behind a NAMESPACE/POD"),
                            (["lists"], "unknown command 'lists'"),
                            (["--speed", "list"], "unknown option '--speed'"),
                            (["--context"], "--context: needs a value")):
            with self.subTest(words=words):
                p = subprocess.run([TOOL, *words], text=True, capture_output=True,
                                   env={"PATH": "/usr/bin:/bin"})
                self.assertEqual((p.returncode, p.stdout, p.stderr.count("\n")), (1, "", 1))
                self.assertIn(says, p.stderr)

    def test_help(self):
        p = subprocess.run([TOOL, "--help"], text=True, capture_output=True)
        self.assertEqual((p.returncode, p.stderr), (0, ""))
        commands = re.findall(r"^  (\w+)", p.stdout, re.M)
        self.assertEqual(commands, ["status", "list", "doctor", "show", "check", "stats", "top",
                                    "events", "sysdump"])
        p = subprocess.run([TOOL], text=True, capture_output=True)
        self.assertEqual((p.returncode, p.stdout), (2, ""))


class Krew(unittest.TestCase):
    def test_manifest(self):
        with tempfile.TemporaryDirectory(prefix="natra-krew-") as tmp:
            archive = f"{tmp}/natra.tar.gz"
            words = [TOOL.with_name("krew"), "0.1.0", "https://example.org", "https://e/a.tar.gz"]
            subprocess.run(["tar", "-czf", archive, "-C", TOOL.parent, TOOL.name], check=True)
            p = subprocess.run([*words, archive], text=True, capture_output=True)
            self.assertEqual((p.returncode, p.stdout), (1, ""))
            self.assertIn("has no LICENSE", p.stderr)
            subprocess.run(["tar", "-czf", archive, "LICENSE", "-C", TOOL.parent, TOOL.name],
                           check=True, cwd=TOOL.parents[2])
            text = subprocess.run([*words, archive], text=True, capture_output=True,
                                  check=True).stdout
            number = hashlib.sha256(Path(archive).read_bytes()).hexdigest()
        self.assertEqual(re.findall("^ +(version|uri|sha256|bin): (.*)", text, re.M), [
            ("version", "v0.1.0"), ("uri", "https://e/a.tar.gz"), ("sha256", number),
            ("bin", "kubectl-natra")])


class WithStub(unittest.TestCase):
    kubectl = STUB

    def setUp(self):
        tmp = tempfile.TemporaryDirectory(prefix="natra-kubectl-")
        self.addCleanup(tmp.cleanup)
        self.tmp = Path(tmp.name)
        (self.tmp / "root").mkdir()
        self.cluster = Cluster(os.environ["NATRACTL_FAKE"], self.tmp / "root")
        self.addCleanup(self.cluster.close)
        (self.tmp / "config").write_text(self.cluster.kubeconfig)
        # As kubectl finds a plugin, and that kubectl.
        (self.tmp / "kubectl-natra").symlink_to(TOOL)
        (self.tmp / "kubectl").symlink_to(self.kubectl)
        self.env = {**os.environ, "KUBECONFIG": str(self.tmp / "config"),
                    "HOME": str(self.tmp), "PATH": f"{self.tmp}:{os.environ['PATH']}"}

    def natra(self, *words):
        """kubectl loses what comes before it has made its streams, which it does after it has
        begun to read. A kubelet is slower than that; the cluster here is not always."""
        executed = len(self.cluster.executed)
        for _ in range(5):
            del self.cluster.executed[executed:]
            p = subprocess.run(
                [self.kubectl, "natra", *words], text=True, capture_output=True, timeout=120,
                cwd=self.tmp, stdin=subprocess.DEVNULL, env=self.env)
            if "Unknown stream id" not in p.stderr:
                break
        return p

    def must(self, *words, code=0):
        p = self.natra(*words)
        self.assertEqual(p.returncode, code, p)
        return p.stdout

    def test_status(self):
        for _ in range(5):      # It says "?" where kubectl loses something, see natra().
            out = self.must("status")
            if "?" not in out:
                break
        lines = [line.split() for line in out.splitlines()]
        self.assertEqual(lines[0], ["NODE", "READY", "VERSION", "MODE", "EGRESS", "KERNEL"])
        self.assertEqual([line[:2] for line in lines[1:]],
                         [["node-1", "ready"], ["node-2", "NOT"]])
        for line in lines[1:]:
            self.assertEqual(len(line), 6)
            self.assertNotIn("?", line)

    def test_list(self):
        out = self.must("list")
        self.assertEqual(re.findall("^node-.:$", out, re.M), ["node-1:", "node-2:"])
        self.assertIn("shop/web", out)
        self.assertNotIn("node-1", self.must("list", "node-2"))
        self.must("list", "--wide", "node-2")
        self.assertEqual(self.cluster.executed[-1], ["/bin/natractl", "list", "--wide"])
        self.assertEqual(self.cluster.asked, AGENTS)

    def hurry(self):
        """Let timeout wait for a second at most."""
        path = self.tmp / "timeout"
        path.write_text('#!/bin/sh\n[ "$1 $2" = "--foreground 30" ] || exit 125\nshift 2\n'
                        f'exec {shutil.which("timeout")} --foreground 1 "$@"\n')
        path.chmod(0o755)

    def test_node_that_does_not_answer(self):
        """It keeps no other node from its answer."""
        self.hurry()
        self.cluster.hangs = {"natra-agent-1"}
        late = "kubectl natra: node-1: its agent has not answered within 30 s\n"
        for command in "list", "doctor", "top", "status":
            with self.subTest(command=command):
                begin = time.monotonic()
                p = self.natra(command)
                self.assertLess(time.monotonic() - begin, 30)
                self.assertIn(late, p.stderr)
                self.assertIn("node-2", p.stdout)
                # The last node's code is returned, and doctor finds faults there.
                self.assertEqual(p.returncode, 3 if command == "doctor" else 1, p)
        self.assertRegex(p.stdout, r"node-1 +ready +\? ")
        files = self.sysdump()
        self.assertIn("exit 124", files["node-1/version"])
        self.assertNotIn("node-1/probe", files)
        self.assertIn("node-1/log", files)
        self.assertIn("node-2/probe", files)

    def test_agent_that_does_not_run(self):
        """Nothing is executed in it, and what is known without that is shown."""
        for pod in self.cluster.pods:
            if pod["metadata"]["name"] == "natra-agent-2":
                pod["status"]["phase"] = "Pending"
        self.hurry()
        self.cluster.hangs = {"natra-agent-2"}
        said = "kubectl natra: node-2: its agent natra-agent-2 does not run\n"
        p = self.natra("list")
        self.assertEqual((p.returncode, p.stderr), (1, said))
        self.assertNotIn("node-2", p.stdout)
        p = self.natra("status")
        self.assertEqual((p.returncode, p.stderr), (0, said))
        self.assertRegex(p.stdout, r"node-2 +NOT +\? +\? +")
        files = self.sysdump()
        self.assertIn("node-2/pod", files)
        self.assertNotIn("node-2/version", files)

    def test_namespace(self):
        """The administrator says where the agents are."""
        self.must("--namespace", "attic", "list")
        self.assertEqual(self.cluster.asked, {"attic/a-tenant"})

    def test_pod(self):
        """A pod's commands run on its node, with its name."""
        for words in (["stats"], ["events", "--since", "90s"], ["top", "-n", "3"], ["show"],
                      ["check"]):
            with self.subTest(words=words):
                self.cluster.executed.clear()
                words.insert(1, "shop/web")
                # Its name means several of fake_natra.c's attachments: natractl says which.
                p = self.natra(*words)
                self.assertEqual(self.cluster.executed, [["/bin/natractl", *words]], p)

    def test_names(self):
        """Kubernetes allows -- in a name, and an option may stand before it."""
        for words, run in ((["show", "shop/a--b"], ["show", "shop/a--b"]),
                           (["events", "--since", "1h", "shop/a--b"],
                            ["events", "shop/a--b", "--since=1h"]),
                           (["events", "--since=", "shop/a--b"],
                            ["events", "shop/a--b", "--since="])):
            with self.subTest(words=words):
                self.cluster.executed.clear()
                p = self.natra(*words)
                self.assertEqual(self.cluster.executed, [["/bin/natractl", *run]], p)

    def test_endless(self):
        """What goes on until Ctrl-C has a terminal in the container, too, which ends it there,
        and its lines begin at the left of this one, which kubectl has made raw."""
        self.cluster.noise = "noise\x1b\n"
        for words in ["stats", "shop/web", "--watch", "1"], ["events", "shop/web", "--follow"]:
            with self.subTest(words=words):
                self.cluster.executed.clear()
                out = self.in_terminal(*words)
                self.assertEqual(self.cluster.executed, [["/bin/natractl", *words]], out)
                self.assertEqual(self.cluster.terminals.pop(), True)
                # When kubectl is gone the terminal adds a \r of its own.
                self.assertRegex(out, rb"noise\r+\n")
                self.assertNotRegex(out, rb"(?<!\r)\n|\x1b")

    def in_terminal(self, *words):
        """Return what a terminal shows in which this is run."""
        main, other = pty.openpty()
        with subprocess.Popen([self.kubectl, "natra", *words], cwd=self.tmp, env=self.env,
                              stdin=other, stdout=other, stderr=other, start_new_session=True):
            os.close(other)
            out = b""
            with contextlib.suppress(OSError):      # EIO: it has ended
                while chunk := os.read(main, 4096):
                    out += chunk
        os.close(main)
        return out

    def test_events_of_all(self):
        self.must("events", "--since=90s")
        self.assertEqual(self.cluster.executed, 2 * [["/bin/natractl", "events", "--since=90s"]])

    def test_doctor(self):
        """It looks where the agent does, and asks the agent where that listens."""
        for listen, asked in (("--listen=127.0.0.1:19810", ["--agent=127.0.0.1:19810"]),
                              ("--listen=:19810", ["--agent=:19810"]),
                              ("--listen=[::]:19810", ["--agent=[::]:19810"]),
                              ("--listen=", []), ("--no-page", [])):
            with self.subTest(listen=listen):
                self.cluster.executed.clear()
                for pod in self.cluster.pods[:3]:
                    pod["spec"]["containers"][0]["args"][-1] = listen
                p = self.natra("doctor", "shop/web")
                self.assertEqual(self.cluster.executed, [
                    ["/bin/natractl", "doctor", *asked, f"--root={self.tmp}/root",
                     "--platform=default", "shop/web"]])
                self.assertNotIn("--agent", p.stderr)
        self.assertEqual(re.findall("^node-.:$", self.natra("doctor").stdout, re.M),
                         ["node-1:", "node-2:"])

    def test_exit_code(self):
        """What natractl returns is returned."""
        self.must("list", "node-1")
        self.assertEqual(self.natra("stats", "shop/web").returncode, 1)

    def test_errors(self):
        for words, says in ((["stats", "web"], "'web' is not NAMESPACE/POD"),
                            (["stats", "shop/late"], "pod 'shop/late' is on no node yet"),
                            (["stats", "shop/none"], '"none" not found'),
                            (["list", "node-1", "node-3"],
                             "node 'node-3' has no natra-agent"),
                            (["list", "node--1"], "node 'node--1' has no natra-agent"),
                            (["--namespace=shop", "list"],
                             "no pod of the DaemonSet natra-agent in namespace 'shop'")):
            with self.subTest(words=words):
                p = self.natra(*words)
                self.assertEqual((p.returncode, p.stdout), (1, ""))
                self.assertIn(says, p.stderr)
        self.cluster.refuses = True
        p = self.natra("list")
        self.assertEqual((p.returncode, p.stdout, p.stderr.count("\n")), (1, "", 1))
        self.assertIn("pods is forbidden", p.stderr)

    def test_control_characters(self):
        """A terminal gets none that a container prints, nor does a file."""
        self.cluster.noise = "\x1b[2J\r\x07\u009b\u202e"
        files = self.sysdump("node-1")
        noisy = [self.must("list", "node-1"), self.natra("stats", "shop/web").stderr,
                 files["node-1/log"], files["node-1/list"]]
        for text in noisy:
            self.assertIn("[2J", text)
        for text in *noisy, *files.values():
            self.assertNotRegex(text, r"[^\t\n -~]")

    def test_ended(self):
        """A signal leaves nothing of what was collected."""
        left = self.tmp / "left"
        left.mkdir()
        self.env["TMPDIR"] = str(left)
        with subprocess.Popen([self.kubectl, "natra", "sysdump"], cwd=self.tmp, env=self.env,
                              stdin=subprocess.DEVNULL, start_new_session=True) as p:
            while not self.cluster.executed and p.poll() is None:
                time.sleep(0.01)
            self.assertTrue(list(left.iterdir()))
            os.killpg(p.pid, signal.SIGTERM)
            self.assertEqual(p.wait(30), 1)
        self.assertEqual(list(left.iterdir()), [])

    def sysdump(self, *words):
        """Return the text of each file by its name."""
        with tarfile.open(self.tmp / self.must("sysdump", *words).strip()) as tar:
            return {m.name.split("/", 1)[1]: tar.extractfile(m).read().decode()
                    for m in tar.getmembers() if m.isfile()}

    def test_sysdump(self):
        files = self.sysdump()
        [archive] = self.tmp.glob("natra-sysdump-*")
        self.assertEqual(archive.stat().st_mode & 0o777, 0o600)
        self.assertEqual(self.cluster.asked, AGENTS)
        for node in "node-1", "node-2":
            for part in ("version", "probe", "list", "stats", "groups", "events", "metrics",
                         "doctor", "log", "log-before", "pod"):
                self.assertTrue(files[f"{node}/{part}"], part)
        self.assertEqual(files["node-2/log"], "the log of natra-agent-2\n")
        self.assertIn("exit 1", files["node-1/log-before"])
        self.assertNotIn("the-secret-token", "".join(files.values()))


@unittest.skipUnless(KUBECTL, "no kubectl")
class WithKubectl(WithStub):
    kubectl = KUBECTL


if __name__ == "__main__":
    unittest.main()
