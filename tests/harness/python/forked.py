# SPDX-License-Identifier: BSD-2-Clause
"""Runs a function in a copy of this process: an emulated CPU takes seconds to start
Python anew."""
import gc
import os
import signal
import subprocess
import sys
import tempfile
import time

from isolation import CLONE_NEWNET, libc

POLL_SECONDS = 0.005


class Forked:
    """A process that calls work(*args) in a network namespace, with the methods of Popen
    that tests need. Its output goes to communicate()."""

    def __init__(self, ns, work, *args):
        self.returncode = None
        self._out = tempfile.TemporaryFile("w+")
        sys.stdout.flush()
        self.pid = os.fork()
        if self.pid == 0:
            self._become(ns, work, args)

    def _become(self, ns, work, args):
        """Does not return."""
        code = 1
        try:
            # The script's own handler would raise an exception in here.
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            libc("setns", ns.fd, CLONE_NEWNET)
            null = os.open(os.devnull, os.O_RDWR)
            for fd, number in ((null, 0), (self._out.fileno(), 1), (null, 2)):
                os.dup2(fd, number)
            # Sockets and namespaces of the script end when the script closes them.
            os.closerange(3, os.sysconf("SC_OPEN_MAX"))
            # To look through the script's objects for garbage would interrupt the traffic.
            gc.freeze()
            work(*args)
            sys.stdout.flush()
            code = 0
        finally:
            os._exit(code)

    def poll(self):
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def wait(self, timeout):
        end = time.monotonic() + timeout
        while self.poll() is None:
            if time.monotonic() > end:
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout)
            time.sleep(POLL_SECONDS)
        return self.returncode

    def communicate(self, timeout):
        self.wait(timeout)
        self._out.seek(0)
        return self._out.read(), None

    def terminate(self):
        self._send(signal.SIGTERM)

    def kill(self):
        self._send(signal.SIGKILL)

    def _send(self, number):
        if self.poll() is None:
            os.kill(self.pid, number)
