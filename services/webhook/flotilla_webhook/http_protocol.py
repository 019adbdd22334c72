"""Limits the number and the duration of connections.

The apiserver keeps a handful of connections and sends its requests at once. Other clients of the port could connect,
send nothing or a body byte by byte, and hold sockets and memory indefinitely: uvicorn only closes connections that are
idle after an answer.
"""

import asyncio
import ssl
from collections.abc import Mapping
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

REQUEST_SECONDS = 10.0
"""Timeout from the connection to its first request, and from a request's first byte to its last.

It is a third of the apiserver's timeout for an answer.
"""

MAX_CONNECTIONS = 512
"""Limit of connections: an apiserver keeps a few, and a large control plane has five of them."""


CALLER = "caller"
"""Key in the state of a request: the common names of the sender's verified certificate, none without one.

It is missing where client certificates are not requested.
"""


def common_names(certificate: Mapping[str, Any] | None) -> frozenset[str]:
    """Return the common names of a certificate in Python's form, {""} if it has none; none without a certificate."""
    if not certificate:
        return frozenset()
    parts = [part for name in certificate.get("subject", ()) for part in name]
    return frozenset(value for key, value in parts if key == "commonName") or frozenset({""})


class BoundedProtocol(HttpToolsProtocol):
    """HTTP as in uvicorn, with a timeout for each request."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._limit: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > MAX_CONNECTIONS:
            transport.abort()
        else:
            self._start_limit()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_limit()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        self._start_limit()
        super().on_message_begin()
        context: ssl.SSLContext | None = self.transport.get_extra_info("sslcontext")
        if context is not None and context.verify_mode is not ssl.CERT_NONE:
            self.scope.setdefault("state", {})[CALLER] = common_names(self.transport.get_extra_info("peercert"))

    def on_message_complete(self) -> None:
        self._end_limit()
        super().on_message_complete()

    def _start_limit(self) -> None:
        self._end_limit()
        self._limit = self.loop.call_later(REQUEST_SECONDS, self.transport.abort)

    def _end_limit(self) -> None:
        if self._limit is not None:
            self._limit.cancel()
            self._limit = None
