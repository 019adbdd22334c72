"""What every controller service is made of, put together once: mirror, shards, executor, controllers.

A service's `app.py` asks for tables and controllers and calls `run`; the order of starting is here: mirror first, then
leases, then, for gained shards, the resync before the first plan (DESIGN §4). So is the order of ending: no new
writes, the answers to those under way, the leases, the last events.
"""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol, TypeVar

import msgspec

from flotilla_common.api.resources import Resource
from flotilla_common.bus.subjects import ACT_STREAM, WHY_STREAM
from flotilla_common.control import metrics
from flotilla_common.control.controller import Controller, Gather, Key, Memory, Planner, Reread, Snapshot
from flotilla_common.control.events import Recorder
from flotilla_common.control.executor import Executor
from flotilla_common.control.journal import Journal
from flotilla_common.control.leases import LeaseTerms
from flotilla_common.control.limiter import Limiter
from flotilla_common.control.queue import Backoff
from flotilla_common.control.shards import Shards
from flotilla_common.control.undecodable import UndecodableReporter
from flotilla_common.kube.installed import until_installed
from flotilla_common.mirror.intake import Undecodable
from flotilla_common.mirror.mirror import Mirror
from flotilla_common.service import Context

S = TypeVar("S", bound=Snapshot)

DRAIN_SECONDS = 5.0
"""How long a service that is told to stop waits for the answers to its last writes; they take milliseconds, unless the
apiserver is in trouble. Within the 30 seconds that Kubernetes gives a pod."""

LAST_EVENTS_SECONDS = 1.0
"""How long it then writes events that are still waiting."""


class _Runs(Protocol):
    """A controller of whatever snapshots."""

    @property
    def resource(self) -> Resource: ...
    def enqueue_shards(self, keys: list[Key], gained: frozenset[int]) -> None: ...
    async def run(self) -> None: ...
    def stop(self) -> None: ...


class _Part(msgspec.Struct, frozen=True):
    """One controller and what goes with it."""

    controller: _Runs
    keys: Callable[[], list[Key]]
    undecodable: UndecodableReporter


class Assembly:
    """One controller service's parts."""

    def __init__(self, context: Context) -> None:
        settings = context.settings
        self.context = context
        self.mirror = Mirror(
            api=context.api,
            bus=context.bus,
            clock=context.clock,
            health=context.health,
            fallback_after=settings.bus_fallback_after,
        )
        self.shards = Shards(
            api=context.api,
            clock=context.clock,
            service=context.service,
            namespace=settings.namespace,
            identity=context.replica,
            count=settings.shards,
            terms=LeaseTerms(settings.lease_duration, settings.lease_retry_period),
        )
        self._journal = Journal(context.bus, context.clock, context.service, context.replica)
        self._limiter = Limiter(context.clock, most=settings.kube_max_writes)
        self._parts: list[_Part] = []
        self._recorders: list[Recorder] = []

    def recorder(self, component: str) -> Recorder:
        """Events in the name of a component that is no controller, such as a node agent."""
        recorder = Recorder(self.context.api, self.context.clock, self.context.entropy, component)
        self._recorders.append(recorder)
        return recorder

    def executor(self, recorder: Recorder) -> Executor:
        """For writes that no plan decides: what somebody else was told and we have checked."""
        return Executor(
            api=self.context.api,
            store=self.mirror,
            clock=self.context.clock,
            limiter=self._limiter,
            recorder=recorder,
            journal=self._journal,
        )

    def controller(
        self,
        resource: Resource,
        *,
        name: str,
        gather: Gather[S],
        plan: Planner[S],
        reread: Reread,
        keys: Callable[[], list[Key]],
        workers: int,
    ) -> Controller[S]:
        """A controller for objects of one kind; its name stands in events and metrics (install.md §10).

        `keys` lists all its objects, for shards that are gained. What cannot be decoded is never gathered.
        """
        context, mirror = self.context, self.mirror
        recorder = self.recorder(name)

        def gather_readable(key: Key, memory: Memory) -> S | None:
            """A table keeps the last version that it could read; nothing may be planned with that."""
            snapshot = gather(key, memory)
            return None if snapshot is None or mirror.is_undecodable(resource, snapshot.subject.uid) else snapshot

        controller = Controller[S](
            name=name,
            resource=resource,
            gather=gather_readable,
            plan=plan,
            reread=reread,
            executor=self.executor(recorder),
            journal=self._journal,
            shards=self.shards,
            clock=context.clock,
            entropy=context.entropy,
            workers=workers,
            backoff=Backoff(context.settings.rate_limiter_base_delay, context.settings.rate_limiter_max_delay),
        )
        undecodable = UndecodableReporter(recorder, self._journal, self.shards)
        mirror.on_undecodable(resource, undecodable.report)
        self._parts.append(_Part(controller, keys, undecodable))
        return controller

    async def run(self, resync: Sequence[Resource]) -> None:
        """Start everything in order, work until cancelled, then end in order."""
        context = self.context
        self.shards.on_change(lambda _: self.mirror.resync(resync), self._serve)
        context.vitals["shards"] = lambda: sorted(self.shards.serving)
        context.vitals["lag"] = lambda: round(max(map(self.mirror.lag, self.mirror.resources)), 1)
        metrics.report_leadership(lambda: bool(self.shards.serving))
        planned = {part.controller.resource for part in self._parts}
        for resource in self.mirror.resources:
            if resource not in planned:
                self.mirror.on_undecodable(resource, self._note_undecodable)
            if resource.custom:
                waiting = partial(context.health.ready, context.service, False)
                await until_installed(context.api, context.clock, resource, waiting)
        async with asyncio.TaskGroup() as group:
            group.create_task(context.bus.ensure_streams((ACT_STREAM, WHY_STREAM)))
            group.create_task(self.mirror.run())
            for recorder in self._recorders:
                group.create_task(recorder.run())
            await self.mirror.synced()
            context.started()
            leading = group.create_task(self.shards.run())
            working = [group.create_task(part.controller.run()) for part in self._parts]
            try:
                await asyncio.wait([*working, leading])  # a service may have no controller, and only answer reports
            finally:
                await self._wind_down(working, leading)

    def _serve(self, gained: frozenset[int]) -> None:
        for part in self._parts:
            part.controller.enqueue_shards(part.keys(), gained)
            for undecodable in self.mirror.undecodable(part.controller.resource):
                part.undecodable.report(undecodable)

    def _note_undecodable(self, undecodable: Undecodable) -> None:
        """A dependent that no controller here speaks for: its table keeps the version that it could read."""
        name = f"{undecodable.namespace}/{undecodable.name}"
        self.context.log.warning(
            "undecodable object", object=name, kind=undecodable.resource.kind, error=undecodable.error
        )

    async def _wind_down(self, working: Sequence[asyncio.Task[None]], leading: asyncio.Task[None]) -> None:
        """Let what is under way be answered and recorded, then hand the shards over at once."""
        self.shards.retire()
        for part in self._parts:
            part.controller.stop()
        late = (await asyncio.wait(working, timeout=DRAIN_SECONDS))[1] if working else ()
        if late:
            self.context.log.warning("stopping with unanswered writes", seconds=DRAIN_SECONDS)
        leading.cancel()
        await asyncio.wait([leading])
        flushes = [asyncio.ensure_future(recorder.flush()) for recorder in self._recorders]
        _, late = await asyncio.wait(flushes, timeout=LAST_EVENTS_SECONDS)
        for flush in late:
            flush.cancel()
