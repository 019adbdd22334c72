"""Watch lines: chunks end anywhere, lines may be huge, half a line is no event."""

import msgspec
import pytest

from flotilla_common.kube.interface import ApiError, Unreachable, WatchEvent
from flotilla_common.kube.watch import watch_events


class Body:
    def __init__(self, data: bytes, size: int) -> None:
        self._chunks = [data[start : start + size] for start in range(0, len(data), size)]

    async def readany(self) -> bytes:
        return self._chunks.pop(0) if self._chunks else b""


def line(kind: str, /, **members: object) -> bytes:
    return msgspec.json.encode({"type": kind, "object": members}) + b"\n"


async def read(data: bytes, size: int) -> list[WatchEvent]:
    return [event async for event in watch_events(Body(data, size))]


@pytest.mark.parametrize("size", [1, 7, 64, 1 << 20])
async def test_events_across_chunks(size: int) -> None:
    data = line("ADDED", a=1) + b"\n" + line("BOOKMARK", b=2) + line("DELETED", c="x" * 200)
    events = await read(data, size)
    assert [event.type for event in events] == ["ADDED", "BOOKMARK", "DELETED"]
    assert msgspec.json.decode(events[0].object) == {"a": 1}


async def test_a_line_of_nine_megabytes() -> None:
    events = await read(line("ADDED", a="x" * (9 << 20)), 1 << 16)
    assert len(events[0].object) > 9 << 20


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (line("ADDED", a=1)[:-5], "broke off"),
        (line("ADDED", a=1)[:-1], "broke off"),
        (b"<html>\n", "something else"),
    ],
    ids=["half a line", "no newline", "no event"],
)
async def test_what_is_no_event(data: bytes, why: str) -> None:
    with pytest.raises(Unreachable, match=why):
        await read(data, 5)


async def test_an_error_event_is_an_error() -> None:
    with pytest.raises(ApiError) as error:
        await read(line("ERROR", kind="Status", code=410, reason="Expired", message="too old"), 50)
    assert (error.value.code, error.value.reason, error.value.message) == (410, "Expired", "too old")
