"""Builders for StatefulSets, pods, claims and snapshots, and the notation of the worked examples (statefulset.md §8).

`pods("0A 1B! 2B*")`: pods of set `w` by ordinal and revision. Behind the letter: `!` not ready, `P` pending, `F`
failed, `S` succeeded, `T` terminating, `*` specified for deletion, `G` given back by an update in place, its gate open
and not Ready yet; `:State` is the lifecycle state, `@5` ready for 5 seconds.
"""

import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, Self

from flotilla_common.api.core import ControllerRevision, PersistentVolumeClaim, Pod, StorageClass
from flotilla_common.api.kinds.statefulset.types import StatefulSet
from flotilla_common.control.plan import Action, Create, Delete, Patch, Plan
from flotilla_common.gates import Gates
from flotilla_statefulset.statefulset.plan import plan
from flotilla_statefulset.statefulset.snapshot import Options, StatefulSetSnapshot
from tests.testkit import pods as pods_of
from tests.testkit.documents import Json, conditions, decoded, metadata, owner
from tests.testkit.pods import container, container_status
from tests.testkit.workloads import Workload, stored_revision

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
LONG_AGO = NOW - timedelta(hours=1)
OWNER = owner("StatefulSet", "w", "uid-w", blockOwnerDeletion=True)
GATED = ("InPlaceUpdateReady", "KruisePodReady")
_TOKEN = re.compile(r"(\d+)([A-C])([!PFSTG*]*)(?::(\w+))?(?:@(\d+))?")


def template(letter: str = "B", **spec: Any) -> Json:
    """Return the pod template of a revision; their images are all that differs."""
    container = {"name": "main", "image": f"shop:{letter}", "imagePullPolicy": "Always"}
    gates = [{"conditionType": "InPlaceUpdateReady"}]
    return {"metadata": {"labels": {"app": "w"}}, "spec": {"containers": [container], "readinessGates": gates, **spec}}


def revision(letter: str, number: int, content: Json | None = None) -> ControllerRevision:
    """Return the stored revision `w-A`."""
    labels = {"app": "w", "controller.kubernetes.io/hash": letter}
    meta = {"uid": f"uid-rev-{letter}", "labels": labels, "ownerReferences": [OWNER]}
    return stored_revision(f"w-{letter}", number, content or template(letter), **meta)


class Builder(Workload[StatefulSet]):
    """A StatefulSet `w`: its current revision is A, and its template that of `update`."""

    def __init__(self, replicas: int, update: str) -> None:
        spec = {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "w"}},
            "template": template(update),
            "serviceName": "svc",
            "podManagementPolicy": "Parallel",
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"podUpdatePolicy": "ReCreate"}},
        }
        super().__init__(StatefulSet, "w", spec=spec, status={"currentRevision": "w-A", "collisionCount": 0})

    def ordered(self) -> Self:
        return self.set(podManagementPolicy="OrderedReady")

    def m(self, value: int | str) -> Self:
        return self.rolling(maxUnavailable=value)

    def p(self, value: int) -> Self:
        return self.rolling(partition=value)

    def unordered(self, **strategy: Any) -> Self:
        return self.rolling(unorderedUpdate={"priorityStrategy": strategy} if strategy else {})

    def claims(self, *names: str, size: str = "1Gi", storage_class: str | None = None) -> Self:
        spec: Json = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}
        spec |= {"storageClassName": storage_class} if storage_class else {}
        meta = {"labels": {"kind": "disk"}}
        return self.set(volumeClaimTemplates=[{"metadata": {"name": name} | meta, "spec": spec} for name in names])

    def retention(self, deleted: str = "Retain", scaled: str = "Retain") -> Self:
        return self.set(persistentVolumeClaimRetentionPolicy={"whenDeleted": deleted, "whenScaled": scaled})

    def deleting(self) -> Self:
        return self.deleted(NOW)


def sts(replicas: int = 3, update: str = "B") -> Builder:
    return Builder(replicas, update)


def pods(text: str, *, claims: Iterable[str] = (), labels: dict[int, dict[str, str]] | None = None) -> list[Pod]:
    """Return the pods of the notation, each with these claims as volumes."""
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
    known = {"app": "w", "controller-revision-hash": f"w-{letter}", "statefulset.kubernetes.io/pod-name": name}
    known |= {"apps.kubernetes.io/pod-index": str(ordinal)}
    own = {"lifecycle.apps.kruise.io/state": state} if state != "none" else {}
    specified = {"apps.kruise.io/specified-delete": "true"} if "*" in flags else {}
    document = pods_of.pod(
        name,
        uid=f"uid-{ordinal}",
        version=5,
        created=LONG_AGO,
        deleted=NOW if "T" in flags else None,
        labels=known | own | specified | (labels or {}),
        annotations=annotations,
        ownerReferences=[OWNER] if owners is None else owners,
        node="" if "P" in flags else "node-1",
        containers=[container("main", f"shop:{letter}")],
        gates=GATED,
        spec={"volumes": [{"name": one, "persistentVolumeClaim": {"claimName": f"{one}-{name}"}} for one in claims]},
        phase=phase,
        conditions=[
            *conditions(dict.fromkeys(GATED, True), LONG_AGO),
            *conditions({"ContainersReady": sound, "Ready": ready}, ready_since),
        ],
        statuses=[container_status("main", f"shop:{letter}", f"id-{letter}")],
    )
    return decoded(document, Pod)


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
    """Return a claim. `owners`: (kind, name, uid)."""
    versions = {"StatefulSet": "apps.kruise.io/v1beta1", "Pod": "v1"}
    references = [
        {"apiVersion": versions.get(kind, "v1"), "kind": kind, "name": held, "uid": uid} for kind, held, uid in owners
    ]
    times = {"deleted": NOW if deleting else None}
    spec: Json = {"accessModes": list(modes), "resources": {"requests": {"storage": size}}}
    status = {"phase": "Bound", "capacity": {"storage": capacity or size}}
    document = {
        "metadata": metadata(name, "default", uid=f"uid-{name}", version=3, ownerReferences=references, **times),
        "spec": spec | ({"storageClassName": storage_class} if storage_class else {}),
        "status": status | {"conditions": [{"type": one, "status": "True"} for one in conditions]},
    }
    return decoded(document, PersistentVolumeClaim)


def storage_class(name: str, *, expands: bool | None = True) -> StorageClass:
    return decoded({"metadata": {"name": name}, "allowVolumeExpansion": expands}, StorageClass)


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


def summary(result: Plan) -> list[str]:
    """Return the writes in the examples' notation: `create 3B`, `delete 2`, `update 4B`, `hold 2`, `claim data-w-1`."""
    told = [_told(action) for action in result.actions]
    return [one for one in told if one]


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
