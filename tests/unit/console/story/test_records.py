"""Records are read within limits, once each, and from a bus that fails."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pytest

from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.bus import subjects
from flotilla_common.bus.interface import BusError, Message, OnMessage
from flotilla_console.story.records import Limits, Recorded, RecordReader, read
from flotilla_console.story.shared import SHARED_SECONDS
from flotilla_insight.published import Act
from tests.support.fake_bus import matches
from tests.support.fake_clock import FakeClock
from tests.unit.console.story.records_of_rollouts import at, change, decision, write

DEEP = b'{"at":"2026-01-01T00:00:00Z","name":"web","changes":[' + b'{"a":' * 5000 + b"1" + b"}" * 5000 + b"]}"


class Streams:
    """Streams as one list of messages, read in order; the read of each subject begins again once."""

    def __init__(self, *messages: Message, error: str = "", hangs: bool = False) -> None:
        self.messages = messages
        self.error = error
        self.hangs = hangs
        self.reads = 0

    async def scan(self, stream: str, subject_filter: str, on_message: OnMessage, on_reset: Callable[[], None]) -> None:
        self.reads += 1
        for again in (False, True):
            if again:
                on_reset()
            for message in self.messages:
                if message.subject.startswith(stream) and matches(subject_filter, message.subject):
                    on_message(message)
        if self.error and stream == subjects.ACT_STREAM.name:
            raise BusError(self.error)
        if self.hangs:
            await asyncio.Event().wait()

    async def get_oldest(self, stream: str) -> Message | None:
        found = [message for message in self.messages if message.subject.startswith(stream)]
        return found[0] if found else None


def stored(*records: Any) -> list[Message]:
    return [_message(number, record) for number, record in enumerate(records, 1)]


def _message(sequence: int, record: Any) -> Message:
    place = "shop.web"
    if isinstance(record, bytes):
        subject = f"act.v1.cloneset.pods.{place}-1"
    elif isinstance(record, Act):
        plural = {"Pod": "pods", "CloneSet": "clonesets"}[record.kind]
        subject = f"act.v1.{record.service}.{plural}.shop.{record.name}"
    else:
        subject = f"decisions.v1.clonesets.{place}"
    data = record if isinstance(record, bytes) else msgspec.json.encode(record)
    return Message(subject=subject, data=data, sequence=sequence, stored_at=at(sequence).timestamp())


async def found(messages: Sequence[Message], limits: Limits | None = None, **more: Any) -> Recorded:
    return await read(Streams(*messages, **more), CLONE_SET, "shop", "web", limits)


async def test_each_record_comes_once_in_the_order_of_the_stream() -> None:
    records = [change(0), write(1, "web-1"), decision(2), write(3, "web-2")]
    recorded = await found(stored(*records))
    assert recorded.acts == (records[0], records[1], records[3])
    assert recorded.decisions == (records[2],)
    assert (recorded.cut, recorded.unreadable, recorded.error) == (0, 0, "")
    assert recorded.begins == at(3)


async def test_records_of_other_workloads_are_left_out() -> None:
    other = write(
        1,
        "webster-1",
        owner=msgspec.convert({"kind": "CloneSet", "namespace": "shop", "name": "webster"}, type(change(0).owner)),
    )
    assert (await found(stored(other))).acts == ()


async def test_the_newest_records_are_kept_and_the_others_counted() -> None:
    records = [write(number, f"web-{number}") for number in range(10)]
    recorded = await found(stored(*records), Limits(records=3))
    assert recorded.acts == tuple(records[-3:])
    assert recorded.cut == 7
    size = len(msgspec.json.encode(records[0]))
    assert len((await found(stored(*records), Limits(bytes=4 * size))).acts) == 4


async def test_what_cannot_be_decoded_is_counted() -> None:
    hostile = [b'{"web":', b'{"at":"web"}', b'"web"', DEEP, b"\xff\xfe web"]
    recorded = await found(stored(*hostile, write(9, "web-9")))
    assert [act.name for act in recorded.acts] == ["web-9"]
    assert recorded.unreadable == len(hostile)


async def test_a_bus_that_fails_leaves_what_was_read() -> None:
    recorded = await found(stored(decision(1), write(2, "web-1")), error="no responders")
    assert recorded.error == "the records could not be read: no responders"
    assert len(recorded.decisions) == 1


async def test_a_bus_that_hangs_ends_the_read() -> None:
    recorded = await found(stored(decision(1)), Limits(seconds=0.01), hangs=True)
    assert recorded.error == "the records were not read to their end within 0.01 s"
    assert len(recorded.decisions) == 1


async def test_viewers_share_a_read_for_a_while() -> None:
    clock, bus = FakeClock(), Streams(*stored(decision(1)))
    reader = RecordReader(bus, clock)
    first, second = await asyncio.gather(*(reader.read(CLONE_SET, "shop", "web") for _ in range(2)))
    assert first is second
    reads = bus.reads
    await clock.sleep(SHARED_SECONDS + 1)
    assert await reader.read(CLONE_SET, "shop", "web") is not first
    assert bus.reads == 2 * reads


async def test_a_viewer_who_leaves_does_not_end_the_read_of_others() -> None:
    reader = RecordReader(Streams(*stored(decision(1))), FakeClock())
    leaving = asyncio.create_task(reader.read(CLONE_SET, "shop", "web"))
    staying = asyncio.create_task(reader.read(CLONE_SET, "shop", "web"))
    await asyncio.sleep(0)
    leaving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaving
    assert len((await staying).decisions) == 1
