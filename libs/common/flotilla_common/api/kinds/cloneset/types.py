"""CloneSet in its hub and storage version, apps.kruise.io/v1beta1, and its conversion (cloneset.md §2).

Templates stay raw: they are hashed, diffed and copied as documents, never through a partial type.

The conversion works on raw documents: fields that it does not name are the same in both versions and are passed
through. v1alpha1's OnDelete loses all other strategy fields.
"""

import msgspec

from flotilla_common.api.documents import Json, mapping, member, strings
from flotilla_common.api.meta import Condition, IntOrString, LabelSelector, Model, ObjectMeta
from flotilla_common.api.numbers import integer
from flotilla_common.api.resources import Resource
from flotilla_common.api.versions import Conversion, annotate, only_beta
from flotilla_common.api.workload import POLICIES, InPlaceUpdateStrategy, Lifecycle, PriorityStrategy, ScatterTerm

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


EXCLUDE_PREPARING_DELETE = "apps.kruise.io/cloneset-scaling-exclude-preparing-delete"
PARALLELISM = "apps.kruise.io/image-predownload-parallelism"
TIMEOUT = "apps.kruise.io/image-predownload-timeout-seconds"
MIN_UPDATED_READY = "apps.kruise.io/image-predownload-min-updated-ready-pods"

_MOVED = (
    "partition",
    "maxUnavailable",
    "maxSurge",
    "paused",
    "priorityStrategy",
    "scatterStrategy",
    "inPlaceUpdateStrategy",
)
_PREDOWNLOAD = {
    "imagePreDownloadParallelism": PARALLELISM,
    "imagePreDownloadTimeoutSeconds": TIMEOUT,
    "imagePreDownloadMinUpdatedReadyPods": MIN_UPDATED_READY,
}
_INT32 = range(-(2**31), 2**31)


def _to_beta(document: Json) -> None:
    spec = mapping(document.get("spec"))
    if "spec" not in document:
        return
    scale = dict(mapping(spec.get("scaleStrategy")))
    scale["enablePVCReuse"] = scale.pop("disablePVCReuse", None) is not True
    if strings(member(document, "metadata", "labels")).get(EXCLUDE_PREPARING_DELETE) == "true":
        scale["excludePreparingDelete"] = True
    spec["scaleStrategy"] = scale
    strategy = dict(mapping(spec.get("updateStrategy")))
    policy = strategy.pop("type", None)  # v1alpha1's type is v1beta1's pod update policy
    moved = {key: strategy.pop(key) for key in _MOVED if key in strategy}
    if policy == "OnDelete":
        spec["updateStrategy"] = strategy | {"type": "OnDelete"}
        return
    moved["podUpdatePolicy"] = policy if policy in POLICIES else "ReCreate"
    in_place = _in_place_to_beta(moved.pop("inPlaceUpdateStrategy", None), document)
    if in_place is not None:
        moved["inPlaceUpdateStrategy"] = in_place
    spec["updateStrategy"] = strategy | {"type": "RollingUpdate", "rollingUpdate": moved}


def _in_place_to_beta(in_place: object, document: Json) -> Json | None:
    annotations = strings(member(document, "metadata", "annotations"))
    written = {field: annotations[key] for field, key in _PREDOWNLOAD.items() if annotations.get(key)}
    if in_place is None and not written:
        return None
    # v1alpha1's own pre-download fields are in its schema but were never read: only the annotations count.
    result = {key: value for key, value in mapping(in_place).items() if key not in _PREDOWNLOAD}
    for field, value in written.items():
        number = _int32(value)
        if number is not None:
            result[field] = number
        elif field == "imagePreDownloadParallelism":
            result[field] = value
    return result


def _to_alpha(document: Json) -> None:
    spec = mapping(document.get("spec"))
    if "spec" not in document:
        return
    scale = dict(mapping(spec.get("scaleStrategy")))
    labels = member(document, "metadata", "labels")  # v1alpha1 has a label for excludePreparingDelete
    if labels.get(EXCLUDE_PREPARING_DELETE) == "true":
        if scale.get("excludePreparingDelete") is False:
            labels[EXCLUDE_PREPARING_DELETE] = "false"  # or a client of v1alpha1 would turn it on again
        else:
            scale.pop("excludePreparingDelete", None)
    if scale.pop("enablePVCReuse", None) is not True:
        scale["disablePVCReuse"] = True
    if scale or "scaleStrategy" in spec:
        spec["scaleStrategy"] = scale
    strategy = dict(mapping(spec.get("updateStrategy")))
    beside = mapping(strategy.pop("rollingUpdate", None))
    rolling = dict(beside)
    policy = rolling.pop("podUpdatePolicy", None)
    on_delete = strategy.get("type") == "OnDelete"
    strategy["type"] = "OnDelete" if on_delete else policy if policy in POLICIES else "ReCreate"
    in_place = _in_place_to_alpha(mapping(rolling.pop("inPlaceUpdateStrategy", None)), document)
    if in_place is not None:
        strategy["inPlaceUpdateStrategy"] = in_place
    # v1beta1's OnDelete may have a rolling update beside it, which v1alpha1's cannot name.
    spec["updateStrategy"] = strategy | rolling | ({"rollingUpdate": beside} if on_delete and beside else {})


def _in_place_to_alpha(in_place: Json, document: Json) -> Json | None:
    if not any(in_place.values()) and not any(in_place.get(field) is not None for field in _PREDOWNLOAD):
        return None
    result = dict(in_place)
    written = {key: str(result.pop(field)) for field, key in _PREDOWNLOAD.items() if result.get(field) is not None}
    annotate(document, written)
    return {key: value for key, value in result.items() if key not in _PREDOWNLOAD}


def _int32(value: str) -> int | None:
    number = integer(value)
    return number if number is not None and number in _INT32 else None


_VERSIONS = Conversion(
    "CloneSet",
    _to_beta,
    _to_alpha,
    only_beta("spec.scaleStrategy.excludePreparingDelete", "spec.updateStrategy.rollingUpdate"),
)
convert, to_hub = _VERSIONS.convert, _VERSIONS.to_hub
