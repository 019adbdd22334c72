"""The ImageListPullJob CRD (imagepull.md §2.3). Both versions are the same."""

from flotilla_common.api.crds.schema import Schema, array, integer, string, strings, struct, time
from flotilla_common.api.crds.version import AGE, Column, Version
from flotilla_common.api.kinds.imagepulljob import crd as imagepull

_COLUMNS = (
    Column("TOTAL", "integer", ".status.desired"),
    Column("SUCCEEDED", "integer", ".status.succeeded"),
    Column("COMPLETED", "integer", ".status.completed"),
    AGE,
)


def version(name: str) -> Version:
    """Return one version of the CRD."""
    return Version(name, spec(), _status(), _COLUMNS)


def spec() -> Schema:
    """Return the schema of the spec, which is also in an AdvancedCronJob's template."""
    images = strings("The images to pull; at most 255.")
    return struct("The desired state.", ("images", "completionPolicy"), images=images, **imagepull.template())


def _status() -> Schema:
    failure = struct(
        "One image that could not be pulled on every node.",
        imagePullJob=string("The job of the image."),
        name=string("The image."),
        message=string("A hint to the details."),
    )
    return struct(
        "The observed state.",
        ("desired",),
        startTime=time("The time of the first reconcile."),
        completionTime=time("The time at which it ended."),
        desired=integer("Images in the list."),
        active=integer("Images that are being pulled."),
        completed=integer("Images whose nodes have all succeeded or failed."),
        succeeded=integer("Images that every node has."),
        failedImageStatuses=array("Images that failed somewhere.", failure),
    )
