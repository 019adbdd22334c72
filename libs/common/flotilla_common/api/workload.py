"""Types that workloads of several kinds share: lifecycle hooks, update order, in-place settings, a partial workload.

See common.md §8.1, §11, §12. Services that mirror workloads of several kinds use `Workload`, because a process decodes
each object once, into one type.
"""

from collections.abc import Iterable
from typing import Any

import msgspec

from flotilla_common.api.documents import Json, member, strings
from flotilla_common.api.jsontext import Reader
from flotilla_common.api.meta import (
    IntOrString,
    LabelSelector,
    Model,
    Object,
    ObjectMeta,
    controller_of,
    struct_cached_property,
)

POLICIES = ("ReCreate", "InPlaceIfPossible", "InPlaceOnly")
"""The update policies of pods."""


class LifecycleHook(Model):
    """A hook that holds a pod in a state until the user removes the label or finalizer."""

    labels_handler: dict[str, str] = {}
    finalizers_handler: list[str] = []
    mark_pod_not_ready: bool = False


class Lifecycle(Model):
    pre_delete: LifecycleHook | None = None
    in_place_update: LifecycleHook | None = None
    pre_normal: LifecycleHook | None = None


class WeightTerm(Model):
    weight: int = 0
    match_selector: LabelSelector = LabelSelector()


class OrderTerm(Model):
    ordered_key: str = ""


class PriorityStrategy(Model):
    """The order of pods in an update; only one of the two lists is used."""

    weight_priority: list[WeightTerm] = []
    order_priority: list[OrderTerm] = []


class ScatterTerm(Model):
    """A label whose pods are spread over the update."""

    key: str = ""
    value: str = ""


class InPlaceUpdateStrategy(Model):
    grace_period_seconds: int = 0
    image_pre_download_parallelism: IntOrString | None = None
    image_pre_download_timeout_seconds: int | None = None
    image_pre_download_min_updated_ready_pods: int | None = None


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
