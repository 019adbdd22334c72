"""What kubelets do at a fault's point: what they report of a pod was true when they looked."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from msgspec.structs import replace

from tests.simulation.apiserver.wire import ONE_WAY, Request
from tests.simulation.perturbation.fault_injector import FaultInjector
from tests.simulation.perturbation.service_faults import FAILOVER_SECONDS, CrashBefore, NoEffect

T = TypeVar("T")

LATE_SECONDS = 0.25
"""How long a report is under way: longer than a controller takes to do the next thing."""

LATE_FOR_SECONDS = 4.0
"""How long kubelets are so slow."""

SLOW_SECONDS = 0.6
"""How late a kubelet's Ready follows readiness gates: several passes later."""

SLOW_FOR_SECONDS = FAILOVER_SECONDS + 3.0
"""How long it is so: until the next replica has given back and taken what it will."""


class LateReports(NoEffect):
    """From this write on, for a while, the status that a kubelet writes is of an older pod than the one it meets."""

    async def write(self, injector: FaultInjector, request: Request, serve: Callable[[], Awaitable[T]]) -> T:
        kubelets, loop = injector.world.cluster.kubelets, injector.world.loop
        kubelets.lag = LATE_SECONDS
        loop.call_later(LATE_FOR_SECONDS, setattr, kubelets, "lag", 0.0)
        await injector.world.clock.sleep(ONE_WAY)
        reply = await serve()
        await injector.world.clock.sleep(ONE_WAY)
        return reply


class HalfBegun(CrashBefore):
    """The process dies as this write leaves, with other updates half begun, and for a while kubelets are slow to say
    what readiness gates mean."""

    async def write(self, injector: FaultInjector, request: Request, serve: Callable[[], Awaitable[T]]) -> T:
        kubelets, loop = injector.world.cluster.kubelets, injector.world.loop
        usual, kubelets.durations = kubelets.durations, replace(kubelets.durations, readiness=SLOW_SECONDS)
        loop.call_later(SLOW_FOR_SECONDS, setattr, kubelets, "pace", usual)
        return await super().write(injector, request, serve)
