"""CloneSet in its hub and storage version, apps.kruise.io/v1beta1 (cloneset.md §2).

Templates stay raw: they are hashed, diffed and copied as documents, never through a partial type.
"""

import msgspec

from flotilla_common.api.meta import Condition, IntOrString, LabelSelector, Model, ObjectMeta
from flotilla_common.api.resources import Resource
from flotilla_common.api.rollout import InPlaceUpdateStrategy, Lifecycle, PriorityStrategy, ScatterTerm

CLONE_SET = Resource("apps.kruise.io", "v1beta1", "clonesets", "CloneSet")


class ScaleStrategy(Model):
    pods_to_delete: list[str] = []
    max_unavailable: IntOrString | None = None
    enable_pvc_reuse: bool = msgspec.field(default=False, name="enablePVCReuse")
    exclude_preparing_delete: bool = False


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
    """The status of a CloneSet. All counts are pods; written whole, to include zero counts (cloneset.md §2.3)."""

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
