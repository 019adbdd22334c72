"""What ImagePullJob and ImageListPullJob share: the fields besides the images (imagepull.md §2.2)."""

from flotilla_common.api.crds.schema import (
    Schema,
    int_or_string,
    integer,
    label_selector,
    mapping,
    string,
    strings,
    struct,
)


def sandbox_config() -> Schema:
    """Metadata for the container runtime."""
    return struct(
        "Metadata that the container runtime gets with the request to pull.",
        labels=mapping("Labels."),
        annotations=mapping("Annotations."),
    )


def template() -> dict[str, Schema]:
    """The fields by name."""
    policy = struct(
        "The limits on one node.",
        timeoutSeconds=integer("Seconds that one attempt may take. Default: 600."),
        backoffLimit=integer("Attempts after the first one. Default: 3."),
    )
    return {
        "pullSecrets": strings("Names of secrets in the job's namespace with registry credentials."),
        "selector": _node_selector(),
        "podSelector": label_selector("The nodes of these pods of the job's namespace; excludes selector."),
        "parallelism": int_or_string("On how many nodes images are pulled at once; 0 pauses. Default: 1."),
        "pullPolicy": policy,
        "completionPolicy": _completion(),
        "sandboxConfig": sandbox_config(),
        "imagePullPolicy": string("Always or IfNotPresent. Default: IfNotPresent."),
    }


def _node_selector() -> Schema:
    selector = label_selector("The nodes to use, by label or by name. Default: all nodes.")
    names = strings("Exact names of nodes; excludes labels.")
    return selector | {"properties": selector["properties"] | {"names": names}}


def _completion() -> Schema:
    return struct(
        "When the job ends.",
        type=string("Always: the job ends. Never: it stays and serves nodes that come later. Default: Always."),
        activeDeadlineSeconds=integer("Seconds that the job may take; with Always only.", bits=64),
        ttlSecondsAfterFinished=integer("Seconds after its end that the job is deleted; with Always only."),
    )
