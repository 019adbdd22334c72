"""Advanced DaemonSet in its hub and storage version, apps.kruise.io/v1beta1, and its conversion (daemonset.md §2).

Templates stay raw: they are hashed, diffed and copied as documents, never through a partial type.

The conversion works on raw documents: fields that it does not name, the template included, are the same in both
versions and are passed through. v1alpha1 has an annotation for a field of v1beta1; the annotation stays when the field
is removed through v1beta1, and the next write through v1alpha1 sets the field again.
"""

import msgspec

from flotilla_common.api.documents import Json, ensured, member, strings
from flotilla_common.api.meta import Condition, IntOrString, LabelSelector, Model, ObjectMeta
from flotilla_common.api.resources import Resource
from flotilla_common.api.versions import Conversion, annotate, only_beta
from flotilla_common.api.workload import Lifecycle

DAEMON_SET = Resource("apps.kruise.io", "v1beta1", "daemonsets", "DaemonSet")


class RollingUpdate(Model):
    rolling_update_type: str = "Standard"  # Standard, InPlaceIfPossible
    max_unavailable: IntOrString | None = None
    max_surge: IntOrString | None = None
    selector: LabelSelector | None = None  # over nodes: only pods on these are updated
    partition: IntOrString | None = None  # nodes that stay on old revisions
    paused: bool = False


class UpdateStrategy(Model):
    type: str = "RollingUpdate"  # RollingUpdate, OnDelete
    rolling_update: RollingUpdate | None = None


class ScaleStrategy(Model):
    partitioned_scaling: bool = False  # the partition holds for the first pods, too


class DaemonSetSpec(Model):
    selector: LabelSelector = LabelSelector()
    template: msgspec.Raw = msgspec.Raw(b"{}")
    update_strategy: UpdateStrategy = UpdateStrategy()
    min_ready_seconds: int = 0
    burst_replicas: IntOrString | None = None
    revision_history_limit: int | None = None
    lifecycle: Lifecycle | None = None
    scale_strategy: ScaleStrategy | None = None


class DaemonSetStatus(Model, omit_defaults=False):
    """The status of a DaemonSet; all counts are nodes (daemonset.md §2.2)."""

    current_number_scheduled: int = 0
    number_misscheduled: int = 0
    desired_number_scheduled: int = 0
    number_ready: int = 0
    observed_generation: int = 0
    updated_number_scheduled: int = 0
    number_available: int = 0
    number_unavailable: int = 0
    collision_count: int | None = None
    conditions: list[Condition] = []
    update_revision: str = ""  # the hash alone


class DaemonSet(Model):
    metadata: ObjectMeta = ObjectMeta()
    spec: DaemonSetSpec = DaemonSetSpec()
    status: DaemonSetStatus = DaemonSetStatus()


PROGRESSIVE = "daemonset.kruise.io/progressive-create-pod"
"""The annotation that is v1alpha1's form of scaleStrategy.partitionedScaling."""

STANDARD, IN_PLACE, SURGING = "Standard", "InPlaceIfPossible", "Surging"
"""Update types. The last one is an old name in v1alpha1 of Standard with maxSurge."""


def _to_beta(document: Json) -> None:
    rolling = member(document, "spec", "updateStrategy", "rollingUpdate")
    if rolling.get("rollingUpdateType") == SURGING:
        rolling["rollingUpdateType"] = STANDARD
    if strings(member(document, "metadata", "annotations")).get(PROGRESSIVE) == "true":
        ensured(document, "spec")["scaleStrategy"] = {"partitionedScaling": True}
    _rename(document, "daemonSetHash", "updateRevision")


def _to_alpha(document: Json) -> None:
    spec = member(document, "spec")
    annotations = strings(member(document, "metadata", "annotations"))
    partitioned = member(spec, "scaleStrategy").get("partitionedScaling")
    if partitioned is True:
        annotate(document, {PROGRESSIVE: "true"})
        del spec["scaleStrategy"]
    elif partitioned is False and annotations.get(PROGRESSIVE) == "true":
        annotate(document, {PROGRESSIVE: "false"})  # or a client of v1alpha1 would turn it on again
    _rename(document, "updateRevision", "daemonSetHash")


def _rename(document: Json, field: str, name: str) -> None:
    status = member(document, "status")
    if field in status:
        status[name] = status.pop(field)


_VERSIONS = Conversion("DaemonSet", _to_beta, _to_alpha, only_beta("spec.scaleStrategy"))
convert, to_hub = _VERSIONS.convert, _VERSIONS.to_hub
