"""A cluster in memory: objects on the model of the apiserver, and the tables of gatherers that follow them."""

import itertools
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Any, Generic, TypeVar, cast

from flotilla_common.api.documents import merge
from flotilla_common.api.resources import Resource
from flotilla_common.clock import ManualClock
from flotilla_common.control.controller import Snapshot
from flotilla_common.control.executor import Report
from flotilla_common.control.keystate import Memory
from flotilla_common.control.plan import Action, Chain, Create, Delete, Outcome, OutcomeKind, Patch, Plan, Stage
from flotilla_common.control.spec import ControllerSpec, Gatherer
from flotilla_common.control.watches import Watch
from flotilla_common.model.store import Objects, owners_of
from flotilla_common.model.writes import Write, carry_out, delete, store
from tests.support.controller_context import FakeContext
from tests.support.fake_clock import FakeClock
from tests.testkit.documents import Json, decoded

S = TypeVar("S", bound=Snapshot)
G = TypeVar("G", bound=Gatherer[Any])
OK = Outcome(kind=OutcomeKind.OK)
PASSES = 60
"""More passes in a row than anything needs: a plan that never rests is a bug."""


class Cluster:
    """Objects of which all that are namespaced are in one namespace; `writes` are those of plans."""

    def __init__(
        self, watches: Iterable[Watch[Any]], *, clock: ManualClock | FakeClock, context: FakeContext, namespace: str
    ) -> None:
        self.clock = clock
        self.context = context
        self.namespace = namespace
        self.writes: list[Write] = []
        self.refuse: Callable[[Action], Outcome | None] = lambda _: None
        """May answer a write in place of the apiserver."""
        self.lagging: set[str] = set()
        """Names of objects whose changes the tables do not receive, until they are written or read."""
        self.conflicts = 0
        self.batches: list[list[Action]] = []
        """The first actions of chains that ran side by side."""
        self.objects = Objects(cast("ManualClock", clock))
        self._watches = {watch.resource: watch for watch in watches}
        self._numbers = itertools.count(1)
        self.objects.listen(self._follow)

    @property
    def now(self) -> datetime:
        return self.clock.now()

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        if isinstance(self.clock, ManualClock):
            self.clock.time += timedelta(seconds=seconds)
        else:
            self.clock.time += seconds

    def find(self, resource: Resource, name: str) -> Json | None:
        """Return the object, or None."""
        return self.objects.get(resource, self.namespace if resource.namespaced else "", name)

    def held(self, resource: Resource, name: str) -> Json:
        """Return the object, which must exist."""
        found = self.find(resource, name)
        assert found is not None, f"{resource.plural} {name} does not exist"
        return found

    def put(self, resource: Resource, document: Json) -> Json:
        """Store the object as it is; a new one gets a uid, and the namespace if it names none."""
        metadata: Json = ({"namespace": self.namespace} if resource.namespaced else {}) | document["metadata"]
        held = self.objects.get(resource, metadata.get("namespace", ""), metadata["name"])
        uid = held["metadata"]["uid"] if held is not None else f"uid-{metadata['name']}-{next(self._numbers)}"
        return self.objects.put(resource, document | {"metadata": {"uid": uid} | metadata})

    def edit(self, resource: Resource, name: str, patch: Json) -> None:
        """Patch an object as a user does."""
        held = self.held(resource, name)
        after = merge(held, patch)
        if patch.get("status") or (patch.get("metadata") or {}).keys() & {"deletionTimestamp"}:
            self.objects.put(resource, after)
        else:
            store(self.objects, resource, held, after)

    def remove(self, resource: Resource, name: str) -> None:
        """Delete an object; finalizers and grace hold it."""
        delete(self.objects, resource, self.held(resource, name), {})

    def vanish(self, resource: Resource, name: str) -> None:
        """Remove an object at once."""
        self.objects.remove(resource, self.held(resource, name))

    def sees(self, resource: Resource, name: str) -> bool:
        """Report whether the tables receive changes of this object."""
        return name not in self.lagging

    def show(self, resource: Resource, document: Json) -> None:
        """Put the object into the tables, as a read does."""
        self.lagging.discard(document["metadata"]["name"])
        watch = self._watches[resource]
        self.context.put(watch, decoded(document, watch.type))

    def admitted(self, resource: Resource, document: Json, old: Json | None) -> Json:
        """Return the object of a write as admission and the apiserver change it."""
        return document

    def write(self, action: Action) -> Write:
        """Carry out the action, which must succeed."""
        if not isinstance(action, Create):
            held = self.objects.get(action.resource, action.namespace, action.name)
            assert held is not None, f"{action.cause}: {action.name} does not exist"
            meta = held["metadata"]
            assert action.uid == meta["uid"] or (isinstance(action, Patch) and not action.uid), (
                f"{action.cause}: another object"
            )
            assert action.resource_version in ("", meta["resourceVersion"]), f"{action.cause}: an older version"
        self.lagging.discard(action.name)
        write = carry_out(self.objects, action, self.admitted)
        assert not write.problem, write.problem
        self.writes.append(write)
        return write

    def answer(self, action: Action) -> Outcome:
        """Return the outcome of a write; a refusal is followed by a read, as executors do."""
        outcome = self.refuse(action)
        if outcome is not None:
            return outcome
        held = self.objects.get(action.resource, action.namespace, action.name)
        visible = self.sees(action.resource, action.name)
        if isinstance(action, Create) and held is not None:
            self.show(action.resource, held)
            ours = [one["uid"] for one in owners_of(held)] == [one["uid"] for one in owners_of(action.body)]
            assert not ours or not visible, f"{action.name} exists, and the tables have it"
            if ours:
                return OK
            return Outcome(kind=OutcomeKind.ALREADY_EXISTS, message=f"{action.name} already exists")
        if not isinstance(action, Create):
            if held is None:
                assert not visible, f"{action.name} does not exist, and the tables show it"
                return Outcome(kind=OutcomeKind.NOT_FOUND)
            meta = held["metadata"]
            stale = action.uid not in ("", meta["uid"]) or action.resource_version not in ("", meta["resourceVersion"])
            if stale and not visible:
                self.conflicts += 1
                self.show(action.resource, held)
                return Outcome(kind=OutcomeKind.CONFLICT)
        self.write(action)
        return OK

    def carry_out(self, plan: Plan) -> Report:
        """Carry out the stages by the rules of executors."""
        report = Report()
        for stage in plan.stages:
            if not self._stage(stage, report) and stage.stop_on_failure:
                break
        return report

    def _stage(self, stage: Stage, report: Report) -> bool:
        size, chains = stage.slow_start or len(stage.chains), list(stage.chains)
        while chains:
            batch, chains = chains[:size], chains[size:]
            self.batches.append([chain[0] for chain in batch])
            done = [self._chain(chain, report) for chain in batch]
            if not all(done):
                return False
            size *= 2
        return True

    def _chain(self, chain: Chain, report: Report) -> bool:
        for action in chain:
            outcome = self.answer(action)
            report.add(action, outcome)
            if not outcome.ok and not (isinstance(action, Delete) and outcome.kind is OutcomeKind.NOT_FOUND):
                return False
        return True

    def _follow(self, resource: Resource, before: Json | None, after: Json | None) -> None:
        watch = self._watches[resource]
        if after is not None and self.sees(resource, after["metadata"]["name"]):
            self.context.put(watch, decoded(after, watch.type))
        elif after is None and before is not None:
            meta = before["metadata"]
            self.context.table(watch).remove(meta.get("namespace", ""), meta["name"])


class ControllerCluster(Cluster, Generic[S, G]):
    """A cluster around one controller, which plans the object `name` unless a test names another."""

    def __init__(
        self,
        spec: ControllerSpec[S, G],
        name: str,
        *,
        namespace: str,
        clock: ManualClock | None = None,
        context: FakeContext | None = None,
        options: object = None,
    ) -> None:
        context = context or FakeContext()
        watches = (spec.primary, *spec.watches)
        super().__init__(watches, clock=clock or context.clock, context=context, namespace=namespace)
        self.controller = spec
        self.name = name
        self.gatherer = context.build(spec, options)
        self.last = Plan()
        self.report = Report()
        self.memory: dict[str, Memory] = {}
        self.statuses = 0
        """Number of writes of statuses, beside those of stages."""
        self._owed: set[str] = set()

    def snapshot(self, name: str = "") -> S | None:
        name = name or self.name
        namespace = self.namespace if self.controller.resource.namespaced else ""
        return self.gatherer.gather((namespace, name), self.memory.get(name, Memory()))

    def plan(self, name: str = "") -> Plan:
        snapshot = self.snapshot(name)
        return Plan() if snapshot is None else self.controller.plan(snapshot, self.now)

    def reconcile(self, name: str = "") -> Plan:
        """Run one pass with its writes.

        An urgent status that comes with writes is left to the next pass, which begins with it (see `StatusThrottle`).
        """
        name = name or self.name
        made = self.last = self.plan(name)
        early = name in self._owed and made.status is not None
        self._owed.discard(name)
        if early:
            self._write_status(made)
        self.report = report = self.carry_out(made)
        self.memory[name] = Memory(failures=report.failures, refused=tuple(report.refused.values()), notes=made.notes)
        if made.status is not None and not early:
            if made.stages and made.urgent_status:
                self._owed.add(name)
            else:
                self._write_status(made)
        return made

    def settle(self, name: str = "") -> Plan:
        """Run passes until nothing changes, apart from repeated refusals; return the last plan."""
        name = name or self.name
        for _ in range(PASSES):
            before = self._progress(name)
            made = self.reconcile(name)
            if self._progress(name) == before and name not in self._owed:
                return made
        raise AssertionError(f"never settles: {self.plan(name)}")

    def _progress(self, name: str) -> object:
        return len(self.writes), self.conflicts, self.memory.get(name, Memory())

    def _write_status(self, made: Plan) -> None:
        assert made.status is not None
        self.statuses += 1
        self.write(made.status)
