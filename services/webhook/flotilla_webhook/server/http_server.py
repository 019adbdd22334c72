"""The HTTP server: one POST route per webhook path, /convert, /healthz (webhooks.md §1).

Bodies are read with a per-request and a global size limit. The handlers produce the answers. A handler that fails
refuses its request and nothing else: the process continues.

The number and the duration of connections are limited: the apiserver keeps a handful and sends its requests at once.
Other clients of the port could connect, send nothing or a body byte by byte, and hold sockets and memory indefinitely:
uvicorn only closes connections that are idle after an answer.
"""

import asyncio
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from functools import partial
from typing import Any

import structlog
from fastapi import FastAPI, HTTPException, Request, Response
from starlette.requests import ClientDisconnect
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from flotilla_common.api.admission.review import error
from flotilla_common.api.jsontext import TOO_DEEP, is_too_deep
from flotilla_common.api.webhooks import CONVERT_PATH
from flotilla_common.clock import Clock
from flotilla_webhook.metrics import Metrics
from flotilla_webhook.server import reviews
from flotilla_webhook.server.reviews import Handler

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

_UNKNOWN_CALLER = Response("only the apiserver is served, with its client certificate", 403, media_type="text/plain")

Converter = Callable[[bytes], bytes]

_log = structlog.get_logger()

MAX_BODY = 7 << 20
"""Size limit of a body in bytes: an update has the object twice, and etcd holds at most 1.5 MiB of it."""

MAX_BODIES = 64 << 20
"""Size limit of all bodies together: nine of the largest, or thousands of the usual ones of some ten KiB.

Decoded, they take a few times as much.
"""

LARGE = 1 << 18
"""Size in bytes from which bodies are processed one at a time: decoded, one may take a hundred MiB."""

_AGAIN_SECONDS = "1"
_CLIENT_CLOSED_REQUEST = 499


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


class BodyReader:
    """The bodies that are being read or answered.

    A body is counted from its first byte until its request is answered. A request that finds no room is answered with a
    retry in a second, which the apiserver does for as long as it waits for an answer; so senders of large bodies delay
    others a little, and cannot exhaust the memory of the process.
    """

    def __init__(self, limit: int = MAX_BODIES) -> None:
        self.limit = limit
        self.held = 0
        self._large = asyncio.Lock()

    @asynccontextmanager
    async def of(self, request: Request) -> AsyncGenerator[bytes]:
        """Read the body of a request, and count it until the block ends. Raises HTTPException: 400, 413, 429."""
        _check_type(request)
        body = bytearray()
        try:
            async for chunk in request.stream():
                if len(body) + len(chunk) > MAX_BODY:
                    raise HTTPException(413, f"the body is larger than {MAX_BODY} bytes")
                self._take(len(chunk))
                body += chunk
            if not body:
                raise HTTPException(400, "request body is empty")
            yield bytes(body)
        finally:
            self.held -= len(body)

    def turn(self, body: bytes) -> AbstractAsyncContextManager[None]:
        """Return the lock to hold while a body is processed: a large one waits for the one before it."""
        return self._large if len(body) > LARGE else nullcontext()

    def _take(self, size: int) -> None:
        if self.held + size > self.limit:
            message = f"no room: the bodies of other requests take {self.held} of {self.limit} bytes"
            raise HTTPException(429, message, {"Retry-After": _AGAIN_SECONDS})
        self.held += size


def _check_type(request: Request) -> None:
    content_type = request.headers.get("content-type", "").partition(";")[0].strip()
    if content_type != "application/json":
        raise HTTPException(400, f"contentType={content_type}, expected application/json")


def build(
    handlers: Mapping[str, Handler],
    convert: Converter,
    metrics: Metrics,
    clock: Clock,
    bodies: BodyReader | None = None,
    *,
    callers: Collection[str] = (),
) -> FastAPI:
    """Return the application that serves the given paths.

    `bodies` limits what it keeps in memory. Where client certificates are requested, `callers` are the accepted common
    names; empty: all.
    """
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
    held = bodies or BodyReader()

    def serve(path: str, answer: Callable[[bytes], Awaitable[bytes]], *, guarded: bool = True) -> None:
        async def endpoint(request: Request) -> Response:
            started = clock.monotonic()
            with metrics.in_flight.labels(path).track_inprogress():
                unknown_caller = guarded and _is_unknown_caller(request, callers)
                response = _UNKNOWN_CALLER if unknown_caller else await _respond(request, held, answer)
            metrics.latency.labels(path).observe(clock.monotonic() - started)
            metrics.requests.labels(path, str(response.status_code)).inc()
            return response

        app.add_route(path, endpoint, methods=["POST"])

    async def healthz(_: Request) -> Response:
        return Response("ok", media_type="text/plain")

    async def admit(path: str, handler: Handler, body: bytes) -> bytes:
        async with held.turn(body):
            return await _admit(path, handler, body)

    for path, handler in handlers.items():
        serve(path, partial(admit, path, handler))
    # The apiserver shows no certificate for conversions; they use no right of ours. They also take no lock: an
    # admission that reads objects of an older version may wait for one.
    serve(CONVERT_PATH, partial(_convert, convert), guarded=False)
    app.add_route("/healthz", healthz, methods=["GET"])
    return app


def _is_unknown_caller(request: Request, callers: Collection[str]) -> bool:
    """Report whether the client should have shown a certificate of the apiserver, and has not."""
    shown: frozenset[str] | None = request.scope.get("state", {}).get(CALLER)
    return shown is not None and not (shown.intersection(callers) if callers else shown)


async def _respond(request: Request, bodies: BodyReader, answer: Callable[[bytes], Awaitable[bytes]]) -> Response:
    try:
        async with bodies.of(request) as body:
            return Response(await answer(body), media_type="application/json")
    except HTTPException as bad:
        return Response(bad.detail, bad.status_code, bad.headers, media_type="text/plain")
    except ClientDisconnect:
        # An apiserver that runs out of time, or dies, closes its connections: the code is for the metrics alone.
        return Response(status_code=_CLIENT_CLOSED_REQUEST)


async def _admit(path: str, handler: Handler, body: bytes) -> bytes:
    try:
        if (refusal := reviews.refused_unread(body)) is not None:
            return refusal
        version, request = reviews.decode(body)
    except (ValueError, RecursionError) as fault:
        raise HTTPException(400, f"couldn't decode the AdmissionReview: {fault}") from fault
    if is_too_deep(request.object):
        return reviews.encode(version, request.uid, error(400, f"the object is {TOO_DEEP}"))
    try:
        answer = await handler(request)
    except Exception as fault:  # noqa: BLE001 - a broken handler must refuse, not take the server down
        _log.exception("webhook handler failed", path=path, namespace=request.namespace, name=request.name)
        answer = error(500, f"panic: {fault} [recovered]")
    return reviews.encode(version, request.uid, answer)


async def _convert(convert: Converter, body: bytes) -> bytes:
    try:
        return convert(body)
    except (ValueError, RecursionError) as fault:
        raise HTTPException(400, f"couldn't decode the ConversionReview: {fault}") from fault
