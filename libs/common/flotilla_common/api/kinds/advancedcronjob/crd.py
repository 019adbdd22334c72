"""The AdvancedCronJob CRD (advancedcronjob.md §1 and §2). v1alpha1 has no template of ImageListPullJobs."""

from flotilla_common.api.crds.schema import Schema, anything, array, boolean, integer, string, struct, time
from flotilla_common.api.crds.version import Column, Version
from flotilla_common.api.kinds.advancedcronjob.types import ALLOW, FORBID, REPLACE
from flotilla_common.api.kinds.broadcastjob import api as broadcastjob
from flotilla_common.api.kinds.imagelistpulljob import api as imagelistpulljob

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
