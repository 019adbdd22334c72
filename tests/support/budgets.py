"""PodUnavailableBudgets: objects, evictions and deletions, and the resulting counts."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from flotilla_common.api.kinds.podunavailablebudget.types import POD_UNAVAILABLE_BUDGET
from flotilla_common.api.resources import POD
from tests.support.rest import Refused
from tests.support.workspace import Workspace, is_ready, terminating
from tests.testkit.documents import Json

NAME = "pub"
LABELS = {"app": "sample"}
REFUSED = f'podunavailablebudget.policy.kruise.io "{NAME}" is forbidden: pub unavailable allowed is negative'


def budget(*, name: str = NAME, version: str = "v1beta1", annotations: Json | None = None, **spec: object) -> Json:
    """Return a budget over the pods of the sample, of which one may be unavailable by default."""
    limit = {} if {"maxUnavailable", "minAvailable"} & spec.keys() else {"maxUnavailable": 1}
    chosen = {} if "targetRef" in spec else {"selector": {"matchLabels": LABELS}}
    return {
        "apiVersion": f"policy.kruise.io/{version}",
        "kind": POD_UNAVAILABLE_BUDGET.kind,
        "metadata": {"name": name, "annotations": annotations or {}},
        "spec": chosen | limit | spec,
    }


def bare(names: Sequence[str], **metadata: object) -> Json:
    """Return pods without a controller: nothing replaces them."""
    spec = {"containers": [{"name": "main", "image": "nginx:alpine"}], "terminationGracePeriodSeconds": 1}
    pods = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "labels": LABELS} | metadata,
            "spec": spec,
        }
        for name in names
    ]
    return {"apiVersion": "v1", "kind": "List", "items": pods}


def create(space: Workspace, names: Sequence[str], **metadata: object) -> None:
    """Create such pods, and wait until they are ready."""
    space.create(bare(names, **metadata))
    space.until(lambda: all(is_ready(space.pod(name)) for name in names if space.pod(name)))
    space.until(lambda: set(names) <= space.pods.keys() and all(map(is_ready, space.pods.values())))


def counted(space: Workspace, name: str = NAME) -> Json:
    """Return the status as last seen."""
    return space.object(POD_UNAVAILABLE_BUDGET.kind, name).get("status", {})


def allows(space: Workspace, units: int, name: str = NAME, **fields: int) -> None:
    """Wait until the budget allows this many units, and has these fields."""
    wanted = {"unavailableAllowed": units} | fields
    space.until(lambda: wanted.items() <= counted(space, name).items())


def evict(space: Workspace, name: str, **options: object) -> tuple[bool, str]:
    """Evict a pod by its subresource; return whether that was admitted, and the apiserver's words."""
    metadata = {"name": name, "namespace": space.name}
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata, "deleteOptions": options}
    return _asked(space, "POST", f"{POD.path(space.name, name)}/eviction", body)


def remove(space: Workspace, name: str, **options: object) -> tuple[bool, str]:
    """Delete a pod without waiting for its end; return the same."""
    return _asked(space, "DELETE", POD.path(space.name, name), options)


def _asked(space: Workspace, method: str, path: str, body: object) -> tuple[bool, str]:
    try:
        space.cluster.rest.send(method, path, body)
    except Refused as refusal:
        return False, f"{refusal.reason}: {refusal.message}"
    return True, ""


def attempt(space: Workspace, *arguments: str) -> tuple[bool, str]:
    """Run kubectl; return whether it succeeded, and its output."""
    try:
        return True, space.kubectl(*arguments)
    except AssertionError as refusal:
        return False, str(refusal)


def at_once(space: Workspace, names: Sequence[str], together: int = 8) -> list[str]:
    """Delete half of these pods and evict the others, all at the same time; return the admitted ones."""

    def go(number: int) -> bool:
        return (remove if number % 2 else evict)(space, names[number])[0]

    with ThreadPoolExecutor(together) as pool:
        admitted = list(pool.map(go, range(len(names))))
    return [name for name, gone in zip(names, admitted, strict=True) if gone]


def serving(pods: dict[str, Json]) -> int:
    """Return how many of these pods are ready and not terminating."""
    return sum(is_ready(pod) and not terminating(pod) for pod in pods.values())
