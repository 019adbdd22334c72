"""Shares the equal parts of pods, so that a table holds them once.

The pods of a workload have the same containers, tolerations, gates and owner, and their conditions and states change in
the same seconds. What is left for each pod is its identity, its annotations and the ids of its containers: about a
third. Decoded objects are never modified, so sharing changes nothing that is read. Volumes are the
exception: all but those of claims are dropped.
"""

from typing import Any, TypeVar

import msgspec
from msgspec.structs import force_setattr

from flotilla_common.api.core import ContainerStatus, Pod, PodSpec, PodStatus
from flotilla_common.api.meta import ObjectMeta

MOST_PARTS = 1 << 13
"""Number of parts that are remembered; then sharing starts over, so that parts of pods that are gone go, too."""

P = TypeVar("P")

_OF_META = ("owner_references", "finalizers", "managed_fields", "creation_timestamp", "namespace")
_OF_SPEC = (
    "node_name",
    "node_selector",
    "affinity",
    "tolerations",
    "overhead",
    "resources",
    "scheduler_name",
    "scheduling_gates",
    "restart_policy",
    "containers",
    "init_containers",
    "ephemeral_containers",
    "readiness_gates",
)
_OF_STATUS = ("phase", "reason", "message")
_OF_CONTAINER = ("name", "image", "image_id", "resources", "state", "last_state")


class Parts:
    """The parts of the objects of one table."""

    def __init__(self) -> None:
        self._parts: dict[tuple[str, bytes], Any] = {}  # by member: one of another type may have the same JSON
        self._texts: dict[str, str] = {}
        self._encode = msgspec.json.Encoder().encode

    def share(self, obj: object) -> None:
        """Replace the parts of a pod that was just decoded by equal ones of earlier pods; ignore other objects."""
        if isinstance(obj, Pod):
            self._share_meta(obj.metadata)
            self._share_spec(obj.spec)
            self._share_status(obj.status)

    def _share_meta(self, meta: ObjectMeta) -> None:
        self._share_members(meta, _OF_META)
        if meta.labels:
            labels = {self._text(key): self._text(value) for key, value in meta.labels.items()}
            force_setattr(meta, "labels", labels)
        if meta.annotations:
            force_setattr(meta, "annotations", {self._text(key): value for key, value in meta.annotations.items()})

    def _share_spec(self, spec: PodSpec) -> None:
        self._share_members(spec, _OF_SPEC)
        if spec.volumes:
            # The volume of a token has another name in every pod; only claims matter.
            claims = [volume for volume in spec.volumes if volume.persistent_volume_claim is not None]
            force_setattr(spec, "volumes", claims)

    def _share_status(self, status: PodStatus) -> None:
        self._share_members(status, _OF_STATUS)
        if status.conditions:
            force_setattr(status, "conditions", [self._part("conditions", each) for each in status.conditions])
        for container in (*status.container_statuses, *status.init_container_statuses):
            self._share_container(container)

    def _share_container(self, container: ContainerStatus) -> None:
        self._share_members(container, _OF_CONTAINER)

    def _share_members(self, struct: msgspec.Struct, names: tuple[str, ...]) -> None:
        for name in names:
            value = getattr(struct, name)
            if value:
                force_setattr(struct, name, self._text(value) if isinstance(value, str) else self._part(name, value))

    def _text(self, text: str) -> str:
        if len(self._texts) > MOST_PARTS:
            self._texts.clear()
        return self._texts.setdefault(text, text)

    def _part(self, member: str, part: P) -> P:
        if len(self._parts) > MOST_PARTS:
            self._parts.clear()
        return self._parts.setdefault((member, self._encode(part)), part)
