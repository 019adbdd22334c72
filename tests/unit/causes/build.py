"""Pods as kubelets of Kubernetes 1.33 to 1.36 describe them, and their surroundings."""

from datetime import UTC, datetime, timedelta
from typing import Any

from flotilla_common.api.core import Node, PersistentVolumeClaim, Pod
from flotilla_common.workload.causes import Claim, PodContext, PodEvent
from tests.testkit import pods as pods_of
from tests.testkit.documents import Json, decoded

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)


def ago(seconds: float) -> str:
    """Return a moment, as the apiserver writes it."""
    return (NOW - timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")


def condition(kind: str, status: str = "True", reason: str = "", message: str = "", since: float = 60) -> Json:
    return {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": ago(since)}


def waiting(reason: str, message: str = "", *, name: str = "app", restarts: int = 0, last: Json | None = None) -> Json:
    """Return the status of a container that waits."""
    state = {"waiting": {"reason": reason, "message": message}}
    return {"name": name, "ready": False, "restartCount": restarts, "state": state, "lastState": last or {}}


def running(
    *,
    name: str = "app",
    ready: bool = False,
    restarts: int = 0,
    since: float = 60,
    started: bool = True,
    last: Any = None,
) -> Json:
    """Return the status of a container that runs."""
    return {
        "name": name,
        "ready": ready,
        "started": started,
        "restartCount": restarts,
        "containerID": "containerd://1",
        "state": {"running": {"startedAt": ago(since)}},
        "lastState": last or {},
    }


def ended(
    code: int, reason: str = "Error", message: str = "", *, began: float = 40, at: float = 30, **more: Any
) -> Json:
    """Return the state of a container that ended."""
    end = {"exitCode": code, "reason": reason, "message": message, "startedAt": ago(began), "finishedAt": ago(at)}
    return {"terminated": end | more}


def stopped(state: Json, *, name: str = "app", restarts: int = 0) -> Json:
    """Return the status of a container that ended a moment ago."""
    return {"name": name, "ready": False, "restartCount": restarts, "state": state}


def pod(
    *statuses: Json,
    node: str = "n1",
    phase: str = "Running",
    conditions: list[Json] | None = None,
    init: list[Json] | None = None,
    metadata: Json | None = None,
    container: Json | None = None,
    status: Json | None = None,
    **spec: Any,
) -> Pod:
    """Return a pod of one container `app` on a node."""
    unready = condition("Ready", "False", "ContainersNotReady", "containers with unready status: [app]")
    document = pods_of.pod(
        "web-1",
        "shop",
        **{"created": ago(100), **(metadata or {})},
        node=node,
        containers=[{"name": "app", "image": "shop:2", **(container or {})}],
        spec=spec,
        phase=phase,
        conditions=[unready] if conditions is None else conditions,
        statuses=statuses,
        status={"initContainerStatuses": init or [], **(status or {})},
    )
    return decoded(document, Pod)


def ready_pod(*more: Json, **arguments: Any) -> Pod:
    """Return a pod whose containers are ready, with these conditions besides."""
    conditions = [condition("ContainersReady"), *more]
    return pod(running(ready=True), conditions=conditions, **arguments)


def event(reason: str, message: str, *, container: str = "", at: float = 20, series: bool = False) -> PodEvent:
    """Return an event about the pod."""
    seen = {"series": {"lastObservedTime": ago(at)}} if series else {"lastTimestamp": ago(at)}
    path = f"spec.containers{{{container}}}" if container else ""
    document = {"reason": reason, "message": message, "involvedObject": {"fieldPath": path}, **seen}
    return decoded(document, PodEvent)


def node(status: str, reason: str = "", message: str = "") -> Node:
    document = {"metadata": {"name": "n1"}, "status": {"conditions": [condition("Ready", status, reason, message)]}}
    return decoded(document, Node)


def claim(phase: str = "Pending", storage_class: str | None = "fast", *events: PodEvent, **metadata: Any) -> Claim:
    spec = {} if storage_class is None else {"storageClassName": storage_class}
    document = {"metadata": {"name": "data", **metadata}, "spec": spec, "status": {"phase": phase}}
    found = decoded(document, PersistentVolumeClaim)
    return Claim(found=found, events=events)


def around(*events: PodEvent, **known: Any) -> PodContext:
    return PodContext(now=NOW, events=events, **known)
