"""Admission of UnitedDeployments: defaults, validation, deletion protection (uniteddeployment.md §3 and §4)."""

import copy
import re
from collections.abc import Sequence
from functools import partial

from flotilla_common.api.admission.fields import Fault
from flotilla_common.api.admission.handlers import Findings, Tools, Write, decoded, defaulted, in_hub, review
from flotilla_common.api.admission.pod_template import default_templates
from flotilla_common.api.admission.review import Answer, Request
from flotilla_common.api.admission.workload import too_long
from flotilla_common.api.documents import Json, ensured, fill, fill_empty, mapping, mappings, member
from flotilla_common.api.kinds.rules import WRITES, Admission, Rules
from flotilla_common.api.kinds.uniteddeployment import crd
from flotilla_common.api.kinds.uniteddeployment.types import UnitedDeployment, convert, to_hub, without_flat_fields
from flotilla_common.api.kinds.uniteddeployment.validation import JUDGED_TEMPLATES, template_path
from flotilla_common.api.kinds.uniteddeployment.validation import validate as faults_of
from flotilla_common.gates import Gates

LONGEST_NAME = 52
"""The most characters of a name: the label controller-revision-hash adds a dash and 10 digits, and holds 63."""

check_types = partial(decoded, model=UnitedDeployment)
"""Raises ValueError if a field that Flotilla reads has a wrong type."""


async def mutate(request: Request, tools: Tools) -> Answer:
    """Answer with defaults, as a patch in the version of the request."""
    return defaulted(request, check_types, lambda write: with_defaults(write.document, write.old, tools.gates))


async def validate(request: Request, tools: Tools) -> Answer:
    """Answer with all field errors at once (422), or with the protection from deletion (403)."""
    return await review(request, tools, check_types, _findings)


async def _findings(given: Write, tools: Tools) -> Findings:
    write = in_hub(given, to_hub)
    document, old = write.document, write.old
    template_faults = [
        *await _template_faults(document, old, write.namespace, tools),
        *await _placement_faults(document, old, write.namespace, tools),
    ]
    label = "the label controller-revision-hash of its workloads gets too long"
    warnings = too_long(write.name, LONGEST_NAME, label) if old is None else []
    return Findings(faults_of(document, old, template_faults), warnings)


async def _template_faults(document: Json, old: Json | None, namespace: str, tools: Tools) -> list[Fault]:
    """Return the faults of a new pod template, only for Deployments and built-in StatefulSets."""
    template, before = member(document, "spec", "template"), member(old or {}, "spec", "template")
    faults: list[Fault] = []
    for name in JUDGED_TEMPLATES:
        spec = mapping(mapping(template.get(name)).get("spec"))
        if name in template and (old is None or template != before):
            claims = mappings(spec.get("volumeClaimTemplates"))
            verdict = await tools.template_verdict(namespace, mapping(spec.get("template")), claims)
            faults += [
                Fault(fault.path.replace("spec.", template_path(name), 1), fault.body) for fault in verdict.faults
            ]
    return faults


_TERM = "spec.template.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
_PLACE = re.compile(rf"({re.escape(_TERM)}|spec\.template\.spec\.tolerations)\[(\d+)\]")


async def _placement_faults(document: Json, old: Json | None, namespace: str, tools: Tools) -> list[Fault]:
    """Return the faults of terms and tolerations, by the apiserver's verdict on a pod with all of them."""
    subsets = mappings(member(document, "spec", "topology").get("subsets"))
    if old is not None and subsets == mappings(member(old, "spec", "topology").get("subsets")):
        return []
    terms = [(index, one["nodeSelectorTerm"]) for index, one in enumerate(subsets) if one.get("nodeSelectorTerm")]
    tolerations = [
        (index, position, toleration)
        for index, one in enumerate(subsets)
        for position, toleration in enumerate(mappings(one.get("tolerations")))
    ]
    if not terms and not tolerations:
        return []
    places = {f"{_TERM}[{number}]": f"subsets[{index}].nodeSelectorTerm" for number, (index, _) in enumerate(terms)} | {
        f"spec.template.spec.tolerations[{number}]": f"subsets[{index}].tolerations[{position}]"
        for number, (index, position, _) in enumerate(tolerations)
    }
    stand_in = _stand_in([term for _, term in terms], [toleration for *_, toleration in tolerations])
    verdict = await tools.template_verdict(namespace, stand_in, [])
    return [
        Fault(f"spec.topology.{places[match[0]]}{fault.path[match.end() :]}", fault.body)
        for fault in verdict.faults
        if (match := _PLACE.match(fault.path)) and match[0] in places
    ]


def _stand_in(terms: Sequence[Json], tolerations: Sequence[Json]) -> Json:
    """Return a pod template with only these terms and tolerations."""
    spec: Json = {"containers": [{"name": "c", "image": "none"}], "tolerations": list(tolerations)}
    if terms:
        required = {"nodeSelectorTerms": list(terms)}
        spec["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    return {"spec": spec}


def with_defaults(document: Json, old: Json | None, gates: Gates) -> Json:
    """Return a new document with defaults. `old` is the stored object of an update."""
    result = copy.deepcopy(without_flat_fields(document))
    spec = ensured(result, "spec")
    fill(spec, replicas=1, revisionHistoryLimit=10)
    strategy = ensured(spec, "updateStrategy")
    fill_empty(strategy, type="Manual")
    if strategy["type"] == "Manual":
        ensured(strategy, "manualUpdate")
    template = member(spec, "template", "statefulSetTemplate")
    before = member(old or {}, "spec", "template", "statefulSetTemplate")
    if template:
        workload = ensured(template, "spec")
        default_templates(workload, before if old is not None and before == template else None, gates)
    _default_minima(mappings(member(spec, "topology").get("subsets")))
    result.pop("status", None)
    return result


def _default_minima(subsets: list[Json]) -> None:
    bounded = any(one.get("minReplicas") is not None or one.get("maxReplicas") is not None for one in subsets)
    if bounded and all(one.get("replicas") is None for one in subsets):
        for one in subsets:
            fill(one, minReplicas=0)


RULES = Rules(
    schema=crd.version,
    convert=convert,
    admission=Admission(mutate=mutate, validate=validate, validates=(*WRITES, "DELETE")),
)
