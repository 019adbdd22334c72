"""Connections to one server, used again: the TLS handshake takes most of the CPU time of a small request."""

import http.client
import select
import threading
import time
import weakref
from collections.abc import Callable

FRESH = 30.0  # seconds; an apiserver closes a connection that has been idle for several minutes


class Connections:
    """The idle connections to one server, of all threads together."""

    def __init__(self, connect: Callable[[], http.client.HTTPConnection]) -> None:
        self._connect = connect
        self._idle: list[tuple[float, http.client.HTTPConnection]] = []
        self._lock = threading.Lock()
        weakref.finalize(self, _close, self._idle)

    def take(self) -> http.client.HTTPConnection:
        """Return an idle connection that the server has not closed, or a new one."""
        while True:
            with self._lock:
                since, connection = self._idle.pop() if self._idle else (0.0, None)
            if connection is None:
                return self._connect()
            if time.monotonic() - since < FRESH and _is_quiet(connection):
                return connection
            connection.close()

    def put(self, connection: http.client.HTTPConnection) -> None:
        """Keep a connection whose response has been read completely, if the server does."""
        if connection.sock is not None:
            with self._lock:
                self._idle.append((time.monotonic(), connection))


def _is_quiet(connection: http.client.HTTPConnection) -> bool:
    """Report whether there is nothing to read: between two requests, that is the end of the connection."""
    waiting = select.poll()
    waiting.register(connection.sock, select.POLLIN)
    return not waiting.poll(0)


def _close(idle: list[tuple[float, http.client.HTTPConnection]]) -> None:
    for _, connection in idle:
        connection.close()
