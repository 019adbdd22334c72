"""Budgets allow and refuse disruptions, with kubectl (podunavailablebudget.md §8, worked examples 26 to 54).

The apiserver is a real one with two replicas of the webhook.
"""

import asyncio
from collections.abc import Sequence

import pytest

from flotilla_common.api.kinds.podunavailablebudget.types import RELATED_BUDGET
from flotilla_dev.cluster import kwok
from tests.integration.policies.conftest import Site
from tests.support.budgets import (
    REFUSED,
    allows,
    at_once,
    attempt,
    bare,
    budget,
    counted,
    create,
    evict,
    remove,
    serving,
)
from tests.support.shared_plane import NODES
from tests.support.workspace import Workspace, is_ready
from tests.testkit.documents import Json

CALLS = 'controller_runtime_webhook_requests_total{code="200",webhook="/validate-pod"}'
PREVENTED = "PubPreventPodDeletion"

pytestmark = pytest.mark.asyncio(loop_scope="session")


def calls(site: Site) -> float:
    """Return how often the apiserver has called for pods that are deleted or updated."""
    members = (one for one in site.flotilla.members.values() if one.name == "webhook")
    return sum(one.metric(CALLS) for one in members)


async def test_deletions(space: Workspace) -> None:
    """Follow examples 26 to 29."""
    space.apply(budget(protectTotalReplicas=3))
    create(space, ["a", "b", "c"])
    assert {pod["metadata"]["annotations"][RELATED_BUDGET] for pod in space.pods.values()} == {"pub"}
    allows(space, 1, currentAvailable=3)
    assert remove(space, "a", dryRun=["All"])[0]  # 40
    allows(space, 1)
    space.set_finalizers("a", "example.com/keep")
    assert remove(space, "a")[0]
    deleted, told = remove(space, "b")
    assert not deleted
    assert f'admission webhook "vpod.kb.io" denied the request: {REFUSED}: ' in told
    assert "must be" in told  # what is added follows the exact words
    assert remove(space, "a")[0]  # it is terminating
    evicted, told = evict(space, "b")
    assert not evicted
    assert "TooManyRequests" in told  # 41b
    assert REFUSED in told
    assert not evict(space, "b", dryRun=["All"])[0]  # 41
    space.until(lambda: any(event["reason"] == PREVENTED for event in space.read("events")["items"]))
    space.evict("b")  # it fails, and is not ready any more
    assert remove(space, "b")[0]  # 29
    space.patch({"metadata": {"finalizers": None}}, "a", "pod")


async def test_what_pods_and_budgets_say(space: Workspace) -> None:
    """Follow examples 36, 38 and 39."""
    ignored = {"matchExpressions": [{"key": "expendable", "operator": "Exists"}]}
    space.apply(budget(maxUnavailable=0, protectTotalReplicas=4, ignoredPodSelector=ignored))
    create(space, ["a", "b", "c", "d"])
    allows(space, 0, currentAvailable=4, desiredAvailable=4)
    assert not remove(space, "a")[0]
    space.annotate("a", "pub.kruise.io/no-protect=yes")
    assert not remove(space, "a")[0]
    space.annotate("a", "pub.kruise.io/no-protect=T")
    assert remove(space, "a")[0]
    space.label("b", "expendable=")
    assert evict(space, "b")[0]
    assert not evict(space, "c")[0]
    space.patch({"spec": {"protectOperations": ["EVICT"]}}, "pub", "podunavailablebudget")
    assert not evict(space, "c")[0]
    assert remove(space, "c")[0]
    space.kubectl("delete", "podunavailablebudget", "pub")
    assert evict(space, "d")[0]  # 54


async def test_updates(site: Site, space: Workspace) -> None:
    """Follow examples 30, 31, 33 to 35; an update that disrupts nothing costs no call."""
    space.apply(budget(protectTotalReplicas=3))
    create(space, ["a", "b", "c"])
    allows(space, 1, currentAvailable=3)
    before = calls(site)
    space.annotate("a", "note=changed")
    space.label("a", "note=changed")
    space.set_finalizers("a", "example.com/keep")
    space.patch({"metadata": {"finalizers": None}}, "a", "pod")
    assert calls(site) == before
    space.kubectl("set", "image", "pod/a", "main=nginx:broken")
    assert calls(site) == before + 1
    space.until(lambda: not is_ready(space.pod("a")))
    allowed, told = attempt(space, "label", "pod", "b", "unavailable-pod.kruise.io/x=")
    assert (allowed, REFUSED in told) == (False, True)
    assert not attempt(space, "set", "image", "pod/b", "main=nginx:2")[0]
    space.kubectl("set", "image", "pod/a", "main=nginx:2")  # 31: it is not ready
    space.until(lambda: is_ready(space.pod("a")))
    allows(space, 1, currentAvailable=3)  # once its entry has timed out
    space.label("b", "unavailable-pod.kruise.io/x=")
    space.label("b", "unavailable-pod.kruise.io/y=")  # 34
    assert remove(space, "b")[0]  # 32


async def test_namespaces_that_are_deleted(space: Workspace) -> None:
    space.apply(budget(maxUnavailable=0, protectTotalReplicas=3))
    create(space, ["a", "b", "c"])
    allows(space, 0, currentAvailable=3)
    assert not remove(space, "a", gracePeriodSeconds=0)[0]
    space.kubectl("delete", "namespace", space.name, "--timeout=50s")


async def test_pods_of_no_budget_cost_no_call(site: Site, space: Workspace) -> None:
    space.apply(budget(protectTotalReplicas=1))
    create(space, ["a"])
    allows(space, 1)
    before = calls(site)
    space.create(bare(["x", "y"], labels={"app": "other"}))
    space.until(lambda: {"x", "y"} <= space.pods.keys() and all(map(is_ready, space.pods.values())))
    assert RELATED_BUDGET not in space.pod("x")["metadata"].get("annotations", {})
    space.kubectl("set", "image", "pod/x", "main=nginx:2")
    assert remove(space, "x")[0]
    assert calls(site) == before


async def test_a_budget_counts_from_its_first_status_on(space: Workspace) -> None:
    """Older pods are protected, too: the apiserver calls the webhook for them before the budget is stored."""
    create(space, ["a", "b", "c", "d"])
    space.apply(budget(maxUnavailable=0, protectTotalReplicas=4))
    allows(space, 0, currentAvailable=4)
    assert at_once(space, ["a", "b", "c", "d"], together=4) == []


DRAINED = {"app": "drained"}
DISRUPTION_BUDGET = {
    "apiVersion": "policy/v1",
    "kind": "PodDisruptionBudget",
    "metadata": {"name": "pdb"},
    "spec": {"minAvailable": 2, "selector": {"matchLabels": DRAINED}},
}


async def test_a_drain_waits_for_the_budget(space: Workspace) -> None:
    """Retry evictions that are refused, beside a PodDisruptionBudget over the same pods."""
    template = {"metadata": {"labels": DRAINED}, "spec": {"containers": [{"name": "main", "image": "nginx"}]}}
    spec = {"replicas": 4, "selector": {"matchLabels": DRAINED}, "template": template}
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "sample"}
    space.apply({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "sample"}, "spec": spec})
    space.apply(budget(targetRef=target))
    space.apply(DISRUPTION_BUDGET)
    allows(space, 1, totalReplicas=4)
    space.until(lambda: serving(space.pods) == 4)
    node = next(iter(space.pods.values()))["spec"]["nodeName"]
    since = space.now()
    try:
        drain = ("drain", node, "--ignore-daemonsets", "--timeout=120s", "--pod-selector=app=drained")
        await asyncio.to_thread(space.cluster.kubectl, *drain, timeout=130)
    finally:
        space.cluster.kubectl("uncordon", node)
    space.until(lambda: serving(space.pods) == 4)
    assert all(pod["spec"]["nodeName"] != node for pod in space.pods.values())
    assert min(map(serving, space.moments(since))) >= 3


def bound(node: str, names: Sequence[str], image: str = "nginx:alpine") -> Json:
    """Return pods without a controller on a node that may be new."""
    made = bare(names)
    for pod in made["items"]:
        pod["spec"] |= {
            "nodeName": node,
            "containers": [{"name": "main", "image": image}],
            "tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists"}],
        }
    return made


async def test_a_node_that_is_tainted(site: Site, space: Workspace) -> None:
    """The taint controller deletes as many ready pods as the budget has; the others need no budget."""
    node = kwok.node(NODES)
    name = node["metadata"]["name"] = f"node-{space.name}"
    space.cluster.create(node)
    try:
        space.apply(budget(protectTotalReplicas=3))
        space.create(bound(name, ["a", "b", "c"]))
        space.create(bound(name, ["d", "e"], "nginx:broken"))
        allows(space, 1, currentAvailable=3)
        space.cluster.kubectl("taint", "node", name, "test.example/gone=:NoExecute")
        space.until(lambda: len(prevented(space)) == 2 and len(space.pods) == 2)
        assert prevented(space) == space.pods.keys() < {"a", "b", "c"}
    finally:
        space.cluster.kubectl("delete", "node", name, "--wait=false")


def prevented(space: Workspace) -> set[str]:
    """Return the pods whose deletion was refused, by the events about them."""
    events = space.read("events")["items"]
    return {event["involvedObject"]["name"] for event in events if event["reason"] == PREVENTED}


PODS, BUDGET = 30, 5


@pytest.mark.parametrize("killed", [False, True])
async def test_a_storm_on_two_replicas(site: Site, space: Workspace, killed: bool) -> None:
    """Example 42: no more units are taken than the budget has, also when a replica dies meanwhile."""
    names = [f"p-{number}" for number in range(PODS)]
    spec = {"minAvailable": PODS - BUDGET, "protectTotalReplicas": PODS}
    space.apply(budget(**spec))
    create(space, names)
    allows(space, BUDGET, currentAvailable=PODS)
    storm = asyncio.create_task(asyncio.to_thread(at_once, space, names))
    if killed:
        await asyncio.to_thread(space.until, lambda: bool(counted(space).get("disruptedPods")))
        site.flotilla.kill("webhook-0")
    try:
        admitted = await storm
    finally:
        if killed:
            await site.webhooks.start("webhook-0")
    space.catch_up()
    # What a killed replica has taken for requests that were never admitted is free again after its time.
    assert len(admitted) <= BUDGET if killed else len(admitted) == BUDGET
    assert PODS - serving(space.pods) == len(admitted)
    if not killed:
        assert at_once(space, sorted(set(names) - set(admitted))) == []
