"""Our StatefulSets for tests with kubectl, and checks of their pods."""

from collections.abc import Iterable, Mapping

from tests.support.recorder import Event
from tests.support.workspace import available
from tests.testkit.documents import Json

IN_PLACE: Json = {"podUpdatePolicy": "InPlaceIfPossible"}


def statefulset(
    replicas: int = 3,
    *,
    name: str = "web",
    parallel: bool = True,
    strategy: Json | None = None,
    claims: Iterable[str] = (),
    version: str = "v1beta1",
    **spec: object,
) -> Json:
    """Return a StatefulSet of one nginx container that can be updated in place. `strategy`: its rollingUpdate."""
    pod = {
        "readinessGates": [{"conditionType": "InPlaceUpdateReady"}],
        "containers": [{"name": "nginx", "image": "nginx:alpine"}],
    }
    return {
        "apiVersion": f"apps.kruise.io/{version}",
        "kind": "StatefulSet",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "serviceName": "nginx",
            "podManagementPolicy": "Parallel" if parallel else "OrderedReady",
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": pod},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": strategy or {}},
            **({"volumeClaimTemplates": [claim_template(one) for one in claims]} if claims else {}),
            **spec,
        },
    }


def claim_template(name: str, size: str = "1Gi") -> Json:
    """Return a claim template of the default class."""
    resources = {"requests": {"storage": size}}
    return {"metadata": {"name": name}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": resources}}


def ordinals(pods: Iterable[str]) -> list[int]:
    """Return the ordinals of these pods, ascending."""
    return sorted(int(name.rpartition("-")[2]) for name in pods)


def first_seen(history: Iterable[Event], kind: str) -> list[int]:
    """Return the ordinals of pods in the order of their events of this type (ADDED, DELETED)."""
    return [int(one.object["metadata"]["name"].rpartition("-")[2]) for one in history if one.type == kind]


def serving(pods: Mapping[str, Json]) -> int:
    """Return how many pods are available."""
    return sum(available(pod) for pod in pods.values())
