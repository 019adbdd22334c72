"""Builders for StatefulSets, pods, claims and snapshots, and the notation of the worked examples (statefulset.md §8).

`pods("0A 1B! 2B*")`: pods of set `w` by ordinal and revision. Behind the letter: `!` not ready, `P` pending, `F`
failed, `S` succeeded, `T` terminating, `*` specified for deletion, `G` given back by an update in place, its gate open
and not Ready yet; `:State` is the lifecycle state, `@5` ready for 5 seconds.
"""

import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from flotilla_common.api.core import ControllerRevision, PersistentVolumeClaim, Pod, StorageClass
from flotilla_common.api.kinds.statefulset.types import StatefulSet
from flotilla_common.control.plan import Action, Create, Delete, Patch, Plan
from flotilla_common.gates import Gates
from flotilla_common.workload.hashing import revision_data
from flotilla_statefulset.statefulset.plan import plan
from flotilla_statefulset.statefulset.snapshot import Options, StatefulSetSnapshot
from tests.testkit.documents import Json

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
LONG_AGO = NOW - timedelta(hours=1)
OWNER = {
    "apiVersion": "apps.kruise.io/v1beta1",
    "kind": "StatefulSet",
    "name": "w",
    "uid": "uid-w",
    "controller": True,
    "blockOwnerDeletion": True,
}
_TOKEN = re.compile(r"(\d+)([A-C])([!PFSTG*]*)(?::(\w+))?(?:@(\d+))?")


def raw(document: object) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(document))


def template(letter: str = "B", **spec: Any) -> Json:
    """The pod template of a revision; their images are all that differs."""
    container = {"name": "main", "image": f"shop:{letter}", "imagePullPolicy": "Always"}
    gates = [{"conditionType": "InPlaceUpdateReady"}]
    return {"metadata": {"labels": {"app": "w"}}, "spec": {"containers": [container], "readinessGates": gates, **spec}}


def revision(letter: str, number: int, content: Json | None = None) -> ControllerRevision:
    """The stored revision `w-A`."""
    document = {
        "metadata": {
            "name": f"w-{letter}",
            "namespace": "default",
            "uid": f"uid-rev-{letter}",
            "resourceVersion": "1",
            "labels": {"app": "w", "controller.kubernetes.io/hash": letter},
            "ownerReferences": [OWNER],
        },
        "revision": number,
        "data": msgspec.Raw(revision_data(raw(content or template(letter)))),
    }
    return msgspec.json.decode(msgspec.json.encode(document), type=ControllerRevision)


class Builder:
    """A StatefulSet `w`: its current revision is A, and its template that of `update`."""

    def __init__(self, replicas: int, update: str) -> None:
        self.spec: Json = {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "w"}},
            "template": template(update),
            "serviceName": "svc",
            "podManagementPolicy": "Parallel",
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"podUpdatePolicy": "ReCreate"}},
        }
        self.status: Json = {"currentRevision": "w-A", "collisionCount": 0}
        self.metadata: Json = {
            "name": "w",
            "namespace": "default",
            "uid": "uid-w",
            "resourceVersion": "7",
            "generation": 1,
        }

    def rolling(self, **members: Any) -> "Builder":
        self.spec["updateStrategy"]["rollingUpdate"].update(members)
        return self

    def ordered(self) -> "Builder":
        return self.set(podManagementPolicy="OrderedReady")

    def m(self, value: int | str) -> "Builder":
        return self.rolling(maxUnavailable=value)

    def p(self, value: int) -> "Builder":
        return self.rolling(partition=value)

    def in_place(self, *, only: bool = False, grace: int = 0) -> "Builder":
        policy = "InPlaceOnly" if only else "InPlaceIfPossible"
        return self.rolling(podUpdatePolicy=policy, inPlaceUpdateStrategy={"gracePeriodSeconds": grace})

    def unordered(self, **strategy: Any) -> "Builder":
        return self.rolling(unorderedUpdate={"priorityStrategy": strategy} if strategy else {})

    def on_delete(self) -> "Builder":
        return self.set(updateStrategy={"type": "OnDelete"})

    def set(self, **members: Any) -> "Builder":
        self.spec.update(members)
        return self

    def hook(self, name: str, *, not_ready: bool = False) -> "Builder":
        """Let label `hold: <name>` hold pods in a state."""
        hook = {"labelsHandler": {"hold": name}, "markPodNotReady": not_ready}
        self.spec.setdefault("lifecycle", {})[name] = hook
        return self

    def claims(self, *names: str, size: str = "1Gi", storage_class: str | None = None) -> "Builder":
        self.spec["volumeClaimTemplates"] = [
            {
                "metadata": {"name": name, "labels": {"kind": "disk"}},
                "spec": {
                    "accessModes": ["ReadWriteOnce"],
                    "resources": {"requests": {"storage": size}},
                    **({"storageClassName": storage_class} if storage_class else {}),
                },
            }
            for name in names
        ]
        return self

    def retention(self, deleted: str = "Retain", scaled: str = "Retain") -> "Builder":
        return self.set(persistentVolumeClaimRetentionPolicy={"whenDeleted": deleted, "whenScaled": scaled})

    def stored(self, **members: Any) -> "Builder":
        self.status.update(members)
        return self

    def deleting(self) -> "Builder":
        self.metadata["deletionTimestamp"] = NOW
        return self

    def build(self) -> StatefulSet:
        document = {"metadata": self.metadata, "spec": self.spec, "status": self.status}
        return msgspec.json.decode(msgspec.json.encode(document), type=StatefulSet)


def sts(replicas: int = 3, update: str = "B") -> Builder:
    return Builder(replicas, update)


def pods(text: str, *, claims: Iterable[str] = (), labels: dict[int, dict[str, str]] | None = None) -> list[Pod]:
    """The pods that the notation says, each with these claims as volumes."""
    found: list[Pod] = []
    for token in text.split():
        match = _TOKEN.fullmatch(token)
        assert match, token
        ordinal, letter, flags, state, since = match.groups()
        more = (labels or {}).get(int(ordinal), {})
        found.append(pod(int(ordinal), letter, flags, state or "Normal", since, claims=claims, labels=more))
    return found


def pod(
    ordinal: int,
    letter: str = "B",
    flags: str = "",
    state: str = "Normal",
    since: str | None = None,
    *,
    claims: Iterable[str] = (),
    labels: dict[str, str] | None = None,
    owners: list[Json] | None = None,
    set_name: str = "w",
    annotations: dict[str, str] | None = None,
) -> Pod:
    name = f"{set_name}-{ordinal}"
    sound = not set(flags) & set("!PFS")
    ready = sound and "G" not in flags
    phase = {"P": "Pending", "F": "Failed", "S": "Succeeded"}.get(next((f for f in flags if f in "PFS"), ""), "Running")
    ready_since = LONG_AGO if since is None else NOW - timedelta(seconds=int(since))
    own = {"lifecycle.apps.kruise.io/state": state} if state != "none" else {}
    specified = {"apps.kruise.io/specified-delete": "true"} if "*" in flags else {}
    document: Json = {
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": f"uid-{ordinal}",
            "resourceVersion": "5",
            "creationTimestamp": LONG_AGO,
            "deletionTimestamp": NOW if "T" in flags else None,
            "labels": {
                "app": "w",
                "controller-revision-hash": f"w-{letter}",
                "statefulset.kubernetes.io/pod-name": name,
                "apps.kubernetes.io/pod-index": str(ordinal),
                **own,
                **specified,
                **(labels or {}),
            },
            "annotations": annotations or {},
            "ownerReferences": [OWNER] if owners is None else owners,
        },
        "spec": {
            "nodeName": "" if "P" in flags else "node-1",
            "containers": [{"name": "main", "image": f"shop:{letter}"}],
            "readinessGates": [{"conditionType": "InPlaceUpdateReady"}, {"conditionType": "KruisePodReady"}],
            "volumes": [{"name": one, "persistentVolumeClaim": {"claimName": f"{one}-{name}"}} for one in claims],
        },
        "status": {
            "phase": phase,
            "conditions": [
                {"type": "InPlaceUpdateReady", "status": "True", "lastTransitionTime": LONG_AGO},
                {"type": "KruisePodReady", "status": "True", "lastTransitionTime": LONG_AGO},
                {"type": "ContainersReady", "status": str(sound), "lastTransitionTime": ready_since},
                {"type": "Ready", "status": str(ready), "lastTransitionTime": ready_since},
            ],
            "containerStatuses": [{"name": "main", "image": f"shop:{letter}", "imageID": f"id-{letter}"}],
        },
    }
    return msgspec.json.decode(msgspec.json.encode(document), type=Pod)


def claim(
    name: str,
    *,
    owners: Iterable[tuple[str, str, str]] = (),
    deleting: bool = False,
    size: str = "1Gi",
    capacity: str | None = None,
    storage_class: str | None = None,
    modes: Iterable[str] = ("ReadWriteOnce",),
    conditions: Iterable[str] = (),
) -> PersistentVolumeClaim:
    """A claim. `owners`: (kind, name, uid)."""
    versions = {"StatefulSet": "apps.kruise.io/v1beta1", "Pod": "v1"}
    document = {
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": f"uid-{name}",
            "resourceVersion": "3",
            "deletionTimestamp": NOW if deleting else None,
            "ownerReferences": [
                {"apiVersion": versions.get(kind, "v1"), "kind": kind, "name": owner, "uid": uid}
                for kind, owner, uid in owners
            ],
        },
        "spec": {
            "accessModes": list(modes),
            "resources": {"requests": {"storage": size}},
            **({"storageClassName": storage_class} if storage_class else {}),
        },
        "status": {
            "phase": "Bound",
            "capacity": {"storage": capacity or size},
            "conditions": [{"type": one, "status": "True"} for one in conditions],
        },
    }
    return msgspec.json.decode(msgspec.json.encode(document), type=PersistentVolumeClaim)


def storage_class(name: str, *, expands: bool | None = True) -> StorageClass:
    document = {"metadata": {"name": name}, "allowVolumeExpansion": expands}
    return msgspec.json.decode(msgspec.json.encode(document), type=StorageClass)


def snapshot(
    builder: Builder,
    found: Iterable[Pod] | str = (),
    *,
    claims: Iterable[PersistentVolumeClaim] = (),
    gates: str = "",
    foreign: Iterable[str] = (),
    revisions: Iterable[ControllerRevision] | None = None,
    **more: Any,
) -> StatefulSetSnapshot:
    there = pods(found) if isinstance(found, str) else list(found)
    stored = [revision("A", 1), revision("B", 2), revision("C", 3)] if revisions is None else list(revisions)
    if revisions is None and builder.spec["template"] == template("A"):
        stored = [revision("A", 3), revision("B", 2)]
    if revisions is None and builder.spec["template"] == template("B"):
        stored = stored[:2]
    orphans = [one for one in there if not one.metadata.owner_references]
    return StatefulSetSnapshot(
        statefulset=builder.build(),
        pods=[one for one in there if one.metadata.owner_references],
        orphans=orphans,
        taken_names=frozenset({*(one.metadata.name for one in there), *foreign}),
        claims={one.metadata.name: one for one in claims},
        revisions=stored,
        gates=Gates.parse(gates),
        options=Options(),
        **more,
    )


def planned(builder: Builder, found: Iterable[Pod] | str = (), **more: Any) -> Plan:
    return plan(snapshot(builder, found, **more), NOW)


def actions(result: Plan) -> list[Action]:
    return result.actions


def summary(result: Plan) -> list[str]:
    """The writes in the notation of the examples: `create 3B`, `delete 2`, `update 4B`, `hold 2`, `claim data-w-1` …"""
    told = [_told(action) for action in actions(result)]
    return [one for one in told if one]


def codes(result: Plan) -> set[str]:
    return {reason.code for reason in result.reasons}


def _told(action: Action) -> str:
    kind, number = action.resource.kind, action.name.rpartition("-")[2]
    match action:
        case Create(body=body) if kind == "Pod":
            return f"create {number}{body['metadata']['labels']['controller-revision-hash'].rpartition('-')[2]}"
        case Create():
            return f"create {kind} {action.name}"
        case Delete():
            return f"delete {number}" if kind == "Pod" else f"delete {kind} {action.name}"
        case Patch(body=body) if kind == "Pod":
            return _patch(number, action.subresource, body)
        case Patch(body=body):
            return f"patch {kind} {action.name}"


def _patch(number: str, subresource: str, body: Json) -> str:
    labels = body.get("metadata", {}).get("labels", {})
    if revision_label := labels.get("controller-revision-hash"):
        return f"update {number}{revision_label.rpartition('-')[2]}"
    state = labels.get("lifecycle.apps.kruise.io/state")
    if state:
        return f"{state} {number}"
    if "ownerReferences" in body.get("metadata", {}):
        return f"owner {number}"
    conditions = {one["type"]: one["status"] for one in body.get("status", {}).get("conditions", [])}
    if conditions.get("InPlaceUpdateReady") == "False":
        return ""  # the first half of an update
    return f"refresh {number}" if subresource else f"labels {number}"
