"""Admission of AdvancedCronJobs: defaults and validation (advancedcronjob.md §3)."""

from collections.abc import Iterator

from flotilla_common.api.admission.fields import aggregate
from flotilla_common.api.admission.names import LONGEST_LABEL
from flotilla_common.api.admission.patch import operations
from flotilla_common.api.admission.plain import document_of, former_of
from flotilla_common.api.admission.review import Answer, Request, error, identity, patched
from flotilla_common.api.admission.tools import Tools, Verdict
from flotilla_common.api.admission.workload import template_verdict, too_long, unknown_fields
from flotilla_common.api.documents import Json, mapping
from flotilla_common.api.errors import ApiError, Unreachable
from flotilla_common.api.kinds.advancedcronjob import validation as rules
from flotilla_common.api.kinds.advancedcronjob.defaults import default_cron_job
from flotilla_common.api.kinds.advancedcronjob.templates import pod_template, restart_policy

LONGEST_NAME = LONGEST_LABEL - len("-1647045420")
"""Characters. Jobs are called after it and after their time, and their pods have that name as a label."""

_JUDGED = "spec.template"
"""Where the apiserver's verdict has the pod template."""


async def mutate(request: Request, tools: Tools) -> Answer:
    """Defaults, as a patch in the version of the request."""
    document = document_of(request, rules.check_types)
    return patched(operations(document, default_cron_job(document, former_of(request, rules.check_types), tools.gates)))


async def validate(request: Request, tools: Tools) -> Answer:
    """All field errors at once (422). Warnings say what is accepted and will not work as it was meant."""
    document = document_of(request, rules.check_types)
    old = former_of(request, rules.check_types)
    namespace, name = identity(document, request)
    try:
        verdict = await _verdict(tools, namespace, document, old)
    except (ApiError, Unreachable) as failure:
        return error(500, f"cannot check the AdvancedCronJob, the apiserver says: {failure}")
    if faults := rules.validate(document, name, old, verdict.faults):
        return error(422, aggregate(faults))
    return Answer(warnings=[*_warnings(document, name, verdict)] if old is None else [])


async def _verdict(tools: Tools, namespace: str, document: Json, old: Json | None) -> Verdict:
    """About the pod template, as if it were a workload's."""
    found = pod_template(mapping(document.get("spec")))
    before = pod_template(mapping(old.get("spec"))) if old else None
    if found is None:
        return Verdict()
    return await template_verdict(tools, namespace, _workload(found[1]), _workload(before[1]) if before else None)


def _workload(pod: Json) -> Json:
    return {"spec": {"template": pod}}


def _warnings(document: Json, name: str, verdict: Verdict) -> Iterator[str]:
    """Templates of pods never change, so a new object says it all."""
    found = pod_template(mapping(document.get("spec")))
    if found is None:
        return
    path, pod = found
    yield from unknown_fields(Verdict(dropped=[place.replace(_JUDGED, path, 1) for place in verdict.dropped]))
    if len(name) > LONGEST_NAME:
        yield too_long(name, LONGEST_NAME, "the names of its jobs get too long")
    if restart_policy(pod) not in ("Never", "OnFailure"):
        yield f"{path}.spec.restartPolicy is neither Never nor OnFailure: no job can be created with it"
