"""Figures at sizes that no control plane on this machine has: a recording, multiplied, played into real processes.

What is behind the apiserver is a stand-in (`played/`), so these figures are of nats-server, watcher and services alone.
"""

import asyncio
import statistics
import time
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
import pytest_asyncio

from flotilla_cli.nats_config import ENVIRONMENT
from tests.perf.limits import within
from tests.perf.played.population import Sizes
from tests.perf.played.stage import Stage, stage

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(1200)]

SMALL = Sizes(sets=10, pods_each=1000, nodes=500)
LARGE = Sizes(sets=100, pods_each=1000, nodes=5000)
ROUNDS = 3
GO_LIMIT = "900MiB"
"""The memory from which on nats-server collects garbage more often, as docs/sizing.md advises for LARGE."""

CHANGES, CHANGES_SECONDS = 500, 60
"""Changes of pods a second, and for how long: each is a restarted container."""

LOSSES = 2
"""Pods a second that are lost meanwhile: how soon they are replaced shows how far behind the owner's service is."""

SETTLED_SECONDS = 5.0
"""Time after a start until memory is measured: first passes are over."""


class Started(msgspec.Struct, frozen=True):
    """One start of everything with SMALL, and what followed."""

    cold: float  # seconds until all services were in sync
    killed: float  # the same after kill -9 of nats-server
    wiped: float  # the same after its folder was deleted, too
    memory: dict[str, float]  # MiB by process


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def starts(tmp_path_factory: pytest.TempPathFactory) -> list[Started]:
    return [await started(tmp_path_factory.mktemp("played")) for _ in range(ROUNDS)]


async def started(folder: Path) -> Started:
    """Start everything, and break the bus twice."""
    async with stage(folder, SMALL) as played:
        cold = await played.cold_start()
        await asyncio.sleep(SETTLED_SECONDS)
        memory = played.memory()
        killed = await played.seconds_to_sync(restart_bus(played))
        await asyncio.sleep(SETTLED_SECONDS)
        wiped = await played.seconds_to_sync(played.flotilla.wipe_bus())
        found = Started(cold, killed, wiped, memory)
        print(f"\n{found}", end="")
        return found


async def restart_bus(played: Stage) -> None:
    """kill -9 of nats-server, and start it again."""
    await played.flotilla.kill_bus()
    await played.flotilla.start_bus()


async def test_ten_thousand_pods_in_sync_after_a_cold_start(starts: list[Started]) -> None:
    within("played_cold_seconds", statistics.median(one.cold for one in starts))


async def test_ten_thousand_pods_in_sync_after_a_kill_of_the_bus(starts: list[Started]) -> None:
    within("played_killed_seconds", statistics.median(one.killed for one in starts))


async def test_ten_thousand_pods_in_sync_after_a_wipe_of_the_bus(starts: list[Started]) -> None:
    within("played_wiped_seconds", statistics.median(one.wiped for one in starts))


class Under(msgspec.Struct, frozen=True):
    """What CHANGES a second did with LARGE."""

    lags: list[float]  # seconds from a change to its message, sorted
    reactions: list[float]  # seconds from a pod's loss to its replacement, sorted
    cores: dict[str, float]  # by process
    memory: dict[str, float]  # MiB by process, afterwards
    missing: int  # changes that did not arrive


class Grown(msgspec.Struct, frozen=True):
    """LARGE: its start, its changes, its kills."""

    cold: float
    memory: dict[str, float]
    under: Under
    killed: float
    watcher_killed: float
    owner_killed: float


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def grown(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Grown]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(ENVIRONMENT, "GOMEMLIMIT", GO_LIMIT)
        async with stage(tmp_path_factory.mktemp("played"), LARGE) as played:
            yield await measured(played)


async def measured(played: Stage) -> Grown:
    """Start everything, change pods, and kill one process after the other."""
    cold = await played.cold_start()
    print(f"\ncold start: {cold:.1f} s", end="")
    await asyncio.sleep(3 * SETTLED_SECONDS)
    memory = played.memory()
    print(f"\nmemory: {memory}", end="")
    under = await changing(played)
    print(f"\nlag: {spread(under.lags)}; reaction: {spread(under.reactions)}", end="")
    print(f"\ncores: {under.cores}\nmemory under changes: {under.memory}\nmissing: {under.missing}", end="")
    watcher = await seconds_until_published(played)
    print(f"\nwatcher killed: {watcher:.1f} s", end="")
    owner = await seconds_until_replaced(played)
    print(f"\nowner killed: {owner:.1f} s", end="")
    killed = await played.seconds_to_sync(restart_bus(played))
    print(f"\nbus killed: {killed:.1f} s; memory: {played.memory()}", end="")
    return Grown(cold, memory, under, killed, watcher, owner)


async def changing(played: Stage) -> Under:
    """Change pods, and lose some."""
    before = played.cpu()
    async with played.arrivals() as arrived:
        started = time.monotonic()
        async with asyncio.TaskGroup() as group:
            group.create_task(played.play("change", CHANGES, CHANGES_SECONDS))
            group.create_task(played.play("lose", LOSSES, CHANGES_SECONDS))
        seconds = time.monotonic() - started
        cores = {name: (used - before[name]) / seconds for name, used in played.cpu().items()}
        await asyncio.sleep(SETTLED_SECONDS)
    shown = played.shown()
    lags = sorted(arrived[version] - sent for version, sent in shown.sent.items() if version in arrived)
    return Under(lags, sorted(shown.reactions), cores, played.memory(), len(shown.sent) - len(lags))


async def seconds_until_published(played: Stage) -> float:
    """kill -9 of the watcher; returns the seconds until a change after that is on the bus."""
    async with played.arrivals() as arrived:
        changing = asyncio.create_task(played.play("change", 10, 2 * CHANGES_SECONDS))
        await played.wait(lambda: bool(arrived))
        started = time.monotonic()
        await played.flotilla.restart("watcher", wait=False)
        known = set(arrived)
        try:
            await played.wait(lambda: bool(arrived.keys() - known))
            return time.monotonic() - started
        finally:
            changing.cancel()
            await asyncio.gather(changing, return_exceptions=True)


async def seconds_until_replaced(played: Stage) -> float:
    """kill -9 of the owner's service; returns the seconds until its next process replaces a pod."""
    started = time.monotonic()
    await played.flotilla.restart("cloneset", wait=False)
    await played.play("lose", 1, 1)
    await played.wait(lambda: bool(played.shown().reactions))
    return time.monotonic() - started


def percentile(values: list[float], share: float) -> float:
    """Return the value below which this share of the sorted values is."""
    return values[min(int(len(values) * share), len(values) - 1)]


def spread(values: list[float]) -> str:
    """Return median and 99th percentile as a text."""
    return ", ".join(f"p{share * 100:g} {percentile(values, share):.3f} s" for share in (0.5, 0.99))


async def test_memory_of_a_hundred_thousand_pods(grown: Grown, starts: list[Started]) -> None:
    small = {name: statistics.median(one.memory[name] for one in starts) for name in grown.memory}
    pods = LARGE.pods - SMALL.pods
    slopes = {name: (mib - small[name]) * 1024 / pods for name, mib in grown.memory.items()}
    print("\nKiB a pod:", {name: round(kib, 2) for name, kib in slopes.items()}, end="")
    others = [kib for name, kib in slopes.items() if name not in ("cloneset", "watcher", "nats")]
    within("played_owner_kib_per_pod", slopes["cloneset"])
    within("played_watcher_kib_per_pod", slopes["watcher"])
    within("played_bus_kib_per_pod", slopes["nats"])
    within("played_others_kib_per_pod", max(others))


async def test_a_hundred_thousand_pods_in_sync(grown: Grown) -> None:
    within("played_100k_cold_seconds", grown.cold)
    within("played_100k_killed_seconds", grown.killed)


async def test_recovery_with_a_hundred_thousand_pods(grown: Grown) -> None:
    within("played_100k_watcher_seconds", grown.watcher_killed)
    within("played_100k_owner_seconds", grown.owner_killed)


async def test_lag_at_five_hundred_changes_a_second(grown: Grown) -> None:
    under = grown.under
    assert under.missing == 0
    within("played_lag_p99_seconds", percentile(under.lags, 0.99))
    within("played_reaction_p99_seconds", percentile(under.reactions, 0.99))
