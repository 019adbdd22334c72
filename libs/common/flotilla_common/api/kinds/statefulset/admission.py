"""Admission of StatefulSets: defaults, validation, deletion protection (statefulset.md §3)."""

import copy

from flotilla_common.api.admission.fields import Fault
from flotilla_common.api.admission.plain import Judgement, Write, defaulted, in_hub, judged
from flotilla_common.api.admission.pod_template import default_templates
from flotilla_common.api.admission.review import Answer, Request
from flotilla_common.api.admission.tools import Tools, Verdict
from flotilla_common.api.admission.workload import (
    LABEL_TOO_LONG,
    LONGEST_NAME,
    template_verdict,
    too_long,
    unknown_fields,
)
from flotilla_common.api.documents import Json, ensured, fill, fill_empty
from flotilla_common.api.kinds.rules import WRITES, Admission, Rules
from flotilla_common.api.kinds.statefulset import crd
from flotilla_common.api.kinds.statefulset import validation as rules
from flotilla_common.api.kinds.statefulset.claim_validation import claim_fault
from flotilla_common.api.kinds.statefulset.conversion import convert, to_hub
from flotilla_common.api.kinds.statefulset.validation import check_types
from flotilla_common.api.versions import V1BETA1
from flotilla_common.gates import Gates


async def mutate(request: Request, tools: Tools) -> Answer:
    """Answer with defaults, as a patch in the version of the request."""
    return defaulted(request, check_types, lambda it: default_statefulset(it.document, it.old, tools.gates))


async def validate(request: Request, tools: Tools) -> Answer:
    """Answer with all field errors at once (422), or with the protection from deletion (403).

    Warnings name accepted settings that will not work as intended.
    """
    return await judged(request, tools, check_types, _judge)


async def _judge(given: Write, tools: Tools) -> Judgement:
    write = in_hub(given, to_hub)
    template = await template_verdict(tools, write)
    claims = await _claim_faults(write, tools, template)
    warnings = unknown_fields(template)
    if write.old is None:
        warnings += too_long(write.name, LONGEST_NAME, LABEL_TOO_LONG)
    return Judgement(rules.validate(write.document, write.old, template.faults, claims), warnings)


async def _claim_faults(write: Write, tools: Tools, template: Verdict) -> list[Fault]:
    """Return the fault of changed claim templates, if they are readable."""
    if write.old is None or template.faults:
        return []
    fault = await claim_fault(write.document, write.old, tools)
    return [fault] if fault else []


def default_statefulset(document: Json, old: Json | None, gates: Gates) -> Json:
    """Return a new document with defaults. `old` is the stored object of an update."""
    defaulted = copy.deepcopy(document)
    spec = ensured(defaulted, "spec")
    fill_empty(spec, podManagementPolicy="OrderedReady")
    strategy = ensured(spec, "updateStrategy")
    fill_empty(strategy, type="RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        _default_rolling(ensured(strategy, "rollingUpdate"))
    if document.get("apiVersion") == V1BETA1:
        _default_claims(spec, gates)
    fill(spec, replicas=1, revisionHistoryLimit=10)
    default_templates(spec, old, gates)
    return defaulted


def _default_rolling(rolling: Json) -> None:
    fill(rolling, partition=0, maxUnavailable=1, minReadySeconds=0)
    fill_empty(rolling, podUpdatePolicy="ReCreate")


def _default_claims(spec: Json, gates: Gates) -> None:
    if gates.on("StatefulSetAutoDeletePVC"):
        policy = ensured(spec, "persistentVolumeClaimRetentionPolicy")
        fill_empty(policy, whenDeleted="Retain", whenScaled="Retain")
    if gates.on("StatefulSetAutoResizePVCGate"):
        fill_empty(ensured(spec, "volumeClaimUpdateStrategy"), type="OnDelete")


RULES = Rules(
    schema=crd.version,
    convert=convert,
    admission=Admission(mutate=mutate, validate=validate, validates=(*WRITES, "DELETE")),
)
