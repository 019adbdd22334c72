"""Ownership of pods and revisions: recreated sets (statefulset.md §4.3)."""

from tests.support.stateful import IN_PLACE, statefulset
from tests.support.workspace import Workspace, identity


def owner(space: Workspace, pod: str) -> str:
    """Return the uid of the pod's controller; empty without one."""
    references = space.pod(pod)["metadata"].get("ownerReferences", [])
    return next((one["uid"] for one in references if one.get("controller")), "")


def test_a_set_that_is_made_again_takes_its_pods_in(space: Workspace):
    """`kubectl delete --cascade=orphan`, and apply: no pod is touched, and the history continues."""
    space.apply(statefulset(2, strategy=IN_PLACE))
    space.settled("web", readyReplicas=2)
    before, revisions = {identity(pod) for pod in space.pods.values()}, set(space.revisions("web"))
    space.kubectl("delete", "asts", "web", "--cascade=orphan")
    space.until(lambda: space.clone("web") == {} and not any(owner(space, name) for name in space.pods))
    made = space.apply(statefulset(2, strategy=IN_PLACE))
    space.settled("web", readyReplicas=2, updatedReplicas=2, replicas=2)
    assert {identity(pod) for pod in space.pods.values()} == before
    assert {owner(space, name) for name in space.pods} == {made["metadata"]["uid"]}
    assert set(space.revisions("web")) == revisions
