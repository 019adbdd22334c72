"""The API of NodePodProbes: a schema in one version, and no admission (podprobemarker.md §1, §2.2, §3)."""

from flotilla_common.api.crds.schema import Schema, Version, array, string, struct, time
from flotilla_common.api.crds.shared import probe
from flotilla_common.api.kinds.rules import Rules

_POD = {
    "name": string("The pod's name."),
    "namespace": string("The pod's namespace."),
    "uid": string("The pod's identity."),
}


def version(name: str) -> Version:
    """Return one version of the CRD."""
    return Version(name, _spec_schema(), _status_schema())


def _spec_schema() -> Schema:
    one = struct(
        "One probe of one container.",
        ("name", "containerName", "probe"),
        name=string("<PodProbeMarker>#<probe>."),
        containerName=string("The container that is probed."),
        probe=probe("The probe; ports are numbers."),
    )
    pod = struct(
        "The probes of one pod.",
        ("name", "namespace", "uid", "IP"),
        **_POD,
        IP=string("The pod's IP; empty until it is known."),
        probes=array("Its probes.", one),
    )
    return struct("The tasks of the node's agent.", podProbes=array("The probes, by pod.", pod))


def _status_schema() -> Schema:
    state = struct(
        "The result of one probe.",
        ("name", "state"),
        name=string("<PodProbeMarker>#<probe>."),
        state=string("Succeeded, Failed or Unknown."),
        lastProbeTime=time("The time of the probe; not written for every one."),
        lastTransitionTime=time("When the state last changed."),
        message=string("The output of the probe, at most 1024 bytes."),
    )
    pod = struct(
        "The results of one pod.",
        ("name", "namespace", "uid"),
        **_POD,
        probeStates=array("The results of its probes.", state),
    )
    return struct("The report of the node's agent.", podProbeStatuses=array("The results, by pod.", pod))


RULES = Rules(schema=version)
