"""PersistentPodState in its hub and storage version, apps.kruise.io/v1beta1 (persistentpodstate.md §2)."""

from flotilla_common.api.meta import Model, ObjectMeta, TargetRef
from flotilla_common.api.resources import Resource

PERSISTENT_POD_STATE = Resource("apps.kruise.io", "v1beta1", "persistentpodstates", "PersistentPodState")


class Topology(Model):
    """Labels of nodes, by key."""

    keys: list[str] = []


class PreferredTopology(Model):
    weight: int = 0
    preference: Topology = Topology()


class PersistentPodAnnotation(Model):
    key: str = ""


class PersistentPodStateSpec(Model):
    target_ref: TargetRef = TargetRef()
    required_persistent_topology: Topology | None = None
    preferred_persistent_topology: list[PreferredTopology] = []
    persistent_pod_annotations: list[PersistentPodAnnotation] = []
    persistent_pod_state_retention_policy: str = ""  # WhenScaled, WhenDeleted; empty is WhenScaled


class PodState(Model):
    """The node of a pod when it was last ready."""

    node_name: str = ""
    node_topology_labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class PersistentPodStateStatus(Model):
    observed_generation: int = 0
    pod_states: dict[str, PodState] = {}


class PersistentPodState(Model):
    metadata: ObjectMeta = ObjectMeta()
    spec: PersistentPodStateSpec = PersistentPodStateSpec()
    status: PersistentPodStateStatus = PersistentPodStateStatus()
