"""Divides an in-place update into batches of containers, and builds their writes (common.md §9.6, §10).

Containers with a launch priority are updated in the order in which they were started, the highest first; the rest of
the update waits in the state annotation until they are ready again. Resources are written by their own subresource
where it exists, then all the rest in one patch.
"""

import re
from collections.abc import Collection
from datetime import datetime
from functools import lru_cache

import msgspec

from flotilla_common.api import quantity
from flotilla_common.api.core import Container, Pod
from flotilla_common.api.keys import IN_PLACE_GRACE, IN_PLACE_STATE, LEGACY_IN_PLACE_GRACE, LEGACY_IN_PLACE_STATE
from flotilla_common.api.resources import POD
from flotilla_common.control.plan import Chain, Event, Json, Patch, PatchType
from flotilla_common.control.writes import patch_of
from flotilla_common.workload.inplace.state import Batch, ContainerMeta, InPlaceState, LastStatus, PreCheck, UpdateSpec
from flotilla_common.workload.podedit import PodEdit, on_version
from flotilla_common.workload.predicates import launch_priority

_RESIZE_SUBRESOURCE = (1, 32)


def next_batch(containers: Collection[Container], spec: UpdateSpec) -> set[str]:
    """Return the names of the pod's containers that are changed now."""
    touched = {*spec.images, *spec.resources, *spec.ref_metadata}
    candidates = {container.name: launch_priority(container) for container in containers if container.name in touched}
    highest = max((priority for priority in candidates.values() if priority is not None), default=None)
    batch = {name for name, priority in candidates.items() if priority is None or priority == highest}
    return _closed(batch, candidates.keys(), spec)


def apply_batch(edit: PodEdit, spec: UpdateSpec, state: InPlaceState, now: datetime) -> tuple[InPlaceState, Json]:
    """Put the next batch of `spec` into the edit.

    Returns the state to be written with it, and the changed resources by container, whose write depends on the
    apiserver.
    """
    pod = edit.pod
    batch = next_batch(pod.spec.containers, spec)
    if spec.metadata_patch is not None:
        edit.merge_metadata(spec.metadata_patch)
    for name in sorted(batch):
        if name in spec.images:
            edit.set_image(name, spec.images[name])
        meta = spec.ref_metadata.get(name)
        if meta is not None:
            edit.set_labels(meta.labels)
            edit.set_annotations(meta.annotations)
    live = {container.name: container for container in pod.spec.containers}
    rest = live.keys() - batch
    resources = {name: change for name in sorted(batch) if (change := _real_change(live[name], spec))}
    return _advance(pod, spec, state, batch, rest, now), resources


def _closed(batch: set[str], candidates: Collection[str], spec: UpdateSpec) -> set[str]:
    """Add the containers that read a key which changes now: they restart now, too."""
    keys = {name: _keys(spec.ref_metadata.get(name, ContainerMeta())) for name in candidates}
    readers: dict[tuple[str, str], list[str]] = {}
    for name, read in keys.items():
        for key in read:
            readers.setdefault(key, []).append(name)
    closed, waiting = set(batch), list(batch)
    while waiting:
        for key in keys[waiting.pop()]:
            pulled = [name for name in readers.pop(key, ()) if name not in closed]
            closed.update(pulled)
            waiting += pulled
    return closed


def _keys(meta: ContainerMeta) -> set[tuple[str, str]]:
    return {("labels", key) for key in meta.labels} | {("annotations", key) for key in meta.annotations}


def _advance(
    pod: Pod, spec: UpdateSpec, state: InPlaceState, batch: set[str], rest: Collection[str], now: datetime
) -> InPlaceState:
    """Return the state after the batch: it records what ran before, and the rest that waits."""
    changing = {name: last for name in batch if name in spec.images and (last := _last_status(pod, name)) is not None}
    later = msgspec.structs.replace(
        state,
        last_container_statuses={**changing, **(state.last_container_statuses or {})} or None,
        next_container_images={name: image for name, image in spec.images.items() if name in rest},
        next_container_resources={name: change for name, change in spec.resources.items() if name in rest},
        next_container_ref_metadata={name: meta for name, meta in spec.ref_metadata.items() if name in rest},
        container_batches_record=[*state.container_batches_record, Batch(timestamp=now, containers=sorted(batch))],
    )
    check = PreCheck(containers_required_ready=sorted(batch)) if later.has_next else None
    return msgspec.structs.replace(later, pre_check_before_next=check)


def _last_status(pod: Pod, name: str) -> LastStatus | None:
    """Return what the container runs, or may be about to run; None on a pod without a node, where nothing starts."""
    ids = {status.name: status.image_id for status in pod.status.container_statuses}
    if ids.get(name):
        return LastStatus(image_id=ids[name])
    if pod.spec.node_name:
        return LastStatus(image=next(one.image for one in pod.spec.containers if one.name == name))
    return LastStatus() if name in ids else None


def _real_change(container: Container, spec: UpdateSpec) -> Json:
    """Return the resources of the container that really get another value."""
    change: Json = {}
    for side, entries in spec.resources.get(container.name, {}).items():
        present = container.resources.limits if side == "limits" else container.resources.requests
        same = {name for name, value in entries.items() if name in present and quantity.equal(present[name], value)}
        if others := {name: value for name, value in entries.items() if name not in same}:
            change[side] = others
    return change


def write_batch(
    edit: PodEdit,
    spec: UpdateSpec,
    state: InPlaceState,
    *,
    server_version: str,
    now: datetime,
    before: tuple[Patch, ...] = (),
    on_success: Event | None = None,
    on_failure: Event | None = None,
) -> Chain:
    """Add the next batch of `spec` to the edit and write it all, after `before`, on exactly this version of the pod.

    So the recorded image ids are those just before the change.
    """
    state, resources = apply_batch(edit, spec, state, now)
    edit.set_annotations({IN_PLACE_STATE: state.encode(), IN_PLACE_GRACE: None})
    edit.set_annotations({LEGACY_IN_PLACE_STATE: None, LEGACY_IN_PLACE_GRACE: None})
    resize: tuple[Patch, ...] = ()
    if resources and has_resize_subresource(server_version):
        resize = (_resize(edit, resources, on_failure),)
    else:
        for name, change in resources.items():
            edit.set_resources(name, change)
    return on_version(edit.pod, (*before, *resize, *edit.chain(on_success=on_success, on_failure=on_failure)))


def _resize(edit: PodEdit, resources: Json, on_failure: Event | None) -> Patch:
    return patch_of(
        POD,
        edit.pod.metadata,
        edit.intent,
        edit.cause,
        revision=edit.revision,
        phase=edit.phase,
        body={"spec": {"containers": [{"name": name, "resources": change} for name, change in resources.items()]}},
        patch_type=PatchType.STRATEGIC,
        subresource="resize",
        on_failure=on_failure,
    )


@lru_cache(maxsize=8)
def has_resize_subresource(git_version: str) -> bool:
    """Return whether cpu and memory are changed through pods/resize; an unknown version counts as old."""
    parts = git_version.removeprefix("v").split(".")
    numbers = [re.match(r"\d+", part) for part in parts[:2]]
    read = tuple(int(number[0]) for number in numbers if number is not None)
    return len(read) == 2 and read >= _RESIZE_SUBRESOURCE
