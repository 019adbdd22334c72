"""Contents of a SidecarSet's revisions (sidecarset.md §7.4, Appendix A), and their injection (§6.3)."""

import copy

import msgspec
import pytest

from flotilla_common.api.kinds.sidecarset.revisions import (
    canonical_revision,
    hash_of_spec,
    hash_without_image,
    restored,
    revision_source,
)
from flotilla_common.api.kinds.sidecarset.types import SidecarSet
from flotilla_common.workload.hashing import revision_hash
from tests.testkit.documents import Json, decoded
from tests.unit.workload import openkruise

(SIDE,) = openkruise.documents("sidecarsets")
DATA = (
    '{"spec":{"$patch":"replace","containers":[{"image":"nginx:1.20","imagePullPolicy":"IfNotPresent","name":"proxy",'
    '"podInjectPolicy":"BeforeAppContainer","resources":{},"shareVolumePolicy":{"type":"enabled"},'
    '"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File","transferEnv":[{"envName":"COLOR",'
    '"sourceContainerName":"main"}],"upgradeStrategy":{"upgradeType":"ColdUpgrade"},"volumeMounts":[{"mountPath":"/log",'
    '"name":"log"}]}],"imagePullSecrets":null,"initContainers":[{"command":["sh","-c","true"],"image":"busybox:1.32",'
    '"imagePullPolicy":"IfNotPresent","name":"init","podInjectPolicy":"AfterAppContainer","resources":{},'
    '"shareVolumePolicy":{"type":"disabled"},"terminationMessagePath":"/dev/termination-log",'
    '"terminationMessagePolicy":"File","upgradeStrategy":{"upgradeType":"ColdUpgrade"}}],"patchPodMetadata":[{'
    '"annotations":{"mesh":"on"},"patchPolicy":"Overwrite"}],"volumes":[{"emptyDir":{},"name":"log"}]}}'
)
NOTHING = (
    b'{"spec":{"$patch":"replace","containers":null,"imagePullSecrets":null,"initContainers":null,'
    b'"patchPodMetadata":null,"volumes":null}}'
)


def source(document: Json) -> bytes:
    return revision_source(decoded(document, SidecarSet))


def side(image: str) -> Json:
    document = copy.deepcopy(SIDE)
    document["spec"]["containers"][0]["image"] = image
    return document


def revision(name: str) -> Json:
    return next(one for one in openkruise.revisions("SidecarSet") if one["metadata"]["name"] == name)


@pytest.mark.parametrize(("image", "name"), [("nginx:1.20", "7c8b74c6df"), ("nginx:1.21", "b8bc7f964")])
def test_vectors(image: str, name: str) -> None:
    data = canonical_revision(source(side(image)))
    assert data.decode() == DATA.replace("nginx:1.20", image)
    assert revision_hash(data, 0) == name


def test_stored_data_is_canonical_already() -> None:
    stored = msgspec.json.encode(revision("side-b8bc7f964")["data"])
    assert canonical_revision(stored) == canonical_revision(canonical_revision(stored))
    assert canonical_revision(stored) == canonical_revision(source(side("nginx:1.21")))


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({}, id="absent"),
        pytest.param({"containers": [], "volumes": None, "patchPodMetadata": []}, id="empty"),
        pytest.param({"selector": {"matchLabels": {"a": "b"}}, "customVersion": "1"}, id="others"),
    ],
)
def test_what_is_empty_is_null(spec: Json) -> None:
    assert canonical_revision(source({"metadata": {"name": "side"}, "spec": spec})) == NOTHING


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"volumes": [{"name": "other", "emptyDir": {}}]}, id="volumes"),
        pytest.param({"imagePullSecrets": [{"name": "s"}]}, id="pull secrets"),
        pytest.param({"initContainers": []}, id="init containers"),
        pytest.param({"patchPodMetadata": [{"annotations": {"mesh": "off"}}]}, id="annotations"),
    ],
)
def test_what_is_injected_belongs_to_it(change: Json) -> None:
    assert canonical_revision(source(SIDE | {"spec": SIDE["spec"] | change})) != canonical_revision(source(SIDE))


@pytest.mark.parametrize("data", [b"[]", b"nonsense", b'{"spec":{"containers":[{"name":1}]}}'])
def test_data_that_cannot_be_read(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"Expected|malformed|should be"):
        canonical_revision(data)


def test_a_restored_set_is_that_of_the_revision_and_nothing_else() -> None:
    document, held = copy.deepcopy(SIDE), revision("side-7c8b74c6df")
    document["metadata"]["annotations"]["team"] = "mesh"
    before = copy.deepcopy(document)
    result = restored(document, held)
    assert document == before
    assert result["spec"] == {key: value for key, value in held["data"]["spec"].items() if value and key != "$patch"}
    hashes = {key: held["metadata"]["annotations"][key] for key in held["metadata"]["annotations"] if "hash" in key}
    assert result["metadata"] == before["metadata"] | {"annotations": before["metadata"]["annotations"] | hashes}
    assert result["status"] == before["status"] | {"latestRevision": "side-7c8b74c6df"}
    assert result["metadata"]["annotations"]["kruise.io/sidecarset-hash"] == hash_of_spec(side("nginx:1.20")["spec"])


def test_hashes_that_the_revision_lacks_are_those_of_its_content() -> None:
    held = copy.deepcopy(revision("side-7c8b74c6df"))
    held["metadata"]["annotations"] = {"kruise.io/sidecarset-hash": "theirs"}
    assert restored({"metadata": {"name": "side"}}, held)["metadata"]["annotations"] == {
        "kruise.io/sidecarset-hash": "theirs",
        "kruise.io/sidecarset-hash-without-image": hash_without_image(SIDE["spec"]),
    }


def test_a_revision_that_cannot_be_read() -> None:
    with pytest.raises(ValueError, match="should be of type str"):
        restored(SIDE, {"metadata": {"name": "r"}, "data": {"spec": {"containers": [{"name": 1}]}}})
