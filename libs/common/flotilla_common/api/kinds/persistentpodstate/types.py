"""PersistentPodState in its hub and storage version, apps.kruise.io/v1beta1, and the kinds of workloads with pod state.

These are StatefulSets, and kinds that administrators list in the ConfigMap `kruise-configuration` of the system's
namespace, which is read for each decision (persistentpodstate.md §2, §3, §7).
"""

from collections.abc import Collection, Mapping

import msgspec

from flotilla_common.api.documents import text
from flotilla_common.api.meta import Model, ObjectMeta, TargetRef, group_of
from flotilla_common.api.resources import Resource
from flotilla_common.api.whitelists import listed

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


WHITE_LIST = "PPS_Watch_Custom_Workload_WhiteList"
"""The key in the ConfigMap."""

_STATEFUL_SETS = (("apps", "StatefulSet"), ("apps.kruise.io", "StatefulSet"))


class CustomWorkload(msgspec.Struct, frozen=True):
    """A kind whose pods are numbered like those of a StatefulSet."""

    group: str
    version: str
    kind: str


def custom_workloads(configuration: Mapping[str, str]) -> list[CustomWorkload]:
    """Return the kinds in the data of the ConfigMap; empty without the key. Raises ValueError if unreadable."""
    entries = listed(configuration, WHITE_LIST)
    return [CustomWorkload(*(text(entry.get(key)) for key in ("group", "version", "kind"))) for entry in entries]


def supported(api_version: str, kind: str, custom: Collection[CustomWorkload]) -> bool:
    """Report whether the state of such a workload's pods is recorded. Its version does not matter."""
    workload = group_of(api_version), kind
    return workload in _STATEFUL_SETS or workload in {(one.group, one.kind) for one in custom}
