"""PersistentPodStates for tests with kubectl: workloads that use them, and the places of pods."""

from collections.abc import Mapping

from flotilla_common.api.kinds.persistentpodstate.types import PERSISTENT_POD_STATE
from tests.support.cluster import Cluster
from tests.support.podrules import pod_rules
from tests.support.workspace import Workspace, is_ready, terminating
from tests.testkit.documents import Json, typed

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
ASKS = {
    "kruise.io/auto-generate-persistent-pod-state": "true",
    "kruise.io/required-persistent-topology": ZONE,
    "kruise.io/preferred-persistent-topology": HOST,
}
INJECTED = "kruise.io/injected-persistent-pod-state"


def built_in(replicas: int = 3, annotations: Mapping[str, str] = ASKS, **spec: object) -> Json:
    """Return a StatefulSet of apps/v1 whose pods are all created at once."""
    template = {"metadata": {"labels": {"app": "db"}}, "spec": {"containers": [{"name": "main", "image": "nginx:1"}]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "db", "annotations": dict(annotations)},
        "spec": {
            "replicas": replicas,
            "serviceName": "db",
            "podManagementPolicy": "Parallel",
            "selector": {"matchLabels": {"app": "db"}},
            "template": template,
            **spec,
        },
    }


def by_hand(name: str = "db", *, target: Json | None = None, **spec: object) -> Json:
    """Return a PersistentPodState as a user creates it."""
    given = spec or {"requiredPersistentTopology": {"keys": [HOST]}}
    reference = target or {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db"}
    return typed(PERSISTENT_POD_STATE, name, spec={"targetRef": reference, **given})


def records(space: Workspace, name: str = "db") -> Json:
    """Return the recorded states by pod, as last seen."""
    return space.object("PersistentPodState", name).get("status", {}).get("podStates", {})


def exists(space: Workspace, name: str = "db") -> bool:
    return bool(space.object("PersistentPodState", name))


def places(space: Workspace) -> dict[str, str]:
    """Return the nodes of the pods that are ready and not terminating, by pod."""
    return {name: pod["spec"]["nodeName"] for name, pod in space.pods.items() if is_ready(pod) and not terminating(pod)}


def recorded_as_placed(space: Workspace, replicas: int) -> bool:
    """Report whether every pod is ready, and its node is recorded."""
    found = {name: state["nodeName"] for name, state in records(space).items()}
    return len(found) == replicas and places(space) == found


def asked_namespaces(cluster: Cluster) -> list[str]:
    """Return the namespaces whose pods go through the webhook because of PersistentPodStates."""
    return sorted(rule.namespace for rule in pod_rules(cluster) if rule.why == "PersistentPodStates")
