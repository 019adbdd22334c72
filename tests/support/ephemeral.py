"""EphemeralJobs for tests with kubectl, pods for them, and the ends of their containers.

Fake kubelets do not start ephemeral containers: a test sets their statuses.
"""

from collections.abc import Iterable

from flotilla_common.api.kinds.ephemeraljob.types import JOB_UID_ENV
from tests.support.workspace import Workspace, is_ready
from tests.testkit.documents import Json

NAME = "dump"
LABELS = {"app": "cart"}


def ephemeraljob(name: str = NAME, *, containers: Iterable[Json] | None = None, **spec: object) -> Json:
    """Return an EphemeralJob for the pods with `LABELS`, of a container with the name of the job."""
    return {
        "apiVersion": "apps.kruise.io/v1alpha1",
        "kind": "EphemeralJob",
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": LABELS},
            "template": {"ephemeralContainers": [container(name)] if containers is None else list(containers)},
            **spec,
        },
    }


def container(name: str, *command: str, image: str = "busybox:1.36", **fields: object) -> Json:
    """Return an ephemeral container; without a command it succeeds."""
    return {
        "name": name,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "terminationMessagePolicy": "File",
        "command": list(command) or ["true"],
        **fields,
    }


def started(space: Workspace, *names: str, node: str = "node-0") -> None:
    """Create pods of these names and wait until they are ready. Jobs take them in this order if it is alphabetical."""
    containers = [{"name": "web", "image": "nginx:alpine"}]
    spec = {"nodeName": node, "terminationGracePeriodSeconds": 1, "containers": containers}
    pod = {"apiVersion": "v1", "kind": "Pod", "spec": spec}
    items = [pod | {"metadata": {"name": name, "labels": LABELS}} for name in names]
    space.create(*items)
    space.until(lambda: all(space.pod(name) and is_ready(space.pod(name)) for name in names))


def job_status(space: Workspace, name: str = NAME) -> Json:
    """Return the job's status as last seen; {} while it has none."""
    return space.clone(name).get("status", {})


def reached(space: Workspace, name: str = NAME, seconds: float = 60, **fields: object) -> Json:
    """Wait until the job's status has these fields, a count of 0 when it is absent; returns the status."""

    def holds() -> bool:
        status = job_status(space, name)
        return bool(status) and all(status.get(field, 0) == value for field, value in fields.items())

    space.until(holds, seconds)
    return job_status(space, name)


def injected(space: Workspace, name: str = NAME) -> list[str]:
    """Return the names of the pods that have a container of this name from the job, sorted."""
    uid = space.clone(name).get("metadata", {}).get("uid")  # missing until the watch has shown a new job
    return sorted(pod for pod, found in space.pods.items() if uid in owners(found, name))


def owners(pod: Json, name: str) -> list[str]:
    """Return the uids of the owning jobs as named by the pod's ephemeral containers of this name."""
    containers: list[Json] = pod["spec"].get("ephemeralContainers", [])
    variables = [one for found in containers if found["name"] == name for one in found.get("env", ())]
    return [one["value"] for one in variables if one["name"] == JOB_UID_ENV]


def begun(space: Workspace, *pods: str, name: str = NAME) -> None:
    """Wait until exactly these pods have the job's containers."""
    space.until(lambda: injected(space, name) == sorted(pods))


def say(space: Workspace, pod: str, state: Json, name: str = NAME) -> None:
    """Set the status of an ephemeral container, as a kubelet does."""
    said: list[Json] = space.pod(pod)["status"].get("ephemeralContainerStatuses", [])
    others = [one for one in said if one["name"] != name]
    image = {"image": "busybox:1.36", "imageID": "busybox@sha256:1", "ready": False, "restartCount": 0}
    statuses = [*others, {"name": name, "state": state} | image]
    body = {"status": {"ephemeralContainerStatuses": statuses}}
    space.send_patch("pod", pod, body, subresource="status")


def runs(space: Workspace, *pods: str, name: str = NAME) -> None:
    """Start the container in these pods."""
    for pod in pods:
        say(space, pod, {"running": {"startedAt": now(space)}}, name)


def end(space: Workspace, *pods: str, code: int = 0, name: str = NAME) -> None:
    """End the container in these pods."""
    for pod in pods:
        at = now(space)
        say(space, pod, {"terminated": {"exitCode": code, "startedAt": at, "finishedAt": at}}, name)


def now(space: Workspace) -> str:
    return space.clock().strftime("%Y-%m-%dT%H:%M:%SZ")
