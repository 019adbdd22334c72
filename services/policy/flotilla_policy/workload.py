"""A workload of any kind that is mirrored, as this service reads it: one process holds one shape of an object."""

from typing import Any

import msgspec

from flotilla_common.api.documents import Json, member, strings
from flotilla_common.api.facts import Fact
from flotilla_common.api.jsontext import Reader
from flotilla_common.api.meta import Model, ObjectMeta

_SPECS: Reader[dict[str, Any]] = Reader(dict[str, Any])


class Workload(Model, dict=True):
    """What budgets go by."""

    metadata: ObjectMeta = ObjectMeta()
    spec: msgspec.Raw = msgspec.Raw(b"{}")

    @Fact
    def document(self) -> Json:
        """The whole spec; empty where it cannot be read."""
        try:
            return _SPECS.read(self.spec)
        except ValueError:
            return {}

    @property
    def replicas(self) -> int:
        """Return `spec.replicas`; 1 where it is absent."""
        replicas = self.document.get("replicas")
        return replicas if isinstance(replicas, int) else 1

    @property
    def pod_labels(self) -> dict[str, str]:
        """Return the labels of its pod template."""
        return strings(member(self.document, "template", "metadata").get("labels"))
