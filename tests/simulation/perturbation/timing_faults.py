"""The effects of faults in time: a late message, requests that wait too long, an old state.

Each class is an `Effect` for one entry of the catalogue (`catalogue.py`).
"""

from collections.abc import Awaitable, Callable
from contextvars import Context
from typing import TypeVar

from flotilla_common.api.resources import Resource
from flotilla_common.bus import subjects
from flotilla_common.installed import published
from tests.simulation.apiserver.wire import ONE_WAY, Request
from tests.simulation.perturbation.fault_injector import FaultInjector
from tests.simulation.perturbation.service_faults import NoEffect, leaders
from tests.simulation.restored_copies import RESTORED_NAMESPACE

T = TypeVar("T")

QUEUE_SECONDS = 6.0
"""Fake seconds for which the apiserver executes nothing: longer than a lease and another replica's first pass."""

LOST_SECONDS = 1.5
"""The age in fake seconds of a restored backup: services have read their leases since."""

FORMER_EPOCH = subjects.epoch(subjects.FIRST_LINE, "former")
"""The epoch of a watcher that was replaced before the run began."""


class SlipIn(NoEffect):
    """A late message of a former watcher, paused for long, that fits into the stream by chance.

    An object that has not changed for long is now in an old epoch, behind the marker of the new one. The services start
    over: as late joiners they never saw what it hides.
    """

    def moment(self, injector: FaultInjector) -> None:
        resource = next(one for one in published() if one.plural == self.fault.resource)
        injector.after_marker(resource, lambda: self._slip_in(injector, resource))

    def _slip_in(self, injector: FaultInjector, resource: Resource) -> None:
        world = injector.world
        held = world.bus.stream(subjects.kube_stream(resource).name).newest_of_each((">",), world.loop.time())
        stored = (one for one in held if one.headers.get(subjects.OP) in (subjects.ADDED, subjects.MODIFIED))
        hidden = next((one for one in stored if f".{RESTORED_NAMESPACE}." not in one.subject), None)
        if hidden is not None:
            headers = dict(hidden.headers) | {subjects.EPOCH: FORMER_EPOCH}
            world.bus.publish(hidden.subject, hidden.data, headers, None, None)
        for leader in leaders(world):
            world.processes[leader].crash()
            world.loop.call_soon(world.processes[leader].start, context=Context())


class Queue(NoEffect):
    """An apiserver that executes no request of one process for longer than its lease, while all others go on.

    It drops requests whose sender has given up, as the real one does.
    """

    async def write(self, injector: FaultInjector, request: Request, serve: Callable[[], Awaitable[T]]) -> T:
        injector.queue(request.writer, QUEUE_SECONDS)
        return await injector.queued(request, serve)


class Restore(NoEffect):
    """A restore of etcd from a backup that was made here, and a restart of the apiserver."""

    async def write(self, injector: FaultInjector, request: Request, serve: Callable[[], Awaitable[T]]) -> T:
        injector.restore_after(LOST_SECONDS)
        await injector.world.clock.sleep(ONE_WAY)
        reply = await serve()
        await injector.world.clock.sleep(ONE_WAY)
        return reply
