#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""natractl doctor names what is wrong with a pod's limits in the kernel. Each state is
made on a pod that has limits, and most are mended by the command that doctor gives. Needs
root; all is in namespaces and on a bpffs of the test's own. States of fq are made only
where the kernel has it."""
import json
import os
import pathlib
import re
import socket
import struct
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, HERE + "/../harness/python"]
import bpfsys
from isolation import isolate
from patient import NATRACTL, NEW, PACKET_SOCKETS, PAGE, PLUGIN, Case, Node, page_blocks

# It is the test's own, and the plugin takes it, too.
BPFFS = "/sys/fs/bpf"
UPSTREAM = "/usr/lib/cni/bandwidth"
ID = "cbr0/0123456789ab/eth0"
RATES = {"ingressRate": 10**7, "egressRate": 10**7}
# The program's own build, of which libnatra has the number in its code.
OBJECT_ID = "bpf/natra_object_id.h"


def run(*argv, **more):
    p = subprocess.run(argv, text=True, capture_output=True, timeout=30, **more)
    if p.returncode:
        raise AssertionError(f"{argv}: {p.stdout}{p.stderr}")
    return p.stdout


def has_fq():
    return json.loads(run(NATRACTL, "--json", "probe"))["fq"]


class Patient(Node):
    """A node with the pod shop/web, which has a veth and limits."""

    def __init__(self, host="veth-web"):
        super().__init__(runtime=NEW)
        self.host = host
        self.undo = lambda: None
        try:
            self.make()
        except BaseException:
            super().close()
            raise

    def make(self):
        host = self.host
        # natra looks there for a namespace; doctor looks below the node's root.
        self.path = pathlib.Path("/run/netns/web")
        self.path.touch()
        run("unshare", f"--net={self.path}", "ip", "link", "set", "lo", "up")
        (self.root / "run/netns").mkdir(parents=True)
        run("mount", "--rbind", "/run/netns", str(self.root / "run/netns"))
        run("ip", "link", "add", host, "type", "veth", "peer", "name", "peer0")
        with open(self.path, encoding="ascii") as ns:
            run("ip", "link", "set", "peer0", "netns",
                f"/proc/{os.getpid()}/fd/{ns.fileno()}", "name", "eth0")
        run("ip", "link", "set", host, "up")
        run("ip", "addr", "add", "10.99.0.1/24", "dev", host)
        # IPv6 sends packets of its own.
        self.inside("sh", "-c", "echo 1 > /proc/sys/net/ipv6/conf/eth0/disable_ipv6")
        self.inside("ip", "link", "set", "eth0", "up")
        self.inside("ip", "addr", "add", "10.99.0.2/24", "dev", "eth0")
        self.pod("web", RATES)

    def pod(self, name, bandwidth=None, annotations=None, element=None,
            netns=None):
        super().pod(ID.split("/")[1], bandwidth, annotations, element,
                    f"/run/netns/{name}")
        # The name of the file does not matter, the name of the pod does.
        path = next((self.root / "var/lib/cni/results").iterdir())
        path.write_text(path.read_text().replace(
            f'"K8S_POD_NAME", "{ID.split("/")[1]}"', '"K8S_POD_NAME", "web"'))

    def close(self):
        self.undo()
        self.detach()
        subprocess.run(["ip", "link", "del", self.host], stderr=subprocess.DEVNULL,
                       check=False)
        for ifb in json.loads(run("ip", "-j", "link", "show", "type", "ifb")):
            if ifb:
                run("ip", "link", "del", ifb["ifname"])
        run("umount", "--recursive", str(self.root / "run/netns"))
        run("umount", str(self.path))
        super().close()

    def inside(self, *argv, **more):
        return run("nsenter", f"--net={self.path}", *argv, **more)

    def tool(self, *argv, env=None):
        return run(NATRACTL, "--bpffs", BPFFS, *argv, env=env)

    def detach(self):
        """Detach the pod, which may have been detached."""
        subprocess.run([NATRACTL, "--bpffs", BPFFS, "detach", ID],
                       stderr=subprocess.DEVNULL, check=False)

    def attach(self, *options, env=None):
        self.tool("attach", "eth0", "--netns", str(self.path), "--id", ID,
                  "--network", "cbr0", "--label", "shop/web", "--ingress-rate",
                  "10M", "--egress-rate", "10M", *options, env=env)

    def find(self, *args, **more):
        return self.findings(*args, bare=False, bpffs=BPFFS, **more)

    def mend(self, command):
        """Run a command of doctor's as it is, but for the place of natractl."""
        run("sh", "-ec", command.replace("natractl --bpffs", f"{NATRACTL} --bpffs"))

    def call(self, plugin, **conf):
        conf.update(cniVersion="1.0.0", name="cbr0", prevResult={
            "cniVersion": "1.0.0", "interfaces": [
                {"name": self.host},
                {"name": "eth0", "sandbox": str(self.path)}]})
        run(plugin, input=json.dumps(conf), env={
            "CNI_COMMAND": "ADD", "CNI_CONTAINERID": ID.split("/")[1],
            "CNI_NETNS": str(self.path), "CNI_IFNAME": "eth0",
            "CNI_ARGS": "K8S_POD_NAMESPACE=shop;K8S_POD_NAME=web",
            "CNI_PATH": "/usr/lib/cni"})

    def upstream(self):
        self.call(UPSTREAM, type="bandwidth", runtimeConfig={"bandwidth": {
            **RATES, "ingressBurst": 10**6, "egressBurst": 10**6}})


def unshaped(p):
    """A pod that the plugin let start although it could not be limited."""
    p.inside("tc", "qdisc", "add", "dev", "eth0", "root", "pfifo")
    p.call(PLUGIN, type="natra", onError="continue", edtPacing="on", logFile="",
           runtimeConfig={"bandwidth": RATES})


def remove_pins(p):
    path = json.loads(p.tool("--json", "show", ID))["pin_path"]
    for directory, _, names in os.walk(path):
        for name in names:
            if "link" in name:
                os.unlink(f"{directory}/{name}")


def lose_program(p):
    p.attach("--attach-mode", "clsact-podside", "--edt-pacing", "off")
    p.inside("tc", "filter", "del", "dev", "eth0", "egress")


def other_abi(p):
    p.attach()
    path = json.loads(p.tool("--json", "show", ID))["pin_path"]
    for directory, _, names in os.walk(path):
        if "meta" in names:
            path = f"{directory}/meta"
    own = write_abi(path, 99)
    p.undo = lambda: write_abi(path, own)


def write_abi(path, number):
    """Write another ABI into a record, and return the one that it had."""
    size = json.loads(run("bpftool", "-j", "map", "show", "pinned", path))[
        "bytes_value"]
    fd = bpfsys.obj_get(path)
    record = bytearray(bpfsys.map_lookup(fd, 0, size).to_bytes(
        size, sys.byteorder))
    before, = struct.unpack_from("=I", record, 4)
    struct.pack_into("=I", record, 4, number)
    bpfsys.map_update(fd, 0, int.from_bytes(record, sys.byteorder), size)
    os.close(fd)
    return before


def decoy(p):
    """eth0 moves to a namespace of the pod's own, and something else gets its place."""
    index, = [l["ifindex"] for l in json.loads(p.inside("ip", "-j", "link", "show", "eth0"))]
    inner = subprocess.Popen(["unshare", "--net", "sh", "-c", "echo; exec sleep 600"],
                             stdout=subprocess.PIPE)
    p.undo = lambda: (inner.kill(), inner.wait(), inner.stdout.close())
    inner.stdout.readline()
    p.inside("ip", "link", "set", "eth0", "netns", str(inner.pid))
    p.inside("ip", "link", "add", "eth0", "index", str(index), "type", "veth", "peer",
             "name", "nobody")


def older_build(p):
    """natra of another build attaches: the same library but for its object's number."""
    build = os.path.dirname(os.path.realpath(NATRACTL)) + "/../.."
    with open(f"{build}/{OBJECT_ID}", encoding="ascii") as f:
        number = int(f.read().split()[2].rstrip("UL\n"), 16)
    tmp = tempfile.mkdtemp(dir=p.root)
    with open(f"{build}/src/libnatra.so.0", "rb") as f:
        code = f.read()
    own = struct.pack("<Q", number)
    assert code.count(own) == 1
    with open(f"{tmp}/libnatra.so.0", "wb") as f:
        f.write(code.replace(own, struct.pack("<Q", number ^ 1)))
    p.attach(env={**os.environ, "LD_LIBRARY_PATH": tmp})


def tcx_in_front(p):
    p.attach("--attach-mode", "tcx-hostside", "--edt-pacing", "off")
    prog = bpfsys.load_pass()
    link = bpfsys.tcx_link(prog, socket.if_nametoindex(p.host),
                           bpfsys.TCX_INGRESS, bpfsys.BEFORE)
    p.undo = lambda: [os.close(fd) for fd in (prog, link)]


def clsact_in_front(p):
    p.attach("--attach-mode", "clsact-podside", "--edt-pacing", "off")
    p.inside("tc", "filter", "add", "dev", "eth0", "egress", "pref", "1",
             "protocol", "ip", "u32", "match", "u32", "0", "0", "flowid", "1:1")


def exempt(p):
    p.attach("--unshaped-subnet", "10.99.0.0/16")
    # Nobody listens, so the node answers by ICMP.
    p.inside(sys.executable, "-c", DATAGRAM)


def upstream(p):
    p.upstream()
    p.attach()


def only_upstream(p):
    p.pod("web", RATES, None, False)
    p.upstream()


def dead_redirect(p):
    upstream(p)
    ifb = [l["ifname"] for l in json.loads(run("ip", "-j", "link", "show", "type",
                                               "ifb")) if l]
    run("ip", "link", "del", ifb[0])


def calico(p):
    p.attach()
    run("tc", "qdisc", "add", "dev", p.host, "root", "handle", "1:", "tbf", "rate",
        "10mbit", "burst", "100k", "latency", "25ms")


TBF = "tbf", "rate", "5mbit", "burst", "10k", "latency", "5ms"


def host_qdisc(p):
    p.attach()
    run("tc", "qdisc", "add", "dev", p.host, "root", "handle", "7:", *TBF)


def pod_qdisc(p, words=TBF):
    p.attach("--edt-pacing", "off")
    p.inside("tc", "qdisc", "add", "dev", "eth0", "root", *words)


def pod_qdisc_of_renamed(p):
    """As KubeVirt does it: another interface gets the name, see tests/cni/kubevirt.py."""
    pod_qdisc(p)
    for command in ("set eth0 down", "set eth0 name eth0-nic up",
                    "add eth0 up type veth peer name nobody"):
        p.inside("ip", "link", *command.split())


def big_tcp(p):
    p.inside("ip", "link", "set", "eth0", "gso_max_size", "185000")
    p.attach("--edt-pacing", "off")


def gso(p):
    p.attach("--egress-rate", "100k", "--edt-pacing", "off")
    p.inside("ip", "link", "set", "eth0", "gso_max_segs", "65535")


def second_interface(p):
    """EKS gives a pod of an IPv6 cluster a second interface."""
    p.attach()
    path = next((p.root / "var/lib/cni/results").iterdir())
    p.edit(path, lambda c: c["result"].update(interfaces=[
        {"name": n, "sandbox": str(p.path)} for n in ("lo", "eth0", "v4if0")]))


def unnamed(p):
    """With privileges on the node a process of the pod makes an interface that leads there."""
    p.attach()
    run("ip", "link", "add", "nat0", "type", "veth", "peer", "name", "net7")
    with open(p.path, encoding="ascii") as ns:
        run("ip", "link", "set", "net7", "netns", f"/proc/{os.getpid()}/fd/{ns.fileno()}")
    p.undo = lambda: run("ip", "link", "del", "nat0")


def many_interfaces(p):
    p.attach()
    p.inside("ip", "-batch", "-", input="\n".join(
        f"link add a{n} type veth peer name b{n}" for n in range(600)))


def changed(p):
    p.attach()
    p.tool("set", ID, "--egress-rate", "5M")


def fq_replaced(p):
    p.attach("--edt-pacing", "on")
    p.inside("tc", "qdisc", "replace", "dev", "eth0", "root", "pfifo_fast")


def not_paced(p):
    p.inside("tc", "qdisc", "add", "dev", "eth0", "root", "handle", "9:", "fq_codel")
    p.attach()


def by_process(p):
    """Let a process keep the pod's namespace, and no file."""
    sleeper = subprocess.Popen(["nsenter", f"--net={p.path}", "sleep", "60"])
    path = f"/proc/{sleeper.pid}/ns/net"
    while os.stat(path).st_ino != os.stat(p.path).st_ino:
        time.sleep(0.01)
    for file in (p.path, p.root / "run/netns/web"):
        run("umount", str(file))

    def undo():
        p.path.touch()
        run("mount", "--bind", path, str(p.path))
        sleeper.kill()
        sleeper.wait()
        if os.path.ismount(p.root / "proc"):
            run("umount", str(p.root / "proc"))
    p.undo = undo
    p.path.unlink()
    return path


def packet_socket(p):
    """A process of the pod receives all that arrives; others receive some or send. Ingress
    of a member of a group is judged in the pod alone."""
    p.attach("--attach-mode", "clsact-podside")
    receiver = subprocess.Popen(
        ["nsenter", f"--net={p.path}", sys.executable, "-uc", PACKET_SOCKETS],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    p.undo = receiver.communicate
    receiver.stdout.read(1)
    assert not p.find()
    p.tool("group", "set", "tenant", "--ingress-rate", "1G")
    p.attach("--attach-mode", "clsact-podside", "--group", "tenant")


def lose_netns(p):
    p.attach()
    by_process(p)


def in_proc(p):
    """A runtime may keep no file of a namespace."""
    upstream(p)
    path = by_process(p)
    (p.root / "proc").mkdir()
    run("mount", "--bind", "/proc", str(p.root / "proc"))
    result = next((p.root / "var/lib/cni/results").iterdir())
    result.write_text(result.read_text().replace("/run/netns/web", path))


def without_result(p):
    in_proc(p)
    next((p.root / "var/lib/cni/results").iterdir()).unlink()


DATAGRAM = """
import socket
for _ in range(20):
    s = socket.socket(type=socket.SOCK_DGRAM)
    s.sendto(bytes(100), ("10.99.0.1", 9))
"""
SENDER = """
import socket, sys, time
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 100000)
s.settimeout(5)
s.connect(("10.99.0.1", int(sys.argv[1])))
end = time.monotonic() + 1
sent = 0
# The burst is 625 kB.
while time.monotonic() < end or sent < 2000000:
    sent += s.send(bytes(65536))
"""


# The check that names it; whether the command mends it; what makes it; the pod that
# doctor is asked for.
STATES = (
    ("not-attached", True, lambda p: None),
    ("made-before", True, lambda p: p.pod("web", RATES, None, False)),
    ("made-before", True, only_upstream),
    ("unshaped", False, unshaped),
    ("gone", True, lambda p: p.attach() or run("ip", "link", "del", p.host)),
    ("differs", True, lambda p: p.attach() or remove_pins(p)),
    ("differs", True, lose_program),
    ("other-interface", False, lambda p: p.attach("--edt-pacing", "off") or decoy(p)),
    ("other-interface", False, decoy),
    ("older-build", True, older_build),
    ("other-abi", False, other_abi),
    ("in-front", True, tcx_in_front),
    ("in-front", False, clsact_in_front),
    ("packet-socket", True, packet_socket),
    ("unnamed-interface", False, unnamed),
    ("unnamed-interface", False, many_interfaces),
    ("exempt", False, exempt, "shop/web"),
    ("netns", False, lose_netns),
    ("leftovers", True, upstream),
    ("leftovers", True, in_proc),
    ("leftovers", True, without_result),
    ("dead-redirect", True, dead_redirect),
    ("calico-limits", False, calico),
    ("host-qdisc", True, host_qdisc),
    ("pod-qdisc", True, pod_qdisc),
    ("pod-qdisc", True, pod_qdisc_of_renamed),
    ("big-tcp", True, big_tcp),
    ("gso", True, gso),
    ("changed", True, changed, "shop/web"),
    ("second-interface", False, second_interface),
)
FQ_STATES = (
    ("fq-replaced", True, fq_replaced),
    ("not-paced", True, not_paced),
    ("pod-qdisc", True, lambda p: pod_qdisc(p, ("netem", "duplicate", "100%"))),
)


class States(Case):
    def patient(self, **more):
        patient = Patient(**more)
        self.addCleanup(patient.close)
        return patient

    def states(self, states):
        shown = []
        for check, mends, breaks, *pod in states:
            with self.subTest(check=check, breaks=breaks.__name__):
                shown.append(self.state(check, mends, breaks, pod))
        return shown

    def state(self, check, mends, breaks, pod):
        p = Patient(host="cali-web" if breaks is calico else "veth-web")
        try:
            breaks(p)
            found = p.find(*pod)
            self.assertEqual(list(found), [check], found)
            self.assertNotIn("?", found[check]["text"] + found[check]["mend"])
            shown = p.shown(found[check])
            if mends:
                p.mend(found[check]["mend"])
                self.assertEqual(p.find(*pod), {})
            return shown
        finally:
            p.close()


class Pods(States):
    def test_sound(self):
        p = self.patient()
        p.attach()
        for pod in ((), (ID,), ("shop/web",), ("0123456789ab",), ("012345",), ("web",),
                    (str(p.path),)):
            answer = p.doctor(*pod, bare=False, bpffs=BPFFS)
            self.assertEqual((answer.code, answer.out.count("\n")), (0, 1), answer)
            self.assertTrue(answer.out.startswith("sound: natra "), answer)
            self.assertIn("1 limited", answer.out)
        # The page was made on another kernel.
        other = re.compile("Linux [^,]*|is (paced|policed)")
        self.assertIn(other.sub("", answer.out.strip()), [
            other.sub("", line) for block in page_blocks() for line in block])
        for name in ("db", "01234"):
            self.one_line(p.doctor(name, bare=False, bpffs=BPFFS), f"'{name}'", "hostNetwork")

    def test_exempt_is_said_of_a_pod_that_is_asked_for(self):
        p = self.patient()
        exempt(p)
        self.assertEqual(list(p.find("shop/web")), ["exempt"])
        self.assertEqual(p.find(), {})

    def test_bytes_of_before_the_rate_are_not_exempt(self):
        p = self.patient()
        p.attach()
        p.tool("set", ID, "--egress-rate", "0")
        p.inside(sys.executable, "-c", DATAGRAM)
        stats = json.loads(p.tool("--json", "stats", ID))
        self.assertGreater(stats["egress"]["unlimited"]["bytes"], 0)
        p.tool("set", ID, "--egress-rate", "10M")
        found = p.find("shop/web")
        self.assertNotIn("exempt", found)

    def test_no_bpffs(self):
        p = self.patient()
        found = p.findings(bare=False)
        self.assertIn("bpffs", found)
        self.assertEqual(found["bpffs"]["mend"],
                         f"mount -t bpf bpf {p.root / 'bpf'}")

    def test_interfaces_that_results_name(self):
        """Multus' are named by results of their own, by their other end or their MAC."""
        p = self.patient()
        unnamed(p)
        self.assertIn("'net7' (veth)", p.find()["unnamed-interface"]["text"])
        self.assertIn("'nat0' of the node", p.find()["unnamed-interface"]["text"])
        mac = json.loads(p.inside("ip", "-j", "link", "show", "net7"))[0]["address"]
        path = next((p.root / "var/lib/cni/results").iterdir())
        other = p.root / "var/lib/cni/multus/results" / path.name.replace("eth0", "net7")
        other.parent.mkdir(parents=True)
        other.write_text(path.read_text().replace('"eth0"', '"net7"'))
        own = {"name": "net7", "sandbox": str(p.path)}
        for interfaces, is_named in (([], True), ([own], True), ([{"name": "nat0"}, own], True),
                                     ([{**own, "mac": mac}], True),
                                     ([{**own, "mac": "02:00:00:00:00:07"}], False),
                                     ([{"name": p.host}, own], False)):
            p.edit(other, lambda c, i=interfaces: c["result"].update(interfaces=i))
            self.assertEqual("unnamed-interface" in p.find(), not is_named, interfaces)

    def groups(self, p):
        return {g["name"]: (g["ingress_rate_bits_per_sec"],
                            g["egress_rate_bits_per_sec"], g["members"])
                for g in json.loads(p.tool("--json", "group", "show"))}

    def test_groups(self):
        """Doctor makes no group and changes none, and its commands name them."""
        p = self.patient()
        p.pod("web", RATES, None, {"group": {
            "name": "{namespace}", "ingressRate": "1G", "egressRate": "2G"}})
        mend = p.find()["not-attached"]["mend"]
        self.assertEqual(self.groups(p), {})
        p.mend(mend)
        self.assertEqual(self.groups(p), {"shop": (10**9, 2 * 10**9, 1)})
        self.assertEqual(p.find(), {})
        remove_pins(p)
        mend = p.find()["differs"]["mend"]
        self.assertEqual(re.findall(r"--group (\S+) --group-limits (\S+)", mend),
                         [("shop", "ingress-rate=1000000000,egress-rate=2000000000")])
        p.mend(mend)
        self.assertEqual(self.groups(p), {"shop": (10**9, 2 * 10**9, 1)})
        p.tool("detach", ID)
        self.assertEqual(self.groups(p), {})

    def test_states(self):
        shown = self.states(STATES)
        page = [b for b in page_blocks() if b[0].startswith("shop/web: ") and
                "annotation" not in b[0]]
        self.assertGreater(len(page), 2)
        for block in page:
            self.assertIn(block, shown)

    def test_throttled(self):
        """The page's example: a pod that sends as much as it can for a second."""
        p = self.patient()
        p.attach("--sli", "on")
        sink = socket.create_server(("10.99.0.1", 0))
        self.addCleanup(sink.close)
        sender = subprocess.Popen([
            "nsenter", f"--net={p.path}", sys.executable, "-c", SENDER,
            str(sink.getsockname()[1])])
        stream = sink.accept()[0]
        while stream.recv(1 << 20):
            pass
        stream.close()
        self.assertEqual(sender.wait(timeout=20), 0)
        text = p.tool("stats", ID)
        egress = json.loads(p.tool("--json", "stats", ID))["egress"]
        held = sum(egress[c]["packets"] for c in (
            "paced", "marked", "dropped_rate", "dropped_horizon"))
        self.assertGreater(held, 0, text)
        # A limit that does its work is nothing wrong.
        self.assertEqual(p.find("shop/web"), {})
        events = p.tool("events", "shop/web")
        self.assertRegex(events, r"Z  egress +heavy +tcp +[\d.:]+ +10\.99\.0\.1:\d+ +"
                         r"- +shop/web\n")
        print(text, events, sep="\n", file=sys.stderr)
        with open(PAGE, encoding="utf-8") as f:
            page = re.findall(r"^    ( {2,}\S+)", f.read(), re.M)
        labels = re.findall(r"^( {2,}\S+)", text[text.index("  egress\n"):], re.M)
        self.assertEqual(labels, page)

    def test_states_of_fq(self):
        if not has_fq():
            self.skipTest("this kernel has no fq")
        self.states(FQ_STATES)


if __name__ == "__main__":
    isolate()
    run("ip", "link", "set", "lo", "up")
    unittest.main()
