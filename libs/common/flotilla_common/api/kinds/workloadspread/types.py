"""WorkloadSpread in its hub and storage version, apps.kruise.io/v1beta1, and its conversion (workloadspread.md §2).

Terms, tolerations and patches stay raw: they are copied into pods as documents. In v1alpha1 two fields have other
names, and conditions need no reason and message.
"""

from collections.abc import Iterator

import msgspec

from flotilla_common.api.documents import Json, mapping, mappings, member
from flotilla_common.api.meta import Condition, IntOrString, LabelSelector, Model, Moment, ObjectMeta, TargetRef
from flotilla_common.api.resources import Resource
from flotilla_common.api.versions import Conversion, only_beta

WORKLOAD_SPREAD = Resource("apps.kruise.io", "v1beta1", "workloadspreads", "WorkloadSpread")

MATCHED = "apps.kruise.io/matched-workloadspread"
"""The annotation of pods with their WorkloadSpread and subset, as JSON."""
PLACE = "flotilla.kruise.io/workloadspread-place"
"""The annotation of named pods whose entry in the book has a token as its key.

Pods without a name have the token as `uid` in `MATCHED`.
"""

IGNORE_EXISTING = "workloadspread.kruise.io/ignore-patch-existing-pods-metadata"
"""The annotation of a WorkloadSpread that, if "true", exempts older pods from the metadata of patches."""

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"

ADAPTIVE = "Adaptive"

VERSION_IGNORED = "versionIgnored"
"""The single version of pods if versions are not distinguished."""

FAKE_SUBSET = "kruise.io/workloadspread-fake-subset-name"
"""The subset of pods that belong to no subset."""

UNLIMITED = -1
"""The `missingReplicas` of a subset that takes any number of pods."""

SCHEDULABLE = "Schedulable"
"""The condition of a subset."""

ABSENT = msgspec.Raw(b"")
"""The value of a raw member that is absent."""


class TargetFilter(Model):
    selector: LabelSelector | None = None
    replicas_path_list: list[str] = []


class Subset(Model):
    name: str = ""
    required_node_selector: msgspec.Raw = ABSENT
    preferred_node_selector: list[msgspec.Raw] = []
    tolerations: list[msgspec.Raw] = []
    max_replicas: IntOrString | None = None
    patch: msgspec.Raw = ABSENT  # strategic merge patch of pods


class Adaptive(Model):
    reschedule_critical_seconds: int = 0  # 0: no pod is ever rescheduled


class ScheduleStrategy(Model):
    type: str = ""  # Adaptive, Fixed or empty: Fixed
    adaptive: Adaptive | None = None


class WorkloadSpreadSpec(Model):
    target_ref: TargetRef = TargetRef()
    target_filter: TargetFilter | None = None
    subsets: list[Subset] = []
    schedule_strategy: ScheduleStrategy = ScheduleStrategy()

    @property
    def leaves_pods_out(self) -> bool:
        """Report whether all subsets can be full at once, which takes numbers: percentages add up to all pods."""
        return all(isinstance(subset.max_replicas, int) for subset in self.subsets)

    @property
    def patience(self) -> int:
        """Return the seconds that a pod may be unschedulable before it is moved; 0: no limit."""
        strategy = self.schedule_strategy
        adaptive = strategy.adaptive if strategy.type == ADAPTIVE else None
        return max(adaptive.reschedule_critical_seconds, 0) if adaptive is not None else 0


class SubsetStatus(Model, omit_defaults=False):
    """The book of one subset: free places, and admitted pods that are not visible yet."""

    name: str = ""
    replicas: int = 0
    missing_replicas: int = 0
    creating_pods: dict[str, Moment] = {}  # by the pod's name, or the uid in its annotation
    deleting_pods: dict[str, Moment] = {}
    conditions: list[Condition] = []

    @property
    def schedulable(self) -> bool:
        """Report whether new pods may go there."""
        return not any((one.type, one.status) == (SCHEDULABLE, "False") for one in self.conditions)


class WorkloadSpreadStatus(Model):
    observed_generation: int = 0
    subset_statuses: list[SubsetStatus] = []
    versioned_subset_statuses: dict[str, list[SubsetStatus]] = {}


class WorkloadSpread(Model):
    metadata: ObjectMeta = ObjectMeta()
    spec: WorkloadSpreadSpec = WorkloadSpreadSpec()
    status: WorkloadSpreadStatus = WorkloadSpreadStatus()


class Matched(Model):
    """The value of the annotation `MATCHED`."""

    name: str = ""
    subset: str = ""
    uid: str = ""


_NAMES = {
    "requiredNodeSelectorTerm": "requiredNodeSelector",
    "preferredNodeSelectorTerms": "preferredNodeSelector",
}


def _to_beta(document: Json) -> None:
    _rename(document, _NAMES)
    for condition in _conditions(document):
        condition["reason"] = condition.get("reason") or "Unknown"
        condition.setdefault("message", "")


def _to_alpha(document: Json) -> None:
    _rename(document, {new: old for old, new in _NAMES.items()})


def _rename(document: Json, names: dict[str, str]) -> None:
    for subset in mappings(member(document, "spec").get("subsets")):
        for before, after in names.items():
            if before in subset:
                subset[after] = subset.pop(before)


def _conditions(document: Json) -> Iterator[Json]:
    status = member(document, "status")
    lists = [status.get("subsetStatuses"), *mapping(status.get("versionedSubsetStatuses")).values()]
    for one in lists:
        for subset in mappings(one):
            yield from mappings(subset.get("conditions"))


_VERSIONS = Conversion(
    "WorkloadSpread",
    _to_beta,
    _to_alpha,
    only_beta(
        "status.subsetStatuses[name].conditions[type].observedGeneration",
        "status.versionedSubsetStatuses.*[name].conditions[type].observedGeneration",
    ),
)
convert, to_hub = _VERSIONS.convert, _VERSIONS.to_hub
