"""What comes at the wrong time: a message that slips in, requests that wait too long, a state that was long ago.

Each class is a `Strike` for one entry of the catalogue (`catalogue.py`).
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
"""How long the apiserver carries nothing out: longer than a lease, and than another replica takes to plan."""

LOST_SECONDS = 1.5
"""How old a backup is that is restored: services have looked at their leases in between."""

FORMER_EPOCH = subjects.epoch(subjects.FIRST_LINE, "former")
"""That of a watcher which was replaced before the run began."""


class SlipIn(NoEffect):
    """A former watcher, paused for long, has a message on its way that fits into the stream by chance: an object that
    has not changed for long stands in an old epoch now, behind the marker of the new one. And the services begin anew:
    they are late joiners, who never saw what it hides."""

    def moment(self, injector: FaultInjector) -> None:
        resource = next(one for one in published() if one.plural == self.fault.resource)
        injector.after_marker(resource, lambda: self._slip_in(injector, resource))

    def _slip_in(self, injector: FaultInjector, resource: Resource) -> None:
        world = injector.world
        held = world.bus.stream(subjects.kube_stream(resource).name).newest_of_each(">", world.loop.time())
        stored = (one for one in held if one.headers.get(subjects.OP) in (subjects.ADDED, subjects.MODIFIED))
        hidden = next((one for one in stored if f".{RESTORED_NAMESPACE}." not in one.subject), None)
        if hidden is not None:
            headers = dict(hidden.headers) | {subjects.EPOCH: FORMER_EPOCH}
            world.bus.publish(hidden.subject, hidden.data, headers, None, None)
        for leader in leaders(world):
            world.processes[leader].crash()
            world.loop.call_soon(world.processes[leader].start, context=Context())


class Queue(NoEffect):
    """The apiserver is so slow that it carries nothing out for one process while all others go on, longer than the
    process's lease lasts. What nobody waits for any more it drops, as the real one does."""

    async def write(self, injector: FaultInjector, request: Request, serve: Callable[[], Awaitable[T]]) -> T:
        injector.queue(request.writer, QUEUE_SECONDS)
        return await injector.queued(request, serve)


class Restore(NoEffect):
    """etcd is restored from a backup that was made here, and the apiserver started again."""

    async def write(self, injector: FaultInjector, request: Request, serve: Callable[[], Awaitable[T]]) -> T:
        injector.restore_after(LOST_SECONDS)
        await injector.world.clock.sleep(ONE_WAY)
        reply = await serve()
        await injector.world.clock.sleep(ONE_WAY)
        return reply
