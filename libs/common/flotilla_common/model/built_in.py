"""Models the controllers of Deployments, ReplicaSets and built-in StatefulSets.

They compute the next changes from the current objects.
"""

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta

import msgspec

from flotilla_common.api.documents import Json, mappings, member
from flotilla_common.api.numbers import strict_value
from flotilla_common.api.resources import BUILT_IN_STATEFUL_SET, CLAIM, DEPLOYMENT, POD, REPLICA_SET, Resource
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


HASH_LABEL = "pod-template-hash"


def of_deployment(deployment: Json, sets: Sequence[Json], now: datetime) -> list[Change]:
    """Return the changes due: grow the newest template's ReplicaSet, shrink the others, within the strategy."""
    changes = list[Change]()
    new = next((one for one in sets if _template_of(one) == deployment["spec"]["template"]), None)
    if new is None and not deployment["spec"].get("paused"):
        return [(REPLICA_SET, None, _new_set(deployment))]
    if new is not None:
        old = sorted((one for one in sets if one is not new), key=lambda one: one["metadata"]["creationTimestamp"])
        sizes = _sizes(deployment["spec"], new, old)
        resized = [(one, size) for one, size in zip((new, *old), sizes, strict=True) if size != _size(one)]
        changes += [(REPLICA_SET, one, one | {"spec": one["spec"] | {"replicas": size}}) for one, size in resized]
    return changes + with_status(DEPLOYMENT, deployment, _status(deployment, new, sets))


def of_replica_set(owner: Json, pods: Sequence[Json], now: datetime) -> list[Change]:
    """Return the changes due: create pods, or delete the least ready ones."""
    alive = [pod for pod in pods if is_active(pod)]
    surplus, changes = len(alive) - _size(owner), list[Change]()
    alive.sort(
        key=lambda pod: (is_ready(pod), -datetime.fromisoformat(pod["metadata"]["creationTimestamp"]).timestamp())
    )
    changes += [(POD, pod, None) for pod in alive[: max(surplus, 0)]]
    taken, number = {pod["metadata"]["name"] for pod in pods}, 0
    while surplus < 0:
        suffix = hashlib.sha256(f"{owner['metadata']['uid']}/{number}".encode()).hexdigest()[:5]
        name, number = f"{owner['metadata']['name']}-{suffix}", number + 1
        if name not in taken:
            changes.append((POD, None, made_from(owner["spec"]["template"], REPLICA_SET, owner, name, {})))
            surplus += 1
    return changes + with_status(REPLICA_SET, owner, counted(alive, owner, now))


def _new_set(deployment: Json) -> Json:
    """Return the ReplicaSet of the Deployment's template, with no pods yet."""
    spec = deployment["spec"]
    template = spec["template"]
    text = hashlib.sha256(msgspec.json.encode(template, order="sorted")).hexdigest()[:10]
    made = made_from(template, DEPLOYMENT, deployment, f"{deployment['metadata']['name']}-{text}", {HASH_LABEL: text})
    marked = template | {"metadata": member(template, "metadata") | {"labels": made["metadata"]["labels"]}}
    selector = spec["selector"] | {"matchLabels": member(spec, "selector", "matchLabels") | {HASH_LABEL: text}}
    kept = {key: spec[key] for key in ("minReadySeconds",) if key in spec}
    return made | {"spec": kept | {"replicas": 0, "selector": selector, "template": marked}}


def _sizes(spec: Json, new: Json, old: Sequence[Json]) -> list[int]:
    """Return the next sizes of the new ReplicaSet and of the old ones, the oldest first."""
    replicas = int(spec.get("replicas", 1))
    if member(spec, "strategy").get("type") == "Recreate":
        running = any(member(one, "status").get("replicas") for one in old)
        return [_size(new) if running else replicas, *(0 for _ in old)]
    rolling = member(spec, "strategy", "rollingUpdate")
    surge = strict_value(rolling.get("maxSurge", "25%"), replicas, round_up=True)
    unavailable = strict_value(rolling.get("maxUnavailable", "25%"), replicas, round_up=False)
    least = replicas - (unavailable or (0 if surge else 1))
    sizes = [_size(one) for one in (new, *old)]
    grown = min(replicas, sizes[0] + max(replicas + surge - sum(sizes), 0))
    if grown != sizes[0]:
        return [grown, *sizes[1:]]
    available = [min(_available(one), _size(one)) for one in (new, *old)]
    spare = sum(sizes) - least - (sizes[0] - available[0])
    for at in range(1, len(sizes)):  # unavailable pods go first
        gone = min(sizes[at] - available[at], max(spare, 0))
        sizes[at], spare = sizes[at] - gone, spare - gone
    for at in range(1, len(sizes)):
        gone = min(sizes[at], max(sum(available) - least, 0), max(spare, 0))
        sizes[at], available[at], spare = sizes[at] - gone, available[at] - gone, spare - gone
    return sizes


def _status(deployment: Json, new: Json | None, sets: Sequence[Json]) -> Json:
    counts = {
        count: sum(int(member(one, "status").get(count, 0)) for one in sets)
        for count in ("replicas", "readyReplicas", "availableReplicas")
    }
    return counts | {
        "updatedReplicas": int(member(new or {}, "status").get("replicas", 0)),
        "unavailableReplicas": max(sum(map(_size, sets)) - counts["availableReplicas"], 0),
        "observedGeneration": deployment["metadata"].get("generation", 0),
    }


def _size(one: Json) -> int:
    return int(one["spec"].get("replicas", 1))


def _available(one: Json) -> int:
    return int(member(one, "status").get("availableReplicas", 0))


def _template_of(one: Json) -> Json:
    """Return the template of the ReplicaSet as the Deployment had it."""
    template = one["spec"]["template"]
    labels = {key: value for key, value in member(template, "metadata", "labels").items() if key != HASH_LABEL}
    return template | {"metadata": member(template, "metadata") | {"labels": labels}}


REVISION_LABEL = "controller-revision-hash"
Templates = Mapping[str, Json]
"""Templates by the names of their revisions, the newest last."""


def revision_of(owner: Json) -> str:
    """Return the revision name of the set's template, unless it was seen under another name before."""
    text = hashlib.sha256(msgspec.json.encode(owner["spec"]["template"], order="sorted")).hexdigest()[:10]
    return f"{owner['metadata']['name']}-{text}"


def of_stateful_set(
    owner: Json, pods: Sequence[Json], claims: Collection[str], templates: Templates, now: datetime
) -> list[Change]:
    """Return the changes due: one pod at a time unless Parallel. `claims` are the names of existing claims."""
    spec = owner["spec"]
    update = list(templates)[-1]
    current = str(member(owner, "status").get("currentRevision") or update)
    first = int(member(spec, "ordinals").get("start", 0))
    wanted = range(first, first + int(spec.get("replicas", 1)))
    found = {int(pod["metadata"]["name"].rpartition("-")[2]): pod for pod in pods}
    rolling = member(spec, "updateStrategy", "rollingUpdate")
    boundary = first + int(rolling.get("partition", 0))
    surplus = sorted((one for one in found if one not in wanted), reverse=True)
    down = [one for one in wanted if one not in found or not is_available(found[one], owner, now)]
    ordered = spec.get("podManagementPolicy") != "Parallel"
    changes = list[Change]()
    for ordinal in down[:1] if ordered else down:
        if ordinal not in found:
            revision = current if ordinal < boundary and current in templates else update
            changes += _created(owner, ordinal, revision, templates[revision], claims)
        elif has_ended(found[ordinal]):
            changes.append((POD, found[ordinal], None))
    is_blocked = ordered and bool(down)
    leaving = [] if is_blocked else surplus[:1] if ordered else surplus
    if not changes and not surplus and not is_blocked and member(spec, "updateStrategy").get("type") != "OnDelete":
        most = max(strict_value(rolling.get("maxUnavailable", 1), len(wanted), round_up=True), 1)
        outdated = [one for one in reversed(wanted) if one >= boundary and _revision(found[one]) != update]
        leaving = outdated[: max(most - len([one for one in down if one not in outdated]), 0)]
    changes += [(POD, found[one], None) for one in leaving if is_active(found[one])]
    alive = [pod for pod in pods if is_active(pod)]
    updated = [pod for pod in alive if _revision(pod) == update]
    told = counted(alive, owner, now) | {"updateRevision": update, "updatedReplicas": len(updated)}
    done = len(updated) == len(alive) == len(wanted) and not down and not surplus
    told["currentRevision"] = current = update if done else current
    told["currentReplicas"] = sum(_revision(pod) == current for pod in alive)
    return changes + with_status(BUILT_IN_STATEFUL_SET, owner, told)


def _revision(pod: Json) -> str:
    return str(member(pod, "metadata", "labels").get(REVISION_LABEL, ""))


def _created(owner: Json, ordinal: int, revision: str, template: Json, claims: Collection[str]) -> list[Change]:
    """Return the creation of the pod and of its missing claims."""
    name, namespace = f"{owner['metadata']['name']}-{ordinal}", owner["metadata"].get("namespace", "")
    index = {"apps.kubernetes.io/pod-index": str(ordinal), "statefulset.kubernetes.io/pod-name": name}
    pod = made_from(template, BUILT_IN_STATEFUL_SET, owner, name, index | {REVISION_LABEL: revision})
    volumes: list[Json] = []
    changes: list[Change] = []
    for one in mappings(owner["spec"].get("volumeClaimTemplates")):
        claim = f"{one['metadata']['name']}-{name}"
        volumes.append({"name": one["metadata"]["name"], "persistentVolumeClaim": {"claimName": claim}})
        if claim not in claims:
            metadata = member(one, "metadata") | {"name": claim, "namespace": namespace}
            changes.append((CLAIM, None, {"metadata": metadata, "spec": one["spec"]}))
    own = {volume["name"] for volume in volumes}
    volumes += [volume for volume in mappings(template["spec"].get("volumes")) if volume["name"] not in own]
    spec = pod["spec"] | {"hostname": name} | ({"volumes": volumes} if volumes else {})
    return [*changes, (POD, None, pod | {"spec": spec})]
