"""UnitedDeployments for tests on a control plane: manifests, children and pods."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.kinds.statefulset.types import STATEFUL_SET
from flotilla_common.api.resources import BUILT_IN_STATEFUL_SET, DEPLOYMENT, Resource
from tests.support.workspace import Workspace, available, image
from tests.testkit.documents import Json

NAME = "web"
SUBSET = "apps.kruise.io/subset-name"
TEMPLATES: Mapping[str, Resource] = {
    "cloneSetTemplate": CLONE_SET,
    "advancedStatefulSetTemplate": STATEFUL_SET,
    "statefulSetTemplate": BUILT_IN_STATEFUL_SET,
    "deploymentTemplate": DEPLOYMENT,
}
CHILDREN = (CLONE_SET, DEPLOYMENT)
"""Kinds that recorders of these tests watch, without StatefulSets: both kinds of those have the same name for them."""


def united(
    replicas: int = 4,
    subsets: Sequence[Json | str] = ("a", "b"),
    *,
    template: str = "cloneSetTemplate",
    partitions: Mapping[str, int] | None = None,
    strategy: Json | None = None,
    version: str = "v1beta1",
    pod: Json | None = None,
    **spec: Any,
) -> Json:
    """Return a UnitedDeployment of one nginx container."""
    topology: Json = {"subsets": [{"name": one} if isinstance(one, str) else one for one in subsets]}
    if strategy is not None:
        topology["scheduleStrategy"] = strategy
    return {
        "apiVersion": f"apps.kruise.io/{version}",
        "kind": "UnitedDeployment",
        "metadata": {"name": NAME},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": NAME}},
            "template": {template: workload_template(template, pod or {})},
            "topology": topology,
            "updateStrategy": {"type": "Manual", "manualUpdate": {"partitions": dict(partitions or {})}},
            **spec,
        },
    }


def workload_template(template: str, pod: Json, name: str = "nginx:alpine") -> Json:
    """Return the template of a child."""
    labels = {"app": NAME}
    containers = [{"name": "nginx", "image": name}]
    spec: Json = {
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": containers} | pod},
    }
    if "tatefulSet" in template:
        spec["serviceName"] = NAME
        spec["podManagementPolicy"] = "Parallel"
    return {"metadata": {"labels": labels}, "spec": spec}


def adaptive(critical: int, marked: int, **more: object) -> Json:
    """Return an adaptive schedule strategy with these seconds."""
    times = {"rescheduleCriticalSeconds": critical, "unschedulableDuration": marked}
    return {"type": "Adaptive", "adaptive": times | more}


def on_nodes(subset: str, key: str, value: str, **more: object) -> Json:
    """Return a subset whose pods require a label of nodes."""
    term = {"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]}
    return {"name": subset, "nodeSelectorTerm": term, **more}


def children(space: Workspace, template: str = "cloneSetTemplate") -> dict[str, Json]:
    """Return the children by subset, without those being deleted; two of a subset fail the test."""
    kind = TEMPLATES[template]
    items = space.read(f"{kind.plural}.{kind.group}")["items"]
    kept = [one for one in items if "deletionTimestamp" not in one["metadata"]]
    found = {one["metadata"]["labels"][SUBSET]: one for one in kept}
    assert len(found) == len(kept), [one["metadata"]["name"] for one in kept]
    return found


def replicas_of(space: Workspace, template: str = "cloneSetTemplate") -> dict[str, int]:
    """Return `spec.replicas` of the children, by subset."""
    return {name: child["spec"]["replicas"] for name, child in children(space, template).items()}


def serving(pods: Mapping[str, Json], subset: str = "") -> int:
    """Return how many pods are available: of a subset, or of all."""
    return sum(available(pod) and subset in ("", subset_of(pod)) for pod in pods.values())


def subset_of(pod: Json) -> str:
    """Return the subset of a pod."""
    return pod["metadata"].get("labels", {}).get(SUBSET, "")


def images(pods: Iterable[Json], subset: str) -> list[str]:
    """Return the images of the pods of a subset, sorted."""
    return sorted(image(pod) for pod in pods if subset_of(pod) == subset)


def set_image(space: Workspace, name: str, template: str = "cloneSetTemplate") -> None:
    """Change the image in the template of the children."""
    path = f"/spec/template/{template}/spec/template/spec/containers/0/image"
    space.json_patch({"op": "replace", "path": path, "value": name}, name=NAME)


def settled(space: Workspace, total: int, seconds: float = 60, **fields: object) -> Json:
    """Wait until all pods are on the newest revision and ready; returns the status."""
    counts = {"replicas": total, "readyReplicas": total, "updatedReplicas": total, "updatedReadyReplicas": total}
    return space.settled(NAME, seconds, **{key: value for key, value in (counts | fields).items() if value != 0})
