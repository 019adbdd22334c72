"""HTTP probes: a GET request to the pod, as the kubelet's probes make it (nodeagent.md §6.3).

Written on plain streams: an HTTP library would cost more memory than the rest of the agent. All connections go to the
one IP that the caller gives. A redirect can change the port, the scheme and the path, but never the address: its host
is only compared. A server's response is read within limits.
"""

import asyncio
import re
from collections.abc import Mapping
from urllib.parse import urljoin, urlsplit

import msgspec

from flotilla_nodeagent.probes.definitions import HttpGet
from flotilla_nodeagent.probes.states import Outcome
from flotilla_nodeagent.stopping.http import target, unverified

BODY_LIMIT = 10 << 10
"""Limit of the bytes of a body that are read, as in the kubelet."""

HEAD_LIMIT = 32 << 10
"""Size limit of status line and headers in bytes."""

REDIRECTS = 10
"""Limit of redirects, as in the kubelet."""

_DEFAULTS = (("User-Agent", "kube-probe"), ("Accept", "*/*"))
_OPTIONAL = frozenset(name.lower() for name, _ in _DEFAULTS)  # left out when given as empty
_REDIRECTING = frozenset({301, 302, 303, 307, 308})
_WITHOUT_BODY = frozenset({204, 304})
_DEFAULT_PORTS = {"http": 80, "https": 443}
_STATUS_LINE = re.compile(rb"HTTP/1\.[01] (\d{3})(?: .*)?")
_HEX = re.compile(rb"[0-9A-Fa-f]{1,15}")


class Answer(msgspec.Struct, frozen=True):
    """The answer of a server, with the beginning of its body."""

    status: int
    location: str = ""
    body: bytes = b""


class Broken(Exception):
    """The answer is not HTTP, or larger than the limits."""


async def probe(ip: str, action: HttpGet) -> Outcome:
    """Send the request and follow redirects on the pod. The caller limits the time. Raises OSError, Broken."""
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
    raise Broken(f"stopped after {REDIRECTS} redirects")


def _outcome(answer: Answer) -> Outcome:
    body = answer.body.decode(errors="replace")
    if 300 <= answer.status < 400:
        return Outcome(True, f"Probe terminated redirects, Response body: {body}")
    if 200 <= answer.status < 300:
        return Outcome(True, body)
    return Outcome(False, f"HTTP probe failed with statuscode: {answer.status}")


def _redirected(url: str, location: str) -> str:
    """Return the URL of the redirect, with a port. Raises Broken if it is not an HTTP URL."""
    try:
        parts = urlsplit(urljoin(url, location))
        port = parts.port or _DEFAULT_PORTS[parts.scheme]
        path = f"{parts.path}?{parts.query}" if parts.query else parts.path
        return f"{parts.scheme}://{_host(parts.hostname or '')}:{port}{target(path)}"
    except (ValueError, KeyError) as error:
        raise Broken("the answer redirects to an invalid HTTP URL") from error


async def _ask(ip: str, url: str, headers: tuple[tuple[str, str], ...]) -> Answer:
    parts = urlsplit(url)
    assert parts.port is not None
    secure = unverified() if parts.scheme == "https" else None
    reader, writer = await asyncio.open_connection(ip, parts.port, ssl=secure, limit=HEAD_LIMIT)
    try:
        path = f"{parts.path}?{parts.query}" if parts.query else parts.path
        writer.write(_request(f"{_host(ip)}:{parts.port}", path, headers))
        return await _read(reader)
    except asyncio.IncompleteReadError as error:
        raise Broken("EOF") from error
    finally:
        writer.transport.abort()  # closing would wait for the rest of the response


def _request(host: str, path: str, given: tuple[tuple[str, str], ...]) -> bytes:
    """Return the request. Names and values have no line breaks: definitions with such are refused, paths are quoted."""
    names = {name.lower() for name, _ in given}
    sent = [("Host", host), ("Connection", "close"), *(one for one in _DEFAULTS if one[0].lower() not in names)]
    sent += [one for one in given if one[1] or one[0].lower() not in _OPTIONAL]
    lines = [f"GET {path} HTTP/1.1", *(f"{name}: {value}" for name, value in sent), "", ""]
    return "\r\n".join(lines).encode()


async def _read(reader: asyncio.StreamReader) -> Answer:
    """Return the answer, after skipping informational ones."""
    left = HEAD_LIMIT
    while True:
        status, headers, left = await _head(reader, left)
        if not 100 <= status < 200 or status == 101:
            break
    body = b"" if status in _WITHOUT_BODY else await _body(reader, headers)
    return Answer(status, headers.get("location", ""), body)


async def _head(reader: asyncio.StreamReader, left: int) -> tuple[int, dict[str, str], int]:
    """Return status and headers, and the bytes left for further heads."""
    found = _STATUS_LINE.fullmatch((line := await _line(reader)).rstrip())
    if found is None:
        raise Broken("malformed HTTP response")
    left -= len(line)
    headers: dict[str, str] = {}
    while (line := await _line(reader)).strip():
        left -= len(line)
        if left < 0:
            raise Broken(f"the head of the answer is longer than {HEAD_LIMIT} bytes")
        name, _, value = line.decode("latin-1").partition(":")
        headers.setdefault(name.strip().lower(), value.strip())
    return int(found[1]), headers, left


async def _line(reader: asyncio.StreamReader) -> bytes:
    try:
        line = await reader.readline()
    except ValueError as error:
        raise Broken(f"a line of the answer is longer than {HEAD_LIMIT} bytes") from error
    if not line.endswith(b"\n"):
        raise Broken("EOF")
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
            raise Broken("malformed chunked encoding")
        if not (length := int(size, 16)):
            break
        body += await _up_to(reader, min(length, BODY_LIMIT - len(body)))
        if len(body) < BODY_LIMIT:
            await _line(reader)  # the end of the chunk
    return bytes(body)


def _host(ip: str) -> str:
    return f"[{ip}]" if ":" in ip else ip
