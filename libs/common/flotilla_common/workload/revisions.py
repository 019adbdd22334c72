"""ControllerRevisions: choosing, creating, renumbering and deleting them (common.md §7).

The differences between the kinds are in `codec`.
"""

from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, datetime

import msgspec

from flotilla_common.api.core import ControllerRevision
from flotilla_common.api.keys import REVISION_HASH_LABEL
from flotilla_common.api.meta import controller_of
from flotilla_common.api.resources import REVISION
from flotilla_common.api.selectors import Selector
from flotilla_common.control.plan import Chain, Delete, Frozen, Intent, Json, PatchType
from flotilla_common.control.writes import create_of, delete_of, patch_of
from flotilla_common.workload.hashing import revision_hash
from flotilla_common.workload.ownership import owner_reference
from flotilla_common.workload.revision_codec import RevisionCodec, RevisionOwner, cached_canonical

_EARLIEST = datetime.min.replace(tzinfo=UTC)


class RevisionChoice(Frozen):
    """The revisions of a workload for its current spec.

    `writes` is empty when nothing has to change; the update revision can be used for planning before it is written.
    """

    update: ControllerRevision
    current: ControllerRevision
    collision_count: int
    writes: Chain = ()


def choose_revisions(
    codec: RevisionCodec, owner: RevisionOwner, source: bytes, stored: Sequence[ControllerRevision]
) -> RevisionChoice:
    """Find or build the update revision of `source`, the data as the user wrote it, and find the current one (§7.4).

    `stored` may hold revisions of others: they only matter where they occupy a name. Raises ValueError if the source is
    invalid.
    """
    data = cached_canonical(codec.canonical, source)
    own = own_revisions(
        stored, owner.metadata.uid, owner.selector, may_lack_labels=codec.may_lack_labels, newest=owner.update_name
    )
    equal = [revision for revision in own if codec.data_of(revision) == data]
    highest = own[-1].revision if own else 0
    collisions = owner.collision_count or 0
    writes: Chain = ()
    name, holder, counted = _name(codec, owner, data, collisions, stored)
    if equal:
        update = equal[-1]
        if update is holder:
            collisions = counted  # the process that created it may have ended before it wrote the status
        if update is not own[-1]:
            update, writes = _raise(update, highest + 1, owner)
    else:
        update, collisions = holder, counted
        if update is None:
            update, writes = _create(_body(codec, owner, data, name, highest + 1))
    current = next((revision for revision in own if revision.metadata.name == owner.current_name), update)
    if current.metadata.name == update.metadata.name:
        current = update
    return RevisionChoice(update=update, current=current, collision_count=collisions, writes=writes)


def own_revisions(
    stored: Iterable[ControllerRevision],
    owner_uid: str,
    selector: Selector | None = None,
    *,
    may_lack_labels: bool = False,
    newest: str = "",
) -> list[ControllerRevision]:
    """Return the owner's revisions and matching orphans, in their order (§7.4).

    `may_lack_labels`: the owner's revisions need not match the selector if they have no labels. `newest`: the name of
    the last one of those with the same number.
    """

    def is_own(revision: ControllerRevision) -> bool:
        controller, labels = controller_of(revision.metadata), revision.metadata.labels
        if controller is not None and controller.uid != owner_uid:
            return False
        unlabelled = may_lack_labels and controller is not None and not labels.keys() - {REVISION_HASH_LABEL}
        return selector is None or unlabelled or selector.matches(labels)

    return sorted(
        filter(is_own, stored),
        key=lambda revision: (
            revision.revision,
            revision.metadata.name == newest,
            revision.metadata.creation_timestamp or _EARLIEST,
            revision.metadata.name,
        ),
    )


def live_revisions(
    codec: RevisionCodec, revisions: Iterable[ControllerRevision], labels: Collection[str]
) -> frozenset[str]:
    """Return the names of revisions that one of these labels of pods refers to."""
    return frozenset(
        revision.metadata.name
        for revision in revisions
        if any(codec.belongs(label, codec.label(revision)) for label in labels)
    )


def surplus_revisions(
    revisions: Sequence[ControllerRevision], limit: int, *, spared: Collection[str] = ()
) -> tuple[Delete, ...]:
    """Delete the first of these until `limit` are left, skipping the names that are `spared` (§7.5).

    The caller decides whether live revisions count: it leaves them out of `revisions`, or spares them.
    """
    surplus = max(len(revisions) - limit, 0)
    idle = [revision for revision in revisions if revision.metadata.name not in spared]
    return tuple(
        delete_of(REVISION, revision.metadata, Intent.REVISION, "history limit") for revision in idle[:surplus]
    )


def _raise(revision: ControllerRevision, number: int, owner: RevisionOwner) -> tuple[ControllerRevision, Chain]:
    """Make an older revision the newest again: a rollback."""
    meta = revision.metadata
    body: Json = {"revision": number}
    renewed = {key: value for key, value in owner.annotations.items() if meta.annotations.get(key) != value}
    if renewed:
        body["metadata"] = {"annotations": renewed}
    patch = patch_of(
        REVISION,
        meta,
        Intent.REVISION,
        f"rollback to {meta.name}",
        body=body,
        patch_type=PatchType.STRATEGIC,
        on_version=True,
    )
    meta = msgspec.structs.replace(meta, annotations={**meta.annotations, **renewed})
    return msgspec.structs.replace(revision, metadata=meta, revision=number), (patch,)


def _name(
    codec: RevisionCodec, owner: RevisionOwner, data: bytes, collisions: int, stored: Iterable[ControllerRevision]
) -> tuple[str, ControllerRevision | None, int]:
    """Return a name, the revision that has it with the same data, and the number of names taken by other data."""
    taken = {revision.metadata.name: revision for revision in stored}
    while True:
        name = f"{owner.metadata.name[: codec.name_limit]}-{revision_hash(data, collisions)}"
        holder = taken.get(name)
        if holder is None or codec.data_of(holder) == data:
            return name, holder, collisions
        collisions += 1


def _body(codec: RevisionCodec, owner: RevisionOwner, data: bytes, name: str, number: int) -> Json:
    content: Json = msgspec.json.decode(data)
    own_hash = name.rpartition("-")[2] if codec.hash_label_follows_name else revision_hash(data, owner.collision_count)
    return {
        **REVISION.type_meta,
        "metadata": {
            "namespace": codec.namespace or owner.metadata.namespace,
            "labels": {**owner.labels, **codec.labels(content), codec.hash_label: own_hash},
            "annotations": {**(owner.metadata.annotations if codec.copies_annotations else {}), **owner.annotations},
            "ownerReferences": [owner_reference(owner.resource, owner.metadata)],
            "name": name,
        },
        "revision": number,
        "data": content,
    }


def _create(body: Json) -> tuple[ControllerRevision, Chain]:
    document = {**body, "data": msgspec.Raw(msgspec.json.encode(body["data"]))}
    create = create_of(REVISION, body, Intent.REVISION, f"new revision {body['metadata']['name']}")
    return msgspec.convert(document, ControllerRevision), (create,)
