"""A table of pods whose streams several watchers fill: complete when all are, and each judges absence in its own."""

from collections.abc import AsyncIterator
from itertools import count

import msgspec
import pytest
import pytest_asyncio

from flotilla_common.api.uidranges import UidRange
from flotilla_common.bus import subjects
from flotilla_common.bus.affiliation import affiliation_of, outline
from flotilla_common.bus.pod_shards import pod_shard, pod_shards
from flotilla_common.mirror.bus_source import BusSource
from tests.support.fake_bus import FakeStream
from tests.testkit.documents import Json
from tests.unit.mirror.scoped import Scoped, encode, pod, settle


class Shared(Scoped):
    """A mirror of the pods of one namespace, and a watcher for each shard."""

    def __init__(self) -> None:
        super().__init__()
        self.epochs = count(1)
        self.epoch: dict[int, str] = {}  # the last one of each shard

    async def fresh(self, index: int) -> None:
        """Replace the stream of a shard by an empty one, as a watcher does for another range of uids."""
        spec = subjects.kube_stream(pod_shard(index))
        self.bus.streams[spec.name] = FakeStream(spec, f"incarnation {next(self.epochs)}")
        for follow in self.follows:
            if follow.stream == spec.name:
                follow.on_reset()

    async def mark_shard(self, index: int, shards: int, epoch: str, state: str = "synced", version: int = 50) -> None:
        marker = subjects.Marker(epoch=epoch, state=state, rv=str(version), layout=subjects.LAYOUT).of_shards(shards)
        await self.bus.publish(subjects.kube_marker(pod_shard(index)), msgspec.json.encode(marker), {"epoch": epoch})

    async def on(self, index: int, document: Json, op: str = "MODIFIED", epoch: str = "") -> None:
        """Publish a version of a pod in the stream of a shard."""
        meta, affiliation = document["metadata"], affiliation_of(outline(encode(document)))
        subject = subjects.pod(meta["namespace"], meta["name"], affiliation, pod_shard(index))
        await self.say(document, op, epoch or self.epoch[index], subject)

    async def list_shard(self, index: int, shards: int, *documents: Json, version: int = 50) -> None:
        """Publish a complete LIST of a shard under a new epoch."""
        epoch = self.epoch[index] = f"0.{index}-{next(self.epochs)}"
        await self.mark_shard(index, shards, epoch, "listing")
        for document in documents:
            await self.on(index, document, "ADDED", epoch)
        await self.mark_shard(index, shards, epoch, version=version)

    async def publish_shards(self, shards: int, pods: dict[int, list[Json]], version: int = 50) -> None:
        """Begin another layout: each shard has a stream of its own, with these pods."""
        for index in range(shards):
            await self.fresh(index)
            await self.list_shard(index, shards, *pods.get(index, ()), version=version)
        await settle()

    @property
    def shards(self) -> list[BusSource]:
        newest = self.sources._groups["namespaces"].newest
        assert newest is not None
        return newest.shards


def uid_in(uids: UidRange, text: str = "u") -> str:
    """Return a uid of this range."""
    return next(uid for uid in (f"{text}{number}" for number in range(1000)) if uids.covers(uid))


ZERO, ONE = pod("zero", 10, uid=uid_in(UidRange(0, 2))), pod("one", 11, uid=uid_in(UidRange(1, 2)))


@pytest_asyncio.fixture
async def shared() -> AsyncIterator[Shared]:
    made = Shared()
    await made.publish_shards(2, {0: [ZERO], 1: [ONE]})
    made.need("shop")
    await made.start()
    await settle()
    yield made
    await made.feed.stop()


async def test_a_table_has_the_pods_of_all_shards(shared: Shared) -> None:
    assert shared.held == {"zero": 10, "one": 11}
    assert shared.feed.synced
    await shared.on(1, pod("one", 12, uid=ONE["metadata"]["uid"]))
    assert shared.held == {"zero": 10, "one": 12}


async def test_a_table_is_complete_when_all_shards_are() -> None:
    shared = Shared()
    await shared.fresh(0)
    await shared.list_shard(0, 2, ZERO)
    shared.need("shop")
    await shared.start()
    await settle()
    assert shared.held == {"zero": 10}
    assert not shared.feed.synced
    await shared.fresh(1)
    await shared.list_shard(1, 2, ONE)
    assert shared.feed.synced
    assert shared.sources.trusted


@pytest.mark.parametrize(("index", "left"), [(0, {"one": 11}), (1, {"zero": 10})])
async def test_the_list_of_a_shard_says_nothing_about_the_pods_of_another(
    shared: Shared, index: int, left: dict[str, int]
) -> None:
    await shared.list_shard(index, 2)
    assert shared.held == left


async def test_what_cannot_be_decoded_in_one_shard_survives_the_list_of_another(shared: Shared) -> None:
    broken = pod("bad", 20, uid=uid_in(UidRange(1, 2), "b"), broken=True)
    await shared.on(1, broken)
    await shared.list_shard(0, 2, ZERO)
    assert [one.name for one in shared.decoder.undecodable.values()] == ["bad"]
    await shared.list_shard(1, 2, ONE)
    assert shared.decoder.undecodable == {}


@pytest.mark.parametrize("tombstone_first", [True, False])
async def test_a_pod_that_comes_again_in_another_shard_replaces_the_former(
    shared: Shared, tombstone_first: bool
) -> None:
    gone = pod("zero", 20, uid=ZERO["metadata"]["uid"])
    again = pod("zero", 21, uid=uid_in(UidRange(1, 2), "again"))
    steps = [(0, gone, "DELETED"), (1, again, "ADDED")]
    for index, document, op in steps if tombstone_first else reversed(steps):
        await shared.on(index, document, op)
    await shared.on(0, pod("zero", 19, uid=ZERO["metadata"]["uid"]))  # a late version of the former
    assert shared.held == {"zero": 21, "one": 11}
    await shared.list_shard(0, 2, version=60)
    assert shared.held == {"zero": 21, "one": 11}


@pytest.mark.parametrize("shards", [1, 3, 4])
async def test_another_number_of_shards_loses_nothing_and_calls_nobody(shared: Shared, shards: int) -> None:
    shared.heard.clear()
    pods = {index: [one for one in (ZERO, ONE) if holds(index, shards, one)] for index in range(shards)}
    for index in range(shards):
        await shared.fresh(index)
        await shared.mark_shard(index, shards, f"0.n{index}", "listing")
        await settle()
        assert not shared.feed.synced
    await shared.publish_shards(shards, pods, version=60)
    assert shared.feed.synced
    assert len(shared.shards) == shards
    assert shared.held == {"zero": 10, "one": 11}
    assert shared.heard == []


def holds(index: int, shards: int, document: Json) -> bool:
    return UidRange(index, shards).covers(document["metadata"]["uid"])


@pytest.mark.parametrize("shards", [1, 3])
async def test_a_pod_that_was_deleted_while_the_number_changed_is_gone(shared: Shared, shards: int) -> None:
    pods = {index: [ONE] for index in range(shards) if holds(index, shards, ONE)}
    await shared.publish_shards(shards, pods, version=60)
    assert shared.held == {"one": 11}


async def test_a_shard_of_another_number_is_not_trusted(shared: Shared) -> None:
    """Its watcher has not read the first one's marker yet."""
    await shared.fresh(0)
    await shared.list_shard(0, 3, ZERO)
    await settle()
    assert [one.synced for one in shared.shards] == [True, True, False]
    assert not shared.feed.synced


async def test_a_source_of_a_shard_that_ended_follows_nothing(shared: Shared) -> None:
    await shared.publish_shards(1, {0: [ZERO, ONE]}, version=60)
    assert {one.stream for one in shared.follows} == {"kube_core_pods"}


async def test_the_oldest_proof_of_all_shards_counts(shared: Shared) -> None:
    shared.clock.time = 10
    await shared.mark_shard(0, 2, "0.x")
    assert shared.sources.last_update == 0
    await shared.mark_shard(1, 2, "0.y")
    assert shared.sources.last_update == 10


async def test_a_shard_that_falls_silent_leads_to_the_apiserver(shared: Shared) -> None:
    for time in range(5, 50, 5):
        await shared.mark_shard(0, 2, "0.x")
        await shared.tick(time)
    assert shared.feed.direct


async def test_a_mirror_that_ends_stops_the_sources_of_all_shards(shared: Shared) -> None:
    assert len(shared.follows) == len(pod_shards(2))
    await shared.feed.stop()
    assert shared.follows == []
