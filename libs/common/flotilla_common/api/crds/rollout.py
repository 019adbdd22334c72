"""Schemas that the specs of several workload kinds share (common.md §8.1, §11, §12)."""

from flotilla_common.api.crds.schema import (
    Schema,
    array,
    boolean,
    int_or_string,
    integer,
    label_selector,
    mapping,
    string,
    strings,
    struct,
)


def update_strategy(rolling: Schema) -> Schema:
    """Return the schema of the update strategy, given that of its rolling update."""
    return struct(
        "The update strategy.",
        type=string("RollingUpdate, or OnDelete: only deleted pods are replaced. Default: RollingUpdate."),
        rollingUpdate=rolling,
    )


def completion_policy() -> Schema:
    """Return the schema of the completion policy of a job with a pod or a pull on each node."""
    return struct(
        "The end of the job.",
        type=string("Always: the job ends. Never: it stays and serves nodes that come later. Default: Always."),
        activeDeadlineSeconds=integer("Seconds that the job may take; with Always only.", bits=64),
        ttlSecondsAfterFinished=integer("Seconds after its end that the job is deleted; with Always only."),
    )


def lifecycle() -> Schema:
    """Return the schema of the lifecycle hooks of a pod."""
    return struct(
        "Hooks that hold a pod in a state until the user removes the label or finalizer.",
        preDelete=_hook("Held before the pod is deleted."),
        inPlaceUpdate=_hook("Held before the pod is updated in place, and until the hook is back after it."),
        preNormal=_hook("Held after creation, before the pod counts as available."),
    )


def priority_strategy() -> Schema:
    """Return the schema of the order of an update."""
    weight = struct(
        "Pods that match get this weight.",
        weight=integer("0 to 100; the pods with the larger sum come first."),
        matchSelector=label_selector("The pods that get the weight."),
    )
    key = struct(
        "Pods with this label, by the number at the end of its value, larger first.",
        orderedKey=string("The label's key."),
    )
    return struct(
        "The order of pods in an update; one of the two lists.",
        weightPriority=array("By the sum of weights.", weight),
        orderPriority=array("By the number in a label; earlier keys go before later ones.", key),
    )


def scatter_strategy() -> Schema:
    """Return the schema of the labels that are spread over the order of an update."""
    term = struct("One label to spread.", key=string("The label's key."), value=string("The label's value."))
    return array("Labels whose pods are spread evenly over the order of the update.", term)


def in_place_strategy() -> Schema:
    """Return the schema of the settings of in-place updates."""
    return struct(
        "The settings of in-place updates.",
        gracePeriodSeconds=integer("Seconds between marking a pod not ready and changing its images. Default: 0."),
        imagePreDownloadParallelism=int_or_string("The maximum number of nodes that pull new images ahead at once."),
        imagePreDownloadTimeoutSeconds=integer("Seconds after which such a pull times out."),
        imagePreDownloadMinUpdatedReadyPods=integer("Pulls begin when this many updated pods are ready."),
    )


def _hook(doc: str) -> Schema:
    return struct(
        doc,
        labelsHandler=mapping("The hook holds a pod while it has one of these labels with this value."),
        finalizersHandler=strings("The hook holds a pod while it has one of these finalizers."),
        markPodNotReady=boolean("Whether the pod is made not ready while it is held. Default: false."),
    )
