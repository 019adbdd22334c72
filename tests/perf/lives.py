"""The life of many pods, step by step: created, updated, scaled in by half, deleted."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable

from flotilla_common.api.resources import Resource
from tests.perf.rollouts import Bench

OLD, NEW = "nginx:alpine", "nginx:mainline"


class Life:
    """The cost of the life of many pods, step by step."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.cpu: dict[str, float] = {}
        self.bus_cpu: dict[str, float] = {}  # nats-server's part
        self.pod_writes: dict[str, float] = {}
        self.rss = 0.0  # MiB of the largest service with all pods
        self.memory: dict[str, float] = {}  # MiB of each service with all pods
        self.service_cpu: Counter[str] = Counter()  # each service's part

    async def step(
        self, site: Bench, what: str, count: int, change: Awaitable[object], done: Callable[[], bool]
    ) -> None:
        """Carry out a change of this many pods, and wait until it is done."""
        cpu, bus_cpu, writes, services = site.cpu(), site.bus_cpu(), site.pod_writes(), site.service_cpu()
        self.seconds[what] = await site.timed(change, done)
        self.cpu[what] = site.cpu() - cpu
        self.bus_cpu[what] = site.bus_cpu() - bus_cpu
        self.service_cpu += site.service_cpu() - services
        self.pod_writes[what] = (site.pod_writes() - writes) / count
        print(
            f"\n{what} {count}: {self.seconds[what]:.1f} s, CPU {self.cpu[what]:.2f} s (NATS {self.bus_cpu[what]:.2f}),"
            f" {self.pod_writes[what]:.3f} pod writes per pod"
        )


async def live(site: Bench, resource: Resource, workloads: int, replicas: int, *, updates: bool = True) -> Life:
    """Create, update, scale in by half, delete, with nothing left over from the previous life.

    Without `updates` only create and delete.
    """
    await site.quiet()
    life = Life()
    count = workloads * replicas
    names = [f"{resource.plural}-{replicas}-{index}" for index in range(workloads)]

    async def step(what: str, change: Callable[[str], Awaitable[object]], done: Callable[[], bool]) -> None:
        print(f"\n{resource.kind}, {workloads} x {replicas}:")
        await life.step(site, what, count, asyncio.gather(*(change(name) for name in names)), done)

    ready, half = site.pods.ready, replicas // 2
    await step("create", lambda name: site.create(resource, name, replicas, OLD), lambda: ready(OLD) == count)
    life.rss = max(site.memory().values())
    if updates:
        await step("update", lambda name: site.set_image(resource, name, NEW), lambda: ready(NEW) == count)
        life.memory = site.memory()
        await step(
            "scale in",
            lambda name: site.merge(resource, name, {"replicas": half}),
            lambda: len(site.pods) == workloads * half,
        )
    await step("delete", lambda name: site.delete(resource, name), lambda: len(site.pods) == 0)
    return life
