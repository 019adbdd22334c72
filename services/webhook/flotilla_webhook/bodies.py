"""Bodies of requests, read raw: so much of one, and so much of all that are in memory at the same time.

A body is held from its first byte until its request is answered. What finds no room is sent away to come again in a
second, which the apiserver does by itself for as long as it waits for an answer; so senders of large bodies cost others
a moment, and never the process its memory.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext

from fastapi import HTTPException, Request

MAX_BODY = 7 << 20
"""Bytes. An AdmissionReview of an update carries the object twice, and etcd holds at most 1.5 MiB of it."""

MAX_BODIES = 64 << 20
"""Bytes of all bodies together: nine of the largest, or thousands of the usual ones of some ten KiB. What is decoded
of them takes a few times as much."""

LARGE = 1 << 18
"""Bytes. Bodies beyond are worked on one after the other: decoded, one of them may take a hundred MiB."""

_AGAIN_SECONDS = "1"


class Bodies:
    """The bodies that are being read or answered."""

    def __init__(self, limit: int = MAX_BODIES) -> None:
        self.limit = limit
        self.held = 0
        self._large = asyncio.Lock()

    @asynccontextmanager
    async def of(self, request: Request) -> AsyncGenerator[bytes]:
        """The body of a request, for as long as it is needed. Raises HTTPException: 400, 413, 429."""
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
        """Return what is held while a body is worked on: a large one waits for the one before it."""
        return self._large if len(body) > LARGE else nullcontext()

    def _take(self, size: int) -> None:
        if self.held + size > self.limit:
            told = f"no room: the bodies of other requests take {self.held} of {self.limit} bytes"
            raise HTTPException(429, told, {"Retry-After": _AGAIN_SECONDS})
        self.held += size


def _check_type(request: Request) -> None:
    content_type = request.headers.get("content-type", "").partition(";")[0].strip()
    if content_type != "application/json":
        raise HTTPException(400, f"contentType={content_type}, expected application/json")
