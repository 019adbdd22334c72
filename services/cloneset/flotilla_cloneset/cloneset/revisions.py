"""Manages a CloneSet's ControllerRevisions: their content, and which are deleted (common.md §7)."""

from collections.abc import Iterable

from flotilla_cloneset.cloneset.snapshot import CloneSetSnapshot
from flotilla_common.api.core import ControllerRevision
from flotilla_common.api.keys import CLAIM_HASH_ANNOTATION, REVISION_LABEL, TEMPLATE_HASH_LABEL
from flotilla_common.api.kinds.cloneset.types import CLONE_SET, CloneSet
from flotilla_common.api.selectors import Selector
from flotilla_common.control.plan import Delete
from flotilla_common.gates import Gates
from flotilla_common.workload.claims import claim_record
from flotilla_common.workload.hashing import claim_templates_hash
from flotilla_common.workload.inplace import UpdateSpec, calculate
from flotilla_common.workload.revision_codec import (
    RevisionCodec,
    RevisionOwner,
    belongs,
    canonical_template_data,
    short_hash,
    template_data,
    template_labels,
)
from flotilla_common.workload.revisions import (
    RevisionChoice,
    choose_revisions,
    live_revisions,
    own_revisions,
    surplus_revisions,
)

CODEC = RevisionCodec(canonical=canonical_template_data, labels=template_labels, belongs=belongs)


def find_revisions(snapshot: CloneSetSnapshot, selector: Selector) -> RevisionChoice:
    """Choose the update and the current revision. Raises ValueError if a template cannot be read."""
    spec, status = snapshot.cloneset.spec, snapshot.cloneset.status
    owner = RevisionOwner(
        resource=CLONE_SET,
        metadata=snapshot.cloneset.metadata,
        selector=selector,
        current_name=status.current_revision,
        collision_count=status.collision_count,
        annotations={
            CLAIM_HASH_ANNOTATION: claim_templates_hash(spec.volume_claim_templates),
            **record_of(snapshot.cloneset),
        },
    )
    return choose_revisions(CODEC, owner, template_data(spec.template), tuple(snapshot.revisions))


def record_of(cloneset: CloneSet) -> dict[str, str]:
    """Return the record of the CloneSet's claim templates, which is kept with its newest revision."""
    return claim_record(cloneset.spec.volume_claim_templates, cloneset.metadata.annotations)


def revision_labels(revision: str, *, short: bool) -> dict[str, str]:
    """Return the labels that put a pod on a revision. `short`: gate CloneSetShortHash."""
    hash_ = short_hash(revision)
    return {REVISION_LABEL: hash_ if short else revision, TEMPLATE_HASH_LABEL: hash_}


def surplus(snapshot: CloneSetSnapshot, selector: Selector, live_labels: Iterable[str]) -> tuple[Delete, ...]:
    """Plan the deletion of the oldest revisions beyond the history limit that none of these labels names (§7.5)."""
    limit = snapshot.cloneset.spec.revision_history_limit
    if len(snapshot.revisions) <= limit:
        return ()
    own = own_revisions(snapshot.revisions, snapshot.cloneset.metadata.uid, selector)
    live = live_revisions(CODEC, own, frozenset(live_labels))
    return surplus_revisions([revision for revision in own if revision.metadata.name not in live], limit)


def in_place_spec(
    old: ControllerRevision, new: ControllerRevision, gates: Gates, *, ignore_claims: bool = False
) -> UpdateSpec | None:
    """Return how a pod can be updated from one revision to another in place, or None.

    With the gate on, a change of the claim templates requires recreation unless `ignore_claims` (§7.6).
    """
    recreates = gates.on("RecreatePodWhenChangeVCTInCloneSetGate") and not ignore_claims
    return calculate(CODEC, old, new, gates=gates, must_match=CLAIM_HASH_ANNOTATION if recreates else "")
