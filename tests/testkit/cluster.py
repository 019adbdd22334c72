"""A cluster in memory: objects on the model of the apiserver, and the tables of gatherers that follow them."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, cast

from flotilla_common.api.documents import merge
from flotilla_common.api.resources import Resource
from flotilla_common.clock import ManualClock
from flotilla_common.control.plan import Action
from flotilla_common.control.watches import Watch
from flotilla_common.model.store import Objects
from flotilla_common.model.writes import Write, carry_out, delete, store
from tests.support.controller_context import FakeContext
from tests.support.fake_clock import FakeClock
from tests.testkit.documents import Json, decoded


class Cluster:
    """Objects of which all that are namespaced are in one namespace; `writes` are those of plans."""

    def __init__(
        self, watches: Iterable[Watch[Any]], *, clock: ManualClock | FakeClock, context: FakeContext, namespace: str
    ) -> None:
        self.clock = clock
        self.context = context
        self.namespace = namespace
        self.writes: list[Write] = []
        self.objects = Objects(cast("ManualClock", clock))
        self._watches = {watch.resource: watch for watch in watches}
        self.objects.listen(self._follow)

    @property
    def now(self) -> datetime:
        return self.clock.now()

    def find(self, resource: Resource, name: str) -> Json | None:
        """Return the object, or None."""
        return self.objects.get(resource, self.namespace if resource.namespaced else "", name)

    def held(self, resource: Resource, name: str) -> Json:
        """Return the object, which must exist."""
        found = self.find(resource, name)
        assert found is not None, f"{resource.plural} {name} does not exist"
        return found

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

    def write(self, action: Action) -> Write:
        """Carry out the action, which must succeed."""
        write = carry_out(self.objects, action)
        assert not write.problem, write.problem
        self.writes.append(write)
        return write

    def _follow(self, resource: Resource, before: Json | None, after: Json | None) -> None:
        watch = self._watches[resource]
        if after is not None:
            self.context.put(watch, decoded(after, watch.type))
        elif before is not None:
            meta = before["metadata"]
            self.context.table(watch).remove(meta.get("namespace", ""), meta["name"])
