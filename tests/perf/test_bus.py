"""The figures of nats-server with all services running (docs/performance.md), against their limits in thresholds.toml.

CPU and memory are measured together: a limit of memory that is bought with CPU fails. The bus has served for a while,
so its records are of the size that they have after two hours.
"""

import statistics
import time
from collections.abc import AsyncIterator, Callable
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

OTHERS = ("statefulset", "daemonset", "jobs", "sidecar", "topology", "policy")
"""Services that have nothing to do with the pods of a CloneSet."""

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


class Growth(NamedTuple):
    """The life of ten thousand pods, between two of a thousand."""

    before: Life
    large: Life
    after: Life
    bus_peak: float  # MiB

    def per_pod(self, of: Callable[[Life], float]) -> float:
        """Return what a pod of the large life costs, as a multiple of the mean of the small ones."""
        return of(self.large) / LARGE / (statistics.mean((of(self.before), of(self.after))) / PODS)

    def kib_per_pod(self, service: str) -> float:
        """Return the resident memory that a service has for each pod beyond a thousand."""
        return (self.large.memory[service] - self.before.memory[service]) * 1024 / (LARGE - PODS)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def growth(site: Bench) -> Growth:
    """Let ten thousand pods live. Used by the last tests: it leaves all processes as large as they ever were."""
    before = await live(site, CLONE_SET, 1, PODS)
    large = await live(site, CLONE_SET, 1, LARGE)
    peak = site.bus_memory("VmHWM")
    return Growth(before, large, await live(site, CLONE_SET, 1, PODS), peak)


async def test_the_bus_with_ten_thousand_pods(growth: Growth) -> None:
    within("bus_10k_mib", growth.bus_peak)
    within("bus_10k_cpu_ratio", growth.per_pod(lambda life: sum(life.bus_cpu.values())))


async def test_pods_of_others_cost_nothing(growth: Growth) -> None:
    cpu = growth.large.service_cpu
    others = {name: cpu[name] for name in OTHERS}
    print("\nCPU seconds:", {name: round(seconds, 2) for name, seconds in cpu.items()}, end="")
    within("others_cpu_share", max(others.values()) / cpu["cloneset"])


async def test_memory_of_ten_thousand_pods(growth: Growth) -> None:
    memory = growth.large.memory
    print("\nMiB:", {name: round(mib, 1) for name, mib in memory.items()}, end="")
    within("all_10k_mib", sum(memory.values()))
    within("owner_kib_per_pod", growth.kib_per_pod("cloneset"))
    within("others_kib_per_pod", max(growth.kib_per_pod(name) for name in OTHERS))


@pytest.mark.parametrize("what", ["create", "update"])
async def test_time_of_ten_thousand_pods(growth: Growth, what: str) -> None:
    within(f"ten_thousand_{what}_ratio", growth.per_pod(lambda life: life.seconds[what]))


async def test_cpu_of_ten_thousand_pods(growth: Growth) -> None:
    steps = ("create", "update")
    within("ten_thousand_cpu_ratio", growth.per_pod(lambda life: sum(life.cpu[what] for what in steps)))
