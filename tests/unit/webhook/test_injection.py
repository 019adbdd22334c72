"""Injection of SidecarSets, as a function of pod and SidecarSets (sidecarset.md §6.5 to §6.13, §11.1)."""

import copy
import json
from typing import Any

import pytest

from flotilla_webhook.pods.sidecar_injection import SidecarSource, inject
from tests.testkit.documents import Json

NOW, LATER = "2026-01-01T00:00:00Z", "2026-01-01T00:00:09Z"
INJECTED = {"name": "IS_INJECTED", "value": "true"}
DEFAULTS = {
    "image": "busybox:1.36",
    "podInjectPolicy": "BeforeAppContainer",
    "shareVolumePolicy": {"type": "disabled"},
    "upgradeStrategy": {"upgradeType": "ColdUpgrade"},
}
BEFORE, AFTER = "BeforeAppContainer", "AfterAppContainer"


def sidecar(name: str, policy: str = BEFORE, **more: Any) -> Json:
    return {"name": name, **DEFAULTS, "podInjectPolicy": policy} | more


def hot(name: str, **more: Any) -> Json:
    upgrade = {"upgradeType": "HotUpgrade", "hotUpgradeEmptyImage": "e"}
    return sidecar(name, image="v1", upgradeStrategy=upgrade, **more)


def source(*containers: Json, name: str = "side", revision: str = "side-1", **spec: Any) -> SidecarSource:
    annotations = {"kruise.io/sidecarset-hash": "h", "kruise.io/sidecarset-hash-without-image": "w"}
    metadata = {"name": name, "annotations": annotations}
    return SidecarSource({"metadata": metadata, "spec": {"containers": list(containers), **spec}}, revision)


def pod(*containers: Json, annotations: Json | None = None, **spec: Any) -> Json:
    metadata = {"name": "p", "labels": {"main": "app"}} | ({"annotations": annotations} if annotations else {})
    return {"metadata": metadata, "spec": {"containers": list(containers) or [{"name": "main"}], **spec}}


def injected(document: Json, *sources: SidecarSource, **options: Any) -> Json:
    """Return the pod with the SidecarSets injected.

    Checks that the SidecarSets are unchanged, and that a second injection changes nothing.
    """
    result, before = copy.deepcopy(document), copy.deepcopy(sources)
    inject(result, sources, NOW, **options)
    assert sources == before
    again = copy.deepcopy(result)
    inject(again, sources, LATER, **options)
    assert again == result
    return result


def names(document: Json, key: str = "containers") -> list[str]:
    return [one["name"] for one in document["spec"].get(key, [])]


def container(document: Json, name: str) -> Json:
    return next(one for one in document["spec"]["containers"] if one["name"] == name)


def annotation(document: Json, key: str) -> Any:
    return json.loads(document["metadata"]["annotations"][f"kruise.io/{key}"])


# Where containers go


def test_row_1_before_and_after() -> None:
    assert names(injected(pod(), source(sidecar("a"), sidecar("b", AFTER)))) == ["a", "main", "b"]


@pytest.mark.parametrize(("sorted_by_name", "expected"), [(False, ["z", "c", "main"]), (True, ["c", "z", "main"])])
def test_row_2_order(sorted_by_name: bool, expected: list[str]) -> None:
    found = injected(pod(), source(sidecar("z"), sidecar("c")), sorted_by_name=sorted_by_name)
    assert names(found) == expected


def test_row_3_init_containers_are_sorted() -> None:
    init = [sidecar("b", AFTER), sidecar("c"), sidecar("a")]
    found = injected(pod(initContainers=[{"name": "i1"}]), source(initContainers=init))
    assert names(found, "initContainers") == ["a", "c", "i1", "b"]
    assert names(found) == ["main"]


def test_row_4_a_container_of_the_same_name_is_replaced() -> None:
    found = injected(pod({"name": "x"}, {"name": "main", "image": "old"}), source(sidecar("main", AFTER)))
    assert names(found) == ["x", "main"]
    assert container(found, "main")["image"] == "busybox:1.36"


def test_several_sets_in_their_order() -> None:
    found = injected(pod(), source(sidecar("b"), name="s1"), source(sidecar("a"), name="s2"))
    assert names(found) == ["b", "a", "main"]


def test_what_pods_do_not_know_stays_behind() -> None:
    extended = sidecar("a", transferEnv=[], shareVolumeDevicePolicy={"type": "enabled"}, unknown={"x": 1})
    found = container(injected(pod(), source(extended)), "a")
    assert found == {"name": "a", "image": "busybox:1.36", "unknown": {"x": 1}, "env": [INJECTED]}


# Hot upgrade


def test_row_5_twins() -> None:
    found = injected(pod(), source(hot("mesh"), name="m"))
    assert names(found) == ["mesh-1", "mesh-2", "main"]
    assert [container(found, f"mesh-{number}")["image"] for number in (1, 2)] == ["v1", "e"]
    last = [entry["valueFrom"]["fieldRef"]["fieldPath"] for entry in container(found, "mesh-2")["env"][-2:]]
    assert last == [f"metadata.annotations['{key}.sidecarset.kruise.io/mesh-2']" for key in ("version", "versionalt")]
    annotations = found["metadata"]["annotations"]
    versions = {key.partition(".")[0] + key[-1]: value for key, value in annotations.items() if "/mesh-" in key}
    assert versions == {"version1": "1", "versionalt1": "0", "version2": "0", "versionalt2": "1"}
    assert annotation(found, "sidecarset-working-hotupgrade-container") == {"mesh": "mesh-1"}
    assert annotation(found, "sidecarset-hash")["m"]["sidecarList"] == ["mesh"]


def test_only_native_init_containers_have_twins() -> None:
    init = [hot("plain"), hot("native", restartPolicy="Always")]
    found = injected(pod(), source(initContainers=init))
    assert names(found, "initContainers") == ["native-1", "native-2", "plain"]
    assert annotation(found, "sidecarset-hash")["side"]["sidecarList"] == ["native"]


# Env


def test_row_6_env() -> None:
    own = sidecar(
        "s", env=[{"name": "A", "value": "1"}], transferEnv=[{"sourceContainerName": "main", "envNames": ["B", "A"]}]
    )
    main = {"name": "main", "env": [{"name": "A", "value": "2"}, {"name": "B", "value": "3"}]}
    found = container(injected(pod(main), source(own)), "s")
    assert found["env"] == [{"name": "A", "value": "1"}, INJECTED, {"name": "B", "value": "3"}]


SOURCE = {"name": "E", "valueFrom": {"secretKeyRef": {"name": "x", "key": "y"}}}


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        pytest.param({"sourceContainerName": "app", "envName": "E"}, [SOURCE], id="a value from elsewhere"),
        pytest.param({"sourceContainerName": "main", "envName": "E"}, [], id="another container"),
        pytest.param({"sourceContainerName": "app", "envName": "none"}, [], id="not there"),
        pytest.param(
            {"sourceContainerNameFrom": {"fieldRef": {"fieldPath": "metadata.labels['main']"}}, "envName": "E"},
            [SOURCE],
            id="named by a label",
        ),
        pytest.param(
            {
                "sourceContainerName": "app",
                "sourceContainerNameFrom": {"fieldRef": {"fieldPath": "metadata.name"}},
                "envName": "E",
            },
            [],
            id="a path that is not supported",
        ),
        pytest.param(
            {"sourceContainerName": "app", "sourceContainerNameFrom": {}, "envName": "E"}, [SOURCE], id="empty"
        ),
    ],
)
def test_transferred_env(entry: Json, expected: list[Json]) -> None:
    given = pod({"name": "main"}, {"name": "app", "env": [SOURCE]})
    found = container(injected(given, source(sidecar("s", transferEnv=[entry]))), "s")
    assert found["env"] == [INJECTED, *expected]


# Volumes

SHARED = {"type": "enabled"}


def test_row_7_shared_mounts_bring_the_env_of_their_paths() -> None:
    env = {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}
    mount = {"name": "data", "mountPath": "/data", "subPathExpr": "x/$(POD)"}
    found = injected(
        pod({"name": "main", "env": [env], "volumeMounts": [mount]}), source(sidecar("s", shareVolumePolicy=SHARED))
    )
    assert container(found, "s")["volumeMounts"] == [mount]
    assert container(found, "s")["env"] == [INJECTED, env]


def test_row_8_its_own_mount_stays() -> None:
    own, theirs = {"name": "mine", "mountPath": "/log"}, {"name": "log", "mountPath": "/log"}
    given = pod({"name": "main", "volumeMounts": [theirs]}, {"name": "more", "volumeMounts": [theirs]})
    found = injected(given, source(sidecar("s", shareVolumePolicy=SHARED, volumeMounts=[own])))
    assert container(found, "s")["volumeMounts"] == [own]


def test_row_9_only_volumes_that_are_used() -> None:
    volumes = [{"name": "v1", "emptyDir": {}}, {"name": "v2", "emptyDir": {}}]
    mounting = sidecar("s", volumeMounts=[{"name": "v1", "mountPath": "/a"}, {"name": "gone", "mountPath": "/b"}])
    assert injected(pod(), source(mounting, volumes=volumes))["spec"]["volumes"] == [volumes[0]]


def test_row_10_the_pods_volume_stays() -> None:
    own = {"name": "v1", "hostPath": {"path": "/x"}}
    mounting = sidecar("s", volumeMounts=[{"name": "v1", "mountPath": "/a"}])
    found = injected(pod(volumes=[own]), source(mounting, volumes=[{"name": "v1", "emptyDir": {}}]))
    assert found["spec"]["volumes"] == [own]


def test_devices_are_shared_too() -> None:
    device = {"name": "d", "devicePath": "/dev/x"}
    given = pod({"name": "main", "volumeDevices": [device, {"name": "o", "devicePath": "/dev/own"}]})
    own = {"name": "own", "devicePath": "/dev/own"}
    sharing = sidecar("s", shareVolumeDevicePolicy=SHARED, volumeDevices=[own])
    assert container(injected(given, source(sharing)), "s")["volumeDevices"] == [own, device]


def test_injected_containers_share_nothing() -> None:
    other = {"name": "o", "env": [INJECTED], "volumeMounts": [{"name": "o", "mountPath": "/o"}]}
    found = injected(pod({"name": "main"}, other), source(sidecar("s", shareVolumePolicy=SHARED)))
    assert "volumeMounts" not in container(found, "s")


# Annotations


@pytest.mark.parametrize(
    ("policy", "held", "patch", "expected"),
    [
        pytest.param("MergePatchJson", '{"a": 1}', '{"b": 2}', '{"a":1,"b":2}', id="row 19"),
        pytest.param("MergePatchJson", None, '{"b": 2}', '{"b": 2}', id="row 20"),
        pytest.param("Retain", "old", "new", "old", id="row 21"),
        pytest.param("", "old", "new", "old", id="no policy is Retain"),
        pytest.param("Retain", None, "new", "new", id="Retain adds"),
        pytest.param("Overwrite", "old", "new", "new", id="Overwrite"),
        pytest.param(
            "MergePatchJson", '{"a":1,"b":{"c":1}}', '{"a":null,"b":{"d":2}}', '{"b":{"c":1,"d":2}}', id="RFC 7386"
        ),
        pytest.param("MergePatchJson", "[1]", '{"a":1}', '{"a":1}', id="no object is replaced"),
    ],
)
def test_pod_metadata(policy: str, held: str | None, patch: str, expected: str) -> None:
    entries = [{"annotations": {"k": patch}, "patchPolicy": policy}]
    given = pod(annotations={"k": held} if held is not None else None)
    for containers in ((), (sidecar("s"),)):  # also if no container is injected
        found = injected(given, source(*containers, patchPodMetadata=entries))
        assert found["metadata"]["annotations"]["k"] == expected
        assert ("kruise.io/sidecarset-hash" in found["metadata"]["annotations"]) == bool(containers)


def test_json_that_cannot_be_merged() -> None:
    entries = [{"annotations": {"k": "{}"}, "patchPolicy": "MergePatchJson"}]
    with pytest.raises(ValueError, match="annotation k cannot be merged"):
        inject(pod(annotations={"k": "no json"}), [source(patchPodMetadata=entries)], NOW)


def test_what_is_remembered() -> None:
    plain, native = sidecar("init"), sidecar("native", restartPolicy="Always")
    found = injected(pod(), source(sidecar("b"), sidecar("a"), initContainers=[plain, native]))
    record = {"updateTimestamp": NOW, "hash": "h", "sidecarSetName": "side", "sidecarList": ["a", "b", "native"]}
    assert annotation(found, "sidecarset-hash") == {"side": record | {"controllerRevision": "side-1"}}
    assert annotation(found, "sidecarset-hash-without-image") == {"side": record | {"hash": "w"}}
    assert found["metadata"]["annotations"]["kruise.io/sidecarset-injected-list"] == "side"


def test_records_of_others_stay() -> None:
    held = {
        "kruise.io/sidecarset-hash": '{"old":"h0"}',
        "kruise.io/sidecarset-injected-list": "old",
        "kruise.io/sidecarset-working-hotupgrade-container": '{"x":"x-2"}',
    }
    found = injected(pod(annotations=held), source(hot("m"), revision=""))
    assert annotation(found, "sidecarset-hash")["old"]["hash"] == "h0"
    assert "controllerRevision" not in annotation(found, "sidecarset-hash")["side"]
    assert found["metadata"]["annotations"]["kruise.io/sidecarset-injected-list"] == "old,side"
    assert annotation(found, "sidecarset-working-hotupgrade-container") == {"m": "m-1", "x": "x-2"}


@pytest.mark.parametrize(
    "key", ["sidecarset-hash", "sidecarset-hash-without-image", "sidecarset-working-hotupgrade-container"]
)
def test_records_that_cannot_be_read(key: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        inject(pod(annotations={f"kruise.io/{key}": "{"}), [source(hot("m"))], NOW)


def test_pull_secrets() -> None:
    secrets = [{"name": "a"}, {"name": "b"}]
    found = injected(
        pod(imagePullSecrets=[{"name": "b"}, {"name": "b"}]), source(sidecar("s"), imagePullSecrets=secrets)
    )
    assert found["spec"]["imagePullSecrets"] == [{"name": "b"}, {"name": "a"}]
