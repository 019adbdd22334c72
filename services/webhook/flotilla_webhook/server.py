"""The HTTP side: one POST route per webhook path, /convert, /healthz (webhooks.md §1).

Bodies are read raw and bounded; what an answer is, the handlers decide. A handler that breaks refuses its request and
nothing else: the process goes on.
"""

from collections.abc import Awaitable, Callable, Mapping

import structlog
from fastapi import FastAPI, Request, Response

from flotilla_common.api.admission import review
from flotilla_common.api.webhooks import CONVERT_PATH
from flotilla_common.clock import Clock
from flotilla_webhook import wire
from flotilla_webhook.metrics import Metrics
from flotilla_webhook.wire import Handler

MAX_BODY = 7 << 20
"""Bytes. An AdmissionReview of an update carries the object twice, and etcd holds at most 1.5 MiB of it."""

Converter = Callable[[bytes], bytes]
_log = structlog.get_logger()


class BadBody(Exception):
    """The request's body is not what a webhook is sent; `code` is the HTTP code."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


def build(handlers: Mapping[str, Handler], convert: Converter, metrics: Metrics, clock: Clock) -> FastAPI:
    """The application that answers the given paths."""
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
    server = _Server(metrics, clock)
    for path, handler in handlers.items():
        app.add_route(path, server.route(path, _admission(path, handler)), methods=["POST"])
    app.add_route(CONVERT_PATH, server.route(CONVERT_PATH, _conversion(convert)), methods=["POST"])
    app.add_route("/healthz", _healthz, methods=["GET"])
    return app


async def _healthz(_: Request) -> Response:
    return Response("ok", media_type="text/plain")


def _admission(path: str, handler: Handler) -> Callable[[bytes], Awaitable[bytes]]:
    async def answer(body: bytes) -> bytes:
        try:
            version, request = wire.decode(body)
        except ValueError as fault:
            raise BadBody(400, f"couldn't decode the AdmissionReview: {fault}") from fault
        return wire.encode(version, request.uid, await _guarded(path, handler, request))

    return answer


async def _guarded(path: str, handler: Handler, request: review.Request) -> review.Answer:
    try:
        return await handler(request)
    except Exception as fault:  # noqa: BLE001 - a broken handler must refuse, not take the server down
        _log.exception("webhook handler failed", path=path, namespace=request.namespace, name=request.name)
        return review.error(500, f"panic: {fault} [recovered]")


def _conversion(convert: Converter) -> Callable[[bytes], Awaitable[bytes]]:
    async def answer(body: bytes) -> bytes:
        try:
            return convert(body)
        except ValueError as fault:
            raise BadBody(400, f"couldn't decode the ConversionReview: {fault}") from fault

    return answer


class _Server:
    """What all routes share: bounds, and the metrics by path."""

    def __init__(self, metrics: Metrics, clock: Clock) -> None:
        self.metrics = metrics
        self.clock = clock

    def route(self, path: str, answer: Callable[[bytes], Awaitable[bytes]]) -> Callable[[Request], Awaitable[Response]]:
        async def endpoint(request: Request) -> Response:
            started = self.clock.monotonic()
            with self.metrics.in_flight.labels(path).track_inprogress():
                response = await _respond(request, answer)
            self.metrics.latency.labels(path).observe(self.clock.monotonic() - started)
            self.metrics.requests.labels(path, str(response.status_code)).inc()
            return response

        return endpoint


async def _respond(request: Request, answer: Callable[[bytes], Awaitable[bytes]]) -> Response:
    try:
        return Response(await answer(await _body(request)), media_type="application/json")
    except BadBody as bad:
        return Response(str(bad), bad.code, media_type="text/plain")


async def _body(request: Request) -> bytes:
    content_type = request.headers.get("content-type", "").partition(";")[0].strip()
    if content_type != "application/json":
        raise BadBody(400, f"contentType={content_type}, expected application/json")
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BODY:
            raise BadBody(413, f"the body is larger than {MAX_BODY} bytes")
    if not body:
        raise BadBody(400, "request body is empty")
    return bytes(body)
