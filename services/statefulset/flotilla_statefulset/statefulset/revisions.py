"""Manages a StatefulSet's ControllerRevisions: their content, and which are deleted (statefulset.md §4.4)."""

from collections.abc import Collection

from flotilla_common.api.core import ControllerRevision
from flotilla_common.api.kinds.statefulset.types import STATEFUL_SET, StatefulSet
from flotilla_common.api.meta import controller_of
from flotilla_common.api.selectors import Selector
from flotilla_common.control.plan import Delete
from flotilla_common.gates import Gates
from flotilla_common.workload.claims import claim_record
from flotilla_common.workload.inplace import UpdateSpec, calculate
from flotilla_common.workload.revision_codec import (
    RevisionCodec,
    RevisionOwner,
    canonical_template_data,
    template_data,
    template_labels,
)
from flotilla_common.workload.revisions import RevisionChoice, choose_revisions, own_revisions, surplus_revisions
from flotilla_statefulset.statefulset.snapshot import StatefulSetSnapshot

CODEC = RevisionCodec(canonical=canonical_template_data, labels=template_labels)
"""Pods are on the revision that their label names in full."""


def find_revisions(snapshot: StatefulSetSnapshot, selector: Selector) -> RevisionChoice:
    """Choose the update and the current revision. Raises ValueError if the template cannot be read."""
    spec, status = snapshot.statefulset.spec, snapshot.statefulset.status
    owner = RevisionOwner(
        resource=STATEFUL_SET,
        metadata=snapshot.statefulset.metadata,
        selector=selector,
        current_name=status.current_revision,
        collision_count=status.collision_count,
        annotations=record_of(snapshot.statefulset),
    )
    return choose_revisions(CODEC, owner, template_data(spec.template), tuple(snapshot.revisions))


def record_of(statefulset: StatefulSet) -> dict[str, str]:
    """Return the record of the set's claim templates, which is kept with its newest revision."""
    return claim_record(statefulset.spec.volume_claim_templates, statefulset.metadata.annotations)


def orphans(snapshot: StatefulSetSnapshot, selector: Selector) -> list[ControllerRevision]:
    """Return the revisions without a controller that are the set's by their labels.

    They are left over when a set was deleted without its dependents.
    """
    own = own_revisions(snapshot.revisions, snapshot.statefulset.metadata.uid, selector)
    return [revision for revision in own if controller_of(revision.metadata) is None]


def surplus(snapshot: StatefulSetSnapshot, selector: Selector, live: Collection[str]) -> tuple[Delete, ...]:
    """Plan the deletion of the oldest revisions beyond the history limit, except the `live` names."""
    limit = max(snapshot.statefulset.spec.revision_history_limit, 0)
    if len(snapshot.revisions) <= limit:
        return ()
    own = own_revisions(snapshot.revisions, snapshot.statefulset.metadata.uid, selector)
    return surplus_revisions([revision for revision in own if revision.metadata.name not in live], limit)


def in_place_spec(old: ControllerRevision, new: ControllerRevision, gates: Gates) -> UpdateSpec | None:
    """Return how a pod can be updated from one revision to another in place, or None."""
    return calculate(CODEC, old, new, gates=gates)
