"""The hashes of a SidecarSet, against the vectors of sidecarset.md Appendix A, and their inputs (§5)."""

import copy
import json
from typing import Any

import pytest

from flotilla_common.api.kinds.sidecarset.revisions import hash_annotations, hash_of_spec, hash_without_image
from tests.testkit.documents import Json

SETTLED = (
    '"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File",'
    '"imagePullPolicy":"IfNotPresent","podInjectPolicy":"BeforeAppContainer",'
    '"upgradeStrategy":{"upgradeType":"ColdUpgrade"},'
)
LOG = (
    '{"containers":[{"name":"log","image":"busybox:1.36","resources":{},'
    + SETTLED
    + '"shareVolumePolicy":{"type":"disabled"}}]}'
)
PROXY = (
    '{"containers":[{"name":"proxy","image":"nginx:1.20","resources":{},"volumeMounts":[{"name":"log",'
    '"mountPath":"/log"}],'
    + SETTLED
    + '"shareVolumePolicy":{"type":"enabled"},"transferEnv":[{"sourceContainerName":"main","envName":"COLOR"}]}]}'
)
RICH = LOG.replace(
    '"resources":{}', '"env":[{"name":"A","value":"x<y"}],"resources":{"limits":{"cpu":"0.5","memory":"64Mi"}}'
)
WITHOUT_LOG = "4424wfff8b57d47vb7684zc4bb5478vxwwdcz7dd2xdwbf4d4446424d4w29cwd5"
WITHOUT_PROXY = "6f8697xxfd294z26bxxb9bvwx6x24w6448d8x4wzzczff6xzbbv48w8fz82bc44d"
RICH_HASH = "d4d9dccf256c2x4d822cwzc467dx4cc4f44z82cd87d9c4444c72zbwdvx94bc44"


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param(LOG, "bzv6592862b6w846cw4xx5w9647xz74dxc6d24fw7b6bcx554fxd2z4z4vbd8ff4", id="log"),
        pytest.param(RICH, RICH_HASH, id="env and resources"),
        pytest.param(PROXY, "w7f27v44w5f9v9dx6x85c7b7794582zf7wv78xzdxb49xfcf5bwf4xwww44wv44v", id="proxy"),
        pytest.param(
            PROXY.replace("1.20", "1.21"), "985wbw72zbc87vcv57z4d575cbd47fw22b4bw7974z7wfc6c2vfwxb95d8f6xv2b", id="1.21"
        ),
    ],
)
def test_vectors(spec: str, expected: str) -> None:
    assert hash_of_spec(json.loads(spec)) == expected


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param(LOG, WITHOUT_LOG, id="log"),
        pytest.param(LOG.replace("1.36", "1"), WITHOUT_LOG, id="another image"),
        pytest.param(PROXY, WITHOUT_PROXY, id="proxy"),
        pytest.param(PROXY.replace("1.20", "1.21"), WITHOUT_PROXY, id="1.21"),
    ],
)
def test_vectors_without_image(spec: str, expected: str) -> None:
    assert hash_without_image(json.loads(spec)) == expected


def test_the_order_of_members_empty_ones_and_unknown_ones_do_not_matter() -> None:
    (container,) = json.loads(RICH)["containers"]
    noisy = dict(reversed(container.items())) | {"args": [], "stdin": False, "workingDir": "", "future": 1, "tty": None}
    assert hash_of_spec({"containers": [noisy]}) == RICH_HASH


NATIVE = {"name": "net", "image": "i:1", "restartPolicy": "Always"}
PLAIN = {"name": "setup", "image": "i:1"}


@pytest.mark.parametrize(
    ("change", "changed", "changed_without_image"),
    [
        pytest.param({"volumes": [{"name": "v"}]}, False, False, id="volumes"),
        pytest.param({"imagePullSecrets": [{"name": "s"}]}, False, False, id="pull secrets"),
        pytest.param({"patchPodMetadata": [{"annotations": {"a": "b"}}]}, False, False, id="annotations"),
        pytest.param({"selector": {"matchLabels": {"a": "b"}}, "updateStrategy": {}}, False, False, id="strategy"),
        pytest.param({"initContainers": [PLAIN]}, False, False, id="an init container"),
        pytest.param({"initContainers": [NATIVE]}, True, True, id="a native sidecar"),
        pytest.param({"containers": []}, True, True, id="no containers"),
    ],
)
def test_what_they_depend_on(change: Json, changed: bool, changed_without_image: bool) -> None:
    before = json.loads(LOG)
    after = before | change
    assert (hash_of_spec(after) != hash_of_spec(before)) == changed
    assert (hash_without_image(after) != hash_without_image(before)) == changed_without_image


@pytest.mark.parametrize("member", ["image", "env"])
def test_beside_a_native_sidecar_all_init_containers_count(member: str) -> None:
    before = json.loads(LOG) | {"initContainers": [NATIVE, PLAIN]}
    after = copy.deepcopy(before)
    after["initContainers"][1][member] = "i:2" if member == "image" else [{"name": "A", "value": "1"}]
    assert hash_of_spec(after) != hash_of_spec(before)
    assert (hash_without_image(after) != hash_without_image(before)) == (member == "env")


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("podInjectPolicy", "AfterAppContainer"),
        ("upgradeStrategy", {"upgradeType": "HotUpgrade"}),
        ("upgradeStrategy", {"upgradeType": "ColdUpgrade", "hotUpgradeEmptyImage": "e"}),
        ("shareVolumePolicy", {"type": "enabled"}),
        ("shareVolumeDevicePolicy", {"type": "disabled"}),
        ("transferEnv", [{"envNames": ["A"]}]),
        ("transferEnv", [{"sourceContainerNameFrom": {"fieldRef": {"fieldPath": "metadata.labels['a']"}}}]),
        ("resourcesPolicy", {"targetContainersMode": "sum", "resourcesExpr": {"limits": {"cpu": "cpu"}}}),
        ("resourcesPolicy", {"targetContainersMode": "max", "resourcesExpr": {"requests": {"memory": "memory"}}}),
    ],
)
def test_every_member_of_a_sidecar_counts(member: str, value: Any) -> None:
    before = json.loads(LOG)
    after = {"containers": [before["containers"][0] | {member: value}]}
    assert hash_without_image(after) != hash_without_image(before)


@pytest.mark.parametrize(
    ("container", "problem"),
    [
        pytest.param({"name": 5}, r"spec.containers\[0\]: name: 5 should be of type str", id="a wrong type"),
        pytest.param("log", r"spec.containers\[0\]: 'log' should be of type dict", id="no object"),
    ],
)
def test_what_cannot_be_read(container: Any, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        hash_annotations({"containers": [container]})
