"""Claims of pods: made, kept, reused and removed with them (cloneset.md §4.5, §4.6, §4.9)."""

from tests.support.workspace import Workspace, cloneset, instance, terminating
from tests.testkit.documents import Json

CLAIM = {
    "metadata": {"name": "data-vol"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "20Gi"}}},
}


def claims(space: Workspace) -> dict[str, str]:
    """Return the uids of the claims that are not terminating, by instance id."""
    found: list[Json] = space.read("pvc")["items"]
    return {instance(claim): claim["metadata"]["uid"] for claim in found if not terminating(claim)}


def ids(space: Workspace) -> set[str]:
    return {instance(pod) for pod in space.pods.values() if not terminating(pod)}


def delete_one(space: Workspace) -> str:
    """Delete a pod by hand, wait until all pods exist again, and return its name."""
    victim = min(space.pods)
    uid = space.pod(victim)["metadata"]["uid"]
    space.kubectl("delete", "pod", victim)

    def replaced() -> bool:
        uids = {pod["metadata"]["uid"] for pod in space.pods.values()}
        return uid not in uids and len(uids) == 2 == space.status().get("readyReplicas")

    space.until(replaced)
    return victim


def test_claims_of_pods_that_go(space: Workspace):
    """A pod that is deleted by hand comes back with its name and claim: v1alpha1 reuses claims by default.

    Without reuse, the default of v1beta1, pod and claim are both new. A pod that is scaled in takes its claim along.
    """
    space.apply(cloneset(2, version="v1alpha1", volumeClaimTemplates=[CLAIM]))
    space.settled(replicas=2, readyReplicas=2)
    before, kept = set(space.pods), claims(space)
    delete_one(space)
    assert set(space.pods) == before
    assert claims(space) == kept

    space.patch({"spec": {"scaleStrategy": {"enablePVCReuse": False}}})
    space.settled(readyReplicas=2)
    gone = delete_one(space)
    assert gone not in space.pods
    space.until(lambda: set(claims(space)) == ids(space))
    assert len(set(kept) & set(claims(space))) == 1

    space.scale(1)
    space.settled(replicas=1)
    space.until(lambda: set(claims(space)) == ids(space))
