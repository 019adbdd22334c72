"""The NodeImage CRD (imagepull.md §2.1). v1alpha1 only lacks the mode of a pull secret."""

from flotilla_common.api.crds.schema import Schema, array, dictionary, integer, string, struct, time
from flotilla_common.api.crds.version import AGE, Column, Version
from flotilla_common.api.kinds.imagepulljob.crd import sandbox_config

_COLUMNS = (
    Column("DESIRED", "integer", ".status.desired"),
    Column("PULLING", "integer", ".status.pulling"),
    Column("SUCCEED", "integer", ".status.succeeded"),
    Column("FAILED", "integer", ".status.failed"),
    AGE,
)


def version(name: str) -> Version:
    """Return one version of the CRD."""
    mode = string("Empty for a user's secret, batch for a copy that Flotilla made.")
    return Version(name, _spec({} if name == "v1alpha1" else {"mode": mode}), _status(), _COLUMNS)


def _spec(secret_fields: dict[str, Schema]) -> Schema:
    secret = struct(
        "One secret with registry credentials.",
        namespace=string("The secret's namespace."),
        name=string("The secret's name."),
        **secret_fields,
    )
    image = struct(
        "The desired tags of one image.",
        ("tags",),
        pullSecrets=array("Registry credentials for all tags of the image.", secret),
        tags=array("The tags to pull, in ascending order.", _tag()),
        sandboxConfig=sandbox_config(),
    )
    return struct("The desired state.", images=dictionary("Images by familiar name; at most 256.", image))


def _tag() -> Schema:
    owner = struct(
        "One job that needs the tag.",
        apiVersion=string("The job's API version."),
        kind=string("The job's kind."),
        namespace=string("The job's namespace."),
        name=string("The job's name."),
        uid=string("The job's uid, which identifies it."),
        resourceVersion=string("Not used."),
        fieldPath=string("Not used."),
    )
    policy = struct(
        "The limits of the pull.",
        timeoutSeconds=integer("Seconds that one attempt may take. Default: 600."),
        backoffLimit=integer("Attempts after the first one. Default: 3."),
        ttlSecondsAfterFinished=integer("Seconds after its end that the tag leaves this list; required."),
        activeDeadlineSeconds=integer("Seconds that all attempts together may take.", bits=64),
    )
    return struct(
        "One pull.",
        ("tag",),
        tag=string("A tag, or a digest (sha256:…)."),
        createdAt=time("The creation time of this round."),
        version=integer("The number of the round; a higher one pulls again.", bits=64),
        imagePullPolicy=string("IfNotPresent skips an image that is there; anything else pulls."),
        ownerReferences=array("The jobs that need the tag; it is removed with the last of them.", owner),
        pullPolicy=policy,
    )


def _status() -> Schema:
    tag = struct(
        "The progress of one pull.",
        ("tag", "phase"),
        tag=string("The tag or digest."),
        phase=string("Waiting, Pulling, Succeeded or Failed."),
        progress=integer("0 to 100."),
        startTime=time("The start of the pull."),
        completionTime=time("The time of its final success or failure."),
        version=integer("The round that this entry refers to.", bits=64),
        imageID=string("The image's ID in the container runtime."),
        message=string("The reason of the failure."),
    )
    image = struct("The pulls of one image.", tags=array("By tag, in ascending order.", tag))
    first_sync = struct(
        "Obsolete; not written.",
        syncAt=time("The time."),
        status=string("Succeeded or Failed."),
        message=string("The reason of the failure."),
    )
    return struct(
        "The report of the node.",
        ("desired",),
        desired=integer("Tags that the node should pull."),
        succeeded=integer("Tags that are there."),
        failed=integer("Tags that could not be pulled."),
        pulling=integer("Tags that are being pulled."),
        waiting=integer("Tags that wait for their turn."),
        imageStatuses=dictionary("Pulls by familiar image name.", image),
        firstSyncStatus=first_sync,
    )
