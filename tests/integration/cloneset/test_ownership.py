"""Ownership of pods, claims and revisions: release, no adoption, and deletion of their owner."""

from tests.support.workspace import Workspace, cloneset, image, is_ready, revision_of
from tests.testkit.documents import Json

CLAIM = {
    "metadata": {"name": "data"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}
LEARNED = 45
"""Seconds: the garbage collector asks only twice a minute which kinds there are. So these come last."""
OURS = [("apps.kruise.io/v1beta1", "CloneSet", "sample", True)]


def owners(document: Json) -> list[tuple[str, str, str, bool]]:
    return [
        (owner["apiVersion"], owner["kind"], owner["name"], owner["controller"])
        for owner in document["metadata"].get("ownerReferences", [])
    ]


def test_old_revisions_are_forgotten_unless_a_pod_is_on_them(space: Workspace):
    strategy = {"podUpdatePolicy": "InPlaceIfPossible", "maxUnavailable": "100%"}
    space.apply(cloneset(2, strategy=strategy, revisionHistoryLimit=1))
    space.settled(readyReplicas=2)
    for tag in ("1", "2"):
        space.set_image(f"nginx:{tag}")
        space.settled(updatedReadyReplicas=2)
    space.until(lambda: sorted(space.revisions().values()) == [2, 3])
    space.patch({"spec": {"revisionHistoryLimit": 0, "updateStrategy": {"rollingUpdate": {"partition": 1}}}})
    space.set_image("nginx:3")
    space.settled(updatedReadyReplicas=1, readyReplicas=2)
    space.until(lambda: sorted(space.revisions().values()) == [3, 4])
    assert {revision_of(pod) for pod in space.pods.values()} == set(space.revisions())
    assert sorted(image(pod) for pod in space.pods.values()) == ["nginx:2", "nginx:3"]


def test_sets_that_go_and_pods_that_stay(space: Workspace):
    """Deleted in the foreground, a set takes pods, claims and revisions along, and creates nothing meanwhile.

    It may also leave its pods behind: another one of its name adopts none of them. A pod whose labels leave the
    selector is released and replaced, and stays when the set is deleted.
    """
    manifest = cloneset(2, volumeClaimTemplates=[CLAIM])
    space.apply(manifest)
    space.settled(replicas=2, readyReplicas=2)
    for kind, count in (("pods", 2), ("pvc", 2), ("controllerrevisions", 1)):
        assert [owners(item) for item in space.read(kind)["items"]] == [OURS] * count
    start = space.now()
    space.kubectl("delete", "clone", "sample", "--cascade=foreground", f"--timeout={LEARNED}s")
    space.until(lambda: space.clone() == {} and space.pods == {})
    assert not any(event.type == "ADDED" for event in space.history(start))
    assert space.read("controllerrevisions")["items"] == space.read("pvc")["items"] == []

    manifest = cloneset(2)
    space.apply(manifest)
    space.settled(replicas=2, readyReplicas=2)
    orphans = set(space.pods)
    space.kubectl("delete", "clone", "sample", "--cascade=orphan")
    space.until(lambda: space.clone() == {} and not any(map(owners, space.pods.values())), LEARNED)
    space.apply(manifest)
    space.settled(replicas=2, readyReplicas=2)
    assert len(space.pods) == 4
    assert all(owners(space.pod(name)) == [] and is_ready(space.pod(name)) for name in orphans)

    lost = min(set(space.pods) - orphans)
    uid = space.pod(lost)["metadata"]["uid"]
    space.label(lost, "app=debug")
    space.until(lambda: owners(space.pod(lost)) == [] and sum(map(is_ready, space.pods.values())) == 5)
    assert space.pod(lost)["metadata"]["uid"] == uid
    space.kubectl("delete", "clone", "sample")
    space.until(lambda: set(space.pods) == orphans | {lost}, LEARNED)
