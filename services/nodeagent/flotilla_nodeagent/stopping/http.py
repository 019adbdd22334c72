"""One HTTP GET as the kubelet makes it for hooks and probes: no redirects, no certificate checks, a bounded body.

Written on plain streams: an HTTP library would cost more memory than the rest of the agent.
"""

import asyncio
import ssl
from collections.abc import Mapping
from functools import lru_cache
from urllib.parse import quote

BODY_LIMIT = 10 << 10
"""Limit of the bytes of the body that are read, as in the kubelet."""

HEAD_LIMIT = 64 << 10
"""Size limit of status line and headers in bytes."""


async def get(
    host: str, port: int, path: str, *, secure: bool = False, headers: Mapping[str, str] | None = None
) -> int:
    """Send the request, read the answer, return its status; the caller limits the time.

    Raises OSError when there is no answer, ValueError when the answer is not HTTP.
    """
    reader, writer = await asyncio.open_connection(host, port, ssl=unverified() if secure else None, limit=HEAD_LIMIT)
    try:
        writer.write(_request(host, port, path, headers or {}))
        await writer.drain()
        status = _status(await _head(reader))
        left = BODY_LIMIT
        while left and (piece := await reader.read(left)):
            left -= len(piece)
        return status
    finally:
        writer.transport.abort()  # closing would wait for the rest of the response


async def _head(reader: asyncio.StreamReader) -> bytes:
    """Read up to the body and return the status line."""
    left = HEAD_LIMIT
    first = line = await reader.readline()
    while line.strip():
        left -= len(line)
        if left < 0:
            raise ValueError(f"the head of the answer is longer than {HEAD_LIMIT} bytes")
        line = await reader.readline()
    return first


def _request(host: str, port: int, path: str, headers: Mapping[str, str]) -> bytes:
    """Return an HTTP/1.0 request without keep-alive: the body ends with the connection, and comes in one piece."""
    given = {name.lower() for name in headers}
    defaults = {"Host": f"[{host}]:{port}" if ":" in host else f"{host}:{port}", "User-Agent": "kube-probe"}
    defaults |= {"Accept": "*/*", "Connection": "close"}
    sent = {name: value for name, value in defaults.items() if name.lower() not in given} | dict(headers)
    lines = [f"GET {target(path)} HTTP/1.0"]
    lines += [f"{_plain(name)}: {_plain(value)}" for name, value in sent.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def target(path: str) -> str:
    """Return the request target for a path with a query, quoted so that nothing in it can end the line."""
    path, _, _ = path.partition("#")
    return quote(path if path.startswith("/") else f"/{path}", safe="/?%:@!$&'()*+,;=~[]")


def _plain(text: str) -> str:
    """Return a value that cannot start another header."""
    return text.replace("\r", " ").replace("\n", " ")


def _status(line: bytes) -> int:
    parts = line.split(None, 2)
    if len(parts) < 2 or not parts[0].startswith(b"HTTP/") or not parts[1].isdigit():
        raise ValueError("the answer is not HTTP")
    return int(parts[1])


@lru_cache(maxsize=1)
def unverified() -> ssl.SSLContext:
    """Return a TLS context that accepts any certificate, even a weak one: a pod's identity cannot be verified."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_ciphers("DEFAULT:@SECLEVEL=0")
    return context
