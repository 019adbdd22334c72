"""Simulates an apply until nothing changes: planners decide, and their writes go to a model of the cluster."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import msgspec

from flotilla_common.api.documents import Json, mappings
from flotilla_common.api.resources import Resource
from flotilla_common.control.keystate import Key, Memory
from flotilla_common.control.plan import Action, Chain, Create, Plan
from flotilla_common.control.replay_controller import Planning, ReplayController
from flotilla_common.control.spec import ControllerSpec
from flotilla_common.mirror.feed import Followed
from flotilla_common.model.cluster import Cluster
from flotilla_common.model.store import place_of
from flotilla_common.model.writes import Admit, Write, carry_out
from flotilla_insight.views import view_of

HORIZON = timedelta(hours=12)
"""How far time may jump: jobs that start again every day would never end."""

VAIN_WAKES = 5
"""Wake-ups in a row that lead to no write; after that a planner no longer advances the time."""

MOST_PASSES, MOST_PASSES_EACH = 20_000, 20
"""Limit of passes, in all and per object; the larger one counts. Exceeding it is a planner's defect, and reported."""

Waker = tuple[Resource, Key] | None
"""A planner and its object; None: the cluster itself."""


class Tick(msgspec.Struct, kw_only=True):
    """The writes at one point of time."""

    at: datetime
    writes: list[Write]
    waited: bool = False  # for a time that a planner had set


class Simulation:
    """The simulation of one apply."""

    def __init__(
        self,
        cluster: Cluster,
        specs: Mapping[Resource, ControllerSpec[Any, Any]],
        planning: Mapping[str, Planning],
        admit: Admit,
    ) -> None:
        self._cluster = cluster
        self._admit = admit
        self._woken: dict[tuple[Resource, Key], None] | None = (
            None  # by the apply and its consequences; None: before it
        )
        carriers = carriers_of(specs)
        self._controllers = {
            resource: ReplayController(
                spec,
                cluster.objects,
                planning.get(resource.plural, Planning()),
                cluster.clock,
                self._follow,
                partial(self._wake, resource) if resource in carriers else None,
            )
            for resource, spec in specs.items()
        }
        self._schedules = {resource for resource in specs if view_of(resource).plays_first_run}
        self._keys: dict[tuple[Resource, Key], None] = {}
        self._memory: dict[tuple[Resource, Key], Memory] = {}
        self._wakes: dict[tuple[Resource, Key], datetime] = {}
        self._passes = 0
        self._read: set[tuple[Resource, str]] = set()
        self._asked: dict[tuple[Resource, str], None] = {}
        self.finished = True
        """Whether it converged."""
        self.plans: dict[tuple[Resource, Key], Plan] = {}
        """The last plan of each object."""

    def asks(self, resource: Resource, stored: Json) -> list[tuple[Resource, str]]:
        """Return the names that the planners look up in kinds that are read by name only; load them before `run`."""
        self._plan_from(resource, stored)
        for kind, key in self._keys:
            self._controllers[kind].decide(key, Memory(), self._cluster.clock.now())
        asked, self._asked = list(self._asked), {}
        self._read.update(asked)
        return asked

    def _plan_from(self, resource: Resource, stored: Json) -> None:
        """Store the object and enqueue it with its dependents, direct and indirect.

        All objects of kinds that are simulated along are enqueued, too, and those of kinds that carry it out if the
        change concerns them.
        """
        self._woken = self._woken or {}
        waiting = [self._cluster.objects.put(resource, stored)]
        self._keys = {(resource, place_of(waiting[0])): None}
        for kind in (one for one in self._controllers if view_of(one).plays_along):
            self._keys |= {(kind, place_of(one)): None for one in self._cluster.objects.all(kind)}
        while waiting:
            owner = waiting.pop()
            for kind in self._controllers:
                owned = [one for one in self._cluster.objects.all(kind) if _is_owned(one, owner)]
                waiting += [one for one in owned if (kind, place_of(one)) not in self._keys]
                self._keys |= {(kind, place_of(one)): None for one in owned}
        self._keys |= self._woken

    def _wake(self, resource: Resource, key: Key) -> None:
        if self._woken is not None:
            self._woken[resource, key] = None
            self._keys[resource, key] = None

    def _follow(self, resource: Resource, name: str) -> Followed:
        if (resource, name) not in self._read:
            self._asked[resource, name] = None
        return Followed(synced=(resource, name) in self._read, trouble="")

    def run(self, resource: Resource, stored: Json) -> Iterator[Tick]:
        """Apply the object and yield each tick."""
        self._cluster.pods.meet()
        self._plan_from(resource, stored)
        yield self._tick()
        begin, vain = self._cluster.clock.now(), Counter[Waker]()
        while self._may_go_on():
            if self._cluster.step():
                yield self._tick()
                continue
            wake, waker = self._next_wake(vain)
            if wake is None or wake - begin > HORIZON:
                return
            self._cluster.clock.time = wake
            tick = self._tick(waited=True)
            vain[waker] += 1
            if tick.writes or self._awaits_run():
                vain.clear()
            yield tick
        self.finished = False

    def _may_go_on(self) -> bool:
        return self._passes < max(MOST_PASSES, MOST_PASSES_EACH * len(self._keys))

    def _next_wake(self, vain: Counter[Waker]) -> tuple[datetime | None, Waker]:
        """Return the next wake-up and its owner, without owners that woke in vain too often."""
        now, own = self._cluster.clock.now(), self._cluster.wake_at
        wakes: dict[Waker, datetime] = {**self._wakes, **({} if own is None else {None: own})}
        ahead = [(at, waker) for waker, at in wakes.items() if at > now and vain[waker] < VAIN_WAKES]
        return min(ahead, key=lambda one: one[0], default=(None, None))

    def _tick(self, *, waited: bool = False) -> Tick:
        """Run all passes that follow from each other at this time."""
        tick = Tick(at=self._cluster.clock.now(), writes=[], waited=waited)
        wrote = True
        while wrote and self._may_go_on():
            done = [write for key in list(self._keys) for write in self._pass(*key)]
            tick.writes += done
            wrote = any(write.effective for write in done)
        return tick

    def _pass(self, resource: Resource, key: Key) -> list[Write]:
        """Run one pass of one controller over one object."""
        self._passes += 1
        memory = self._memory.get((resource, key), Memory())
        decision = self._controllers[resource].decide(key, memory, self._cluster.clock.now())
        self._wakes.pop((resource, key), None)
        if decision is None:
            if self._cluster.objects.get(resource, *key) is None:
                self._keys.pop((resource, key), None)
            return []
        plan = self.plans[resource, key] = decision.plan
        if plan.wake_at is not None:
            self._wakes[resource, key] = plan.wake_at
        writes = self._carry_out(plan)
        if resource in self._schedules and any(isinstance(one.action, Create) and one.effective for one in writes):
            del self._keys[resource, key]
            self._wakes.pop((resource, key), None)
        failures = {write.action.phase: write.problem for write in writes if write.problem and write.action.phase}
        self._memory[resource, key] = Memory({**dict(plan.errors), **failures}, notes=plan.notes)
        return writes

    def _awaits_run(self) -> bool:
        """Report whether a schedule still waits for its run; until then it wakes now and then."""
        return any(resource in self._schedules for resource, _ in self._wakes)

    def _carry_out(self, plan: Plan) -> list[Write]:
        """Carry out the stages, then the status. The rest follows in the next pass, which sees the new version."""
        stages = plan.stages if plan.status is not None else (*plan.stages, *plan.after_status)
        writes: list[Write] = []
        for stage in stages:
            done = [write for chain in stage.chains for write in self._chain(chain)]
            writes += done
            if stage.stop_on_failure and any(write.problem for write in done):
                break
        return [*writes, self._write(plan.status)] if plan.status is not None else writes

    def _chain(self, chain: Chain) -> list[Write]:
        """Write one after the other, up to the first that is rejected."""
        done: list[Write] = []
        for action in chain:
            done.append(self._write(action))
            if done[-1].problem:
                break
        return done

    def _write(self, action: Action) -> Write:
        """Carry out a write, and enqueue the object if its kind is simulated."""
        write = carry_out(self._cluster.objects, action, self._admit)
        if write.effective and write.after is not None and action.resource in self._controllers:
            self._keys[action.resource, (action.namespace, action.name)] = None
        return write


def carriers_of(kinds: Iterable[Resource]) -> set[Resource]:
    """Return the kinds whose controllers carry out what objects of these kinds ask for."""
    return {carrier for kind in kinds for carrier in view_of(kind).carried_out_by}


def _is_owned(document: Json, owner: Json) -> bool:
    uid, namespace = owner["metadata"].get("uid"), owner["metadata"].get("namespace")
    if namespace and document["metadata"].get("namespace") != namespace:
        return False  # an owner with a namespace has dependents of that namespace only
    return any(one.get("uid") == uid for one in mappings(document["metadata"].get("ownerReferences")))
