"""NodePodProbe, apps.kruise.io/v1alpha1: the probes that one node's agent runs, and their results.

See podprobemarker.md §2.2. It has the node's name; users do not write it.
"""

import msgspec

from flotilla_common.api.meta import Model, Moment, ObjectMeta
from flotilla_common.api.resources import Resource

NODE_POD_PROBE = Resource("apps.kruise.io", "v1alpha1", "nodepodprobes", "NodePodProbe", namespaced=False)

SUCCEEDED, FAILED, UNKNOWN = "Succeeded", "Failed", "Unknown"

MESSAGE_BYTES = 1024
"""The longest message of a result."""

PROBES_PER_POD, PROBES_PER_NODE = 16, 1024
"""The most probes of one pod, and of all pods of a node. An agent runs the first ones of the list."""

PROBE_BYTES = 32 << 10
"""The longest probe, as JSON. An agent does not run a longer one."""

SPEC_BYTES, MESSAGES_BYTES = 384 << 10, 256 << 10
"""The most bytes that a node's probes, and messages of results, take in a NodePodProbe.

An object of more than 1 MiB fits neither into a report nor, eventually, into etcd.
"""

SEPARATOR = "#"
"""The separator between the name of a PodProbeMarker and that of its probe."""


def joined(marker: str, probe: str) -> str:
    """Return the name that a probe of a PodProbeMarker has in NodePodProbes."""
    return f"{marker}{SEPARATOR}{probe}"


def split(name: str) -> tuple[str, str]:
    """Return the names of the PodProbeMarker and of its probe."""
    marker, _, probe = name.partition(SEPARATOR)
    return marker, probe


class HttpHeader(Model):
    name: str = ""
    value: str = ""


class HttpAction(Model):
    path: str = ""
    port: int | str = 0
    host: str = ""  # refused: a probe goes to the pod's own IP
    scheme: str = ""
    http_headers: list[HttpHeader] = []


class TcpAction(Model):
    port: int | str = 0
    host: str = ""  # refused, likewise


class ExecAction(Model):
    command: list[str] = []


class ProbeSpec(Model):
    """A probe as in Kubernetes. Numbers that are 0 mean 1."""

    exec: ExecAction | None = None
    http_get: HttpAction | None = None
    tcp_socket: TcpAction | None = None
    initial_delay_seconds: int = 0
    timeout_seconds: int = 0
    period_seconds: int = 0
    success_threshold: int = 0
    failure_threshold: int = 0


class NodeProbe(Model):
    """One probe of one container; the name is `<PodProbeMarker>#<probe>`."""

    name: str = ""
    container_name: str = ""
    probe: msgspec.Raw = msgspec.Raw(b"{}")  # a `ProbeSpec`, kept as the PodProbeMarker has it


class PodProbe(Model):
    """The probes of one pod."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    ip: str = msgspec.field(default="", name="IP")
    probes: list[NodeProbe] = []


class NodePodProbeSpec(Model):
    pod_probes: list[PodProbe] = []


class ProbeState(Model):
    """The result of one probe."""

    name: str = ""
    state: str = ""
    last_probe_time: Moment | None = None
    last_transition_time: Moment | None = None
    message: str = ""


class PodProbeStatus(Model):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    probe_states: list[ProbeState] = []


class NodePodProbeStatus(Model):
    pod_probe_statuses: list[PodProbeStatus] = []


class NodePodProbe(Model):
    metadata: ObjectMeta = ObjectMeta()
    spec: NodePodProbeSpec = NodePodProbeSpec()
    status: NodePodProbeStatus = NodePodProbeStatus()

    def results_of(self, uid: str) -> list[ProbeState]:
        """Return the results of the pod."""
        return [state for pod in self.status.pod_probe_statuses if pod.uid == uid for state in pod.probe_states]
