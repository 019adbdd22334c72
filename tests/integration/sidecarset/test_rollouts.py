"""Sidecars of running pods, with kubectl: in-place updates, holds, hot upgrades, rollbacks (sidecarset.md §7)."""

import json
from collections.abc import Iterator

import pytest

from tests.support.fleet import Fleet
from tests.support.meshed import NEW, NEWER, OLD, Meshed, at_work, hot, image_of, meshed, sidecar
from tests.support.workspace import cloneset, identity, image, is_ready, terminating
from tests.testkit.documents import Json

pytestmark = pytest.mark.timeout(300)  # the first one waits for the control plane, too

DEPLOYMENT: Json = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "plain"},
    "spec": {
        "replicas": 3,
        "selector": {"matchLabels": {"app": "sample"}},
        "template": {
            "metadata": {"labels": {"app": "sample"}},
            "spec": {"containers": [{"name": "main", "image": "nginx:alpine"}]},
        },
    },
}
WORKING = "kruise.io/sidecarset-working-hotupgrade-container"


@pytest.fixture
def space(request: pytest.FixtureRequest, shared: Fleet) -> Iterator[Meshed]:
    with meshed(shared.cluster, request.node.nodeid) as made:
        yield made


def restarts(pod: Json) -> dict[str, int]:
    return {one["name"]: one["restartCount"] for one in pod["status"]["containerStatuses"]}


def test_sidecars_are_updated_where_they_run(space: Meshed):
    space.sidecar_set(maxUnavailable=2)
    before = space.started(4)
    space.comes_to(4, 4, 4, 4)
    mark = space.now()
    space.set_sidecar(NEW)
    space.comes_to(4, 4, 4, 4)
    assert {identity(pod) for pod in space.pods.values()} == {identity(pod) for pod in before.values()}
    for pod in space.pods.values():
        assert (image(pod), image_of(pod, "proxy")) == ("nginx:alpine", NEW)
        assert restarts(pod) == {"nginx": 0, "proxy": 1}
    assert max(at_work(pods) for pods in space.moments(mark)) == 2
    assert space.said() == {'True {"' + space.name + '":true}'}


def test_pods_of_a_deployment_are_updated_and_stay(space: Meshed):
    """Its controller compares templates, and sees no sidecars."""
    space.sidecar_set(maxUnavailable="100%")
    space.apply(DEPLOYMENT)
    space.comes_to(3, 3, 3, 3)
    before = {identity(pod) for pod in space.pods.values()}
    space.set_sidecar(NEW)
    space.comes_to(3, 3, 3, 3)
    assert {identity(pod) for pod in space.pods.values()} == before
    assert space.sidecars() == [NEW] * 3


def test_a_partition_then_the_rest(space: Meshed):
    space.sidecar_set(partition="50%", maxUnavailable="100%")
    space.started(4)
    space.comes_to(4, 4, 4, 4)
    space.set_sidecar(NEW)
    space.comes_to(4, 2, 4, 2)
    assert space.sidecars() == [OLD, OLD, NEW, NEW]
    space.strategy(partition=0)
    space.comes_to(4, 4, 4, 4)


def test_what_is_more_than_an_image_reaches_new_pods_only(space: Meshed):
    """Other pods report that they cannot be updated, until the spec matches them again."""
    space.sidecar_set()
    name = min(space.started(2))
    space.comes_to(2, 2, 2, 2)
    space.sidecar_set(sidecar(env=[{"name": "A", "value": "b"}]))
    space.comes_to(2, 0, 2, 0)
    space.until(lambda: space.said() == {'False {"' + space.name + '":false}'})
    space.until(lambda: space.told("SidecarSet", "NotUpgradablePods") != [])
    space.kubectl("delete", "pod", name, "--wait=false")
    space.comes_to(2, 1, 2, 1)
    space.set_sidecar(NEW)
    space.comes_to(2, 1, 2, 1)
    assert space.sidecars() == [OLD, NEW], "the recreated pod is updated"
    space.sidecar_set(sidecar(NEWER))
    space.until(lambda: space.sidecars() == [NEW, NEWER])


def test_an_upgrade_without_a_break(space: Meshed):
    space.sidecar_set(hot())
    space.started(2)
    space.comes_to(2, 2, 2, 2)
    mark = space.now()
    space.set_sidecar(NEW)
    space.comes_to(2, 2, 2, 2)
    assert (space.sidecars("proxy-1"), space.sidecars("proxy-2")) == (["idle:1"] * 2, [NEW] * 2)
    for pods in space.moments(mark):
        for pod in pods.values():
            assert {image_of(pod, "proxy-1"), image_of(pod, "proxy-2")} != {"idle:1"}, "one of them works"
            if is_ready(pod) and image_of(pod, "proxy-2") == NEW:
                assert json.loads(pod["metadata"]["annotations"][WORKING]) == {"proxy": "proxy-2"}
    for pod in space.pods.values():
        versions = pod["metadata"]["annotations"]
        assert versions["version.sidecarset.kruise.io/proxy-1"] == "0"
        assert int(versions["version.sidecarset.kruise.io/proxy-2"]) > 1
        assert versions["versionalt.sidecarset.kruise.io/proxy-2"] == "0"
    space.until(lambda: len(space.told("Pod", "ResetContainerSucceed")) == 2)


def test_revisions_tags_and_the_way_back(space: Meshed):
    space.sidecar_set(maxUnavailable="100%", spec={"customVersion": "one"})
    space.started(2)
    space.comes_to(2, 2, 2, 2)
    first = space.latest()
    space.change(containers=[sidecar(NEW)], customVersion="two")
    space.comes_to(2, 2, 2, 2)
    assert space.stored() == {first: 1, space.latest(): 2}
    space.strategy(paused=True)
    space.change(injectionStrategy={"revision": {"customVersion": "one"}})
    space.scale(3)
    space.comes_to(3, 2, 3, 2)
    assert space.sidecars() == [OLD, NEW, NEW], "a new pod gets the older one"
    space.change(containers=[sidecar(OLD)], customVersion="one", updateStrategy={"paused": False})
    space.comes_to(3, 3, 3, 3)
    assert space.latest() == first
    assert sorted(space.stored().values()) == [2, 3]
    assert space.sidecars() == [OLD] * 3


def test_two_sets_and_the_workload_update_the_same_pods_at_once(space: Meshed):
    """Each update detects the other's writes, and none is lost."""
    second = f"{space.name}-2"
    space.sidecar_set(maxUnavailable="100%")
    space.sidecar_set(sidecar(OLD, "log"), name=second, maxUnavailable="100%")
    space.apply(cloneset(4, strategy={"podUpdatePolicy": "InPlaceOnly", "maxUnavailable": "100%"}))
    space.comes_to(4, 4, 4, 4)
    before = {identity(pod) for pod in space.pods.values()}
    space.set_sidecar(NEW)
    space.sidecar_set(sidecar(NEW, "log"), name=second, maxUnavailable="100%")
    space.set_image("nginx:mainline")
    space.comes_to(4, 4, 4, 4)
    space.comes_to(4, 4, 4, 4, name=second)
    space.settled(updatedReadyReplicas=4)
    assert {identity(pod) for pod in space.pods.values()} == before
    for pod in space.pods.values():
        assert (image(pod), image_of(pod, "proxy"), image_of(pod, "log")) == ("nginx:mainline", NEW, NEW)
        known = json.loads(pod["metadata"]["annotations"]["kruise.io/sidecarset-hash"])
        assert known.keys() == {space.name, second}
    assert space.said() == {'True {"' + space.name + '":true,"' + second + '":true}'}


def test_pods_keep_their_sidecars_when_the_set_goes(space: Meshed):
    space.sidecar_set()
    space.started(1)
    space.comes_to(1, 1, 1, 1)
    space.kubectl("delete", "sidecarset", space.name)
    space.until(lambda: space.stored() == {})
    assert space.sidecars() == [OLD]
    assert not any(terminating(pod) for pod in space.pods.values())
