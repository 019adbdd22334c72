"""Decides whether a pod's containers run what its in-place update asked for (common.md §9.6).

The kubelet acts on a changed image or resource some time later. The node agent's report (`runtime-containers-meta`)
shows for sure what a container was started with; without it, the image that the kubelet reports is compared.

A report may be older than its pod's spec: if a pod gets a third image before the kubelet has reported the second, that
second one arrives as a changed image, too. So a report of an older spec completes nothing.
"""

import msgspec

from flotilla_common.api import quantity
from flotilla_common.api.core import Container, ContainerStatus, Pod, Resources
from flotilla_common.api.images import is_reported_as, with_tag
from flotilla_common.api.jsontext import read_json
from flotilla_common.api.keys import RUNTIME_CONTAINERS_META
from flotilla_common.api.meta import Model
from flotilla_common.gates import Gates
from flotilla_common.workload.hashing import env_hash, plain_hash
from flotilla_common.workload.inplace.state import InPlaceState, in_grace, state_of_update


class RuntimeHashes(Model):
    plain_hash: int = 0
    extracted_env_from_metadata_hash: int = 0


class RuntimeContainer(Model):
    """The node agent's data of one container."""

    name: str = ""
    container_id: str = msgspec.field(default="", name="containerID")
    hashes: RuntimeHashes = RuntimeHashes()


class RuntimeMeta(Model):
    """The annotation `runtime-containers-meta`."""

    containers: list[RuntimeContainer] = []


def completed(pod: Pod, gates: Gates) -> bool:
    """Return whether there is no grace period and no later batch, and all changed containers were restarted.

    True for a pod that was never updated in place, False while its annotations cannot be decoded.
    """
    if in_grace(pod):
        return False
    try:
        state = state_of_update(pod)
    except ValueError:
        return False
    return state is None or (not state.has_next and containers_completed(pod, state, gates))


def containers_completed(pod: Pod, state: InPlaceState, gates: Gates) -> bool:
    """Return whether all changed containers run the new content, and the kubelet has observed the spec."""
    if 0 < pod.status.observed_generation < pod.metadata.generation:
        return False
    text = pod.metadata.annotations.get(RUNTIME_CONTAINERS_META)
    try:
        meta = None if text is None else read_json(text, RuntimeMeta)
    except ValueError:
        return False
    if state.update_env_from_metadata and not (meta and _env_consistent(pod, meta)):
        return False
    if gates.on("InPlaceWorkloadVerticalScaling") and state.update_resources and not _resized(pod):
        return False
    return (meta is not None and _plain_consistent(pod, meta)) or _images_changed(pod, state)


def _env_consistent(pod: Pod, meta: RuntimeMeta) -> bool:
    labels, annotations = pod.metadata.labels, pod.metadata.annotations
    return all(
        hashes is not None and hashes.extracted_env_from_metadata_hash == env_hash(container, labels, annotations)
        for container, hashes in _seen(pod, meta)
    )


def _plain_consistent(pod: Pod, meta: RuntimeMeta) -> bool:
    return all(hashes is not None and hashes.plain_hash == plain_hash(one) for one, hashes in _seen(pod, meta))


def _seen(pod: Pod, meta: RuntimeMeta) -> list[tuple[Container, RuntimeHashes | None]]:
    """Return the containers with the reported hashes of their current instances, or None."""
    instances = {status.name: status.container_id for status in pod.status.container_statuses}
    reports = {(report.name, report.container_id): report.hashes for report in meta.containers}
    return [
        (one, reports.get((one.name, instances[one.name])) if one.name in instances else None)
        for one in pod.spec.containers
    ]


def _statuses(pod: Pod) -> dict[str, ContainerStatus]:
    return {status.name: status for status in pod.status.container_statuses}


def _resized(pod: Pod) -> bool:
    statuses = _statuses(pod)
    return len(pod.status.container_statuses) == len(pod.spec.containers) and all(
        (status := statuses.get(container.name)) is not None
        and status.resources is not None
        and _same_resources(container.resources, status.resources)
        for container in pod.spec.containers
    )


def _same_resources(spec: Resources, status: Resources) -> bool:
    return all(
        wanted.keys() == actual.keys() and all(quantity.equal(wanted[name], actual[name]) for name in wanted)
        for wanted, actual in ((spec.limits, status.limits), (spec.requests, status.requests))
    )


def _images_changed(pod: Pod, state: InPlaceState) -> bool:
    """Return whether all changed containers were restarted.

    A container counts as restarted when its imageID has changed, or the kubelet reports the wanted image. If the
    kubelet was about to start it when its image changed, it may run the old image first; and if it is stopped with
    neither image, it ran an image that the pod wanted in between.
    """
    statuses = _statuses(pod)
    images = {container.name: container.image for container in pod.spec.containers}
    for name, last in (state.last_container_statuses or {}).items():
        status = statuses.get(name)
        if status is None:
            return False
        wanted = images.get(name, "")
        if with_tag(wanted) == status.image:
            continue
        if not status.ready and status.state.running is None and not is_reported_as(wanted, status.image):
            return False
        if status.image_id == last.image_id or (last.image and is_reported_as(last.image, status.image)):
            return False
    return True
