"""The API of PersistentPodStates: schema, validation, conversion, admission (persistentpodstate.md §1 to §3).

They have no defaults. v1beta1 has a shorter name for lists of keys, and a stricter schema; everything else is the same
in v1alpha1, and nothing is lost. kubectl prints its default columns, name and age.
"""

from collections.abc import Collection, Iterable, Iterator
from functools import partial

import msgspec

from flotilla_common.api.admission.fields import Fault, aggregate, forbidden, invalid
from flotilla_common.api.admission.handlers import Tools, Write, configuration, decoded, write_of
from flotilla_common.api.admission.review import ALLOWED, Answer, Request, error
from flotilla_common.api.crds.schema import Schema, Version, array, dictionary, integer, string, strings, struct
from flotilla_common.api.crds.schema import mapping as string_map
from flotilla_common.api.documents import Json, mapping, mappings, member
from flotilla_common.api.errors import ApiError, Unreachable
from flotilla_common.api.kinds.persistentpodstate.types import (
    PERSISTENT_POD_STATE,
    WHITE_LIST,
    CustomWorkload,
    PersistentPodState,
    custom_workloads,
    supported,
)
from flotilla_common.api.kinds.rules import Admission, Rules
from flotilla_common.api.versions import Conversion

_POLICIES = ("WhenScaled", "WhenDeleted")

_TARGET = "spec.targetRef"


def version(name: str) -> Version:
    """Return one version of the CRD."""
    strict = name != "v1alpha1"
    return Version(name, _spec_schema("keys" if strict else "nodeTopologyKeys", strict=strict), _status_schema())


def _spec_schema(keys: str, *, strict: bool) -> Schema:
    def topology(doc: str) -> Schema:
        return struct(doc, (keys,), **{keys: strings("Keys of node labels.")})

    term = struct(
        "One preference.",
        ("weight", "preference"),
        weight=integer("The weight for the scheduler, 1 to 100.", minimum=0 if strict else None),
        preference=topology("Pods should return to a node with the same values of these labels."),
    )
    annotation = struct("One annotation.", ("key",), key=string("Its key."))
    return struct(
        "The recorded state, and the pods.",
        ("targetRef",),
        targetRef=_target_schema(),
        requiredPersistentTopology=topology("Pods must return to a node with the same values of these labels."),
        preferredPersistentTopology=array("Preferred places for pods to return to.", term),
        persistentPodAnnotations=array("Annotations of pods that are recorded, for other tools to read.", annotation),
        persistentPodStateRetentionPolicy=string(
            "WhenScaled: the state of a removed pod is dropped; WhenDeleted: only when the workload is deleted. "
            "Default: WhenScaled.",
            enum=_POLICIES if strict else (),
        ),
    )


def _target_schema() -> Schema:
    return struct(
        "The workload, in the same namespace: a StatefulSet, or a kind that is configured. Never changes.",
        ("apiVersion", "kind", "name"),
        apiVersion=string("Its group and version."),
        kind=string("Its kind."),
        name=string("Its name."),
    )


def _status_schema() -> Schema:
    state = struct(
        "The node of a pod when it was last ready.",
        nodeName=string("The node."),
        nodeTopologyLabels=string_map("The recorded labels of the node."),
        annotations=string_map("The recorded annotations of the pod."),
    )
    return struct(
        "The recorded states.",
        ("observedGeneration",),
        observedGeneration=integer("The generation of the spec that this status refers to.", bits=64),
        podStates=dictionary("The states by the name of the pod.", state),
    )


def spec_faults(document: Json, state: PersistentPodState, custom: Collection[CustomWorkload]) -> Iterator[Fault]:
    """Yield the faults of the object by itself; `state` is the decoded document."""
    spec, target = state.spec, state.spec.target_ref
    if not (target.api_version and target.kind and target.name):
        yield invalid(_TARGET, _shown(document), "apiVersion, kind and name must not be empty")
    elif not supported(target.api_version, target.kind, custom):
        yield invalid(_TARGET, _shown(document), f"must be StatefulSet or in {WHITE_LIST}")
    if spec.required_persistent_topology is None and not spec.preferred_persistent_topology:
        detail = "requiredPersistentTopology and preferredPersistentTopology cannot be empty at the same time"
        yield invalid("spec", mapping(document.get("spec")), detail)


def change_faults(state: PersistentPodState, old: PersistentPodState) -> Iterator[Fault]:
    """Yield the fault of a changed targetRef; its version counts, too."""
    if state.spec.target_ref != old.spec.target_ref:
        yield forbidden(_TARGET, "targetRef is immutable")


def conflict_faults(document: Json, state: PersistentPodState, others: Iterable[PersistentPodState]) -> Iterator[Fault]:
    """Yield a fault for each of the `others` in the namespace with the same workload."""
    for other in others:
        if other.spec.target_ref.identity == state.spec.target_ref.identity:
            detail = f"conflict with other PersistentPodState {other.metadata.name}"
            yield invalid(_TARGET, _shown(document), detail)


def _shown(document: Json) -> Json:
    return member(document, "spec", "targetRef")


_ALPHA, _BETA = "nodeTopologyKeys", "keys"


def _rename(document: Json, old: str, new: str) -> None:
    spec = member(document, "spec")
    preferences = [member(term, "preference") for term in mappings(spec.get("preferredPersistentTopology"))]
    for topology in (member(spec, "requiredPersistentTopology"), *preferences):
        if old in topology:
            topology[new] = topology.pop(old)


_VERSIONS = Conversion(
    "PersistentPodState", partial(_rename, old=_ALPHA, new=_BETA), partial(_rename, old=_BETA, new=_ALPHA)
)
convert, to_hub = _VERSIONS.convert, _VERSIONS.to_hub


async def validate(request: Request, tools: Tools) -> Answer:
    """Answer with all field errors at once (400)."""
    write = write_of(request, _typed)
    try:
        faults = await _faults(write, tools)
    except (ApiError, Unreachable, ValueError) as failure:
        return error(400, f"Internal error: {failure}")
    return error(400, aggregate(faults)) if faults else ALLOWED


async def _faults(write: Write, tools: Tools) -> list[Fault]:
    document, state = to_hub(write.document), _typed(write.document)
    faults = [*spec_faults(document, state, custom_workloads(await configuration(tools)))]
    if write.old is not None:
        faults += change_faults(state, _typed(write.old))
    stored = await tools.read_all(PERSISTENT_POD_STATE, write.namespace)
    states = [msgspec.json.decode(body, type=PersistentPodState) for body in stored]
    others = [one for one in states if one.metadata.name != write.name]
    return [*faults, *conflict_faults(document, state, others)]


def _typed(document: Json) -> PersistentPodState:
    return decoded(to_hub(document), PersistentPodState)


RULES = Rules(schema=version, convert=convert, admission=Admission(validate=validate, arms_pods=True))
