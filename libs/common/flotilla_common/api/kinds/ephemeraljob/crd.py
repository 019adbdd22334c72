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
        "What is wanted.",
        ("selector", "template"),
        selector=label_selector("The pods of the namespace that get the containers."),
        replicas=integer("At most that many pods get them. Default: all that match."),
        parallelism=integer("Pods whose containers of the job are at work at once; 0 starts none. Default: 1."),
        template=_template(),
        paused=boolean("Puts containers into no more pods. Default: false."),
        activeDeadlineSeconds=integer("Seconds that the job may take.", bits=64),
        ttlSecondsAfterFinished=integer("Seconds after its end that the job is deleted. Default: 1800."),
    )


def _template() -> Schema:
    container = anything("An ephemeral container; name, image and both policies are needed.")
    return struct(
        "What pods get.",
        ("ephemeralContainers",),
        ephemeralContainers=array("The containers, all of which go into a pod at once.", container),
    )


def _status() -> Schema:
    return struct(
        "What was last seen; all counts are pods.",
        conditions=job_conditions("Initialized, MatchedEmpty, JobSucceeded, JobFailed, JobError."),
        startTime=time("When the job was first looked at."),
        completionTime=time("When it ended."),
        phase=string("Waiting, Running, Succeeded, Failed, Paused, Error or Unknown."),
        match=integer("Pods that the job is about."),
        running=integer("Pods whose containers run."),
        succeeded=integer("Pods whose containers have all succeeded."),
        waiting=integer("Pods whose containers wait to run."),
        failed=integer("Pods with a container that failed."),
    )
