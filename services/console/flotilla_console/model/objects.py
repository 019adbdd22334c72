"""The objects in the model: their metadata is decoded, the rest stays as it came until a page needs it."""

import zlib
from collections.abc import Mapping

import msgspec
from msgspec.structs import force_setattr

from flotilla_common.api.core import Pod
from flotilla_common.api.documents import Json, mapping
from flotilla_common.api.jsontext import read_json
from flotilla_common.api.keys import (
    IN_PLACE_GRACE,
    IN_PLACE_STATE,
    LAUNCH_PRIORITY,
    LEGACY_IN_PLACE_GRACE,
    LEGACY_IN_PLACE_STATE,
    SIDECAR_SET_INJECTED,
    SIDECAR_SET_WORKING_CONTAINER,
    STATE_TIME_ANNOTATION,
)
from flotilla_common.api.kinds.podunavailablebudget.types import LEGACY_RELATED_BUDGET, RELATED_BUDGET
from flotilla_common.api.kinds.workloadspread.types import DELETION_COST, MATCHED
from flotilla_common.api.meta import Condition, Model, ObjectMeta
from flotilla_common.api.resources import Resource

_EMPTY = msgspec.Raw(b"{}")

_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
"""An annotation that repeats the whole object."""

_OF_PODS = frozenset(
    {
        STATE_TIME_ANNOTATION,
        IN_PLACE_STATE,
        IN_PLACE_GRACE,
        LEGACY_IN_PLACE_STATE,
        LEGACY_IN_PLACE_GRACE,
        LAUNCH_PRIORITY,
        SIDECAR_SET_INJECTED,
        SIDECAR_SET_WORKING_CONTAINER,
        RELATED_BUDGET,
        LEGACY_RELATED_BUDGET,
        DELETION_COST,
        MATCHED,
    }
)
"""The annotations of pods that pages show; others may be large, and there are many pods."""


READY = "Ready"
USUAL = frozenset({"Initialized", "PodScheduled", "ContainersReady", "PodReadyToStartContainers"})
"""Conditions that every pod that is ready has; they are a fifth of its memory."""

_NO_ITEMS: list[object] = []
_NO_MEMBERS: dict[str, object] = {}


class Stored(Model):
    """An object of any kind. Its parts point into one buffer, the object as it came."""

    metadata: ObjectMeta = ObjectMeta()
    spec: msgspec.Raw = _EMPTY
    status: msgspec.Raw = _EMPTY


class Template(Model):
    """A ControllerRevision or ReplicaSet: a stored pod template. Its body is kept compressed, because few are read."""

    metadata: ObjectMeta = ObjectMeta()
    revision: int = 0
    data: msgspec.Raw = _EMPTY  # of a ControllerRevision
    spec: msgspec.Raw = _EMPTY  # of a ReplicaSet


def read(raw: msgspec.Raw) -> Json:
    """Return a part of an object as a document; empty if it is not one."""
    try:
        return mapping(read_json(bytes(raw), object))
    except ValueError:
        return {}


def body_of(template: Template, member: str) -> Json:
    """Return `data` or `spec` of a packed template."""
    packed = bytes(getattr(template, member))
    return read(msgspec.Raw(zlib.decompress(packed))) if packed != b"{}" else {}


def document(obj: Stored, resource: Resource) -> Json:
    """Return the object as the apiserver shows it, without managed fields and what `kubectl apply` keeps of it."""
    return {
        **resource.type_meta,
        "metadata": msgspec.to_builtins(obj.metadata),
        "spec": read(obj.spec),
        "status": read(obj.status),
    }


def pack(_: Template | None, new: Template | None) -> None:
    """Compress the body of a template that came into the table: a cluster has tens of thousands of them."""
    if new is not None:
        trim(None, new)
        for member in ("data", "spec"):
            raw = bytes(getattr(new, member))
            if raw != b"{}":
                force_setattr(new, member, msgspec.Raw(zlib.compress(raw, 1)))


def trim(_: object, new: Stored | Template | None) -> None:
    """Drop what no page shows of an object that came into the table."""
    if new is not None:
        _keep(new.metadata, {key: value for key, value in new.metadata.annotations.items() if key != _APPLIED})


def trim_pod(_: Pod | None, new: Pod | None) -> None:
    """Drop what no page shows of a pod that came into the table."""
    if new is None:
        return
    _keep(new.metadata, {key: value for key, value in new.metadata.annotations.items() if key in _OF_PODS})
    status = new.status
    if any(one.type == READY and one.status == "True" for one in status.conditions):
        force_setattr(status, "conditions", [one for one in status.conditions if not _is_usual(one)])
    for part in (new.metadata, new.spec, status):
        _share_empty(part)


def _is_usual(condition: Condition) -> bool:
    return condition.type in USUAL and condition.status == "True"


def _share_empty(part: msgspec.Struct) -> None:
    """Replace the empty lists and objects of a struct by shared ones: decoded objects are never modified."""
    for name in part.__struct_fields__:
        value = getattr(part, name)
        if value == [] and value is not _NO_ITEMS:
            force_setattr(part, name, _NO_ITEMS)
        elif value == {} and value is not _NO_MEMBERS:
            force_setattr(part, name, _NO_MEMBERS)


def _keep(meta: ObjectMeta, annotations: Mapping[str, str]) -> None:
    force_setattr(meta, "annotations", annotations)
    force_setattr(meta, "managed_fields", _NO_ITEMS)
