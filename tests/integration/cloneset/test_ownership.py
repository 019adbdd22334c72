"""Ownership of pods, claims and revisions: deletion, release, no adoption, and pods that others end."""

from tests.support.workspace import Workspace, cloneset, image, is_ready, revision_of
from tests.testkit.documents import Json

CLAIM = {
    "metadata": {"name": "data"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}
LEARNED = 45
"""Seconds: the garbage collector asks only twice a minute which kinds there are. So these come last."""


def started(space: Workspace, replicas: int, **arguments: object) -> set[str]:
    space.apply(cloneset(replicas, **arguments))
    space.settled(replicas=replicas, readyReplicas=replicas)
    return set(space.pods)


def owners(document: Json) -> list[tuple[str, str, str, bool]]:
    return [
        (owner["apiVersion"], owner["kind"], owner["name"], owner["controller"])
        for owner in document["metadata"].get("ownerReferences", [])
    ]


def serving(space: Workspace) -> int:
    return sum(map(is_ready, space.pods.values()))


def test_an_evicted_pod_is_replaced_and_left_to_be_read(space: Workspace):
    before = started(space, 3)
    victim = min(before)
    space.evict(victim)
    space.until(lambda: len(space.pods) == 4 and serving(space) >= 3)
    space.settled(replicas=3, readyReplicas=3)
    assert space.pod(victim)["status"]["phase"] == "Failed"
    assert before < set(space.pods)


def test_a_pod_deleted_by_hand_is_replaced(space: Workspace):
    before = started(space, 3)
    victim = min(before)
    space.kubectl("delete", "pod", victim)
    space.until(lambda: victim not in space.pods and serving(space) == 3)
    assert len(before & set(space.pods)) == 2


def test_sets_with_the_same_selector_keep_to_their_own(space: Workspace):
    """A mistake that is easily made: it must not end in a fight."""
    labels: Json = {"app": "shared"}
    for name in ("one", "two"):
        manifest = cloneset(2, name=name)
        manifest["spec"]["selector"]["matchLabels"] = labels
        manifest["spec"]["template"]["metadata"]["labels"] = labels
        space.apply(manifest)
    for name in ("one", "two"):
        space.settled(name, replicas=2, readyReplicas=2)
    start = space.now()
    space.scale(1, "one")
    space.set_image("nginx:mainline", "two")
    space.settled("one", replicas=1, readyReplicas=1)
    space.settled("two", replicas=2, updatedReadyReplicas=2)
    images = {owners(pod)[0][2]: image(pod) for pod in space.pods.values()}
    assert images == {"one": "nginx:alpine", "two": "nginx:mainline"}
    gone = [event.object["metadata"]["name"][:3] for event in space.history(start) if event.type == "DELETED"]
    assert sorted(gone) == ["one", "two", "two"]
    assert list(space.revisions("one").values()) == [1]
    assert sorted(space.revisions("two").values()) == [1, 2]


def test_a_namespace_goes_with_everything_in_it(space: Workspace):
    """Deleted pods are not recreated without end."""
    started(space, 3, volumeClaimTemplates=[CLAIM])
    space.kubectl("delete", "namespace", space.name, f"--timeout={LEARNED}s")
    space.until(lambda: space.clone() == {} and space.pods == {})


def test_foreign_pods_with_matching_labels_are_left_alone(space: Workspace):
    space.kubectl("run", "stranger", "--image=nginx:alpine", "--labels=app=sample")
    space.until(lambda: is_ready(space.pod("stranger")) if space.pod("stranger") else False)
    started_names = started(space, 2)
    assert len(started_names) == 3
    space.scale(1)
    space.settled(replicas=1)
    space.until(lambda: len(space.pods) == 2)
    assert owners(space.pod("stranger")) == []


def test_old_revisions_are_forgotten_unless_a_pod_is_on_them(space: Workspace):
    strategy = {"podUpdatePolicy": "InPlaceIfPossible", "maxUnavailable": "100%"}
    started(space, 2, strategy=strategy, revisionHistoryLimit=1)
    for tag in ("1", "2", "3"):
        space.set_image(f"nginx:{tag}")
        space.settled(updatedReadyReplicas=2)
    space.until(lambda: sorted(space.revisions().values()) == [3, 4])
    space.patch({"spec": {"revisionHistoryLimit": 0, "updateStrategy": {"rollingUpdate": {"partition": 1}}}})
    space.set_image("nginx:4")
    space.settled(updatedReadyReplicas=1, readyReplicas=2)
    space.until(lambda: sorted(space.revisions().values()) == [4, 5])
    assert {revision_of(pod) for pod in space.pods.values()} == set(space.revisions())
    assert sorted(image(pod) for pod in space.pods.values()) == ["nginx:3", "nginx:4"]


def test_deletion_takes_pods_claims_and_revisions_along(space: Workspace):
    started(space, 3, volumeClaimTemplates=[CLAIM])
    ours = [("apps.kruise.io/v1beta1", "CloneSet", "sample", True)]
    for kind in ("pods", "pvc", "controllerrevisions"):
        assert [owners(item) for item in space.read(kind)["items"]] == [ours] * (1 if "rev" in kind else 3)
    space.kubectl("delete", "clone", "sample")
    space.until(lambda: space.clone() == {} and space.pods == {}, LEARNED)
    space.until(lambda: space.kubectl("get", "pvc,controllerrevisions", "-o", "name") == "")


def test_foreground_deletion_ends(space: Workspace):
    started(space, 2)
    start = space.now()
    space.kubectl("delete", "clone", "sample", "--cascade=foreground", f"--timeout={LEARNED}s")
    space.until(lambda: space.pods == {})
    assert not any(event.type == "ADDED" for event in space.history(start))


def test_orphans_stay_and_are_not_adopted(space: Workspace):
    orphans = started(space, 2)
    space.kubectl("delete", "clone", "sample", "--cascade=orphan")
    space.until(lambda: space.clone() == {} and all(owners(pod) == [] for pod in space.pods.values()), LEARNED)
    space.apply(cloneset(2))
    space.settled(replicas=2, readyReplicas=2)
    assert len(space.pods) == 4
    assert all(owners(space.pod(name)) == [] and is_ready(space.pod(name)) for name in orphans)


def test_a_pod_whose_labels_leave_the_selector_is_released_and_replaced(space: Workspace):
    before = started(space, 3)
    lost = min(before)
    uid = space.pod(lost)["metadata"]["uid"]
    space.label(lost, "app=debug")
    space.until(lambda: owners(space.pod(lost)) == [] and len(space.pods) == 4 and serving(space) == 4)
    assert space.pod(lost)["metadata"]["uid"] == uid
    space.settled(replicas=3, readyReplicas=3)
    space.kubectl("delete", "clone", "sample")
    space.until(lambda: set(space.pods) == {lost}, LEARNED)
