"""Models the controller of built-in StatefulSets: computes the next changes from the current objects."""

import hashlib
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

import msgspec

from flotilla_common.api.documents import Json, mappings, member
from flotilla_common.api.numbers import strict_value
from flotilla_common.api.resources import BUILT_IN_STATEFUL_SET, CLAIM, POD
from flotilla_common.model.kubelet import has_ended
from flotilla_common.model.owned_pods import Change, counted, is_active, is_available, made_from, with_status

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
