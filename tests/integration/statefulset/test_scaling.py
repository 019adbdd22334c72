"""Creating and removing pods: in order, at once, limited by scaleStrategy; ordinals (statefulset.md §8.1, §8.3)."""

import re

import pytest

from tests.support.stateful import first_seen, ordinals, serving, statefulset
from tests.support.workspace import Workspace, available, is_ready, terminating


def test_ordered_pods_come_one_after_the_other(space: Workspace):
    space.apply(statefulset(4, parallel=False))
    space.settled("web", replicas=4, readyReplicas=4, currentReplicas=4, updatedReplicas=4)
    assert first_seen(space.history(), "ADDED") == [0, 1, 2, 3]
    for pods in space.moments():
        for name, pod in pods.items():
            before = [f"web-{number}" for number in range(int(name[4:]))]
            assert all(available(pods[one]) for one in before) or not available(pod)


def test_ordered_pods_go_from_the_top_one_after_the_other(space: Workspace):
    space.apply(statefulset(4, parallel=False))
    space.settled("web", readyReplicas=4)
    mark = space.now()
    space.scale(1, "web")
    space.settled("web", replicas=1, readyReplicas=1)
    assert first_seen(space.history(mark), "DELETED") == [3, 2, 1]
    for pods in space.moments(mark):
        assert sum(terminating(pod) for pod in pods.values()) <= 1


def test_parallel_pods_come_and_go_at_once(space: Workspace):
    space.apply(statefulset(8))
    space.settled("web", replicas=8, readyReplicas=8)
    made = max(sum(not is_ready(pod) for pod in pods.values()) for pods in space.moments())
    assert made >= 3, "several at a time"
    space.scale(2, "web")
    space.settled("web", replicas=2, readyReplicas=2)
    assert ordinals(space.pods) == [0, 1]


def test_pods_have_an_identity(space: Workspace):
    space.apply(statefulset(2))
    space.settled("web", readyReplicas=2)
    pod = space.pod("web-1")
    labels = pod["metadata"]["labels"]
    assert labels["statefulset.kubernetes.io/pod-name"] == "web-1"
    assert labels["apps.kubernetes.io/pod-index"] == "1"
    assert labels["controller-revision-hash"] == space.status("web")["updateRevision"]
    assert (pod["spec"]["hostname"], pod["spec"]["subdomain"]) == ("web-1", "nginx")
    (owner,) = pod["metadata"]["ownerReferences"]
    assert (owner["apiVersion"], owner["kind"], owner["controller"]) == ("apps.kruise.io/v1beta1", "StatefulSet", True)
    space.event("SuccessfulCreate", "create Pod web-1 in StatefulSet web successful")


def test_no_more_than_scale_strategy_allows_are_not_available(space: Workspace):
    space.apply(statefulset(10, scaleStrategy={"maxUnavailable": "20%"}))
    space.settled("web", replicas=10, readyReplicas=10)
    for pods in space.moments():
        assert len(pods) - serving(pods) <= 2


def test_reserved_ordinals_are_passed_over(space: Workspace):
    """The steps of the tutorial: [0,2,3,4], then 3 is moved away, then it is only removed."""
    space.apply(statefulset(4, reserveOrdinals=[1]))
    space.settled("web", readyReplicas=4)
    assert ordinals(space.pods) == [0, 2, 3, 4]
    space.patch({"spec": {"reserveOrdinals": [1, 3]}}, "web")
    space.settled("web", replicas=4, readyReplicas=4)
    assert ordinals(space.pods) == [0, 2, 4, 5]
    space.patch({"spec": {"reserveOrdinals": [1, "3-4"], "replicas": 3}}, "web")
    space.settled("web", replicas=3, readyReplicas=3)
    assert ordinals(space.pods) == [0, 2, 5]


def test_an_ordered_set_makes_the_new_pod_before_it_removes_the_reserved_one(space: Workspace):
    space.apply(statefulset(3, parallel=False))
    space.settled("web", readyReplicas=3)
    mark = space.now()
    space.patch({"spec": {"reserveOrdinals": [1]}}, "web")
    space.settled("web", replicas=3, readyReplicas=3)
    assert ordinals(space.pods) == [0, 2, 3]
    assert all(serving(pods) >= 3 for pods in space.moments(mark))


@pytest.mark.parametrize("parallel", [True, False])
def test_a_failed_pod_is_replaced_under_its_name(space: Workspace, parallel: bool):
    space.apply(statefulset(3, parallel=parallel))
    space.settled("web", readyReplicas=3)
    before = space.pod("web-1")["metadata"]["uid"]
    space.evict("web-1")
    space.until(lambda: space.pod("web-1").get("metadata", {}).get("uid", before) != before)
    space.settled("web", replicas=3, readyReplicas=3)
    space.event("SuccessfulDelete", "delete Pod web-1 in StatefulSet web successful")


def test_a_quota_is_told_and_waited_for(space: Workspace):
    space.kubectl("create", "quota", "few", "--hard=pods=2")
    space.apply(statefulset(4))
    space.until(lambda: [one["type"] for one in space.status("web").get("conditions", [])] == ["FailedCreatePod"])
    (message,) = {one["message"] for one in space.status("web")["conditions"]}
    assert "exceeded quota" in message
    told = space.warnings("FailedCreate")
    assert all(re.match(r"create Pod web-\d in StatefulSet web failed error: .*exceeded quota", text) for text in told)
    space.until(lambda: len(space.pods) == 2)
    space.kubectl("patch", "quota", "few", "--type=merge", "-p", '{"spec":{"hard":{"pods":"10"}}}')
    space.settled("web", replicas=4, readyReplicas=4)
    assert not space.status("web").get("conditions")


def test_a_pod_under_the_pre_delete_hook_stays_until_it_is_let_go(space: Workspace):
    hook = {"preDelete": {"labelsHandler": {"keep": "yes"}, "markPodNotReady": True}}
    manifest = statefulset(3, lifecycle=hook)
    manifest["spec"]["template"]["metadata"]["labels"]["keep"] = "yes"
    space.apply(manifest)
    space.settled("web", readyReplicas=3)
    space.scale(2, "web")
    state = "lifecycle.apps.kruise.io/state"
    space.until(lambda: space.pod("web-2")["metadata"]["labels"].get(state) == "PreparingDelete")
    space.until(lambda: not is_ready(space.pod("web-2")))
    space.label("web-2", "keep-")
    space.settled("web", replicas=2, readyReplicas=2)
    assert ordinals(space.pods) == [0, 1]


def test_the_scale_subresource_says_what_an_autoscaler_needs(space: Workspace):
    space.apply(statefulset(2))
    space.settled("web", readyReplicas=2)
    path = f"/apis/apps.kruise.io/v1beta1/namespaces/{space.name}/statefulsets/web/scale"
    scale = space.cluster.kubectl("get", "--raw", path)
    assert '"selector":"app=web"' in scale
    assert '"replicas":2' in scale


def test_a_protected_set_is_not_deleted(space: Workspace):
    """Always: never. Cascading: not while it wants pods."""
    space.apply(statefulset(1))
    space.settled("web", readyReplicas=1)
    label = "policy.kruise.io/delete-protection"
    for value in ("Always", "Cascading"):
        space.kubectl("label", "--overwrite", "asts", "web", f"{label}={value}")
        assert f"{label}={value}" in space.refused("delete", "asts", "web")
    space.scale(0, "web")
    space.kubectl("delete", "asts", "web")
