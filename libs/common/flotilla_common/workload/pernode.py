"""Workloads with a pod per node: building their pods, explaining excluded nodes, and data about deleted pods.

Names look random, and are derived from the node and from the pod before: a repeated create gets AlreadyExists for its
own pod, and a new pod is not confused with the one before it.
"""

import hashlib
from collections.abc import Callable, Container, Mapping, Sequence
from itertools import count
from typing import Generic, TypeVar

import msgspec

from flotilla_common.api.core import Pod
from flotilla_common.api.documents import mapping, sequence
from flotilla_common.api.meta import Object, ObjectMeta, controller_of
from flotilla_common.api.resources import POD, Resource
from flotilla_common.control.plan import Create, Event, Intent, Json, State
from flotilla_common.control.planbuilder import PlanBuilder
from flotilla_common.control.text import named, nodes_word
from flotilla_common.control.writes import create_of
from flotilla_common.mirror.table import Table
from flotilla_common.workload.ownership import owner_reference
from flotilla_common.workload.placement import node_of, pinned
from flotilla_common.workload.pod_creation import suffix

OwnerT = TypeVar("OwnerT", bound=Object)
MemoryT = TypeVar("MemoryT")

_SHOWN = 3
"""Most reasons that are listed."""

CREATE = "create"
"""The phase of creates, by which the next pass finds their failures."""


class PodFactory(msgspec.Struct, kw_only=True):
    """A builder of the pods of a pass."""

    resource: Resource
    owner: ObjectMeta
    metadata: Json  # of the template
    labels: dict[str, str]
    spec: Json  # the part of the pod spec that is the same on all nodes
    by_scheduler: bool  # the scheduler puts pods on their nodes; otherwise they are created there
    scheduler: str = ""  # the scheduler's name in pods that are created on their nodes
    revision: str = ""
    taken: Container[str]  # names of existing pods
    former: Mapping[str, str]  # by node: the name of its last pod
    seed: str = ""  # part of the names' hash besides the node and its former pod
    made: set[str] = set()  # names of this pass

    def create(self, node: str, cause: str) -> Create:
        """Create a pod for the node."""
        body = self.pod(node)
        return create_of(
            POD,
            body,
            Intent.CREATE,
            cause,
            revision=self.revision,
            phase=CREATE,
            on_success=Event("SuccessfulCreate", f"Created pod: {body['metadata']['name']}"),
            on_failure=Event("FailedCreate", "Error creating: ", warning=True),
        )

    def pod(self, node: str) -> Json:
        """Return the body of a pod for the node."""
        metadata: Json = {
            "name": self._name(node),
            "generateName": f"{self.owner.name}-",
            "namespace": self.owner.namespace,
            "labels": self.labels,
            "annotations": mapping(self.metadata.get("annotations")),
            "ownerReferences": [owner_reference(self.resource, self.owner)],
        }
        if self.metadata.get("finalizers"):
            metadata["finalizers"] = sequence(self.metadata["finalizers"])
        return {**POD.type_meta, "metadata": metadata, "spec": self._for(node)}

    def _for(self, node: str) -> Json:
        if self.by_scheduler:
            return pinned(self.spec, node)
        return {**self.spec, "nodeName": node, **({"schedulerName": self.scheduler} if self.scheduler else {})}

    def _name(self, node: str) -> str:
        parts = (self.owner.uid, node, *([self.seed] if self.seed else []), self.former.get(node, ""))
        digest = hashlib.sha256("\n".join(parts).encode()).digest()
        names = (f"{self.owner.name}-{suffix(digest, attempt)}" for attempt in count())
        name = next(name for name in names if name not in self.made and name not in self.taken)
        self.made.add(name)
        return name


def explain_excluded(builder: PlanBuilder, excluded: Mapping[str, Sequence[str]]) -> None:
    """Add the reason NodesExcluded. `excluded` has the names of nodes by the reason why they get no pod."""
    if not excluded:
        return
    groups = sorted(excluded.items(), key=lambda group: (-len(group[1]), group[0]))
    names = [name for _, members in groups for name in sorted(members)]
    shown = "; ".join(f"{why} ({named(sorted(members))})" for why, members in groups[:_SHOWN])
    more = f"; and {len(groups) - _SHOWN} more reasons" if len(groups) > _SHOWN else ""
    builder.reason(State.NOTE, "NodesExcluded", f"no pod goes to {nodes_word(len(names))}: {shown}{more}", names)


class Departed(Generic[OwnerT, MemoryT]):
    """The data kept about deleted pods of all owners of a kind, from the tables' changes."""

    def __init__(
        self, owners: Table[OwnerT], pods: Table[Pod], remember: Callable[[OwnerT, Pod, MemoryT | None], MemoryT]
    ) -> None:
        """Use `remember` to build the data for an owner's deleted pod, given the data for the node's pod before."""
        self._owners = owners
        self._remember = remember
        self._known: dict[str, dict[str, MemoryT]] = {}  # by the owner's uid, and by node
        owners.listen(self._forget)
        pods.listen(self._note)

    def of(self, uid: str) -> Mapping[str, MemoryT]:
        """Return by node the data kept about the last pod of the owner with that uid."""
        return self._known.get(uid, {})

    def _forget(self, old: OwnerT | None, new: OwnerT | None) -> None:
        if new is None and old is not None:
            self._known.pop(old.metadata.uid, None)

    def _note(self, old: Pod | None, new: Pod | None) -> None:
        if old is None or new is not None:
            return
        reference, node = controller_of(old.metadata), node_of(old)
        owner = None if reference is None else self._owners.by_uid(reference.uid)
        if owner is not None and owner.metadata.namespace == old.metadata.namespace and node:
            known = self._known.setdefault(owner.metadata.uid, {})
            known[node] = self._remember(owner, old, known.get(node))
