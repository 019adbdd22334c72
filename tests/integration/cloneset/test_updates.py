"""Updates: changed pods, methods, order, and limits (cloneset.md §4.8)."""

import json

import pytest

from tests.support.workspace import (
    Workspace,
    available,
    cloneset,
    identity,
    image,
    is_ready,
    restarts,
    revision_of,
    terminating,
)
from tests.testkit.documents import Json

IN_PLACE: Json = {"podUpdatePolicy": "InPlaceIfPossible"}


def started(space: Workspace, replicas: int, strategy: Json, **arguments: object) -> set[tuple[str, str, str, str]]:
    """Apply a CloneSet, wait until all is ready, and identify its pods."""
    space.apply(cloneset(replicas, strategy=strategy, **arguments))
    space.settled(replicas=replicas, readyReplicas=replicas)
    return identities(space)


def identities(space: Workspace) -> set[tuple[str, str, str, str]]:
    return {identity(pod) for pod in space.pods.values()}


def images(space: Workspace) -> list[str]:
    return sorted(image(pod).removeprefix("nginx:") for pod in space.pods.values())


def set_env(space: Workspace) -> None:
    """Change something that no running container can take over."""
    operation = {"op": "add", "path": "/spec/template/spec/containers/0/env", "value": [{"name": "A", "value": "b"}]}
    space.json_patch(operation)


def test_in_place_falls_back_to_new_pods(space: Workspace):
    before = started(space, 3, IN_PLACE)
    set_env(space)
    space.settled(updatedReadyReplicas=3, replicas=3)
    assert not {name for name, *_ in before} & set(space.pods)
    assert all(pod["spec"]["containers"][0]["env"] for pod in space.pods.values())


def test_in_place_only_refuses_other_changes_at_admission(space: Workspace):
    """Applies to v1alpha1."""
    before = started(space, 2, {"type": "InPlaceOnly"}, version="v1alpha1")
    operation = {"op": "add", "path": "/spec/template/spec/containers/0/env", "value": [{"name": "A", "value": "b"}]}
    kind = "clonesets.v1alpha1.apps.kruise.io"
    message = space.refused("patch", kind, "sample", "--type=json", "-p", json.dumps([operation]))
    assert "only allowed to update images in spec for InPlaceOnly, but found add /containers/0/env" in message
    space.set_image("nginx:mainline")
    space.settled(updatedReadyReplicas=2)
    assert identities(space) == before


def test_in_place_only_leaves_pods_alone_when_a_change_cannot_be_made_in_place(space: Workspace):
    """Applies to v1beta1, where admission accepts it."""
    before = started(space, 2, {"podUpdatePolicy": "InPlaceOnly"})
    set_env(space)
    space.until(lambda: any(found["type"] == "FailedUpdate" for found in space.status().get("conditions", [])))
    failure = next(found for found in space.status()["conditions"] if found["type"] == "FailedUpdate")
    assert failure["message"].endswith("update strategy is InPlaceOnly but can not update in-place")
    assert identities(space) == before
    assert space.status()["updatedReplicas"] == 0


def test_on_delete_updates_nothing_but_what_is_deleted_by_hand(space: Workspace):
    manifest = cloneset(3)
    manifest["spec"]["updateStrategy"] = {"type": "OnDelete"}
    space.apply(manifest)
    space.settled(readyReplicas=3)
    before = set(space.pods)
    space.set_image("nginx:mainline")
    status = space.settled(updatedReplicas=0, expectedUpdatedReplicas=3)
    assert status["updateRevision"] != status["currentRevision"]
    space.kubectl("delete", "pod", min(before))
    space.settled(updatedReadyReplicas=1, readyReplicas=3)
    assert len(before & set(space.pods)) == 2
    assert images(space) == ["alpine", "alpine", "mainline"]


def test_a_paused_set_scales_but_does_not_update(space: Workspace):
    before = started(space, 3, IN_PLACE | {"paused": True})
    space.set_image("nginx:mainline")
    space.settled(updatedReplicas=0, replicas=3)
    space.scale(4)
    space.settled(updatedReadyReplicas=1, readyReplicas=4)
    assert before < identities(space)
    assert images(space) == ["alpine", "alpine", "alpine", "mainline"]
    space.patch({"spec": {"updateStrategy": {"rollingUpdate": {"paused": False}}}})
    space.settled(updatedReadyReplicas=4)
    assert before < identities(space)


def test_rollback_in_the_middle_raises_the_number_of_the_old_revision(space: Workspace):
    before = started(space, 5, IN_PLACE | {"partition": 3})
    first = space.status()["updateRevision"]
    space.set_image("nginx:mainline")
    second = space.settled(updatedReadyReplicas=2, readyReplicas=5)["updateRevision"]
    assert space.revisions() == {first: 1, second: 2}
    space.json_patch(
        {"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "nginx:alpine"},
        {"op": "replace", "path": "/spec/updateStrategy/rollingUpdate/partition", "value": 0},
    )
    status = space.settled(updateRevision=first, currentRevision=first, readyReplicas=5, updatedReadyReplicas=5)
    assert status["updatedReplicas"] == 5
    assert space.revisions() == {second: 2, first: 3}
    assert identities(space) == before
    assert images(space) == ["alpine"] * 5


def test_a_raised_partition_brings_nothing_back(space: Workspace):
    """Without the gate CloneSetPartitionRollback."""
    started(space, 4, IN_PLACE | {"maxUnavailable": "100%"})
    space.set_image("nginx:mainline")
    space.settled(updatedReadyReplicas=4)
    space.set_image("nginx:latest")
    space.settled(updatedReadyReplicas=4)
    start = space.now()
    space.patch({"spec": {"updateStrategy": {"rollingUpdate": {"partition": 4}}}})
    space.settled(updatedReadyReplicas=4, readyReplicas=4)
    assert images(space) == ["latest"] * 4
    assert {image(event.object) for event in space.history(start)} <= {"nginx:latest"}  # late statuses do not count
    assert not any(event.type == "ADDED" for event in space.history(start))


def test_a_third_template_replaces_the_second_in_the_middle(space: Workspace):
    before = started(space, 5, IN_PLACE)
    start = space.now()
    space.set_image("nginx:mainline")
    space.until(lambda: "mainline" in images(space))
    space.set_image("nginx:latest")
    space.settled(updatedReadyReplicas=5, readyReplicas=5)
    assert identities(space) == before
    assert images(space) == ["latest"] * 5
    assert min(sum(map(available, pods.values())) for pods in space.moments(start)) >= 4
    assert len(space.revisions()) == 3


def test_only_the_changed_container_restarts(space: Workspace):
    pair = {"containers": [{"name": "nginx", "image": "nginx:alpine"}, {"name": "agent", "image": "agent:1"}]}
    before = started(space, 2, IN_PLACE | {"maxUnavailable": 2}, template={"spec": pair})
    space.set_image("nginx:mainline")
    space.settled(updatedReadyReplicas=2)
    assert identities(space) == before
    for pod in space.pods.values():
        counts = {found["name"]: found["restartCount"] for found in pod["status"]["containerStatuses"]}
        assert counts == {"nginx": 1, "agent": 0}


def test_containers_restart_in_the_order_of_their_launch_priority(space: Workspace):
    """The container with the higher priority first; the other one when that is ready again."""

    def container(name: str, priority: int) -> Json:
        source = {"configMapKeyRef": {"name": "barrier", "key": f"p_{priority}"}}
        env = [{"name": "KRUISE_CONTAINER_BARRIER", "valueFrom": source}]
        return {"name": name, "image": f"{name}:1", "env": env}

    containers = [container("low", 1), container("high", 5)]
    started(space, 1, IN_PLACE | {"maxUnavailable": 1}, template={"spec": {"containers": containers}})
    start = space.now()
    space.json_patch(
        *({"op": "replace", "path": f"/spec/template/spec/containers/{n}/image", "value": f"{name}:2"}
          for n, name in enumerate(("low", "high")))
    )  # fmt: skip
    space.settled(updatedReadyReplicas=1)
    seen = [tuple(each["image"] for each in event.object["spec"]["containers"]) for event in space.history(start)]
    assert list(dict.fromkeys(seen))[-3:] == [("low:1", "high:1"), ("low:1", "high:2"), ("low:2", "high:2")]


def test_metadata_alone_restarts_nothing(space: Workspace):
    before = started(space, 3, IN_PLACE)
    space.patch({"spec": {"template": {"metadata": {"labels": {"tier": "web"}, "annotations": {"note": "new"}}}}})
    space.settled(updatedReadyReplicas=3, readyReplicas=3)
    assert identities(space) == before
    for pod in space.pods.values():
        assert restarts(pod) == 0
        assert pod["metadata"]["labels"]["tier"] == "web"
        assert pod["metadata"]["annotations"]["note"] == "new"
    space.patch({"spec": {"template": {"metadata": {"labels": {"tier": None}}}}})
    space.settled(updatedReadyReplicas=3, readyReplicas=3)
    assert not any("tier" in pod["metadata"]["labels"] for pod in space.pods.values())


@pytest.mark.parametrize("policy", ["InPlaceIfPossible", "ReCreate"])
def test_a_broken_image_stops_the_rollout_and_the_next_one_repairs_it(space: Workspace, policy: str):
    started(space, 4, {"podUpdatePolicy": policy, "maxUnavailable": 1})
    start = space.now()
    space.set_image("nginx:broken")
    space.settled(updatedReplicas=1, updatedReadyReplicas=0, readyReplicas=3)
    assert images(space) == ["alpine", "alpine", "alpine", "broken"]
    space.set_image("nginx:mainline")
    space.settled(updatedReadyReplicas=4, replicas=4)
    assert images(space) == ["mainline"] * 4
    assert min(sum(map(available, pods.values())) for pods in space.moments(start)) >= 3
    assert sum(image(event.object) == "nginx:broken" and event.type == "ADDED" for event in space.history()) <= 1


def test_surge_and_unavailability_together_stay_in_bounds(space: Workspace):
    started(space, 8, {"podUpdatePolicy": "ReCreate", "maxSurge": "25%", "maxUnavailable": "25%"})
    start = space.now()
    space.set_image("nginx:mainline")
    space.settled(updatedReadyReplicas=8, replicas=8)
    moments = list(space.moments(start))
    assert min(sum(map(available, pods.values())) for pods in moments) >= 6
    assert max(sum(not terminating(pod) for pod in pods.values()) for pods in moments) <= 10


ORDER = {"orderPriority": [{"orderedKey": "turn"}]}
WEIGHT = {
    "weightPriority": [
        {"weight": 50, "matchSelector": {"matchLabels": {"test-key": "foo"}}},
        {"weight": 30, "matchSelector": {"matchLabels": {"test-key": "bar"}}},
    ]
}


@pytest.mark.parametrize(
    ("strategy", "labels", "expected"),
    [
        pytest.param(
            {"priorityStrategy": ORDER},
            ["turn=web-1", "turn=web-10", "turn=3", "turn=2"],
            ["turn=web-10", "turn=3", "turn=2", "turn=web-1"],
            id="order",
        ),
        pytest.param(
            {"priorityStrategy": WEIGHT},
            ["test-key=none", "test-key=bar", "test-key=foo"],
            ["test-key=foo", "test-key=bar", "test-key=none"],
            id="weight",
        ),
    ],
)
def test_update_order(space: Workspace, strategy: Json, labels: list[str], expected: list[str]):
    started(space, len(labels), IN_PLACE | {"maxUnavailable": 1} | strategy)
    given = dict(zip(sorted(space.pods), labels, strict=True))
    for name, label in given.items():
        space.label(name, label)
    start = space.now()
    space.set_image("nginx:mainline")
    status = space.settled(updatedReadyReplicas=len(labels))
    assert [given[name] for name in space.first_updates(start, status["updateRevision"])] == expected


def test_scattered_pods_come_in_equal_shares(space: Workspace):
    """Half of the pods are marked: every two pods that are updated are a marked one and another one."""
    scatter = {"scatterStrategy": [{"key": "spot", "value": "yes"}]}
    started(space, 8, IN_PLACE | {"maxUnavailable": "100%", "partition": 8} | scatter)
    marked = sorted(space.pods)[:4]
    space.kubectl("label", "pod", *marked, "spot=yes")
    space.set_image("nginx:mainline")
    for partition in (6, 4, 2, 0):
        space.patch({"spec": {"updateStrategy": {"rollingUpdate": {"partition": partition}}}})
        space.settled(updatedReadyReplicas=8 - partition, readyReplicas=8)
        updated = [name for name, pod in space.pods.items() if image(pod) == "nginx:mainline"]
        assert len(set(updated) & set(marked)) == len(updated) / 2


def test_pods_keep_their_revision_labels_up_to_date(space: Workspace):
    started(space, 2, IN_PLACE | {"maxUnavailable": 2})
    space.set_image("nginx:mainline")
    status = space.settled(updatedReadyReplicas=2)
    for pod in space.pods.values():
        assert revision_of(pod) == status["updateRevision"]
        assert pod["metadata"]["labels"]["pod-template-hash"] == status["updateRevision"].rpartition("-")[2]
        record = json.loads(pod["metadata"]["annotations"]["apps.kruise.io/inplace-update-state"])
        assert record["revision"] == status["updateRevision"]
        assert record["updateImages"] is True
        assert list(record["lastContainerStatuses"]) == ["nginx"]
        assert is_ready(pod)


def test_blue_green_makes_all_new_pods_beside_the_old_ones(space: Workspace):
    """Rollout controllers do so, with a minReadySeconds that keeps pods from being available."""
    before = started(space, 5, {"maxSurge": "100%", "maxUnavailable": 0})
    kept = {name for name, *_ in before}
    held = {"minReadySeconds": 2147483646, "template": {"metadata": {"annotations": {"try": "1"}}}}
    space.patch({"spec": held})
    space.settled(replicas=10, updatedReplicas=5, updatedReadyReplicas=5, availableReplicas=0)
    assert kept < set(space.pods)
    # Another template in the middle: those of the first try go, and the old ones stay.
    space.patch({"spec": {"template": {"metadata": {"annotations": {"try": "2"}}}}})
    space.settled(replicas=10, updatedReplicas=5, updatedReadyReplicas=5)
    assert kept < set(space.pods)
    assert sum(pod["metadata"]["annotations"].get("try") == "2" for pod in space.pods.values()) == 5
    # Back to the first one, while they are held still.
    space.patch({"spec": {"template": {"metadata": {"annotations": {"try": None}}}}})
    space.settled(replicas=5, updatedReplicas=5, readyReplicas=5)
    assert identities(space) == before
    # again, and on to the end
    space.patch({"spec": {"template": {"metadata": {"annotations": {"try": "3"}}}}})
    space.settled(replicas=10, updatedReplicas=5, updatedReadyReplicas=5)
    space.patch({"spec": {"minReadySeconds": 0}})
    space.settled(replicas=5, updatedReplicas=5, updatedAvailableReplicas=5)
    assert not kept & set(space.pods)


def test_a_surge_that_is_lowered_in_the_middle_is_lowered_at_once(space: Workspace):
    before = {name for name, *_ in started(space, 5, {"maxSurge": "100%", "maxUnavailable": 0})}
    template = space.clone()["spec"]["template"]
    space.patch({"spec": {"template": {"spec": {"nodeSelector": {"nowhere": "yes"}}}}})
    space.until(lambda: len(space.pods) == 10)
    space.patch({"spec": {"updateStrategy": {"rollingUpdate": {"maxSurge": 1}}}})
    space.settled(replicas=6, updatedReplicas=1, readyReplicas=5)
    assert before < set(space.pods)
    space.patch({"spec": {"updateStrategy": {"rollingUpdate": {"maxSurge": 3}}}})
    space.until(lambda: len(space.pods) == 8)
    space.json_patch({"op": "replace", "path": "/spec/template", "value": template})
    space.settled(replicas=5, updatedReplicas=5, readyReplicas=5)
    assert before == set(space.pods)
