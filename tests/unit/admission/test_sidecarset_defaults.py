"""SidecarSet defaults in both versions (sidecarset.md §3), and OpenKruise's stored form of the same manifest."""

import json
from typing import Any

import pytest

from flotilla_common.api.kinds.sidecarset.admission import default_sidecarset
from flotilla_common.api.versions import V1ALPHA1, V1BETA1
from tests.testkit.documents import Json
from tests.unit.workload import openkruise

PROBE = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
LOG = {"name": "log", "image": "busybox:1.36"}


def defaulted(version: str = V1BETA1, **spec: Any) -> Json:
    document = {"apiVersion": version, "kind": "SidecarSet", "metadata": {"name": "side"}, "spec": spec}
    return default_sidecarset(document)["spec"]


def sidecar(**fields: Any) -> Json:
    (found,) = defaulted(containers=[LOG | fields])["containers"]
    return found


@pytest.mark.parametrize("version", [V1ALPHA1, V1BETA1])
def test_everything_that_is_absent(version: str) -> None:
    both = {
        "resources": {},
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "imagePullPolicy": "IfNotPresent",
        "upgradeStrategy": {"upgradeType": "ColdUpgrade"},
        "shareVolumePolicy": {"type": "disabled"},
    }
    assert defaulted(version, containers=[dict(LOG)], initContainers=[dict(LOG)], patchPodMetadata=[{}]) == {
        "containers": [LOG | both | {"podInjectPolicy": "BeforeAppContainer"}],
        "initContainers": [LOG | both | {"podInjectPolicy": "AfterAppContainer"}],
        "updateStrategy": {"type": "RollingUpdate", "partition": 0, "maxUnavailable": 1},
        "revisionHistoryLimit": 10,
        "patchPodMetadata": [{"patchPolicy": "Retain"}],
    }


def test_what_is_given_stays() -> None:
    given = {
        "containers": [
            sidecar(
                podInjectPolicy="AfterAppContainer",
                imagePullPolicy="Never",
                upgradeStrategy={"upgradeType": "HotUpgrade", "hotUpgradeEmptyImage": "e"},
                shareVolumePolicy={"type": "enabled"},
            )
        ],
        "updateStrategy": {"type": "NotUpdate", "partition": "0%", "maxUnavailable": 0},
        "revisionHistoryLimit": 0,
        "injectionStrategy": {"paused": True, "revision": {"customVersion": "1", "policy": "Partial"}},
        "patchPodMetadata": [{"annotations": {"a": "b"}, "patchPolicy": "Overwrite"}],
        "future": {"a": 1},
    }
    assert defaulted(**given) == given


@pytest.mark.parametrize(
    ("image", "policy"),
    [("a:latest", "Always"), ("a", "Always"), ("a:1", "IfNotPresent"), ("a@sha256:0", "IfNotPresent")],
)
def test_images_are_pulled_by_the_usual_rule(image: str, policy: str) -> None:
    assert sidecar(image=image)["imagePullPolicy"] == policy


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param(
            {"ports": [{"containerPort": 1}]}, {"ports": [{"containerPort": 1, "protocol": "TCP"}]}, id="port"
        ),
        pytest.param(
            {"env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]},
            {"env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name", "apiVersion": "v1"}}}]},
            id="env",
        ),
        pytest.param(
            {"transferEnv": [{"sourceContainerNameFrom": {"fieldRef": {"fieldPath": "metadata.labels['a']"}}}]},
            {
                "transferEnv": [
                    {"sourceContainerNameFrom": {"fieldRef": {"fieldPath": "metadata.labels['a']", "apiVersion": "v1"}}}
                ]
            },
            id="name of a source",
        ),
        pytest.param(
            {"transferEnv": [{"sourceContainerNameFrom": {}}, {"sourceContainerNameFrom": None}]},
            {"transferEnv": [{"sourceContainerNameFrom": {}}, {"sourceContainerNameFrom": None}]},
            id="a source without a field",
        ),
        pytest.param(
            {"livenessProbe": {"httpGet": {"port": 1}}},
            {"livenessProbe": PROBE | {"httpGet": {"port": 1, "path": "/", "scheme": "HTTP"}}},
            id="liveness",
        ),
        pytest.param(
            {"readinessProbe": {"exec": {"command": ["a"]}, "periodSeconds": 3}},
            {"readinessProbe": PROBE | {"exec": {"command": ["a"]}, "periodSeconds": 3}},
            id="readiness",
        ),
        pytest.param(
            {"startupProbe": {"httpGet": {"port": 1}}},
            {"startupProbe": {"httpGet": {"port": 1}}},
            id="a startup probe is left as it is",
        ),
        pytest.param(
            {"lifecycle": {"preStop": {"httpGet": {"port": 1}}}},
            {"lifecycle": {"preStop": {"httpGet": {"port": 1, "path": "/", "scheme": "HTTP"}}}},
            id="hook",
        ),
        pytest.param(
            {"resources": {"limits": {"cpu": "0.0005"}}}, {"resources": {"limits": {"cpu": "1m"}}}, id="quantity"
        ),
        pytest.param(
            {"shareVolumeDevicePolicy": {"type": ""}}, {"shareVolumeDevicePolicy": {"type": ""}}, id="devices are not"
        ),
    ],
)
def test_parts_of_a_container(given: Json, expected: Json) -> None:
    found = sidecar(**given)
    assert {name: found[name] for name in expected} == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param({}, {"emptyDir": {}}, id="no source"),
        pytest.param({"hostPath": {"path": "/a"}}, {"hostPath": {"path": "/a", "type": ""}}, id="host path"),
        pytest.param({"secret": {}}, {"secret": {"defaultMode": 420}}, id="secret"),
        pytest.param(
            {"projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}},
            {
                "projected": {
                    "defaultMode": 420,
                    "sources": [{"serviceAccountToken": {"path": "t", "expirationSeconds": 3600}}],
                }
            },
            id="token",
        ),
    ],
)
def test_volumes(given: Json, expected: Json) -> None:
    assert defaulted(volumes=[{"name": "v"} | given])["volumes"] == [{"name": "v"} | expected]


def test_the_policy_of_a_chosen_revision() -> None:
    assert defaulted(injectionStrategy={"revision": {"revisionName": "a"}})["injectionStrategy"] == {
        "revision": {"revisionName": "a", "policy": "Always"}
    }
    assert defaulted(injectionStrategy={"paused": True})["injectionStrategy"] == {"paused": True}


def test_the_request_survives_and_its_hashes_do_not_count() -> None:
    stale = {"kruise.io/sidecarset-hash": "stale", "a": "b"}
    document = {"metadata": {"name": "side", "annotations": dict(stale)}, "spec": {"containers": [LOG]}}
    annotations = default_sidecarset(document)["metadata"]["annotations"]
    assert document == {"metadata": {"name": "side", "annotations": stale}, "spec": {"containers": [LOG]}}
    assert annotations == {
        "a": "b",
        "kruise.io/sidecarset-hash": "bzv6592862b6w846cw4xx5w9647xz74dxc6d24fw7b6bcx554fxd2z4z4vbd8ff4",
        "kruise.io/sidecarset-hash-without-image": "4424wfff8b57d47vb7684zc4bb5478vxwwdcz7dd2xdwbf4d4446424d4w29cwd5",
    }


def test_what_is_stored_has_all_defaults_already() -> None:
    for stored in (*openkruise.documents("sidecarsets"), *openkruise.documents("sidecarsets.v1alpha1")):
        assert default_sidecarset(stored) == stored


def test_the_manifest_becomes_what_openkruise_stored() -> None:
    (stored,) = openkruise.documents("sidecarsets")
    applied = json.loads(stored["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"])
    applied["spec"]["containers"][0]["image"] = "nginx:1.21"  # which a JSON patch had set
    made = default_sidecarset(applied)
    assert made["spec"] | {"injectionStrategy": {}} == stored["spec"]
    for key in ("kruise.io/sidecarset-hash", "kruise.io/sidecarset-hash-without-image"):
        assert made["metadata"]["annotations"][key] == stored["metadata"]["annotations"][key]
