"""The faults of kubelets: reports of a pod that are out of date."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from msgspec.structs import replace

from tests.simulation.apiserver.wire import ONE_WAY, Request
from tests.simulation.perturbation.fault_injector import FaultInjector
from tests.simulation.perturbation.service_faults import FAILOVER_SECONDS, CrashBefore, NoEffect

T = TypeVar("T")

LATE_SECONDS = 0.25
"""Fake seconds for which a report is in flight: longer than a controller takes for its next write."""

LATE_FOR_SECONDS = 4.0
"""Fake seconds for which kubelets report late."""

SLOW_SECONDS = 0.6
"""Fake seconds by which a kubelet's Ready follows readiness gates: several passes later."""

SLOW_FOR_SECONDS = FAILOVER_SECONDS + 3.0
"""Fake seconds for which Ready is slow: until the next replica has taken over."""


class LateReports(NoEffect):
    """Kubelets write the status of an older pod than the stored one, for a while from this write on."""

    async def write(self, injector: FaultInjector, request: Request, serve: Callable[[], Awaitable[T]]) -> T:
        kubelets, loop = injector.world.cluster.kubelets, injector.world.loop
        kubelets.lag = LATE_SECONDS
        loop.call_later(LATE_FOR_SECONDS, setattr, kubelets, "lag", 0.0)
        await injector.world.clock.sleep(ONE_WAY)
        reply = await serve()
        await injector.world.clock.sleep(ONE_WAY)
        return reply


class HalfBegun(CrashBefore):
    """A crash as this write is sent, with other updates half begun.

    For a while kubelets are slow to set Ready by readiness gates.
    """

    async def write(self, injector: FaultInjector, request: Request, serve: Callable[[], Awaitable[T]]) -> T:
        kubelets, loop = injector.world.cluster.kubelets, injector.world.loop
        usual, kubelets.durations = kubelets.durations, replace(kubelets.durations, readiness=SLOW_SECONDS)
        loop.call_later(SLOW_FOR_SECONDS, setattr, kubelets, "pace", usual)
        return await super().write(injector, request, serve)
