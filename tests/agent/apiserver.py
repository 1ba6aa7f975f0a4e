# SPDX-License-Identifier: BSD-2-Clause
"""An API server that knows pods, watches of them, and Events; it can be told to
misbehave. With certificates it speaks TLS."""
import json
import queue
import ssl
import threading
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class ApiServer:
    """`behave` is called with the handler for each watch before anything is answered;
    if it returns true, it has answered."""

    def __init__(self, certificate=None, token="secret", port=0):
        self.pods, self.version = {}, 100
        self.oldest = 0
        # The next watch is cut when it has sent this many pods.
        self.cut_after = None
        self.watches, self.watchers, self.events = [], [], []
        self.token, self.behave = token, None
        self.headers, self.refused_posts = [], 0
        self.lock = threading.Lock()
        api = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_GET(self):
                api.get(self)

            def do_POST(self):
                api.post(self)

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            allow_reuse_address = True

            def handle_error(self, *_):
                pass

        self.server = Server(("127.0.0.1", port), Handler)
        self.port = self.server.server_port
        scheme = "http"
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)
            self.server.socket = context.wrap_socket(self.server.socket,
                                                     server_side=True)
            scheme = "https"
        self.url = f"{scheme}://127.0.0.1:{self.port}"
        threading.Thread(target=self.server.serve_forever, daemon=True,
                         kwargs={"poll_interval": 0.05}).start()

    def close(self):
        self.cut()
        self.server.shutdown()
        self.server.server_close()

    # These methods do what the cluster does.

    def put(self, name, annotations=None, **more):
        """Create or change a pod."""
        with self.lock:
            self.version += 1
            kind = "MODIFIED" if name in self.pods else "ADDED"
            self.pods[name] = {"kind": "PartialObjectMetadata", "metadata": {
                "name": f"pod-{name}", "namespace": "shop", "uid": f"uid-{name}",
                "resourceVersion": str(self.version),
                "annotations": annotations, **more}}
            self.tell(kind, self.pods[name])

    def delete(self, name):
        with self.lock:
            self.version += 1
            pod = self.pods.pop(name)
            pod["metadata"]["resourceVersion"] = str(self.version)
            self.tell("DELETED", pod)

    def bookmark(self):
        with self.lock:
            self.version += 1
            self.tell("BOOKMARK", {"metadata": {
                "resourceVersion": str(self.version)}})

    def tell(self, kind, thing):
        self.raw(json.dumps({"type": kind, "object": thing}) + "\n")

    def raw(self, text):
        for q in self.watchers:
            q.put(text if isinstance(text, bytes) else text.encode())

    def cut(self):
        """End all watches without an end of the body."""
        for q in list(self.watchers):
            q.put(None)

    # These methods answer requests.

    def answer(self, h, status, body=b"", headers=()):
        h.send_response(status)
        h.send_header("Content-Length", str(len(body)))
        for name, value in headers:
            h.send_header(name, value)
        h.end_headers()
        h.wfile.write(body)

    def is_allowed(self, h):
        self.headers.append(dict(h.headers))
        if h.headers["Authorization"] == f"Bearer {self.token}":
            return True
        self.answer(h, 401)
        return False

    def get(self, h):
        url = urllib.parse.urlsplit(h.path)
        args = dict(urllib.parse.parse_qsl(url.query))
        with self.lock:
            self.watches.append(dict(args, path=url.path))
        if self.behave and self.behave(h):
            return
        if not self.is_allowed(h):
            return
        if 0 < int(args["resourceVersion"]) < self.oldest:
            self.answer(h, 410)
            return
        self.stream(h, int(args["resourceVersion"]))

    def stream(self, h, version):
        q = queue.Queue()
        h.send_response(200)
        h.send_header("Transfer-Encoding", "chunked")
        h.end_headers()
        h.close_connection = True
        with self.lock:
            # In the order of their names, as the API server sends them.
            for name in sorted(self.pods)[:self.cut_after]:
                pod = self.pods[name]
                if int(pod["metadata"]["resourceVersion"]) > version:
                    q.put((json.dumps({"type": "ADDED", "object": pod}) + "\n"
                           ).encode())
            if self.cut_after is not None:
                q.put(None)
            self.cut_after = None
            self.watchers.append(q)
        try:
            h.wfile.flush()
            while (data := q.get()) is not None:
                h.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
                h.wfile.flush()
        except OSError:
            pass
        self.watchers.remove(q)

    def post(self, h):
        body = h.rfile.read(int(h.headers["Content-Length"]))
        if not self.is_allowed(h):
            return
        if self.refused_posts:
            self.refused_posts -= 1
            self.answer(h, 503)
            return
        self.events.append((h.path, json.loads(body)))
        self.answer(h, 201, b"{}")
