"""The API of BroadcastJobs: schema, defaults, validation, admission (broadcastjob.md §1 to §3).

Both versions are the same. The webhook validates values, if they are validated at all, so the schema has neither enums
nor limits.
"""

import copy
from collections.abc import Iterable, Iterator
from functools import partial

from flotilla_common.api.admission.fields import Fault, invalid, job_name_faults
from flotilla_common.api.admission.handlers import Findings, Tools, Write, decoded, defaulted, review
from flotilla_common.api.admission.pod_template import default_templates
from flotilla_common.api.admission.review import Answer, Request
from flotilla_common.api.admission.workload import template_verdict, unknown_fields
from flotilla_common.api.batch import ALWAYS, NEVER
from flotilla_common.api.crds.schema import (
    Column,
    Schema,
    Version,
    anything,
    boolean,
    int_or_string,
    integer,
    job_conditions,
    string,
    struct,
    time,
)
from flotilla_common.api.crds.shared import completion_policy
from flotilla_common.api.documents import Json, ensured, fill, fill_empty, mapping, member, strings
from flotilla_common.api.kinds.broadcastjob.types import FAIL_FAST, NAME_LABEL, UID_LABEL, UNLIMITED, BroadcastJob
from flotilla_common.api.kinds.rules import Admission, Rules
from flotilla_common.gates import Gates

_COLUMNS = (
    Column("Desired", "integer", ".status.desired"),
    Column("Active", "integer", ".status.active"),
    Column("Succeeded", "integer", ".status.succeeded"),
    Column("Failed", "integer", ".status.failed"),
    Column("AGE", "date", ".metadata.creationTimestamp"),
)

_ENDS = ("Never", "OnFailure")
_OURS = f'"{NAME_LABEL}" and "{UID_LABEL}" are not allowed to preset in pod labels'


def version(name: str) -> Version:
    """Return one version of the CRD."""
    return Version(name, spec_schema(), _status_schema(), _COLUMNS)


def spec_schema() -> Schema:
    """Return the schema of the spec, which is also in an AdvancedCronJob's template."""
    return struct(
        "The desired state.",
        ("template",),
        parallelism=int_or_string(
            "The maximum number of active pods; percentages are of the nodes, rounded up. Default: no limit."
        ),
        template=anything("The pod template: metadata and spec of the pods to run; restartPolicy Never or OnFailure."),
        completionPolicy=completion_policy(),
        paused=boolean("Stops the creation of pods; running ones go on. Default: false."),
        failurePolicy=_failure_schema(),
    )


def _failure_schema() -> Schema:
    return struct(
        "The consequence of a failed pod for the job.",
        type=string(
            "FailFast: the job fails. Continue: it goes on. Pause: it creates no more pods. Default: FailFast."
        ),
        restartLimit=integer("Restarts of a pod with restartPolicy OnFailure before it counts as failed. Default: 0."),
    )


def _status_schema() -> Schema:
    return struct(
        "The observed state.",
        ("active", "succeeded", "failed", "desired", "phase"),
        conditions=job_conditions("Complete or Failed, once the job has ended."),
        startTime=time("The time of the first reconcile."),
        completionTime=time("The time at which it became Complete or Failed."),
        active=integer("Pods that are active."),
        succeeded=integer("Pods that succeeded."),
        failed=integer("Pods that failed."),
        desired=integer("Nodes that should run a pod, or have run one."),
        phase=string("running, paused, completed or failed."),
    )


def default_broadcast_job(document: Json, old: Json | None, gates: Gates) -> Json:
    """Return a new document with defaults. `old` is the stored object of an update."""
    defaulted = copy.deepcopy(document)
    spec = ensured(defaulted, "spec")
    default_templates(spec, old, gates)
    fill_empty(ensured(spec, "completionPolicy"), type=ALWAYS)
    fill(spec, parallelism=UNLIMITED)
    fill_empty(ensured(spec, "failurePolicy"), type=FAIL_FAST)
    return defaulted


def faults_of(document: Json, name: str, template: Iterable[Fault] = ()) -> list[Fault]:
    """Return all faults of a BroadcastJob. `template`: the faults of its pod template."""
    spec = mapping(document.get("spec"))
    return [*job_name_faults(name), *_completion_faults(spec), *_template_faults(spec), *template]


def _completion_faults(spec: Json) -> Iterator[Fault]:
    """Yield faults of a job that never ends but has a deadline or a TTL."""
    policy = member(spec, "completionPolicy")
    if policy.get("type") != NEVER:
        return
    for name in ("ttlSecondsAfterFinished", "activeDeadlineSeconds"):
        if policy.get(name) is not None:
            path = f"spec.completionPolicy.{name}"
            yield invalid(path, policy[name], "can just work with Always CompletionPolicyType")


def _template_faults(spec: Json) -> Iterator[Fault]:
    restart = member(spec, "template", "spec").get("restartPolicy")
    if restart not in _ENDS:
        path = "spec.template.spec.restartPolicy"
        yield invalid(path, restart or "", "pod restartPolicy can only be Never or OnFailure")
    labels = strings(member(spec, "template", "metadata").get("labels"))
    if labels.get(NAME_LABEL) or labels.get(UID_LABEL):
        yield invalid("spec.template.metadata.labels", labels, _OURS)


check_types = partial(decoded, model=BroadcastJob)
"""Raises ValueError if a field that Flotilla reads has a wrong type."""


async def mutate(request: Request, tools: Tools) -> Answer:
    """Answer with defaults, as a patch."""
    return defaulted(request, check_types, lambda it: default_broadcast_job(it.document, it.old, tools.gates))


async def validate(request: Request, tools: Tools) -> Answer:
    """Answer with all field errors at once (500), or warn of fields that pods will not have."""
    return await review(request, tools, check_types, _findings)


async def _findings(write: Write, tools: Tools) -> Findings:
    template = await template_verdict(tools, write)
    return Findings(faults_of(write.document, write.name, template.faults), unknown_fields(template), code=500)


RULES = Rules(schema=version, admission=Admission(mutate=mutate, validate=validate))
