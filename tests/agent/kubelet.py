# SPDX-License-Identifier: BSD-2-Clause
"""A kubelet's pods API (v1alpha1.Pods/WatchPods of k8s.io/kubelet 0.37), as much of gRPC as
one watch takes; it can be told to misbehave."""
import contextlib
import os
import socket
import struct
import threading

ADDED, MODIFIED, DELETED, SYNCED = 1, 2, 3, 4
DATA, HEADERS, SETTINGS, PING, GOAWAY = 0, 1, 4, 6, 7
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def varint(n):
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def field(number, value):
    """A field of protobuf: a number, or bytes."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def event(kind, name=None, annotations=None, namespace="shop", phase="Running"):
    """A WatchPodsEvent with a v1.Pod, which has more than natra reads."""
    if name is None:
        return field(1, kind)
    meta = field(1, f"pod-{name}") + field(3, namespace) + field(5, f"uid-{name}") + field(
        7, 300) + field(8, field(1, 1700000000))
    for key, value in (annotations or {}).items():
        meta += field(12, field(1, key) + field(2, value))
    spec = field(2, field(1, "container") + field(2, "image") * 100)
    return field(1, kind) + field(2, field(1, meta) + field(2, spec) + field(3, field(1, phase)))


def frame(kind, flags=0, payload=b"", stream=1):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(
        ">I", stream) + payload


class Kubelet:
    """`behave` is called with each connection before anything is sent; if it returns true,
    it has done all."""

    def __init__(self, path):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        self.path, self.pods, self.connections, self.requests = path, {}, [], 0
        self.behave, self.lock, self.part = None, threading.Lock(), 16384
        self.listen()

    def listen(self):
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen()
        threading.Thread(target=self.accept, args=(self.listener,), daemon=True).start()

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        os.unlink(self.path)
        self.cut()

    def cut(self):
        with self.lock:
            for c in self.connections:
                with contextlib.suppress(OSError):
                    c.shutdown(socket.SHUT_RDWR)

    def accept(self, listener):
        while True:
            try:
                c, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(c,), daemon=True).start()

    def serve(self, c):
        stream = c.makefile("rb")
        assert stream.read(len(PREFACE)) == PREFACE
        c.sendall(frame(SETTINGS, 0, b"", 0))
        self.requests += 1
        if self.behave and self.behave(c):
            stream.read()
            c.close()
            return
        c.sendall(frame(PING, 0, b"12345678", 0))
        try:
            while head := stream.read(9):
                kind, flags, payload = head[3], head[4], stream.read(int.from_bytes(head[:3]))
                if kind == HEADERS:
                    assert b"/v1alpha1.Pods/WatchPods" in payload, payload
                elif kind == DATA:
                    assert (flags, payload) == (1, bytes(5)), payload
                    c.sendall(frame(HEADERS, 4, b"\x88"))
                    with self.lock:
                        self.connections.append(c)
                        for pod in self.pods.values():
                            self.send(c, event(ADDED, *pod))
                        self.send(c, event(SYNCED))
                elif kind == PING:
                    assert (flags, payload) == (1, b"12345678")
        except OSError:
            pass
        with self.lock:
            if c in self.connections:
                self.connections.remove(c)
        c.close()

    def send(self, c, message):
        data = b"\0" + struct.pack(">I", len(message)) + message
        for at in range(0, len(data), self.part):
            c.sendall(frame(DATA, 0, data[at:at + self.part]))

    def tell(self, *what):
        with self.lock:
            for c in self.connections:
                with contextlib.suppress(OSError):
                    self.send(c, event(*what))

    def put(self, name, annotations=None, phase="Running"):
        kind = MODIFIED if name in self.pods else ADDED
        self.pods[name] = (name, annotations, "shop", phase)
        self.tell(kind, *self.pods[name])

    def delete(self, name):
        del self.pods[name]
        self.tell(DELETED, name)
