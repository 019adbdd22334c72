"""Faults of single messages and single connections of the simulated bus, and how clients react."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

import pytest

from flotilla_common.bus.connection import PING_SECONDS
from flotilla_common.bus.interface import BusError, PublishRefused
from flotilla_common.bus.ordered import HEARTBEAT_SECONDS, RETRY_SECONDS, SILENCE_SECONDS
from tests.simulation.bus.client import SimulatedBus
from tests.simulation.bus.faults import UNDISTURBED, Hop, Treatment, Way
from tests.simulation.bus.server import Server
from tests.simulation.contract.bus import LASTING, SPEC, Reader, pod
from tests.simulation.loop import Domain, SimulatedClock, SimulatedLoop, run

LOST, TWICE, LATE = Treatment(times=0), Treatment(times=2), Treatment(delay=0.5)


class Planned:
    """A fault of the nth message in one direction; all others pass."""

    def __init__(self, fates: Mapping[tuple[Way, int], Treatment]) -> None:
        self._fates = fates
        self._counts: dict[Way, int] = {}

    def treatment(self, hop: Hop) -> Treatment:
        number = self._counts[hop.way] = self._counts.get(hop.way, 0) + 1
        return self._fates.get((hop.way, number), UNDISTURBED)


class Harness:
    """A server, a writer, and a reader that follows all pods."""

    def __init__(self, loop: SimulatedLoop) -> None:
        self.loop = loop
        self.server = Server(loop)
        self.writer = self.client("writer")
        self.bus = self.client("reader")
        self.reader = Reader()
        self.healthy: list[tuple[float, bool]] = []

    def client(self, name: str) -> SimulatedBus:
        return SimulatedBus(self.loop, self.server, name, SimulatedClock(self.loop), Domain(name).context())

    async def open(self) -> None:
        await self.writer.ensure_stream(SPEC)
        self.follow = await self.bus.follow(SPEC.name, (">",), self.reader.messages.append, self.reader.reset)
        await asyncio.sleep(1)
        assert self.follow.healthy

    async def write(self, *names: str) -> None:
        for name in names:
            await self.writer.publish(pod(name), name.encode())

    @property
    def read(self) -> str:
        return b"".join(self.reader.data).decode()


def play(exchange: Callable[[Harness], Awaitable[None]]) -> None:
    async def main(loop: SimulatedLoop) -> None:
        harness = Harness(loop)
        await harness.open()
        await exchange(harness)

    run(main)


def test_a_lost_delivery_shows_in_the_next_one_and_is_read_again() -> None:
    async def exchange(harness: Harness) -> None:
        harness.server.faults = Planned({(Way.DELIVER, 2): LOST})
        await harness.write("a", "b")
        await asyncio.sleep(0.01)
        assert (harness.read, harness.follow.healthy) == ("a", True)  # nobody knows yet
        await harness.write("c")
        await asyncio.sleep(0.01)
        assert (harness.read, harness.reader.resets) == ("abc", 0)

    play(exchange)


def test_a_lost_last_delivery_shows_in_a_heartbeat() -> None:
    async def exchange(harness: Harness) -> None:
        harness.server.faults = Planned({(Way.DELIVER, 1): LOST})
        await harness.write("a")
        await asyncio.sleep(HEARTBEAT_SECONDS - 0.1)
        assert harness.read == ""
        await asyncio.sleep(0.2)
        assert (harness.read, harness.follow.healthy, harness.reader.resets) == ("a", True, 0)

    play(exchange)


def test_a_repeated_delivery_is_not_passed_on() -> None:
    async def exchange(harness: Harness) -> None:
        harness.server.faults = Planned({(Way.DELIVER, 1): TWICE})
        await harness.write("a", "b")
        await asyncio.sleep(1)
        assert (harness.read, harness.reader.resets) == ("ab", 0)

    play(exchange)


def test_a_late_delivery_delays_those_behind_it() -> None:
    async def exchange(harness: Harness) -> None:
        harness.server.faults = Planned({(Way.DELIVER, 1): LATE})
        await harness.write("a", "b")
        await asyncio.sleep(0.4)
        assert harness.read == ""
        await asyncio.sleep(0.2)
        assert harness.read == "ab"

    play(exchange)


@pytest.mark.parametrize(("way", "stored"), [(Way.PUBLISH, ""), (Way.REPLY, "a")], ids=["message", "acknowledgement"])
def test_a_publication_that_is_lost_or_whose_acknowledgement_is(way: Way, stored: str) -> None:
    async def exchange(harness: Harness) -> None:
        harness.server.faults = Planned({(way, 1): LOST})
        before = harness.loop.time()
        with pytest.raises(BusError, match="no reply in time"):
            await harness.write("a")
        assert harness.loop.time() - before == pytest.approx(5)
        assert harness.read == stored

    play(exchange)


def test_a_publication_that_arrives_twice_is_stored_twice_unless_it_is_fenced() -> None:
    async def exchange(harness: Harness) -> None:
        harness.server.faults = Planned({(Way.PUBLISH, 1): TWICE, (Way.PUBLISH, 2): TWICE})
        await harness.write("a")
        await asyncio.sleep(0.1)
        assert harness.read == "aa"
        assert await (await harness.writer.send(pod("b"), b"b", expect_last_sequence=2)) == 3
        await asyncio.sleep(0.1)
        assert harness.read == "aab"
        with pytest.raises(PublishRefused):
            await (await harness.writer.send(pod("c"), b"c", expect_last_sequence=2))

    play(exchange)


def test_a_consumer_that_stalls_in_silence_is_not_noticed() -> None:
    async def exchange(harness: Harness) -> None:
        harness.server.stall("reader", SPEC.name)
        await harness.write("a")
        await asyncio.sleep(600)
        assert (harness.read, harness.follow.healthy) == ("", True)
        harness.server.go_on("reader", SPEC.name)
        await harness.write("b")
        await asyncio.sleep(0.01)
        assert harness.read == "ab"

    play(exchange)


def test_a_consumer_without_heartbeats_is_replaced() -> None:
    async def exchange(harness: Harness) -> None:
        harness.server.stall("reader", SPEC.name, noticed=True)
        await harness.write("a")
        await asyncio.sleep(SILENCE_SECONDS - 0.1)
        assert harness.read == ""
        await asyncio.sleep(RETRY_SECONDS + 0.2)
        assert (harness.read, harness.reader.resets) == ("a", 0)

    play(exchange)


def test_what_was_overwritten_during_a_stall_is_skipped() -> None:
    async def exchange(harness: Harness) -> None:
        harness.server.stall("reader", SPEC.name)
        await harness.write("a", "b", "a")
        harness.server.go_on("reader", SPEC.name)
        await asyncio.sleep(0.01)
        assert harness.read == "ba"

    play(exchange)


def test_a_broken_connection_is_made_again_and_reading_goes_on() -> None:
    async def exchange(harness: Harness) -> None:
        harness.bus.connection.drop()
        await harness.write("a")
        assert not harness.follow.healthy
        await asyncio.sleep(0.3)
        assert (harness.read, harness.follow.healthy, harness.reader.resets) == ("a", True, 0)

    play(exchange)


def test_a_connection_that_stands_still_is_given_up_after_a_while() -> None:
    async def exchange(harness: Harness) -> None:
        harness.bus.connection.freeze()
        await harness.write("a")
        await asyncio.sleep(PING_SECONDS)
        assert (harness.read, harness.bus.connected) == ("", True)
        await asyncio.sleep(3 * PING_SECONDS)
        assert (harness.read, harness.bus.connected, harness.reader.resets) == ("a", True, 0)

    play(exchange)


def test_after_a_long_absence_everything_is_read_again() -> None:
    async def exchange(harness: Harness) -> None:
        await harness.writer.ensure_stream(LASTING)
        reader = Reader()
        await harness.bus.follow(LASTING.name, (">",), reader.messages.append, reader.reset)
        for name in ("a", "b"):
            await harness.writer.publish(f"lasting.{name}", name.encode())
        await asyncio.sleep(0.01)
        assert (reader.data, reader.resets) == ([b"a", b"b"], 0)
        harness.server.kill()
        await asyncio.sleep(61)
        harness.server.revive()
        await asyncio.sleep(1)
        assert (reader.data, reader.resets) == ([b"a", b"b"], 1)

    play(exchange)
