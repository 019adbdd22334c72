"""Advanced StatefulSet in its hub and storage version, v1beta1: types, ordinals, conversion (statefulset.md §2, §4.2).

Reserved ordinals are numbers, and ranges such as `3-7`. Templates stay raw: they are hashed, diffed and copied as
documents, never through a partial type.

Common fields are the same in both versions. Fields that only v1beta1 has survive when a client reads an object as
v1alpha1 and writes it back; the reference loses them.
"""

import re
from collections.abc import Iterable

import msgspec

from flotilla_common.api.meta import Condition, IntOrString, LabelSelector, Model, ObjectMeta
from flotilla_common.api.resources import Resource
from flotilla_common.api.versions import Conversion, only_beta
from flotilla_common.api.workload import InPlaceUpdateStrategy, Lifecycle, PriorityStrategy

_RANGE = re.compile(r"([0-9]{1,18})-([0-9]{1,18})")

STATEFUL_SET = Resource("apps.kruise.io", "v1beta1", "statefulsets", "StatefulSet")


class UnorderedUpdate(Model):
    """Settings of an update in another order than by ordinals; their presence alone allows it."""

    priority_strategy: PriorityStrategy | None = None


class RollingUpdate(Model):
    pod_update_policy: str = "ReCreate"  # ReCreate, InPlaceIfPossible, InPlaceOnly
    partition: int = 0  # pods that stay on old revisions
    max_unavailable: IntOrString = 1
    paused: bool = False
    unordered_update: UnorderedUpdate | None = None
    in_place_update_strategy: InPlaceUpdateStrategy | None = None
    min_ready_seconds: int = 0


class UpdateStrategy(Model):
    type: str = "RollingUpdate"  # RollingUpdate, OnDelete
    rolling_update: RollingUpdate | None = None


class ScaleStrategy(Model):
    max_unavailable: IntOrString | None = None


class Ordinals(Model):
    start: int = 0


class ClaimRetentionPolicy(Model):
    """The fate of claims: Retain or Delete."""

    when_deleted: str = "Retain"
    when_scaled: str = "Retain"


class ClaimUpdateStrategy(Model):
    type: str = "OnDelete"  # OnDelete, OnPodRollingUpdate


class StatefulSetSpec(Model):
    replicas: int = 1
    selector: LabelSelector = LabelSelector()
    template: msgspec.Raw = msgspec.Raw(b"{}")
    volume_claim_templates: list[msgspec.Raw] = []
    service_name: str = ""
    pod_management_policy: str = "OrderedReady"  # OrderedReady, Parallel
    revision_history_limit: int = 10
    update_strategy: UpdateStrategy = UpdateStrategy()
    reserve_ordinals: list[IntOrString] = []
    ordinals: Ordinals | None = None
    scale_strategy: ScaleStrategy | None = None
    lifecycle: Lifecycle | None = None
    persistent_volume_claim_retention_policy: ClaimRetentionPolicy | None = None
    volume_claim_update_strategy: ClaimUpdateStrategy = ClaimUpdateStrategy()


class VolumeClaimStatus(Model, omit_defaults=False):
    """Claims of one template that match the template, and those of them that have its capacity."""

    volume_claim_name: str = ""
    compatible_replicas: int = 0
    compatible_ready_replicas: int = 0


class StatefulSetStatus(Model, omit_defaults=False):
    """The status of a StatefulSet. All counts are pods; written whole, to include zero counts (statefulset.md §2.2)."""

    observed_generation: int = 0
    replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0
    current_replicas: int = 0
    updated_replicas: int = 0
    updated_ready_replicas: int = 0
    updated_available_replicas: int = 0
    current_revision: str = ""
    update_revision: str = ""
    collision_count: int | None = None
    conditions: list[Condition] = []
    label_selector: str = ""
    volume_claims: list[VolumeClaimStatus] = []


class StatefulSet(Model):
    metadata: ObjectMeta = ObjectMeta()
    spec: StatefulSetSpec = StatefulSetSpec()
    status: StatefulSetStatus = StatefulSetStatus()


def interval(item: IntOrString) -> tuple[int, int]:
    """Return the first and the last ordinal that the item reserves. Raises ValueError."""
    if isinstance(item, int):
        return item, item
    match = _RANGE.fullmatch(item)
    if match is None:
        raise ValueError(f"{item!r} is not a range of ordinals")
    first, last = int(match[1]), int(match[2])
    if first > last:
        raise ValueError(f"{item!r} ends before it starts")
    return first, last


def is_range(item: str) -> bool:
    """Report whether the text looks like a range."""
    return _RANGE.fullmatch(item) is not None


def reserved(items: Iterable[IntOrString]) -> list[tuple[int, int]]:
    """Return the reserved intervals, never expanded, in the order given. Raises ValueError if one is invalid."""
    return [interval(item) for item in items]


_VERSIONS = Conversion(
    "StatefulSet",
    to_beta=lambda _: None,
    to_alpha=lambda _: None,
    only_beta=only_beta(
        "spec.reserveOrdinals",
        "spec.ordinals",
        "spec.scaleStrategy",
        "spec.lifecycle",
        "spec.persistentVolumeClaimRetentionPolicy",
        "spec.volumeClaimUpdateStrategy",
        "status.updatedReadyReplicas",
        "status.updatedAvailableReplicas",
        "status.volumeClaims",
    ),
)
convert, to_hub = _VERSIONS.convert, _VERSIONS.to_hub
