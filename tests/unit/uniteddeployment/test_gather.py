"""Changes that wake a UnitedDeployment."""

from typing import Any

import msgspec
import pytest

from flotilla_common.api.kinds.uniteddeployment.types import SUBSET_LABEL, UnitedDeployment
from flotilla_common.api.workload import Workload
from flotilla_topology.uniteddeployment.children import CLONE_SETS, DEPLOYMENTS
from flotilla_topology.uniteddeployment.controller import CONTROLLER, REPLICA_SETS, UNITED_DEPLOYMENTS, WORKLOADS
from tests.support.controller_context import FakeContext
from tests.unit.uniteddeployment.build import OWNER


def owner(selector: dict[str, Any]) -> UnitedDeployment:
    metadata = {"name": "ud", "namespace": "ns", "uid": "u-ud", "resourceVersion": "1"}
    return msgspec.convert({"metadata": metadata, "spec": {"selector": selector}}, UnitedDeployment)


def workload(app: str, subset: str = "a", *, namespace: str = "ns", controlled: bool = False) -> Workload:
    metadata: dict[str, Any] = {"name": "stray", "namespace": namespace, "uid": "u", "resourceVersion": "1"}
    labels = {"app": app} | ({SUBSET_LABEL: subset} if subset else {})
    owners = [OWNER | {"uid": "another", "name": "another"}] if controlled else []
    return msgspec.convert({"metadata": metadata | {"labels": labels, "ownerReferences": owners}}, Workload)


@pytest.mark.parametrize(
    ("one", "woken"),
    [
        (workload("ud"), True),
        (workload("ud", subset=""), False),
        (workload("other"), False),
        (workload("ud", namespace="far"), False),
        (workload("ud", controlled=True), False),
    ],
)
def test_a_workload_that_it_may_adopt_wakes_it(one: Workload, woken: bool) -> None:
    context = FakeContext()
    context.build(CONTROLLER)
    context.put(UNITED_DEPLOYMENTS, owner({"matchLabels": {"app": "ud"}}))
    context.put(WORKLOADS[CLONE_SETS.name], one)
    assert context.woken == ([("ns", "ud")] if woken else [])


def test_a_selector_that_cannot_be_read_selects_nothing() -> None:
    context = FakeContext()
    context.build(CONTROLLER)
    context.put(UNITED_DEPLOYMENTS, owner({"matchExpressions": [{"key": "app", "operator": "Near"}]}))
    context.put(WORKLOADS[CLONE_SETS.name], workload("ud"))
    assert context.woken == []


def test_a_replica_set_that_comes_after_its_pods_wakes_it() -> None:
    context = FakeContext()
    context.build(CONTROLLER)
    context.put(UNITED_DEPLOYMENTS, owner({"matchLabels": {"app": "ud"}}))
    deployment = {"name": "ud-a", "namespace": "ns", "uid": "d", "resourceVersion": "1", "ownerReferences": [OWNER]}
    context.put(WORKLOADS[DEPLOYMENTS.name], msgspec.convert({"metadata": deployment}, Workload))
    context.woken.clear()
    above = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "ud-a", "uid": "d", "controller": True}
    below = {"name": "ud-a-1", "namespace": "ns", "uid": "r", "resourceVersion": "2", "ownerReferences": [above]}
    context.put(REPLICA_SETS, msgspec.convert({"metadata": below}, Workload))
    assert context.woken == [("ns", "ud")]
    context.put(REPLICA_SETS, msgspec.convert({"metadata": below | {"resourceVersion": "3"}}, Workload))
    assert context.woken == [("ns", "ud")]
