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
    """A CloneSet of one container. `rolling`: members of rollingUpdate; `scale`: scaleStrategy; `top`: of the spec."""
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
        resources = {"requests": {"storage": "1Gi"}}
        claim = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": resources}}
        spec["volumeClaimTemplates"] = [claim]
    metadata = {"name": name, "namespace": "shop"}
    return {"apiVersion": f"apps.kruise.io/{version}", "kind": "CloneSet", "metadata": metadata, "spec": spec}


def template(image: str, name: str = "web") -> Json:
    """A pod template of one container."""
    return {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container(image)]}}


def container(image: str) -> Json:
    """A container of the shop in this version."""
    return {"name": "main", "image": REPOSITORY + image}


def running(document: Json) -> tuple[Step, ...]:
    """The object exists, and all its pods serve."""
    replicas, name = document["spec"]["replicas"], document["metadata"]["name"]
    return Create(document=document), Wait(pods=replicas, serving=replicas, owner=name)


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
