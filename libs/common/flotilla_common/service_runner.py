"""Builds a service of controllers from their specs: mirror, shards, executor, controllers.

The start order is here: the mirror first, then leases, then, for gained shards, the resync LIST before the first plan
(architecture.md §4). So is the shutdown order: no new writes, responses to pending writes, leases, last events.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any

import msgspec

from flotilla_common.api.resources import Resource
from flotilla_common.bus.permissions import service_permissions
from flotilla_common.bus.streams import keep_streams
from flotilla_common.bus.subjects import RECORDS
from flotilla_common.clock import follow_clock
from flotilla_common.control import metrics
from flotilla_common.control.controller import Controller, Snapshot
from flotilla_common.control.events import Recorder
from flotilla_common.control.executor import Executor
from flotilla_common.control.journal import Journal
from flotilla_common.control.keystate import Key, Memory
from flotilla_common.control.leases import LeaseTerms
from flotilla_common.control.limiter import Limiter
from flotilla_common.control.plan import ObjectRef
from flotilla_common.control.queue import Backoff
from flotilla_common.control.replay_controller import Planning
from flotilla_common.control.shards import Shards
from flotilla_common.control.spec import Component, ControllerSpec, Gatherer, Responder, access_of
from flotilla_common.kube.discovery import until_installed
from flotilla_common.live import LiveContext, report_undecodable
from flotilla_common.mirror.decoder import OnUndecodable, Undecodable
from flotilla_common.mirror.mirror import Mirror
from flotilla_common.mirror.table import Table
from flotilla_common.service import Context, Service

DRAIN_SECONDS = 5.0
"""The time that a stopping service waits for responses to its last writes.

They take milliseconds unless the apiserver is in trouble. Kubernetes gives a pod 30 seconds in all.
"""

LAST_EVENTS_SECONDS = 1.0
"""The time that a stopping service then spends on writing pending events."""


def controller_service(name: str, components: Sequence[Component]) -> Service:
    """Return the service that runs these components."""

    async def run(context: Context) -> None:
        runner = ServiceRunner(context)
        for component in components:
            await runner.serve(component)
        await runner.run()

    answers = [kind for component in components for kind in component.answers]
    permissions = service_permissions(name, answers)
    return Service(
        name, run, components=tuple(components), access=tuple(access_of(components)), permissions=permissions
    )


class _Served(msgspec.Struct, frozen=True):
    """A running controller and its companions."""

    spec: ControllerSpec[Any, Any]
    controller: Controller[Any]
    keys: Callable[[], list[Key]]
    report: OnUndecodable


class _AwaitedPods:
    """Holds keys back until the pods near their objects are in the table.

    A new object may be the first that needs pods of its namespace: they arrive from the bus in a moment.
    """

    def __init__(self, mirror: Mirror, spec: ControllerSpec[Any, Any], primary: Table[Any]) -> None:
        self._mirror = mirror
        self._near = [
            (watch.resource, near.namespaces)
            for watch in spec.watches
            if watch.pods is not None
            for near in watch.pods.near
            if near.watch is spec.primary
        ]
        self._primary = primary
        self._keys: set[Key] = set()

    def holds_back(self, key: Key) -> bool:
        """Report whether the key has to wait; `release` returns it later."""
        obj = self._primary.get(*key) if self._near else None
        if obj is None or all(
            self._mirror.covers(resource, namespace)
            for resource, namespaces in self._near
            for namespace in namespaces(obj)
        ):
            return False
        self._keys.add(key)
        return True

    def release(self) -> list[Key]:
        """Return the keys that need not wait any more, once."""
        waiting, self._keys = self._keys, set()
        return [key for key in waiting if not self.holds_back(key)]


class ServiceRunner:
    """The running components of one service."""

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
            identity=context.holder,
            count=settings.shards,
            terms=LeaseTerms(settings.lease_duration, settings.lease_retry_period),
        )
        self._journal = Journal(context.bus, context.clock, context.service, context.replica, context.tracer)
        self._limiter = Limiter(context.clock, most=settings.kube_max_writes)
        self._served: list[_Served] = []
        self._components = 0
        self._recorders: list[Recorder] = []
        self._tasks: list[Callable[[], Coroutine[Any, Any, None]]] = []
        self._planning: dict[str, Planning] = {}  # by the plural of the kind, for recordings
        self._server_version = ""

    async def serve(self, component: Component) -> None:
        """Run the component unless settings or gates disable it. Must be called before `run`.

        Raises BusError if the bus cannot register its responders.
        """
        context = self.context
        if why := component.why_off(context.settings, context.gates):
            context.health.ready(component.name, ok=True, why=why)
            context.log.warning("controller is disabled", controller=component.name, why=why)
            return
        self._components += 1
        live_context = LiveContext(
            context,
            self.mirror,
            self.shards,
            add_task=self._tasks.append,
            recorder=self._recorder,
            executor=self._executor,
        )
        for watch in component.all_watches:
            await live_context.watch(watch)
        if isinstance(component, Responder):
            await component.build(live_context)
        else:
            await self._serve_controller(component, live_context)

    async def run(self) -> None:
        """Start everything in order, work until cancelled, then shut down in order."""
        context = self.context
        if not self._components:
            await self._idle()
        self._hold_shards(frozenset())
        self.shards.on_change(
            lambda _: self.mirror.resync(self._consistent()), self._serve_shards, held=self._hold_shards
        )
        self._plan_again_when_kinds_come()
        context.vitals["shards"] = lambda: sorted(self.shards.serving)
        context.vitals["lag"] = lambda: round(max(map(self.mirror.lag, self.mirror.resources)), 1)
        context.vitals["direct"] = lambda: [one.id for one in self.mirror.resources if self.mirror.is_direct(one)]
        context.vitals["undecodable"] = self._undecodable
        context.vitals["planning"] = lambda: self._planning
        metrics.report_leadership(lambda: bool(self.shards.serving))
        await self._wait_for_kinds()
        async with asyncio.TaskGroup() as group:
            group.create_task(keep_streams(context.bus, RECORDS))
            group.create_task(self.mirror.run())
            for recorder in self._recorders:
                group.create_task(recorder.run())
            for task in self._tasks:
                group.create_task(task())
            group.create_task(follow_clock(context.clock, self._clock_was_set))
            await self.mirror.synced()
            context.started()
            leading = group.create_task(self.shards.run())
            working = [group.create_task(one.controller.run()) for one in self._served]
            try:
                await asyncio.wait([*working, leading])  # a service may have responders only
            finally:
                await self._wind_down(working, leading)

    async def _serve_controller(self, spec: ControllerSpec[Any, Any], live_context: LiveContext) -> None:
        if spec.reports is not None:
            live_context.receive(spec.primary, spec.reports)
        options = await self._options(spec)
        gatherer = spec.build(live_context, options)
        recorder = self._recorder(spec.name)
        controller = self._controller(spec, gatherer, live_context, recorder)
        live_context.attach(controller)
        for trigger in spec.triggers(gatherer):
            live_context.enqueue_on(trigger)
        if spec.wakes_itself:
            live_context.enqueue_changed(spec.primary)
        for watch in spec.watches:
            live_context.enqueue_owners(watch)
        report = partial(report_undecodable, recorder=recorder, journal=self._journal, shards=self.shards)
        self.mirror.on_undecodable(spec.resource, report)
        keys = live_context.table(spec.primary).keys if spec.keys is None else partial(spec.keys, gatherer)
        self._served.append(_Served(spec, controller, keys, report))
        gates = self.context.gates.changes()
        self._planning[spec.resource.plural] = Planning(gates=gates, options=msgspec.to_builtins(options) or {})
        if spec.reports is not None:
            await live_context.serve_reports(spec.reports)

    def _controller(
        self,
        spec: ControllerSpec[Any, Any],
        gatherer: Gatherer[Snapshot],
        live_context: LiveContext,
        recorder: Recorder,
    ) -> Controller[Any]:
        context, mirror, settings = self.context, self.mirror, self.context.settings

        awaited = _AwaitedPods(mirror, spec, live_context.table(spec.primary))

        def gather_readable(key: Key, memory: Memory) -> Snapshot | None:
            """Gather a snapshot; None while pods are awaited, and for an object whose latest version cannot be decoded.

            The table holds an older version of the latter.
            """
            if awaited.holds_back(key):
                return None
            snapshot = gatherer.gather(key, memory)
            if snapshot is None or mirror.is_undecodable(spec.resource, snapshot.subject.uid):
                return None
            return snapshot

        def subject_of(key: Key) -> ObjectRef | None:
            obj = live_context.table(spec.primary).get(*key)
            return None if obj is None else ObjectRef.of(spec.resource, obj.metadata)

        async def reread(key: Key) -> None:
            if spec.also_read is not None:
                await spec.also_read(live_context, key)
            await mirror.read(spec.resource, *key)
            for watch in spec.watches:
                if watch.consistent and live_context.watched(watch):
                    namespace = key[0] if watch.resource.namespaced else ""
                    await mirror.read_owned(watch.resource, mirror.namespace_of(watch.resource) or namespace)

        def plan_awaited() -> None:
            for key in awaited.release():
                controller.enqueue(*key)

        mirror.on_synced(plan_awaited)
        controller = Controller(
            name=spec.name,
            resource=spec.resource,
            gather=gather_readable,
            subject_of=subject_of,
            plan=spec.plan,
            reread=reread,
            executor=self._executor(recorder),
            journal=self._journal,
            shards=self.shards,
            clock=context.clock,
            entropy=context.entropy,
            workers=spec.workers_of(settings),
            idle_first=spec.idle_first,
            backoff=Backoff(settings.rate_limiter_base_delay, settings.rate_limiter_max_delay),
        )
        return controller

    async def _options(self, spec: ControllerSpec[Any, Any]) -> msgspec.Struct | None:
        if spec.options is None:
            return None
        if not self._server_version:
            self._server_version = await self.context.server_version()
        return spec.options.of(self.context.settings, self._server_version)

    def _recorder(self, component: str) -> Recorder:
        recorder = Recorder(self.context.api, self.context.clock, self.context.entropy, component)
        self._recorders.append(recorder)
        return recorder

    def _executor(self, recorder: Recorder) -> Executor:
        return Executor(
            api=self.context.api,
            store=self.mirror,
            clock=self.context.clock,
            limiter=self._limiter,
            recorder=recorder,
            journal=self._journal,
        )

    def _consistent(self) -> list[Resource]:
        watches = [one for each in self._served for one in each.spec.all_watches if one.consistent or one.fresh]
        return list(dict.fromkeys(watch.resource for watch in watches if watch.resource in self.mirror.resources))

    async def _wait_for_kinds(self) -> None:
        """Wait until the cluster serves all mirrored kinds; `/readyz` names the missing one."""
        context = self.context
        planned = {one.spec.resource for one in self._served}
        for resource in self.mirror.resources:
            if resource not in planned:
                self.mirror.on_undecodable(resource, self._note_undecodable)
            if resource.custom and self.mirror.waits_for(resource):
                waiting = partial(context.health.ready, context.service, False)
                await until_installed(context.api, context.clock, resource, waiting)

    def _undecodable(self) -> dict[str, int]:
        counts = {resource.id: len(self.mirror.undecodable(resource)) for resource in self.mirror.resources}
        return {resource: count for resource, count in counts.items() if count}

    def _plan_again_when_kinds_come(self) -> None:
        """Requeue all keys when an optional kind gets installed, as their plans may depend on it."""
        for one in self._served:
            for watch in one.spec.all_watches:
                if watch.optional and watch.resource in self.mirror.resources:
                    self.mirror.on_served(watch.resource, partial(self._plan_all, one))

    def _plan_all(self, one: _Served) -> None:
        one.controller.enqueue_shards(one.keys(), self.shards.serving)

    async def _idle(self) -> None:
        """Wait until cancelled: there is no work before the process is restarted with other settings."""
        self.context.log.warning("all controllers are disabled")
        self.context.started()
        await asyncio.Event().wait()

    def _hold_shards(self, held: frozenset[int]) -> None:
        self.mirror.hold(held, self.shards.count)

    def _serve_shards(self, gained: frozenset[int]) -> None:
        for one in self._served:
            one.controller.enqueue_shards(one.keys(), gained)
            for found in self.mirror.undecodable(one.spec.resource):
                one.report(found)

    def _clock_was_set(self) -> None:
        self.context.log.info("the wall clock was set")
        for one in self._served:
            one.controller.clock_was_set()

    def _note_undecodable(self, found: Undecodable) -> None:
        """Log an undecodable dependent, of which the table keeps the last readable version."""
        name = f"{found.namespace}/{found.name}"
        self.context.log.warning("undecodable object", object=name, kind=found.resource.kind, error=found.error)

    async def _wind_down(self, working: Sequence[asyncio.Task[None]], leading: asyncio.Task[None]) -> None:
        """Wait for pending writes and events, then release the shards at once."""
        self.shards.retire()
        for one in self._served:
            one.controller.stop()
        late = (await asyncio.wait(working, timeout=DRAIN_SECONDS))[1] if working else ()
        if late:
            self.context.log.warning("stopping with pending writes", seconds=DRAIN_SECONDS)
        leading.cancel()
        await asyncio.wait([leading])
        flushes = [asyncio.ensure_future(recorder.flush()) for recorder in self._recorders]
        _, late = await asyncio.wait(flushes, timeout=LAST_EVENTS_SECONDS)
        for flush in late:
            flush.cancel()
