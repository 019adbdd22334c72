"""Plain requests to an apiserver: path, body and content type are what a client sends.

They cost a hundredth of the CPU time of a kubectl. So the record of a test and its reads use them, and stand-ins for
clients of others.
"""

import http.client
import socket
import ssl
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
import yaml

from tests.support.connections import Connections
from tests.testkit.documents import Json

JSON, MERGE = "application/json", "application/merge-patch+json"
JSON_PATCH, STRATEGIC = "application/json-patch+json", "application/strategic-merge-patch+json"
PATIENCE = 60  # seconds
RETRY_SECONDS = 0.5


class Refused(Exception):
    """The apiserver answered with an error."""

    def __init__(self, status: int, message: str, reason: str = "") -> None:
        super().__init__(f"{status} {message}")
        self.status = status
        self.message = message
        self.reason = reason


class Conflict(Refused):
    """The object has changed since it was read."""


class Stream:
    """The events of a watch."""

    def __init__(self, connection: http.client.HTTPConnection, reply: http.client.HTTPResponse) -> None:
        self._connection = connection
        self._reply = reply

    def __iter__(self) -> Iterator[Json]:
        """Yield the events until the server ends the watch. Raises OSError or HTTPException when it breaks."""
        try:
            for line in self._reply:
                yield msgspec.json.decode(line)
        finally:
            self._connection.close()

    def stop(self) -> None:
        """End the watch from another thread."""
        if self._connection.sock is not None:
            try:
                socket.socket.shutdown(self._connection.sock, socket.SHUT_RDWR)
            except OSError:
                return  # it has ended already


class Rest:
    """Requests with the credentials of one kubeconfig, which holds a token."""

    def __init__(self, kubeconfig: Path) -> None:
        config = yaml.safe_load(kubeconfig.read_text(encoding="utf-8"))
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        address = urlsplit(cluster["server"]).netloc
        trust = ssl.create_default_context(cafile=cluster["certificate-authority"])
        self._token = user["token"]
        self._connections = Connections(partial(http.client.HTTPSConnection, address, context=trust, timeout=PATIENCE))

    def send(
        self, method: str, path: str, body: object = None, content_type: str = JSON, *, accept: str = JSON
    ) -> Json:
        """Return the response to one request. Raises Refused."""
        connection, reply = self._ask(method, path, body, content_type, accept)
        try:
            content = reply.read()
        except BaseException:
            connection.close()
            raise
        self._connections.put(connection)
        return msgspec.json.decode(content)

    def watch(self, path: str) -> Iterator[Json]:
        """Yield the objects of a watch in their order, one for each event. Raises Refused."""
        for event in self.follow(path):
            yield event["object"]

    def follow(self, path: str) -> Stream:
        """Return the events of a watch. Raises Refused."""
        connection, reply = self._ask("GET", path, None, JSON, JSON)
        if connection.sock is not None:
            connection.sock.settimeout(None)  # a quiet watch may last
        return Stream(connection, reply)

    def _ask(
        self, method: str, path: str, body: object, content_type: str, accept: str
    ) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        connection = self._connections.take()
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": content_type, "Accept": accept}
        try:
            connection.request(method, path, None if body is None else msgspec.json.encode(body), headers)
            reply = connection.getresponse()
            refusal = _refusal(reply.status, reply.read()) if reply.status >= 400 else None
        except BaseException:
            connection.close()
            raise
        if refusal is not None:
            self._connections.put(connection)
            raise refusal
        return connection, reply


def _refusal(status: int, body: bytes) -> Refused:
    try:
        document: Json = msgspec.json.decode(body)
    except msgspec.DecodeError:
        return Refused(status, body.decode(errors="replace"))
    reason = document.get("reason", "")
    refusal = Conflict if (status, reason) == (409, "Conflict") else Refused
    return refusal(status, document.get("message", ""), reason)
