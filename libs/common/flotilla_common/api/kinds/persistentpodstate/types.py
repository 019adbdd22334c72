"""PersistentPodState in its hub and storage version, apps.kruise.io/v1beta1, and the kinds of workloads with pod state.

These are StatefulSets, and kinds that administrators list in the ConfigMap `kruise-configuration` of the system's
namespace, which is read for each decision (persistentpodstate.md §2, §3, §7).
"""

from collections.abc import Collection, Mapping

import msgspec

from flotilla_common.api.documents import Json, mapping, mappings, text
from flotilla_common.api.jsontext import read_json
from flotilla_common.api.keys import CONFIGURATION
from flotilla_common.api.meta import Model, ObjectMeta, TargetRef, group_of
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
    written = configuration.get(WHITE_LIST)
    if not written:
        return []
    try:
        document = _lower(read_json(written, Json))
    except ValueError as error:
        raise ValueError(f"{WHITE_LIST} of ConfigMap {CONFIGURATION} cannot be read: {error}") from error
    entries = [_lower(entry) for entry in mappings(document.get("workloads"))]
    return [CustomWorkload(*(text(entry.get(key)) for key in ("group", "version", "kind"))) for entry in entries]


def supported(api_version: str, kind: str, custom: Collection[CustomWorkload]) -> bool:
    """Report whether the state of such a workload's pods is recorded. Its version does not matter."""
    workload = group_of(api_version), kind
    return workload in _STATEFUL_SETS or workload in {(one.group, one.kind) for one in custom}


def _lower(document: Json) -> Json:
    """Return the object with keys in lower case: administrators write names of fields in any case."""
    return {key.lower(): value for key, value in mapping(document).items()}
