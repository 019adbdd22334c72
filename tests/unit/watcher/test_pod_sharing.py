"""The pods that a watcher publishes: the first shard decides on the number, the others follow its marker."""

import asyncio
from typing import cast

import msgspec
import pytest

from flotilla_common.api.resources import POD
from flotilla_common.api.uidranges import EVERY_UID, UidRange
from flotilla_common.bus import subjects
from flotilla_common.bus.interface import Bus
from flotilla_common.bus.pod_shards import pod_shard
from flotilla_common.kube.interface import ApiError, Unreachable
from flotilla_watcher import pod_sharing
from flotilla_watcher.pod_sharing import AnotherNumber, FirstShard, OtherShard
from tests.support.fake_bus import FakeBus
from tests.support.fake_clock import FakeClock
from tests.testkit.apiserver import FakeApi

NAMES = [f"p{number}" for number in range(10)]


class Bench:
    """The two holders, an apiserver with pods, and a bus."""

    def __init__(self, shards: int = 2, *, sharded: bool = True) -> None:
        pods = [{"metadata": {"name": name, "namespace": "shop", "uid": f"u-{name}"}} for name in NAMES]
        self.api, self.bus, self.clock = FakeApi({POD: pods}, page_size=100), FakeBus(), FakeClock()
        self.api.sharded = sharded
        self.remarks: list[str] = []
        bus = cast("Bus", self.bus)
        self.first = FirstShard(self.api.api, bus, self.clock, shards, self.remarks.append)
        self.other = OtherShard(bus, self.clock, 1, self.remarks.append)

    async def mark(self, shards: int, epoch: str = "0.a", state: str = subjects.SYNCED) -> None:
        """Publish the marker of the first shard."""
        await self.bus.ensure_stream(subjects.kube_stream(POD))
        marker = subjects.Marker(epoch=epoch, state=state).of_shards(shards)
        await self.bus.publish(subjects.kube_marker(POD), msgspec.json.encode(marker))

    async def fill(self, *indexes: int) -> None:
        """Create the streams of shards."""
        for index in indexes:
            await self.bus.ensure_stream(subjects.kube_stream(pod_shard(index)))
            await self.bus.ensure_stream(subjects.node_stream(pod_shard(index)))


async def settle() -> None:
    for _ in range(30):
        await asyncio.sleep(0)


async def test_without_the_setting_the_apiserver_is_not_asked() -> None:
    bench = Bench(1)
    assert await bench.first.choose() == EVERY_UID
    assert bench.api.lists == []
    assert bench.remarks == [""]


async def test_an_apiserver_with_shards_is_asked_for_one() -> None:
    bench = Bench()
    assert await bench.first.choose() == UidRange(0, 2)
    assert bench.remarks == [""]


@pytest.mark.parametrize(
    ("sharded", "error", "why"),
    [
        (False, None, pod_sharing.UNSUPPORTED),
        (True, ApiError(500, "InternalError", "invalid shard selector"), "refuses shards: invalid shard selector"),
    ],
)
async def test_an_apiserver_without_shards_gives_one_watcher_all_pods(
    sharded: bool, error: ApiError | None, why: str
) -> None:
    bench = Bench(sharded=sharded)
    bench.api.fail_lists = error
    assert await bench.first.choose() == EVERY_UID
    assert why in bench.remarks[-1]


async def test_an_apiserver_with_another_hash_gives_one_watcher_all_pods(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each watcher would skip pods that the apiserver sends to it alone."""
    bench = Bench()
    monkeypatch.setattr("tests.testkit.shards.hash_of", lambda uid: int(uid.removeprefix("u-p")) << 63 & (1 << 64) - 1)
    assert await bench.first.choose() == EVERY_UID
    assert pod_sharing.OTHERWISE in bench.remarks[-1]


@pytest.mark.parametrize("error", [Unreachable("refused"), ApiError(503, "ServiceUnavailable", "starting")])
async def test_an_apiserver_that_does_not_answer_is_waited_for(error: Exception) -> None:
    bench = Bench()
    bench.api.fail_lists = error
    task = asyncio.create_task(bench.first.choose())
    await settle()
    assert not task.done()
    bench.api.fail_lists = None
    assert await task == UidRange(0, 2)


@pytest.mark.parametrize("sharded", [True, False])
async def test_the_number_changes_after_two_equal_answers(sharded: bool) -> None:
    """One of several apiservers may be upgraded before the others."""
    bench = Bench(sharded=sharded)
    uids = await bench.first.choose()
    answers = iter([not sharded, sharded, not sharded, not sharded])
    asked = bench.clock.sleep

    async def sleep(seconds: float) -> None:
        bench.api.sharded = next(answers) if len(bench.clock.sleeps) else sharded
        await asked(seconds)

    bench.clock.sleep = sleep  # type: ignore[method-assign]
    with pytest.raises(AnotherNumber):
        await bench.first.watch(uids)
    assert list(answers) == []


async def test_streams_of_former_shards_are_removed_after_a_while() -> None:
    bench = Bench(2)
    await bench.fill(0, 1, 2, 5)
    task = asyncio.create_task(bench.first.watch(UidRange(0, 2)))
    await settle()
    task.cancel()
    assert set(bench.bus.streams) == {"kube_core_pods", "node_pods", "kube_core_pods-1", "node_pods-1"}


async def test_a_bus_that_is_away_keeps_streams_of_former_shards() -> None:
    bench = Bench(1)
    await bench.fill(0, 1)
    bench.bus.connected = False
    await bench.first.watch(EVERY_UID)
    assert "kube_core_pods-1" in bench.bus.streams


@pytest.mark.parametrize("state", [subjects.LISTING, subjects.SYNCED])
async def test_another_shard_follows_the_first_one(state: str) -> None:
    bench = Bench()
    await bench.mark(3, "7.a", state)
    assert await bench.other.choose() == UidRange(1, 3)
    assert bench.other.line == "7"
    assert bench.remarks == [""]


async def test_another_shard_waits_for_the_first_ones_marker_and_keeps_its_streams() -> None:
    bench = Bench()
    await bench.fill(1)
    task = asyncio.create_task(bench.other.choose())
    await settle()
    assert not task.done()
    assert bench.remarks == ["idle: the first shard has no marker yet"]
    assert "kube_core_pods-1" in bench.bus.streams
    await bench.mark(2)
    assert await task == UidRange(1, 2)
    assert bench.remarks[-1] == ""


async def test_a_shard_that_does_not_exist_is_idle_and_removed() -> None:
    bench = Bench()
    await bench.fill(0, 1)
    await bench.mark(1)
    task = asyncio.create_task(bench.other.choose())
    await settle()
    assert not task.done()
    task.cancel()
    assert bench.remarks == ["idle: the holder of the first shard publishes all pods"]
    assert set(bench.bus.streams) == {"kube_core_pods", "node_pods"}


@pytest.mark.parametrize("shards", [1, 3])
async def test_another_shard_starts_over_when_the_number_changes(shards: int) -> None:
    bench = Bench()
    await bench.mark(2)
    task = asyncio.create_task(bench.other.watch(UidRange(1, 2)))
    await settle()
    bench.bus.streams.clear()  # without a marker nothing is known
    await settle()
    assert not task.done()
    await bench.mark(shards)
    with pytest.raises(AnotherNumber):
        await task
