"""The faults that a proxy can apply to a request of an apiserver's client, or to its answer (see fault_proxy)."""

import asyncio
from collections.abc import AsyncIterator, Mapping

import msgspec
from aiohttp import web

from tests.support.fault_proxy import Fault, Reset, Spoilt


class _Late(Fault):
    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    async def before(self, spoilt: Spoilt, request: web.Request) -> None:
        await spoilt.strike()
        await asyncio.sleep(self._seconds)


class _ResetBefore(Fault):
    async def before(self, spoilt: Spoilt, request: web.Request) -> None:
        await spoilt.strike()
        raise Reset


class _ResetAfter(Fault):
    async def after(self, spoilt: Spoilt) -> None:
        await spoilt.strike()
        raise Reset


class _Swallowed(Fault):
    async def before(self, spoilt: Spoilt, request: web.Request) -> None:
        await spoilt.strike()
        await spoilt.over.wait()
        raise Reset


class _Answer(Fault):
    def __init__(self, code: int, headers: Mapping[str, str]) -> None:
        self._code = code
        self._headers = headers

    async def before(self, spoilt: Spoilt, request: web.Request) -> web.Response:
        await spoilt.strike()
        status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "spoilt", "code": self._code}
        return web.Response(
            status=self._code, headers=self._headers, body=msgspec.json.encode(status), content_type="application/json"
        )


class _BrokenOff(Fault):
    def __init__(self, after: int) -> None:
        self._after = after

    async def body(self, spoilt: Spoilt, pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        left = self._after
        async for piece in pieces:
            left -= len(piece)
            if left > 0:
                yield piece
                continue
            yield piece[: len(piece) + left].removesuffix(b"\n")
            await spoilt.strike()
            raise Reset


class _Dripping(Fault):
    def __init__(self, size: int, pause: float) -> None:
        self._size = size
        self._pause = pause

    async def body(self, spoilt: Spoilt, pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        async for piece in pieces:
            for start in range(0, len(piece), self._size):
                if not spoilt.over.is_set():
                    await spoilt.strike()
                    await asyncio.sleep(self._pause)
                yield piece[start : start + self._size]


def late(seconds: float) -> Fault:
    """Delay the request by this many seconds."""
    return _Late(seconds)


def reset_before() -> Fault:
    """Reset the connection; the request never arrives."""
    return _ResetBefore()


def reset_after() -> Fault:
    """Have the apiserver process the request, and reset the connection before the answer."""
    return _ResetAfter()


def swallowed() -> Fault:
    """Drop the request without an answer until the fault is over; then reset the connection."""
    return _Swallowed()


def answer(code: int, headers: Mapping[str, str]) -> Fault:
    """Refuse the request with this code, as the apiserver would."""
    return _Answer(code, headers)


def broken_off(after: int) -> Fault:
    """End the body after this many bytes, in the middle of a line."""
    return _BrokenOff(after)


def dripping(size: int, pause: float) -> Fault:
    """Send the body in pieces of `size` bytes, `pause` seconds apart, until the fault is over."""
    return _Dripping(size, pause)
