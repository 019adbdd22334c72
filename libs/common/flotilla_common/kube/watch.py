"""The lines of a watch as events.

A watch answers with one JSON document per line, each of any size, in chunks that end anywhere.
"""

from collections.abc import AsyncIterator
from typing import Protocol

import msgspec

from flotilla_common.kube.interface import ApiError, Unreachable, WatchEvent

_decode_event = msgspec.json.Decoder(WatchEvent).decode


class _Status(msgspec.Struct, frozen=True):
    code: int = 500
    reason: str = ""
    message: str = ""


class Chunks(Protocol):
    """The body of a response as it arrives; an empty chunk is its end."""

    async def readany(self) -> bytes: ...


async def lines(chunks: Chunks) -> AsyncIterator[bytes]:
    """Whole lines. Raises Unreachable when the body ends within one."""
    parts: list[bytes] = []
    while chunk := await chunks.readany():
        pieces = chunk.split(b"\n")
        parts.append(pieces[0])
        for piece in pieces[1:]:
            yield parts[0] if len(parts) == 1 else b"".join(parts)
            parts = [piece]
    if any(parts):
        raise Unreachable("the watch broke off within an event")


async def watch_events(chunks: Chunks) -> AsyncIterator[WatchEvent]:
    """Decoded events. An ERROR event becomes ApiError: code 410 says that the history is gone."""
    async for line in lines(chunks):
        if not line:
            continue
        try:
            event = _decode_event(line)
        except msgspec.MsgspecError as error:
            raise Unreachable(f"the watch sent something else than an event: {error}") from error
        if event.type == "ERROR":
            status = msgspec.json.decode(event.object, type=_Status)
            raise ApiError(status.code, status.reason, status.message, body=bytes(event.object))
        yield event


def bookmark(version: str) -> msgspec.Raw:
    """The object of a bookmark that says where a watch begins."""
    return msgspec.Raw(msgspec.json.encode({"metadata": {"resourceVersion": version}}))
