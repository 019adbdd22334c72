"""Updates: changed pods, methods, order, and limits (statefulset.md §8.2, §8.4)."""

from tests.support.stateful import IN_PLACE, first_seen, serving, statefulset
from tests.support.workspace import Workspace, condition, identity, image, is_ready, restarts, revision_of
from tests.testkit.documents import Json

NEW = "nginx:mainline"


def started(space: Workspace, replicas: int, strategy: Json, **arguments: object) -> set[tuple[str, str, str, str]]:
    """Apply a StatefulSet, wait until all is ready, and identify its pods."""
    space.apply(statefulset(replicas, strategy=strategy, **arguments))
    space.settled("web", replicas=replicas, readyReplicas=replicas)
    return {identity(pod) for pod in space.pods.values()}


def updated_in_order(space: Workspace, since: int) -> list[str]:
    return space.first_updates(since, space.status("web")["updateRevision"])


def test_in_place_with_max_unavailable(space: Workspace):
    before = started(space, 5, IN_PLACE | {"maxUnavailable": 3})
    mark = space.now()
    space.set_image(NEW, "web")
    status = space.settled("web", updatedReadyReplicas=5, readyReplicas=5)
    assert status["currentRevision"] == status["updateRevision"]
    assert {identity(pod) for pod in space.pods.values()} == before
    assert all(restarts(pod) == 1 and image(pod) == NEW for pod in space.pods.values())
    assert set(updated_in_order(space, mark)[:3]) == {"web-4", "web-3", "web-2"}
    assert all(serving(pods) >= 2 for pods in space.moments(mark))
    revision = status["updateRevision"]
    space.event("SuccessfulUpdatePodInPlace", f"successfully update pod web-4 in-place(revision {revision})")


def test_partition_then_the_rest(space: Workspace):
    started(space, 5, {"maxUnavailable": 3, "partition": 4})
    mark = space.now()
    space.set_image(NEW, "web")
    status = space.settled("web", updatedReadyReplicas=1, readyReplicas=5, updatedReplicas=1, currentReplicas=4)
    assert status["currentRevision"] != status["updateRevision"]
    assert first_seen(space.history(mark), "DELETED") == [4]
    mark = space.now()
    space.patch({"spec": {"updateStrategy": {"rollingUpdate": {"partition": 0}}}}, "web")
    space.settled("web", updatedReadyReplicas=5, readyReplicas=5)
    assert all(serving(pods) >= 2 for pods in space.moments(mark))
    assert sorted(first_seen(space.history(mark), "DELETED")[:3]) == [1, 2, 3]


def test_an_ordered_set_is_updated_from_the_top_one_by_one(space: Workspace):
    started(space, 3, {}, parallel=False)
    mark = space.now()
    space.set_image(NEW, "web")
    space.settled("web", updatedReadyReplicas=3, readyReplicas=3)
    assert first_seen(space.history(mark), "DELETED") == [2, 1, 0]
    assert all(serving(pods) >= 2 for pods in space.moments(mark))


def test_an_ordered_set_is_updated_in_place(space: Workspace):
    before = started(space, 3, IN_PLACE, parallel=False)
    mark = space.now()
    space.set_image(NEW, "web")
    space.settled("web", updatedReadyReplicas=3, readyReplicas=3)
    assert {identity(pod) for pod in space.pods.values()} == before
    assert updated_in_order(space, mark) == ["web-2", "web-1", "web-0"]


def test_a_change_that_needs_a_new_pod_makes_one_under_the_same_name(space: Workspace):
    before = started(space, 2, IN_PLACE | {"maxUnavailable": 2})
    env = {"op": "add", "path": "/spec/template/spec/containers/0/env", "value": [{"name": "A", "value": "b"}]}
    space.json_patch(env, name="web")
    space.settled("web", updatedReadyReplicas=2, readyReplicas=2)
    after = {identity(pod) for pod in space.pods.values()}
    assert {name for name, *_ in after} == {name for name, *_ in before}
    assert not after & before


def test_in_place_only_is_refused_at_admission(space: Workspace):
    started(space, 1, {"podUpdatePolicy": "InPlaceOnly"})
    env = '[{"op":"add","path":"/spec/template/spec/containers/0/env","value":[{"name":"A","value":"b"}]}]'
    message = space.refused("patch", "asts", "web", "--type=json", "-p", env)
    assert "currently only image update is allowed for InPlaceOnly" in message


def test_the_grace_period_lets_traffic_end_first(space: Workspace):
    started(space, 2, IN_PLACE | {"inPlaceUpdateStrategy": {"gracePeriodSeconds": 3}})
    mark = space.now()
    space.set_image(NEW, "web")
    space.settled("web", updatedReadyReplicas=2, readyReplicas=2)
    waiting = [
        pods["web-1"]
        for pods in space.moments(mark)
        if image(pods["web-1"]) != NEW and condition(pods["web-1"], "InPlaceUpdateReady").get("status") == "False"
    ]
    assert waiting, "not ready while the old image still runs"
    assert not any(is_ready(pod) for pod in waiting[1:])


def test_a_rollback_in_the_middle_uses_the_old_name_again(space: Workspace):
    before = started(space, 3, IN_PLACE | {"partition": 1})
    first = space.status("web")["updateRevision"]
    space.set_image(NEW, "web")
    second = space.settled("web", updatedReadyReplicas=2, readyReplicas=3)["updateRevision"]
    assert space.revisions("web") == {first: 1, second: 2}
    space.set_image("nginx:alpine", "web")
    status = space.settled("web", updateRevision=first, updatedReadyReplicas=3, readyReplicas=3)
    assert status["currentRevision"] == first
    assert space.revisions("web") == {second: 2, first: 3}
    assert {identity(pod) for pod in space.pods.values()} == before


def test_paused_scales_and_does_not_update(space: Workspace):
    before = started(space, 2, IN_PLACE | {"paused": True})
    space.set_image(NEW, "web")
    space.settled("web", updatedReplicas=0, replicas=2)
    space.scale(3, "web")
    space.settled("web", replicas=3, readyReplicas=3, updatedReplicas=1)
    space.patch({"spec": {"updateStrategy": {"rollingUpdate": {"paused": False}}}}, "web")
    space.settled("web", updatedReadyReplicas=3)
    assert before < {identity(pod) for pod in space.pods.values()}


def test_on_delete_updates_what_users_delete(space: Workspace):
    manifest = statefulset(3)
    manifest["spec"]["updateStrategy"] = {"type": "OnDelete"}
    space.apply(manifest)
    space.settled("web", readyReplicas=3)
    space.set_image(NEW, "web")
    space.settled("web", updatedReplicas=0)
    space.kubectl("delete", "pod", "web-1")
    space.settled("web", updatedReadyReplicas=1, readyReplicas=3)
    assert [image(space.pod(f"web-{number}")) for number in range(3)] == ["nginx:alpine", NEW, "nginx:alpine"]
    space.kubectl("delete", "pod", "web-0", "web-2")
    status = space.settled("web", updatedReadyReplicas=3, readyReplicas=3, currentReplicas=3)
    assert status["currentRevision"] == status["updateRevision"]


def test_a_template_that_is_rolled_back_repairs_an_ordered_set(space: Workspace):
    started(space, 2, {}, parallel=False)
    first = space.status("web")["updateRevision"]
    gates = "/spec/template/spec/readinessGates"
    space.json_patch({"op": "add", "path": f"{gates}/-", "value": {"conditionType": "example.com/no"}}, name="web")
    space.settled("web", updatedReplicas=1, readyReplicas=1)
    space.json_patch({"op": "remove", "path": f"{gates}/1"}, name="web")
    space.settled("web", updateRevision=first, updatedReadyReplicas=2, readyReplicas=2)


def test_priorities_decide_an_unordered_update(space: Workspace):
    strategy = IN_PLACE | {"unorderedUpdate": {"priorityStrategy": {"orderPriority": [{"orderedKey": "rank"}]}}}
    started(space, 3, strategy)
    for number, rank in enumerate((7, 9, 3)):
        space.label(f"web-{number}", f"rank=r-{rank}")
    mark = space.now()
    space.set_image(NEW, "web")
    space.settled("web", updatedReadyReplicas=3, readyReplicas=3)
    assert updated_in_order(space, mark) == ["web-1", "web-0", "web-2"]


def test_a_pod_that_is_specified_for_deletion_comes_back(space: Workspace):
    started(space, 3, {"partition": 3})
    before = space.pod("web-1")["metadata"]["uid"]
    revision = revision_of(space.pod("web-1"))
    space.set_image(NEW, "web")
    space.settled("web", updatedReplicas=0)
    space.label("web-1", "apps.kruise.io/specified-delete=true")
    space.until(lambda: space.pod("web-1").get("metadata", {}).get("uid", before) != before)
    space.settled("web", replicas=3, readyReplicas=3)
    assert revision_of(space.pod("web-1")) == revision, "partition keeps it on the old revision"


def test_a_broken_image_is_repaired_by_the_next_one(space: Workspace):
    """Parallel: a pod that is unavailable anyway takes no more of the budget."""
    started(space, 3, IN_PLACE)
    space.set_condition("web-2", "InPlaceUpdateReady", "False")
    space.set_image(NEW, "web")
    space.settled("web", updatedReadyReplicas=3, readyReplicas=3)


def test_pods_count_as_available_after_min_ready_seconds(space: Workspace):
    started(space, 2, IN_PLACE | {"minReadySeconds": 2})
    space.settled("web", availableReplicas=2)
    mark = space.now()
    space.set_image(NEW, "web")
    space.settled("web", updatedAvailableReplicas=2, seconds=90)
    assert updated_in_order(space, mark) == ["web-1", "web-0"]


def test_hooks_are_asked_before_and_after_an_update(space: Workspace):
    hook = {"inPlaceUpdate": {"labelsHandler": {"in-use": "true"}}}
    manifest = statefulset(1, strategy=IN_PLACE, lifecycle=hook)
    manifest["spec"]["template"]["metadata"]["labels"]["in-use"] = "true"
    space.apply(manifest)
    space.settled("web", readyReplicas=1)
    state = "lifecycle.apps.kruise.io/state"

    def reached(name: str) -> None:
        space.until(lambda: space.pod("web-0")["metadata"]["labels"].get(state) == name)

    space.set_image(NEW, "web")
    reached("PreparingUpdate")
    assert image(space.pod("web-0")) == "nginx:alpine"
    space.label("web-0", "in-use-")
    reached("Updated")
    assert image(space.pod("web-0")) == NEW
    space.label("web-0", "in-use=true")
    reached("Normal")


def test_the_history_is_kept_as_long_as_it_is_told(space: Workspace):
    space.apply(statefulset(1, strategy=IN_PLACE, revisionHistoryLimit=2))
    space.settled("web", readyReplicas=1)
    for number in range(4):
        space.set_image(f"nginx:1.2{number}", "web")
        space.settled("web", updatedReadyReplicas=1, readyReplicas=1)
    space.until(lambda: len(space.revisions("web")) == 3)
    assert sorted(space.revisions("web").values()) == [3, 4, 5]
