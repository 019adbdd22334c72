"""Manages a UnitedDeployment's ControllerRevisions: `spec.template` as a whole, in its typed form.

See uniteddeployment.md §8.
"""

from collections.abc import Collection, Mapping
from functools import cache

import msgspec

from flotilla_common.api.core import ControllerRevision
from flotilla_common.api.documents import Json, mapping, mappings, member, strings
from flotilla_common.api.jsontext import go_json, read_json
from flotilla_common.api.kinds.uniteddeployment.types import UNITED_DEPLOYMENT, Template
from flotilla_common.api.meta import controller_of
from flotilla_common.api.podtemplate import Canonical, Members, core_types
from flotilla_common.api.selectors import Selector
from flotilla_common.control.plan import Delete
from flotilla_common.workload.revision_codec import RevisionCodec, RevisionOwner
from flotilla_common.workload.revisions import RevisionChoice, choose_revisions, own_revisions, surplus_revisions
from flotilla_topology.uniteddeployment.snapshot import UnitedDeploymentSnapshot

_WORKLOADS: Mapping[str, Members] = {
    "statefulSetTemplate": [("metadata", "o", "ObjectMeta"), ("spec", "", "StatefulSetSpec")],
    "advancedStatefulSetTemplate": [("metadata", "o", "ObjectMeta"), ("spec", "", "AdvancedStatefulSetSpec")],
    "cloneSetTemplate": [("metadata", "o", "ObjectMeta"), ("spec", "", "CloneSetSpec")],
    "deploymentTemplate": [("metadata", "o", "ObjectMeta"), ("spec", "", "DeploymentSpec")],
}

_OURS: Mapping[str, Members] = {
    "CloneSetSpec": [
        ("replicas", "op", "int"),
        ("selector", "p", "LabelSelector"),
        ("template", "", "PodTemplateSpec"),
        ("volumeClaimTemplates", "o", "[]PersistentVolumeClaim"),
        ("scaleStrategy", "o", "CloneSetScaleStrategy"),
        ("updateStrategy", "o", "CloneSetUpdateStrategy"),
        ("revisionHistoryLimit", "op", "int"),
        ("minReadySeconds", "o", "int"),
        ("lifecycle", "op", "WorkloadLifecycle"),
        ("progressDeadlineSeconds", "op", "int"),
    ],
    "CloneSetScaleStrategy": [
        ("podsToDelete", "o", "[]string"),
        ("maxUnavailable", "op", "intorstring"),
        ("enablePVCReuse", "o", "bool"),
        ("excludePreparingDelete", "o", "bool"),
    ],
    "CloneSetUpdateStrategy": [("type", "o", "string"), ("rollingUpdate", "op", "CloneSetRollingUpdate")],
    "CloneSetRollingUpdate": [
        ("podUpdatePolicy", "o", "string"),
        ("partition", "op", "intorstring"),
        ("maxUnavailable", "op", "intorstring"),
        ("maxSurge", "op", "intorstring"),
        ("paused", "o", "bool"),
        ("priorityStrategy", "op", "PriorityStrategy"),
        ("scatterStrategy", "o", "[]ScatterTerm"),
        ("inPlaceUpdateStrategy", "op", "InPlaceUpdateStrategy"),
    ],
    "AdvancedStatefulSetSpec": [
        ("replicas", "op", "int"),
        ("selector", "p", "LabelSelector"),
        ("template", "", "PodTemplateSpec"),
        ("volumeClaimTemplates", "o", "[]PersistentVolumeClaim"),
        ("serviceName", "o", "string"),
        ("podManagementPolicy", "o", "string"),
        ("updateStrategy", "o", "AdvancedStatefulSetUpdateStrategy"),
        ("volumeClaimUpdateStrategy", "o", "VolumeClaimUpdateStrategy"),
        ("revisionHistoryLimit", "op", "int"),
        ("reserveOrdinals", "o", "[]intorstring"),
        ("lifecycle", "op", "WorkloadLifecycle"),
        ("scaleStrategy", "op", "AdvancedStatefulSetScaleStrategy"),
        ("persistentVolumeClaimRetentionPolicy", "op", "StatefulSetPersistentVolumeClaimRetentionPolicy"),
        ("ordinals", "op", "StatefulSetOrdinals"),
    ],
    "AdvancedStatefulSetUpdateStrategy": [
        ("type", "o", "string"),
        ("rollingUpdate", "op", "AdvancedStatefulSetRollingUpdate"),
    ],
    "AdvancedStatefulSetRollingUpdate": [
        ("partition", "op", "int"),
        ("maxUnavailable", "op", "intorstring"),
        ("podUpdatePolicy", "o", "string"),
        ("paused", "o", "bool"),
        ("unorderedUpdate", "op", "UnorderedUpdate"),
        ("inPlaceUpdateStrategy", "op", "InPlaceUpdateStrategy"),
        ("minReadySeconds", "op", "int"),
    ],
    "AdvancedStatefulSetScaleStrategy": [("maxUnavailable", "op", "intorstring")],
    "VolumeClaimUpdateStrategy": [("type", "o", "string")],
    "UnorderedUpdate": [("priorityStrategy", "op", "PriorityStrategy")],
    "PriorityStrategy": [("orderPriority", "o", "[]OrderTerm"), ("weightPriority", "o", "[]WeightTerm")],
    "OrderTerm": [("orderedKey", "", "string")],
    "WeightTerm": [("weight", "", "int"), ("matchSelector", "", "LabelSelector")],
    "ScatterTerm": [("key", "", "string"), ("value", "", "string")],
    "InPlaceUpdateStrategy": [
        ("gracePeriodSeconds", "o", "int"),
        ("imagePreDownloadParallelism", "op", "intorstring"),
        ("imagePreDownloadTimeoutSeconds", "op", "int"),
        ("imagePreDownloadMinUpdatedReadyPods", "op", "int"),
    ],
    "WorkloadLifecycle": [
        ("preDelete", "op", "LifecycleHook"),
        ("inPlaceUpdate", "op", "LifecycleHook"),
        ("preNormal", "op", "LifecycleHook"),
    ],
    "LifecycleHook": [
        ("labelsHandler", "o", "{}string"),
        ("finalizersHandler", "o", "[]string"),
        ("markPodNotReady", "o", "bool"),
    ],
}
"""The types of our own kinds, in the notation of podschema/README.md, which has the built-in ones."""


class _DataSpec(msgspec.Struct):
    template: dict[str, msgspec.Raw] = {}


class _Data(msgspec.Struct):
    spec: _DataSpec = msgspec.field(default_factory=_DataSpec)


@cache
def types() -> Mapping[str, Members]:
    """Return the members of every type that a template can contain."""
    return {**core_types(), **_OURS, **_WORKLOADS}


@cache
def _writers() -> Canonical:
    return Canonical(types())


def source_of(template: Template) -> bytes:
    """Return the data of a revision in the user's form."""
    return b'{"spec":{"template":%b}}' % msgspec.json.encode(template)


def canonical(data: bytes) -> bytes:
    """Return the data as it is stored, hashed and compared. Raises ValueError if the template cannot be read."""
    template = read_json(data, _Data).spec.template
    written = {
        name: _writers().write(name, template[name]) for name in _WORKLOADS if template.get(name, _NULL) != _NULL
    }
    return go_json({"spec": {"template": {**written, "$patch": "replace"}}}, sort=True)


_NULL = msgspec.Raw(b"null")


def template_labels(data: Json) -> Mapping[str, str]:
    """Return the labels of the template's own metadata, for all four kinds."""
    templates = mappings(list(member(data, "spec", "template").values()))
    return strings(mapping(templates[0].get("metadata")).get("labels")) if templates else {}


CODEC = RevisionCodec(
    canonical=canonical,
    labels=template_labels,
    hash_label_follows_name=True,
    copies_annotations=False,
    may_lack_labels=True,
)


def choose(snapshot: UnitedDeploymentSnapshot, selector: Selector) -> RevisionChoice:
    """Choose the newest and the current revision. Raises ValueError if the template cannot be read."""
    owner, status = snapshot.owner, snapshot.owner.status
    return choose_revisions(
        CODEC,
        RevisionOwner(
            resource=UNITED_DEPLOYMENT,
            metadata=owner.metadata,
            selector=selector,
            current_name=status.current_revision,
            update_name=status.updated_revision,
            collision_count=status.collision_count,
        ),
        source_of(owner.spec.template),
        tuple(snapshot.revisions),
    )


def loose(snapshot: UnitedDeploymentSnapshot, selector: Selector) -> list[ControllerRevision]:
    """Return the revisions without a controller that the selector matches and that hold such a template.

    A deleted UnitedDeployment left them behind. Revisions left behind by workloads are not adopted.
    """
    own = own_revisions(snapshot.revisions, snapshot.owner.metadata.uid, selector)
    return [revision for revision in own if controller_of(revision.metadata) is None and _has_template(revision)]


def strays(snapshot: UnitedDeploymentSnapshot, selector: Selector) -> list[ControllerRevision]:
    """Return the revisions that the owner controls although its selector no longer matches them.

    Old revisions of CloneSets have no labels, and stay.
    """
    uid = snapshot.owner.metadata.uid
    own = {one.metadata.name for one in own_revisions(snapshot.revisions, uid, selector, may_lack_labels=True)}
    return [
        revision
        for revision in snapshot.revisions
        if (controller := controller_of(revision.metadata)) is not None
        and controller.uid == uid
        and revision.metadata.name not in own
    ]


def _has_template(revision: ControllerRevision) -> bool:
    try:
        return bool(read_json(bytes(revision.data), _Data).spec.template.keys() & _WORKLOADS.keys())
    except ValueError:
        return False


def surplus(snapshot: UnitedDeploymentSnapshot, selector: Selector, kept: Collection[str]) -> tuple[Delete, ...]:
    """Plan the deletion of the oldest revisions beyond the history limit, except the `kept` names."""
    owner = snapshot.owner
    own = own_revisions(snapshot.revisions, owner.metadata.uid, selector, may_lack_labels=True)
    return surplus_revisions(own, max(owner.spec.revision_history_limit, 0), spared=kept)
