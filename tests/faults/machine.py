#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The machine misbehaves under natra-agent, the plugin and natractl: full and read-only
directories, no memory, no descriptors, no processes, a bpffs that goes away, an agent that
is stopped or killed, many pods at once. After each fault all must be as before, without
anybody's help, and nothing may be left.

Into one pod flows a stream of twice its limit. The table at the end has what was seen, the
most that came in half a second, and the time from the end of the fault until the agent is
ready, the pod has its edited limit and its program, and no file, lock or descriptor is left.
"""
import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from node import (FIRST, RATE, SOCKET_BITS, WINDOW_S, Node, Veth, Wrong, must, plugin,
                  programs, sh, wait_until)
from agent import AGENT
from other_build import build
from plugin import find_natra
from report import skip
from script import option, run_script

MIB = 1 << 20
BPFFS, LOG = Path("/sys/fs/bpf"), Path("/var/log")
FULL, READ_ONLY = "No space left on device", "Read-only file system"
MANY_FILES = "Too many open files"
CHART_MEMORY = 128 * MIB            # tools/deploy/chart/values.yaml


@contextlib.contextmanager
def full(directory):
    path = directory / "filler"
    with contextlib.suppress(OSError), open(path, "wb", buffering=0) as f:
        while True:
            f.write(bytes(4096))
    yield
    path.unlink()


@contextlib.contextmanager
def read_only(*directories):
    for path in directories:
        sh("mount", "-o", "remount,ro", str(path))
    yield
    for path in directories:
        sh("mount", "-o", "remount,rw", str(path))


def unready(node, path, why, fault):
    """Somebody removes what natra has installed, and the agent cannot put it there."""
    since = len(node.agent.lines)
    # What is removed has left room, which the agent would take first.
    node.agent.process.send_signal(signal.SIGSTOP)
    path.unlink()
    with fault:
        node.agent.process.send_signal(signal.SIGCONT)
        line = node.says(why, since)
        must(str(path.parent) in line, line)
        must(node.agent.get("/readyz")[0] == 503, "ready")
        node.must_start()
    return "unready, one line names it; pods start and stop"


def net_dir_full(node):
    return unready(node, node.list, FULL, full(node.net))


def bin_dir_full(node):
    return unready(node, node.bin / "natra", FULL, full(node.bin))


def dirs_read_only(node):
    return unready(node, node.list, READ_ONLY, read_only(node.net, node.bin))


def log_full(node):
    for fault, why in (full(LOG), FULL), (read_only(LOG), READ_ONLY):
        with fault:
            node.must_start()
            p = node.natractl("metrics", "--textfile", str(LOG / "natra.prom"))
            must(p.returncode == 1 and why in p.stderr and p.stderr.count("\n") == 1, p)
            must(not list(LOG.glob("natra.prom*")), "a file is left")
    return "pods start and stop; natractl metrics: one error"


def bpffs_read_only(node):
    with read_only(BPFFS):
        text = node.pods_start_and_stop()
        must(READ_ONLY in text, text)
    return "ADD has one error"


def every_limit(node, kind, values):
    """Let the plugin and natractl have each of these limits. Return from which on all that
    they do works."""
    pins, lowest = plugin.pins(), {}

    def run(what, v, work):
        argv = ["prlimit", f"--{kind}={v}:{v}"]
        code = work(argv)
        if code:
            lowest.pop(what, None)
        else:
            lowest.setdefault(what, v)
        return code

    def plugin_call(command):
        return lambda argv: node.one_error(
                node.call(command, node.spare, [*argv, find_natra()]), command, node.spare)

    def attach(argv):
        p = subprocess.run(
            [*argv, plugin.find_natractl(), "attach", "eth0", "--netns", node.spare.path,
             "--id", "spare", "--ingress-rate", "1M", "--sli", "on"],
            text=True, capture_output=True)
        must(p.returncode == 0 or p.returncode in (1, 127) and p.stderr.count("\n") == 1,
             f"{argv}: exit {p.returncode}: {p.stderr}")
        must(kind != "nofile" or p.returncode != 1 or MANY_FILES in p.stderr, p.stderr)
        must(programs(node.spare) == ([0, 0] if p.returncode else [1, 1]),
             f"{argv}: half attached")
        return p.returncode

    for v in values:
        if run("ADD", v, plugin_call("ADD")):
            must(node.call("ADD", node.spare).code == 0, "ADD")
        run("DEL", v, plugin_call("DEL"))
        must(node.call("DEL", node.spare).code == 0, "DEL")
        run("attach", v, attach)
        node.natractl("detach", "spare")
        # The next attach with sli loads its programs again.
        node.natractl("gc")
        must(plugin.pins() == pins, f"{kind} {v}: {plugin.pins()}")
    must(len(lowest) == 3, f"works at no limit: {lowest}")
    return lowest


def few_files(node):
    lowest = every_limit(node, "nofile", range(3, 36))
    return "one error each; works from " + ", ".join(
            f"{what} {v}" for what, v in lowest.items())


def all_files(node):
    every_limit(node, "nofile", range(3, 61))
    return "one error or all done at each of 58 limits"


def steps(ratio):
    v = 3 * MIB
    while v < 32 * MIB:
        yield int(v)
        v *= ratio


def little_memory(node):
    lowest = every_limit(node, "as", steps(1.17))
    return "one error each; works from " + ", ".join(
            f"{what} {v / MIB:.0f} MiB" for what, v in lowest.items())


def all_memory(node):
    every_limit(node, "as", steps(1.02))
    return "one error or all done at each of 120 limits"


def agent_starts(node, kind, values):
    """Start a second agent with each limit until one goes on."""
    for v in values:
        p = subprocess.Popen(
            ["prlimit", f"--{kind}={v}:{v}", AGENT, "--listen", "127.0.0.1:0", "--net-dir",
             str(node.net), "--bin-dir", str(node.bin), "--plugin", find_natra(),
             "--runtime-version", "containerd://1.7.0"], text=True, stderr=subprocess.PIPE)
        try:
            p.wait(0.3)
        except subprocess.TimeoutExpired:
            p.terminate()
            must(p.wait(10) == 0, f"{kind} {v}: {p.stderr.read()}")
            return v
        finally:
            lines = p.stderr.read().splitlines()
            p.stderr.close()
        errors = [x for x in lines if "level=info" not in x and "level=warn" not in x]
        must(p.returncode in (1, 127) and len(errors) == 1, f"{kind} {v}: {lines}")
    raise Wrong("starts at no limit")


def agent_few_files(node):
    v = agent_starts(node, "nofile", range(3, 40))
    return f"ends with one error; runs from {v}"


def agent_little_memory(node):
    v = agent_starts(node, "as", steps(1.05))
    return f"ends with one error; runs from {v / MIB:.0f} MiB"


def agent_out_of_files(node):
    """Its last descriptor is gone while a probe waits, and a file of its is removed."""
    since, pid = len(node.agent.lines), str(node.agent.process.pid)
    sh("prlimit", f"--nofile={node.open_files()}:", "--pid", pid)
    with socket.create_connection(("127.0.0.1", node.agent.port)):
        before = node.cpu_s()
        node.list.unlink()
        node.says(MANY_FILES, since)
        time.sleep(1)
        used = node.cpu_s() - before
        must(used < 0.7, f"{used:.2f} s of CPU in a second")
        node.must_start()
    sh("prlimit", "--nofile=1024:", "--pid", pid)
    return "one error, no busy loop; pods start and stop"


class Cgroup:
    """A cgroup for the agent, with one controller of version 1 or 2."""

    def __init__(self, controller):
        self.root = Path("/var/lib/node") / controller
        self.root.mkdir(exist_ok=True)
        for kind, words in ("cgroup", ["-o", controller]), ("cgroup2", []):
            if subprocess.run(["mount", "-t", kind, *words, "none", str(self.root)],
                              capture_output=True).returncode == 0:
                break
        # Each run is process 1 of its namespace.
        self.path = self.root / f"natra-machine-{os.stat('/proc/self/ns/net').st_ino}"
        self.is_v1 = kind == "cgroup"
        with contextlib.suppress(OSError):
            (self.root / "cgroup.subtree_control").write_text(f"+{controller}")

    def __enter__(self):
        self.path.mkdir(exist_ok=True)
        return self

    def take(self, process):
        (self.path / "cgroup.procs").write_text(str(process.pid))

    def put(self, key, value):
        (self.path / key).write_text(str(value))

    def __exit__(self, *_):
        for pid in (self.path / "cgroup.procs").read_text().split():
            with contextlib.suppress(OSError):
                (self.root / "cgroup.procs").write_text(pid)
        wait_until(self.remove, "the cgroup stays")
        sh("umount", "-l", str(self.root))

    def remove(self):
        with contextlib.suppress(OSError):
            self.path.rmdir()
        return not self.path.exists()


def no_processes(node):
    """A limit that root does not pass: pids.max of the container. RLIMIT_NPROC is none."""
    since = len(node.agent.lines)
    with Cgroup("pids") as group:
        group.take(node.agent.process)
        group.put("pids.max", 1)
        node.list.unlink()
        node.says("looking at the directories failed", since)
        node.must_start()
    return "one error; pods start and stop"


def out_of_memory(node):
    """The kernel kills a job, or the agent itself, which the kubelet starts again."""
    since = len(node.agent.lines)
    with Cgroup("memory") as group:
        group.take(node.agent.process)
        group.put("memory.limit_in_bytes" if group.is_v1 else "memory.max", 65536)
        node.list.unlink()
        wait_until(lambda: node.agent.process.poll() is not None or any(
            x and "looking at the directories failed" in x
            for x in node.agent.lines[since:]), node.agent.log)
        node.must_start()
        is_killed = node.agent.process.poll() is not None
    if is_killed:
        node.start()
    return f"the {'agent' if is_killed else 'job'} is killed; pods start and stop"


def unmounted(node):
    p = subprocess.run(["umount", str(BPFFS)], capture_output=True, text=True)
    must(p.returncode and "busy" in p.stderr, f"not refused: {p}")
    return "refused, the agent has it open"


def unmounted_lazily(node):
    since = len(node.agent.lines)
    sh("umount", "-l", str(BPFFS))
    node.says("bpffs was unmounted or mounted over", since)
    return "one warning, a new bpffs is mounted"


def mounted_over(node):
    since = len(node.agent.lines)
    sh("mount", "-t", "bpf", "bpf", str(BPFFS))
    node.says("bpffs was unmounted or mounted over", since)
    return "one warning, the pods move to the new one"


def pins_removed(node):
    since = len(node.agent.lines)
    shutil.rmtree(plugin.PINS)
    node.says("directory on bpffs was removed", since)
    return "limits end with their pins; one warning"


def no_cache(node):
    """libcni's directory is away while a pod is edited."""
    away = node.results.with_name("away")
    node.results.rename(away)
    node.edit(RATE + 1)
    time.sleep(0.5)
    node.must_start()
    away.rename(node.results)
    wait_until(lambda: node.rates() == {"net/steady/eth0": RATE + 1}, node.agent.log, 5)
    node.edit(RATE)
    return "pods start and stop; the edit of meanwhile counts"


@contextlib.contextmanager
def stopped(process):
    process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        process.send_signal(signal.SIGCONT)


def paused(node, seconds=2):
    """Meanwhile pods start and stop, one is edited, and natra's list is removed."""
    with stopped(node.agent.process):
        node.edit(FIRST)
        node.list.unlink()
        node.must_start()
        time.sleep(seconds)
    begin = time.monotonic()
    wait_until(lambda: node.rates() == {"net/steady/eth0": FIRST}, node.agent.log, 10)
    took = time.monotonic() - begin
    node.edit(RATE)
    return f"pods start and stop; the edit of meanwhile after {took:.2f} s"


def lost_events(process):
    """Return how many messages the netlink sockets of this process had no room for."""
    place = Path(f"/proc/{process.pid}")
    own = {os.readlink(fd) for fd in (place / "fd").iterdir()}
    lines = (place / "net/netlink").read_text(encoding="ascii").splitlines()[1:]
    return sum(int(drops) for *_, drops, inode in map(str.split, lines)
               if f"socket:[{inode}]" in own)


def events_flood(node):
    """While the agent is stopped, more changes than its socket has room for."""
    sh("ip", "link", "add", "flood", "type", "veth", "peer", "name", "flood-peer")
    try:
        with stopped(node.agent.process):
            before = lost_events(node.agent.process)
            subprocess.run(["tc", "-batch", "-"], text=True, check=True, timeout=60, input="".join(
                f"qdisc replace dev flood root pfifo limit {n + 1}\n" for n in range(2000)))
            must(lost_events(node.agent.process) > before, "the agent lost no event")
    finally:
        sh("ip", "link", "del", "flood")
    node.must_start()
    return "events are lost; pods start and stop"


def paused_long(node):
    return paused(node, 150)


def killed(node, times=3):
    """SIGKILL in the middle of edits. The kubelet starts it again."""
    for n in range(times):
        for mbit in range(1, 6):
            node.edit(mbit * 1000000)
            time.sleep(0.007 * (n % 7))
        node.agent.process.kill()
        node.agent.stop()
        node.must_start()
        node.edit(RATE)
        node.start()
    return f"{times} times; the newest edit counts"


def killed_often(node):
    return killed(node, 40)


def pods_at_once(node, count=12, waves=1):
    """All are added at once and deleted at once, some at a time on this machine."""
    with ThreadPoolExecutor(8) as pool:
        for wave in range(waves):
            pods = list(pool.map(lambda n: Veth(f"p{n}", f"vp{n}"), range(count)))
            for command, wanted in ("ADD", [1, 0]), ("DEL", [0, 0]):
                for answer in pool.map(lambda p, c=command: node.call(c, p), pods):
                    must(answer.code == 0, f"{command}: {answer}")
                must(all(programs(p) == wanted for p in pods), f"not all after {command}")
            list(pool.map(Veth.close, pods))
    return f"{count * waves} pods, {count} at a time, each limited"


def many_pods(node):
    """With the memory that the chart gives the agent, and an edit for each pod."""
    with Cgroup("memory") as group:
        group.put("memory.limit_in_bytes" if group.is_v1 else "memory.max", CHART_MEMORY)
        group.take(node.agent.process)
        return pods_at_once(node, 500, 4)


def two_versions(node):
    """The agent is of the next ABI, the plugin and natractl of this one; and back."""
    own = node.agent
    must(own.stop() == 0, "the agent's exit code")
    node.start(env={"LD_LIBRARY_PATH": os.path.dirname(node.next)})
    node.must_start()
    for rate in FIRST, RATE:
        node.edit(rate)
        wait_until(lambda r=rate: node.rates() == {"net/steady/eth0": r}, node.agent.log, 10)
    must(json.loads(node.natractl("list", "--json").stdout)[0]["other_abi"],
         "the agent is of this ABI")
    must(node.agent.stop() == 0, "the agent's exit code")
    node.start()
    return "pods start and stop, edits take effect"


def two_agents(node, times=8):
    """As while a node is updated: agents of this ABI and of the next follow the same edits and
    take each other's limits away, and plugins of both start and stop pods."""
    own, other = node.agent, os.path.dirname(node.next)
    programs_of = [[find_natra()], ["env", f"LD_LIBRARY_PATH={other}", find_natra()]]
    pods = [node.spare, Veth("second", "vsecond")]
    node.start(env={"LD_LIBRARY_PATH": other})
    with ThreadPoolExecutor(2) as pool:
        for n in range(times):
            # Each pod starts by one of them, both at once, and stops by the other.
            rate = RATE if n % 2 else FIRST
            node.edit(rate)
            for command, wanted in ("ADD", [1, 0]), ("DEL", [0, 0]):
                for answer in pool.map(lambda v, p, c=command: node.call(c, p, v),
                                       programs_of, pods):
                    must(answer.code == 0, f"{command}: {answer}")
                must([programs(p) for p in pods] == [wanted] * 2, f"not both after {command}")
                programs_of.reverse()
            wait_until(lambda r=rate: node.rates() == {"net/steady/eth0": r},
                       lambda: f"{node.rates()}\n{own.log()}\n{node.agent.log()}", 10)
            # Each time that one takes over, the pod has its burst again.
            time.sleep(WINDOW_S)
    pods[1].close()
    must(node.agent.stop() == 0, "the agent's exit code")
    node.agent = own
    return f"{2 * times} pods start by one and stop by the other, {times} edits take effect"


def clock_jumps(node):
    """A day back and two days forth. It changes the machine's clock, so it is for a VM."""
    for days in -1, 2, -1:
        time.clock_settime(time.CLOCK_REALTIME, time.time() + days * 86400)
        node.must_start()
        node.edit(FIRST)
        wait_until(lambda: node.rates() == {"net/steady/eth0": FIRST}, node.agent.log, 10)
        node.edit(RATE)
    return "pods start and stop, edits take effect"


# Each row has the longest time, in seconds, from the end of the fault to recovery. The
# installer and the keeper try again after at most 10.
ROWS = {
    "the directory of networks is full": (net_dir_full, 12),
    "the directory of plugins is full": (bin_dir_full, 12),
    "both are read-only": (dirs_read_only, 12),
    "the directory of logs is full, or read-only": (log_full, 2),
    "libcni's cache is not there": (no_cache, 2),
    "bpffs is read-only": (bpffs_read_only, 2),
    "few descriptors: plugin, natractl": (few_files, 2),
    "few descriptors: the agent starts": (agent_few_files, 2),
    "no descriptor left: the agent runs": (agent_out_of_files, 12),
    "little address space: plugin, natractl": (little_memory, 2),
    "no process can be started": (no_processes, 4),
    "the cgroup's memory is used up": (out_of_memory, 15),
    "bpffs: umount": (unmounted, 2),
    "bpffs: umount -l": (unmounted_lazily, 5),
    "bpffs: another one is mounted over it": (mounted_over, 5),
    "bpffs: rm -r natra": (pins_removed, 5),
    "the agent is stopped for 2 s": (paused, 12),
    "2000 netlink events at once": (events_flood, 5),
    "the agent is killed between edits": (killed, 5),
    "12 pods at once": (pods_at_once, 2),
}
NIGHTLY = {
    "each number of descriptors from 3 to 60": (all_files, 2),
    "each address space from 3 to 32 MiB": (all_memory, 2),
    "little address space: the agent starts": (agent_little_memory, 2),
    "the agent is stopped for 150 s": (paused_long, 15),
    "the agent is killed between edits, often": (killed_often, 5),
    "2000 pods, agent with the chart's memory": (many_pods, 15),
    "two ABIs at once": (two_versions, 5),
    "agents and plugins of two ABIs at once": (two_agents, 5),
}
# A sanitizer's shadow of the memory is more than these leave.
NOT_SANITIZED = (little_memory, all_memory, agent_little_memory)
# The limits end here, so the stream may bring more until the agent has made them again.
NO_LIMIT = pins_removed
CLOCK = {"the clock jumps": (clock_jumps, 5)}


def measure(rep, node, name, row):
    """Run one row. Return its cells."""
    work, bound_s = row
    since = time.monotonic()
    try:
        seen = work(node)
        took = node.wait()
        time.sleep(max(0.0, since + 2 * WINDOW_S - time.monotonic()))
    except (Wrong, AssertionError, RuntimeError, subprocess.SubprocessError) as e:
        rep.check(name, str(e)[:500], "as it must be", False)
        return None
    most = node.stream.most(since, WINDOW_S)
    rep.most(f"{name}: recovered after", took, bound_s, " s")
    if work is not NO_LIMIT:
        rep.most("  most in half a second", most / 1e6,
                 (1.2 * RATE + SOCKET_BITS / WINDOW_S) / 1e6, " Mbit/s")
    rep.least("  and it flows", most / 1e6, RATE * 0.5 / 1e6, " Mbit/s")
    return f"| {name} | {seen} | {most / 1e6:.1f} | {took:.1f} |"


def prepare(a):
    if a.nightly:
        a.next = build("NATRA_NEXT_BUILD", "src/libnatra.so.0.1.0", "-Dnext_abi=true")


def main(rep, a):
    if not plugin.has_tcx():
        skip("TCX")
    rows = CLOCK if a.clock else ROWS | NIGHTLY if a.nightly else ROWS
    if os.environ.get("NATRA_SANITIZE", "none") != "none":
        rows = {name: row for name, row in rows.items() if row[0] not in NOT_SANITIZED}
    node = Node()
    node.next = getattr(a, "next", None)
    cells = [rep.measure(name, measure, rep, node, name, row)
             for name, row in rows.items() if a.only in name]
    node.end()
    print("| fault | what was seen | most in 0.5 s, Mbit/s | recovered after, s |\n"
          "|---|---|---|---|", *filter(None, cells), sep="\n")


if __name__ == "__main__":
    plugin.run_script(
        main, option("--nightly", action="store_true", help="with rows that take minutes"),
        option("--clock", action="store_true", help="set the clock, in a VM"),
        option("--only", default="", metavar="TEXT", help="rows whose name has this"),
        prepare=prepare)
