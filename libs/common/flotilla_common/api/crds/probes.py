"""The schema of a core Probe, which PodProbeMarkers and NodePodProbes share."""

from flotilla_common.api.crds.schema import Schema, array, int_or_string, integer, string, strings, struct


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
