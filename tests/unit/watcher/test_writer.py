"""The only writer of a stream: lost acknowledgements, lost messages, lost streams, rivals, and its fence."""

from typing import cast

import pytest

from flotilla_common.api.resources import POD
from flotilla_common.bus import subjects
from flotilla_common.bus.interface import Bus, BusError, Message
from flotilla_watcher import writer
from flotilla_watcher.writer import WINDOW, StreamLost, StreamWriter, Superseded
from tests.support.fake_bus import FakeBus
from tests.support.fake_clock import FakeClock

SPEC = subjects.kube_stream(POD)
MARKER = subjects.kube_marker(POD)


class Bench:
    def __init__(self, bus: FakeBus) -> None:
        self.held = True
        self.bus = bus
        self.clock = FakeClock()
        self.writer = StreamWriter(
            bus=cast("Bus", bus), clock=self.clock, spec=SPEC, marker_subject=MARKER, fence=lambda: self.held
        )

    async def open(self, epoch: str = "e1") -> "Bench":
        await self.writer.open()
        await self.writer.begin(epoch, b"{}")
        return self

    async def put(self, *names: str) -> None:
        for name in names:
            await self.writer.put(subjects.kube(POD, "ns", name), name.encode(), {"epoch": "e1"})


def stored(bus: FakeBus) -> list[str]:
    """Return the messages of the stream, oldest first, without the marker."""
    return [message.data.decode() for subject, message in bus.streams[SPEC.name].messages.items() if subject != MARKER]


async def test_many_messages_in_order() -> None:
    bench = await Bench(FakeBus()).open()
    names = [f"p{number}" for number in range(3 * WINDOW)]
    await bench.put(*names)
    await bench.writer.flush()
    assert stored(bench.bus) == names
    assert bench.bus.streams[SPEC.name].sequence == 1 + len(names)


@pytest.mark.parametrize("count", [1, 3])
async def test_what_did_not_arrive_is_sent_again(count: int) -> None:
    bench = await Bench(FakeBus()).open()
    bench.bus.drop = count
    await bench.put("a", "b", "c", "d")
    await bench.writer.flush()
    assert stored(bench.bus) == ["a", "b", "c", "d"]
    await bench.put("a")
    await bench.writer.check()
    assert stored(bench.bus) == ["b", "c", "d", "a"]


async def test_a_bus_that_is_away_is_waited_for() -> None:
    bench = await Bench(FakeBus()).open()
    bench.bus.connected = False
    slept = bench.clock.sleep

    async def sleep(seconds: float) -> None:
        await slept(seconds)
        bench.bus.connected = len(bench.clock.sleeps) >= 5

    bench.clock.sleep = sleep
    await bench.put("a")
    await bench.writer.flush()
    assert stored(bench.bus) == ["a"]
    assert len(bench.clock.sleeps) == 5


async def test_a_lost_stream_is_noticed_when_idle_and_when_busy() -> None:
    idle = await Bench(FakeBus()).open()
    idle.bus.wipe()
    with pytest.raises(StreamLost):
        await idle.writer.check()
    busy = await Bench(FakeBus()).open()
    busy.bus.wipe()
    await busy.bus.ensure_stream(SPEC)
    await busy.put("a")
    with pytest.raises(StreamLost):
        await busy.writer.flush()


@pytest.mark.parametrize("again", [False, True], ids=["same replica", "another replica"])
async def test_a_stream_that_lost_its_messages_is_another_one_afterwards(again: bool) -> None:
    """Readers recognise a stream by its creation, and would miss what is before the last message that they have."""
    bus = FakeBus()
    first = await Bench(bus).open()
    await first.put("a", "b")
    await first.writer.flush()
    before = bus.streams[SPEC.name]
    before.lose_messages()
    if not again:
        with pytest.raises(StreamLost):
            await first.writer.check()
    await Bench(bus).open("e2")
    assert bus.streams[SPEC.name].created != before.created


async def test_a_stream_that_lost_its_messages_is_deleted_once_the_bus_is_back(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = await Bench(FakeBus()).open()
    await bench.put("a", "b")
    await bench.writer.flush()
    bench.bus.streams[SPEC.name].lose_messages()
    delete, attempts = bench.bus.delete_stream, list[str]()

    async def first_in_vain(name: str) -> None:
        attempts.append(name)
        if len(attempts) == 1:
            raise BusError("no reply in time")
        await delete(name)

    monkeypatch.setattr(bench.bus, "delete_stream", first_in_vain)
    with pytest.raises(StreamLost):
        await bench.writer.check()
    assert SPEC.name not in bench.bus.streams


async def test_a_stream_with_messages_stays_the_same_for_the_next_writer() -> None:
    bus = FakeBus()
    await Bench(bus).open("e1")
    before = bus.streams[SPEC.name].created
    await Bench(bus).open("e2")
    assert bus.streams[SPEC.name].created == before


async def test_a_stream_of_many_gaps_is_filled_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "MOST_SEQUENCES", 5)
    bench = await Bench(FakeBus()).open()
    await bench.put("a", *["b"] * 4)
    await bench.writer.check()
    await bench.put("b")
    with pytest.raises(StreamLost, match="6 sequences long"):
        await bench.writer.check()
    await bench.open("e2")
    await bench.put("a", "b")
    await bench.writer.check()


async def test_the_second_writer_wins_and_the_first_one_notices() -> None:
    bus = FakeBus()
    first = await Bench(bus).open("e1")
    await first.put("a")
    await first.writer.flush()
    second = await Bench(bus).open("e2")
    await first.put("late")
    with pytest.raises(Superseded, match="e2"):
        await first.writer.flush()
    await second.put("b")
    await second.writer.check()
    assert stored(bus) == ["a", "b"]


async def test_an_idle_writer_notices_a_rival_and_asks_for_a_marker_only_when_there_may_be_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bus = FakeBus()
    first = await Bench(bus).open("e1")
    await first.put("a")
    asked: list[str] = []
    get_last = bus.get_last

    async def counted(stream: str, subject: str) -> Message | None:
        asked.append(subject)
        return await get_last(stream, subject)

    monkeypatch.setattr(bus, "get_last", counted)
    await first.writer.check()
    assert asked == []
    await Bench(bus).open("e2")
    asked.clear()
    with pytest.raises(Superseded, match="e2"):
        await first.writer.check()
    assert asked == [MARKER]


async def test_without_a_lease_nothing_is_sent() -> None:
    bench = await Bench(FakeBus()).open()
    bench.held = False
    with pytest.raises(Superseded, match="lease"):
        await bench.put("a")
    assert stored(bench.bus) == []


async def test_a_marker_never_vouches_for_what_a_rival_kept_out() -> None:
    """The rival's one message is where ours was to be: what we send after it would fit by its number alone."""
    bus = FakeBus()
    first = await Bench(bus).open("e1")
    second = Bench(bus)
    await second.writer.open()
    await second.writer.begin("e2", b"{}")
    await first.put("a")
    with pytest.raises(Superseded):
        await first.writer.mark("e1", b"{}")
    marker = await bus.get_last(SPEC.name, MARKER)
    assert marker is not None
    assert marker.headers["epoch"] == "e2"
    assert stored(bus) == []


async def test_a_stream_that_holds_more_than_we_know_of_is_published_anew() -> None:
    """A lost acknowledgement of ours cannot be distinguished from another writer's late message.

    That one may have replaced what we published.
    """
    bench = await Bench(FakeBus()).open()
    await bench.put("a")
    await bench.writer.flush()
    await bench.bus.publish(subjects.kube(POD, "ns", "a"), b"old", {"epoch": "e0"})  # fits, if it comes at that moment
    await bench.put("b")
    with pytest.raises(StreamLost, match="1 messages more"):
        await bench.writer.flush()


async def test_a_lost_acknowledgement_is_one_message_too_many() -> None:
    bench = await Bench(FakeBus()).open()
    bench.bus.lose_acks = 1
    await bench.put("a", "b")
    with pytest.raises(StreamLost, match="1 messages more"):
        await bench.writer.flush()


async def test_an_idle_writer_notices_a_message_that_slipped_in() -> None:
    """A rival's message, sent before we acquired the lease, may have replaced ours."""
    bench = await Bench(FakeBus()).open()
    await bench.put("a")
    await bench.writer.check()
    await bench.bus.publish(subjects.kube(POD, "ns", "a"), b"old", {"epoch": "e0"})
    with pytest.raises(StreamLost, match="1 messages more"):
        await bench.writer.check()
