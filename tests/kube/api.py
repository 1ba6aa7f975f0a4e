# SPDX-License-Identifier: BSD-2-Clause
"""Asks the API server, with JSON over HTTPS."""
import http.client
import json
import ssl
from urllib.parse import urlencode

MERGE = "application/merge-patch+json"


class Refused(Exception):
    def __init__(self, status, text):
        super().__init__(f"{status}: {text}")
        self.status = status


class Api:
    """One connection, which is made again when the server has closed it."""

    def __init__(self, host, port, token, ca=None):
        self.host, self.port, self.token = host, port, token
        self.tls = ssl.create_default_context(cafile=ca) if ca else \
            ssl._create_unverified_context()
        self.tls.check_hostname = bool(ca)
        self._connection = None

    def _once(self, method, path, body, content, timeout):
        if not self._connection:
            self._connection = http.client.HTTPSConnection(
                    self.host, self.port, context=self.tls, timeout=timeout)
        self._connection.request(method, path, body, {
            "Authorization": f"Bearer {self.token}", "Content-Type": content,
            "Accept": "application/json"})
        answer = self._connection.getresponse()
        return answer.status, answer.read().decode()

    def ask(self, method, path, body=None, content="application/json", timeout=30):
        """Return the parsed answer, or text that is not JSON."""
        if body is not None and not isinstance(body, (str, bytes)):
            body = json.dumps(body)
        try:
            status, text = self._once(method, path, body, content, timeout)
        except (http.client.HTTPException, ConnectionError, BrokenPipeError):
            self._connection = None
            status, text = self._once(method, path, body, content, timeout)
        except OSError:
            self._connection = None
            raise
        if status >= 300:
            raise Refused(status, text.strip())
        return json.loads(text) if text.startswith("{") else text

    def get(self, path, **query):
        return self.ask("GET", path + (f"?{urlencode(query)}" if query else ""))

    def create(self, path, thing, **query):
        return self.ask("POST", path + (f"?{urlencode(query)}" if query else ""), thing)

    def delete(self, path, **query):
        return self.ask("DELETE", path + (f"?{urlencode(query)}" if query else ""))

    def patch(self, path, change):
        return self.ask("PATCH", path, change, MERGE)

    def items(self, path, **query):
        return self.get(path, **query)["items"]
