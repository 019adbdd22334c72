"""Partial types of core/v1 and apps/v1: Pod, PersistentVolumeClaim, Node, Namespace, ControllerRevision.

Pods cache the facts that every plan needs, so that planning a large workload reads each pod's labels and conditions
once per version of the pod, not once per pass.
"""

from datetime import datetime
from functools import lru_cache
from typing import Any

import msgspec

from flotilla_common.api.keys import REVISION_LABEL, STATE_LABEL
from flotilla_common.api.meta import Condition, Model, Moment, ObjectMeta, struct_cached_property
from flotilla_common.api.scheduling import Affinity, Taint, Toleration


class FieldRef(Model):
    field_path: str = ""


class KeyRef(Model):
    name: str = ""
    key: str = ""


class EnvSource(Model):
    field_ref: FieldRef | None = None
    config_map_key_ref: KeyRef | None = None


class Env(Model):
    name: str = ""
    value: str = ""
    value_from: EnvSource | None = None


class Resources(Model):
    """Quantities by resource name, as written (strings, or numbers in hand-written templates)."""

    limits: dict[str, str | int | float] = {}
    requests: dict[str, str | int | float] = {}


class ResizePolicy(Model):
    resource_name: str = ""
    restart_policy: str = ""


class HttpGet(Model):
    path: str = ""
    port: int | str = ""


class PortAction(Model):
    port: int | str = ""


class ExecAction(Model):
    command: list[str] = []


class Probe(Model):
    """A kubelet's probe of a container; exactly one member is set."""

    http_get: HttpGet | None = None
    tcp_socket: PortAction | None = None
    grpc: PortAction | None = None
    exec: ExecAction | None = None


class ContainerPort(Model):
    name: str = ""
    container_port: int = 0


class Container(Model):
    name: str = ""
    image: str = ""
    env: list[Env] = []
    ports: list[ContainerPort] = []
    resources: Resources = Resources()
    resize_policy: list[ResizePolicy] = []
    restart_policy: str = ""  # Always on an init container makes it a restartable sidecar
    readiness_probe: Probe | None = None
    startup_probe: Probe | None = None


class EphemeralContainer(Model):
    """A container that was added to a running pod; it cannot be changed, restarted or removed."""

    name: str = ""
    image: str = ""
    env: list[Env] = []


class ReadinessGate(Model):
    condition_type: str = ""


class SchedulingGate(Model):
    name: str = ""


class ClaimSource(Model):
    claim_name: str = ""


class Volume(Model):
    name: str = ""
    persistent_volume_claim: ClaimSource | None = None


class PodSpec(Model):
    node_name: str = ""
    node_selector: dict[str, str] = {}
    affinity: Affinity | None = None
    tolerations: list[Toleration] = []
    overhead: dict[str, str | int | float] = {}  # quantities by resource name, from the RuntimeClass
    resources: Resources = Resources()  # of the pod as a whole: they override those of its containers
    scheduler_name: str = ""
    scheduling_gates: list[SchedulingGate] = []
    restart_policy: str = ""  # Always, OnFailure, Never
    volumes: list[Volume] = []
    containers: list[Container] = []
    init_containers: list[Container] = []
    ephemeral_containers: list[EphemeralContainer] = []
    readiness_gates: list[ReadinessGate] = []


class RunningState(Model):
    started_at: Moment | None = None


class WaitingState(Model):
    reason: str = ""  # ImagePullBackOff, CrashLoopBackOff, ContainerCreating …
    message: str = ""


class TerminatedState(Model):
    exit_code: int = 0
    signal: int = 0  # set by few runtimes; most have 128 + signal as exit code
    reason: str = ""  # Error, Completed, OOMKilled, StartError …
    message: str = ""  # content of the termination message file, or why the container could not be started
    started_at: Moment | None = None
    finished_at: Moment | None = None


class ContainerState(Model):
    running: RunningState | None = None
    waiting: WaitingState | None = None
    terminated: TerminatedState | None = None


class ContainerStatus(Model):
    name: str = ""
    image: str = ""
    image_id: str = msgspec.field(default="", name="imageID")
    container_id: str = msgspec.field(default="", name="containerID")
    ready: bool = False
    started: bool | None = None  # its startup probe succeeded, or it has none and runs
    restart_count: int = 0
    resources: Resources | None = None
    state: ContainerState = ContainerState()
    last_state: ContainerState = ContainerState()  # of the container before this one


class PodStatus(Model):
    observed_generation: int = 0  # of the spec that the kubelet had when it wrote this; 0 before Kubernetes 1.34
    phase: str = ""
    reason: str = ""  # why the kubelet failed the pod: Evicted, OutOfcpu, NodeAffinity …
    message: str = ""
    conditions: list[Condition] = []
    container_statuses: list[ContainerStatus] = []
    init_container_statuses: list[ContainerStatus] = []
    ephemeral_container_statuses: list[ContainerStatus] = []
    pod_ip: str = msgspec.field(default="", name="podIP")


@lru_cache(maxsize=1024)
def _set_of(types: tuple[str, ...]) -> frozenset[str]:
    """Return the set of these types: one for all pods that have them."""
    return frozenset(types)


class Pod(Model, dict=True):
    """A pod with the facts that planning needs (common.md §5)."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @struct_cached_property
    def conditions(self) -> dict[str, Condition]:
        """Return the conditions by type."""
        return {condition.type: condition for condition in self.status.conditions}

    @struct_cached_property
    def active(self) -> bool:
        """Report whether the pod is neither terminating nor finished."""
        return self.metadata.deletion_timestamp is None and self.status.phase not in ("Succeeded", "Failed")

    @struct_cached_property
    def ready(self) -> bool:
        """Report whether condition Ready is True."""
        condition = self.conditions.get("Ready")
        return condition is not None and condition.status == "True"

    @struct_cached_property
    def ready_since(self) -> datetime | None:
        """Return the last transition time of Ready if it is True, else None."""
        return self.conditions["Ready"].last_transition_time if self.ready else None

    @struct_cached_property
    def gates(self) -> frozenset[str]:
        """Return the condition types of the declared readiness gates."""
        return _set_of(tuple(gate.condition_type for gate in self.spec.readiness_gates))

    @struct_cached_property
    def memo(self) -> dict[str, Any]:
        """Return the cache in which planners keep values derived from this version of the pod."""
        return {}

    @struct_cached_property
    def revision(self) -> str:
        """Return the label `controller-revision-hash`; empty if missing."""
        return self.metadata.labels.get(REVISION_LABEL, "")

    @struct_cached_property
    def state(self) -> str:
        """Return the lifecycle state; empty if the pod has none, which counts as Normal (common.md §8.2)."""
        return self.metadata.labels.get(STATE_LABEL, "")


class ClaimSpec(Model):
    access_modes: list[str] = []
    storage_class_name: str | None = None
    resources: Resources = Resources()


class ClaimStatus(Model):
    phase: str = ""
    capacity: dict[str, str | int | float] = {}
    conditions: list[Condition] = []


class ConfigMap(Model):
    metadata: ObjectMeta = ObjectMeta()
    data: dict[str, str] = {}


class PersistentVolumeClaim(Model, dict=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: ClaimSpec = ClaimSpec()
    status: ClaimStatus = ClaimStatus()

    @struct_cached_property
    def memo(self) -> dict[str, Any]:
        """Return the cache in which planners keep values derived from this version of the claim."""
        return {}


class StorageClass(Model):
    metadata: ObjectMeta = ObjectMeta()
    allow_volume_expansion: bool | None = None


class NodeSpec(Model):
    taints: list[Taint] = []
    unschedulable: bool = False


class NodeStatus(Model):
    conditions: list[Condition] = []
    allocatable: dict[str, str | int | float] = {}  # quantities by resource name


class Node(Model):
    metadata: ObjectMeta = ObjectMeta()
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()

    @property
    def ready(self) -> Condition | None:
        """Return condition Ready if it is True, else None."""
        found = (condition for condition in self.status.conditions if condition.type == "Ready")
        return next((condition for condition in found if condition.status == "True"), None)


class Namespace(Model):
    metadata: ObjectMeta = ObjectMeta()


class ControllerRevision(Model):
    """A stored template; `data` stays raw because its bytes are compared and hashed."""

    metadata: ObjectMeta = ObjectMeta()
    revision: int = 0
    data: msgspec.Raw = msgspec.Raw(b"null")


class Secret(Model):
    """A Secret; the values of `data` stay base64, as in the API."""

    metadata: ObjectMeta = ObjectMeta()
    type: str = ""
    data: dict[str, str] = {}
    immutable: bool = False
