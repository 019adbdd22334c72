"""Short words for WorkloadSpreads, their subsets and pods."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from flotilla_common.api.core import Node, Pod
from flotilla_common.api.kinds.workloadspread.types import MATCHED, WorkloadSpread
from flotilla_common.control.plan import Patch, Plan
from flotilla_topology.workloadspread.plan import plan
from flotilla_topology.workloadspread.snapshot import Target, WorkloadSpreadSnapshot
from tests.testkit import pods as pods_of
from tests.testkit.documents import Json, decoded

NOW = datetime(2026, 11, 26, 12, tzinfo=UTC)
COST = "controller.kubernetes.io/pod-deletion-cost"


def at(seconds: float) -> str:
    """Return a time that many seconds after NOW."""
    return (NOW + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def subset(name: str, limit: int | str | None = None, **more: Any) -> Json:
    """Return a subset."""
    return {"name": name} | ({} if limit is None else {"maxReplicas": limit}) | more


def spread(*subsets: Json, patience: int = 0, status: Json | None = None, **metadata: Any) -> Json:
    """Return a WorkloadSpread of the CloneSet `web`."""
    strategy = {"type": "Adaptive", "adaptive": {"rescheduleCriticalSeconds": patience}} if patience else {}
    return {
        "metadata": {"name": "ws", "namespace": "ns", "uid": "u-ws", "generation": 3, "resourceVersion": "7"}
        | metadata,
        "spec": {
            "targetRef": {"apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet", "name": "web"},
            "subsets": list(subsets),
            "scheduleStrategy": strategy,
        },
        "status": status or {},
    }


def book(name: str, **members: Any) -> Json:
    """Return an entry of a book."""
    return {"name": name, "replicas": 0, "missingReplicas": 0} | members


def pod(
    name: str,
    subset: str | None = None,
    *,
    phase: str = "Running",
    node: str = "n",
    uid: str = "",
    stuck: float | None = None,
    **metadata: Any,
) -> Json:
    """Return a pod; `stuck`: it was created that many seconds before NOW, and finds no node."""
    annotations: Json = dict(metadata.pop("annotations", {}))
    if subset is not None:
        matched = {"name": "ws", "subset": subset} | ({"uid": uid} if uid else {})
        annotations[MATCHED] = msgspec.json.encode(matched).decode()
    lost = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": at(-60)}
    return pods_of.pod(
        name,
        "ns",
        **{"uid": f"u-{name}", "annotations": annotations, "created": at(-60 if stuck is None else -stuck)} | metadata,
        node="" if stuck is not None else node,
        phase="Pending" if stuck is not None else phase,
        conditions=[lost] if stuck is not None else [ready],
    )


def node(name: str, taints: Sequence[Json] = (), **labels: str) -> Json:
    """Return a node."""
    return {"metadata": {"name": name, "labels": labels}, "spec": {"taints": list(taints)}}


def snapshot(
    document: Json,
    pods: Sequence[Json] = (),
    *,
    replicas: int = 10,
    nodes: Sequence[Json] = (),
    target: Target | None = None,
    versions: dict[str, str] | None = None,
) -> WorkloadSpreadSnapshot:
    """Return the snapshot that the planner gets; without versions all pods are of the same."""
    typed = [decoded(one, Pod) for one in pods]
    return WorkloadSpreadSnapshot(
        spread=decoded(document, WorkloadSpread),
        target=target or Target(replicas=replicas, costed=True, ordered=versions is not None),
        pods=typed,
        versions={one.metadata.uid: (versions or {}).get(one.metadata.name, "versionIgnored") for one in typed},
        nodes={one["metadata"]["name"]: decoded(one, Node) for one in nodes},
    )


def planned(document: Json, pods: Sequence[Json] = (), **more: Any) -> Plan:
    """Plan a pass at NOW."""
    return plan(snapshot(document, pods, **more), NOW)


def costs(made: Plan) -> dict[str, int]:
    """Return the costs that are written, by name of the pod."""
    return {name: int(cost) for name, cost in annotated(made, COST).items()}


def annotated(made: Plan, key: str) -> dict[str, str]:
    """Return the values of an annotation that are written, by name of the pod."""
    bodies: list[tuple[str, Json]] = [(one.name, one.body) for one in made.actions if isinstance(one, Patch)]
    found = ((name, body["metadata"].get("annotations", {}).get(key)) for name, body in bodies)
    return {name: value for name, value in found if value is not None}


def entries(made: Plan) -> list[Json]:
    """Return the totals of the status that is written."""
    assert made.status is not None
    found: list[Json] = made.status.body["status"]["subsetStatuses"]
    return found
