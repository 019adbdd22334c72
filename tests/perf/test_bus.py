"""The figures of nats-server with all services running (docs/performance.md), against their limits in thresholds.toml.

CPU and memory are measured together: a limit of memory that is bought with CPU fails. The bus has served for a while,
so its records are of the size that they have after two hours.
"""

import statistics
import time
from collections.abc import AsyncIterator
from typing import NamedTuple

import msgspec
import pytest
import pytest_asyncio

from flotilla_common.api.resources import POD
from flotilla_common.bus import subjects
from tests.perf.limits import within
from tests.perf.lives import NEW, OLD, Life, live
from tests.perf.rollouts import CLONE_SET, DEPLOYMENT, Bench, bench
from tests.support.cluster import eventually
from tests.support.fleet import ALL_SERVICES

PODS = 1000
LARGE = 10 * PODS
ROUNDS = 3
NODES = 30
"""Nodes for 15,000 pods."""

RECORDS = 100_000
RECORD = msgspec.json.encode({"service": "bench", "action": "patch", "cause": "x" * 560})
"""A record like those of two hours of rollouts in the stream of writes: 60 MB."""

SYNCED = "synced from the bus"
"""Log line of a service that has read everything of a resource from the bus."""

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(3600)]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def site(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Bench]:
    async with bench(tmp_path_factory.mktemp("perf"), nodes=NODES, services=ALL_SERVICES) as running:
        await served_for_two_hours(running)
        yield running


async def served_for_two_hours(site: Bench) -> None:
    """Fill the record of writes."""
    async with site.flotilla.bus() as bus:
        for number in range(RECORDS):
            subject = subjects.act("bench", POD, "default", f"pod-{number % PODS}")
            stored = await bus.send(subject, RECORD)
            if number % 500 == 499:
                await stored


class Round(NamedTuple):
    """Two lives, one right after the other."""

    native: Life
    ours: Life


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def rounds(site: Bench) -> list[Round]:
    return [
        Round(native=await live(site, DEPLOYMENT, 1, PODS), ours=await live(site, CLONE_SET, 1, PODS))
        for _ in range(ROUNDS)
    ]


async def test_cpu_of_the_bus(rounds: list[Round]) -> None:
    within("bus_cpu_seconds", median_of([one.ours for one in rounds]))


async def test_cpu_of_the_bus_beside_a_deployment(rounds: list[Round]) -> None:
    within("bus_deployment_cpu_seconds", median_of([one.native for one in rounds]))


async def test_cpu_of_services_and_bus(rounds: list[Round]) -> None:
    within("set_cpu_seconds", statistics.median(sum(one.ours.cpu.values()) for one in rounds))


def median_of(lives: list[Life]) -> float:
    """Print the bus's CPU seconds of each life and return their median."""
    each = [sum(life.bus_cpu.values()) for life in lives]
    print("\neach:", *(f"{seconds:.2f}" for seconds in each), end="")
    return statistics.median(each)


async def test_a_wiped_bus_is_in_sync_again(site: Bench) -> None:
    """kill -9 of nats-server in mid-rollout, with everything that it stored gone."""
    await site.create(CLONE_SET, "wiped", PODS, OLD)
    await site.until(lambda: site.pods.ready(OLD) == PODS)
    taken: list[float] = []
    for image, old in ((NEW, OLD), (OLD, NEW), (NEW, OLD)):
        await site.set_image(CLONE_SET, "wiped", image)
        await site.until(lambda old=old: site.pods.ready(old) < PODS // 2)
        taken.append(await seconds_to_sync(site))
        await site.until(lambda image=image: site.pods.ready(image) == PODS)
    await site.delete(CLONE_SET, "wiped")
    await site.until(lambda: len(site.pods) == 0)
    print("\neach:", *(f"{seconds:.2f}" for seconds in taken), end="")
    within("bus_wiped_seconds", statistics.median(taken))


async def seconds_to_sync(site: Bench) -> float:
    """Wipe the bus; returns the seconds until every service has read again all that it reads from it."""
    members = site.flotilla.members
    before = {name: member.log() for name, member in members.items()}

    def again() -> bool:
        logs = {name: member.log() for name, member in members.items()}
        return all(synced(logs[name][len(log) :]) >= synced(log) for name, log in before.items())

    started = time.monotonic()
    await site.flotilla.wipe_bus()
    await eventually(again)
    return time.monotonic() - started


def synced(log: str) -> set[object]:
    """Return the resources that a service has read completely from the bus, by its log."""
    lines = [line for line in log.splitlines() if SYNCED in line]
    return {msgspec.json.decode(line, type=dict[str, object])["resource"] for line in lines}


async def test_ten_thousand_pods(site: Bench) -> None:
    """Against a thousand right before and after. The last test: it leaves the server as large as it ever was."""
    before = await live(site, CLONE_SET, 1, PODS)
    large = await live(site, CLONE_SET, 1, LARGE)
    peak = site.bus_memory("VmHWM")
    of_a_thousand = median_of([before, await live(site, CLONE_SET, 1, PODS)]) / PODS
    within("bus_10k_mib", peak)
    within("bus_10k_cpu_ratio", sum(large.bus_cpu.values()) / LARGE / of_a_thousand)
