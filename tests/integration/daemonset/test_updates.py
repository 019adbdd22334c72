"""Updates on three nodes: changed pods, methods, order, and limits (daemonset.md §4.8)."""

from tests.support.daemons import (
    IN_PLACE,
    NAME,
    NEW,
    OLD,
    by_node,
    crowded,
    daemonset,
    node_of,
    serving,
    settled,
    started,
    strategy,
    updated_nodes,
)
from tests.support.workspace import Workspace, identity, image, is_ready, moment, restarts, revision_of, state
from tests.testkit.documents import Json

ORDER = ["node-2", "node-1", "node-0"]
DONE = {"updatedNumberScheduled": 3, "numberAvailable": 3}


def images(space: Workspace) -> list[str]:
    """Return the running image of each node, sorted by node."""
    return [image(pod) for _, pod in sorted(by_node(space).items())]


def test_in_place_one_node_after_the_other(space: Workspace):
    before = {identity(pod) for pod in started(space, 3, IN_PLACE).values()}
    mark = space.now()
    space.set_image(NEW, NAME)
    settled(space, 3, **DONE)
    assert {identity(pod) for pod in space.pods.values()} == before
    assert all((restarts(pod), image(pod)) == (1, NEW) for pod in space.pods.values())
    assert updated_nodes(space, mark) == ORDER
    assert all(len(serving(pods)) >= 2 for pods in space.moments(mark))
    for name in space.pods:
        space.event("SuccessfulUpdatePodInPlace", f"successfully update pod {name} in-place")


def test_standard_removes_a_pod_before_the_next_one_is_made(space: Workspace):
    before = started(space, 3)
    mark = space.now()
    space.set_image(NEW, NAME)
    settled(space, 3, **DONE)
    assert updated_nodes(space, mark) == ORDER
    for pods in space.moments(mark):
        assert len(serving(pods)) >= 2
        assert len({node_of(pod) for pod in pods.values()}) == len(pods), "a going pod keeps its node"
    for pod in before.values():
        space.event("SuccessfulDelete", f"Deleted pod: {pod['metadata']['name']}")


def test_a_change_that_needs_new_pods_makes_them(space: Workspace):
    """Row 27, and maxUnavailable in percent: two of three."""
    before = started(space, 3, IN_PLACE | {"maxUnavailable": "40%"})
    mark = space.now()
    env = {"op": "add", "path": "/spec/template/spec/containers/0/env", "value": [{"name": "A", "value": "b"}]}
    space.json_patch(env, name=NAME)
    settled(space, 3, **DONE)
    assert not {identity(pod) for pod in by_node(space).values()} & {identity(pod) for pod in before.values()}
    fewest = min(len(serving(pods)) for pods in space.moments(mark))
    assert fewest == 1


def test_surging_keeps_the_old_pod_until_the_new_one_is_available(space: Workspace):
    """The surge is written as in v1alpha1 (row 41); a new pod is available after a second of readiness."""
    before = started(space, 3, {"rollingUpdateType": "Surging"}, version="v1alpha1", minReadySeconds=1)
    rolling = space.clone(NAME)["spec"]["updateStrategy"]["rollingUpdate"]
    assert rolling == {"rollingUpdateType": "Standard", "maxSurge": 1, "maxUnavailable": 0}
    settled(space, 3, **DONE)
    mark = space.now()
    space.set_image(NEW, NAME)
    settled(space, 3, **DONE)
    assert updated_nodes(space, mark) == ORDER
    for pods in space.moments(mark):
        assert len(serving(pods)) == 3
        assert len([pod for pod in pods.values() if "deletionTimestamp" not in pod["metadata"]]) <= 4
        assert not crowded(pods.values())
    for node, new in by_node(space).items():
        ready = next(one for one in new["status"]["conditions"] if one["type"] == "Ready")
        going = next(
            event.object["metadata"]["deletionTimestamp"]
            for event in space.history(mark)
            if event.object["metadata"]["uid"] == before[node]["metadata"]["uid"]
            and "deletionTimestamp" in event.object["metadata"]
        )
        waited = moment(going) - moment(ready["lastTransitionTime"])
        assert waited.total_seconds() >= 1 + 1, "it terminates with its grace period of a second"


def test_a_canary_on_one_node_then_on_all(space: Workspace):
    """Rows 10 and 12: the selector is over labels of nodes."""
    started(space, 3, IN_PLACE | {"selector": {"matchLabels": {"kubernetes.io/hostname": "node-1"}}})
    space.set_image(NEW, NAME)
    settled(space, 3, updatedNumberScheduled=1)
    assert images(space) == [OLD, NEW, OLD]
    strategy(space, selector=None)
    settled(space, 3, **DONE)


def test_partition_keeps_nodes_on_the_old_revision(space: Workspace):
    """Rows 7 and 8: a number of nodes, or a percentage, rounded down."""
    started(space, 3, IN_PLACE | {"partition": 2})
    space.set_image(NEW, NAME)
    settled(space, 3, updatedNumberScheduled=1)
    assert images(space) == [OLD, OLD, NEW]
    strategy(space, partition="50%")
    settled(space, 3, updatedNumberScheduled=2)
    assert images(space) == [OLD, NEW, NEW]
    strategy(space, partition=0)
    settled(space, 3, **DONE)


def test_paused_repairs_and_does_not_update(space: Workspace):
    """Row 17: recreated pods have the new revision."""
    before = started(space, 3, {"paused": True})
    space.set_image(NEW, NAME)
    settled(space, 3, updatedNumberScheduled=0)
    space.kubectl("delete", "pod", before["node-1"]["metadata"]["name"])
    settled(space, 3, updatedNumberScheduled=1)
    assert images(space) == [OLD, NEW, OLD]
    strategy(space, paused=False)
    settled(space, 3, **DONE)


def test_on_delete_updates_what_users_delete(space: Workspace):
    manifest = daemonset()
    manifest["spec"]["updateStrategy"] = {"type": "OnDelete"}
    space.apply(manifest)
    settled(space, 3)
    space.set_image(NEW, NAME)
    settled(space, 3, updatedNumberScheduled=0)
    space.kubectl("delete", "pod", by_node(space)["node-0"]["metadata"]["name"])
    settled(space, 3, updatedNumberScheduled=1)
    assert images(space) == [NEW, OLD, OLD]


def test_a_rollback_in_the_middle_uses_the_old_revision_again(space: Workspace):
    """Row 36; as long as the partition holds, one of the two stays."""
    before = {identity(pod) for pod in started(space, 3, IN_PLACE | {"partition": 1}).values()}
    first = space.status(NAME)["updateRevision"]
    space.set_image(NEW, NAME)
    second = settled(space, 3, updatedNumberScheduled=2)["updateRevision"]
    assert space.revisions(NAME) == {f"{NAME}-{first}": 1, f"{NAME}-{second}": 2}
    space.set_image(OLD, NAME)
    settled(space, 3, updateRevision=first, updatedNumberScheduled=2)
    strategy(space, partition=0)
    settled(space, 3, updateRevision=first, **DONE)
    assert space.revisions(NAME) == {f"{NAME}-{first}": 3, f"{NAME}-{second}": 2}
    assert {identity(pod) for pod in space.pods.values()} == before


def test_a_hook_is_asked_before_a_pod_goes(space: Workspace):
    """Row 29: one node at a time, and the status has the new generation."""
    hook = {"preDelete": {"labelsHandler": {"in-use": "true"}, "markPodNotReady": True}}
    manifest = daemonset(lifecycle=hook)
    manifest["spec"]["template"]["metadata"]["labels"]["in-use"] = "true"
    space.apply(manifest)
    before = settled(space, 3) and by_node(space)
    space.set_image(NEW, NAME)

    def asked() -> list[str]:
        return sorted(node_of(pod) for pod in space.pods.values() if state(pod) == "PreparingDelete")

    space.until(lambda: asked() == ["node-2"] and not is_ready(by_node(space)["node-2"]))
    space.settled(NAME, numberReady=2, updatedNumberScheduled=0)
    assert by_node(space).keys() == before.keys()
    assert asked() == ["node-2"]
    space.label(before["node-2"]["metadata"]["name"], "in-use-")
    space.until(lambda: asked() == ["node-1"])
    assert image(by_node(space)["node-2"]) == NEW
    space.json_patch({"op": "remove", "path": "/spec/lifecycle"}, name=NAME)
    settled(space, 3, **DONE)


def test_a_broken_image_is_repaired_by_the_next_one(space: Workspace):
    """Rows 14 to 16: what is not available is replaced at once, beside the next one of the budget."""
    before = {identity(pod) for pod in started(space, 3, IN_PLACE).values()}
    mark = space.now()
    space.set_image("nginx:broken", NAME)
    space.settled(NAME, updatedNumberScheduled=1, numberReady=2)
    assert images(space) == [OLD, OLD, "nginx:broken"]
    space.set_image(NEW, NAME)
    settled(space, 3, **DONE)
    assert {identity(pod) for pod in space.pods.values()} == before
    assert all(len(serving(pods)) >= 1 for pods in space.moments(mark))


def test_the_history_is_kept_as_long_as_it_is_told(space: Workspace):
    started(space, 3, IN_PLACE | {"maxUnavailable": "100%"}, revisionHistoryLimit=1)
    for number in range(3):
        space.set_image(f"nginx:1.2{number}", NAME)
        settled(space, 3, **DONE)
    space.until(lambda: len(space.revisions(NAME)) == 2)
    assert sorted(space.revisions(NAME).values()) == [3, 4]


def test_changes_of_type_apply_to_the_next_update(space: Workspace):
    """Row 28: pods without the gate are recreated once, and updated in place from then on."""
    first = started(space, 3, {"maxUnavailable": "100%"})
    space.patch(typed("InPlaceIfPossible", NEW), NAME)
    settled(space, 3, **DONE)
    second = by_node(space)
    assert not {identity(pod) for pod in first.values()} & {identity(pod) for pod in second.values()}
    space.set_image("nginx:perl", NAME)
    settled(space, 3, **DONE)
    assert {identity(pod) for pod in second.values()} == {identity(pod) for pod in by_node(space).values()}
    assert {revision_of(pod) for pod in space.pods.values()} == {space.status(NAME)["updateRevision"]}


def typed(kind: str, new: str) -> Json:
    """Return a change to another type of rolling update, and to another image."""
    containers = [{"name": "nginx", "image": new}]
    return {
        "spec": {
            "updateStrategy": {"rollingUpdate": {"rollingUpdateType": kind}},
            "template": {"spec": {"containers": containers}},
        }
    }
