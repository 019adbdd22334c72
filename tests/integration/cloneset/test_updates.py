"""Updates: changed pods, second thoughts, and order (cloneset.md §4.8)."""

from tests.support.workspace import Workspace, cloneset, identity, image
from tests.testkit.documents import Json

IN_PLACE: Json = {"podUpdatePolicy": "InPlaceIfPossible", "maxUnavailable": 1}
BY_WEIGHT: Json = {
    "priorityStrategy": {
        "weightPriority": [
            {"weight": 50, "matchSelector": {"matchLabels": {"test-key": "foo"}}},
            {"weight": 30, "matchSelector": {"matchLabels": {"test-key": "bar"}}},
        ]
    }
}
SCATTERED: Json = {"priorityStrategy": None, "scatterStrategy": [{"key": "spot", "value": "yes"}]}


def identities(space: Workspace) -> set[tuple[str, str, str, str]]:
    return {identity(pod) for pod in space.pods.values()}


def images(space: Workspace) -> list[str]:
    return sorted(image(pod).removeprefix("nginx:") for pod in space.pods.values())


def rolling(space: Workspace, **fields: object) -> None:
    space.patch({"spec": {"updateStrategy": {"rollingUpdate": fields}}})


def test_a_rollout_is_taken_back_paused_resumed_and_left_to_the_user(space: Workspace):
    """A rollback in the middle raises the number of the old revision.

    A paused set is scaled but not updated. With OnDelete only pods that are deleted by hand come back updated.
    """
    space.apply(cloneset(3, strategy=IN_PLACE | {"partition": 1}))
    first = space.settled(readyReplicas=3)["updateRevision"]
    before = identities(space)
    space.set_image("nginx:mainline")
    second = space.settled(updatedReadyReplicas=2, readyReplicas=3)["updateRevision"]
    assert space.revisions() == {first: 1, second: 2}
    space.json_patch(
        {"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "nginx:alpine"},
        {"op": "replace", "path": "/spec/updateStrategy/rollingUpdate/partition", "value": 0},
    )
    space.settled(updateRevision=first, currentRevision=first, updatedReadyReplicas=3, readyReplicas=3)
    assert space.revisions() == {second: 2, first: 3}
    assert identities(space) == before

    rolling(space, paused=True)
    space.set_image("nginx:mainline")
    space.settled(updatedReplicas=0, replicas=3)
    space.scale(4)
    space.settled(updatedReadyReplicas=1, readyReplicas=4)
    assert before < identities(space)
    assert images(space) == ["alpine", "alpine", "alpine", "mainline"]
    rolling(space, paused=False)
    space.settled(updatedReadyReplicas=4)
    assert before < identities(space)

    space.patch({"spec": {"updateStrategy": {"type": "OnDelete", "rollingUpdate": None}}})
    space.set_image("nginx:latest")
    space.settled(updatedReplicas=0, expectedUpdatedReplicas=4)
    space.kubectl("delete", "pod", min(space.pods))
    space.settled(updatedReadyReplicas=1, readyReplicas=4)
    assert images(space) == ["latest", "mainline", "mainline", "mainline"]


def test_users_choose_the_order(space: Workspace):
    """By weights first; then half of the pods are marked, and of each two that are updated one is marked."""
    space.apply(cloneset(4, strategy=IN_PLACE | BY_WEIGHT))
    space.settled(readyReplicas=4)
    order = sorted(space.pods)
    for name, value in zip(order, ("foo", "foo", "bar", "none"), strict=True):
        space.label(name, f"test-key={value}")
    start = space.now()
    space.set_image("nginx:mainline")
    updated = space.first_updates(start, space.settled(updatedReadyReplicas=4)["updateRevision"])
    assert (set(updated[:2]), updated[2:]) == (set(order[:2]), order[2:])

    for name in order[:2]:
        space.label(name, "spot=yes")
    rolling(space, **SCATTERED, partition=2, maxUnavailable="100%")
    space.set_image("nginx:latest")
    space.settled(updatedReadyReplicas=2, readyReplicas=4)
    (marked,) = (name for name in order[:2] if image(space.pod(name)) == "nginx:latest")
    assert images(space) == ["latest", "latest", "mainline", "mainline"], marked
