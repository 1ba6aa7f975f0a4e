# SPDX-License-Identifier: BSD-2-Clause
"""A node in namespaces of its own, and on it the container of the DaemonSet.

The node's root directory is made up; its programs and libraries are this machine's. The
container has the manifest's mounts and capabilities, and the image's files, but neither
cgroup nor seccomp filter, as there is no runtime: tests/kube has all of that.
"""
import base64
import ctypes
import encodings.idna  # the socket module wants it when the root is another one
import json
import os
import signal
import subprocess
import time
import urllib.error
import urllib.request

LIBC = ctypes.CDLL(None, use_errno=True)
PR_CAPBSET_DROP, MS_REC, MS_SLAVE, CLONE_NEWNS = 24, 0x4000, 1 << 19, 0x20000
CAPABILITIES = (
    "CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID SETPCAP "
    "LINUX_IMMUTABLE NET_BIND_SERVICE NET_BROADCAST NET_ADMIN NET_RAW IPC_LOCK IPC_OWNER "
    "SYS_MODULE SYS_RAWIO SYS_CHROOT SYS_PTRACE SYS_PACCT SYS_ADMIN SYS_BOOT SYS_NICE "
    "SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG MKNOD LEASE AUDIT_WRITE AUDIT_CONTROL SETFCAP "
    "MAC_OVERRIDE MAC_ADMIN SYSLOG WAKE_ALARM BLOCK_SUSPEND AUDIT_READ PERFMON BPF "
    "CHECKPOINT_RESTORE").split()
# Some installers of Kubernetes give the runtime's directories to such a user.
OTHER = 1000
READY = "http://127.0.0.1:9810/readyz"
LIST = {"cniVersion": "1.0.0", "name": "pods", "plugins": [
    {"type": "ptp", "ipam": {"type": "host-local"}}]}
RUNTIME = "#!/bin/sh\necho containerd github.com/containerd/containerd/v2 v2.4.2 0\n"


def sh(*argv):
    p = subprocess.run(argv, text=True, capture_output=True, timeout=30)
    if p.returncode:
        raise AssertionError(f"{argv}: {p.stderr}")
    return p.stdout


def write(path, text, mode=0o644):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as f:
        f.write(text)
    os.chmod(path, mode)


def make_root(root):
    """Make a node's root directory below `root`."""
    sh("mount", "-t", "tmpfs", "tmpfs", root)
    for name in ("usr", "dev", "proc", "sys"):
        os.makedirs(f"{root}/{name}")
        sh("mount", "--rbind", f"/{name}", f"{root}/{name}")
    for name in ("bin", "sbin", "lib", "lib64"):
        os.symlink(f"usr/{name}", f"{root}/{name}")
    for name in ("etc", "opt/cni/bin", "run/netns", "var/lib/cni/results", "var/log",
                 "container", "image", "tmp"):
        os.makedirs(f"{root}/{name}")
    os.symlink("../run", f"{root}/var/run")
    write(f"{root}/opt/cni/bin/ptp", "", 0o755)
    write(f"{root}/opt/bin/containerd", RUNTIME, 0o755)
    write(f"{root}/etc/cni/net.d/10-pods.conflist", json.dumps(LIST))
    for name in ("etc/cni/net.d", "opt/cni/bin"):
        os.chown(f"{root}/{name}", OTHER, OTHER)
    sh("mount", "-t", "bpf", "bpf", f"{root}/sys/fs/bpf")


def write_result(netns, rate):
    """Write what libcni keeps of a pod that was made without natra."""
    write(f"/var/lib/cni/results/pods-{netns}-eth0", json.dumps({
        "kind": "cniCacheV1", "containerId": netns, "ifName": "eth0",
        "networkName": "pods", "netns": f"/var/run/netns/{netns}",
        "config": base64.b64encode(json.dumps(LIST).encode()).decode(),
        "capabilityArgs": {
            "bandwidth": {"ingressRate": rate, "egressRate": rate},
            "io.kubernetes.cri.pod-annotations": {
                "kubernetes.io/ingress-bandwidth": str(rate),
                "kubernetes.io/egress-bandwidth": str(rate)}},
        "result": {"cniVersion": "1.0.0", "interfaces": []}}))


def start_pod(name=None):
    """Start a process that is not root's in a network namespace with an interface that
    leads to the node; with a name the namespace is one that ip netns knows."""
    p = subprocess.Popen(
        ["unshare", "--net", "sh", "-c",
         "ip link add eth0 type veth peer name to$$ netns 1 && ip link set eth0 up &&"
         f" exec setpriv --reuid={OTHER} --clear-groups sleep 300"],
        stdin=subprocess.DEVNULL)
    path = f"/proc/{p.pid}/ns/net"
    end = time.monotonic() + 10
    while open(f"/proc/{p.pid}/comm").read() != "sleep\n":
        assert time.monotonic() < end, "the pod does not start"
        time.sleep(0.02)
    if name:
        open(f"/run/netns/{name}", "x").close()
        sh("mount", "--bind", path, f"/run/netns/{name}")
    return p


def mount(volume, to, read_only):
    sh("mount", "--rbind", volume, to)
    if LIBC.mount(None, to.encode(), None, MS_REC | MS_SLAVE, None):
        raise OSError(ctypes.get_errno(), to)
    if read_only:
        sh("mount", "-o", "remount,bind,ro", to)


def enter(pod_spec, container, capabilities):
    """Become the container, in a child process: its mounts, root and capabilities."""
    LIBC.unshare(CLONE_NEWNS)
    root = "/container"
    sh("mount", "--make-rslave", "/")
    sh("mount", "--bind", "/image", root)
    for name in ("proc", "sys", "dev"):
        sh("mount", "--rbind", f"/{name}", f"{root}/{name}")
    paths = {v["name"]: v["hostPath"]["path"] for v in pod_spec["volumes"]}
    for v in pod_spec["volumes"]:
        if v["hostPath"]["type"] == "DirectoryOrCreate":
            os.makedirs(v["hostPath"]["path"], exist_ok=True)
    # A runtime mounts what is nested last.
    for m in sorted(container["volumeMounts"], key=lambda m: m["mountPath"].count("/")):
        mount(paths[m["name"]], root + m["mountPath"], m.get("readOnly"))
    sh("mount", "-o", "remount,bind,ro", root)
    os.chroot(root)
    os.chdir("/")
    for number, name in enumerate(CAPABILITIES):
        if name not in capabilities and LIBC.prctl(PR_CAPBSET_DROP, number, 0, 0, 0):
            raise OSError(ctypes.get_errno(), name)


def start(pod_spec, capabilities, args, log, program="/bin/natra-agent", to=2):
    """Start a program in the agent's container; the log gets its descriptor `to`."""
    container = pod_spec["containers"][0]
    pid = os.fork()
    if pid:
        return pid
    try:
        out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        enter(pod_spec, container, capabilities)
        os.dup2(out, to)
        os.execve(program, [program, *args], {})
    except BaseException as e:
        print(f"container: {e}", flush=True)
    os._exit(1)


def readyz():
    try:
        with urllib.request.urlopen(READY, timeout=2) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as e:
        return e.code, e.read().decode()
    except OSError as e:
        return 0, str(e)


def stop(pid):
    os.kill(pid, signal.SIGTERM)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
