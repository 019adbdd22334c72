"""Typed members that workloads of all kinds share.

Services that mirror workloads of several kinds use this type, because a process decodes each object once, into one
type.
"""

from collections.abc import Iterable
from typing import Any

import msgspec

from flotilla_common.api.cached import struct_cached_property
from flotilla_common.api.documents import Json, member, strings
from flotilla_common.api.jsontext import Reader
from flotilla_common.api.meta import Model, Object, ObjectMeta, controller_of

CONTROLLED = "controlled"
"""The index of objects by the uid of their controller."""

_SPECS: Reader[dict[str, Any]] = Reader(dict[str, Any])


def controller_uid(obj: Object) -> Iterable[str]:
    """Return the uid of the object's controller, if it has one."""
    controller = controller_of(obj.metadata)
    return [controller.uid] if controller is not None else []


class WorkloadStatus(Model):
    """The status members that all kinds share."""

    observed_generation: int = 0
    replicas: int = 0
    ready_replicas: int = 0
    update_revision: str = ""


class Workload(Model, dict=True):
    """A workload whose spec is decoded on first use."""

    metadata: ObjectMeta = ObjectMeta()
    spec: msgspec.Raw = msgspec.Raw(b"{}")
    status: WorkloadStatus = WorkloadStatus()

    @struct_cached_property
    def document(self) -> Json:
        """Return the whole spec; empty if it cannot be read."""
        try:
            return _SPECS.read(self.spec)
        except ValueError:
            return {}

    @property
    def replicas(self) -> int:
        """Return `spec.replicas`; 1 if it is absent."""
        replicas = self.document.get("replicas")
        return replicas if isinstance(replicas, int) else 1

    @property
    def pod_labels(self) -> dict[str, str]:
        """Return the labels of its pod template."""
        return strings(member(self.document, "template", "metadata").get("labels"))
