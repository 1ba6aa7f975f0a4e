# SPDX-License-Identifier: BSD-2-Clause
"""An API server with two nodes, for the real kubectl and stub_kubectl.py: an agent on each, of
which the second is not ready, and the pods of fake_natra.c on the first. There is another agent
on the first, which is not ready yet, as in a rollout, and there are pods that look like agents.
What is executed in an agent's container runs here. It speaks as much as `kubectl get`, `logs`,
`describe` and `exec` need."""
import base64
import hashlib
import http.server
import json
import os
import struct
import subprocess
import threading
import time
import urllib.parse

MAGIC = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"      # of RFC 6455
PROTOCOL = "v5.channel.k8s.io"
STDOUT, STDERR, STATUS = 1, 2, 3


def pod(namespace, name, node, ready="True", labels=None, args=(), owner=None):
    spec = {"containers": [{"name": "agent", "image": "natra", "args": list(args)}]}
    if node:
        spec["nodeName"] = node
    return {"apiVersion": "v1", "kind": "Pod", "spec": spec,
            "metadata": {"name": name, "namespace": namespace, "labels": labels or {},
                         "uid": name, "creationTimestamp": "2026-01-01T00:00:00Z",
                         "ownerReferences": owner or []},
            "status": {"phase": "Running", "conditions": [
                {"type": "Ready", "status": ready,
                 "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}


def agents(root):
    labels = {"app.kubernetes.io/name": "natra"}
    args = ["--platform=default", f"--root={root}", "--listen=127.0.0.1:9810"]
    owner = [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "natra-agent", "uid": "d",
              "controller": True}]
    return [*(pod("kube-system", f"natra-agent-{n}", f"node-{max(n, 1)}", ready,
                  labels, args, owner)
              for n, ready in ((0, "False"), (1, "True"), (2, "False"))),
            pod("attic", "a-tenant", "node-1", labels=labels, owner=owner),
            pod("kube-system", "a-trial", "node-1", labels=labels)]


class Cluster:
    def __init__(self, natractl, root):
        self.pods = [*agents(root), pod("shop", "web", "node-1"),
                     pod("shop", "a--b", "node-1"), pod("shop", "late", None)]
        self.natractl = natractl
        self.executed = []
        self.asked = set()          # the pods whose log or objects were read, or executed in
        self.terminals = []         # for each of them whether it was asked for a terminal
        self.hangs = set()          # the agents in which nothing that is executed ends
        self.noise = ""             # what containers print besides
        self.refuses = False        # to list pods
        cluster = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_GET(self):
                cluster.answer(self)

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def kubeconfig(self):
        return json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": {
                "server": f"http://127.0.0.1:{self.server.server_port}"}}],
            "users": [{"name": "u", "user": {"token": "the-secret-token"}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}]})

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def answer(self, request):
        url = urllib.parse.urlparse(request.path)
        query = urllib.parse.parse_qs(url.query)
        parts = url.path.strip("/").split("/")
        if len(parts) > 5 and parts[4] == "pods":
            self.asked.add(f"{parts[3]}/{parts[5]}")
        if parts[-1] == "exec" and parts[5] in self.hangs:
            time.sleep(60)
        elif parts[-1] == "exec":
            self.execute(request, query["command"], query.get("tty") == ["true"])
        else:
            self.send(request, *self.find(parts, query))

    def send(self, request, code, body):
        text = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        request.send_response(code)
        request.send_header("Content-Type",
                            "text/plain" if isinstance(body, str) else "application/json")
        request.send_header("Content-Length", str(len(text)))
        request.end_headers()
        request.wfile.write(text)

    def find(self, parts, query):
        """Return the status and the object, or the text, at a path."""
        if parts == ["api"]:
            return 200, {"kind": "APIVersions", "versions": ["v1"]}
        if parts == ["apis"]:
            return 200, {"kind": "APIGroupList", "apiVersion": "v1", "groups": []}
        if parts == ["version"]:
            return 200, {"major": "1", "minor": "34", "gitVersion": "v1.34.2"}
        if parts == ["api", "v1"]:
            return 200, {"kind": "APIResourceList", "groupVersion": "v1", "resources": [
                {"name": "pods", "singularName": "pod", "namespaced": True, "kind": "Pod",
                 "verbs": ["get", "list"]}]}
        if len(parts) == 4 and parts[2] == "namespaces":
            return 200, {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": parts[3]}}
        if parts[-1] == "events":
            return 200, {"kind": "EventList", "apiVersion": "v1", "metadata": {}, "items": []}
        if parts[-1] == "pods":
            if self.refuses:
                return 403, {"kind": "Status", "apiVersion": "v1", "status": "Failure",
                             "code": 403, "reason": "Forbidden", "message": "pods is forbidden"}
            selector = query.get("labelSelector", ["="])[0].split("=")
            namespace = parts[3] if len(parts) > 3 else None
            return 200, {"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": [
                p for p in self.pods
                if p["metadata"]["labels"].get(selector[0], "") == selector[1]
                and namespace in (None, p["metadata"]["namespace"])]}
        if parts[-1] == "log":
            if "previous" in query:
                return 400, {"kind": "Status", "apiVersion": "v1", "status": "Failure",
                             "message": "previous terminated container not found",
                             "reason": "BadRequest", "code": 400}
            return 200, f"{self.noise}the log of {parts[-2]}\n"
        for p in self.pods:
            if parts[:4] == ["api", "v1", "namespaces", p["metadata"]["namespace"]] and \
                    parts[4:] == ["pods", p["metadata"]["name"]]:
                return 200, p
        return 404, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 404,
                     "reason": "NotFound", "message": f'pods "{parts[-1]}" not found'}

    def execute(self, request, command, has_tty):
        self.executed.append(command)
        self.terminals.append(has_tty)
        p = subprocess.run([self.natractl, *command[1:]], stdin=subprocess.DEVNULL,
                           capture_output=True, timeout=30, env=os.environ)
        noise = self.noise.encode()
        if has_tty:     # It has one place for both, and ends its lines so.
            p.stdout = (noise + p.stdout + p.stderr).replace(b"\n", b"\r\n")
            p.stderr = noise = b""
        if "Upgrade" not in request.headers:
            self.send(request, 200, {"out": (noise + p.stdout).decode("latin-1"),
                                     "err": (noise + p.stderr).decode(), "code": p.returncode})
            return
        accept = hashlib.sha1((request.headers["Sec-WebSocket-Key"] + MAGIC).encode()).digest()
        request.send_response(101)
        for header in (("Upgrade", "websocket"), ("Connection", "Upgrade"),
                       ("Sec-WebSocket-Accept", base64.b64encode(accept).decode()),
                       ("Sec-WebSocket-Protocol", PROTOCOL)):
            request.send_header(*header)
        request.end_headers()
        status = {"metadata": {}, "status": "Success"}
        if p.returncode:
            status = {"metadata": {}, "status": "Failure", "reason": "NonZeroExitCode",
                      "message": f"command terminated with exit code {p.returncode}",
                      "details": {"causes": [{"reason": "ExitCode",
                                              "message": str(p.returncode)}]}}
        for channel, data in ((STDOUT, noise + p.stdout), (STDERR, noise + p.stderr),
                              (STATUS, json.dumps(status).encode())):
            if data:
                self.send_frame(request, 0x82, bytes([channel]) + data)
        self.send_frame(request, 0x88, struct.pack("!H", 1000))
        request.close_connection = True

    def send_frame(self, request, head, data):
        size = struct.pack("!BB", head, len(data)) if len(data) < 126 else \
            struct.pack("!BBQ", head, 127, len(data))
        request.wfile.write(size + data)
        request.wfile.flush()
