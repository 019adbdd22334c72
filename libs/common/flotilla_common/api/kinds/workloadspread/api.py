"""The API of WorkloadSpreads: CRD and validation, without defaults (workloadspread.md §1 to §4).

The versions differ in two fields and in conditions.
"""

import re
from collections.abc import Iterator

import msgspec

from flotilla_common.api.admission.fields import Fault, aggregate, invalid
from flotilla_common.api.admission.handlers import Tools, Write, configuration, decoded, in_hub, write_of
from flotilla_common.api.admission.review import ALLOWED, Answer, Request, error
from flotilla_common.api.crds.schema import (
    Column,
    Schema,
    Version,
    anything,
    array,
    boolean,
    conditions,
    dictionary,
    int_or_string,
    integer,
    label_selector,
    standard_conditions,
    string,
    strings,
    struct,
    time,
)
from flotilla_common.api.documents import Json, ensured, mapping, mappings, member
from flotilla_common.api.errors import ApiError, Unreachable, found_or_none
from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.kinds.rules import Admission, Rules
from flotilla_common.api.kinds.workloadspread.targets import custom_workloads
from flotilla_common.api.kinds.workloadspread.types import WORKLOAD_SPREAD, WorkloadSpread, convert, to_hub
from flotilla_common.api.kinds.workloadspread.validation import validate as faults_of
from flotilla_common.api.resources import BUILT_IN_STATEFUL_SET, DEPLOYMENT, JOB, REPLICA_SET, Resource
from flotilla_common.api.strategic import merge

_COLUMNS = (
    Column("WorkloadName", "string", ".spec.targetRef.name"),
    Column("WorkloadKind", "string", ".spec.targetRef.kind"),
    Column("Adaptive", "boolean", '.spec.scheduleStrategy.type[?(@ == "Adaptive")]'),
    Column("Age", "date", ".metadata.creationTimestamp"),
)


def version(name: str) -> Version:
    """Return one version of the CRD."""
    old = name == "v1alpha1"
    required, preferred = ("NodeSelectorTerm", "NodeSelectorTerms") if old else ("NodeSelector", "NodeSelector")
    subset = _subset(
        **{
            f"required{required}": anything("A term of node affinity that nodes must match."),
            f"preferred{preferred}": array("Terms of node affinity with weights.", anything("A term.")),
        }
    )
    schedulable = "Whether pods find nodes."
    return Version(
        name, _spec(subset), _status(conditions(schedulable) if old else standard_conditions(schedulable)), _COLUMNS
    )


def _spec(subset: Schema) -> Schema:
    reference = struct(
        "The workload whose pods are spread. Never changes, except its version.",
        ("apiVersion", "kind", "name"),
        apiVersion=string("Its group and version."),
        kind=string("CloneSet, Deployment, ReplicaSet, StatefulSet, Job, or a kind that administrators name."),
        name=string("Its name, in the same namespace."),
    )
    return struct(
        "The desired state.",
        ("targetRef", "subsets"),
        targetRef=reference,
        targetFilter=struct(
            "Selects the pods that are spread. Default: all.",
            selector=label_selector("The labels of these pods."),
            replicasPathList=strings("Paths of numbers in the workload whose sum is the number of these pods."),
        ),
        subsets=array("The places, in the order in which they are filled.", subset)
        | {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], "minItems": 1},
        scheduleStrategy=struct(
            "The handling of pods that find no node.",
            type=string("Adaptive: they go to the next subset. Default: Fixed.", enum=("", "Adaptive", "Fixed")),
            adaptive=struct(
                "With type Adaptive.",
                rescheduleCriticalSeconds=integer("Seconds that a pod may find no node. Default: no limit."),
                disableSimulationSchedule=boolean("Accepted, and without effect."),
            ),
        ),
    )


def _subset(**terms: Schema) -> Schema:
    return struct(
        "One place.",
        ("name",),
        name=string("Its name."),
        tolerations=array("Taints that its pods tolerate.", anything("A toleration.")),
        maxReplicas=int_or_string("The maximum number of its pods, or share of all pods. Default: no limit."),
        patch=anything("A strategic merge patch of its pods."),
        **terms,
    )


def _status(subset_conditions: Schema) -> Schema:
    subset = struct(
        "One subset.",
        ("name", "replicas", "missingReplicas"),
        name=string("Its name."),
        replicas=integer("Pods that exist."),
        missingReplicas=integer("Free places; -1: any number."),
        creatingPods=dictionary("Pods that were admitted and are not visible yet, with the time.", time("The time.")),
        deletingPods=dictionary(
            "Pods whose deletion was admitted and is not visible yet, with the time.", time("The time.")
        ),
        conditions=subset_conditions,
    )
    return struct(
        "The observed state.",
        observedGeneration=integer("The generation of the spec that this status refers to.", bits=64),
        subsetStatuses=array("The subsets, over all versions of pods.", subset),
        versionedSubsetStatuses=dictionary(
            "The subsets by version of pods.", array("The subsets of one version.", subset)
        ),
    )


_PATCHED = {(one.group, one.kind): one for one in (CLONE_SET, DEPLOYMENT, REPLICA_SET, JOB, BUILT_IN_STATEFUL_SET)}
"""Kinds whose pod templates are used to validate the patches of subsets."""

_TERM = "spec.template.spec.affinity.nodeAffinity"
_REQUIRED = f"{_TERM}.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]"
_PREFERRED = re.compile(rf"{re.escape(_TERM)}\.preferredDuringSchedulingIgnoredDuringExecution(?=\[)")
_TOLERATION = re.compile(r"spec\.template\.spec\.tolerations(?=\[)")


async def validate(request: Request, tools: Tools) -> Answer:
    """Answer with all field errors at once (400)."""
    write = write_of(request, _typed)
    try:
        faults = await _faults(write, tools)
    except (ApiError, Unreachable, ValueError) as failure:
        return error(400, f"Internal error: {failure}")
    return error(400, aggregate(faults)) if faults else ALLOWED


def _typed(document: Json) -> WorkloadSpread:
    return decoded(to_hub(document), WorkloadSpread)


async def _faults(given: Write, tools: Tools) -> list[Fault]:
    write = in_hub(given, to_hub)
    document, old = write.document, write.old
    custom = custom_workloads(await configuration(tools))
    stored = [msgspec.json.decode(body, type=WorkloadSpread) for body in await _stored(write, tools)]
    others = [one for one in stored if one.metadata.name != write.name]
    faults = faults_of(document, old, custom, others)
    if old is not None and document.get("spec") == old.get("spec"):
        return faults
    return [
        *faults,
        *await _placement_faults(document, write.namespace, tools),
        *await _patch_faults(write, document, tools),
    ]


async def _stored(write: Write, tools: Tools) -> list[bytes]:
    return [bytes(body) for body in await tools.read_all(WORKLOAD_SPREAD, write.namespace)]


async def _placement_faults(document: Json, namespace: str, tools: Tools) -> list[Fault]:
    """Return the faults of terms and tolerations, by the apiserver's verdict on a pod that has them."""
    faults: list[Fault] = []
    for index, subset in enumerate(mappings(member(document, "spec").get("subsets"))):
        path = f"spec.subsets[{index}]"
        stand_in = _stand_in(subset)
        if stand_in is not None:
            verdict = await tools.template_verdict(namespace, stand_in, [])
            faults += [Fault(place, fault.body) for fault in verdict.faults for place in _places(path, fault.path)]
    return faults


def _stand_in(subset: Json) -> Json | None:
    """Return a pod template with only the additions of the subset; None if there are none."""
    required, preferred = mapping(subset.get("requiredNodeSelector")), mappings(subset.get("preferredNodeSelector"))
    tolerations = mappings(subset.get("tolerations"))
    if not (required or preferred or tolerations):
        return None
    affinity: Json = {"preferredDuringSchedulingIgnoredDuringExecution": preferred}
    if required:
        affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": [required]}
    spec = {"containers": [{"name": "c", "image": "none"}], "affinity": {"nodeAffinity": affinity}}
    return {"spec": spec | {"tolerations": tolerations}}


def _places(path: str, found: str) -> Iterator[str]:
    """Yield the path in the subset for a fault of the substitute template."""
    if found.startswith(_REQUIRED):
        yield f"{path}.requiredNodeSelector{found.removeprefix(_REQUIRED)}"
    elif _PREFERRED.match(found):
        yield _PREFERRED.sub(f"{path}.preferredNodeSelector", found)
    elif _TOLERATION.match(found):
        yield _TOLERATION.sub(f"{path}.tolerations", found)


async def _patch_faults(write: Write, document: Json, tools: Tools) -> list[Fault]:
    """Return the faults of patches, applied to the pod template of the workload, if that exists."""
    spec = member(document, "spec")
    patches = [(index, one["patch"]) for index, one in enumerate(mappings(spec.get("subsets"))) if one.get("patch")]
    target = _typed(write.document).spec.target_ref
    resource = _PATCHED.get(target.identity[:2])
    faults = [
        invalid(f"spec.subsets[{index}].patch", patch, "must be an object")
        for index, patch in patches
        if not isinstance(patch, dict)
    ]
    if faults or not patches or resource is None or not target.name:
        return faults
    workload = await _workload(resource, write.namespace, target.name, tools)
    for index, patch in patches if workload is not None else ():
        faults += await _tried(f"spec.subsets[{index}].patch", patch, mapping(workload), write.namespace, tools)
    return faults


async def _workload(resource: Resource, namespace: str, name: str, tools: Tools) -> Json | None:
    body = await found_or_none(tools.read(resource, namespace, name))
    return None if body is None else msgspec.json.decode(body, type=Json)


async def _tried(path: str, patch: Json, workload: Json, namespace: str, tools: Tools) -> list[Fault]:
    spec = mapping(workload.get("spec"))
    try:
        template = merge(member(spec, "template"), patch)
    except ValueError as fault:
        return [invalid(path, patch, str(fault))]
    ensured(template, "spec").setdefault("restartPolicy", "Always")
    verdict = await tools.template_verdict(namespace, template, mappings(spec.get("volumeClaimTemplates")))
    return [Fault(f"{path}{fault.path.removeprefix('spec.template')}", fault.body) for fault in verdict.faults]


RULES = Rules(schema=version, convert=convert, admission=Admission(validate=validate, arms_pods=True))
