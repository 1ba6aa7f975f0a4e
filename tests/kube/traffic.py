# SPDX-License-Identifier: BSD-2-Clause
"""Sends streams between a client and pods, and records what arrives."""
import threading
import time

from stream import Stream


class Traffic:
    """Streams between a client and pods, in both directions."""

    def __init__(self, client, pods, ways=("in", "out")):
        self.streams = {}
        for name, pod in pods.items():
            if "in" in ways:
                self.streams[name, "in"] = Stream(client, pod, 4)
            if "out" in ways:
                self.streams[name, "out"] = Stream(pod, client, 4)

    def read(self):
        return time.monotonic(), {k: s.wire_bytes() for k, s in self.streams.items()}

    def rates(self, seconds):
        """Return the bit/s on the wire of each stream."""
        begin, before = self.read()
        time.sleep(seconds)
        end, after = self.read()
        return {k: (after[k] - before[k]) * 8 / (end - begin) for k in before}

    def ended(self):
        """Return the streams that are not established any more."""
        return [k for k, s in self.streams.items() if not s.is_established()]

    def close(self):
        for stream in self.streams.values():
            stream.close()
        self.streams = {}


class Recorder:
    """Reads what the streams have received, ten times a second by default."""

    def __init__(self, traffic, interval=0.1):
        self.traffic, self.rows, self.interval = traffic, [], interval
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self):
        while not self._end.wait(self.interval):
            self.rows.append(self.traffic.read())

    def stop(self):
        self._end.set()
        self._thread.join()

    def span(self, begin, seconds):
        """Return the bit/s of each stream in a span."""
        first = next(r for r in self.rows if r[0] >= begin)
        last = next(r for r in self.rows if r[0] >= first[0] + seconds)
        return {k: (last[1][k] - first[1][k]) * 8 / (last[0] - first[0])
                for k in first[1]}

    def rate(self, stream, begin, seconds):
        """Return the bit/s of one stream in a span."""
        return self.span(begin, seconds)[stream]

    def longest_pause(self, stream, begin):
        """Return for how long a stream received nothing at most."""
        since, worst, before = begin, 0, None
        for now, counts in (r for r in self.rows if r[0] >= begin):
            if counts[stream] != before:
                before, since = counts[stream], now
            worst = max(worst, now - since)
        return worst

    def most(self, begin, seconds, cap):
        """Return the most that any stream got in a span from `begin` on, in parts of
        what cap(stream) returns."""
        worst, at = 0, 0
        for i, (now, counts) in enumerate(self.rows):
            while now - self.rows[at + 1][0] >= seconds and at + 1 < i:
                at += 1
            then, old = self.rows[at]
            if then >= begin and now - then >= seconds:
                worst = max(worst, *((counts[k] - old[k]) * 8 / (now - then) / cap(k)
                                     for k in counts))
        return worst
