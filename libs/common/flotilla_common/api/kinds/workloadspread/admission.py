"""Admission of WorkloadSpreads (workloadspread.md §4). They have no defaults."""

import re
from collections.abc import Iterator

import msgspec

from flotilla_common.api.admission.fields import Fault, aggregate, invalid
from flotilla_common.api.admission.plain import Write, decoded, in_hub, write_of
from flotilla_common.api.admission.review import ALLOWED, Answer, Request, error
from flotilla_common.api.admission.tools import Tools, configuration
from flotilla_common.api.documents import Json, ensured, mapping, mappings, member
from flotilla_common.api.errors import ApiError, Unreachable, found_or_none
from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.kinds.rules import Admission, Rules
from flotilla_common.api.kinds.workloadspread import crd
from flotilla_common.api.kinds.workloadspread.conversion import convert, to_hub
from flotilla_common.api.kinds.workloadspread.targets import custom_workloads
from flotilla_common.api.kinds.workloadspread.types import WORKLOAD_SPREAD, WorkloadSpread
from flotilla_common.api.kinds.workloadspread.validation import validate as faults_of
from flotilla_common.api.resources import BUILT_IN_STATEFUL_SET, DEPLOYMENT, JOB, REPLICA_SET, Resource
from flotilla_common.api.strategic import merge

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


RULES = Rules(schema=crd.version, convert=convert, admission=Admission(validate=validate, arms_pods=True))
