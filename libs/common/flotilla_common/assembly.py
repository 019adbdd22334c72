"""What every controller service is made of, put together once: mirror, shards, executor, recorder, controllers.

A service's `app.py` asks for tables and controllers and calls `run`; the order of starting is here: mirror first, then
leases, then, for gained shards, the take-over LIST before the first plan (DESIGN §4).
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import TypeVar

from flotilla_common.api.resources import Resource
from flotilla_common.bus.subjects import ACT_STREAM, WHY_STREAM
from flotilla_common.control import metrics
from flotilla_common.control.controller import Controller, Gather, Key, Planner, Reread, Snapshot
from flotilla_common.control.events import Recorder
from flotilla_common.control.executor import Executor
from flotilla_common.control.journal import Journal
from flotilla_common.control.limiter import Limiter
from flotilla_common.control.shards import LeaseTerms, Shards
from flotilla_common.mirror.mirror import Mirror
from flotilla_common.service import Context

S = TypeVar("S", bound=Snapshot)


class Assembly:
    """One controller service's parts."""

    def __init__(self, context: Context, component: str) -> None:
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
        self.recorder = Recorder(context.api, context.clock, context.entropy, component)
        self._journal = Journal(context.bus, context.clock, context.service, context.replica)
        self._component = component
        self._controllers: list[tuple[Controller[Snapshot], Callable[[], list[Key]]]] = []
        self._executor = Executor(
            api=context.api,
            store=self.mirror,
            clock=context.clock,
            limiter=Limiter(context.clock, most=settings.kube_max_writes),
            recorder=self.recorder,
            journal=self._journal,
        )

    def controller(
        self,
        resource: Resource,
        *,
        gather: Gather[S],
        plan: Planner[S],
        reread: Reread,
        keys: Callable[[], list[Key]],
        workers: int,
    ) -> Controller[S]:
        """A controller for one kind; `keys` lists all its objects, for shards that are gained."""
        controller = Controller[S](
            name=self._component,
            resource=resource,
            gather=gather,
            plan=plan,
            reread=reread,
            executor=self._executor,
            journal=self._journal,
            shards=self.shards,
            clock=self.context.clock,
            entropy=self.context.entropy,
            workers=workers,
        )
        self._controllers.append((controller, keys))  # type: ignore[arg-type]
        return controller

    async def run(self, take_over: Sequence[Resource]) -> None:
        """Start everything in order and work until cancelled."""
        self.shards.on_change(lambda _: self.mirror.take_over(take_over), self._serve)
        self.context.vitals["shards"] = lambda: sorted(self.shards.serving)
        metrics.report_leadership(lambda: bool(self.shards.serving))
        async with asyncio.TaskGroup() as group:
            group.create_task(self.context.bus.ensure_streams((ACT_STREAM, WHY_STREAM)))
            group.create_task(self.mirror.run())
            group.create_task(self.recorder.run())
            await self.mirror.synced()
            self.context.started()
            group.create_task(self.shards.run())
            for controller, _ in self._controllers:
                group.create_task(controller.run())

    def _serve(self, gained: frozenset[int]) -> None:
        for controller, keys in self._controllers:
            controller.enqueue_shards(keys(), gained)
