"""A workload of any kind, as both controllers of this service read it: one process holds one shape of an object."""

from collections.abc import Iterable
from typing import Any

import msgspec

from flotilla_common.api.documents import Json
from flotilla_common.api.facts import Fact
from flotilla_common.api.jsontext import Reader
from flotilla_common.api.meta import Model, Object, ObjectMeta, controller_of

CONTROLLED = "controlled"
"""Index: objects by the uid of their controller."""

_SPECS: Reader[dict[str, Any]] = Reader(dict[str, Any])


def controller_uid(obj: Object) -> Iterable[str]:
    """Return the uid of the object's controller."""
    controller = controller_of(obj.metadata)
    return [controller.uid] if controller is not None else []


class WorkloadStatus(Model):
    observed_generation: int = 0
    replicas: int = 0
    ready_replicas: int = 0
    update_revision: str = ""


class Workload(Model, dict=True):
    """What all kinds have in common is typed."""

    metadata: ObjectMeta = ObjectMeta()
    spec: msgspec.Raw = msgspec.Raw(b"{}")
    status: WorkloadStatus = WorkloadStatus()

    @Fact
    def document(self) -> Json:
        """The whole spec; empty where it cannot be read."""
        try:
            return _SPECS.read(self.spec)
        except ValueError:
            return {}

    @property
    def replicas(self) -> int:
        """`spec.replicas`."""
        replicas = self.document.get("replicas")
        return replicas if isinstance(replicas, int) else 1
