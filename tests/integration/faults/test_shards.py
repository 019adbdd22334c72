"""Several replicas share the work, take over from a dead one, and one paused for too long writes nothing."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import pytest
import pytest_asyncio

from flotilla_common.bus.interface import Message
from tests.support.cluster import eventually
from tests.support.fleet import Fleet
from tests.support.observer import Promise
from tests.support.scene import NEW, OLD, Rollout, Scene, cloneset, scene

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(300)]

SHARDS, REPLICAS = 4, 8
NOTHING = "/api/v1/namespaces/default/pods?limit=1"
"""A cheap LIST that returns the cluster's current version."""


class Act(msgspec.Struct):
    """A record of `act.v1`."""

    replica: str
    action: str
    outcome: str
    owner: dict[str, str]
    version: str = msgspec.field(default="", name="resourceVersion")


@asynccontextmanager
async def acts(flotilla: Fleet) -> AsyncIterator[list[Act]]:
    """Yield a list of every write that the service makes during the block."""
    seen: list[Act] = []

    def take(message: Message) -> None:
        seen.append(msgspec.json.decode(message.data, type=Act))

    async with flotilla.bus() as bus:
        follow = await bus.subscribe("act.v1.cloneset.>", take)
        yield seen
        await follow.stop()


def writers(records: list[Act]) -> set[str]:
    """Return the replicas that have written."""
    return {record.replica.rpartition("-")[0] for record in records if record.outcome == "Ok"}


def serving(flotilla: Fleet, replica: str) -> list[int]:
    """Return the shards that the replica served after its latest gain; empty before the first."""
    lines = [line for line in flotilla.members[replica].log().splitlines() if '"shards gained"' in line]
    return json.loads(lines[-1])["serving"] if lines else []


def pods_held(flotilla: Fleet, replica: str) -> int:
    """Return the number of pods in the replica's mirror."""
    return int(flotilla.members[replica].metric('flotilla_mirror_objects{resource="core.pods"}'))


@pytest_asyncio.fixture(loop_scope="module")
async def place(flotilla: Fleet) -> AsyncIterator[Scene]:
    async with scene(flotilla) as made:
        yield made


class TestOneShard:
    """A leader and a standby."""

    async def test_a_leader_that_slept_too_long_writes_nothing(self, flotilla: Fleet, web: Rollout) -> None:
        await flotilla.start("cloneset", replica="b")
        await web.begin()
        flotilla.pause("cloneset")
        async with acts(flotilla) as records:
            await eventually(lambda: writers(records) == {"cloneset-b"})
            woken = int(json.loads(await web.place.kubectl("get", "--raw", NOTHING))["metadata"]["resourceVersion"])
            flotilla.resume("cloneset")
            records.clear()
            await web.end()
            # What it had sent before it slept is answered only now, but took effect before.
            assert writers([one for one in records if int(one.version or 0) > woken]) <= {"cloneset-b"}

    async def test_the_standby_takes_over_from_a_dead_leader(self, flotilla: Fleet, web: Rollout) -> None:
        await web.begin()
        flotilla.kill("cloneset-b")
        await web.end()

    async def test_watchers_take_over_from_each_other(self, flotilla: Fleet, web: Rollout) -> None:
        await flotilla.start("watcher", replica="b")
        await eventually(lambda: bool(serving(flotilla, "watcher-b")))
        await web.begin()
        flotilla.kill("watcher")
        await web.end()
        await flotilla.start("watcher")
        flotilla.kill("watcher-b")
        await web.begin(part=0)
        await web.end()


class TestManyShards:
    """Two replicas share four shards and eight CloneSets."""

    names = tuple(f"set-{number}" for number in range(8))

    async def test_two_share_and_one_takes_all(self, flotilla: Fleet, place: Scene) -> None:
        """Both write, each its own sets; one is killed, and the other finishes; a new one gets its share.

        Each holds the pods of its own shards only.
        """
        flotilla.kill("cloneset")
        for replica in "cd":
            await flotilla.start("cloneset", replica=replica, flags=[f"--shards={SHARDS}"])
        await self.shared(flotilla, place)
        async with acts(flotilla) as records:
            await place.create(*(cloneset(name, REPLICAS, maxUnavailable=2) for name in self.names))
            await self.all_settled(place, OLD)
            assert writers(records) == {"cloneset-c", "cloneset-d"}
            self.each_has_one_writer(records)
            halves = pods_held(flotilla, "cloneset-c"), pods_held(flotilla, "cloneset-d")
            assert min(halves) > 0
            assert sum(halves) >= REPLICAS * len(self.names)  # there may be CloneSets of others
            for name in self.names:
                place.seen.promise(Promise(cloneset=name, replicas=REPLICAS, max_unavailable=2))
            await self.roll_all(place, NEW)
            await place.part_way(self.names[0], NEW, 2)
            flotilla.kill("cloneset-c")
            await self.all_settled(place, NEW)
            records.clear()
            await self.roll_all(place, "nginx:3")
            await self.all_settled(place, "nginx:3")
            assert writers(records) == {"cloneset-d"}
            assert pods_held(flotilla, "cloneset-d") == sum(halves)
            await flotilla.start("cloneset", replica="c", flags=[f"--shards={SHARDS}"])
            await self.shared(flotilla, place)
            records.clear()
            await self.roll_all(place, "nginx:4")
            await self.all_settled(place, "nginx:4")
            assert writers(records) == {"cloneset-c", "cloneset-d"}
            holders = ("cloneset-c", "cloneset-d")
            await eventually(lambda: sum(pods_held(flotilla, one) for one in holders) == sum(halves), 90)
        await place.end()

    async def roll_all(self, place: Scene, image: str) -> None:
        await asyncio.gather(*(place.roll(name, image) for name in self.names))

    async def shared(self, flotilla: Fleet, place: Scene) -> None:
        """Wait until each of the two replicas holds half of the shards, and has taken shards over."""
        names = [f"flotilla-cloneset-{shard}" for shard in range(SHARDS)]
        for _ in range(60):
            leases = (await place.read("leases", *names, "-n", "kruise-system", "--ignore-not-found")).get("items", [])
            holders = Counter(lease["spec"].get("holderIdentity", "").rsplit("-", 2)[0] for lease in leases)
            halves = holders == {"cloneset-c": SHARDS // 2, "cloneset-d": SHARDS // 2}
            if halves and all(serving(flotilla, name) for name in holders):
                return
            await asyncio.sleep(0.5)
        raise AssertionError(f"the shards are not shared: {holders}")

    async def all_settled(self, place: Scene, image: str) -> None:
        for name in self.names:
            await place.settle(name, image, REPLICAS, 90)

    def each_has_one_writer(self, records: list[Act]) -> None:
        by_set: dict[str, set[str]] = {}
        for record in records:
            by_set.setdefault(record.owner["name"], set()).add(record.replica)
        assert all(len(replicas) == 1 for replicas in by_set.values()), by_set
