"""Defines the workloads that a UnitedDeployment creates: four kinds, and a child with its pods.

See uniteddeployment.md §9.1.
"""

from collections.abc import Sequence

import msgspec

from flotilla_common.api.cached import struct_cached_property
from flotilla_common.api.core import Pod
from flotilla_common.api.documents import member
from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.kinds.statefulset.types import STATEFUL_SET
from flotilla_common.api.kinds.uniteddeployment.types import PATCH_ANNOTATION, REVISION_LABEL, SUBSET_LABEL, Template
from flotilla_common.api.meta import ObjectMeta
from flotilla_common.api.numbers import lenient_value
from flotilla_common.api.resources import BUILT_IN_STATEFUL_SET, DEPLOYMENT, Resource
from flotilla_common.api.workload import Workload


class ChildKind(msgspec.Struct, frozen=True):
    """A kind of workload that a subset can have."""

    resource: Resource
    name: str  # in events
    template: str  # the member of `spec.template`
    partitioned: bool = True  # a partition can hold its update


STATEFUL_SETS = ChildKind(BUILT_IN_STATEFUL_SET, "StatefulSet", "statefulSetTemplate")
ADVANCED_STATEFUL_SETS = ChildKind(STATEFUL_SET, "AdvancedStatefulSet", "advancedStatefulSetTemplate")
CLONE_SETS = ChildKind(CLONE_SET, "CloneSet", "cloneSetTemplate")
DEPLOYMENTS = ChildKind(DEPLOYMENT, "Deployment", "deploymentTemplate", partitioned=False)
KINDS = (STATEFUL_SETS, ADVANCED_STATEFUL_SETS, CLONE_SETS, DEPLOYMENTS)


def kind_of(template: Template) -> ChildKind | None:
    """Return the kind whose template is set; None unless there is exactly one."""
    found = [kind for kind in KINDS if kind.template in template]
    return found[0] if len(found) == 1 else None


class Child(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """A child of the template's kind, with its pods, as seen from one revision."""

    kind: ChildKind
    workload: Workload
    pods: Sequence[Pod] = ()
    revision: str  # name of the UnitedDeployment's newest revision

    @property
    def metadata(self) -> ObjectMeta:
        """The metadata of the workload."""
        return self.workload.metadata

    @property
    def name(self) -> str:
        """The name of the subset."""
        return subset_of(self.workload)

    @property
    def patch(self) -> str:
        """The text of the patch with which it was created."""
        return self.metadata.annotations.get(PATCH_ANNOTATION, "")

    @struct_cached_property
    def partition(self) -> int:
        """Return how many pods stay on old revisions; under OnDelete, how many are on one."""
        if not self.kind.partitioned:
            return 0
        if self.on_delete:
            own = self.metadata.labels.get(REVISION_LABEL)
            return sum(pod.metadata.labels.get(REVISION_LABEL) != own for pod in self.pods)
        partition = member(self.workload.document, "updateStrategy", "rollingUpdate").get("partition")
        try:
            return lenient_value(partition, self.workload.replicas, round_up=True) if partition is not None else 0
        except (ValueError, TypeError, AttributeError):
            return -1  # equal to no partition, so it is replaced

    @struct_cached_property
    def updated(self) -> Sequence[Pod]:
        """Return the active pods on the newest revision."""
        return [pod for pod in self.pods if pod.active and is_on(pod, self.revision)]

    @property
    def on_delete(self) -> bool:
        """Report whether pods are updated only when they are deleted from outside."""
        strategy = member(self.workload.document, "updateStrategy")
        return self.kind in (STATEFUL_SETS, ADVANCED_STATEFUL_SETS) and strategy.get("type") == "OnDelete"

    @property
    def updated_ready(self) -> int:
        """The number of ready pods on the newest revision."""
        return sum(pod.ready for pod in self.updated)

    @property
    def rolling(self) -> bool:
        """Report whether pods remain that are not on the newest revision."""
        return len(self.updated) < self.workload.status.replicas


def is_on(pod: Pod, revision: str) -> bool:
    """Report whether the pod was made from the revision of the UnitedDeployment."""
    return pod.metadata.labels.get(REVISION_LABEL) == revision


def subset_of(workload: Workload) -> str:
    """Return the subset that the workload's label names; empty for none."""
    return workload.metadata.labels.get(SUBSET_LABEL, "")


def ordinal(pod: Pod) -> int:
    """Return the number at the end of the pod's name, for stateful kinds."""
    digits = pod.metadata.name.rpartition("-")[2]
    return int(digits) if digits.isdecimal() else 0
