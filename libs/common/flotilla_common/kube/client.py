"""The HTTP client of the apiserver: raw bytes in and out, one pool of kept-alive connections.

This is the hottest path of every service, so a request costs as little as aiohttp allows: URLs are built as text and
marked as encoded, headers are built once, bodies are never decoded here. Every failure is one of two exceptions: the
apiserver refused (ApiError), or the outcome is unknown (Unreachable).
"""

import socket
import ssl
from collections.abc import AsyncGenerator, Awaitable, Mapping
from contextlib import asynccontextmanager
from functools import lru_cache
from typing import Any
from urllib.parse import quote, urlencode

import aiohttp
import msgspec
from multidict import CIMultiDict
from prometheus_client import Counter
from yarl import URL

from flotilla_common.api.resources import Resource
from flotilla_common.clock import SystemClock
from flotilla_common.kube.config import ApiConfig
from flotilla_common.kube.credentials import ConfigError
from flotilla_common.kube.interface import ApiError, Page, Unreachable, WatchEvent, delete_options
from flotilla_common.kube.watch import Status, Unhurried, bookmark, stream_events, watch_events
from flotilla_common.tracing.context import current

CONNECTIONS = 128
"""Most connections for requests: twice the writes that one process has under way (kube-max-writes).

Watches have their own connections, without a limit: they must never block a write.
"""

CONNECT_SECONDS = 10.0
"""Timeout for connecting, TLS included."""

REQUEST_SECONDS = 60.0
"""Timeout for a whole request: the apiserver's own is 60 s (--request-timeout)."""

SILENCE_SECONDS = 90.0
"""Time without data after which a watch counts as dead: bookmarks come about once a minute."""

KEEPALIVE_SECONDS = 60.0
"""Time for which idle connections are kept: the apiserver's own idle timeout is longer."""

WRITE = {"fieldValidation": "Ignore"}
"""Parameters of every write.

By default the apiserver records every field that it reads from the object, to warn of unknown ones. These warnings
would be ignored here; users get the warnings of their own writes.
"""

METADATA_ONLY = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
"""Accept header of lists for which the apiserver omits everything but the objects' metadata."""

REQUESTS = Counter("rest_client_requests_total", "Requests to the apiserver.", ["code", "host", "method"])


class _ShardInfo(msgspec.Struct, frozen=True):
    selector: str = ""


class _ListMeta(msgspec.Struct, frozen=True):
    resource_version: str = msgspec.field(default="", name="resourceVersion")
    next_token: str = msgspec.field(default="", name="continue")
    shard_info: _ShardInfo | None = msgspec.field(default=None, name="shardInfo")


class _List(msgspec.Struct, frozen=True):
    metadata: _ListMeta = _ListMeta()
    items: list[msgspec.Raw] | None = None


_decode_list = msgspec.json.Decoder(_List).decode


def page_of(resource: Resource, answer: bytes) -> Page:
    """Return the page in the answer to a LIST. Raises Unreachable if it is not a list."""
    try:
        found = _decode_list(answer)
    except msgspec.MsgspecError as error:  # from a proxy in between: the apiserver does not send this
        raise Unreachable(f"LIST of {resource.plural} did not return a list: {error}") from error
    meta = found.metadata
    return Page(found.items or [], meta.resource_version, meta.next_token, meta.shard_info is not None)


class KubeClient:
    """The `Api` of one apiserver. Connects when first used; `close` when done."""

    def __init__(self, config: ApiConfig, *, user_agent: str, timeout: float = REQUEST_SECONDS) -> None:
        self._config = config
        self._timeout = aiohttp.ClientTimeout(total=timeout, sock_connect=CONNECT_SECONDS)
        self._watch_timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS, sock_read=SILENCE_SECONDS)
        self._headers: dict[str, str] = {"User-Agent": user_agent, "Accept": "application/json", **config.headers}
        self._host = URL(config.server).authority
        self._counters: dict[tuple[int, str], Counter] = {}
        self._made: CIMultiDict[str] = CIMultiDict(self._headers)
        self._authorization = ""
        self._session: aiohttp.ClientSession | None = None
        self._watches: aiohttp.ClientSession | None = None

    async def get(self, resource: Resource, namespace: str, name: str, subresource: str = "") -> bytes:
        return await _read(self._open("GET", resource.path(namespace, name, subresource)))

    async def list(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        limit: int = 0,
        token: str = "",
        resource_version: str = "",
        metadata_only: bool = False,
        shard_selector: str = "",
    ) -> Page:
        """Return one page. Its objects are slices of one buffer: copy the ones that you keep for long."""
        params = {
            "labelSelector": label_selector,
            "fieldSelector": field_selector,
            "limit": str(limit) if limit else "",
            "continue": token,
            "resourceVersion": resource_version,
            "shardSelector": shard_selector,
        }
        headers = {"Accept": METADATA_ONLY} if metadata_only else None
        return page_of(
            resource, await _read(self._open("GET", resource.path(namespace), params=params, headers=headers))
        )

    async def watch(
        self,
        resource: Resource,
        resource_version: str,
        *,
        namespace: str = "",
        field_selector: str = "",
        timeout: float = 300,
        shard_selector: str = "",
    ) -> AsyncGenerator[WatchEvent]:
        """Watch as `Api.watch` does. Raises Unreachable also after SILENCE_SECONDS or an incomplete line."""
        params = {
            "watch": "1",
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
            "fieldSelector": field_selector,
            "shardSelector": shard_selector,
            "timeoutSeconds": str(int(timeout)),
        }
        async with self._events(resource, namespace, params) as chunks:
            yield WatchEvent("BOOKMARK", bookmark(resource_version))
            async for event in watch_events(chunks):
                yield event

    async def stream(
        self,
        resource: Resource,
        *,
        namespace: str = "",
        field_selector: str = "",
        timeout: float = 300,
        shard_selector: str = "",
    ) -> AsyncGenerator[WatchEvent]:
        """Stream as `Api.stream` does. Raises Unreachable as `watch` does."""
        params = {
            "watch": "1",
            "allowWatchBookmarks": "true",
            "sendInitialEvents": "true",
            "resourceVersionMatch": "NotOlderThan",
            "fieldSelector": field_selector,
            "shardSelector": shard_selector,
            "timeoutSeconds": str(int(timeout)),
        }
        async with self._events(resource, namespace, params) as chunks:
            async for event in stream_events(chunks):
                yield event

    @asynccontextmanager
    async def _events(self, resource: Resource, namespace: str, params: Mapping[str, str]) -> AsyncGenerator[Unhurried]:
        """Open a watch for the time of the block, and turn the errors of its connection into Unreachable."""
        response = await self._open("GET", resource.path(namespace), params=params, watching=True)
        try:
            yield Unhurried(response.content, SystemClock())
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise Unreachable(f"watch of {resource.plural}: {_text_of(error)}") from error
        finally:
            response.close()

    async def create(self, resource: Resource, namespace: str, body: bytes, *, dry_run: bool = False) -> bytes:
        params = {**WRITE, "dryRun": "All"} if dry_run else WRITE
        return await _read(self._open("POST", resource.path(namespace), body, "application/json", params))

    async def patch(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        body: bytes,
        content_type: str,
        *,
        subresource: str = "",
        params: Mapping[str, str] | None = None,
    ) -> bytes:
        given = {**WRITE, **params} if params else WRITE
        return await _read(self._open("PATCH", resource.path(namespace, name, subresource), body, content_type, given))

    async def replace(self, resource: Resource, namespace: str, name: str, body: bytes, subresource: str = "") -> bytes:
        return await _read(
            self._open("PUT", resource.path(namespace, name, subresource), body, "application/json", WRITE)
        )

    async def delete(
        self, resource: Resource, namespace: str, name: str, *, uid: str = "", resource_version: str = ""
    ) -> bytes:
        options = delete_options(resource, uid, resource_version)
        body = msgspec.json.encode(options) if options else b""
        content_type = "application/json" if options else ""
        return await _read(self._open("DELETE", resource.path(namespace, name), body, content_type))

    async def raw(self, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] | None = None) -> bytes:
        """Send any other request; `path` may include a query."""
        return await _read(self._open(method, path, body, headers=headers))

    async def close(self) -> None:
        for session in (self._session, self._watches):
            if session is not None:
                await session.close()
        self._session = self._watches = None

    async def _open(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        content_type: str = "",
        params: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        watching: bool = False,
    ) -> aiohttp.ClientResponse:
        """Send a request, and return its successful response. A 401 is retried once with fresh credentials."""
        url = self._url(path, params)
        for last in (False, True):
            made = await self._made_headers(content_type, headers)
            response = await self._send(method, url, body, made, watching=watching)
            self._count(response.status, method)
            if response.status < 300:
                return response
            if response.status != 401 or last:
                break
            self._config.credential.reject()
            response.close()  # the next connection presents the client certificate, which may have been renewed
        raise await _error(response)

    async def _send(
        self, method: str, url: URL, body: bytes, headers: CIMultiDict[str], *, watching: bool
    ) -> aiohttp.ClientResponse:
        session = self._watching() if watching else self._requesting()
        try:
            return await session.request(
                method,
                url,
                data=body or None,
                headers=headers,
                timeout=self._watch_timeout if watching else self._timeout,
                allow_redirects=False,
                server_hostname=self._config.tls_server_name or None,
            )
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            self._count(0, method)
            raise Unreachable(f"{method} {url.path}: {_text_of(error)}", sent=False) from error
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            self._count(0, method)
            raise Unreachable(f"{method} {url.path}: {_text_of(error)}") from error

    def _url(self, path: str, params: Mapping[str, str] | None) -> URL:
        text = self._config.server + path
        if params:
            text += _query(*params.items())
        return URL(text, encoded=True)

    async def _made_headers(self, content_type: str, extra: Mapping[str, str] | None) -> CIMultiDict[str]:
        """Return the headers of this request. The common headers are rebuilt only when the token changes."""
        try:
            authorization = await self._config.credential.authorization()
        except ConfigError as error:
            raise Unreachable(str(error), sent=False) from error
        if authorization != self._authorization:
            self._authorization = authorization
            self._made = CIMultiDict({**self._headers, "Authorization": authorization})
        traceparent = current()
        if not content_type and not extra and not traceparent:
            return self._made
        made = self._made.copy()
        if content_type:
            made["Content-Type"] = content_type
        if traceparent:
            made["traceparent"] = traceparent
        made.update(extra or {})
        return made

    def _requesting(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = self._connect(CONNECTIONS)
        return self._session

    def _watching(self) -> aiohttp.ClientSession:
        if self._watches is None:
            self._watches = self._connect(0)
        return self._watches

    def _connect(self, most: int) -> aiohttp.ClientSession:
        """Create a session with at most `most` connections; 0: no limit."""
        tls: ssl.SSLContext | bool = self._config.tls or True
        connector = aiohttp.TCPConnector(
            limit=most,
            limit_per_host=0,
            ssl=tls,
            keepalive_timeout=KEEPALIVE_SECONDS,
            socket_factory=_socket,
        )
        return aiohttp.ClientSession(
            connector=connector,
            proxy=self._config.proxy or None,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            skip_auto_headers=("Accept-Encoding", "Content-Type"),
            trust_env=False,
            read_bufsize=1 << 20,
        )

    def _count(self, code: int, method: str) -> None:
        counter = self._counters.get((code, method))
        if counter is None:
            counter = REQUESTS.labels(str(code) if code else "<error>", self._host, method)
            self._counters[(code, method)] = counter
        counter.inc()


@lru_cache(maxsize=64)
def _query(*params: tuple[str, str]) -> str:
    given = [(key, value) for key, value in params if value]
    return "?" + urlencode(given, quote_via=quote)


def _socket(address: tuple[Any, ...]) -> socket.socket:
    """Create a socket that detects a vanished peer within half a minute, and sends small requests at once."""
    family, kind, protocol = address[0], address[1], address[2]
    made = socket.socket(family, kind, protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if hasattr(socket, "TCP_KEEPIDLE"):
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 15)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 5)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3)
    return made


async def _read(opening: Awaitable[aiohttp.ClientResponse]) -> bytes:
    """Return the body of the response."""
    response = await opening
    try:
        return await response.read()
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise Unreachable(f"{response.method} {response.url.path}: {_text_of(error)}") from error


def _text_of(error: BaseException) -> str:
    return str(error) or type(error).__name__


async def _error(response: aiohttp.ClientResponse) -> Exception:
    """Return the exception for an error response. If its body is incomplete, the status code still counts."""
    try:
        body = await response.read()
    except (aiohttp.ClientError, TimeoutError, OSError):
        body = b""
    try:
        status = msgspec.json.decode(body, type=Status)
    except msgspec.MsgspecError:  # a proxy's page, or plain text
        status = Status(message=body[:512].decode(errors="replace").strip())
    return ApiError(response.status, status.reason, status.message, _retry_after(response), body)


def _retry_after(response: aiohttp.ClientResponse) -> float:
    try:
        return max(float(response.headers.get("Retry-After", "0")), 0.0)
    except ValueError:  # a date, which apiservers do not send
        return 1.0
