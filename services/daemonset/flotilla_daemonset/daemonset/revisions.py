"""Manages a DaemonSet's ControllerRevisions: creating, merging and deleting them (daemonset.md §4.9).

Pods carry the hash of their revision, not its name. Revisions are matched by content: in another release they have
other names, and a false difference would roll every node.
"""

from collections.abc import Iterable, Sequence

from flotilla_common.api.core import ControllerRevision, Pod
from flotilla_common.api.keys import REVISION_LABEL
from flotilla_common.api.kinds.daemonset.types import DAEMON_SET, DaemonSet
from flotilla_common.api.meta import controller_of
from flotilla_common.api.resources import REVISION
from flotilla_common.api.selectors import Selector
from flotilla_common.control.plan import Chain, Delete, Frozen, Intent
from flotilla_common.control.writes import delete_of, patch_of
from flotilla_common.workload.ownership import adopt_orphans
from flotilla_common.workload.podedit import PodEdit
from flotilla_common.workload.revision_codec import (
    RevisionCodec,
    RevisionOwner,
    canonical_template_data,
    template_data,
    template_labels,
)
from flotilla_common.workload.revisions import choose_revisions, own_revisions, surplus_revisions

DEFAULT_LIMIT = 10


def hash_of(revision: ControllerRevision) -> str:
    """Return the hash that the pods of the revision carry."""
    return revision.metadata.labels.get(REVISION_LABEL) or revision.metadata.name


CODEC = RevisionCodec(
    canonical=canonical_template_data,
    labels=template_labels,
    label=hash_of,
    hash_label=REVISION_LABEL,
    hash_label_follows_name=True,
)


class Revisions(Frozen):
    """The revision of the template, and the other revisions of the DaemonSet."""

    update: ControllerRevision
    duplicates: Sequence[ControllerRevision]  # revisions with the same template
    old: Sequence[ControllerRevision]  # revisions with another template; the oldest first
    loose: Sequence[ControllerRevision]  # of all these, the ones without a controller
    collision_count: int | None
    writes: Chain  # the writes that create the revision of the template or raise its number

    @property
    def hash(self) -> str:
        """The hash that updated pods carry."""
        return hash_of(self.update)

    @property
    def name(self) -> str:
        """The name of the template's revision."""
        return self.update.metadata.name


def find_revisions(daemonset: DaemonSet, stored: Sequence[ControllerRevision], selector: Selector) -> Revisions:
    """Classify the revisions. Raises ValueError if the template cannot be read."""
    owner = RevisionOwner(
        resource=DAEMON_SET,
        metadata=daemonset.metadata,
        selector=selector,
        collision_count=daemonset.status.collision_count,
    )
    choice = choose_revisions(CODEC, owner, template_data(daemonset.spec.template), tuple(stored))
    update, data = choice.update, CODEC.data_of(choice.update)
    own = own_revisions(stored, daemonset.metadata.uid, selector)
    others = [revision for revision in own if revision.metadata.name != update.metadata.name]
    counted = choice.collision_count or daemonset.status.collision_count is not None
    return Revisions(
        update=update,
        duplicates=[revision for revision in others if CODEC.data_of(revision) == data],
        old=[revision for revision in others if CODEC.data_of(revision) != data],
        loose=[revision for revision in own if controller_of(revision.metadata) is None],
        collision_count=choice.collision_count if counted else None,
        writes=choice.writes,
    )


def upkeep(daemonset: DaemonSet, revisions: Revisions) -> list[Chain]:
    """Adopt revisions without a controller, and add the hash label where it is missing."""
    busy = {write.name for write in revisions.writes}
    loose = [revision for revision in revisions.loose if revision.metadata.name not in busy]
    busy |= {revision.metadata.name for revision in loose}
    unlabelled = [
        revision
        for revision in (revisions.update, *revisions.old)
        if REVISION_LABEL not in revision.metadata.labels and revision.metadata.name not in busy
    ]
    return [*adopt_orphans(DAEMON_SET, daemonset.metadata, REVISION, loose), *map(_label, unlabelled)]


def misplaced(revisions: Revisions, pods: Iterable[Pod]) -> list[Pod]:
    """Return the pods that carry the hash of a duplicate."""
    hashes = {hash_of(revision) for revision in revisions.duplicates} - {revisions.hash}
    return [pod for pod in pods if pod.revision in hashes] if hashes else []


def move(revisions: Revisions, pods: Iterable[Pod]) -> list[Chain]:
    """Move pods of duplicates to the revision that is kept."""
    return [_relabel(pod, revisions.hash) for pod in pods]


def forget_duplicates(revisions: Revisions) -> list[Chain]:
    """Delete the duplicates, which no pod carries any more."""
    cause = f"the same template as {revisions.name}"
    return [(delete_of(REVISION, revision.metadata, Intent.REVISION, cause),) for revision in revisions.duplicates]


def surplus(daemonset: DaemonSet, revisions: Revisions, pods: Iterable[Pod]) -> tuple[Delete, ...]:
    """Plan the deletion of the oldest revisions beyond the history limit, except those that pods carry."""
    wanted = daemonset.spec.revision_history_limit
    limit = DEFAULT_LIMIT if wanted is None else max(wanted, 0)
    if len(revisions.old) <= limit:
        return ()
    live = {pod.revision for pod in pods}
    spared = {revision.metadata.name for revision in revisions.old if hash_of(revision) in live}
    return surplus_revisions(revisions.old, limit, spared=spared)


def _label(revision: ControllerRevision) -> Chain:
    body = {"metadata": {"labels": {REVISION_LABEL: revision.metadata.name}}}
    cause = "the revision has no hash"
    return (patch_of(REVISION, revision.metadata, Intent.REVISION, cause, body=body),)


def _relabel(pod: Pod, hash_: str) -> Chain:
    edit = PodEdit(pod, Intent.UPDATE, "its revision is merged with an equal one")
    edit.set_labels({REVISION_LABEL: hash_})
    return edit.chain()
