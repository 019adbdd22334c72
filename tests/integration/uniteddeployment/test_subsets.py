"""Children of each kind: created, updated subset by subset, and replaced when subsets come and go."""

import pytest

from tests.support.united import (
    NAME,
    TEMPLATES,
    adaptive,
    children,
    images,
    on_nodes,
    replicas_of,
    serving,
    set_image,
    settled,
    subset_of,
    united,
    workload_template,
)
from tests.support.workspace import Workspace, identity

OLD, NEW = "nginx:alpine", "nginx:mainline"
SHARES = ({"name": "a", "replicas": 1}, {"name": "b", "replicas": "50%"}, "c")


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_rollout_of_each_kind(space: Workspace, template: str) -> None:
    """The pods of a Deployment cannot be held; those of the other kinds are, by subset."""
    space.apply(united(4, SHARES, template=template))
    status = settled(space, 4)
    assert replicas_of(space, template) == {"a": 1, "b": 2, "c": 1}
    first = status["currentRevision"]
    space.patch({"spec": {"updateStrategy": {"manualUpdate": {"partitions": {"b": 1, "c": 1}}}}}, NAME)
    mark = space.now()
    set_image(space, NEW, template)
    if template == "deploymentTemplate":
        status = settled(space, 4)
    else:
        space.settled(NAME, readyReplicas=4, updatedReplicas=2, updatedReadyReplicas=2, currentRevision=first)
        assert images(space.pods.values(), "a") == [NEW]
        assert images(space.pods.values(), "b") == [OLD, NEW]
        assert images(space.pods.values(), "c") == [OLD]
        space.patch({"spec": {"updateStrategy": {"manualUpdate": {"partitions": {"b": None, "c": None}}}}}, NAME)
        status = settled(space, 4)
    assert status["currentRevision"] == status["updatedRevision"] != first
    assert {subset_of(pod) for pods in space.moments(mark) for pod in pods.values()} == {"a", "b", "c"}


@pytest.mark.parametrize("template", ["cloneSetTemplate", "statefulSetTemplate"])
def test_a_subset_leaves_and_its_name_is_used_again(space: Workspace, template: str) -> None:
    """E1."""
    space.apply(united(4, "ab", template=template))
    settled(space, 4)
    left = children(space, template)["b"]["metadata"]["uid"]
    mark = space.now()
    space.apply(united(4, "a", template=template))
    space.until(lambda: replicas_of(space, template) == {"a": 4})
    settled(space, 4)
    space.until(lambda: {one["name"] for one in space.status(NAME)["subsetStatuses"]} == {"a"})
    space.apply(united(4, "ab", template=template))
    space.until(lambda: replicas_of(space, template) == {"a": 2, "b": 2})
    settled(space, 4)
    assert children(space, template)["b"]["metadata"]["uid"] != left
    assert min(serving(pods) for pods in space.moments(mark)) == 4


def test_another_kind_of_template(space: Workspace) -> None:
    """E10."""
    space.apply(united(4, "ab"))
    settled(space, 4)
    mark = space.now()
    manifest = united(4, "ab", template="deploymentTemplate")
    template = {"cloneSetTemplate": None, "deploymentTemplate": workload_template("deploymentTemplate", {})}
    space.patch({"spec": manifest["spec"] | {"template": template}}, NAME)
    space.until(lambda: replicas_of(space) == {} and len(children(space, "deploymentTemplate")) == 2)
    settled(space, 4)
    assert min(serving(pods) for pods in space.moments(mark)) >= 4


def test_scaled_while_it_rolls(space: Workspace) -> None:
    """An autoscaler raises the replicas in the middle of a rollout, and people lower them again: `/scale` fits both."""
    space.apply(united(4, "ab"))
    settled(space, 4)
    set_image(space, NEW)
    cpu = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}
    scaler = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": NAME},
        "spec": {
            "minReplicas": 7,
            "maxReplicas": 9,
            "scaleTargetRef": {"apiVersion": "apps.kruise.io/v1beta1", "kind": "UnitedDeployment", "name": NAME},
            "metrics": [{"type": "Resource", "resource": cpu}],
        },
    }
    space.apply(scaler)
    settled(space, 7)
    assert replicas_of(space) == {"a": 3, "b": 4}
    assert set(images(space.pods.values(), "a") + images(space.pods.values(), "b")) == {NEW}
    space.kubectl("delete", "hpa", NAME)
    space.scale(2, NAME)
    settled(space, 2)
    assert replicas_of(space) == {"a": 1, "b": 1}


def test_patches_of_subsets(space: Workspace) -> None:
    """E5 and E20; one that cannot be applied costs its subset a reason, and no other anything."""
    env = {"spec": {"containers": [{"name": "nginx", "env": [{"name": "ZONE", "value": "a"}]}]}}
    space.apply(united(4, [{"name": "a", "patch": env}, "b"]))
    first = settled(space, 4)["updatedRevision"]
    pods = {subset_of(pod): pod for pod in space.pods.values()}
    assert pods["a"]["spec"]["containers"][0]["env"] == [{"name": "ZONE", "value": "a"}]
    assert "env" not in pods["b"]["spec"]["containers"][0]
    broken = {"spec": {"containers": [{"image": "nginx:none"}]}}
    space.apply(united(6, [{"name": "a", "patch": broken}, "b"]))
    (text, *_) = space.warnings("FailedUpdateSubset")
    assert "patch" in text
    space.until(lambda: replicas_of(space) == {"a": 2, "b": 3})
    space.apply(united(6, [{"name": "a", "patch": {"metadata": {"labels": {"pool": "a"}}}}, "b"]))
    status = settled(space, 6)
    assert (status["updatedRevision"], replicas_of(space)) == (first, {"a": 3, "b": 3})
    assert {subset_of(pod): pod["metadata"]["labels"].get("pool") for pod in space.pods.values()} == {
        "a": "a",
        "b": None,
    }


def test_orphans_are_adopted_and_kept_on_request(space: Workspace) -> None:
    """E9 and E14: the children of a deleted UnitedDeployment are adopted again with their pods."""
    space.apply(united(4, "ab"))
    settled(space, 4)
    before = {identity(pod) for pod in space.pods.values()}
    mark = space.now()
    space.kubectl("delete", "uniteddeployment", NAME, "--cascade=orphan")
    assert len(children(space)) == 2
    space.apply(united(4, "ab"))
    settled(space, 4)
    assert {identity(pod) for pod in space.pods.values()} == before
    assert not [event for event in space.history(mark) if event.object["metadata"].get("deletionTimestamp")]
    space.kubectl("delete", "uniteddeployment", NAME)
    space.until(lambda: not space.pods)


def test_a_quota_without_room_for_a_child(space: Workspace) -> None:
    """E15: the other child is there; when there is room, so is this one."""
    space.kubectl("create", "quota", "one", "--hard=count/clonesets.apps.kruise.io=1")
    space.until(lambda: "hard" in space.read("quota", "one").get("status", {}))
    space.apply(united(4, "ab"))
    assert any("exceeded quota" in text for text in space.warnings("FailedUpdateSubset"))
    assert replicas_of(space) == {"a": 2}
    space.kubectl("delete", "quota", "one")
    settled(space, 4)


def test_pods_without_a_node_go_to_others_and_come_back(space: Workspace) -> None:
    """§10 and A2 to A5: nothing moves back by itself, new pods try again."""
    nowhere = on_nodes("b", "zone-of", space.name, maxReplicas=2)
    space.apply(united(4, [{"name": "a", "maxReplicas": 2}, nowhere, "c"], strategy=adaptive(2, 12)))
    settled(space, 4)
    assert replicas_of(space) == {"a": 2, "b": 0, "c": 2}
    statuses = {one["name"]: one for one in space.status(NAME)["subsetStatuses"]}
    (marked,) = statuses["b"]["conditions"]
    assert (marked["type"], marked["status"], marked["reason"]) == ("Schedulable", "False", "reschedule")
    assert "conditions" not in statuses["a"]

    def recovered() -> bool:
        found = {one["name"]: one for one in space.status(NAME)["subsetStatuses"]}["b"]["conditions"]
        return (found[0]["status"], found[0]["reason"]) == ("True", "recover")

    node = space.read("nodes")["items"][0]["metadata"]["name"]
    space.kubectl("label", "node", node, f"zone-of={space.name}", "--overwrite")
    space.until(recovered)
    assert replicas_of(space) == {"a": 2, "b": 0, "c": 2}
    space.scale(5, NAME)
    settled(space, 5)
    assert replicas_of(space) == {"a": 2, "b": 1, "c": 2}


def test_reserved_pods_have_substitutes_until_they_serve(space: Workspace) -> None:
    """§11."""
    first = on_nodes("a", "reserved-of", space.name)
    space.apply(united(2, [first, "b"], strategy=adaptive(2, 3, reserveUnschedulablePods=True)))
    status = space.settled(NAME, replicas=2, readyReplicas=2, reservedPods=2)
    assert replicas_of(space) == {"a": 2, "b": 2}
    assert status["labelSelector"] == "app=web,apps.kruise.io/united-deployment-reserved-pod=false"
    node = space.read("nodes")["items"][0]["metadata"]["name"]
    mark = space.now()
    space.kubectl("label", "node", node, f"reserved-of={space.name}", "--overwrite")
    space.until(lambda: replicas_of(space) == {"a": 2, "b": 0})
    settled(space, 2)
    assert min(serving(pods) for pods in space.moments(mark)) >= 2
    label = "apps.kruise.io/united-deployment-reserved-pod"
    assert {pod["metadata"]["labels"][label] for pod in space.pods.values()} == {"false"}


def test_an_old_pod_that_is_not_ready_is_in_nobodys_way(space: Workspace) -> None:
    """E16: the built-in StatefulSet would wait for it forever."""
    manifest = united(3, "a", template="statefulSetTemplate", partitions={"a": 1})
    manifest["spec"]["template"]["statefulSetTemplate"]["spec"]["podManagementPolicy"] = "OrderedReady"
    space.apply(manifest)
    settled(space, 3)
    last = max(space.pods)
    old = space.pod(last)["metadata"]["uid"]
    space.set_condition(last, "Ready", "False")
    set_image(space, NEW, "statefulSetTemplate")
    space.settled(NAME, readyReplicas=3, updatedReplicas=2, updatedReadyReplicas=2)
    assert space.pod(last)["metadata"]["uid"] != old
    assert images(space.pods.values(), "a") == [OLD, NEW, NEW]
