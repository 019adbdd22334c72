"""The EphemeralJob CRD (ephemeraljob.md §1 and §2), of one version."""

from flotilla_common.api.crds.schema import (
    Schema,
    anything,
    array,
    boolean,
    integer,
    job_conditions,
    label_selector,
    string,
    struct,
    time,
)
from flotilla_common.api.crds.version import AGE, Column, Version

_COLUMNS = (
    Column("STATUS", "string", ".status.phase"),
    Column("MATCH", "integer", ".status.match"),
    Column("SUCCEED", "integer", ".status.succeeded"),
    Column("FAILED", "integer", ".status.failed"),
    Column("RUNNING", "integer", ".status.running"),
    Column("WAITING", "integer", ".status.waiting"),
    AGE,
)


def version(name: str) -> Version:
    """Return one version of the CRD."""
    return Version(name, _spec(), _status(), _COLUMNS)


def _spec() -> Schema:
    return struct(
        "The desired state.",
        ("selector", "template"),
        selector=label_selector("The pods of the namespace that get the containers."),
        replicas=integer("The maximum number of pods that get them. Default: all that match."),
        parallelism=integer("The maximum number of pods whose containers run at once; 0 starts none. Default: 1."),
        template=_template(),
        paused=boolean("Stops adding containers to pods. Default: false."),
        activeDeadlineSeconds=integer("Seconds that the job may take.", bits=64),
        ttlSecondsAfterFinished=integer("Seconds after its end that the job is deleted. Default: 1800."),
    )


def _template() -> Schema:
    container = anything("An ephemeral container; name, image and both policies are needed.")
    return struct(
        "The containers to add.",
        ("ephemeralContainers",),
        ephemeralContainers=array("The containers; a pod gets all of them at once.", container),
    )


def _status() -> Schema:
    return struct(
        "The observed state; all counts are pods.",
        conditions=job_conditions("Initialized, MatchedEmpty, JobSucceeded, JobFailed, JobError."),
        startTime=time("The time of the first reconcile."),
        completionTime=time("The time at which it ended."),
        phase=string("Waiting, Running, Succeeded, Failed, Paused, Error or Unknown."),
        match=integer("Pods that match."),
        running=integer("Pods whose containers run."),
        succeeded=integer("Pods whose containers have all succeeded."),
        waiting=integer("Pods whose containers wait to run."),
        failed=integer("Pods with a container that failed."),
    )
