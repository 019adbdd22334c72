"""BroadcastJobs for tests with kubectl, and the ends of their pods.

Fake nodes run pods and never end them: a test ends each pod itself, or has all of them succeed by an annotation.
"""

from collections.abc import Iterable, Mapping

from tests.support.daemons import node_of
from tests.support.workspace import Workspace, is_ready, terminating
from tests.testkit.documents import Json

NAME = "sweep"
COMPLETES = {"metadata": {"annotations": {"fake.flotilla.dev/complete": "true"}}}
"""Part of a template whose pods succeed on fake nodes soon after they have started."""
BODY: Json = {
    "restartPolicy": "Never",
    "terminationGracePeriodSeconds": 1,
    "containers": [{"name": "main", "image": "busybox:1.36", "command": ["sleep", "3600"]}],
}


def broadcastjob(
    name: str = NAME, *, pod: Json | None = None, template: Json | None = None, version: str = "v1beta1", **spec: object
) -> Json:
    """Return a BroadcastJob for all nodes. `pod`: more of its pods' spec; `template`: more of its template."""
    return {
        "apiVersion": f"apps.kruise.io/{version}",
        "kind": "BroadcastJob",
        "metadata": {"name": name},
        "spec": {"template": {**(template or {}), "spec": BODY | (pod or {})}, **spec},
    }


def job_status(space: Workspace, name: str = NAME) -> Json:
    """Return the job's status as last seen; {} while it has none."""
    return space.clone(name).get("status", {})


def reached(space: Workspace, name: str = NAME, seconds: float = 60, **fields: object) -> Json:
    """Wait until the job's status has these fields; returns the status."""
    space.until(lambda: fields.items() <= job_status(space, name).items(), seconds)
    return job_status(space, name)


def numbers(status: Mapping[str, object]) -> tuple[object, ...]:
    """Return the printed counts: desired, active, succeeded, failed."""
    return tuple(status.get(field, 0) for field in ("desired", "active", "succeeded", "failed"))


def begun(space: Workspace, pods: int, name: str = NAME) -> list[Json]:
    """Wait until this many pods of the job run and are ready; return them, sorted by node."""
    space.until(lambda: len(running(space, name)) == pods)
    return running(space, name)


def running(space: Workspace, name: str = NAME) -> list[Json]:
    """Return the job's running pods, sorted by node."""
    return sorted((pod for pod in pods_of(space, name) if is_active(pod) and is_ready(pod)), key=node_of)


def pods_of(space: Workspace, name: str = NAME) -> list[Json]:
    """Return all pods of the job."""
    return [pod for pod in space.pods.values() if pod["metadata"].get("labels", {}).get("broadcastjob-name") == name]


def is_active(pod: Json) -> bool:
    """Report whether the pod is neither ended nor terminating."""
    return pod["status"].get("phase") not in ("Succeeded", "Failed") and not terminating(pod)


def end(space: Workspace, pods: Iterable[Json], phase: str = "Succeeded") -> None:
    """End these pods as their kubelet would; return once the watch has shown it."""
    names = [pod["metadata"]["name"] for pod in pods]
    for name in names:
        space.send_patch("pod", name, {"status": {"phase": phase}}, subresource="status")
    space.until(lambda: all(space.pod(name).get("status", {"phase": phase})["phase"] == phase for name in names))


def crowded(pods: Iterable[Json]) -> set[tuple[str, str]]:
    """Return jobs and nodes with two pods that are not terminating."""
    seen: set[tuple[str, str]] = set()
    found: set[tuple[str, str]] = set()
    for pod in pods:
        place = (pod["metadata"]["ownerReferences"][0]["uid"], node_of(pod))
        if not terminating(pod):
            found |= {place} & seen
            seen.add(place)
    return found
