"""Budgets, pods and snapshots for the tests of the controller of budgets."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

import msgspec

from flotilla_common.api.core import Pod
from flotilla_common.api.kinds.podunavailablebudget.types import PodUnavailableBudget
from flotilla_common.api.meta import rfc3339
from flotilla_common.api.workload import Workload
from flotilla_common.gates import Gates
from flotilla_policy.podunavailablebudget.snapshot import BudgetSnapshot, Counted
from tests.testkit import pods as pods_of
from tests.testkit.documents import Json, conditions, decoded
from tests.testkit.pods import container

NOW = datetime.fromisoformat("2026-03-01T08:00:30+00:00")
GATES = Gates.parse("")
LABELS = {"app": "web"}
SELECTOR = {"matchLabels": LABELS}
BY = "pub.kruise.io/related-pub"


def ago(seconds: float) -> str:
    return rfc3339(NOW - timedelta(seconds=seconds))


def budget(name: str = "pub", *, status: Json | None = None, metadata: Json | None = None, **spec: Any) -> Any:
    """Return a budget; without `selector` and `targetRef` one that selects `LABELS`."""
    if "selector" not in spec and "targetRef" not in spec:
        spec["selector"] = SELECTOR
    meta = {"name": name, "namespace": "ns", "uid": f"uid-{name}", "resourceVersion": "7", "generation": 1}
    document = {"metadata": meta | (metadata or {}), "spec": spec, "status": status or {}}
    return decoded(document, PodUnavailableBudget)


def pod(name: str, *, ready: bool = True, owner: Json | None = None, **metadata: Any) -> Pod:
    """Return a pod that runs, made an hour ago, which names budget `pub`."""
    known: Json = {"namespace": "ns", "uid": f"uid-{name}", "version": 1, "created": ago(3600), "labels": LABELS}
    known |= {"annotations": {BY: "pub"}, "ownerReferences": [owner | {"controller": True}] if owner else []}
    document = pods_of.pod(
        name,
        **known | metadata,
        containers=[container("main", "app:1")],
        phase="Running",
        conditions=conditions({"Ready": ready}, ago(3500)),
    )
    return decoded(document, Pod)


def pods(number: int, *, unready: int = 0) -> list[Pod]:
    """Return pods p-0, p-1, …; the last ones are not ready."""
    return [pod(f"p-{index}", ready=index < number - unready) for index in range(number)]


def terminating(name: str, seconds: float = 30) -> Pod:
    """Return a pod whose grace period ends in this many seconds."""
    return pod(name, deletionTimestamp=ago(-seconds))


def owner(kind: str, name: str = "web", api_version: str = "apps/v1") -> Json:
    return {"apiVersion": api_version, "kind": kind, "name": name, "uid": f"uid-{name}"}


def workload(name: str = "web", replicas: int | None = 3, **metadata: Any) -> Workload:
    meta = {"name": name, "namespace": "ns", "uid": f"uid-{name}", "resourceVersion": "1"}
    spec = {"template": {"metadata": {"labels": LABELS}}} | ({} if replicas is None else {"replicas": replicas})
    return decoded({"metadata": meta | metadata, "spec": spec}, Workload)


def snapshot(
    given: PodUnavailableBudget, expected: int, counted: Iterable[Pod], others: Iterable[Pod] = (), **members: Any
) -> BudgetSnapshot:
    """Return what is gathered for the budget. `others`: pods that do not count, such as terminating ones."""
    there = list(counted)
    entries = {*given.status.disrupted_pods, *given.status.unavailable_pods}
    found = BudgetSnapshot(
        budget=given,
        gates=GATES,
        pods=there,
        workloads=[Counted("CloneSet", "web", expected)],
        expected=expected,
        named={one.metadata.name: one for one in (*there, *others) if one.metadata.name in entries},
    )
    return msgspec.structs.replace(found, **members)
