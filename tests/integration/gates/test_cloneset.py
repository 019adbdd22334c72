"""CloneSets: short hashes, partitions that roll back, and claims that come with new pods."""

from collections import Counter

from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from tests.support.workspace import Workspace, cloneset, identity, image, is_ready, revision_of
from tests.testkit.documents import Json

WATCHED = (CLONE_SET,)
IN_PLACE: Json = {"podUpdatePolicy": "InPlaceIfPossible", "maxUnavailable": 2}


def images(space: Workspace) -> Json:
    return dict(Counter(image(pod).removeprefix("nginx:") for pod in space.pods.values()))


def test_labels_hold_only_the_hash_so_that_long_names_fit(space: Workspace):
    """`<name>-<hash>` is no label value beyond 63 characters."""
    name = "a-name-of-sixty-characters-" + 33 * "x"
    assert len(name) == 60
    space.apply(cloneset(1, name=name, strategy=IN_PLACE))
    status = space.settled(name, readyReplicas=1)
    short = status["updateRevision"].rpartition("-")[2]
    assert status["updateRevision"] == f"{name}-{short}"
    assert {revision_of(pod) for pod in space.pods.values()} == {short}
    assert all(pod.startswith(f"{name[:58]}") for pod in space.pods)
    space.set_image("nginx:mainline", name)
    status = space.settled(name, updatedReadyReplicas=1, updatedReplicas=1)
    assert {revision_of(pod) for pod in space.pods.values()} == {status["updateRevision"].rpartition("-")[2]}
    assert len(space.revisions(name)) == 2


def test_a_raised_partition_rolls_back(space: Workspace):
    """In place, to the revision from before the rollout, and as carefully as forwards."""
    space.apply(cloneset(5, strategy=IN_PLACE | {"partition": 1}))
    space.settled(readyReplicas=5)
    before = {identity(pod) for pod in space.pods.values()}
    space.set_image("nginx:mainline")
    space.settled(updatedReadyReplicas=4, readyReplicas=5)
    start = space.now()
    space.patch({"spec": {"updateStrategy": {"rollingUpdate": {"partition": 4}}}})
    status = space.settled(updatedReadyReplicas=1, readyReplicas=5)
    assert images(space) == {"alpine": 4, "mainline": 1}
    assert status["currentRevision"] != status["updateRevision"]
    assert {identity(pod) for pod in space.pods.values()} == before
    assert min(sum(map(is_ready, pods.values())) for pods in space.moments(start)) >= 3


def test_larger_claims_come_with_new_pods(space: Workspace):
    """RecreatePodWhenChangeVCTInCloneSetGate: in place would keep the old claim."""
    claim: Json = {
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    space.apply(cloneset(2, strategy=IN_PLACE, volumeClaimTemplates=[claim]))
    space.settled(readyReplicas=2)
    before = set(space.pods)
    claim["spec"]["resources"]["requests"]["storage"] = "2Gi"
    space.patch({"spec": {"volumeClaimTemplates": [claim]}})
    space.settled(readyReplicas=2, updatedReplicas=2)
    assert set(space.pods) == before
    space.set_image("nginx:mainline")
    space.settled(updatedReadyReplicas=2, replicas=2)
    assert not before & set(space.pods)

    def sizes() -> list[str]:
        return [item["spec"]["resources"]["requests"]["storage"] for item in space.read("pvc")["items"]]

    space.until(lambda: sizes() == ["2Gi", "2Gi"])
