"""Copies of the golden CloneSet and StatefulSet in the middle of their operations (common.md §8, §9).

Each has four pods, in the namespace `midway`:

    done      updated in place, the kubelet is done: InPlaceUpdateReady is still False
    grace     in the grace period before its containers change
    deleted   marked for deletion, held by the preDelete hook
    held      chosen for an update, held by the inPlaceUpdate hook
"""

import json
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from flotilla_common.api.meta import rfc3339
from flotilla_common.clock import SystemClock
from tests.testkit.documents import Json

SPACE = "midway"
IMAGE = "nginx:1.22.0"
OLD_IMAGE = "nginx:1.20"
GRACE_SECONDS = 3
STATE = "lifecycle.apps.kruise.io/state"
_OTHER_UID = "-ffff-"
_OLD_ID = "docker.io/library/nginx@sha256:7ebb9478fdb6bf328baaaa9d0ad95450c2edac85e27879c00047b783016b1f39"


class Midway(NamedTuple):
    """A workload, called like the short name of its kind, its update revision, and its pods."""

    kind: str
    name: str
    revision: str
    done: str
    grace: str
    deleted: str
    held: str


CLONE = Midway("CloneSet", "clone", "clone-54465bc649", "clone-4rfr8", "clone-6p27j", "clone-kscj8", "clone-tmj6v")
ASTS = Midway("StatefulSet", "asts", "asts-558b4c689b", "asts-4", "asts-3", "asts-0", "asts-2")


def midway(golden: Sequence[Json]) -> list[Json]:
    """Return the copies, made from all golden objects."""
    return [copy for workload in (CLONE, ASTS) for copy in _copies(workload, golden)]


def _copies(workload: Midway, golden: Sequence[Json]) -> Iterator[Json]:
    for copy in (_copied(item) for item in golden if is_of(item, workload.kind, workload.name)):
        if copy["kind"] == workload.kind:
            _hooks(copy["spec"])
        if copy["kind"] == "Pod":
            _change(copy, workload)
        yield copy


def is_of(item: Json, kind: str, name: str) -> bool:
    """Report whether the item is the golden workload or owned by it; its pull jobs do not count."""
    meta = item["metadata"]
    owners = {(owner["kind"], owner["name"]) for owner in meta.get("ownerReferences", ())}
    return (kind, name) in owners | {(item["kind"], meta["name"])} and item["kind"] != "ImagePullJob"


def _copied(item: Json) -> Json:
    """Return a copy with uids of its own."""
    text = msgspec.json.encode(item).decode()
    for uid in _uids(item):
        text = text.replace(uid, uid[:8] + _OTHER_UID + uid[14:])
    copy: Json = msgspec.json.decode(text)
    copy["metadata"]["namespace"] = SPACE
    return copy


def _uids(item: Json) -> Iterator[str]:
    yield item["metadata"]["uid"]
    yield from (owner["uid"] for owner in item["metadata"].get("ownerReferences", ()))


def _hooks(spec: Json) -> None:
    hook = {"labelsHandler": {"guard": "on"}}
    spec["lifecycle"] = {"preDelete": hook, "inPlaceUpdate": {"labelsHandler": {"drain": "on"}}}
    strategy = spec["updateStrategy"].get("rollingUpdate", spec["updateStrategy"])
    strategy |= {"partition": 0, "maxUnavailable": 3}
    strategy["inPlaceUpdateStrategy"] = {"gracePeriodSeconds": GRACE_SECONDS}


def _change(pod: Json, workload: Midway) -> None:
    name, labels = pod["metadata"]["name"], pod["metadata"]["labels"]
    if name in (workload.done, workload.grace):
        labels[STATE] = "Updating"
        _updating(pod, workload.revision, grace=name == workload.grace)
        _not_ready(pod)
    elif name == workload.deleted:
        labels |= {STATE: "PreparingDelete", "guard": "on", "apps.kruise.io/specified-delete": "true"}
    else:
        labels |= {STATE: "PreparingUpdate", "drain": "on"}


def _updating(pod: Json, revision: str, *, grace: bool) -> None:
    """Write what the in-place engine writes: in the grace period containers are unchanged."""
    annotations = pod["metadata"]["annotations"]
    now = rfc3339(SystemClock().now())
    state: Json = {"revision": revision, "updateTimestamp": now, "lastContainerStatuses": None, "updateImages": True}
    if grace:
        later = {"revision": revision, "containerImages": {"nginx": IMAGE}, "graceSeconds": GRACE_SECONDS}
        annotations["apps.kruise.io/inplace-update-grace"] = json.dumps(later)
        annotations.pop("apps.kruise.io/runtime-containers-meta")
        pod["spec"]["containers"][0]["image"] = OLD_IMAGE
        pod["status"]["containerStatuses"][0]["imageID"] = _OLD_ID
    else:
        record = [{"timestamp": now, "containers": ["nginx"]}]
        state |= {"lastContainerStatuses": {"nginx": {"imageID": _OLD_ID}}, "containerBatchesRecord": record}
    annotations["apps.kruise.io/inplace-update-state"] = json.dumps(state)


def _not_ready(pod: Json) -> None:
    for condition in pod["status"]["conditions"]:
        if condition["type"] in ("InPlaceUpdateReady", "Ready"):
            condition["status"] = "False"
            condition["reason"] = "StartInPlaceUpdate" if condition["type"] != "Ready" else "ReadinessGatesNotReady"
