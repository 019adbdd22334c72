"""UnitedDeployment in its storage version, apps.kruise.io/v1beta1, and its conversion (uniteddeployment.md §2).

Templates of children, terms, tolerations and patches stay raw: they are copied into children as documents.

The specs are the same in both versions, except that v1alpha1 also accepts CloneSet templates in v1alpha1's form; maps
in v1alpha1's status are members of the subsets' statuses in v1beta1.
"""

import copy

import msgspec

from flotilla_common.api.documents import Json, is_object, mapping, mappings, member, text
from flotilla_common.api.kinds.cloneset import types as cloneset
from flotilla_common.api.meta import Condition, IntOrString, LabelSelector, Model, ObjectMeta
from flotilla_common.api.resources import Resource
from flotilla_common.api.versions import V1ALPHA1, V1BETA1, Conversion

UNITED_DEPLOYMENT = Resource("apps.kruise.io", "v1beta1", "uniteddeployments", "UnitedDeployment")

SUBSET_LABEL = "apps.kruise.io/subset-name"
"""The label of children, their pod templates and pods with the name of the subset."""

REVISION_LABEL = "apps.kruise.io/controller-revision-hash"
"""The label of the same objects with the full name of the UnitedDeployment's ControllerRevision."""

PATCH_ANNOTATION = "apps.kruise.io/subset-patch"
"""The annotation of children with the subset's patch as JSON; empty without a patch."""

RESERVED_LABEL = "apps.kruise.io/united-deployment-reserved-pod"
"""The label of pods in reservation mode: "true" for one that others replace, "false" for any other."""

ADAPTIVE = "Adaptive"

SCHEDULABLE = "Schedulable"
"""The condition of a subset."""

UPDATED, PROVISIONED, SUBSET_UPDATED, FAILURE = (
    "UnitedDeploymentUpdated",
    "SubsetProvisioned",
    "SubsetUpdated",
    "SubsetFailure",
)
"""Conditions of a UnitedDeployment."""


Template = dict[str, msgspec.Raw]
"""The template of the children, by the name of the one member that is set."""

ABSENT = msgspec.Raw(b"")
"""The value of a raw member that is absent."""


class Subset(Model):
    name: str = ""
    node_selector_term: msgspec.Raw = ABSENT
    tolerations: list[msgspec.Raw] = []
    replicas: IntOrString | None = None
    min_replicas: IntOrString | None = None
    max_replicas: IntOrString | None = None
    patch: msgspec.Raw = ABSENT  # strategic merge patch of the child's pod template


class AdaptiveStrategy(Model):
    reschedule_critical_seconds: int | None = None  # how long a pod may find no node; None: 30
    unschedulable_duration: int | None = None  # how long a subset stays marked, or its pods are tried; None: 300
    reserve_unschedulable_pods: bool = False


class ScheduleStrategy(Model):
    type: str = ""  # Adaptive, Fixed or empty: Fixed
    adaptive: AdaptiveStrategy | None = None


class Topology(Model):
    subsets: list[Subset] = []
    schedule_strategy: ScheduleStrategy = ScheduleStrategy()


class ManualUpdate(Model):
    partitions: dict[str, int] = {}  # pods that stay on old revisions, by subset


class UpdateStrategy(Model):
    type: str = "Manual"
    manual_update: ManualUpdate = ManualUpdate()


class UnitedDeploymentSpec(Model):
    replicas: int = 1
    selector: LabelSelector = LabelSelector()
    template: Template = {}
    topology: Topology = Topology()
    update_strategy: UpdateStrategy = UpdateStrategy()
    revision_history_limit: int = 10

    @property
    def adaptive(self) -> AdaptiveStrategy | None:
        """Return the adaptive settings; None under the Fixed strategy."""
        strategy = self.topology.schedule_strategy
        return (strategy.adaptive or AdaptiveStrategy()) if strategy.type == ADAPTIVE else None

    @property
    def reserves(self) -> bool:
        """Report whether unschedulable pods are kept while others replace them."""
        return self.adaptive is not None and self.adaptive.reserve_unschedulable_pods


class SubsetStatus(Model):
    name: str = ""
    replicas: int = 0  # allocated, not observed
    ready_replicas: int = 0
    partition: int = 0
    reserved_pods: int = 0
    conditions: list[Condition] = []


class UnitedDeploymentStatus(Model):
    """The status of a UnitedDeployment; zero counts are left out, except the two that the schema requires."""

    observed_generation: int = 0
    replicas: int = 0
    ready_replicas: int = 0
    updated_replicas: int = 0
    updated_ready_replicas: int = 0
    reserved_pods: int = 0
    collision_count: int | None = None
    current_revision: str = ""
    updated_revision: str = ""
    subset_statuses: list[SubsetStatus] = []
    conditions: list[Condition] = []
    label_selector: str = ""


class UnitedDeployment(Model):
    metadata: ObjectMeta = ObjectMeta()
    spec: UnitedDeploymentSpec = UnitedDeploymentSpec()
    status: UnitedDeploymentStatus = UnitedDeploymentStatus()


_FLAT = (
    "partition",
    "maxUnavailable",
    "maxSurge",
    "paused",
    "priorityStrategy",
    "scatterStrategy",
    "inPlaceUpdateStrategy",
)
_FLAT_TYPES = ("ReCreate", "InPlaceIfPossible", "InPlaceOnly")


def without_flat_fields(document: Json) -> Json:
    """Return the document with its CloneSet template in v1beta1's form; the same document if it already is."""
    template = member(document, "spec", "template", "cloneSetTemplate")
    if not is_flat(mapping(template.get("spec"))):
        return document
    result = copy.deepcopy(document)
    written = member(result, "spec", "template", "cloneSetTemplate")
    written["spec"] = _nested(written)
    return result


def is_flat(spec: Json) -> bool:
    """Report whether the spec of a CloneSet is in v1alpha1's form."""
    strategy = mapping(spec.get("updateStrategy"))
    return (
        strategy.get("type") in _FLAT_TYPES
        or any(field in strategy for field in _FLAT)
        or "disablePVCReuse" in mapping(spec.get("scaleStrategy"))
    )


def _nested(template: Json) -> Json:
    document = {"apiVersion": V1ALPHA1, "metadata": member(template, "metadata"), "spec": mapping(template.get("spec"))}
    return mapping(cloneset.convert(document, V1BETA1).get("spec"))


def _to_beta(document: Json) -> None:
    template = member(document, "spec", "template", "cloneSetTemplate")
    if is_flat(mapping(template.get("spec"))):
        template["spec"] = _nested(template)
    status = document.get("status")
    if not is_object(status):
        return
    update = mapping(status.pop("updateStatus", None))
    if update.get("updatedRevision"):
        status["updatedRevision"] = update["updatedRevision"]
    subsets = mappings(status.get("subsetStatuses"))
    for values, field in (
        (status.pop("subsetReplicas", None), "replicas"),
        (update.get("currentPartitions"), "partition"),
    ):
        for name, number in mapping(values).items():
            _subset(subsets, name)[field] = number
    if subsets:
        status["subsetStatuses"] = subsets


def _subset(subsets: list[Json], name: str) -> Json:
    for subset in subsets:
        if subset.get("name") == name:
            return subset
    subsets.append({"name": name})
    return subsets[-1]


def _to_alpha(document: Json) -> None:
    status = document.get("status")
    if not is_object(status):
        return
    revision = text(status.pop("updatedRevision", None))
    named = {text(one.get("name")): one for one in mappings(status.get("subsetStatuses")) if one.get("name")}
    if named:
        status["subsetReplicas"] = {name: one.get("replicas", 0) for name, one in named.items()}
    if revision or mappings(status.get("subsetStatuses")):
        update: Json = {"updatedRevision": revision} if revision else {}
        if named:
            update["currentPartitions"] = {name: one.get("partition", 0) for name, one in named.items()}
        status["updateStatus"] = update


_VERSIONS = Conversion("UnitedDeployment", _to_beta, _to_alpha)
convert, to_hub = _VERSIONS.convert, _VERSIONS.to_hub
