"""Claims of pods: made, kept, reused and removed with them (cloneset.md §4.5, §4.6, §4.9)."""

from tests.support.workspace import Workspace, cloneset, identity, image, instance, terminating
from tests.testkit.documents import Json

CLAIM = {
    "metadata": {"name": "data-vol"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "20Gi"}}},
}
SPECIFIED = "apps.kruise.io/specified-delete=true"


def manifest(replicas: int, **arguments: object) -> Json:
    mounts = [{"name": "data-vol", "mountPath": "/usr/share/nginx/html"}]
    containers = [{"name": "nginx", "image": "nginx:alpine", "volumeMounts": mounts}]
    return cloneset(replicas, template={"spec": {"containers": containers}}, volumeClaimTemplates=[CLAIM], **arguments)


def started(space: Workspace, replicas: int, **arguments: object) -> set[str]:
    space.apply(manifest(replicas, **arguments))
    space.settled(replicas=replicas, readyReplicas=replicas)
    return set(space.pods)


def claims(space: Workspace) -> dict[str, Json]:
    """Return the claims that are not terminating, by instance id."""
    return {instance(claim): claim for claim in space.read("pvc")["items"] if not terminating(claim)}


def ids(space: Workspace) -> set[str]:
    return {instance(pod) for pod in space.pods.values() if not terminating(pod)}


def replaced(space: Workspace, uid: str, replicas: int) -> bool:
    """Report whether all pods exist again, without the one of this uid."""
    uids = {pod["metadata"]["uid"] for pod in space.pods.values()}
    return uid not in uids and len(uids) == replicas == space.status().get("readyReplicas")


def test_a_pod_deleted_by_hand_comes_back_with_its_name_and_claim(space: Workspace):
    """v1alpha1 reuses claims by default."""
    before = started(space, 3, version="v1alpha1")
    kept = {identifier: claim["metadata"]["uid"] for identifier, claim in claims(space).items()}
    victim = min(before)
    uid = space.pod(victim)["metadata"]["uid"]
    space.kubectl("delete", "pod", victim)
    space.until(lambda: replaced(space, uid, 3))
    assert set(space.pods) == before
    assert {identifier: claim["metadata"]["uid"] for identifier, claim in claims(space).items()} == kept


def test_without_reuse_pod_and_claim_come_new(space: Workspace):
    """The default of v1beta1."""
    before = started(space, 2)
    victim = min(before)
    uid, identifier = space.pod(victim)["metadata"]["uid"], instance(space.pod(victim))
    space.kubectl("delete", "pod", victim)
    space.until(lambda: replaced(space, uid, 2))
    assert victim not in space.pods
    space.until(lambda: set(claims(space)) == ids(space))
    assert identifier not in claims(space)


def test_scale_in_removes_the_claim(space: Workspace):
    started(space, 3, version="v1alpha1")
    space.scale(1)
    space.settled(replicas=1)
    space.until(lambda: set(claims(space)) == ids(space))
    assert len(claims(space)) == 1


def test_specified_deletion_makes_pod_and_claim_new(space: Workspace):
    before = started(space, 2, scale_strategy={"enablePVCReuse": True})
    victim = min(before)
    uid, identifier = space.pod(victim)["metadata"]["uid"], instance(space.pod(victim))
    space.label(victim, SPECIFIED)
    space.until(lambda: replaced(space, uid, 2))
    space.until(lambda: set(claims(space)) == ids(space))
    assert identifier not in claims(space)


def test_recreate_update_makes_claims_new(space: Workspace):
    started(space, 2, version="v1alpha1")
    before = set(claims(space))
    space.set_image("nginx:mainline")
    space.settled(updatedReadyReplicas=2, replicas=2)
    space.until(lambda: set(claims(space)) == ids(space))
    assert not before & set(claims(space))


def test_in_place_update_keeps_pods_and_claims(space: Workspace):
    started(space, 2, version="v1alpha1", strategy={"type": "InPlaceIfPossible"})
    pods = {identity(pod) for pod in space.pods.values()}
    kept = {claim["metadata"]["uid"] for claim in claims(space).values()}
    space.set_image("nginx:mainline")
    space.settled(updatedReadyReplicas=2)
    assert {identity(pod) for pod in space.pods.values()} == pods
    assert {claim["metadata"]["uid"] for claim in claims(space).values()} == kept


def test_other_claim_templates_are_for_new_pods_only(space: Workspace):
    started(space, 1)
    revision = space.status()["updateRevision"]
    larger = {**CLAIM, "spec": {**CLAIM["spec"], "resources": {"requests": {"storage": "30Gi"}}}}
    space.patch({"spec": {"volumeClaimTemplates": [larger]}})
    status = space.settled(updatedReadyReplicas=1)
    assert status["updateRevision"] == revision
    assert list(space.revisions()) == [revision]
    space.scale(2)
    space.settled(readyReplicas=2)
    sizes = sorted(claim["spec"]["resources"]["requests"]["storage"] for claim in claims(space).values())
    assert sizes == ["20Gi", "30Gi"]


def test_claims_carry_the_labels_of_the_selector_and_of_their_template(space: Workspace):
    labelled = {**CLAIM, "metadata": {"name": "data-vol", "labels": {"tier": "gold"}}}
    spec = manifest(1)
    spec["spec"]["volumeClaimTemplates"] = [labelled]
    space.apply(spec)
    space.settled(readyReplicas=1)
    (claim,) = claims(space).values()
    identifier = instance(claim)
    expected = {"tier": "gold", "app": "sample", "apps.kruise.io/cloneset-instance-id": identifier}
    assert claim["metadata"]["labels"] == expected
    assert [image(pod) for pod in space.pods.values()] == ["nginx:alpine"]
