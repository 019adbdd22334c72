"""Counts and creates pods as the built-in controllers do."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from flotilla_common.api.documents import Json, mappings, member
from flotilla_common.api.resources import Resource
from flotilla_common.model.kubelet import has_ended, is_ready

Change = tuple[Resource, Json | None, Json | None]
"""A resource, and an object before and after; without the first it is created, without the second deleted."""


def is_active(pod: Json) -> bool:
    """Report whether the pod has neither ended nor been deleted."""
    return "deletionTimestamp" not in pod["metadata"] and not has_ended(pod)


def available_from(pod: Json, owner: Json) -> datetime | None:
    """Return when the pod has been ready for the owner's minReadySeconds; None while it is not ready."""
    if not is_active(pod) or not is_ready(pod):
        return None
    ready = next(one for one in mappings(pod["status"]["conditions"]) if one["type"] == "Ready")
    since = datetime.fromisoformat(ready.get("lastTransitionTime") or pod["metadata"]["creationTimestamp"])
    return since + timedelta(seconds=int(owner["spec"].get("minReadySeconds", 0)))


def is_available(pod: Json, owner: Json, now: datetime) -> bool:
    """Report whether the pod has been ready for long enough."""
    moment = available_from(pod, owner)
    return moment is not None and moment <= now


def counted(pods: Iterable[Json], owner: Json, now: datetime) -> Json:
    """Return the status counts that all workloads have."""
    found = list(pods)
    return {
        "replicas": len(found),
        "readyReplicas": sum(map(is_ready, found)),
        "availableReplicas": sum(is_available(pod, owner, now) for pod in found),
        "observedGeneration": owner["metadata"].get("generation", 0),
    }


def with_status(resource: Resource, owner: Json, status: Json) -> list[Change]:
    """Return the write of a status, if it changes anything."""
    after = owner | {"status": member(owner, "status") | status}
    return [] if _told(after) == _told(owner) else [(resource, owner, after)]


def made_from(template: Json, resource: Resource, owner: Json, name: str, labels: Json) -> Json:
    """Return a new object from the template, controlled by the owner."""
    metadata, meta = member(template, "metadata"), owner["metadata"]
    reference = {**resource.type_meta, "name": meta["name"], "uid": meta["uid"]}
    own = {"name": name, "namespace": meta.get("namespace", ""), "labels": member(metadata, "labels") | labels}
    owners = {"ownerReferences": [reference | {"controller": True, "blockOwnerDeletion": True}]}
    return {"metadata": metadata | own | owners, "spec": template["spec"]}


def _told(document: Json) -> Json:
    """Return the status without zeros: a missing count is zero."""
    return {key: value for key, value in member(document, "status").items() if value != 0}
