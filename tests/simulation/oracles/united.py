"""Workloads of a UnitedDeployment: one for each subset, with its template (uniteddeployment.md §9).

None is deleted or shrinks before others serve.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping

from flotilla_common.api.documents import member, strings
from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.kinds.statefulset.types import STATEFUL_SET
from flotilla_common.api.kinds.uniteddeployment.types import REVISION_LABEL, SUBSET_LABEL, UNITED_DEPLOYMENT
from flotilla_common.api.resources import BUILT_IN_STATEFUL_SET, DEPLOYMENT, POD, REPLICA_SET, Resource
from flotilla_common.control.plan import Json
from flotilla_common.model.built_in import is_active
from flotilla_common.model.kubelet import is_ready
from tests.simulation.oracles.copies import Past, controller, lately
from tests.simulation.oracles.view import Commit, View

TEMPLATES: Mapping[Resource, str] = {
    CLONE_SET: "cloneSetTemplate",
    STATEFUL_SET: "advancedStatefulSetTemplate",
    DEPLOYMENT: "deploymentTemplate",
    BUILT_IN_STATEFUL_SET: "statefulSetTemplate",
}
"""The kinds of children, and the templates for them."""

MOST_WRITES = 2
"""Writes of a child's spec for one reason: a new spec may meet an old number of pods."""


class SubsetWorkloads:
    """The rule for UnitedDeployments: their states over time, and those of their children and pods."""

    def __init__(self) -> None:
        self._owners: dict[str, Past] = {}  # by uid
        self._children: dict[str, tuple[Resource, Past]] = {}  # by uid
        self._pods: dict[str, Past] = {}  # by uid
        self._above: dict[str, str] = {}  # the controllers of ReplicaSets
        self._writes: Counter[str] = Counter()  # of specs of children, since there was a reason for the last time

    def __call__(self, view: View, commit: Commit) -> Iterator[str]:
        version = commit.version
        resource, uid = version.resource, version.uid
        if resource == REPLICA_SET:
            self._above[uid] = controller(version.after or version.before or {})
        elif resource == POD:
            self._pods.setdefault(uid, []).append((version.at, version.after))
        elif resource == UNITED_DEPLOYMENT:
            self._owners.setdefault(uid, []).append((version.at, version.after))
            yield from self._told(view, commit) if commit.ours else ()
            if _asks_otherwise(version.before, version.after):
                self._forgive(uid)
        elif resource in TEMPLATES:
            past = self._children.setdefault(uid, (resource, []))[1]
            yield from self._checker(view, commit) if is_topology(commit) else ()
            past.append((version.at, version.after))
            if not is_topology(commit) and _spec(version.before) != _spec(version.after):
                self._forgive(controller(version.after or version.before or {}))

    def _checker(self, view: View, commit: Commit) -> Iterator[str]:
        """Check a create, change or deletion of a child by us."""
        before, after = commit.version.before, commit.version.after
        owner = controller(before or {}) or controller(after or {})
        known = [one for one in lately(self._owners.get(owner, []), view.since) if one is not None]
        if not known:
            yield "writes a workload that no UnitedDeployment controls"
        elif all("deletionTimestamp" in one["metadata"] for one in known):
            yield "writes a workload of a UnitedDeployment that goes"
        elif commit.marked_deleted:
            yield from self._deletes(view, commit, owner, known)
        elif before is None:
            yield from self._makes(view, commit, owner, known)
            yield from _misshapen(after or {}, known, commit.version.resource)
        elif _spec(before) != _spec(after):
            yield from _misshapen(after or {}, known, commit.version.resource)
            yield from self._shrinks(view, commit, owner, known)
        elif not controller(before) and not subset(before):
            yield "takes in a workload that names no subset"

    def _makes(self, view: View, commit: Commit, owner: str, known: list[Json]) -> Iterator[str]:
        name = subset(commit.version.after or {})
        if all(name not in subsets(one) for one in known):
            yield f"makes a workload for {name!r}, which is no subset"
        if self._twins(view, commit, owner, all):
            yield f"makes a second workload for subset {name}"

    def _deletes(self, view: View, commit: Commit, owner: str, known: list[Json]) -> Iterator[str]:
        version = commit.version
        name = subset(version.before or {})
        if self._twins(view, commit, owner, any):
            return
        if all(name in subsets(one) and made_of(one, version.resource) for one in known):
            yield f"deletes the only workload of subset {name}"
            return
        mine, others = self._serving(view, owner, version.uid)
        if mine and others < (least := _least(known)):
            yield f"deletes subset {name} with {mine} pods that are ready: {others} others are, {least} must be"

    def _shrinks(self, view: View, commit: Commit, owner: str, known: list[Json]) -> Iterator[str]:
        """Check a write of a child's spec: pods that serve go only while enough others do, and in few writes.

        Shrinking step by step, as others become ready, costs a write for each pod at most.
        """
        before, after = (_spec(one)["replicas"] for one in (commit.version.before, commit.version.after))
        mine, others = self._serving(view, owner, commit.version.uid)
        left = others + min(mine, after)
        if min(mine, before) > min(mine, after) and left < (least := _least(known)):
            yield f"shrinks {commit.version.name} to {after}: {left} pods are ready then, {least} must be"
        self._writes[commit.version.uid] += after >= before
        if self._writes[commit.version.uid] > MOST_WRITES:
            yield f"is write number {self._writes[commit.version.uid]} of {commit.version.name} for one reason"

    def _twins(self, view: View, commit: Commit, owner: str, known: Callable[[Iterable[bool]], bool]) -> bool:
        """Report whether another child of the subset exists: in `all` recent states (we must see it), or in any."""
        document = commit.version.before or commit.version.after or {}
        return any(
            uid != commit.version.uid
            and resource == commit.version.resource
            and known(_stays(one, owner) and subset(one or {}) == subset(document) for one in lately(past, view.since))
            for uid, (resource, past) in self._children.items()
        )

    def _serving(self, view: View, owner: str, child: str) -> tuple[int, int]:
        """Return how many pods are ready of the child and of the other children, as far as a controller can see.

        Pods beyond the replicas of their child are about to be deleted.
        """
        ready: Counter[str] = Counter()
        for past in self._pods.values():
            seen = [one for one in lately(past, view.since) if one is not None and is_active(one) and is_ready(one)]
            above = controller(seen[0]) if seen else ""
            above = self._above.get(above, above)
            if above != child or past[-1][1] in seen:
                ready[above] += bool(seen)
        others = 0
        for uid, (_, past) in self._children.items():
            staying = [one for one in lately(past, view.since) if uid != child and _stays(one, owner)]
            others += max((min(ready[uid], _spec(one)["replicas"]) for one in staying), default=0)
        return ready[child], others

    def _told(self, view: View, commit: Commit) -> Iterator[str]:
        """Check that the children match a generation that the status reports as observed, but for recent changes."""
        before, after = commit.version.before or {}, commit.version.after or {}
        seen, told = member(after, "status").get("observedGeneration"), member(after, "status")
        if seen is None or seen == member(before, "status").get("observedGeneration"):
            return
        allocated = {one["name"]: one.get("replicas", 0) for one in told.get("subsetStatuses", ())}
        if seen != after["metadata"]["generation"]:
            return  # it was planned with an older spec
        for name in subsets(after):
            states = [
                one
                for resource, past in self._children.values()
                if made_of(after, resource)
                for one in lately(past, view.since)
                if _stays(one, commit.version.uid) and subset(one or {}) == name
            ]
            if not any(_is_as_told(one or {}, told, allocated.get(name, 0)) for one in states):
                yield f"says that generation {seen} is handled, though the workload of subset {name} is not as it says"

    def _forgive(self, owner: str) -> None:
        """Reset the write counts of the children: there is a new reason for writes."""
        for uid, (_, past) in self._children.items():
            if any(controller(one or {}) == owner for _, one in past):
                self._writes[uid] = 0


def is_topology(commit: Commit) -> bool:
    """Report whether the commit is a write of the topology service."""
    return commit.ours and commit.version.writer.startswith("topology")


def subset(child: Json) -> str:
    """Return the subset of a child or pod."""
    return strings(child.get("metadata", {}).get("labels")).get(SUBSET_LABEL, "")


def subsets(united: Json) -> list[str]:
    """Return the names in the topology."""
    return [str(one["name"]) for one in member(united, "spec", "topology").get("subsets", ())]


def made_of(united: Json, resource: Resource) -> bool:
    """Report whether the template is of this kind of children."""
    return TEMPLATES[resource] in member(united, "spec", "template")


def held(united: Json, child: Json) -> int:
    """Return how many pods of the child stay on old revisions."""
    partitions = member(united, "spec", "updateStrategy", "manualUpdate", "partitions")
    return min(partitions.get(subset(child), 0), child["spec"]["replicas"])


def partition(child: Json) -> int | None:
    """Return the partition of a child's spec; None where no number sets it."""
    strategy = member(child, "spec", "updateStrategy")
    if child["kind"] == DEPLOYMENT.kind or strategy.get("type") == "OnDelete":
        return None
    found = member(strategy, "rollingUpdate").get("partition", 0)
    return found if isinstance(found, int) else None


def _misshapen(child: Json, known: list[Json], resource: Resource) -> Iterator[str]:
    """Yield how a child that we wrote differs from all recent specs of the UnitedDeployment."""
    if not any(made_of(one, resource) for one in known):
        yield f"writes a {resource.kind}, for which there is no template"
    if (found := partition(child)) is not None and all(held(one, child) != found for one in known):
        yield f"holds {found} pods of subset {subset(child)}, which nobody asks for"


def _is_as_told(child: Json, told: Json, replicas: int) -> bool:
    """Report whether the child has the spec. It may keep more pods until others serve."""
    revision = strings(child["metadata"].get("labels")).get(REVISION_LABEL)
    return child["spec"].get("replicas", 0) >= replicas and revision == told.get("updatedRevision")


def _least(known: list[Json]) -> int:
    """Return how many pods have to serve, by the recent specs."""
    return min(one["spec"]["replicas"] for one in known)


def _stays(child: Json | None, owner: str) -> bool:
    return child is not None and controller(child) == owner and "deletionTimestamp" not in child["metadata"]


def _spec(document: Json | None) -> Json:
    return member(document or {}, "spec")


def _asks_otherwise(before: Json | None, after: Json | None) -> bool:
    """Report whether children may have to change: by the spec, by schedulability, or by adaptive allocations."""
    return _reasons(before or {}) != _reasons(after or {})


def _reasons(united: Json) -> tuple[object, ...]:
    status = member(united, "status")
    adaptive = member(united, "spec", "topology", "scheduleStrategy").get("type") == "Adaptive"
    conditions = [entry.get("conditions") for entry in status.get("subsetStatuses", ())]
    return _spec(united), conditions, adaptive and (status.get("readyReplicas"), status.get("reservedPods"))
