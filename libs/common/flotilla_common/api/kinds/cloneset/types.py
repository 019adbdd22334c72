"""CloneSet in its hub and storage version, apps.kruise.io/v1beta1 (cloneset.md §2).

Templates stay raw: they are hashed, diffed and copied as documents, never through a partial type.
"""

import msgspec

from flotilla_common.api.meta import Condition, IntOrString, LabelSelector, Model, ObjectMeta
from flotilla_common.api.resources import Resource

CLONE_SET = Resource("apps.kruise.io", "v1beta1", "clonesets", "CloneSet")


class LifecycleHook(Model):
    """What holds a pod in a state until the user lets go (common.md §8.1)."""

    labels_handler: dict[str, str] = {}
    finalizers_handler: list[str] = []
    mark_pod_not_ready: bool = False


class Lifecycle(Model):
    pre_delete: LifecycleHook | None = None
    in_place_update: LifecycleHook | None = None
    pre_normal: LifecycleHook | None = None


class ScaleStrategy(Model):
    pods_to_delete: list[str] = []
    max_unavailable: IntOrString | None = None
    enable_pvc_reuse: bool = msgspec.field(default=False, name="enablePVCReuse")
    exclude_preparing_delete: bool = False


class WeightTerm(Model):
    weight: int = 0
    match_selector: LabelSelector = LabelSelector()


class OrderTerm(Model):
    ordered_key: str = ""


class PriorityStrategy(Model):
    weight_priority: list[WeightTerm] = []
    order_priority: list[OrderTerm] = []


class ScatterTerm(Model):
    key: str = ""
    value: str = ""


class InPlaceUpdateStrategy(Model):
    grace_period_seconds: int = 0
    image_pre_download_parallelism: IntOrString | None = None
    image_pre_download_timeout_seconds: int | None = None
    image_pre_download_min_updated_ready_pods: int | None = None


class RollingUpdate(Model):
    pod_update_policy: str = "ReCreate"  # ReCreate, InPlaceIfPossible, InPlaceOnly
    partition: IntOrString | None = None
    max_unavailable: IntOrString | None = None
    max_surge: IntOrString | None = None
    paused: bool = False
    priority_strategy: PriorityStrategy | None = None
    scatter_strategy: list[ScatterTerm] = []
    in_place_update_strategy: InPlaceUpdateStrategy | None = None


class UpdateStrategy(Model):
    type: str = "RollingUpdate"  # RollingUpdate, OnDelete
    rolling_update: RollingUpdate | None = None


class CloneSetSpec(Model):
    replicas: int = 1
    selector: LabelSelector = LabelSelector()
    template: msgspec.Raw = msgspec.Raw(b"{}")
    volume_claim_templates: list[msgspec.Raw] = []
    scale_strategy: ScaleStrategy = ScaleStrategy()
    update_strategy: UpdateStrategy = UpdateStrategy()
    revision_history_limit: int = 10
    min_ready_seconds: int = 0
    lifecycle: Lifecycle | None = None
    progress_deadline_seconds: int | None = None


class CloneSetStatus(Model, omit_defaults=False):
    """All counts are pods; written whole, so that zero counts are there (cloneset.md §2.3)."""

    observed_generation: int = 0
    replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0
    updated_replicas: int = 0
    updated_ready_replicas: int = 0
    updated_available_replicas: int = 0
    expected_updated_replicas: int = 0
    update_revision: str = ""
    current_revision: str = ""
    collision_count: int | None = None
    label_selector: str = ""
    conditions: list[Condition] = []


class CloneSet(Model):
    metadata: ObjectMeta = ObjectMeta()
    spec: CloneSetSpec = CloneSetSpec()
    status: CloneSetStatus = CloneSetStatus()
