"""The child of a run (advancedcronjob.md §4.5). Its name is made from the time that the run is due at, so that no run
is started twice, whatever a replica has seen of the others."""

from datetime import datetime, tzinfo
from typing import Any, cast

import msgspec

from flotilla_common.api.documents import Json
from flotilla_common.api.kinds.advancedcronjob.types import ADVANCED_CRON_JOB, SCHEDULED_AT, AdvancedCronJob
from flotilla_common.api.kinds.broadcastjob.types import BROADCAST_JOB
from flotilla_common.api.resources import JOB
from flotilla_common.control.plan import Create, Intent
from flotilla_common.control.writes import create_of
from flotilla_common.workload.ownership import owner_reference

CREATION = "create"
"""The phase of the write that starts a run."""

LONGEST_NAME = 63
"""Characters in the names of Jobs and BroadcastJobs: their pods have them in a label."""


def child_name(job: AdvancedCronJob, run: datetime) -> str:
    """The name of the child for a run."""
    return f"{job.metadata.name}-{int(run.timestamp())}"


def has_long_names(job: AdvancedCronJob, run: datetime) -> bool:
    """The apiserver will refuse the children for their names."""
    labelled = job.spec.template.chosen[0] in (JOB, BROADCAST_JOB)
    return labelled and len(child_name(job, run)) > LONGEST_NAME


def creation(job: AdvancedCronJob, run: datetime, local: tzinfo) -> Create:
    """The write that starts a run. `local`: the zone in which the child says when it was due."""
    resource, raw = job.spec.template.chosen
    template = _mapping(msgspec.json.decode(raw) if bytes(raw) else None)
    given = _mapping(template.get("metadata"))
    due = run.astimezone(local).isoformat(timespec="seconds").replace("+00:00", "Z")
    body: Json = {
        **resource.type_meta,
        "metadata": {
            "name": child_name(job, run),
            "namespace": job.metadata.namespace,
            "labels": _mapping(given.get("labels")),
            "annotations": {**_mapping(given.get("annotations")), SCHEDULED_AT: due},
            "ownerReferences": [owner_reference(ADVANCED_CRON_JOB, job.metadata)],
        },
        "spec": _mapping(template.get("spec")),
    }
    return create_of(resource, body, Intent.CREATE, f"run of {due}", phase=CREATION)


def _mapping(value: Any) -> Json:
    """The object; users may have written anything in its place, or nothing."""
    return cast("Json", value) if isinstance(value, dict) else {}
