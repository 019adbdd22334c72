"""Watch lines: chunks end anywhere, lines may be huge, half a line is no event."""

import msgspec
import pytest

from flotilla_common.kube.interface import ApiError, Unreachable, WatchEvent
from flotilla_common.kube.watch import BREATH_SECONDS, Unhurried, bookmark, ends_list, stream_events, watch_events
from tests.unit.control.fakes import ManualClock


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
        (line("ADDED", a=1)[:-5], "ended within"),
        (line("ADDED", a=1)[:-1], "ended within"),
        (b"<html>\n", "invalid event"),
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


class Trickle:
    """A stream that grows by one byte every millisecond, read all at once."""

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock
        self._read = 0

    async def readany(self) -> bytes:
        come = round((self._clock.elapsed - 1000) / 0.001)
        chunk, self._read = b"x" * (come - self._read), come
        return chunk


async def test_a_busy_watch_is_read_a_breath_at_a_time() -> None:
    clock = ManualClock()
    chunks = Unhurried(Trickle(clock), clock)
    clock.advance(0.003)
    assert len(await chunks.readany()) == 3, "the first look waits for nothing"
    assert [len(await chunks.readany()) for _ in range(5)] == [BREATH_SECONDS * 1000] * 5


async def test_what_comes_after_a_pause_is_read_at_once() -> None:
    clock = ManualClock()
    chunks = Unhurried(Trickle(clock), clock)
    await chunks.readany()
    clock.advance(BREATH_SECONDS * 3)
    before = clock.elapsed
    await chunks.readany()
    assert clock.elapsed == before


def bookmark_line(version: str, *, ends_list: bool = False) -> bytes:
    return line("BOOKMARK", **msgspec.json.decode(bookmark(version, ends_list=ends_list)))


async def test_the_list_of_a_stream_is_read_as_fast_as_it_comes() -> None:
    clock = ManualClock()
    data = line("ADDED", a=1) * 500 + bookmark_line("7", ends_list=True) + line("MODIFIED", b=1) * 100
    chunks = Unhurried(Body(data, 1000), clock)
    began, ended = clock.elapsed, 0.0
    async for event in stream_events(chunks):
        if ends_list(event):
            ended = clock.elapsed
    assert ended == began
    assert clock.elapsed > ended + BREATH_SECONDS


@pytest.mark.parametrize(
    ("event", "ends"),
    [
        (WatchEvent("BOOKMARK", bookmark("7", ends_list=True)), True),
        (WatchEvent("BOOKMARK", bookmark("7")), False),
        (WatchEvent("BOOKMARK", msgspec.Raw(b'{"metadata":{"annotations":{"other":"true"}}}')), False),
        (WatchEvent("BOOKMARK", msgspec.Raw(b'{"metadata":{"annotations":null}}')), False),
        (WatchEvent("ADDED", bookmark("7", ends_list=True)), False),
    ],
    ids=["end", "plain", "other annotation", "null", "an object's annotation"],
)
def test_the_end_of_a_list(event: WatchEvent, ends: bool) -> None:
    assert ends_list(event) is ends
