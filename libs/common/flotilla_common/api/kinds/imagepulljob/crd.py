"""The ImagePullJob CRD, and the schema that ImageListPullJobs share (imagepull.md §2.2).

Both versions have the same fields; kubectl prints a message in the older one.
"""

from flotilla_common.api.crds.rollout import completion_policy
from flotilla_common.api.crds.schema import (
    Schema,
    int_or_string,
    integer,
    label_selector,
    mapping,
    string,
    strings,
    struct,
    time,
)
from flotilla_common.api.crds.version import AGE, Column, Version

_COLUMNS = (
    Column("TOTAL", "integer", ".status.desired"),
    Column("ACTIVE", "integer", ".status.active"),
    Column("SUCCEED", "integer", ".status.succeeded"),
    Column("FAILED", "integer", ".status.failed"),
    AGE,
)
_MESSAGE = Column("MESSAGE", "string", ".status.message")


def version(name: str) -> Version:
    """Return one version of the CRD."""
    image = string("The image to pull, with tag or digest.")
    spec = struct("The desired state.", ("image", "completionPolicy"), image=image, **template())
    return Version(name, spec, _status(), (*_COLUMNS, _MESSAGE) if name == "v1alpha1" else _COLUMNS)


def _status() -> Schema:
    return struct(
        "The observed state.",
        ("desired",),
        startTime=time("The time of the first reconcile."),
        completionTime=time("The time at which it ended."),
        desired=integer("Nodes that match."),
        active=integer("Nodes that are pulling."),
        succeeded=integer("Nodes that have the image."),
        failed=integer("Nodes that could not pull it."),
        message=string("The progress of the job."),
        failedNodes=strings("The nodes that could not pull it."),
    )


def sandbox_config() -> Schema:
    """Return the schema of metadata for the container runtime."""
    return struct(
        "Metadata for the container runtime, sent with the pull request.",
        labels=mapping("Labels."),
        annotations=mapping("Annotations."),
    )


def template() -> dict[str, Schema]:
    """Return the fields that ImageListPullJobs have too, by name."""
    policy = struct(
        "The limits on one node.",
        timeoutSeconds=integer("Seconds that one attempt may take. Default: 600."),
        backoffLimit=integer("Attempts after the first one. Default: 3."),
    )
    return {
        "pullSecrets": strings("Names of secrets in the job's namespace with registry credentials."),
        "selector": _node_selector(),
        "podSelector": label_selector("The nodes of these pods of the job's namespace; excludes selector."),
        "parallelism": int_or_string("The maximum number of nodes that pull at once; 0 pauses. Default: 1."),
        "pullPolicy": policy,
        "completionPolicy": completion_policy(),
        "sandboxConfig": sandbox_config(),
        "imagePullPolicy": string("Always or IfNotPresent. Default: IfNotPresent."),
    }


def _node_selector() -> Schema:
    selector = label_selector("The nodes to use, by label or by name. Default: all nodes.")
    names = strings("Exact names of nodes; excludes labels.")
    return selector | {"properties": selector["properties"] | {"names": names}}
