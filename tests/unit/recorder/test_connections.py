"""Connections are used again, as long as the server keeps them."""

import http.client
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from tests.support import connections
from tests.support.connections import Connections


class Answers(BaseHTTPRequestHandler):
    """Answers with the client's port; `/last` and then ends the connection, announced with `/announced`."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        body = str(self.client_address[1]).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        if self.path == "/announced":
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)
        self.close_connection = self.path != "/"

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of http.server
        pass


@pytest.fixture
def pool() -> Iterator[Connections]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        made = Connections(lambda: http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10))
        yield made
        server.shutdown()


def ask(pool: Connections, path: str = "/") -> int:
    """Return the port of the connection that was used."""
    connection = pool.take()
    connection.request("GET", path)
    port = int(connection.getresponse().read())
    pool.put(connection)
    return port


def test_the_next_request_uses_the_same_connection(pool: Connections) -> None:
    assert ask(pool) == ask(pool)


def test_two_requests_at_once_have_one_each(pool: Connections) -> None:
    first, second = pool.take(), pool.take()
    assert first is not second
    first.close()
    second.close()


@pytest.mark.parametrize("path", ["/last", "/announced"])
def test_a_connection_that_the_server_ends_is_not_used_again(pool: Connections, path: str) -> None:
    ended = ask(pool, path)
    deadline = time.monotonic() + 10
    while (connection := pool.take()).sock is not None:  # its end may still be on the way
        assert time.monotonic() < deadline
        pool.put(connection)
    connection.close()
    assert ask(pool) != ended


def test_a_connection_that_was_idle_for_long_is_not_used_again(
    pool: Connections, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "FRESH", 0.0)
    assert ask(pool) != ask(pool)
