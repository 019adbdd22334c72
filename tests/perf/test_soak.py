"""Memory does not grow over twenty rollouts.

A life is: create a thousand pods, all at once, and delete them. The bus keeps a tombstone of each for five minutes, and
a day of writes; services keep uids of deleted pods. All of that has to fit into the memory that they have after the
first lives.
"""

import statistics
import time
from pathlib import Path

import pytest

from tests.perf.limits import within
from tests.perf.rollouts import CLONE_SET, Bench, bench
from tests.support.fleet import ALL_SERVICES

LIVES = 20
SETTLED = 5
"""Number of lives after which caches and allocators have their size."""
PODS = 1000
IMAGE = "nginx:alpine"

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(3600)]


async def test_memory_through_twenty_lives_of_a_thousand_pods(tmp_path: Path) -> None:
    after: list[dict[str, float]] = []
    bus_cpu: list[float] = []
    async with bench(tmp_path, services=ALL_SERVICES) as site:
        for number in range(1, LIVES + 1):
            started, cpu = time.monotonic(), site.bus_cpu()
            await live(site, f"life-{number}")
            bus_cpu.append(site.bus_cpu() - cpu)
            after.append(site.memory())
            shown = " ".join(f"{name} {mib:.0f}" for name, mib in after[-1].items())
            bus = f"{site.bus_memory():.0f}, at most {site.bus_memory('VmHWM'):.0f}, CPU {bus_cpu[-1]:.2f} s"
            print(
                f"\nlife {number} of {LIVES}: {time.monotonic() - started:.0f} s; MiB: nats-server {bus} {shown}",
                end="",
            )
        peak, writes = site.bus_memory("VmHWM"), site.pod_writes() / (LIVES * PODS)
    within("soak_bus_mib", peak)
    within("soak_bus_cpu_seconds", statistics.median(bus_cpu))
    within("writes_per_created_pod", writes)
    within("soak_growth", max(mib / after[SETTLED - 1][name] for name, mib in after[-1].items()))


async def live(site: Bench, name: str) -> None:
    """Create and delete a CloneSet; returns when its pods are gone."""
    await site.create(CLONE_SET, name, PODS, IMAGE)
    await site.until(lambda: site.pods.ready(IMAGE) == PODS)
    await site.delete(CLONE_SET, name)
    await site.until(lambda: len(site.pods) == 0)
    await site.quiet()
