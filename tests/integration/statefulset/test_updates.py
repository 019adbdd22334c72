"""Pods in order: created, updated, deleted by users, and removed (statefulset.md §8.1 to §8.4)."""

from tests.support.stateful import first_seen, ordinals, serving, statefulset
from tests.support.workspace import Workspace, available, image, terminating

OLD, NEW = "nginx:alpine", "nginx:mainline"


def test_an_ordered_set_does_one_thing_after_the_other(space: Workspace):
    """Pods come from the bottom, are updated from the top, and go from the top, one by one.

    With OnDelete users decide which are updated.
    """
    space.apply(statefulset(3, parallel=False))
    space.settled("web", replicas=3, readyReplicas=3, currentReplicas=3, updatedReplicas=3)
    assert first_seen(space.history(), "ADDED") == [0, 1, 2]
    for pods in space.moments():
        for name, pod in pods.items():
            before = [f"web-{number}" for number in range(int(name[4:]))]
            assert all(available(pods[one]) for one in before) or not available(pod)
    assert_identity(space)

    mark = space.now()
    space.set_image(NEW, "web")
    space.settled("web", updatedReadyReplicas=3, readyReplicas=3)
    assert first_seen(space.history(mark), "DELETED") == [2, 1, 0]
    assert all(serving(pods) >= 2 for pods in space.moments(mark))

    space.patch({"spec": {"updateStrategy": {"type": "OnDelete", "rollingUpdate": None}}}, "web")
    space.set_image(OLD, "web")
    space.settled("web", updatedReplicas=0)
    space.kubectl("delete", "pod", "web-1")
    space.settled("web", updatedReadyReplicas=1, readyReplicas=3)
    assert [image(space.pod(f"web-{number}")) for number in range(3)] == [NEW, OLD, NEW]

    mark = space.now()
    space.scale(1, "web")
    space.settled("web", replicas=1, readyReplicas=1)
    assert first_seen(space.history(mark), "DELETED") == [2, 1]
    assert all(sum(map(terminating, pods.values())) <= 1 for pods in space.moments(mark))
    assert ordinals(space.pods) == [0]


def assert_identity(space: Workspace) -> None:
    """Check names, labels and owner of the second pod."""
    pod = space.pod("web-1")
    labels = pod["metadata"]["labels"]
    assert labels["statefulset.kubernetes.io/pod-name"] == "web-1"
    assert labels["apps.kubernetes.io/pod-index"] == "1"
    assert labels["controller-revision-hash"] == space.status("web")["updateRevision"]
    assert (pod["spec"]["hostname"], pod["spec"]["subdomain"]) == ("web-1", "nginx")
    (owner,) = pod["metadata"]["ownerReferences"]
    assert (owner["apiVersion"], owner["kind"], owner["controller"]) == ("apps.kruise.io/v1beta1", "StatefulSet", True)
