"""HTTP GETs as the kubelet makes them for preStop hooks and probes: no certificate checks, responses within limits.

Written on plain streams: an HTTP library would cost more memory than the rest of the agent. A hook follows no redirects
and gets only a status. All connections of a probe go to the one IP that the caller gives: a redirect can change the
port, the scheme and the path, but never the address, since its host is only compared (nodeagent.md §6.3).
"""

import asyncio
import re
import ssl
from collections.abc import Mapping
from functools import lru_cache
from urllib.parse import quote, urljoin, urlsplit

import msgspec

from flotilla_nodeagent.probes.definitions import HttpGet
from flotilla_nodeagent.probes.states import Outcome

BODY_LIMIT = 10 << 10
"""Limit of the bytes of a body that are read, as in the kubelet."""

HOOK_HEAD_LIMIT, HEAD_LIMIT = 64 << 10, 32 << 10
"""Size limits of status line and headers in bytes, for hooks and for probes."""

REDIRECTS = 10
"""Limit of redirects, as in the kubelet."""


async def get_status(
    host: str, port: int, path: str, *, secure: bool = False, headers: Mapping[str, str] | None = None
) -> int:
    """Send the request, read the answer, return its status; the caller limits the time.

    Raises OSError when there is no answer, ValueError when the answer is not HTTP.
    """
    reader, writer = await asyncio.open_connection(
        host, port, ssl=unverified() if secure else None, limit=HOOK_HEAD_LIMIT
    )
    try:
        writer.write(_hook_request(host, port, path, headers or {}))
        await writer.drain()
        status = _status(await _status_line(reader))
        left = BODY_LIMIT
        while left and (piece := await reader.read(left)):
            left -= len(piece)
        return status
    finally:
        writer.transport.abort()  # closing would wait for the rest of the response


async def _status_line(reader: asyncio.StreamReader) -> bytes:
    """Read up to the body and return the status line."""
    left = HOOK_HEAD_LIMIT
    first = line = await reader.readline()
    while line.strip():
        left -= len(line)
        if left < 0:
            raise ValueError(f"the head of the answer is longer than {HOOK_HEAD_LIMIT} bytes")
        line = await reader.readline()
    return first


def _hook_request(host: str, port: int, path: str, headers: Mapping[str, str]) -> bytes:
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


_DEFAULTS = (("User-Agent", "kube-probe"), ("Accept", "*/*"))
_OPTIONAL = frozenset(name.lower() for name, _ in _DEFAULTS)  # left out when given as empty
_REDIRECTING = frozenset({301, 302, 303, 307, 308})
_WITHOUT_BODY = frozenset({204, 304})
_DEFAULT_PORTS = {"http": 80, "https": 443}
_STATUS_LINE = re.compile(rb"HTTP/1\.[01] (\d{3})(?: .*)?")
_HEX = re.compile(rb"[0-9A-Fa-f]{1,15}")


class Response(msgspec.Struct, frozen=True):
    """The response of a server, with the beginning of its body."""

    status: int
    location: str = ""
    body: bytes = b""


class InvalidResponse(Exception):
    """The answer is not HTTP, or larger than the limits."""


async def probe(ip: str, action: HttpGet) -> Outcome:
    """Send the request and follow redirects on the pod. The caller limits the time. Raises OSError, InvalidResponse."""
    scheme = "https" if action.secure else "http"
    url = f"{scheme}://{_host(ip)}:{action.port}{target(action.path)}"
    for _ in range(REDIRECTS):
        answer = await _ask(ip, url, action.headers)
        if answer.status not in _REDIRECTING or not answer.location:
            return _outcome(answer)
        following = _redirected(url, answer.location)
        if urlsplit(following).hostname != urlsplit(url).hostname:
            return _outcome(answer)
        url = following
    raise InvalidResponse(f"stopped after {REDIRECTS} redirects")


def _outcome(answer: Response) -> Outcome:
    body = answer.body.decode(errors="replace")
    if 300 <= answer.status < 400:
        return Outcome(True, f"Probe terminated redirects, Response body: {body}")
    if 200 <= answer.status < 300:
        return Outcome(True, body)
    return Outcome(False, f"HTTP probe failed with statuscode: {answer.status}")


def _redirected(url: str, location: str) -> str:
    """Return the URL of the redirect, with a port. Raises InvalidResponse if it is not an HTTP URL."""
    try:
        parts = urlsplit(urljoin(url, location))
        port = parts.port or _DEFAULT_PORTS[parts.scheme]
        path = f"{parts.path}?{parts.query}" if parts.query else parts.path
        return f"{parts.scheme}://{_host(parts.hostname or '')}:{port}{target(path)}"
    except (ValueError, KeyError) as error:
        raise InvalidResponse("the answer redirects to an invalid HTTP URL") from error


async def _ask(ip: str, url: str, headers: tuple[tuple[str, str], ...]) -> Response:
    parts = urlsplit(url)
    assert parts.port is not None
    secure = unverified() if parts.scheme == "https" else None
    reader, writer = await asyncio.open_connection(ip, parts.port, ssl=secure, limit=HEAD_LIMIT)
    try:
        path = f"{parts.path}?{parts.query}" if parts.query else parts.path
        writer.write(_request(f"{_host(ip)}:{parts.port}", path, headers))
        return await _read(reader)
    except asyncio.IncompleteReadError as error:
        raise InvalidResponse("EOF") from error
    finally:
        writer.transport.abort()  # closing would wait for the rest of the response


def _request(host: str, path: str, given: tuple[tuple[str, str], ...]) -> bytes:
    """Return the request. Names and values have no line breaks: definitions with such are refused, paths are quoted."""
    names = {name.lower() for name, _ in given}
    sent = [("Host", host), ("Connection", "close"), *(pair for pair in _DEFAULTS if pair[0].lower() not in names)]
    sent += [pair for pair in given if pair[1] or pair[0].lower() not in _OPTIONAL]
    lines = [f"GET {path} HTTP/1.1", *(f"{name}: {value}" for name, value in sent), "", ""]
    return "\r\n".join(lines).encode()


async def _read(reader: asyncio.StreamReader) -> Response:
    """Return the answer, after skipping informational ones."""
    left = HEAD_LIMIT
    while True:
        status, headers, left = await _head(reader, left)
        if not 100 <= status < 200 or status == 101:
            break
    body = b"" if status in _WITHOUT_BODY else await _body(reader, headers)
    return Response(status, headers.get("location", ""), body)


async def _head(reader: asyncio.StreamReader, left: int) -> tuple[int, dict[str, str], int]:
    """Return status and headers, and the bytes left for further heads."""
    match = _STATUS_LINE.fullmatch((line := await _line(reader)).rstrip())
    if match is None:
        raise InvalidResponse("malformed HTTP response")
    left -= len(line)
    headers: dict[str, str] = {}
    while (line := await _line(reader)).strip():
        left -= len(line)
        if left < 0:
            raise InvalidResponse(f"the head of the answer is longer than {HEAD_LIMIT} bytes")
        name, _, value = line.decode("latin-1").partition(":")
        headers.setdefault(name.strip().lower(), value.strip())
    return int(match[1]), headers, left


async def _line(reader: asyncio.StreamReader) -> bytes:
    try:
        line = await reader.readline()
    except ValueError as error:
        raise InvalidResponse(f"a line of the answer is longer than {HEAD_LIMIT} bytes") from error
    if not line.endswith(b"\n"):
        raise InvalidResponse("EOF")
    return line


async def _body(reader: asyncio.StreamReader, headers: Mapping[str, str]) -> bytes:
    """Return the beginning of the body."""
    if "chunked" in headers.get("transfer-encoding", "").lower():
        return await _chunks(reader)
    length = headers.get("content-length", "")
    most = min(int(length), BODY_LIMIT) if length.isascii() and length.isdigit() and len(length) < 20 else BODY_LIMIT
    return await _up_to(reader, most)


async def _up_to(reader: asyncio.StreamReader, most: int) -> bytes:
    body = bytearray()
    while len(body) < most and (piece := await reader.read(most - len(body))):
        body += piece
    return bytes(body)


async def _chunks(reader: asyncio.StreamReader) -> bytes:
    body = bytearray()
    while len(body) < BODY_LIMIT:
        size = (await _line(reader)).partition(b";")[0].strip()
        if not _HEX.fullmatch(size):
            raise InvalidResponse("malformed chunked encoding")
        if not (length := int(size, 16)):
            break
        body += await _up_to(reader, min(length, BODY_LIMIT - len(body)))
        if len(body) < BODY_LIMIT:
            await _line(reader)  # the end of the chunk
    return bytes(body)


def _host(ip: str) -> str:
    return f"[{ip}]" if ":" in ip else ip
