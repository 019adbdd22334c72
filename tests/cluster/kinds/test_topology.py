"""UnitedDeployments and WorkloadSpreads over three zones of real nodes.

Pods are in their zones, rollouts keep their containers, zones come and go, and the pods of a drained zone move to
others.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping

import pytest

from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.kinds.uniteddeployment.types import UNITED_DEPLOYMENT
from flotilla_common.api.kinds.workloadspread.types import WORKLOAD_SPREAD
from flotilla_common.api.resources import DEPLOYMENT
from tests.cluster.conftest import Running, scenario
from tests.support.nodes import RealCluster
from tests.support.united import NAME, adaptive, on_nodes, replicas_of, serving, set_image, settled, subset_of, united
from tests.support.verbs import Verbs
from tests.support.workspace import Workspace, available, cloneset, identity, image, restarts
from tests.testkit.documents import Json, typed

ZONES = {"a": "real-0", "b": "real-1", "c": "real-2"}
NEW = "nginx:mainline"
QUICK = {"terminationGracePeriodSeconds": 1}
MATCHED = "apps.kruise.io/matched-workloadspread"
COST = "controller.kubernetes.io/pod-deletion-cost"
WATCHED = (UNITED_DEPLOYMENT, CLONE_SET)


@pytest.fixture(scope="module", autouse=True)
def zones(cluster: RealCluster) -> None:
    """Have each node in a zone of its own."""
    for zone, node in ZONES.items():
        cluster.kubectl("label", "node", node, f"zone={zone}")


@pytest.fixture
def spread_space(running: Running, request: pytest.FixtureRequest) -> Iterator[Workspace]:
    """Yield a fresh namespace for WorkloadSpreads."""
    with scenario(running.cluster, request, WORKLOAD_SPREAD) as made:
        yield made


def zoned(subset: str, **more: object) -> Json:
    """Return a subset in the zone of its name."""
    return on_nodes(subset, "zone", subset, **more)


def by_node(pods: Mapping[str, Json]) -> Counter[str]:
    """Return how many pods are available on each node."""
    return Counter(pod["spec"]["nodeName"] for pod in pods.values() if available(pod))


def test_a_rollout_in_place_zone_by_zone(space: Workspace) -> None:
    manifest = united(6, [zoned("a"), zoned("b"), zoned("c")], partitions={"b": 2, "c": 1}, pod=QUICK)
    rolling = {"rollingUpdate": {"podUpdatePolicy": "InPlaceOnly"}}
    manifest["spec"]["template"]["cloneSetTemplate"]["spec"]["updateStrategy"] = rolling
    space.apply(manifest)
    settled(space, 6)
    assert {subset_of(pod): pod["spec"]["nodeName"] for pod in space.pods.values()} == ZONES
    before = {identity(pod) for pod in space.pods.values()}
    set_image(space, NEW)
    space.settled(NAME, readyReplicas=6, updatedReplicas=3, updatedReadyReplicas=3)
    assert Counter(subset_of(pod) for pod in space.pods.values() if image(pod) == NEW) == {"a": 2, "c": 1}
    space.patch({"spec": {"updateStrategy": {"manualUpdate": {"partitions": {"b": None, "c": None}}}}}, NAME)
    settled(space, 6)
    assert {identity(pod) for pod in space.pods.values()} == before
    assert {restarts(pod) for pod in space.pods.values()} == {1}


def test_zones_come_and_go(space: Workspace) -> None:
    space.apply(united(4, [zoned("a"), zoned("b")], pod=QUICK))
    settled(space, 4)
    mark = space.now()
    space.apply(united(4, [zoned("a"), zoned("c")], pod=QUICK))
    space.until(lambda: replicas_of(space) == {"a": 2, "c": 2})
    settled(space, 4)
    space.until(lambda: by_node(space.pods) == {"real-0": 2, "real-2": 2})
    assert min(serving(pods) for pods in space.moments(mark)) >= 4


def test_a_drained_zone_is_served_by_the_others(space: Workspace, running: Running) -> None:
    """Its pods come back when it grows after it has recovered, not by themselves."""
    kubectl = space.cluster.kubectl
    subsets = [zoned("a", maxReplicas=2), zoned("b", maxReplicas=2), zoned("c")]
    space.apply(united(4, subsets, strategy=adaptive(3, 12), pod=QUICK))
    settled(space, 4)
    space.until(lambda: by_node(space.pods) == {"real-0": 2, "real-1": 2})
    kubectl("drain", "real-1", "--force", "--ignore-daemonsets", "--timeout=60s")
    try:
        space.until(lambda: replicas_of(space) == {"a": 2, "b": 0, "c": 2})
        space.until(lambda: "subset b" in Verbs(space, running.fleet).run("explain", "ud", NAME))
        settled(space, 4)
    finally:
        kubectl("uncordon", "real-1")

    def recovered() -> bool:
        found = {one["name"]: one for one in space.status(NAME)["subsetStatuses"]}
        return found["b"]["conditions"][0]["status"] == "True"

    space.until(recovered)
    space.scale(6, NAME)
    settled(space, 6)
    space.until(lambda: by_node(space.pods) == {"real-0": 2, "real-1": 2, "real-2": 2})


def spread(*subsets: Json, target: Json, critical: int = 0) -> Json:
    """Return a WorkloadSpread over zones."""
    strategy: Json = {"type": "Fixed"}
    if critical:
        strategy = {"type": "Adaptive", "adaptive": {"rescheduleCriticalSeconds": critical}}
    return typed(
        WORKLOAD_SPREAD, "spread", spec={"targetRef": target, "subsets": list(subsets), "scheduleStrategy": strategy}
    )


def zone(name: str, most: int | None = None) -> Json:
    """Return a subset of a WorkloadSpread, in the zone of its name."""
    term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": [name]}]}
    return {"name": name, "requiredNodeSelector": term} | ({} if most is None else {"maxReplicas": most})


SAMPLE = {"apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet", "name": "sample"}


def chosen(pods: Mapping[str, Json]) -> Counter[str]:
    """Return how many pods are available in each subset of the WorkloadSpread; each on the node of its zone."""
    found: Counter[str] = Counter()
    for pod in pods.values():
        if available(pod):
            subset = json.loads(pod["metadata"]["annotations"][MATCHED])["subset"]
            assert pod["spec"]["nodeName"] == ZONES[subset]
            found[subset] += 1
    return found


def spread_out(space: Workspace, **expected: int) -> None:
    """Wait until this many pods are available in each subset, and the status agrees."""

    def reached() -> bool:
        statuses: list[Json] = space.status("spread").get("subsetStatuses", [])
        known = {one["name"]: one["replicas"] for one in statuses if one["replicas"]}
        return known == expected == chosen(space.pods) and not any(
            "creatingPods" in one or "deletingPods" in one for one in statuses
        )

    space.until(reached)


def test_a_clone_set_is_spread_and_scaled_in_by_the_order_of_zones(spread_space: Workspace) -> None:
    space = spread_space
    space.apply(spread(zone("a", 2), zone("b", 2), zone("c"), target=SAMPLE))
    rolling = {"podUpdatePolicy": "InPlaceIfPossible"}
    space.apply(cloneset(6, strategy=rolling, template={"spec": QUICK}))
    spread_out(space, a=2, b=2, c=2)
    space.until(lambda: all(COST in pod["metadata"]["annotations"] for pod in space.pods.values()))
    (gone, *_) = (name for name, pod in space.pods.items() if pod["spec"]["nodeName"] == ZONES["a"])
    space.kubectl("delete", "pod", gone, "--wait=false")
    space.until(lambda: gone not in space.pods)
    spread_out(space, a=2, b=2, c=2)
    space.kubectl("scale", "cloneset", "sample", "--replicas=3")
    spread_out(space, a=2, b=1)
    space.until(lambda: len(space.pods) == 3)
    before = {identity(pod) for pod in space.pods.values()}
    path = "/spec/template/spec/containers/0/image"
    operations = [{"op": "replace", "path": path, "value": NEW}]
    space.kubectl("patch", "cloneset", "sample", "--type=json", "-p", json.dumps(operations))
    space.until(lambda: all(image(pod) == NEW and available(pod) for pod in space.pods.values()))
    assert {identity(pod) for pod in space.pods.values()} == before


def test_pods_of_a_drained_zone_are_rescheduled(spread_space: Workspace) -> None:
    space, kubectl = spread_space, spread_space.cluster.kubectl
    space.apply(spread(zone("a", 2), zone("c"), target=SAMPLE, critical=3))
    kubectl("cordon", "real-0")
    try:
        space.apply(cloneset(3, template={"spec": QUICK}))
        spread_out(space, c=3)
    finally:
        kubectl("uncordon", "real-0")
    statuses = {one["name"]: one["conditions"][0] for one in space.status("spread")["subsetStatuses"]}
    assert (statuses["a"]["status"], statuses["a"]["reason"]) == ("False", "PodUnschedulable")
    assert statuses["c"]["status"] == "True"


async def test_a_rollout_of_a_deployment_is_spread_by_version(spread_space: Workspace, running: Running) -> None:
    """Both services die in the middle: no zone exceeds its share of the new version, and the old one is removed."""
    space = spread_space
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    space.apply(spread(zone("a", 2), zone("b", 1), zone("c"), target=target))
    pod: Json = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "nginx", "image": "nginx:alpine"}]} | QUICK,
    }
    manifest = typed(
        DEPLOYMENT, "web", spec={"replicas": 4, "selector": {"matchLabels": {"app": "web"}}, "template": pod}
    )
    space.apply(manifest)
    spread_out(space, a=2, b=1, c=1)
    mark = space.now()
    space.kubectl("set", "image", "deployment", "web", f"nginx={NEW}")
    await running.fleet.restart("topology")
    await running.fleet.restart("webhook")
    space.until(lambda: all(image(one) == NEW and available(one) for one in space.pods.values()))
    spread_out(space, a=2, b=1, c=1)
    for pods in space.moments(mark):
        fresh = {name: one for name, one in pods.items() if image(one) == NEW}
        assert chosen(fresh)["a"] <= 2
        assert chosen(fresh)["b"] <= 1
