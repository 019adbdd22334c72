"""Models the controllers of Deployments and ReplicaSets: computes the next changes from the current objects."""

import hashlib
from collections.abc import Sequence
from datetime import datetime

import msgspec

from flotilla_common.api.documents import Json, member
from flotilla_common.api.numbers import strict_value
from flotilla_common.api.resources import DEPLOYMENT, POD, REPLICA_SET
from flotilla_common.model.kubelet import is_ready
from flotilla_common.model.owned_pods import Change, counted, is_active, made_from, with_status

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
