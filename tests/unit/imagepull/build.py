"""Nodes, NodeImages, jobs and secrets for the planners of image pulls, and the writes of a pass, in a few words."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from flotilla_common.api.core import Node, Pod, Secret
from flotilla_common.api.documents import merge
from flotilla_common.api.kinds.imagelistpulljob.types import ImageListPullJob
from flotilla_common.api.kinds.imagepulljob.types import ImagePullJob
from flotilla_common.api.kinds.nodeimage.types import NodeImage
from flotilla_common.api.meta import rfc3339
from flotilla_common.control.plan import Action, Create, Delete, Patch, Plan
from flotilla_jobs.imagepull.plan import plan as plan_job
from flotilla_jobs.imagepull.snapshot import PullJobSnapshot
from tests.testkit import pods as pods_of
from tests.testkit.documents import Json, conditions, decoded, metadata

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
NAMES = ("n1", "n2", "n3", "n4", "n5")


def ago(seconds: float) -> str:
    """Return a past moment, as Kubernetes writes it."""
    return rfc3339(NOW - timedelta(seconds=seconds))


def job(name: str = "J", *, status: Json | None = None, meta: Json | None = None, **spec: Any) -> ImagePullJob:
    """Return a job for nginx:1.25 that has been planned before, unless `status` differs."""
    held = ["apps.kruise.io/deletion-protection"]
    named = metadata(name, "ns", **{"uid": f"uid-{name}", "version": 3, "finalizers": held} | (meta or {}))
    given = {"image": "nginx:1.25", "imagePullPolicy": "IfNotPresent", "completionPolicy": {"type": "Always"}} | spec
    return decoded({"metadata": named, "spec": given, "status": status or {}}, ImagePullJob)


def owner(name: str = "J", kind: str = "ImagePullJob", version: str = "apps.kruise.io/v1beta1") -> Json:
    return {"apiVersion": version, "kind": kind, "namespace": "ns", "name": name, "uid": f"uid-{name}"}


def tag(*owners: str, version: int = 0, created: float = 60, name: str = "1.25", **policy: Any) -> Json:
    """Return a spec tag for jobs; `policy` goes into its pullPolicy."""
    return {
        "tag": name,
        "createdAt": ago(created),
        "version": version,
        "imagePullPolicy": "IfNotPresent",
        "ownerReferences": [owner(one) for one in owners],
        "pullPolicy": {"ttlSecondsAfterFinished": 900} | policy,
    }


def entry(phase: str, *, version: int = 0, ended: float = 10, name: str = "1.25", message: str = "") -> Json:
    """Return a status entry; final phases have ended this many seconds ago."""
    found: Json = {"tag": name, "phase": phase, "version": version, "message": message}
    return found | ({"completionTime": ago(ended)} if phase in ("Succeeded", "Failed") else {})


def node_image(
    name: str = "n1",
    tags: Sequence[Json] = (),
    entries: Sequence[Json] = (),
    *,
    image: str = "nginx",
    secrets: Sequence[Json] = (),
    labels: Mapping[str, str] | None = None,
    **meta: Any,
) -> NodeImage:
    named = metadata(name, **{"uid": f"uid-{name}", "version": 7, "labels": labels} | meta)
    images = {image: {"tags": list(tags), "pullSecrets": list(secrets)}} if tags else {}
    statuses = {image: {"tags": list(entries)}} if entries else {}
    document = {"metadata": named, "spec": {"images": images}, "status": {"imageStatuses": statuses}}
    return decoded(document, NodeImage)


def succeeded(name: str, *owners: str) -> NodeImage:
    return node_image(name, [tag(*(owners or ("J",)))], [entry("Succeeded")])


def failed(name: str, message: str = "") -> NodeImage:
    return node_image(name, [tag("J")], [entry("Failed", message=message)])


def pulling(name: str) -> NodeImage:
    return node_image(name, [tag("J")], [entry("Pulling")])


def pushed(name: str) -> NodeImage:
    return node_image(name, [tag("J")])


def fresh(*names: str) -> list[NodeImage]:
    return [node_image(name) for name in names or NAMES]


def node(name: str = "n1", *, ready: float | None = 3600, labels: Mapping[str, str] | None = None, **meta: Any) -> Node:
    """Return a node that has been Ready for this many seconds; None: not ready."""
    named = metadata(name, **{"uid": f"node-{name}", "version": 1, "labels": labels} | meta)
    found = conditions({"Ready": ready is not None}, ago(ready or 0))
    return decoded({"metadata": named, "status": {"conditions": found}}, Node)


def pod(name: str, where: str, *, phase: str = "Running", labels: Mapping[str, str] | None = None, **meta: Any) -> Pod:
    known = {"uid": f"pod-{name}", "version": 1, "labels": labels or {"app": "web"}}
    return decoded(pods_of.pod(name, "ns", node=where, phase=phase, **known | meta), Pod)


def secret(name: str = "s1", namespace: str = "ns", *, data: str = "eA==", version: str = "1", **meta: Any) -> Secret:
    named = metadata(name, namespace, **{"uid": f"uid-{name}", "version": version} | meta)
    content = {"type": "kubernetes.io/dockerconfigjson", "data": {".dockerconfigjson": data}}
    return decoded({"metadata": named} | content, Secret)


def copy_of(source: str, *users: str, name: str = "", data: str = "eA==") -> Secret:
    """Return a copy of `ns/<source>` that these jobs use."""
    annotations = {
        "imagepulljobs.kruise.io/source-key": f"ns/{source}",
        "imagepulljobs.kruise.io/references": ",".join(users),
        "imagepulljobs.kruise.io/mode": "batch",
    }
    return secret(name or f"{source}-copy", "kruise-daemon-config", data=data, annotations=annotations)


def list_job(*images: str, status: Json | None = None, meta: Json | None = None, **spec: Any) -> ImageListPullJob:
    named = metadata("L", "ns", **{"uid": "uid-L", "version": 3} | (meta or {}))
    given = {"images": list(images), "completionPolicy": {"type": "Always"}} | spec
    return decoded({"metadata": named, "spec": given, "status": status or {}}, ImageListPullJob)


def begun(seconds: float = 30) -> Json:
    """Return the status of a job that was first planned this long ago."""
    return {"startTime": ago(seconds)}


def planned(one: ImagePullJob, nodes: Sequence[NodeImage] = (), now: datetime = NOW, **members: Any) -> Plan:
    """Plan one pass of a job."""
    return plan_job(PullJobSnapshot(job=one, nodes=nodes, **members), now)


def summary(plan: Plan) -> list[str]:
    """Return the writes, in order, such as `push n1`, `create Secret x` or `delete ImagePullJob J`."""
    return [_described(action) for action in plan.actions]


def _described(action: Action) -> str:
    match action:
        case Create():
            return f"create {action.resource.kind} {action.name}"
        case Delete():
            return f"delete {action.resource.kind} {action.name}"
        case Patch() if action.resource.kind == "NodeImage":
            return f"push {action.name}"
        case Patch():
            return f"patch {action.resource.kind} {action.name}"


def status_of(plan: Plan, before: Json | None = None) -> Json:
    """Return the status after the pass."""
    return merge(before or {}, plan.status.body["status"]) if plan.status is not None else dict(before or {})


def written_tag(plan: Plan, name: str) -> Json:
    """Return the tag that the pass writes into a NodeImage."""
    for action in plan.actions:
        if isinstance(action, Patch) and (action.resource.kind, action.name) == ("NodeImage", name):
            image = action.body["spec"]["images"]["nginx"]
            return next(one for one in image["tags"] if one["tag"] == "1.25")
    raise AssertionError(f"nothing is written to {name}")
