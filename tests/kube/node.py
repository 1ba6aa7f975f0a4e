# SPDX-License-Identifier: BSD-2-Clause
"""Starts a Kubernetes node: etcd, the API server, containerd and the kubelet.

There is no scheduler and no controller manager: pods name their node, and what the
controllers would make (a service account's certificate, a DaemonSet's pod) the tests
make.
"""
import json
import os
import secrets
import shutil
import subprocess
import time

from api import Api, Refused
from commands import sh
from image import PAUSE, write_pause
from namespaces import Ns
from report import skip

NAME = "node"
NETWORK = "kube"
IP = "10.77.1.1"
API_PORT = 6443
# What pods of the node's network take for the API server. There is no kube-proxy, so
# a rule of nftables sends it on.
SERVICE_IP = "10.96.0.1"
SERVICES = "10.96.0.0/16"
PODS = "10.88.0.0/16"
NET_DIR, BIN_DIR = "/etc/cni/net.d", "/opt/cni/bin"
STATIC_PODS = "/etc/kubernetes/manifests"
RUNTIMES = ("2.4", "1.6")
SOCKET = "/run/containerd/containerd.sock"
WORK = "/run/kube"
SLOWER = 6                      # what an emulated CPU is at least
DEBIAN_CNI = "/usr/lib/cni"
NEWEST_CNI = os.environ.get("NATRA_CNI_NEWEST", "/usr/local/lib/natra-tests/cni")
NFT = f"""table ip kube {{
 chain out {{
  type nat hook output priority -100
  ip daddr {SERVICE_IP} tcp dport 443 dnat to {IP}:{API_PORT}
 }}
}}
"""


def binaries():
    """Return the directory that tests/kube/build has filled; skip without one."""
    here = os.path.dirname(os.path.abspath(__file__))
    p = subprocess.run([f"{here}/build"], text=True, stdout=subprocess.PIPE)
    if p.returncode:
        skip("kubelet and kube-apiserver (tests/kube/build says why)")
    for name in ("etcd", "runc", "containerd", "nft", "openssl"):
        if not shutil.which(name):
            skip(f"{name} (tools/install-deps kube)")
    return p.stdout.strip()


def wait(true, what, seconds=60, pause=0.05):
    """Wait until true() returns something, and return it. In a VM it may take several times as
    long."""
    seconds *= SLOWER if "NATRA_VM" in os.environ else 1
    end = time.monotonic() + seconds
    while True:
        found = true()
        if found:
            return found
        if time.monotonic() > end:
            raise RuntimeError(f"not in {seconds} s: "
                               f"{what() if callable(what) else what}")
        time.sleep(pause)


class Program:
    """A process that runs until it is told to stop."""

    def __init__(self, name, *argv):
        self.name = name
        self.log = f"/var/log/{name}.log"
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                    argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def running(self):
        if self.process.poll() is not None:
            raise RuntimeError(f"{self.name} ended: {self.tail()}")
        return True

    def tail(self, count=15):
        with open(self.log, errors="replace") as f:
            return "".join(f.readlines()[-count:])

    def stop(self, seconds=15):
        self.process.terminate()
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def bandwidth():
    return {"type": "bandwidth", "capabilities": {"bandwidth": True}}


def write_network(*more):
    """Write the network's list: ptp, which routes, and more plugins."""
    ptp = {"type": "ptp", "mtu": 1500, "ipam": {
        "type": "host-local", "ranges": [[{"subnet": PODS}]],
        "routes": [{"dst": "0.0.0.0/0"}]}}
    text = json.dumps({"cniVersion": "1.0.0", "name": NETWORK,
                       "plugins": [ptp, *more]}, indent=2)
    path = f"{NET_DIR}/10-{NETWORK}.conflist"
    with open(path + ".new", "w") as f:
        f.write(text)
    os.rename(path + ".new", path)
    # containerd does not notice that a file was renamed, but that one was written.
    write(f"{NET_DIR}/.scratch", "x")
    os.unlink(f"{NET_DIR}/.scratch")
    return path


def write(path, text, mode=0o600):
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    with os.fdopen(fd, "w") as f:
        f.write(text)
    return path


CONTAINERD_2 = """version = 3
[plugins.'io.containerd.cri.v1.images'.pinned_images]
sandbox = '{image}'
[plugins.'io.containerd.cri.v1.runtime']
restrict_oom_score_adj = true
disable_apparmor = true
[plugins.'io.containerd.cri.v1.runtime'.cni]
bin_dirs = ['{bin}']
conf_dir = '{net}'
"""
CONTAINERD_1 = """version = 2
[plugins.'io.containerd.grpc.v1.cri']
sandbox_image = '{image}'
restrict_oom_score_adj = true
disable_apparmor = true
[plugins.'io.containerd.grpc.v1.cri'.cni]
bin_dir = '{bin}'
conf_dir = '{net}'
"""


def kubelet_configuration():
    return {
        "kind": "KubeletConfiguration",
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        # The API server comes without a certificate, for `kubectl exec`.
        "authentication": {"anonymous": {"enabled": True},
                           "webhook": {"enabled": False}},
        "authorization": {"mode": "AlwaysAllow"},
        "address": IP,
        "containerRuntimeEndpoint": f"unix://{SOCKET}",
        "cgroupDriver": "cgroupfs", "cgroupsPerQOS": False,
        "enforceNodeAllocatable": [], "failSwapOn": False, "failCgroupV1": False,
        "localStorageCapacityIsolation": False, "oomScoreAdj": 0,
        # There may be no /dev/kmsg and no CAP_SYS_RESOURCE.
        "featureGates": {"KubeletInUserNamespace": True},
        "podLogsDir": "/var/log/pods",
        "staticPodPath": STATIC_PODS,
        "evictionHard": {"memory.available": "0%", "nodefs.available": "0%",
                         "imagefs.available": "0%", "nodefs.inodesFree": "0%"},
        "imageGCHighThresholdPercent": 100,
        "eventRecordQPS": 0,
    }


class Node:
    """The node. Its namespaces are those of the process, see place.py. If a boot has left one here,
    nothing is started, and what is on its disk stays."""

    def __init__(self, bin_dir, runtime=RUNTIMES[0]):
        self.bin, self.runtime = bin_dir, runtime
        self.net = Ns()
        self.programs = {}
        self.kubeconfig, self.tokens = f"{WORK}/kubeconfig", f"{WORK}/tokens.csv"
        self.key = f"{WORK}/account.key"
        self.is_old = os.path.exists(self.tokens)
        self._network()
        if self.is_old:
            with open(self.tokens) as f:
                self.token = f.readline().split(",")[0]
            self.api = self.connect()
            return
        os.makedirs(WORK, exist_ok=True)
        self._fill_directories()
        self._tokens()
        self.api = self.connect()
        self.start_etcd()
        self.start_api()
        self._accounts()

    def _network(self):
        sh("ip", "link", "set", "lo", "up")
        # There may be no dummy devices; nothing is at the other end.
        sh("ip", "link", "add", "node0", "type", "veth", "peer", "name", "node1")
        sh("ip", "link", "set", "node1", "up")
        sh("ip", "addr", "add", f"{IP}/24", "dev", "node0")
        sh("ip", "link", "set", "node0", "up")
        # The kubelet and the API server look for one.
        sh("ip", "route", "add", "default", "via", "10.77.1.254")
        sh("nft", "-f", "-", input=NFT)

    @staticmethod
    def _fill_directories():
        for path in (NET_DIR, BIN_DIR, STATIC_PODS):
            os.makedirs(path, exist_ok=True)
        for path in os.listdir(BIN_DIR):
            os.unlink(f"{BIN_DIR}/{path}")
        for source in (DEBIAN_CNI, NEWEST_CNI):
            for name in ("ptp", "host-local", "loopback", "bandwidth"):
                if os.path.exists(f"{source}/{name}"):
                    shutil.copy(f"{source}/{name}", BIN_DIR)

    def _tokens(self):
        self.token, kubelet = secrets.token_hex(16), secrets.token_hex(16)
        write(self.tokens, f"{self.token},admin,admin,system:masters\n"
              f"{kubelet},system:node:{NAME},kubelet,system:nodes\n")
        sh("openssl", "genrsa", "-out", self.key, "2048")
        write(self.kubeconfig, json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "it",
            "clusters": [{"name": "it", "cluster": {
                "server": f"https://{IP}:{API_PORT}",
                "certificate-authority": f"{WORK}/tls/apiserver.crt"}}],
            "users": [{"name": "it", "user": {"token": kubelet}}],
            "contexts": [{"name": "it", "context": {"cluster": "it",
                                                     "user": "it"}}]}))

    def admin_kubeconfig(self, name):
        """Write the kubeconfig of the administrator for a program, and return its path."""
        with open(self.kubeconfig) as f:
            conf = json.load(f)
        conf["users"][0]["user"]["token"] = self.token
        return write(f"{WORK}/{name}.kubeconfig", json.dumps(conf))

    def _start(self, name, *argv):
        self.programs[name] = Program(name, *argv)
        return self.programs[name]

    def start_etcd(self):
        os.chmod("/var/lib/etcd", 0o700)
        self._start("etcd", "etcd", "--data-dir=/var/lib/etcd",
                    "--listen-client-urls=http://127.0.0.1:2379",
                    "--advertise-client-urls=http://127.0.0.1:2379",
                    "--listen-peer-urls=http://127.0.0.1:2380", "--logger=zap")

    def start_api(self):
        program = self._start(
                "kube-apiserver", f"{self.bin}/kube-apiserver",
                "--etcd-servers=http://127.0.0.1:2379",
                f"--service-account-key-file={self.key}",
                f"--service-account-signing-key-file={self.key}",
                "--service-account-issuer=https://kubernetes.default.svc",
                "--authorization-mode=Node,RBAC",
                "--enable-admission-plugins=NodeRestriction",
                "--allow-privileged=true", "--profiling=false",
                # For logs and exec; nothing here knows the node's name.
                "--kubelet-preferred-address-types=InternalIP",
                # With the first one a watch needs a newer etcd than Debian's, and with the second
                # one the server asks that for all keys over and over again.
                "--feature-gates=WatchList=false,SizeBasedListCostEstimate=false",
                f"--token-auth-file={self.tokens}", f"--bind-address={IP}",
                f"--advertise-address={IP}", f"--secure-port={API_PORT}",
                f"--cert-dir={WORK}/tls", f"--service-cluster-ip-range={SERVICES}")

        def ready():
            program.running()
            try:
                return self.api.ask("GET", "/readyz") == "ok"
            except (OSError, Refused):
                return False
        wait(ready, lambda: f"API server: {program.tail()}", 120)

    def connect(self):
        return Api(IP, API_PORT, self.token)

    def stop_api(self):
        self.programs["kube-apiserver"].stop(60)

    def _accounts(self):
        for space in ("default", "kube-system"):
            self.add_namespace(space)

    def add_namespace(self, name, thing=None):
        """Make a namespace if it is not there, and in it what the controller manager
        would."""
        with open(f"{WORK}/tls/apiserver.crt") as f:
            certificate = f.read()
        try:
            self.api.create("/api/v1/namespaces",
                            thing or {"metadata": {"name": name}})
        except Refused as e:
            if e.status != 409:
                raise
        path = f"/api/v1/namespaces/{name}"
        self.api.create(f"{path}/configmaps", {
            "metadata": {"name": "kube-root-ca.crt"},
            "data": {"ca.crt": certificate}})
        self.api.create(f"{path}/serviceaccounts", {"metadata": {"name": "default"}})

    def begin(self):
        """Start containerd and the kubelet, and wait until the API server knows the node."""
        self.start_containerd()
        write_pause(f"{WORK}/pause.tar")
        self.load_image(f"{WORK}/pause.tar")
        self.start_kubelet()
        wait(self.known, lambda: f"node: {self.programs['kubelet'].tail()}", 90)

    def start(self):
        """Do that, and wait until the node is ready."""
        self.begin()
        wait(self.ready, lambda: f"node: {self.programs['kubelet'].tail()}", 90)

    def start_containerd(self):
        old = self.runtime == "1.6"
        conf = (CONTAINERD_1 if old else CONTAINERD_2).format(
                image=PAUSE, bin=BIN_DIR, net=NET_DIR)
        # natra reads the runtime's own configuration, and that of the machine is another.
        os.makedirs("/etc/containerd", exist_ok=True)
        path = write("/etc/containerd/config.toml", conf)
        if not old:
            # natra asks the containerd in PATH for its version.
            for name in ("containerd", "containerd-shim-runc-v2", "ctr"):
                sh("mount", "--bind", f"{self.bin}/{name}", f"/usr/bin/{name}")
        program = self._start("containerd", "/usr/bin/containerd", "--config", path)

        def answers():
            program.running()
            return not subprocess.run(
                    ["ctr", "version"], stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL).returncode
        wait(answers, lambda: f"containerd: {program.tail()}")

    def ctr(self, *args, **kw):
        return sh("ctr", "-n", "k8s.io", *args, **kw)

    def load_image(self, path):
        return self.ctr("images", "import", path, timeout=60)

    def start_kubelet(self):
        conf = write(f"{WORK}/kubelet.json", json.dumps(kubelet_configuration()))
        self._start("kubelet", f"{self.bin}/kubelet", f"--config={conf}",
                    f"--kubeconfig={self.kubeconfig}", f"--hostname-override={NAME}",
                    f"--node-ip={IP}", f"--cert-dir={WORK}/kubelet-tls",
                    "--root-dir=/var/lib/kubelet", "--v=2")

    def known(self):
        """Return what the API server has of the node, or None."""
        for program in self.programs.values():
            program.running()
        try:
            return self.api.get(f"/api/v1/nodes/{NAME}")
        except (Refused, OSError):
            return None

    def ready(self):
        node = self.known() or {}
        return any(c["type"] == "Ready" and c["status"] == "True"
                   for c in node.get("status", {}).get("conditions", ()))

    def versions(self):
        """Return the versions of what runs here, in one line."""
        info = self.api.get(f"/api/v1/nodes/{NAME}")["status"]["nodeInfo"]
        etcd = sh("etcd", "--version").split("\n")[0].split()[-1]
        runc = sh("runc", "--version").split("\n")[0].split()[-1]
        return (f"Linux {info['kernelVersion']}, kubelet {info['kubeletVersion']}, "
                f"{info['containerRuntimeVersion']}, runc {runc}, etcd {etcd}")

    def stop(self):
        """Stop what was started, the last first."""
        for name in ("kubelet", "containerd", "kube-apiserver", "etcd"):
            if name in self.programs:
                self.programs[name].stop()

    def logs(self):
        """Return the ends of all logs, for a test that has failed."""
        return "\n".join(f"--- {name}\n{program.tail()}"
                         for name, program in self.programs.items())
