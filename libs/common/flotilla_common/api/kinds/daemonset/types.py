"""Advanced DaemonSet in its hub and storage version, apps.kruise.io/v1beta1 (daemonset.md §2).

Templates stay raw: they are hashed, diffed and copied as documents, never through a partial type.
"""

import msgspec

from flotilla_common.api.meta import Condition, IntOrString, LabelSelector, Model, ObjectMeta
from flotilla_common.api.resources import Resource
from flotilla_common.api.rollout import Lifecycle

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
