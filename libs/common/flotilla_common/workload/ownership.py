"""Owner references: building them, and adopting or releasing objects (common.md §1, §7.8)."""

from collections.abc import Iterable

import msgspec

from flotilla_common.api.meta import Object, ObjectMeta
from flotilla_common.api.resources import Resource
from flotilla_common.control.plan import Chain, Intent, Json, Patch
from flotilla_common.control.writes import patch_of


def owner_reference(resource: Resource, meta: ObjectMeta) -> Json:
    """Return the reference by which dependents name the object as their controller."""
    return {
        **resource.type_meta,
        "name": meta.name,
        "uid": meta.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def release(owner_uid: str, resource: Resource, objects: Iterable[Object]) -> list[Chain]:
    """Remove the owner's reference from objects whose labels left its selector; they are left alone."""
    cause = "labels left the selector"
    return [
        (_rewrite(resource, obj.metadata, _others(owner_uid, obj.metadata), Intent.RELEASE, cause),) for obj in objects
    ]


def adopt(owner: Json, resource: Resource, objects: Iterable[Object]) -> list[Chain]:
    """Make the owner of this reference the controller of objects that refer to it and have no controller.

    This is safe without reading the owner again: garbage collection ties such an object to it already.
    """
    cause = f"take over the {resource.kind.lower()}"
    return [
        (_rewrite(resource, obj.metadata, [*_others(owner["uid"], obj.metadata), owner], Intent.ADOPT, cause),)
        for obj in objects
    ]


def adopt_orphans(resource: Resource, owner: ObjectMeta, kind: Resource, objects: Iterable[Object]) -> list[Chain]:
    """Make the owner, of `resource`, the controller of orphans of `kind`, which need not refer to it.

    Nothing ties these to the owner yet, so a stale view might be the only claim: each chain begins with an
    empty patch, which the apiserver refuses unless the owner is exactly as it was planned with.
    """
    reference = owner_reference(resource, owner)
    return [(certain(resource, owner, Intent.ADOPT), *chain) for chain in adopt(reference, kind, objects)]


def certain(resource: Resource, meta: ObjectMeta, intent: Intent) -> Patch:
    """Return an empty patch, which the apiserver refuses unless the object is exactly as it was planned with.

    It guards writes that must not follow from a stale view of the object, and has their `intent`.
    """
    cause = f"check that {meta.name} is unchanged"
    return patch_of(resource, meta, intent, cause, body={}, subresource="status", on_version=True)


def _others(uid: str, meta: ObjectMeta) -> list[Json]:
    return [msgspec.to_builtins(reference) for reference in meta.owner_references if reference.uid != uid]


def _rewrite(resource: Resource, meta: ObjectMeta, references: list[Json], intent: Intent, cause: str) -> Patch:
    """Replace the list of references of exactly this version of the object."""
    body: Json = {"metadata": {"ownerReferences": references or None}}
    return patch_of(resource, meta, intent, cause, body=body, on_version=True)
