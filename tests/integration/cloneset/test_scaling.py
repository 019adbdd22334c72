"""Scaling: number of pods, order of deletion, and limits (cloneset.md §4.4 to §4.7)."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from tests.support.workspace import (
    Workspace,
    available,
    cloneset,
    condition,
    is_ready,
    moment,
    revision_of,
    terminating,
)
from tests.testkit.documents import Json

COST = "controller.kubernetes.io/pod-deletion-cost"
SPECIFIED = "apps.kruise.io/specified-delete=true"
GATE = "example.com/warm"
GATED = {"spec": {"readinessGates": [{"conditionType": GATE}], "nodeSelector": {"kubernetes.io/hostname": "node-0"}}}


def ready_pods(space: Workspace) -> int:
    return sum(map(is_ready, space.pods.values()))


def started(space: Workspace, replicas: int = 3, **arguments: object) -> set[str]:
    """Apply a CloneSet, wait until all is ready, and name its pods."""
    space.apply(cloneset(replicas, **arguments))
    space.settled(replicas=replicas, readyReplicas=replicas)
    return set(space.pods)


def test_out_in_to_nothing_and_back(space: Workspace):
    first = started(space, 3)
    space.scale(5)
    space.settled(replicas=5, readyReplicas=5)
    assert first < set(space.pods)
    space.scale(0)
    space.settled(replicas=0, readyReplicas=0)
    assert space.pods == {}
    space.scale(2)
    space.settled(replicas=2, readyReplicas=2)
    earlier = {event.object["metadata"]["name"] for event in space.history() if event.type == "DELETED"}
    assert not earlier & set(space.pods)  # the dead keep their names


def test_an_unscheduled_pod_goes_first(space: Workspace):
    """Two of these fit on a node of 8 cores: the seventh finds no place on three nodes."""
    resources = {"containers": [{"name": "nginx", "image": "nginx:alpine", "resources": {"requests": {"cpu": "3"}}}]}
    space.apply(cloneset(7, template={"spec": resources}))
    space.settled(replicas=7, readyReplicas=6)
    homeless = next(name for name, pod in space.pods.items() if not pod["spec"].get("nodeName"))
    space.annotate(homeless, f"{COST}=1000")
    space.scale(6)
    space.settled(replicas=6, readyReplicas=6)
    assert homeless not in space.pods
    assert {event.object["metadata"]["name"] for event in space.history() if event.type == "DELETED"} == {homeless}
    space.scale(0)  # the cores are wanted by others
    space.settled(replicas=0)


def test_a_pod_that_is_not_ready_goes_before_cheap_ones(space: Workspace):
    space.apply(cloneset(3, template=GATED))
    space.settled(replicas=3)
    unready, cheap, dear = sorted(space.pods)
    for name in (cheap, dear):
        space.set_condition(name, GATE, "True")
    space.annotate(unready, f"{COST}=1000")
    space.annotate(cheap, f"{COST}=-5")
    space.settled(readyReplicas=2)
    space.scale(2)
    space.settled(replicas=2)
    assert set(space.pods) == {cheap, dear}
    space.scale(1)
    space.settled(replicas=1)
    assert set(space.pods) == {dear}


def test_lower_deletion_cost_goes_first(space: Workspace):
    names = sorted(started(space, 4))
    for name, cost in zip(names, (10, 100, -1, 50), strict=True):
        space.annotate(name, f"{COST}={cost}")
    space.until(lambda: all(COST in pod["metadata"].get("annotations", {}) for pod in space.pods.values()))
    space.scale(2)
    space.settled(replicas=2)
    assert sorted(space.pods) == [names[1], names[3]]


def test_pods_that_share_a_node_go_first(space: Workspace):
    started(space, 6)
    used = {pod["spec"]["nodeName"] for pod in space.pods.values()}
    space.scale(len(used))
    space.settled(replicas=len(used))
    assert Counter(pod["spec"]["nodeName"] for pod in space.pods.values()) == dict.fromkeys(used, 1)


def test_the_pod_that_became_ready_last_goes_first(space: Workspace):
    space.apply(cloneset(3, template=GATED))
    space.settled(replicas=3)
    order = sorted(space.pods)
    for name in order:
        space.set_condition(name, GATE, "True")
        space.until(lambda name=name: is_ready(space.pod(name)))
        since = moment(condition(space.pod(name), "Ready")["lastTransitionTime"])
        space.until(lambda since=since: datetime.now(UTC) >= since + timedelta(seconds=1))  # whole seconds
    space.settled(readyReplicas=3)
    for left in (2, 1):
        space.scale(left)
        space.settled(replicas=left)
        assert sorted(space.pods) == order[:left]


def test_unknown_names_in_pods_to_delete_are_taken_out(space: Workspace):
    """Applies to v1beta1; in v1alpha1 admission refuses them."""
    before = started(space, 3)
    named = space.patch({"spec": {"scaleStrategy": {"podsToDelete": ["sample-xhbjd"]}}})["metadata"]["generation"]
    space.until(lambda: space.clone()["metadata"]["generation"] > named)
    assert "podsToDelete" not in space.clone()["spec"].get("scaleStrategy", {})
    space.settled(replicas=3, readyReplicas=3)
    assert set(space.pods) == before


def test_specified_pods_go_one_by_one_within_the_budget(space: Workspace):
    before = sorted(started(space, 5, strategy={"maxUnavailable": 1}))
    start = space.now()
    space.kubectl("label", "pod", before[0], before[1], SPECIFIED)
    space.until(lambda: not {before[0], before[1]} & set(space.pods) and ready_pods(space) == 5)
    assert min(sum(map(available, pods.values())) for pods in space.moments(start)) == 4


def test_a_specified_pod_waits_for_its_replacement_when_nothing_may_be_unavailable(space: Workspace):
    before = sorted(started(space, 3, strategy={"maxUnavailable": 0, "maxSurge": 1}))
    start = space.now()
    space.label(before[0], SPECIFIED)
    space.until(lambda: before[0] not in space.pods and ready_pods(space) == 3)
    moments = list(space.moments(start))
    assert min(sum(map(available, pods.values())) for pods in moments) == 3
    assert max(map(len, moments)) == 4


def test_a_specified_pod_that_serves_nobody_needs_no_budget(space: Workspace):
    space.apply(cloneset(2, template=GATED, strategy={"maxUnavailable": 0, "maxSurge": 1}))
    space.settled(replicas=2)
    unready, serving = sorted(space.pods)
    space.set_condition(serving, GATE, "True")
    space.settled(readyReplicas=1)
    space.label(unready, SPECIFIED)
    space.until(lambda: unready not in space.pods and len(space.pods) >= 2)
    assert is_ready(space.pod(serving))
    assert not terminating(space.pod(serving))


@pytest.mark.parametrize("version", ["v1alpha1", "v1beta1"])
def test_creation_streams_in_steps(space: Workspace, version: str):
    """Each pod is created two seconds after the one before became Ready, no sooner, without another trigger."""
    space.apply(cloneset(3, version=version, scale_strategy={"maxUnavailable": 1}, minReadySeconds=2))
    space.settled(replicas=3, availableReplicas=3)
    pods = sorted(space.pods.values(), key=lambda pod: pod["metadata"]["creationTimestamp"])
    for earlier, later in pairwise(pods):
        ready = moment(condition(earlier, "Ready")["lastTransitionTime"])
        waited = moment(later["metadata"]["creationTimestamp"]) - ready
        assert timedelta(seconds=2) <= waited <= timedelta(seconds=20)
    space.event("ScaleUpLimited", "scaleUp is limited because of scaleStrategy.maxUnavailable, limit: 0")


def test_scaling_during_a_partial_rollout_keeps_the_partition(space: Workspace):
    started(space, 5, strategy={"partition": 2, "podUpdatePolicy": "InPlaceIfPossible", "maxUnavailable": "50%"})
    space.set_image("nginx:mainline")
    status = space.settled(updatedReadyReplicas=3, readyReplicas=5)

    def shares() -> Json:
        return dict(Counter(revision_of(pod) == status["updateRevision"] for pod in space.pods.values()))

    space.scale(8)
    space.settled(replicas=8, readyReplicas=8, updatedReplicas=6)
    assert shares() == {True: 6, False: 2}
    space.scale(4)
    space.settled(replicas=4, updatedReplicas=2)
    assert shares() == {True: 2, False: 2}
    space.patch({"spec": {"replicas": 8, "updateStrategy": {"rollingUpdate": {"partition": "50%"}}}})
    space.settled(replicas=8, readyReplicas=8, updatedReplicas=4)
    assert shares() == {True: 4, False: 4}


def test_a_quota_lets_some_pods_through(space: Workspace):
    space.kubectl("create", "quota", "few", "--hard=pods=2")
    space.until(lambda: space.read("quota", "few").get("status", {}).get("hard") == {"pods": "2"})
    space.apply(cloneset(5))
    status = space.settled(replicas=2, readyReplicas=2)
    space.until(lambda: any(found["type"] == "FailedScale" for found in space.status().get("conditions", [])))
    assert status["readyReplicas"] == 2
    assert all("exceeded quota: few" in message for message in space.warnings("FailedCreate"))
    space.kubectl("patch", "quota", "few", "--type=merge", '-p={"spec":{"hard":{"pods":"9"}}}')
    space.settled(replicas=5, readyReplicas=5, seconds=40)
