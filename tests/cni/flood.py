# SPDX-License-Identifier: BSD-2-Clause
"""A stream into a pod, and when its packets came."""
import socket
import struct
import threading
import time

SO_TIMESTAMPNS = 35
POD_IP, NODE_IP = "10.76.0.2", "10.76.0.1"


class Stream:
    """Sends UDP from the node into the pod, at far more than the limit."""

    def __init__(self, pod, offered):
        self.offered = offered      # bit/s
        with pod:
            self.sink = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.sink.bind((POD_IP, 9000))
        self.sink.settimeout(0.2)
        # A busy machine runs this process late, so the kernel says when a packet came.
        self.sink.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        self.seen = []                  # (time, bytes)
        self.stop = False
        self.threads = [threading.Thread(target=f)
                        for f in (self.send, self.receive)]
        for t in self.threads:
            t.start()

    def send(self):
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        begin, sent = time.monotonic(), 0
        while not self.stop:
            while sent * 8 < (time.monotonic() - begin) * self.offered:
                s.sendto(bytes(1400), (POD_IP, 9000))
                sent += 1400
            time.sleep(0.002)
        s.close()

    def receive(self):
        while not self.stop:
            try:
                data, ((_, _, stamp),), _, _ = self.sink.recvmsg(2000, 64)
                seconds, ns = struct.unpack("qq", stamp)
                late = time.time() - (seconds + ns / 1e9)
                # Somebody may have set the clock since.
                self.seen.append((time.monotonic() - (late if 0 <= late < 600 else 0), len(data)))
            except TimeoutError:
                pass

    def end(self):
        self.stop = True
        for t in self.threads:
            t.join()
        self.sink.close()

    def most(self, since, seconds):
        """Return the highest rate over any window of this length."""
        seen = [(t, n) for t, n in self.seen if t >= since]
        best = total = first = 0
        for t, n in seen:
            total += n
            while seen[first][0] < t - seconds:
                total -= seen[first][1]
                first += 1
            best = max(best, total)
        return best * 8 / seconds
