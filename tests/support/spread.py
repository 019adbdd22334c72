"""WorkloadSpreads with kubectl: manifests, and the places of pods."""

import json
from collections import Counter
from collections.abc import Iterable
from datetime import datetime, timedelta

from flotilla_common.api.kinds.workloadspread.types import DELETION_COST, MATCHED, WORKLOAD_SPREAD
from flotilla_common.api.meta import rfc3339
from tests.support.cluster import Cluster
from tests.support.podrules import pod_rules
from tests.support.workspace import Workspace, terminating
from tests.testkit.documents import Json

NAME = "spread"
ZONE = "topology.kubernetes.io/zone"
CLONE_SET = ("apps.kruise.io/v1beta1", "CloneSet", "sample")
LABELS = {"app": "sample"}
_AWAITED = {"creatingPods", "deletingPods"}
_AGE = timedelta(seconds=25)


def zone(name: str) -> Json:
    """Return a term for the nodes of a zone."""
    return {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [name]}]}


def spread(
    *limits: int | str | None,
    target: tuple[str, str, str] = CLONE_SET,
    version: str = "v1beta1",
    zones: bool = True,
    **spec: object,
) -> Json:
    """Return a WorkloadSpread with one subset for each limit: a, b, c …; each in a zone of its own if `zones`."""
    term = "requiredNodeSelector" if version == "v1beta1" else "requiredNodeSelectorTerm"
    subsets: list[Json] = []
    for index, limit in enumerate(limits):
        limited = {} if limit is None else {"maxReplicas": limit}
        placed = {term: zone(f"zone-{index}")} if zones else {}
        subsets.append({"name": "abcdef"[index], **limited, **placed})
    return {
        "apiVersion": f"apps.kruise.io/{version}",
        "kind": "WorkloadSpread",
        "metadata": {"name": NAME},
        "spec": {
            "targetRef": dict(zip(("apiVersion", "kind", "name"), target, strict=True)),
            "subsets": subsets,
            **spec,
        },
    }


def plain(api_version: str, kind: str, replicas: int, *, image: str = "nginx:alpine", **spec: object) -> Json:
    """Return a plain workload of one container."""
    template = {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "nginx", "image": image}]}}
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": "sample"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": LABELS}, "template": template, **spec},
    }


def subset_of(pod: Json) -> str:
    """Return the subset in the pod's annotation; empty for none."""
    mark: Json = json.loads(pod["metadata"].get("annotations", {}).get(MATCHED, "{}"))
    return mark.get("subset", "")


def cost_of(pod: Json) -> str:
    """Return the pod's deletion cost; empty for none."""
    return pod["metadata"].get("annotations", {}).get(DELETION_COST, "")


def active(pods: Iterable[Json]) -> list[Json]:
    """Return the pods that count: neither terminating nor ended."""
    return [pod for pod in pods if not terminating(pod) and pod["status"].get("phase") not in ("Succeeded", "Failed")]


def places(pods: Iterable[Json]) -> Counter[str]:
    """Return how many active pods each subset has."""
    return Counter(subset_of(pod) for pod in active(pods))


def totals(space: Workspace) -> dict[str, tuple[int, int]]:
    """Return replicas and missing ones of each subset, by the status."""
    status = space.object(WORKLOAD_SPREAD.kind, NAME).get("status", {})
    return {one["name"]: (one["replicas"], one["missingReplicas"]) for one in status.get("subsetStatuses", [])}


def books(space: Workspace) -> dict[str, list[Json]]:
    """Return the status's subset counts and awaited pods, by version of pods."""
    return space.object(WORKLOAD_SPREAD.kind, NAME).get("status", {}).get("versionedSubsetStatuses", {})


def awaited(space: Workspace) -> bool:
    """Report whether the status awaits a pod whose creation or deletion was admitted."""
    return any(one.keys() & _AWAITED for book in books(space).values() for one in book)


def aged(space: Workspace) -> bool:
    """Make all awaited entries 25 seconds older, so that their timeout ends soon; return False after a conflict."""
    stored = space.read(WORKLOAD_SPREAD.plural, NAME)
    found: dict[str, list[Json]] = stored.get("status", {}).get("versionedSubsetStatuses", {})
    for held in (one.get(kind, {}) for book in found.values() for one in book for kind in _AWAITED):
        held.update({key: rfc3339(datetime.fromisoformat(since) - _AGE) for key, since in held.items()})
    status = {"versionedSubsetStatuses": found}
    body = {"metadata": {"resourceVersion": stored["metadata"]["resourceVersion"]}, "status": status}
    line = ("patch", WORKLOAD_SPREAD.plural, NAME, "--subresource=status", "--type=merge", "-p", json.dumps(body))
    return "patched" in space.cluster.kubectl("-n", space.name, *line, check=False)


def at_rest(space: Workspace, **expected: tuple[int, int]) -> bool:
    """Report whether the status is right, and awaits no pod."""
    found = places(space.pods.values())
    return (
        totals(space) == expected
        and not awaited(space)
        and len(active(space.pods.values())) == len(space.pods)
        and all(found[name] == replicas for name, (replicas, _) in expected.items())
    )


def most_at_once(space: Workspace) -> Counter[str]:
    """Return the maximum number of pods of each subset at any moment.

    Pods whose deletion was admitted do not count: from then on their places are free, and a moment later they are
    marked.
    """
    most: Counter[str] = Counter()
    pods: dict[str, Json] = {}
    going: set[str] = set()
    history = [*space.history(), *space.history(kind=WORKLOAD_SPREAD.kind)]
    for event in sorted(history, key=lambda event: int(event.object["metadata"]["resourceVersion"])):
        name = event.object["metadata"]["name"]
        if event.object["kind"] == WORKLOAD_SPREAD.kind:
            found = event.object.get("status", {}).get("versionedSubsetStatuses", {}).values()
            going = {one for book in found for entry in book for one in entry.get("deletingPods", {})}
        elif event.type == "DELETED":
            pods.pop(name, None)
        else:
            pods[name] = event.object
        most |= places(pod for name, pod in pods.items() if name not in going)
    return most


def asked_namespaces(cluster: Cluster) -> set[str]:
    """Return the namespaces whose pods go through the webhook because of WorkloadSpreads."""
    return {rule.namespace for rule in pod_rules(cluster) if rule.why == "WorkloadSpreads"}
