"""The API of AdvancedCronJobs: CRD, defaults and validation (advancedcronjob.md §1 to §3).

v1alpha1 has no template of ImageListPullJobs.
"""

import copy
from collections.abc import Iterator

import msgspec

from flotilla_common.api.admission.fields import LONGEST_LABEL
from flotilla_common.api.admission.handlers import Findings, Tools, Verdict, Write, defaulted, in_hub, review
from flotilla_common.api.admission.pod_template import default_template
from flotilla_common.api.admission.review import Answer, Request
from flotilla_common.api.admission.workload import template_verdict, too_long, unknown_fields
from flotilla_common.api.batch import ALWAYS
from flotilla_common.api.crds.schema import (
    Column,
    Schema,
    Version,
    anything,
    array,
    boolean,
    integer,
    string,
    struct,
    time,
)
from flotilla_common.api.documents import Json, ensured, fill, fill_empty, is_object, mapping, member
from flotilla_common.api.kinds.advancedcronjob import validation as rules
from flotilla_common.api.kinds.advancedcronjob.types import ALLOW, FORBID, REPLACE, convert, to_hub
from flotilla_common.api.kinds.advancedcronjob.validation import check_types, pod_template, restart_policy
from flotilla_common.api.kinds.broadcastjob import api as broadcastjob
from flotilla_common.api.kinds.imagelistpulljob import api as imagelistpulljob
from flotilla_common.api.kinds.imagepulljob.api import default_limits
from flotilla_common.api.kinds.rules import Admission, Rules
from flotilla_common.gates import Gates

_COLUMNS = (
    Column("Schedule", "string", ".spec.schedule"),
    Column("Type", "string", ".status.type"),
    Column("LastScheduleTime", "date", ".status.lastScheduleTime"),
    Column("AGE", "date", ".metadata.creationTimestamp"),
)


def version(name: str) -> Version:
    """Return one version of the CRD."""
    templates = {
        "jobTemplate": anything("Metadata and spec of a Job of Kubernetes; never changes."),
        "broadcastJobTemplate": _template("A BroadcastJob; never changes.", broadcastjob.spec_schema()),
    }
    if name != "v1alpha1":
        templates["imageListPullJobTemplate"] = _template("An ImageListPullJob.", imagelistpulljob.spec_schema())
    return Version(name, _spec(templates), _status(), _COLUMNS)


def _template(doc: str, spec: Schema) -> Schema:
    metadata = anything("Labels and annotations of the jobs; the rest is ignored.")
    return struct(doc, ("spec",), metadata=metadata, spec=spec)


def _spec(templates: dict[str, Schema]) -> Schema:
    return struct(
        "The desired state.",
        ("schedule", "template"),
        schedule=string("The schedule: five fields as in cron, or a word such as @daily or @every 90s."),
        timeZone=string("The IANA zone in which the schedule is read. Default: that of the service."),
        startingDeadlineSeconds=integer("Seconds after which a missed run is skipped. Default: no limit.", bits=64),
        concurrencyPolicy=string(
            "What to do when a run is due and another is active. Allow: both run. Forbid: it waits. Replace: the "
            "active one is deleted. Default: Allow, and Replace for ImageListPullJobs, which Allow is not for.",
            enum=(ALLOW, FORBID, REPLACE),
        ),
        paused=boolean("Stops new runs; active ones go on. Default: false."),
        successfulJobsHistoryLimit=integer("The number of succeeded jobs that are kept. Default: 3."),
        failedJobsHistoryLimit=integer("The number of failed jobs that are kept. Default: 1."),
        template=struct("The template of the jobs; exactly one member is set.", **templates),
    )


def _status() -> Schema:
    reference = struct(
        "A job.",
        apiVersion=string("Its version."),
        kind=string("Its kind."),
        namespace=string("Its namespace."),
        name=string("Its name."),
        uid=string("Its UID."),
        resourceVersion=string("Its observed resourceVersion."),
        fieldPath=string("Not used."),
    )
    return struct(
        "The observed state.",
        type=string("The kind of the jobs: Job, BroadcastJob or ImageListPullJob."),
        active=array("The jobs that have not ended.", reference),
        lastScheduleTime=time("The scheduled time of the latest started run."),
    )


LONGEST_NAME = LONGEST_LABEL - len("-1647045420")
"""The most characters of a name: pods have it, a dash and the scheduled time as a label."""

_JUDGED = "spec.template"
"""The path of the pod template in the apiserver's verdict."""


async def mutate(request: Request, tools: Tools) -> Answer:
    """Answer with defaults, as a patch in the version of the request."""
    return defaulted(request, check_types, lambda it: default_cron_job(it.document, it.old, tools.gates))


async def validate(request: Request, tools: Tools) -> Answer:
    """Answer with all field errors at once (422), or warn of accepted settings that will not work as intended."""
    return await review(request, tools, check_types, _findings)


async def _findings(given: Write, tools: Tools) -> Findings:
    write = in_hub(given, to_hub)
    verdict = await _verdict(write, tools)
    warnings = [*_warnings(write.document, write.name, verdict)] if write.old is None else []
    return Findings(rules.validate(write.document, write.name, write.old, verdict.faults), warnings)


async def _verdict(write: Write, tools: Tools) -> Verdict:
    """Return the verdict on the pod template, as if it were a workload's."""
    found = pod_template(mapping(write.document.get("spec")))
    before = pod_template(mapping(write.old.get("spec"))) if write.old else None
    if found is None:
        return Verdict()
    old = _workload(before[1]) if before else None
    return await template_verdict(tools, msgspec.structs.replace(write, document=_workload(found[1]), old=old))


def _workload(pod: Json) -> Json:
    return {"spec": {"template": pod}}


def _warnings(document: Json, name: str, verdict: Verdict) -> Iterator[str]:
    """Yield the warnings about a new object; pod templates never change later."""
    found = pod_template(mapping(document.get("spec")))
    if found is None:
        return
    path, pod = found
    yield from unknown_fields(Verdict(dropped=[place.replace(_JUDGED, path, 1) for place in verdict.dropped]))
    yield from too_long(name, LONGEST_NAME, "the names of its jobs get too long")
    if restart_policy(pod) not in ("Never", "OnFailure"):
        yield f"{path}.spec.restartPolicy is neither Never nor OnFailure: no job can be created with it"


def default_cron_job(document: Json, old: Json | None, gates: Gates) -> Json:
    """Return a new document with defaults, except in templates that an update of `old` leaves unchanged."""
    defaulted = copy.deepcopy(document)
    spec = ensured(defaulted, "spec")
    template = member(spec, "template")
    unchanged = old is not None and member(old, "spec").get("template") == spec.get("template")
    if not unchanged and not gates.on("TemplateNoDefaults"):
        _default_pods(spec, host_ports=gates.on("DefaultHostNetworkHostPortsInPodTemplates"))
    if is_object(images := template.get(rules.IMAGES)):
        _default_pulls(ensured(images, "spec"))
    spec["concurrencyPolicy"] = spec.get("concurrencyPolicy") or (ALLOW if images is None else REPLACE)
    fill(spec, paused=False, successfulJobsHistoryLimit=3, failedJobsHistoryLimit=1)
    return defaulted


def _default_pods(spec: Json, *, host_ports: bool) -> None:
    for name in rules.OF_PODS:
        if is_object(pod := member(spec, "template", name, "spec").get("template")):
            default_template(pod, host_ports=host_ports)
    if is_object(broadcast := member(spec, "template").get(rules.BROADCAST)):
        # Clients written in Go find these two in every stored template.
        ensured(broadcast, "metadata")
        ensured(ensured(broadcast, "spec"), "failurePolicy")


def _default_pulls(spec: Json) -> None:
    """Set default limits, but only in lists without a completion policy."""
    completion = ensured(spec, "completionPolicy")
    if completion.get("type"):
        return
    completion["type"] = ALWAYS
    default_limits(ensured(spec, "pullPolicy"))
    fill_empty(spec, imagePullPolicy="IfNotPresent")


RULES = Rules(schema=version, convert=convert, admission=Admission(mutate=mutate, validate=validate))
