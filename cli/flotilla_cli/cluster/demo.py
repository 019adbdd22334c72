"""The main job, shown: a CloneSet's image changes, and its pods stay what and where they are.

The pods are read before and after, and `broken_promises` compares them: the demo fails when it does not do what it
says.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from flotilla_cli.cluster.errors import ClusterError
from flotilla_common.api.images import ImageName
from flotilla_common.api.resources import POD, Resource
from flotilla_common.clock import Clock
from flotilla_common.control.plan import Json
from flotilla_common.kube.interface import Api

NAMESPACE, NAME, REPLICAS = "default", "sample", 5
BEFORE, AFTER = "nginx:alpine", "nginx:mainline"
CLONE_SET = Resource("apps.kruise.io", "v1alpha1", "clonesets", "CloneSet")  # the version of users' manifests
POLL = 0.1
PATIENCE = 90.0  # seconds for each half; both take a few on an idle machine

Rows = dict[str, "Row"]
Show = Callable[[Rows], None]


class Row(msgspec.Struct, frozen=True):
    """What the demo looks at in one pod."""

    name: str
    uid: str
    node: str
    ip: str
    image: str
    image_id: str
    restarts: int
    ready: bool


def manifest(image: str) -> Json:
    """The CloneSet that is applied, and applied again with another image."""
    labels = {"app": NAME}
    return {
        "apiVersion": "apps.kruise.io/v1alpha1",
        "kind": "CloneSet",
        "metadata": {"name": NAME, "namespace": NAMESPACE, "labels": labels},
        "spec": {
            "replicas": REPLICAS,
            "updateStrategy": {"type": "InPlaceIfPossible"},
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "nginx", "image": image}]},
            },
        },
    }


async def create(api: Api, clock: Clock, show: Show) -> Rows:
    """Apply the CloneSet and wait until all its pods are ready."""
    await _apply(api, BEFORE)
    return await _until(api, clock, BEFORE, show)


async def update(api: Api, clock: Clock, show: Show) -> Rows:
    """Apply it with the new image and wait until every pod runs it and is ready."""
    await _apply(api, AFTER)
    return await _until(api, clock, AFTER, show)


def broken_promises(before: Rows, after: Rows) -> list[str]:
    """What an in-place update promises and these pods do not keep; empty when all is well."""
    problems: list[str] = []
    if before.keys() != after.keys():
        problems.append(f"the pods are not the same: {sorted(before)} became {sorted(after)}")
    for name in before.keys() & after.keys():
        old, new = before[name], after[name]
        problems += [
            f"{name}: its {field} changed from {getattr(old, field)} to {getattr(new, field)}"
            for field in ("uid", "node", "ip")
            if getattr(old, field) != getattr(new, field)
        ]
        if new.restarts != old.restarts + 1:
            problems.append(f"{name}: its container restarted {new.restarts - old.restarts} times instead of once")
        if new.image_id == old.image_id:
            problems.append(f"{name}: it still runs the old image")
    return problems


def row(pod: Json) -> Row:
    """The demo's view of one pod."""
    status: Json = pod.get("status", {})
    containers: list[Json] = status.get("containerStatuses") or [{}]
    conditions: list[dict[str, Any]] = status.get("conditions", [])
    return Row(
        name=pod["metadata"]["name"],
        uid=pod["metadata"]["uid"],
        node=pod["spec"].get("nodeName", ""),
        ip=status.get("podIP", ""),
        image=familiar(containers[0].get("image", "")),
        image_id=containers[0].get("imageID", ""),
        restarts=containers[0].get("restartCount", 0),
        ready=any(entry["type"] == "Ready" and entry["status"] == "True" for entry in conditions),
    )


def familiar(image: str) -> str:
    """An image's name as manifests have it; kubelets report `docker.io/library/nginx:alpine`."""
    return str(ImageName.parse(image)) if image else ""


async def _apply(api: Api, image: str) -> None:
    body = msgspec.json.encode(manifest(image))
    params = {"fieldManager": "flotilla-demo", "force": "true"}
    await api.patch(CLONE_SET, NAMESPACE, NAME, body, "application/apply-patch+yaml", params=params)


async def _until(api: Api, clock: Clock, image: str, show: Show) -> Rows:
    deadline = clock.monotonic() + PATIENCE
    while clock.monotonic() < deadline:
        page = await api.list(POD, NAMESPACE, label_selector=f"app={NAME}")
        found = [row(msgspec.json.decode(item, type=Json)) for item in page.items]
        rows = {one.name: one for one in sorted(found, key=lambda one: one.name)}
        show(rows)
        done = [one for one in found if one.ready and one.image == image]
        if len(done) == len(found) == REPLICAS:
            return rows
        await clock.sleep(POLL)
    raise ClusterError(f"After {PATIENCE:.0f} s not all {REPLICAS} pods of CloneSet {NAME} are ready with {image}.")
