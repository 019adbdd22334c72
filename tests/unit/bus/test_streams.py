"""Streams that are kept in existence, in simulated time, and single objects that are read from them."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import cast

import msgspec
import pytest

from flotilla_common.api.resources import NODE, POD, Resource
from flotilla_common.bus import subjects
from flotilla_common.bus.affiliation import Affiliation
from flotilla_common.bus.interface import Bus, BusError, StreamSpec
from flotilla_common.bus.pod_shards import pod_shard, pod_shards
from flotilla_common.bus.streams import CHECK_SECONDS, RETRY_SECONDS, keep_streams, newest, shards_of
from tests.simulation.loop import SimulatedLoop, run
from tests.support.fake_bus import FakeBus

SPECS = [StreamSpec(name=name, subjects=(f"{name}.>",), last_value=False) for name in ("act", "why")]
NAMES = {"act", "why"}
MOMENT = 0.1


class RefusingBus(FakeBus):
    """Refuses to create streams for a while."""

    refuses = False

    async def ensure_stream(self, spec: StreamSpec) -> None:
        if self.refuses:
            raise BusError("no space left")
        await super().ensure_stream(spec)


def while_kept(story: Callable[[RefusingBus], Awaitable[None]], *, refuses: bool = False) -> None:
    """Play a story on a bus whose streams are kept."""

    async def main(loop: SimulatedLoop) -> None:
        bus = RefusingBus()
        bus.refuses = refuses
        keeping = loop.create_task(keep_streams(cast("Bus", bus), SPECS))
        await asyncio.sleep(MOMENT)
        await story(bus)
        keeping.cancel()

    run(main)


def test_streams_are_created_again_as_soon_as_a_wiped_bus_is_back() -> None:
    async def story(bus: RefusingBus) -> None:
        assert set(bus.streams) == NAMES
        bus.wipe()
        await asyncio.sleep(MOMENT)
        assert set(bus.streams) == NAMES

    while_kept(story)


def test_a_stream_that_somebody_removed_is_created_again() -> None:
    async def story(bus: RefusingBus) -> None:
        del bus.streams["why"]
        await asyncio.sleep(CHECK_SECONDS)
        assert set(bus.streams) == NAMES

    while_kept(story)


def test_what_was_refused_is_tried_again_soon() -> None:
    async def story(bus: RefusingBus) -> None:
        assert not bus.streams
        bus.refuses = False
        await asyncio.sleep(RETRY_SECONDS)
        assert set(bus.streams) == NAMES

    while_kept(story, refuses=True)


OWNED, FREE = (subjects.pod("shop", "a", Affiliation(*of)) for of in (("Set_apps", "7", "-"), ("-", "-", "-")))
ADDED, DELETED = {"op": "ADDED"}, {"op": "DELETED"}


@pytest.mark.parametrize(
    ("messages", "found"),
    [
        pytest.param([], None, id="absent"),
        pytest.param([(OWNED, b"1", ADDED)], b"1", id="there"),
        pytest.param([(OWNED, b"1", ADDED), (OWNED, b"2", DELETED)], b"2", id="deleted"),
        pytest.param(
            [(OWNED, b"1", ADDED), (FREE, b"2", ADDED), (OWNED, b"", {"op": "MOVED", "to": FREE})], b"2", id="moved"
        ),
        pytest.param([(OWNED, b"1", ADDED), (FREE, b"2", ADDED)], b"2", id="about to move"),
        pytest.param(
            [
                (FREE, b"2", ADDED),
                (OWNED, b"", {"op": "MOVED", "to": FREE}),
                (OWNED, b"3", ADDED),
                (FREE, b"", {"op": "MOVED", "to": OWNED}),
            ],
            b"3",
            id="moved back",
        ),
        pytest.param(
            [(FREE, b"2", ADDED), (OWNED, b"", {"op": "MOVED", "to": FREE}), (FREE, b"4", DELETED)],
            b"4",
            id="deleted after its move",
        ),
        pytest.param([(OWNED.replace(".a.", ".ab."), b"1", ADDED)], None, id="another name"),
        pytest.param([(OWNED.replace(".shop.", ".bank."), b"1", ADDED)], None, id="another namespace"),
    ],
)
async def test_the_newest_message_of_a_pod_is_found_wherever_it_moved(
    messages: list[tuple[str, bytes, dict[str, str]]], found: bytes | None
) -> None:
    bus = FakeBus()
    await bus.ensure_stream(subjects.kube_stream(POD))
    for message in messages:
        await bus.publish(*message)
    newest_one = await newest(cast("Bus", bus), POD, "shop", "a")
    assert (newest_one.data if newest_one else None) == found


@pytest.mark.parametrize(("resource", "namespace"), [(NODE, ""), (POD, "shop")])
async def test_without_a_stream_there_is_no_newest_message(resource: Resource, namespace: str) -> None:
    bus = FakeBus()
    assert await newest(cast("Bus", bus), resource, namespace, "a") is None


async def test_the_newest_message_of_another_kind() -> None:
    bus = FakeBus()
    await bus.ensure_stream(subjects.kube_stream(NODE))
    await bus.publish(subjects.kube(NODE, "", "a"), b"1", ADDED)
    message = await newest(cast("Bus", bus), NODE, "", "a")
    assert message is not None
    assert message.data == b"1"


async def marked(bus: FakeBus, shards: int) -> None:
    """Publish the marker of the first shard, which names their number."""
    for shard in pod_shards(shards):
        await bus.ensure_stream(subjects.kube_stream(shard))
    marker = subjects.Marker(epoch="0.a", state=subjects.SYNCED).of_shards(shards)
    await bus.publish(subjects.kube_marker(POD), msgspec.json.encode(marker))


@pytest.mark.parametrize("first", [0, 1])
async def test_of_two_pods_of_a_name_in_two_shards_the_newer_counts(first: int) -> None:
    """The one that came first was deleted, and its tombstone may still be there."""
    bus = FakeBus()
    await marked(bus, 2)
    for version, (shard, op) in enumerate([(first, "ADDED"), (first, "DELETED"), (1 - first, "ADDED")], 8):
        subject = subjects.pod("shop", "a", Affiliation("-", "-", "-"), pod_shard(shard))
        await bus.publish(subject, str(version).encode(), {"op": op, "rv": str(version)})
    message = await newest(cast("Bus", bus), POD, "shop", "a")
    assert message is not None
    assert message.data == b"10"


@pytest.mark.parametrize(
    ("resource", "shards", "found"),
    [(POD, 3, ["core.pods", "core.pods-1", "core.pods-2"]), (POD, 1, ["core.pods"]), (NODE, 3, ["core.nodes"])],
)
async def test_the_marker_names_the_number_of_shards(resource: Resource, shards: int, found: list[str]) -> None:
    bus = FakeBus()
    await marked(bus, shards)
    assert [one.id for one in await shards_of(cast("Bus", bus), resource)] == found
    assert await shards_of(cast("Bus", bus), pod_shard(2)) == [pod_shard(2)]


@pytest.mark.parametrize("data", [b"{", b"[]", None])
async def test_without_a_marker_that_can_be_read_pods_are_in_one_stream(data: bytes | None) -> None:
    bus = FakeBus()
    await bus.ensure_stream(subjects.kube_stream(POD))
    if data is not None:
        await bus.publish(subjects.kube_marker(POD), data)
    assert await shards_of(cast("Bus", bus), POD) == [POD]
