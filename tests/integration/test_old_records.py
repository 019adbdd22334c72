"""On a real nats-server: old decisions move to the end of their stream, for nobody a new decision."""

from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
import pytest_asyncio

from flotilla_cli.nats_config import BusUsers
from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.bus import subjects
from flotilla_common.bus.interface import Message
from flotilla_common.bus.nats import NatsBus
from flotilla_common.clock import SystemClock
from flotilla_watcher import old_records
from flotilla_watcher.old_records import OldRecords
from tests.support.broker import Broker, BusAt, broker
from tests.support.cluster import eventually

STREAM = subjects.WHY_STREAM.name
GAPS = 1_000
OLD, GONE, BUSY = (subjects.why(CLONE_SET, "shop", name) for name in ("old", "gone", "busy"))


@pytest_asyncio.fixture
async def nats(tmp_path: Path) -> AsyncIterator[Broker]:
    async with broker(tmp_path) as running:
        yield running


@pytest_asyncio.fixture
async def watcher(nats: Broker, tmp_path: Path) -> AsyncIterator[NatsBus]:
    """Yield a client with the watcher's rights, on a bus with a synced stream that has one CloneSet, `old`."""
    at = BusAt(nats.url, str(BusUsers(tmp_path).credentials))
    client = NatsBus(at, name="watcher/1", clock=SystemClock())
    for spec in (*subjects.RECORDS, subjects.kube_stream(CLONE_SET)):
        await client.ensure_stream(spec)
    await client.publish(subjects.kube(CLONE_SET, "shop", "old"), b"{}", {subjects.OP: subjects.ADDED})
    marker = subjects.Marker(epoch="0.a", state=subjects.SYNCED)
    await client.publish(subjects.kube_marker(CLONE_SET), msgspec.json.encode(marker))
    yield client
    await client.close()


def housekeeper(bus: NatsBus) -> OldRecords:
    return OldRecords(
        bus=bus,
        clock=SystemClock(),
        streams=subjects.RECORDS,
        resources=(CLONE_SET,),
        fence=lambda: True,
        most_gaps=GAPS,
    )


async def decide(bus: NatsBus, subject: str, times: int = 1) -> None:
    sent = [await bus.send(subject, f"{subject} {number}".encode()) for number in range(times)]
    for one in sent:
        await one


async def recorded(bus: NatsBus) -> list[Message]:
    found: list[Message] = []
    await bus.history("decisions", ">", found.append)
    return found


async def test_old_decisions_move_and_those_of_gone_objects_go(
    nats: Broker, watcher: NatsBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(old_records, "GONE_SECONDS", 0)
    for subject, times in ((OLD, 1), (GONE, 1), (BUSY, GAPS + 2)):
        await decide(watcher, subject, times)
    before = await watcher.stream_state(STREAM)
    assert before is not None
    assert before.gaps == GAPS + 1
    newest = await watcher.get_last(STREAM, BUSY)
    await housekeeper(watcher).check()
    after = await watcher.stream_state(STREAM)
    assert after is not None
    assert (after.gaps, after.messages) == (0, 2)
    assert await watcher.get_last(STREAM, BUSY) == newest
    assert await watcher.get_last(STREAM, GONE) is None
    await nats.kill()
    await nats.start()
    await eventually(lambda: watcher.connected)
    moved = await watcher.get_last(STREAM, OLD)
    assert moved is not None
    assert (moved.data, moved.headers[subjects.AGAIN]) == (f"{OLD} 0".encode(), "true")


async def test_the_record_of_decisions_does_not_repeat_them(watcher: NatsBus) -> None:
    await decide(watcher, OLD)
    await decide(watcher, BUSY, GAPS + 2)
    await housekeeper(watcher).check()
    await decide(watcher, OLD)  # the record has it after everything else
    found: list[Message] = []

    async def complete() -> bool:
        found[:] = await recorded(watcher)
        return len(found) == GAPS + 4

    while not await complete():
        assert len(found) < GAPS + 4
    assert [message.headers.get(subjects.AGAIN) for message in found] == [None] * len(found)
