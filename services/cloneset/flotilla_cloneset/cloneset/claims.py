"""Assigns a CloneSet's claims to its pods and cleans up unused claims (cloneset.md §4.9).

With reuse, the claims of a vanished pod wait for a new pod that takes over its instance id. Without reuse, a claim
follows its pod: it is handed over to a terminating pod, so that garbage collection removes both together, and is
deleted if the pod is already gone.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from flotilla_common.api import keys
from flotilla_common.api.core import PersistentVolumeClaim, Pod
from flotilla_common.api.kinds.cloneset.types import CloneSet
from flotilla_common.api.meta import controller_of
from flotilla_common.api.resources import CLAIM
from flotilla_common.control.plan import Chain, Delete, Event, Intent
from flotilla_common.control.planbuilder import MAX_CHAINS_PER_PASS
from flotilla_common.control.writes import delete_of
from flotilla_common.workload.claims import hand_over


class Claims(msgspec.Struct, frozen=True, kw_only=True):
    """The CloneSet's claims that a pass may use."""

    by_id: Mapping[str, Sequence[PersistentVolumeClaim]] = {}
    terminating: frozenset[str] = frozenset()  # names that are still taken for a short time

    def of(self, instance_id: str) -> Sequence[PersistentVolumeClaim]:
        """Return the claims of one instance."""
        return self.by_id.get(instance_id, ())


def instance_id(pod: Pod | PersistentVolumeClaim) -> str:
    """Return the id that ties a pod and its claims together; empty if it has none."""
    return pod.metadata.labels.get(keys.INSTANCE_ID_LABEL, "")


def own_claims(cloneset: CloneSet, claims: Iterable[PersistentVolumeClaim]) -> Claims:
    """Group the claims that the CloneSet controls by instance."""
    by_id: dict[str, list[PersistentVolumeClaim]] = defaultdict(list)
    terminating: set[str] = set()
    for claim in claims:
        controller = controller_of(claim.metadata)
        if claim.metadata.deletion_timestamp is not None:
            terminating.add(claim.metadata.name)
        elif controller is not None and controller.uid == cloneset.metadata.uid:
            by_id[instance_id(claim)].append(claim)
    return Claims(by_id=by_id, terminating=frozenset(terminating))


def clean_up(claims: Claims, active: Iterable[Pod], inactive: Iterable[Pod]) -> tuple[Claims, list[Chain]]:
    """Return (the claims of active pods, the writes that dispose of the others)."""
    if not claims.by_id:
        return claims, []
    living = {instance_id(pod) for pod in active}
    leaving = {instance_id(pod): pod for pod in inactive}
    chains: list[Chain] = []
    for identity, members in claims.by_id.items():
        if not identity or identity in living:
            continue
        pod = leaving.get(identity)
        chains += [
            (hand_over(claim, pod.metadata) if pod else delete_claim(claim, "clean up", what="clean up PVC"),)
            for claim in members
        ]
    kept = {identity: members for identity, members in claims.by_id.items() if not identity or identity in living}
    return Claims(by_id=kept, terminating=claims.terminating), chains[:MAX_CHAINS_PER_PASS]


def delete_claim(
    claim: PersistentVolumeClaim, cause: str, *, pods: tuple[str, ...] = (), phase: str = "", what: str = "delete pvc"
) -> Delete:
    """Delete a claim whose instance is gone. `what` is the action that the event of a failure names."""
    return delete_of(
        CLAIM,
        claim.metadata,
        Intent.CLAIM,
        cause,
        pods=pods,
        phase=phase,
        on_failure=Event("FailedDelete", f"failed to {what} {claim.metadata.name}: ", warning=True),
    )
