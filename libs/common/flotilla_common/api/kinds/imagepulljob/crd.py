"""The ImagePullJob CRD (imagepull.md §2.2). Both versions have the same fields; the older one prints a message."""

from flotilla_common.api.crds.schema import Schema, integer, string, strings, struct, time
from flotilla_common.api.crds.version import AGE, Column, Version
from flotilla_common.api.kinds.imagepulljob import template_schema as imagepull

_COLUMNS = (
    Column("TOTAL", "integer", ".status.desired"),
    Column("ACTIVE", "integer", ".status.active"),
    Column("SUCCEED", "integer", ".status.succeeded"),
    Column("FAILED", "integer", ".status.failed"),
    AGE,
)
_MESSAGE = Column("MESSAGE", "string", ".status.message")


def version(name: str) -> Version:
    """One version of the CRD."""
    image = string("The image to pull, with tag or digest.")
    spec = struct("What is wanted.", ("image", "completionPolicy"), image=image, **imagepull.template())
    return Version(name, spec, _status(), (*_COLUMNS, _MESSAGE) if name == "v1alpha1" else _COLUMNS)


def _status() -> Schema:
    return struct(
        "What was last seen.",
        ("desired",),
        startTime=time("When the job was first looked at."),
        completionTime=time("When it ended."),
        desired=integer("Nodes that it is about."),
        active=integer("Nodes that are pulling."),
        succeeded=integer("Nodes that have the image."),
        failed=integer("Nodes that could not pull it."),
        message=string("How far the job is."),
        failedNodes=strings("The nodes that could not pull it."),
    )
