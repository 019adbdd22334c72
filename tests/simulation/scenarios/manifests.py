"""Manifests as short as a scenario's sentence: `cloneset(3, claims=True, maxSurge=1)`."""

from flotilla_common.control.plan import Json
from tests.simulation.scenarios.steps import REPOSITORY, Change, ChangePod, ChangePods, Create, Step, Wait


def cloneset(
    replicas: int = 3,
    *,
    name: str = "web",
    policy: str = "InPlaceIfPossible",
    image: str = "one",
    claims: bool = False,
    scale: Json | None = None,
    top: Json | None = None,
    strategy: str = "RollingUpdate",
    version: str = "v1beta1",
    **rolling: object,
) -> Json:
    """Return a CloneSet of one container. `rolling`: of rollingUpdate; `scale`: scaleStrategy; `top`: of the spec."""
    update: Json = {"type": strategy}
    if strategy == "RollingUpdate":
        update["rollingUpdate"] = {"podUpdatePolicy": policy, "maxUnavailable": 1, **rolling}
    spec: Json = {
        "replicas": replicas,
        "selector": {"matchLabels": {"app": name}},
        "template": template(image, name),
        "updateStrategy": update,
        "scaleStrategy": scale or {},
        **(top or {}),
    }
    if claims:
        spec["volumeClaimTemplates"] = [claim_template()]
    metadata = {"name": name, "namespace": "shop"}
    return {"apiVersion": f"apps.kruise.io/{version}", "kind": "CloneSet", "metadata": metadata, "spec": spec}


def statefulset(
    replicas: int = 3,
    *,
    ordered: bool = True,
    policy: str = "ReCreate",
    claims: Json | None = None,
    scale: int | None = None,
    strategy: str = "RollingUpdate",
    top: Json | None = None,
    labels: Json | None = None,
    **rolling: object,
) -> Json:
    """Return a StatefulSet `web` of one container.

    `claims`: the retention policy of its claims (without it there are none); `scale`: scaleStrategy.maxUnavailable;
    `labels`: more of the pods'.
    """
    pods = template("one")
    pods["metadata"]["labels"] |= labels or {}
    if policy != "ReCreate":
        pods["spec"]["readinessGates"] = [{"conditionType": "InPlaceUpdateReady"}]
    spec: Json = {
        "replicas": replicas,
        "selector": {"matchLabels": {"app": "web"}},
        "template": pods,
        "podManagementPolicy": "OrderedReady" if ordered else "Parallel",
        "updateStrategy": {"type": strategy},
        **(top or {}),
    }
    if strategy == "RollingUpdate":
        spec["updateStrategy"]["rollingUpdate"] = {"podUpdatePolicy": policy, **rolling}
    if claims is not None:
        spec |= {"volumeClaimTemplates": [claim_template()], "persistentVolumeClaimRetentionPolicy": claims}
    if scale is not None:
        spec["scaleStrategy"] = {"maxUnavailable": scale}
    metadata = {"name": "web", "namespace": "shop"}
    return {"apiVersion": "apps.kruise.io/v1beta1", "kind": "StatefulSet", "metadata": metadata, "spec": spec}


def daemonset(
    *,
    name: str = "web",
    policy: str = "Standard",
    strategy: str = "RollingUpdate",
    nodes: Json | None = None,
    labels: Json | None = None,
    top: Json | None = None,
    **rolling: object,
) -> Json:
    """Return a DaemonSet of one container. `nodes`: members of the pod spec that choose nodes; `labels`: further."""
    pods = template("one", name)
    pods["metadata"]["labels"] |= labels or {}
    pods["spec"] |= nodes or {}
    spec: Json = {
        "selector": {"matchLabels": {"app": name}},
        "template": pods,
        "updateStrategy": {"type": strategy},
        **(top or {}),
    }
    if strategy == "RollingUpdate":
        spec["updateStrategy"]["rollingUpdate"] = {"rollingUpdateType": policy, **rolling}
    metadata = {"name": name, "namespace": "shop"}
    return {"apiVersion": "apps.kruise.io/v1beta1", "kind": "DaemonSet", "metadata": metadata, "spec": spec}


def claim_template() -> Json:
    """Return the claim template `data`."""
    resources = {"requests": {"storage": "1Gi"}}
    return {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": resources}}


def template(image: str, name: str = "web") -> Json:
    """Return a pod template of one container."""
    return {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container(image)]}}


def container(image: str) -> Json:
    """Return a container of the shop in this version."""
    return {"name": "main", "image": REPOSITORY + image}


def running(document: Json) -> tuple[Step, ...]:
    """Create the object, and wait until all its pods serve."""
    replicas, name = document["spec"]["replicas"], document["metadata"]["name"]
    return Create(document=document), Wait(pods=replicas, serving=replicas, owner=name)


def relabelled(node: str, **labels: str | None) -> Change:
    """Labels of a node are set, or taken off."""
    return Change(patch={"metadata": {"labels": labels}}, name=node, kind="Node")


def tainted(node: str, *effects: str) -> Change:
    """Taint a node with `dedicated` and these effects; without effects, remove the taints of users."""
    taints = [{"key": "dedicated", "effect": effect} for effect in effects]
    return Change(patch={"spec": {"taints": taints or None}}, name=node, kind="Node")


def cordoned(node: str, *, on: bool = True) -> Change:
    """Cordon a node, or uncordon it."""
    return Change(patch={"spec": {"unschedulable": on}}, name=node, kind="Node")


def spec(**members: object) -> Change:
    """Change members of the spec."""
    return Change(patch={"spec": members})


def rolling(**members: object) -> Change:
    """Change members of the rolling update."""
    return spec(updateStrategy={"rollingUpdate": members})


def image(name: str) -> Change:
    """Another image in the template."""
    return spec(template={"spec": {"containers": [container(name)]}})


def label(nth: int, **labels: str | None) -> ChangePod:
    """Label the nth-oldest pod."""
    return ChangePod(nth=nth, patch={"metadata": {"labels": labels}})


def answer(state: str, **labels: str | None) -> ChangePods:
    """Label all pods that are in a lifecycle state."""
    return ChangePods(state=state, patch={"metadata": {"labels": labels}})
