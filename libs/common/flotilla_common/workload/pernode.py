"""Workloads with a pod per node: the pods that they create, as documents, and which nodes get none.

Names look random, and are derived from the node and from what was there before: a create that is repeated meets its own
pod, and a new pod is not taken for the one before it.
"""

import hashlib
from collections.abc import Container, Mapping, Sequence
from itertools import count

import msgspec

from flotilla_common.api.documents import mapping, sequence
from flotilla_common.api.meta import ObjectMeta
from flotilla_common.api.resources import POD, Resource
from flotilla_common.control.draft import Draft
from flotilla_common.control.plan import Create, Event, Intent, Json, State
from flotilla_common.control.wording import named, nodes_word
from flotilla_common.control.writes import create_of
from flotilla_common.workload.ownership import owner_reference
from flotilla_common.workload.placement import pinned
from flotilla_common.workload.podnames import suffix

_TOLD = 3
"""Reasons that are told."""

CREATE = "create"
"""The phase of creates: what failed in a pass is known to the next one under it."""


class PodFactory(msgspec.Struct, kw_only=True):
    """Makes the pods of a pass."""

    resource: Resource
    owner: ObjectMeta
    metadata: Json  # of the template
    labels: dict[str, str]
    spec: Json  # what of the pod spec is the same on all nodes
    by_scheduler: bool  # the scheduler puts pods on their nodes; else they are created there
    scheduler: str = ""  # the scheduler's name in pods that are created on their nodes
    revision: str = ""
    taken: Container[str]  # names of pods that are there
    former: Mapping[str, str]  # by node: the name of the last pod that was there
    seed: str = ""  # what besides the node and its former pod determines names
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


def explain_excluded(draft: Draft, excluded: Mapping[str, Sequence[str]]) -> None:
    """Give the reason NodesExcluded. `excluded`: names of nodes by why they get none."""
    if not excluded:
        return
    groups = sorted(excluded.items(), key=lambda group: (-len(group[1]), group[0]))
    names = [name for _, members in groups for name in sorted(members)]
    told = "; ".join(f"{why} ({named(sorted(members))})" for why, members in groups[:_TOLD])
    more = f"; and {len(groups) - _TOLD} more reasons" if len(groups) > _TOLD else ""
    draft.reason(State.NOTE, "NodesExcluded", f"no pod goes to {nodes_word(len(names))}: {told}{more}", names)
