"""The model as one identity may see it. Pages read through it only.

A row, a count and a search result need the right to list the resource in the namespace; so does everything that a page
shows of another object.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import timedelta
from itertools import islice
from typing import Protocol, TypeVar

import msgspec

from flotilla_common.api.core import Node, Pod
from flotilla_common.api.documents import Json
from flotilla_common.api.meta import Object, controller_of, group_of
from flotilla_common.api.numbers import integer
from flotilla_common.api.resources import NODE, POD, REPLICA_SET, REVISION, Resource
from flotilla_common.api.workload import CONTROLLED
from flotilla_common.workload.causes import grouped
from flotilla_console.blocks.types import Age, Notice, spans
from flotilla_console.model.beats import Beat
from flotilla_console.model.kinds import KINDS
from flotilla_console.model.model import IN_NAMESPACE, OF_BUDGET, OF_SIDECARS, ON_NODE, Model
from flotilla_console.model.objects import Stored, Template, document
from flotilla_console.model.reading import Verdict
from flotilla_console.model.reasons import Reasons
from flotilla_console.model.seen import recent_cause, serves
from flotilla_console.model.workload import Workload

LIST = "list"
WATCHER = "watcher"
STALE_SECONDS = 15.0

LOOKED_AT = 3
"""Pods of a workload of Kubernetes that are examined: causes repeat, and the fleet must be quick."""

T = TypeVar("T", bound=Object)


class Allowed(Protocol):
    """The known rights of an identity."""

    def may(self, verb: str, group: str, plural: str, namespace: str, subresource: str = "") -> bool:
        """Report whether the identity may do this to all objects of the namespace; False if it is not known."""
        ...


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """A right that is needed to filter what exists now."""

    verb: str
    group: str
    plural: str
    namespace: str
    subresource: str = ""


class Freshness(msgspec.Struct, frozen=True):
    """The age of what is shown, and what keeps it from being newer."""

    as_of: float
    banners: tuple[Notice, ...] = ()


def questions(model: Model) -> Collection[Wanted]:
    """Return the rights that decide what of the model an identity may see."""
    found = [
        Wanted(verb=LIST, group=held.resource.group, plural=held.resource.plural, namespace=held.namespace)
        for held in model.places()
    ]
    logs = [
        Wanted(verb="get", group="", plural=POD.plural, namespace=held.namespace, subresource="log")
        for held in model.places()
        if held.resource == POD
    ]
    return [*found, *logs]


class Sight:
    """The part of the model that an identity may see; it keeps the answers about rights."""

    def __init__(self, model: Model, allowed: Allowed, error: str = "") -> None:
        """`error`: why some rights are not known, for a banner."""
        self._model = model
        self._allowed = allowed
        self._error = error
        self._known: dict[tuple[str, str, str], bool] = {}  # answers to "may list", which every row asks for

    @property
    def version(self) -> int:
        """Return a number that grows with each change of anything in the model."""
        return self._model.version

    def questions(self) -> Collection[Wanted]:
        """Return the rights that are needed for what exists now."""
        return questions(self._model)

    def may(self, verb: str, resource: Resource, namespace: str, subresource: str = "") -> bool:
        """Report whether the identity may do this in the namespace."""
        return self._allowed.may(verb, resource.group, resource.plural, namespace, subresource)

    def workloads(self) -> Sequence[Workload]:
        """Return all workloads that may be seen."""
        seen = (one for one in self._model.workloads() if self._sees(one.kind.resource, one.namespace))
        return [self._explained(one) for one in seen]

    def workload(self, group: str, plural: str, namespace: str, name: str) -> Workload | None:
        """Return a workload; None if it does not exist or may not be seen."""
        kind = KINDS.get((group, plural))
        if kind is None or not self._sees(kind.resource, namespace):
            return None
        found = self._model.workload((group, plural, namespace, name))
        return None if found is None else self._explained(found)

    def pods(self) -> Iterable[Pod]:
        """Return all pods that may be seen."""
        return self._filter(POD, self._model.pods)

    def pod(self, namespace: str, name: str) -> Pod | None:
        """Return a pod; None if it does not exist or may not be seen."""
        return self._model.pods.get(namespace, name) if self._sees(POD, namespace) else None

    def pods_of(self, workload: Workload) -> Sequence[Pod]:
        """Return the pods of a workload that may be seen: its own, those of what it owns, or those it is in."""
        meta, plural = workload.metadata, workload.plural
        if plural == "sidecarsets":
            return list(self._filter(POD, self._model.pods.by_index(OF_SIDECARS, meta.name)))
        if plural == "podunavailablebudgets":
            return list(self._filter(POD, self._model.pods.by_index(OF_BUDGET, meta.key)))
        return list(self._filter(POD, self._owned_pods(meta.uid, set())))

    def pods_on(self, node: str) -> Sequence[Pod]:
        """Return the pods on a node that may be seen."""
        return list(self._filter(POD, self._model.pods.by_index(ON_NODE, node)))

    def nodes(self) -> Sequence[Node]:
        """Return the nodes, if they may be seen."""
        return list(self._model.nodes) if self._sees(NODE, "") else []

    def node(self, name: str) -> Node | None:
        """Return a node; None if it does not exist or may not be seen."""
        return self._model.nodes.get("", name) if self._sees(NODE, "") else None

    def templates_of(self, workload: Workload) -> Sequence[Template]:
        """Return the revisions of a workload, or the ReplicaSets of a Deployment, newest first."""
        resource = REPLICA_SET if workload.plural == "deployments" else REVISION
        found = (one for one in self._model.owned(resource, workload.metadata.uid) if isinstance(one, Template))
        return sorted(self._filter(resource, found), key=_number, reverse=True)

    def children_of(self, workload: Workload) -> Sequence[Workload]:
        """Return the workloads that a workload owns and that may be seen."""
        found = [
            self.workload(kind.resource.group, kind.resource.plural, *one.metadata.key)
            for kind in KINDS.values()
            for one in self._model.owned(kind.resource, workload.metadata.uid)
        ]
        return [one for one in found if one is not None]

    def owners_of(self, obj: Object) -> Sequence[tuple[str, str, str, Workload | None]]:
        """Return group, kind and name of each controller above an object, and its workload if it may be seen."""
        found: list[tuple[str, str, str, Workload | None]] = []
        meta = obj.metadata
        while (owner := controller_of(meta)) is not None and len(found) < _HIGHEST:
            group = group_of(owner.api_version)
            kind = next(
                (one for one in KINDS.values() if one.resource.kind == owner.kind and one.resource.group == group), None
            )
            above = None if kind is None else self.workload(group, kind.resource.plural, meta.namespace, owner.name)
            found.append((group, owner.kind, owner.name, above))
            if (group, owner.kind) == (REPLICA_SET.group, REPLICA_SET.kind):
                replica_set = self._model.templates[REPLICA_SET].get(meta.namespace, owner.name)
                if replica_set is None or not self._sees(REPLICA_SET, meta.namespace):
                    break
                meta = replica_set.metadata
            elif above is None:
                break
            else:
                meta = above.metadata
        return found

    def stored(self, resource: Resource) -> Iterable[Stored]:
        """Return all objects of a resource that may be seen."""
        return self._filter(resource, self._model.stored[resource])

    def stored_in(self, resource: Resource, namespace: str) -> Collection[Stored]:
        """Return the objects of a resource in a namespace, if they may be seen."""
        return self._model.stored[resource].by_index(IN_NAMESPACE, namespace) if self._sees(resource, namespace) else ()

    def object(self, resource: Resource, namespace: str, name: str) -> Json | None:
        """Return an object as JSON, of pods and nodes a part; None if it does not exist or may not be seen."""
        if not self._sees(resource, namespace):
            return None
        if resource in self._model.stored:
            stored = self._model.stored[resource].get(namespace, name)
            return None if stored is None else document(stored, resource)
        found = {POD: self._model.pods, NODE: self._model.nodes}.get(resource)
        held = None if found is None else found.get(namespace, name)
        return None if held is None else {**resource.type_meta, **msgspec.to_builtins(held)}

    def reason(self, workload: Workload) -> Reasons | None:
        """Return the last reasons of a workload that may be seen."""
        return self._model.why(workload) if self._sees(workload.kind.resource, workload.namespace) else None

    def unreadable(self) -> Sequence[str]:
        """Return the objects that may be seen, but cannot be decoded."""
        return [
            f"{one.resource.kind} {one.namespace}/{one.name}".replace(" /", " ")
            for one in self._model.undecodable()
            if self._sees(one.resource, one.namespace)
        ]

    def beats(self) -> Sequence[Beat]:
        """Return the last heartbeats of all replicas."""
        return self._model.beats.all()

    @property
    def freshness(self) -> Freshness:
        """Return how old the model is, and why it is not newer."""
        lag, now = self._model.lag, self._model.clock.now()
        as_of = (now - timedelta(seconds=lag)).timestamp()
        return Freshness(as_of, tuple(self._banners(as_of, lag)))

    def _banners(self, as_of: float, lag: float) -> Iterator[Notice]:
        direct = self._model.direct
        instead = "The console reads the apiserver directly instead." if direct else "What you see may be out of date."
        if not self._model.bus.connected:
            yield Notice("bad", spans(f"The bus does not answer. {instead}"))
        elif self._model.beats.is_silent(WATCHER):
            yield Notice("bad", spans(f"No watcher is alive, so nothing new comes over the bus. {instead}"))
        if self._error:
            yield Notice("warn", spans(f"{self._error} Something may be missing here."))
        if lag > STALE_SECONDS:
            yield Notice("warn", spans("The last proof that this is up to date is ", Age(as_of), " old."))

    def _explained(self, one: Workload) -> Workload:
        """Return the workload with the cause in its pods, for a kind of Kubernetes, which publishes no reasons."""
        if one.kind.resource.custom or one.verdict.state != "busy" or one.metadata.deletion_timestamp is not None:
            return one
        troubled = islice((pod for pod in self.pods_of(one) if not serves(pod)), LOOKED_AT)
        now = self._model.clock.now()
        causes = [(pod.metadata.name, cause) for pod in troubled if (cause := recent_cause(pod, now)) is not None]
        group = next(iter(grouped(causes)), None)
        if group is None or not group.cause.stuck:
            return one
        verdict = Verdict(state="blocked", code=group.cause.code, text=group.sentence)
        return msgspec.structs.replace(one, verdict=verdict)

    def _owned_pods(self, uid: str, seen: set[str]) -> Iterator[Pod]:
        """Yield the pods below an owner. An object that owns itself is read once."""
        if uid in seen:
            return
        seen.add(uid)
        yield from self._model.pods.by_index(CONTROLLED, uid)
        for resource in _BETWEEN:
            for one in self._model.owned(resource, uid):
                yield from self._owned_pods(one.metadata.uid, seen)

    def _filter(self, resource: Resource, objects: Iterable[T]) -> Iterator[T]:
        return (one for one in objects if self._sees(resource, one.metadata.namespace))

    def _sees(self, resource: Resource, namespace: str) -> bool:
        key = resource.group, resource.plural, namespace
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self.may(LIST, resource, namespace)
        return known


_HIGHEST = 10
"""The longest chain of owners that is followed: owners may own each other."""

_BETWEEN = (REPLICA_SET, *(kind.resource for kind in KINDS.values() if kind.has_pods))
"""The kinds that may be between a workload and its pods."""


def _number(template: Template) -> tuple[int, str]:
    """Return the number of a revision; that of a ReplicaSet is in an annotation."""
    written = template.metadata.annotations.get("deployment.kubernetes.io/revision", "")
    return template.revision or integer(written) or 0, template.metadata.name
