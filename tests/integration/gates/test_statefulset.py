"""StatefulSets: first ordinals, growing volumes, images pulled ahead."""

from flotilla_common.api.kinds.statefulset.types import STATEFUL_SET
from tests.support.stateful import IN_PLACE, claim_template, ordinals, statefulset
from tests.support.workspace import Workspace, identity, image
from tests.testkit.documents import Json

WATCHED = (STATEFUL_SET,)
GROWING: Json = {"volumeClaimUpdateStrategy": {"type": "OnPodRollingUpdate"}}


def sizes(space: Workspace) -> list[str]:
    """Return the capacity of the claims' volumes."""
    return [item["status"].get("capacity", {}).get("storage", "") for item in space.read("pvc")["items"]]


def grow(space: Workspace, size: str) -> None:
    space.patch({"spec": {"volumeClaimTemplates": [claim_template("data", size)]}}, "web")


def test_ordinals_begin_where_the_set_says(space: Workspace):
    space.apply(statefulset(2, parallel=False))
    space.settled("web", readyReplicas=2)
    space.patch({"spec": {"ordinals": {"start": 1}}}, "web")
    space.settled("web", replicas=2, readyReplicas=2)
    assert ordinals(space.pods) == [1, 2]
    assert "spec.ordinals.start" in space.refuses_patch("asts", "web", {"spec": {"ordinals": {"start": -1}}})


def test_volumes_grow_with_the_rollout(space: Workspace):
    """Each claim before its pod, as many at a time as may be unavailable; a partition keeps the others small.

    If only the templates are larger, claims grow and no pod is touched.
    """
    space.apply(statefulset(3, claims=["data"], strategy=IN_PLACE | {"partition": 2}, **GROWING))
    space.settled("web", readyReplicas=3)
    before = {identity(pod) for pod in space.pods.values()}
    grow(space, "2Gi")
    space.set_image("nginx:mainline", "web")
    status = space.settled("web", updatedReadyReplicas=1, readyReplicas=3)
    assert sizes(space) == ["1Gi", "1Gi", "2Gi"]
    assert status["volumeClaims"] == [
        {"volumeClaimName": "data", "compatibleReplicas": 1, "compatibleReadyReplicas": 1}
    ]
    assert image(space.pod("web-2")) == "nginx:mainline"
    space.patch({"spec": {"updateStrategy": {"rollingUpdate": {"partition": 0}}}}, "web")
    space.settled("web", updatedReadyReplicas=3, readyReplicas=3)
    assert sizes(space) == ["2Gi", "2Gi", "2Gi"]
    space.event("SuccessfulResize", "resize Claim data-web-2 Pod web-2 in StatefulSet web success")
    annotations = space.read("pvc", "data-web-2")["metadata"]["annotations"]
    assert annotations["apps.kruise.io/owned-by-asts"] == "web"

    mark = space.now()
    grow(space, "3Gi")
    space.until(lambda: sizes(space) == ["3Gi", "3Gi", "3Gi"])
    counts = {"volumeClaimName": "data", "compatibleReplicas": 3, "compatibleReadyReplicas": 3}
    space.settled("web", volumeClaims=[counts], readyReplicas=3)
    assert {identity(pod) for pod in space.pods.values()} == before
    assert {image(event.object) for event in space.history(mark)} <= {"nginx:mainline"}


def test_a_class_that_cannot_expand_is_refused_at_admission(space: Workspace):
    fixed = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": space.name},
        "provisioner": "example.com/fixed",
        "allowVolumeExpansion": False,
    }
    space.create(fixed)

    def template(size: str) -> Json:
        made = claim_template("data", size)
        return made | {"spec": made["spec"] | {"storageClassName": space.name}}

    space.apply(statefulset(0, volumeClaimTemplates=[template("1Gi")], **GROWING))
    message = space.refuses_patch("asts", "web", {"spec": {"volumeClaimTemplates": [template("2Gi")]}})
    assert "does not support volume expansion" in message


def test_images_are_pulled_ahead_of_an_update_in_rounds(space: Workspace):
    manifest = statefulset(5, strategy=IN_PLACE | {"partition": 4, "maxUnavailable": 2})
    manifest["metadata"]["annotations"] = {"apps.kruise.io/image-predownload-parallelism": "2"}
    space.apply(manifest)
    space.settled("web", readyReplicas=5)
    space.set_image("nginx:mainline", "web")
    status = space.settled("web", updatedReadyReplicas=1, readyReplicas=5)
    revision = status["updateRevision"]
    job = space.read("imagepulljob", f"{revision}-nginx")
    assert (job["spec"]["image"], job["spec"]["parallelism"]) == ("nginx:mainline", 2)
    space.event("CreatedImagePullJob", f"created ImagePullJob {revision}-nginx for image: nginx:mainline")
    labels = space.read("controllerrevision", revision)["metadata"]["labels"]
    assert labels["apps.kruise.io/pre-predownload-created"] == "true"
    space.patch({"spec": {"updateStrategy": {"rollingUpdate": {"partition": 0}}}}, "web")
    space.settled("web", updatedReadyReplicas=5, readyReplicas=5)
    space.until(lambda: not space.read("imagepulljob")["items"])
