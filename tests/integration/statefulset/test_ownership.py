"""Ownership of pods and revisions: orphans, foreign pods, recreated sets (statefulset.md §4.3)."""

from flotilla_common.api.resources import POD
from tests.support.stateful import IN_PLACE, statefulset
from tests.support.workspace import Workspace, identity, revision_of
from tests.testkit.documents import typed


def owner(space: Workspace, pod: str) -> str:
    """Return the uid of the pod's controller; empty without one."""
    references = space.pod(pod)["metadata"].get("ownerReferences", [])
    return next((one["uid"] for one in references if one.get("controller")), "")


def test_a_set_that_is_made_again_takes_its_pods_in(space: Workspace):
    """`kubectl delete --cascade=orphan`, and apply: no pod is touched, and the history continues."""
    space.apply(statefulset(3, strategy=IN_PLACE))
    space.settled("web", readyReplicas=3)
    before, revisions = {identity(pod) for pod in space.pods.values()}, set(space.revisions("web"))
    space.kubectl("delete", "asts", "web", "--cascade=orphan")
    space.until(lambda: space.clone("web") == {} and not any(owner(space, name) for name in space.pods))
    made = space.apply(statefulset(3, strategy=IN_PLACE))
    space.settled("web", readyReplicas=3, updatedReplicas=3, replicas=3)
    assert {identity(pod) for pod in space.pods.values()} == before
    assert {owner(space, name) for name in space.pods} == {made["metadata"]["uid"]}
    assert set(space.revisions("web")) == revisions


def test_a_pod_whose_labels_are_taken_off_is_let_go_and_taken_in_again(space: Workspace):
    space.apply(statefulset(2))
    space.settled("web", readyReplicas=2)
    uid = space.pod("web-1")["metadata"]["uid"]
    space.label("web-1", "app-")
    space.until(lambda: owner(space, "web-1") == "")
    space.until(lambda: "FailedCreatePod" in str(space.status("web").get("conditions")))
    space.label("web-1", "app=web")
    space.until(lambda: owner(space, "web-1") != "")
    space.settled("web", replicas=2, readyReplicas=2)
    assert space.pod("web-1")["metadata"]["uid"] == uid


def test_a_foreign_pod_that_holds_a_name_is_waited_for(space: Workspace):
    pod = typed(POD, "web-1", spec={"containers": [{"name": "main", "image": "nginx:alpine"}]})
    space.create(pod)
    space.apply(statefulset(3))
    space.until(lambda: "already exists" in str(space.status("web").get("conditions")))
    assert "web-2" not in space.pods
    assert space.warnings_so_far("FailedCreate") == []
    space.kubectl("delete", "pod", "web-1", "--now")
    space.settled("web", replicas=3, readyReplicas=3)


def test_an_orphan_of_another_name_is_left_alone(space: Workspace):
    space.apply(statefulset(1))
    space.settled("web", readyReplicas=1)
    pod = typed(POD, "stray-0", labels={"app": "web"}, spec={"containers": [{"name": "main", "image": "nginx:alpine"}]})
    space.create(pod)
    space.set_image("nginx:mainline", "web")
    space.settled("web", updatedReadyReplicas=1, replicas=1)
    assert owner(space, "stray-0") == ""


def test_a_namesake_with_other_labels_does_not_share_pods(space: Workspace):
    """Two sets whose names begin alike: `web` and `web-1` have pods `web-1-0` and `web-1`."""
    space.apply(statefulset(2))
    space.apply(statefulset(1, name="web-1"))
    space.settled("web", replicas=2, readyReplicas=2)
    space.settled("web-1", replicas=1)
    assert set(space.pods) == {"web-0", "web-1", "web-1-0"}
    assert revision_of(space.pod("web-1-0")).startswith("web-1-")
