"""The budgets that are planned after each change, and when (podunavailablebudget.md §7.1)."""

from typing import Any

import msgspec
import pytest

from flotilla_common.api.core import Pod, PodStatus
from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.resources import DEPLOYMENT, REPLICA_SET
from flotilla_common.api.workload import Workload
from flotilla_policy.podunavailablebudget.controller import BUDGETS, CONTROLLER, PODS, WORKLOADS
from tests.support.controller_context import FakeContext
from tests.testkit.documents import Json
from tests.unit.podunavailablebudget.build import BY, LABELS, budget, owner, pod, workload

PUB = ("ns", "pub")
CLONES = {"apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet", "name": "web"}
SETS = owner("CloneSet", api_version="apps.kruise.io/v1beta1")
UNNAMED: Json = {"annotations": {}}


def scene(*budgets: Any) -> FakeContext:
    context = FakeContext()
    context.build(CONTROLLER)
    context.put(BUDGETS, *(budgets or (budget(maxUnavailable=1),)))
    context.woken.clear()
    return context


def changed(one: Any, **metadata: Any) -> Any:
    """Return the next version of an object."""
    version = str(int(one.metadata.resource_version) + 1)
    meta = msgspec.structs.replace(one.metadata, resource_version=version, **metadata)
    return msgspec.structs.replace(one, metadata=meta)


def deleting(one: Pod) -> Pod:
    return changed(one, deletion_timestamp=one.metadata.creation_timestamp)


@pytest.mark.parametrize(
    ("made", "woken"),
    [
        pytest.param(pod("a"), [PUB], id="names it"),
        pytest.param(pod("a", labels={}), [PUB], id="names it, whatever its labels"),
        pytest.param(pod("a", labels={}, annotations={BY: "gone"}), [], id="names one that does not exist"),
        pytest.param(pod("a", **UNNAMED), [PUB], id="is selected, and names none yet"),
        pytest.param(pod("a", labels={}, **UNNAMED), [], id="is not selected"),
        pytest.param(pod("a", namespace="other"), [], id="in another namespace"),
    ],
)
def test_a_pod_that_comes(made: Pod, woken: list[tuple[str, str]]) -> None:
    context = scene()
    context.put(PODS, made)
    assert context.woken == woken


def test_a_pod_of_the_target_that_names_none_yet() -> None:
    context = scene(budget(targetRef=CLONES, maxUnavailable=1))
    context.put(PODS, pod("a", owner=SETS, labels={}, **UNNAMED))
    assert context.woken == [PUB]


@pytest.mark.parametrize(
    ("then", "woken"),
    [
        pytest.param(changed(pod("a", ready=False)), [PUB], id="it is not ready any more"),
        pytest.param(changed(pod("a"), labels={}), [PUB], id="another label"),
        pytest.param(changed(pod("a"), annotations={BY: "pub", "x": "y"}), [], id="another annotation"),
        pytest.param(changed(pod("a"), finalizers=["x"]), [], id="a finalizer"),
        pytest.param(deleting(pod("a")), [PUB], id="it terminates, and no budget was taken for it"),
    ],
)
def test_a_pod_that_changes(then: Pod, woken: list[tuple[str, str]]) -> None:
    context = scene()
    context.put(PODS, pod("a"))
    context.woken.clear()
    context.put(PODS, then)
    assert context.woken == woken


async def test_the_end_of_a_pod_for_which_budget_was_taken_waits_five_seconds() -> None:
    context = scene(budget(maxUnavailable=1, status={"disruptedPods": {"a": "2026-03-01T08:00:00Z"}}))
    context.put(PODS, pod("a"))
    context.woken.clear()
    context.put(PODS, deleting(pod("a")))
    assert (context.woken, context.replanned) == ([], [])
    await context.work()
    assert (context.clock.sleeps, context.replanned) == ([5.0], [PUB])


ENDED = msgspec.structs.replace(pod("a"), status=PodStatus(phase="Succeeded"))


@pytest.mark.parametrize(("last", "woken"), [(pod("a"), [PUB]), (deleting(pod("a")), [PUB]), (ENDED, [])])
def test_a_pod_that_is_gone(last: Pod, woken: list[tuple[str, str]]) -> None:
    """Plan nothing at the end of a pod that was seen to terminate."""
    context = scene()
    context.put(PODS, last)
    context.woken.clear()
    context.table(PODS).remove("ns", "a", "uid-a")
    assert context.woken == woken


@pytest.mark.parametrize(
    "given",
    [budget(maxUnavailable=1), budget(targetRef=CLONES, maxUnavailable=1)],
    ids=["by the labels of its template", "by name"],
)
def test_a_workload(given: Any) -> None:
    context, watch = scene(given), WORKLOADS[CLONE_SET]
    steps: list[Workload] = [
        workload(),
        workload(resourceVersion="2", labels={"x": "y"}),
        workload(replicas=2, resourceVersion="3"),
        workload(replicas=2, resourceVersion="4", deletionTimestamp="2026-03-01T08:00:00Z"),
    ]
    woken: list[int] = []
    for step in steps:
        context.woken.clear()
        context.put(watch, step)
        woken.append(len(context.woken))
    context.woken.clear()
    context.table(watch).remove("ns", "web", "uid-web")
    assert ([*woken, len(context.woken)]) == [1, 0, 1, 1, 1]


def test_a_replica_set_concerns_those_about_its_deployment() -> None:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "dep"}
    context = scene(budget(targetRef=target, maxUnavailable=1))
    above = owner("Deployment", "dep") | {"controller": True}
    context.put(WORKLOADS[REPLICA_SET], workload("rs", 1, ownerReferences=[above]))
    assert context.woken == [PUB]
    context.put(PODS, pod("a", owner=owner("ReplicaSet", "rs"), labels={}, **UNNAMED))
    assert context.woken == [PUB, PUB]
    context.put(WORKLOADS[DEPLOYMENT], workload("other"))
    assert context.woken == [PUB, PUB]


def test_pods_of_a_budget_that_is_gone_may_be_those_of_others() -> None:
    context = scene(budget(maxUnavailable=1), budget("twin", selector={"matchLabels": LABELS | {"a": "b"}}))
    context.table(BUDGETS).remove("ns", "twin", "uid-twin")
    assert context.woken == [PUB]


def test_a_selector_that_cannot_be_read_concerns_nobody() -> None:
    broken = {"matchExpressions": [{"key": "a", "operator": "Near"}]}
    context = scene(budget(selector=broken, maxUnavailable=1))
    context.put(PODS, pod("a", **UNNAMED))
    assert context.woken == []
