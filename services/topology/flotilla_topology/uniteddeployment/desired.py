"""Builds the desired children: their metadata, and their whole spec (uniteddeployment.md §9.5)."""

from collections.abc import Mapping

import msgspec

from flotilla_common.api.documents import (
    Json,
    JsonValue,
    ensured,
    is_object,
    mappings,
    member,
    merge_patch,
    sequence,
    strings,
    without_nulls,
)
from flotilla_common.api.jsontext import Reader
from flotilla_common.api.kinds.uniteddeployment.types import (
    ABSENT,
    PATCH_ANNOTATION,
    REVISION_LABEL,
    SUBSET_LABEL,
    UNITED_DEPLOYMENT,
    Subset,
    UnitedDeployment,
)
from flotilla_common.api.podtemplate import canonical_template
from flotilla_common.api.strategic import merge
from flotilla_common.api.workload import Workload
from flotilla_common.workload.ownership import owner_reference
from flotilla_topology.uniteddeployment.children import CLONE_SETS, DEPLOYMENTS, STATEFUL_SETS, ChildKind

_DOCUMENTS: Reader[Json] = Reader(Json)


class ChildSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of one subset's child."""

    kind: ChildKind
    subset: Subset
    revision: str  # name of the UnitedDeployment's newest revision
    replicas: int
    partition: int
    max_unavailable: int | None = None  # of an unschedulable subset in reservation mode

    @property
    def patch_text(self) -> str:
        """The patch as stored in the annotation."""
        return bytes(self.subset.patch).decode()


class DesiredChild(msgspec.Struct, frozen=True, kw_only=True):
    """A desired child: the labels and annotations that it must have, and its whole spec."""

    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    spec: Json


def desired(owner: UnitedDeployment, wanted: ChildSettings) -> DesiredChild:
    """Build the child of a subset.

    Raises ValueError if the template, the term, a toleration or the patch cannot be read or applied.
    """
    template = _read(owner.spec.template.get(wanted.kind.template, ABSENT), wanted.kind.template)
    marks = {REVISION_LABEL: wanted.revision, SUBSET_LABEL: wanted.subset.name}
    return DesiredChild(
        labels={
            **strings(member(template, "metadata").get("labels")),
            **owner.spec.selector.match_labels,
            **marks,
        },
        annotations={
            **strings(member(template, "metadata").get("annotations")),
            PATCH_ANNOTATION: wanted.patch_text,
        },
        spec=_spec(owner, wanted, member(template, "spec"), marks),
    )


def _spec(owner: UnitedDeployment, wanted: ChildSettings, template: Json, marks: Mapping[str, str]) -> Json:
    spec = dict(template)
    selector: Json = msgspec.to_builtins(owner.spec.selector)
    selector["matchLabels"] = {**selector.get("matchLabels", {}), SUBSET_LABEL: wanted.subset.name}
    spec["selector"], spec["replicas"] = selector, wanted.replicas
    spec["template"] = _pod_template(wanted.subset, member(spec, "template"), marks)
    _set_partition(spec, wanted)
    if wanted.max_unavailable is not None:
        strategy = ensured(spec, "strategy" if wanted.kind is DEPLOYMENTS else "updateStrategy")
        ensured(strategy, "rollingUpdate")["maxUnavailable"] = wanted.max_unavailable
    return spec


def _set_partition(spec: Json, wanted: ChildSettings) -> None:
    """Set the partition, except for Deployments, which have none, and OnDelete, which needs none."""
    if not wanted.kind.partitioned:
        return
    strategy = ensured(spec, "updateStrategy")
    if wanted.kind is not CLONE_SETS and strategy.get("type") == "OnDelete":
        return
    if wanted.kind is STATEFUL_SETS:
        strategy["type"] = "RollingUpdate"
    ensured(strategy, "rollingUpdate")["partition"] = wanted.partition


def _pod_template(subset: Subset, template: Json, marks: Mapping[str, str]) -> Json:
    """Return the pod template with the additions of the subset. The patch comes last, so it wins."""
    pod = dict(template)
    ensured(ensured(pod, "metadata"), "labels").update(marks)
    _require(pod, mappings(_read(subset.node_selector_term, "nodeSelectorTerm").get("matchExpressions")))
    if subset.tolerations:
        added = [_read(toleration, "tolerations") for toleration in subset.tolerations]
        spec = ensured(pod, "spec")
        spec["tolerations"] = [*sequence(spec.get("tolerations")), *added]
    if subset.patch == ABSENT:
        return pod
    try:
        patched = without_nulls(merge(pod, _DOCUMENTS.read(subset.patch)))  # a null in the patch removes a member
        canonical_template(msgspec.json.encode(patched))
    except ValueError as error:
        raise ValueError(f"patch: {error}") from error
    return patched


def _require(pod: Json, expressions: list[Json]) -> None:
    """Add the expressions to each required term of node affinity, or as the only term."""
    if not expressions:
        return
    affinity = ensured(ensured(ensured(pod, "spec"), "affinity"), "nodeAffinity")
    required = ensured(affinity, "requiredDuringSchedulingIgnoredDuringExecution")
    terms = mappings(required.get("nodeSelectorTerms")) or [{}]
    required["nodeSelectorTerms"] = [
        term | {"matchExpressions": [*sequence(term.get("matchExpressions")), *expressions]} for term in terms
    ]


def _read(raw: msgspec.Raw, name: str) -> Json:
    if raw == ABSENT:
        return {}
    try:
        return without_nulls(_DOCUMENTS.read(raw))
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error


def new_child(owner: UnitedDeployment, wanted: ChildSettings, child: DesiredChild, name: str) -> Json:
    """Build the object to create."""
    return {
        "apiVersion": wanted.kind.resource.api_version,
        "kind": wanted.kind.resource.kind,
        "metadata": {
            "name": name,
            "namespace": owner.metadata.namespace,
            "labels": dict(child.labels),
            "annotations": dict(child.annotations),
            "ownerReferences": [owner_reference(UNITED_DEPLOYMENT, owner.metadata)],
        },
        "spec": child.spec,
    }


def changes(owner: UnitedDeployment, workload: Workload, child: DesiredChild) -> Json:
    """Build the merge patch that changes the workload into the desired one.

    The spec is replaced as a whole: members that the template lacks are removed, and the apiserver fills in its
    defaults again.
    """
    meta = workload.metadata
    metadata: Json = {}
    for key, stored, wanted in (
        ("labels", meta.labels, child.labels),
        ("annotations", meta.annotations, child.annotations),
    ):
        differing = {name: value for name, value in wanted.items() if stored.get(name) != value}
        if differing:
            metadata[key] = differing
    references = _references(owner, workload)
    if references is not None:
        metadata["ownerReferences"] = references
    spec = merge_patch(workload.document, child.spec)
    return {key: value for key, value in (("metadata", metadata), ("spec", spec)) if value}


def _references(owner: UnitedDeployment, workload: Workload) -> list[Json] | None:
    """Return the owner references to write; None unless the owner's names another version of its kind."""
    own = owner_reference(UNITED_DEPLOYMENT, owner.metadata)
    stored: list[Json] = msgspec.to_builtins(workload.metadata.owner_references)
    if own in stored:
        return None
    return [*(reference for reference in stored if reference.get("uid") != owner.metadata.uid), own]


def lacks(workload: Workload, child: DesiredChild) -> bool:
    """Report whether the workload differs in anything that the template sets.

    Other members were filled in by the apiserver, or were removed from the template: then the revision differs, too.
    """
    meta = workload.metadata
    return (
        not child.labels.items() <= meta.labels.items()
        or not child.annotations.items() <= meta.annotations.items()
        or not _contains(_comparable(workload.document), _comparable(child.spec))
    )


def _comparable(spec: Json) -> Json:
    """Return the spec with its pod template as the apiserver writes it: quantities in canonical form."""
    try:
        return spec | {"template": canonical_template(msgspec.json.encode(spec.get("template")))}
    except ValueError:
        return spec


def same_patch(stored: str, wanted: str) -> bool:
    """Report whether two texts are the same patch, regardless of formatting."""
    if stored == wanted:
        return True
    try:
        return bool(stored and wanted) and _DOCUMENTS.read(stored) == _DOCUMENTS.read(wanted)
    except ValueError:
        return False


def _contains(stored: JsonValue, wanted: JsonValue) -> bool:
    if is_object(wanted):
        return is_object(stored) and all(_contains(stored.get(key), value) for key, value in wanted.items())
    if isinstance(wanted, list):
        return (
            isinstance(stored, list)
            and len(stored) == len(wanted)
            and all(_contains(one, other) for one, other in zip(stored, wanted, strict=True))
        )
    return stored == wanted
