"""Schemas that several kinds share: of rollouts (common.md §8.1, §11, §12), and of a core Probe."""

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


def probe(doc: str) -> Schema:
    """Return the schema of a probe. gRPC is in the schema and refused by admission (podprobemarker.md §2.1)."""
    return struct(
        doc,
        exec=struct("A command in the container.", command=strings("Program and arguments; there is no shell.")),
        httpGet=_http_get(),
        tcpSocket=struct(
            "A connection to the pod's IP.",
            ("port",),
            port=int_or_string("A number between 1 and 65535, or the name of a port of the container."),
            host=string("Must not be set: probes go to the pod's own IP."),
        ),
        grpc=struct(
            "Not supported.",
            ("port",),
            port=integer("The number of the port."),
            service=string("The name of the service."),
        ),
        initialDelaySeconds=integer("Seconds after the start of the container until it is probed. Default: 1."),
        timeoutSeconds=integer("Seconds that a probe may take. Default: 1."),
        periodSeconds=integer("Seconds between two probes. Default: 1."),
        successThreshold=integer("Successes in a row until the result is Succeeded. Default: 1."),
        failureThreshold=integer("Failures in a row until the result is Failed. Default: 1."),
        terminationGracePeriodSeconds=integer("Ignored.", bits=64),
    )


def _http_get() -> Schema:
    header = struct(
        "One header.", ("name", "value"), name=string("The header's name; not Host."), value=string("Its value.")
    )
    return struct(
        "A GET request to the pod's IP.",
        ("port",),
        path=string("The path of the request."),
        port=int_or_string("A number between 1 and 65535, or the name of a port of the container."),
        host=string("Must not be set: probes go to the pod's own IP."),
        scheme=string("HTTP or HTTPS; must be set. Certificates are not verified."),
        httpHeaders=array("Headers of the request.", header),
    )
