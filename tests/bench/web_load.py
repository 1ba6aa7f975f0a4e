# SPDX-License-Identifier: BSD-2-Clause
"""Fetches a file and prints how long it took, as one JSON object."""
import json
import socket
import time

CHUNK_BYTES = 1 << 18
END_OF_HEAD = b"\r\n\r\n"


def fetch(ip, port, path, size):
    """Time counts from the SYN on. A file that ends early raises."""
    start = time.monotonic()
    with socket.create_connection((ip, port), timeout=60) as s:
        connected = time.monotonic()
        s.sendall(f"GET {path} HTTP/1.0\r\n\r\n".encode())
        head = b""
        while END_OF_HEAD not in head:
            got = s.recv(CHUNK_BYTES)
            if not got:
                raise ConnectionError("no answer")
            head += got
        first = time.monotonic()
        have, in_second = len(head.partition(END_OF_HEAD)[2]), None
        chunk = bytearray(CHUNK_BYTES)
        while have < size:
            got = s.recv_into(chunk)
            if not got:
                raise ConnectionError(f"ended after {have} of {size} bytes")
            have += got
            if in_second is None and time.monotonic() - start >= 1:
                in_second = have
        end = time.monotonic()
    print(json.dumps({"connect_ms": (connected - start) * 1e3,
                      "first_byte_ms": (first - start) * 1e3,
                      "first_second_mb": (have if in_second is None else in_second) / 1e6,
                      "seconds": end - start}))
