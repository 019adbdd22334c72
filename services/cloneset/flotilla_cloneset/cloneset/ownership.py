"""Letting pods go that left the selector, and taking in those that refer to the CloneSet already (common.md §7.8)."""

from collections.abc import Iterable

import msgspec

from flotilla_cloneset.cloneset.bodies import owner_reference
from flotilla_common.api.core import Pod
from flotilla_common.api.kinds.cloneset.types import CloneSet
from flotilla_common.api.meta import ObjectMeta
from flotilla_common.api.resources import POD
from flotilla_common.control.plan import Chain, Json, Patch, PatchType


def release(cloneset: CloneSet, pods: Iterable[Pod]) -> list[Chain]:
    """Remove the reference of pods whose labels left the selector; the pods are left alone."""
    return [(_rewrite(pod, _others(cloneset, pod.metadata), "labels left the selector"),) for pod in pods]


def adopt(cloneset: CloneSet, pods: Iterable[Pod]) -> list[Chain]:
    """Become the controller of pods that refer to the CloneSet, match it, and have no controller.

    Safe without reading the CloneSet again: garbage collection ties such a pod to it already.
    """
    return [
        (_rewrite(pod, [*_others(cloneset, pod.metadata), owner_reference(cloneset)], "take over the pod"),)
        for pod in pods
    ]


def _others(cloneset: CloneSet, meta: ObjectMeta) -> list[Json]:
    return [
        msgspec.to_builtins(reference) for reference in meta.owner_references if reference.uid != cloneset.metadata.uid
    ]


def _rewrite(pod: Pod, references: list[Json], cause: str) -> Patch:
    """Replace the list of references of exactly this version of the pod."""
    meta = pod.metadata
    return Patch(
        resource=POD,
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        resource_version=meta.resource_version,
        cause=cause,
        patch_type=PatchType.MERGE,
        body={"metadata": {"ownerReferences": references or None}},
    )
