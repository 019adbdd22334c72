"""The data of one in-place update: the changes to a pod (common.md §9.3), and the annotations with its progress.

These are the state and the grace annotation (§9.4, §9.5). Both are read by other tools, so member order and absences
are those of the reference. The legacy keys of old releases are read, and dropped with the next write.
"""

import base64
from datetime import UTC, datetime
from functools import lru_cache
from typing import Annotated

import msgspec

from flotilla_common.api.core import Pod
from flotilla_common.api.jsontext import go_json, read_json
from flotilla_common.api.keys import IN_PLACE_GRACE, IN_PLACE_STATE, LEGACY_IN_PLACE_GRACE, LEGACY_IN_PLACE_STATE
from flotilla_common.api.meta import Model, Moment, rfc3339
from flotilla_common.control.plan import Frozen, Intent, Json

_EPOCH = datetime.fromtimestamp(0, UTC)


class ContainerMeta(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Labels and annotations that a container reads through its env."""

    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class UpdateSpec(Frozen):
    """The difference between two templates that can be applied to a running pod. It is shared: never change it."""

    revision: str = ""
    images: dict[str, str] = {}
    resources: dict[str, Json] = {}  # {container: {limits, requests}}, changed entries only
    metadata_patch: Json | None = None  # strategic merge patch of the metadata's members; None when metadata stays
    ref_metadata: dict[str, ContainerMeta] = {}
    env_from_metadata: bool = False

    @property
    def intent(self) -> Intent:
        """The purpose of the update's writes."""
        return Intent.RESIZE if self.resources and not self.images else Intent.IN_PLACE_UPDATE


class LastStatus(Model):
    """The image of a container just before it was changed.

    If the kubelet had not reported it as running, there is no id; then `image` is what the kubelet may have been
    starting. (OpenKruise does not have this member, and ignores it.)
    """

    image_id: str = msgspec.field(default="", name="imageID")
    image: str = ""


class PreCheck(Model):
    """The preconditions of the next batch."""

    containers_required_ready: list[str] = []


class Batch(Model):
    """Containers that were changed together."""

    timestamp: Moment = _EPOCH
    containers: list[str] = []


class InPlaceState(Model):
    """The state annotation; the `next…` members are the changes of later batches."""

    revision: str = ""
    update_timestamp: Moment = _EPOCH
    last_container_statuses: dict[str, LastStatus] | None = None
    update_env_from_metadata: bool = False
    update_resources: bool = False
    update_images: bool = False
    next_container_images: dict[str, str] = {}
    next_container_ref_metadata: dict[str, ContainerMeta] = {}
    next_container_resources: dict[str, Json] = {}
    pre_check_before_next: PreCheck | None = None
    container_batches_record: list[Batch] = []

    @property
    def has_next(self) -> bool:
        """Report whether there are later batches."""
        return bool(self.next_container_images or self.next_container_ref_metadata or self.next_container_resources)

    @property
    def next_spec(self) -> UpdateSpec:
        """The remaining changes, as a spec."""
        return UpdateSpec(
            revision=self.revision,
            images=self.next_container_images,
            resources=self.next_container_resources,
            ref_metadata=self.next_container_ref_metadata,
            env_from_metadata=self.update_env_from_metadata,
        )

    def encode(self) -> str:
        """Return the annotation's value."""
        last = self.last_container_statuses
        document: Json = {
            "revision": self.revision,
            "updateTimestamp": rfc3339(self.update_timestamp),
            "lastContainerStatuses": None if last is None else _by_name(msgspec.to_builtins(last)),
        }
        optional: Json = {
            "updateEnvFromMetadata": self.update_env_from_metadata,
            "updateResources": self.update_resources,
            "updateImages": self.update_images,
            "nextContainerImages": _by_name(self.next_container_images),
            "nextContainerRefMetadata": _ref_metadata(self.next_container_ref_metadata),
            "nextContainerResources": _by_name(self.next_container_resources),
            "preCheckBeforeNext": msgspec.to_builtins(self.pre_check_before_next) if self.has_next else None,
            "containerBatchesRecord": [
                {"timestamp": rfc3339(batch.timestamp), "containers": batch.containers}
                for batch in self.container_batches_record
            ],
        }
        return go_json(document | {key: value for key, value in optional.items() if value}).decode()


class Grace(Model):
    """The grace annotation: the whole update, waiting."""

    revision: str = ""
    container_images: dict[str, str] = {}
    container_ref_metadata: dict[str, ContainerMeta] = {}
    container_resources: dict[str, Json] = {}
    meta_data_patch: str = ""
    update_env_from_metadata: bool = False
    grace_seconds: Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)] = 0

    @property
    def spec(self) -> UpdateSpec:
        """The update. Raises ValueError if the patch in the annotation is invalid."""
        patch: Json | None = None
        if self.meta_data_patch:
            try:
                document = read_json(base64.b64decode(self.meta_data_patch), dict[str, Json])
            except ValueError as error:
                raise ValueError(f"metaDataPatch: {error}") from error
            patch = document.get("metadata")
        return UpdateSpec(
            revision=self.revision,
            images=self.container_images,
            resources=self.container_resources,
            metadata_patch=patch,
            ref_metadata=self.container_ref_metadata,
            env_from_metadata=self.update_env_from_metadata,
        )


def encode_grace(spec: UpdateSpec, seconds: int) -> str:
    """Return the grace annotation's value."""
    patch = b"" if spec.metadata_patch is None else go_json({"metadata": spec.metadata_patch}, sort=True)
    document: Json = {
        "revision": spec.revision,
        "containerImages": _by_name(spec.images),
        "containerRefMetadata": _ref_metadata(spec.ref_metadata),
        "containerResources": _by_name(spec.resources),
        "metaDataPatch": base64.b64encode(patch).decode(),
        "updateEnvFromMetadata": spec.env_from_metadata,
        "graceSeconds": seconds,
    }
    return go_json({key: value for key, value in document.items() if value or key == "revision"}).decode()


def state_of_update(pod: Pod) -> InPlaceState | None:
    """Return the state of the pod's latest in-place update, or None. Raises ValueError for an invalid annotation."""
    text = _annotation(pod, IN_PLACE_STATE, LEGACY_IN_PLACE_STATE)
    return _decode_state(text) if text else None


def grace_of(pod: Pod) -> Grace | None:
    """Return the update that waits for the end of its grace period, or None.

    Raises ValueError for an invalid annotation.
    """
    text = _annotation(pod, IN_PLACE_GRACE, LEGACY_IN_PLACE_GRACE)
    if not text:
        return None
    try:
        return read_json(text, Grace)
    except ValueError as error:
        raise ValueError(f"pod {pod.metadata.name}: annotation {IN_PLACE_GRACE}: {error}") from error


def in_grace(pod: Pod) -> bool:
    """Return whether the pod has a grace annotation that is not empty: selection skips it (cloneset.md §4.8)."""
    return bool(_annotation(pod, IN_PLACE_GRACE, LEGACY_IN_PLACE_GRACE))


def _annotation(pod: Pod, key: str, legacy: str) -> str:
    annotations = pod.metadata.annotations
    value = annotations.get(key)
    return annotations.get(legacy, "") if value is None else value


@lru_cache(maxsize=4096)
def _decode_state(text: str) -> InPlaceState:
    try:
        return read_json(text, InPlaceState)
    except ValueError as error:
        raise ValueError(f"annotation {IN_PLACE_STATE}: {error}") from error


def _by_name(entries: dict[str, object] | dict[str, str] | dict[str, Json]) -> Json:
    return dict(sorted(entries.items()))


def _ref_metadata(entries: dict[str, ContainerMeta]) -> Json:
    return {
        name: {
            "creationTimestamp": None,
            **({"labels": _by_name(meta.labels)} if meta.labels else {}),
            **({"annotations": _by_name(meta.annotations)} if meta.annotations else {}),
        }
        for name, meta in sorted(entries.items())
    }
