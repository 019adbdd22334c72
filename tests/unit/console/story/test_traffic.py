"""The messages about an object: each once, the newest kept, and from a bus that fails."""

import asyncio
from collections.abc import Callable, Sequence
from typing import cast

import pytest

from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.resources import POD
from flotilla_common.bus import subjects
from flotilla_common.bus.interface import BusError, Message, OnMessage
from flotilla_common.bus.nats import NatsBus
from flotilla_console.story import traffic
from flotilla_console.story.traffic import MOST_LINES, Traffic, TrafficReader
from tests.support.fake_bus import matches
from tests.support.fake_clock import FakeClock

DEEP = b'{"a":' * 5000 + b"1" + b"}" * 5000


class Streams:
    """Messages of all streams; the read of each begins again once."""

    def __init__(self, *messages: Message, error: str = "", hangs: bool = False) -> None:
        self.messages, self.error, self.hangs = messages, error, hangs

    async def get_last(self, stream: str, subject: str) -> Message | None:
        return Message(subject=subject, data=b'{"epoch":"0.a","state":"synced","rv":"9","shards":2}')

    async def scan(self, stream: str, subject_filter: str, on_message: OnMessage, on_reset: Callable[[], None]) -> None:
        for again in (False, True):
            if again:
                on_reset()
            for message in self.messages:
                if matches(subject_filter, message.subject):
                    on_message(message)
        if self.error:
            raise BusError(self.error)
        if self.hangs:
            await asyncio.Event().wait()


async def about_pod(*messages: Message, error: str = "", hangs: bool = False) -> Traffic:
    bus = cast("NatsBus", Streams(*messages, error=error, hangs=hangs))
    return await TrafficReader(bus, FakeClock()).read(POD, "shop", "web-1")


def act(sequence: int, outcome: str = "Ok", subject: str = "act.v1.cloneset.pods.shop.web-1") -> Message:
    body = f'{{"service":"cloneset","kind":"Pod","name":"web-1","action":"patch","outcome":"{outcome}"}}'
    return Message(subject=subject, data=body.encode(), sequence=sequence, stored_at=1000.0 + sequence)


def version(sequence: int, shard: str = "pods") -> Message:
    subject = f"kube.v1.core.{shard}.shop.web-1.CloneSet_apps_kruise_io.3.-"
    headers = {subjects.OP: subjects.MODIFIED, subjects.RV: str(sequence)}
    return Message(subject=subject, data=b"{}", headers=headers, sequence=sequence, stored_at=1000.0 + sequence)


def words(found: Traffic) -> Sequence[str]:
    return [f"{line.stream} {line.what} {line.outcome}" for line in found.lines]


async def test_messages_of_all_streams_come_by_time_the_newest_first() -> None:
    found = await about_pod(act(1), version(2), act(3, "Conflict"), act(9, subject="act.v1.cloneset.pods.shop.web-2"))
    assert words(found) == ["act patch Conflict", "kube modified rv 2", "act patch Ok"]


async def test_the_newest_messages_are_kept_and_the_others_counted() -> None:
    found = await about_pod(*map(act, range(1, MOST_LINES + 4)))
    assert (len(found.lines), found.cut) == (MOST_LINES, 3)
    assert found.lines[-1].at.timestamp() == 1004


@pytest.mark.parametrize("body", [b"{", DEEP, b"\xff", b"[]"])
async def test_a_message_that_cannot_be_read_costs_nobody_else(body: bytes) -> None:
    hostile = Message(subject="act.v1.cloneset.pods.shop.web-1", data=body, sequence=1, stored_at=1001.0)
    found = await about_pod(hostile, act(2))
    assert words(found)[0] == "act patch Ok"


async def test_a_bus_that_fails_or_hangs_leaves_what_was_read(monkeypatch: pytest.MonkeyPatch) -> None:
    found = await about_pod(version(1), error="no responders")
    assert (words(found), found.error) == (["kube modified rv 1"], "the messages could not be read: no responders")
    monkeypatch.setattr(traffic, "READ_SECONDS", 0.01)
    found = await about_pod(version(1), hangs=True)
    assert (words(found), found.error) == (
        ["kube modified rv 1"],
        "the messages were not read to their end within 0.01 s",
    )


async def test_decisions_are_those_of_our_kinds() -> None:
    decided = Message(subject="decisions.v1.clonesets.shop.web", data=b'{"kind":"CloneSet"}', sequence=1, stored_at=1.0)
    bus = cast("NatsBus", Streams(decided))
    assert words(await TrafficReader(bus, FakeClock()).read(CLONE_SET, "shop", "web")) == ["why plan no writes"]
