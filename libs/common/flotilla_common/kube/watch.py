"""Parses the lines of a watch into events.

The response to a watch is one JSON document per line, of any size, in chunks with arbitrary boundaries. A busy watch is
read at most twenty times a second: the events of one read are published, stored, delivered and handled together, with
one wake-up of every process on the way instead of one per event. The list with which a watch may begin is read as fast
as it comes.
"""

from collections.abc import AsyncGenerator, AsyncIterator
from typing import Protocol

import msgspec

from flotilla_common.clock import Clock
from flotilla_common.kube.interface import ApiError, Unreachable, WatchEvent

BREATH_SECONDS = 0.05
"""Seconds between two reads of a busy watch. An event after a pause is read at once.

The delay is small: a kubelet takes twenty times as long to start a container.
"""

LIST_END = "k8s.io/initial-events-end"
"""The annotation of the bookmark that ends the list with which a watch begins."""

_decode_event = msgspec.json.Decoder(WatchEvent).decode


class _BookmarkMeta(msgspec.Struct, frozen=True):
    annotations: dict[str, str] | None = None


class _Bookmark(msgspec.Struct, frozen=True):
    metadata: _BookmarkMeta = _BookmarkMeta()


_decode_bookmark = msgspec.json.Decoder(_Bookmark).decode


class Status(msgspec.Struct, frozen=True):
    """The parts of a Status that an error is made of."""

    code: int = 500
    reason: str = ""
    message: str = ""


class Chunks(Protocol):
    """The body of a response as it arrives; an empty chunk is its end."""

    async def readany(self) -> bytes: ...


class Unhurried:
    """Chunks of a busy body, read at intervals of BREATH_SECONDS, except while `hurried`."""

    def __init__(self, chunks: Chunks, clock: Clock) -> None:
        self.hurried = False
        self._chunks = chunks
        self._clock = clock
        self._due = clock.monotonic()

    async def readany(self) -> bytes:
        early = self._due - self._clock.monotonic()
        if early > 0 and not self.hurried:
            await self._clock.sleep(early)
        chunk = await self._chunks.readany()
        self._due = self._clock.monotonic() + BREATH_SECONDS
        return chunk


async def lines(chunks: Chunks) -> AsyncIterator[bytes]:
    """Yield whole lines. Raises Unreachable when the body ends within a line."""
    parts: list[bytes] = []
    while chunk := await chunks.readany():
        pieces = chunk.split(b"\n")
        parts.append(pieces[0])
        for piece in pieces[1:]:
            yield parts[0] if len(parts) == 1 else b"".join(parts)
            parts = [piece]
    if any(parts):
        raise Unreachable("the watch ended within an event")


async def watch_events(chunks: Chunks) -> AsyncGenerator[WatchEvent]:
    """Yield decoded events. Raises ApiError for an ERROR event: code 410 means that the history is gone."""
    async for line in lines(chunks):
        if not line:
            continue
        try:
            event = _decode_event(line)
        except msgspec.MsgspecError as error:
            raise Unreachable(f"the watch sent an invalid event: {error}") from error
        if event.type == "ERROR":
            status = msgspec.json.decode(event.object, type=Status)
            raise ApiError(status.code, status.reason, status.message, body=bytes(event.object))
        yield event


async def stream_events(chunks: Unhurried) -> AsyncGenerator[WatchEvent]:
    """Yield the same of a watch that begins with a list, which is read without pauses."""
    chunks.hurried = True
    async for event in watch_events(chunks):
        chunks.hurried = chunks.hurried and not ends_list(event)
        yield event


def ends_list(event: WatchEvent) -> bool:
    """Report whether the event is the bookmark that ends the list with which a watch begins."""
    if event.type != "BOOKMARK":
        return False
    annotations = _decode_bookmark(event.object).metadata.annotations
    return annotations is not None and annotations.get(LIST_END) == "true"


def bookmark(version: str, *, ends_list: bool = False) -> msgspec.Raw:
    """Return the object of a bookmark, such as the one with which a watch begins."""
    annotations = {"annotations": {LIST_END: "true"}} if ends_list else {}
    return msgspec.Raw(msgspec.json.encode({"metadata": {"resourceVersion": version} | annotations}))
