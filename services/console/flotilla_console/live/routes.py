"""The live stream over HTTP: `GET /live` is the stream, `POST /live/<stream>/views` names the pages to show in it."""

from collections.abc import AsyncGenerator

import msgspec
import structlog
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from flotilla_common.clock import Clock
from flotilla_common.kube.interface import ApiError, Unreachable
from flotilla_console.access.identity import Identity
from flotilla_console.live.events import SignedOut, encoded
from flotilla_console.live.hub import Hub, Reader, Stream, TooManyStreams, position_in
from flotilla_console.web.access import Sights, SignIn, SignInNeeded

CHECK_SECONDS = 10.0
"""Seconds between two checks of what the reader of an open stream may see."""
UNCHECKED_SECONDS = 60.0
"""Seconds for which a stream stays open while that cannot be checked."""
MAX_BODY = 1 << 16

_log = structlog.get_logger()


class Wanted(msgspec.Struct, frozen=True):
    """The pages that all tabs of a browser show."""

    paths: tuple[str, ...]


class Live:
    """The two routes."""

    def __init__(self, hub: Hub, sign_in: SignIn, sights: Sights, clock: Clock) -> None:
        self._hub, self._sign_in, self._sights, self._clock = hub, sign_in, sights, clock

    def routes(self) -> list[BaseRoute]:
        """Return the routes."""
        return [
            Route("/live", self.stream, methods=["GET"]),
            Route("/live/{stream}/views", self.views, methods=["POST"]),
        ]

    async def stream(self, request: Request) -> Response:
        """Answer with the stream: a new one, or the one before from the last event that the browser has."""
        try:
            identity = await self._sign_in.identify(request)
            if not isinstance(identity, Identity):
                return _signed_out(identity)
            sight = await self._sights.sight_of(identity)
        except (ApiError, Unreachable) as failure:
            _log.warning("cannot open a stream", error=str(failure))
            return _refused(503, "the apiserver does not answer")
        found = position_in(request.headers.get("last-event-id", ""))
        stream = None if found is None else self._hub.find(found[0], identity)
        if stream is not None:
            self._hub.use(stream, identity, sight)
        else:
            try:
                stream, found = self._hub.open(identity, sight), None
            except TooManyStreams:
                return _refused(429, "too many streams are open")
        reader = Reader(self._hub, stream, 0 if found is None else found[1], self._clock)
        # Proxies must not collect events before they pass them on.
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        return StreamingResponse(self._events(request, stream, reader), media_type="text/event-stream", headers=headers)

    async def views(self, request: Request) -> Response:
        """Make the pages in the body those of the stream."""
        if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            return _refused(415, "the body must be application/json")  # forms of other sites cannot send it
        try:
            identity = await self._sign_in.identify(request)
            wanted = msgspec.json.decode(await _body(request), type=Wanted)
        except (ApiError, Unreachable) as failure:
            _log.warning("cannot change a stream", error=str(failure))
            return _refused(503, "the apiserver does not answer")
        except (msgspec.MsgspecError, ClientDisconnect, ValueError) as failure:
            return _refused(400, str(failure))
        if not isinstance(identity, Identity):
            return _signed_out(identity)
        stream = self._hub.find(request.path_params["stream"], identity)
        if stream is None:
            return _refused(404, "there is no such stream")
        self._hub.show(stream, wanted.paths)
        return Response(status_code=204)

    async def _events(self, request: Request, stream: Stream, reader: Reader) -> AsyncGenerator[bytes]:
        checked = self._clock.monotonic()
        try:
            while reader.is_current:
                # Beats wake the reader every few seconds.
                if self._clock.monotonic() >= checked + CHECK_SECONDS:
                    signed_out = await self._check(request, stream)
                    if signed_out is None:
                        checked = self._clock.monotonic()
                    elif signed_out.reason or self._clock.monotonic() >= checked + UNCHECKED_SECONDS:
                        self._hub.close(stream)
                        yield encoded("signin", signed_out)
                        return
                if (events := reader.take()) != b"":
                    yield events
                await stream.news.wait()
        finally:
            reader.leave()

    async def _check(self, request: Request, stream: Stream) -> SignedOut | None:
        """Apply what the reader may see now. Return None, or why they may not read on; no reason: it is unknown."""
        try:
            identity = await self._sign_in.identify(request)
            if not isinstance(identity, Identity):
                return SignedOut(identity.reason or "Signed out.", identity.href)
            self._hub.use(stream, identity, await self._sights.sight_of(identity))
        except (ApiError, Unreachable) as failure:
            _log.warning("cannot check the reader of a stream", error=str(failure))
            return SignedOut("", "")
        return None


async def _body(request: Request) -> bytes:
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BODY:
            raise ValueError("the body is too large")
    return bytes(body)


def _signed_out(needed: SignInNeeded) -> Response:
    return JSONResponse({"reason": needed.reason, "href": needed.href}, 401)


def _refused(status: int, reason: str) -> Response:
    return JSONResponse({"reason": reason}, status)
