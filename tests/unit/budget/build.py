"""Pods and budgets shared by the tests of budgets."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from flotilla_common.api.core import Pod
from flotilla_common.api.kinds.podunavailablebudget.types import RELATED_BUDGET, PodUnavailableBudget
from flotilla_common.gates import Gates
from tests.testkit import pods as pods_of
from tests.testkit.documents import Json, conditions, decoded
from tests.testkit.pods import container, container_status

NOW = datetime(2026, 3, 1, 8, 0, 30, tzinfo=UTC)
LONG_AGO = NOW - timedelta(hours=1)
GATES = Gates.parse("PodUnavailableBudgetUpdateGate=true")
RESIZE_GATES = Gates.parse("PodUnavailableBudgetUpdateGate=true,InPlacePodVerticalScaling=true")
IMAGE_ID = "docker.io/library/nginx@sha256:" + "a" * 64


def pod_document(name: str = "a", **members: Any) -> Json:
    """Return a pod that is ready and names budget `pub`.

    `members`: `metadata` and `status`, which are merged, and `spec`.
    """
    document = {"apiVersion": "v1", "kind": "Pod"} | pods_of.pod(
        name,
        uid=f"uid-{name}",
        created=LONG_AGO,
        labels={"app": "web"},
        annotations={RELATED_BUDGET: "pub"},
        containers=[container("main", "nginx:1.29")],
        phase="Running",
        conditions=conditions({"Ready": True}, LONG_AGO),
        statuses=[container_status("main", "docker.io/library/nginx:1.29", IMAGE_ID)],
    )
    for member, values in members.items():
        document[member] |= values
    return msgspec.json.decode(msgspec.json.encode(document))


def pod(name: str = "a", **members: Any) -> Pod:
    """Return the same, decoded."""
    return msgspec.convert(pod_document(name, **members), Pod)


def budget(name: str = "pub", *, metadata: Json | None = None, **members: Any) -> PodUnavailableBudget:
    """Return a budget of one for three pods, all of which are available. `members`: of `spec` and `status`."""
    document: Json = {
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}", "resourceVersion": "1"}
        | (metadata or {}),
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "web"}}} | members.get("spec", {}),
        "status": {"unavailableAllowed": 1, "currentAvailable": 3, "desiredAvailable": 2, "totalReplicas": 3}
        | members.get("status", {}),
    }
    return decoded(document, PodUnavailableBudget)
