"""Plain requests to an apiserver, for stand-ins of clients: path, body and content type are what a client sends."""

import http.client
import json
import ssl
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import yaml

from tests.testkit.documents import Json

JSON, MERGE = "application/json", "application/merge-patch+json"
PATIENCE = 60  # seconds


class Refused(Exception):
    """The apiserver answered with an error."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status} {message}")
        self.status = status
        self.message = message


class Conflict(Refused):
    """The object has changed since it was read."""


class Rest:
    """Requests with the credentials of one kubeconfig, which holds a token."""

    def __init__(self, kubeconfig: Path) -> None:
        config = yaml.safe_load(kubeconfig.read_text(encoding="utf-8"))
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        self._address = urlsplit(cluster["server"]).netloc
        self._token = user["token"]
        self._trust = ssl.create_default_context(cafile=cluster["certificate-authority"])

    def send(self, method: str, path: str, body: object = None, content_type: str = JSON) -> Json:
        """Return the response to one request. Raises Refused."""
        connection, reply = self._ask(method, path, body, content_type)
        try:
            return json.loads(reply.read())
        finally:
            connection.close()

    def watch(self, path: str) -> Iterator[Json]:
        """Yield the objects of a watch in their order, one for each event. Raises Refused."""
        connection, reply = self._ask("GET", path, None, JSON)
        try:
            for line in reply:
                yield json.loads(line)["object"]
        finally:
            connection.close()

    def _ask(
        self, method: str, path: str, body: object, content_type: str
    ) -> tuple[http.client.HTTPSConnection, http.client.HTTPResponse]:
        connection = http.client.HTTPSConnection(self._address, context=self._trust, timeout=PATIENCE)
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": content_type, "Accept": JSON}
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        reply = connection.getresponse()
        if reply.status >= 400:
            document = json.loads(reply.read())
            connection.close()
            refusal = Conflict if (reply.status, document.get("reason")) == (409, "Conflict") else Refused
            raise refusal(reply.status, document.get("message", ""))
        return connection, reply
