"""ControllerRevisions: choosing, creating, raising and forgetting them (common.md §7).

A revision is recognised by its content, compared in canonical form, never by its name: revisions that another release
or the reference wrote must be found again, because a false difference would roll every pod of the fleet.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache

import msgspec

from flotilla_common.api.core import ControllerRevision
from flotilla_common.api.keys import CLAIM_HASH_ANNOTATION, REVISION_HASH_LABEL
from flotilla_common.api.meta import OwnerReference, controller_of
from flotilla_common.api.resources import REVISION
from flotilla_common.api.selectors import Selector
from flotilla_common.control.plan import Chain, Create, Delete, Frozen, Json, Patch
from flotilla_common.workload.hashing import revision_data, revision_hash

_OWNER_NAME_LIMIT = 223  # leaves room for a dash and the hash in an object name
_DAWN = datetime.min.replace(tzinfo=UTC)


class RevisionChoice(Frozen):
    """The outcome of looking at the template and the stored revisions.

    `writes` is empty when nothing is to be done; the update revision can be planned with before it is written.
    """

    update: ControllerRevision
    current: ControllerRevision
    collision_count: int
    writes: Chain = ()


class _DataSpec(msgspec.Struct):
    template: msgspec.Raw = msgspec.Raw(b"null")


class _Data(msgspec.Struct):
    spec: _DataSpec = msgspec.field(default_factory=_DataSpec)


def short_hash(name: str) -> str:
    """The part of a revision name or hash label after its last dash; all of it when there is none."""
    return name.rpartition("-")[2]


def belongs(label: str, revision_name: str) -> bool:
    """Whether a pod with this `controller-revision-hash` is on the revision, as CloneSet sees it (§7.7)."""
    return label == revision_name or short_hash(label) == short_hash(revision_name)


def choose_revisions(
    *,
    owner: OwnerReference,
    namespace: str,
    selector: Selector,
    annotations: Mapping[str, str],
    template: msgspec.Raw,
    claim_hash: str | None,
    stored: Sequence[ControllerRevision],
    current_name: str,
    collision_count: int | None,
) -> RevisionChoice:
    """Find or make the update revision of `template`, and find the current one (§7.4).

    `annotations` are the owner's. `claim_hash` is None for kinds without it. `stored` may hold revisions of others:
    they only matter where they occupy a name. Raises ValueError when the template cannot be read.
    """
    data = revision_data(template)
    own = own_revisions(stored, owner.uid, selector)
    equal = [revision for revision in own if canonical_data(revision) == data]
    highest = own[-1].revision if own else 0
    collisions = collision_count or 0
    writes: Chain = ()
    if equal and canonical_data(own[-1]) == data:
        update = own[-1]
    elif equal:
        update, writes = _raise(equal[-1], highest + 1, claim_hash)
    else:
        body = _body(owner, namespace, annotations, data, claim_hash, highest + 1, collisions)
        update, collisions = _name(body, owner.name, data, collisions, stored)
        if update is None:
            update, writes = _create(body)
    current = next((revision for revision in own if revision.metadata.name == current_name), update)
    if current.metadata.name == update.metadata.name:
        current = update
    return RevisionChoice(update=update, current=current, collision_count=collisions, writes=writes)


def own_revisions(
    stored: Iterable[ControllerRevision], owner_uid: str, selector: Selector | None = None
) -> list[ControllerRevision]:
    """Revisions that are the owner's, or nobody's, in their order (§7.4)."""
    return sorted(
        (
            revision
            for revision in stored
            if ((controller := controller_of(revision.metadata)) is None or controller.uid == owner_uid)
            and (selector is None or selector.matches(revision.metadata.labels))
        ),
        key=lambda revision: (
            revision.revision,
            revision.metadata.creation_timestamp or _DAWN,
            revision.metadata.name,
        ),
    )


def canonical_data(revision: ControllerRevision) -> bytes:
    """The revision's template as `revision_data` would write it; empty for data that holds no readable template."""
    return _canonical_data(bytes(revision.data))


def surplus_revisions(
    stored: Collection[ControllerRevision], live: Collection[str], limit: int, *, owner_uid: str
) -> tuple[Delete, ...]:
    """Deletes of the owner's oldest revisions beyond `limit` that are not live (§7.5).

    `live` holds the names of the current and the update revision and the revision labels of all listed pods, full or
    short.
    """
    if len(stored) <= limit:
        return ()
    short = {short_hash(name) for name in live}
    idle = [
        revision
        for revision in own_revisions(stored, owner_uid)
        if revision.metadata.name not in live and short_hash(revision.metadata.name) not in short
    ]
    return tuple(
        Delete(
            resource=REVISION,
            namespace=revision.metadata.namespace,
            name=revision.metadata.name,
            uid=revision.metadata.uid,
            cause="history limit",
        )
        for revision in idle[: max(len(idle) - limit, 0)]
    )


@lru_cache(maxsize=4096)
def _canonical_data(data: bytes) -> bytes:
    try:
        return revision_data(_template(data))
    except ValueError:
        return b""  # nothing that a template could be equal to


def _template(data: bytes) -> msgspec.Raw:
    try:
        return msgspec.json.decode(data, type=_Data).spec.template
    except msgspec.DecodeError as error:
        raise ValueError(f"no template in the revision: {error}") from error


def _raise(revision: ControllerRevision, number: int, claim_hash: str | None) -> tuple[ControllerRevision, Chain]:
    """An older revision becomes the newest again: a rollback."""
    meta = revision.metadata
    body: Json = {"revision": number}
    if claim_hash is not None and meta.annotations.get(CLAIM_HASH_ANNOTATION) != claim_hash:
        body["metadata"] = {"annotations": {CLAIM_HASH_ANNOTATION: claim_hash}}
        annotations = {**meta.annotations, CLAIM_HASH_ANNOTATION: claim_hash}
        meta = msgspec.structs.replace(meta, annotations=annotations)
    patch = Patch(
        resource=REVISION,
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        resource_version=meta.resource_version,
        cause=f"rollback to {meta.name}",
        body=body,
    )
    return msgspec.structs.replace(revision, metadata=meta, revision=number), (patch,)


def _body(
    owner: OwnerReference,
    namespace: str,
    annotations: Mapping[str, str],
    data: bytes,
    claim_hash: str | None,
    number: int,
    collisions: int,
) -> Json:
    """The revision without its name. The hash label keeps the first hash even when the name has to differ."""
    content: Json = msgspec.json.decode(data)
    labels: Json = content["spec"]["template"]["metadata"].get("labels", {})
    claims = {} if claim_hash is None else {CLAIM_HASH_ANNOTATION: claim_hash}
    return {
        "apiVersion": REVISION.api_version,
        "kind": REVISION.kind,
        "metadata": {
            "namespace": namespace,
            "labels": {**labels, REVISION_HASH_LABEL: revision_hash(data, collisions)},
            "annotations": {**annotations, **claims},
            "ownerReferences": [msgspec.to_builtins(owner)],
        },
        "revision": number,
        "data": content,
    }


def _name(
    body: Json, owner_name: str, data: bytes, collisions: int, stored: Iterable[ControllerRevision]
) -> tuple[ControllerRevision | None, int]:
    """Give the body a name that is free: (None, collisions), or return who has it and holds the very same data."""
    taken = {revision.metadata.name: revision for revision in stored}
    while True:
        name = f"{owner_name[:_OWNER_NAME_LIMIT]}-{revision_hash(data, collisions)}"
        holder = taken.get(name)
        if holder is None:
            body["metadata"]["name"] = name
            return None, collisions
        if canonical_data(holder) == data:
            return holder, collisions
        collisions += 1


def _create(body: Json) -> tuple[ControllerRevision, Chain]:
    name: str = body["metadata"]["name"]
    create = Create(
        resource=REVISION,
        namespace=body["metadata"]["namespace"],
        name=name,
        cause=f"new revision {name}",
        body=body,
    )
    return msgspec.convert({**body, "data": msgspec.Raw(msgspec.json.encode(body["data"]))}, ControllerRevision), (
        create,
    )
