"""Template defaults: every line of common.md §13 is a row."""

import copy
from typing import Any

import pytest

from flotilla_common.api.admission.pod_template import default_claim, default_template, pull_policy
from flotilla_common.api.kinds.cloneset.api import default_cloneset
from flotilla_common.api.kinds.daemonset.api import default_daemonset
from flotilla_common.api.kinds.statefulset.api import default_statefulset
from flotilla_common.gates import Gates

POD = {
    "dnsPolicy": "ClusterFirst",
    "restartPolicy": "Always",
    "schedulerName": "default-scheduler",
    "securityContext": {},
    "terminationGracePeriodSeconds": 30,
}
CONTAINER = {
    "imagePullPolicy": "Always",
    "resources": {},
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
}
PROBE = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}


def defaulted(spec: dict[str, Any], **options: bool) -> dict[str, Any]:
    template: dict[str, Any] = {"spec": copy.deepcopy(spec)}
    default_template(template, **options)
    return template["spec"]


def test_the_template_of_the_hash_vectors() -> None:
    template: dict[str, Any] = {
        "metadata": {"labels": {"app": "sample"}},
        "spec": {"containers": [{"name": "nginx", "image": "nginx:alpine"}]},
    }
    default_template(template)
    assert template == {
        "metadata": {"labels": {"app": "sample"}, "creationTimestamp": None},
        "spec": POD | {"containers": [{"name": "nginx", "image": "nginx:alpine"} | CONTAINER]},
    }
    again = copy.deepcopy(template)
    default_template(again)
    assert again == template


@pytest.mark.parametrize("gates", ["", "TemplateNoDefaults=true"])
def test_a_rollback_with_the_data_of_a_revision_leaves_no_directive(gates: str) -> None:
    """Also where the template is stored with one."""
    data: dict[str, Any] = {"spec": {"template": {"$patch": "replace", "metadata": {"labels": {"app": "a"}}}}}
    read = Gates.parse(gates)
    for document in (
        default_cloneset(data, data, read),
        default_statefulset(data, data, read),
        default_daemonset(data),
    ):
        assert "$patch" not in document["spec"]["template"]
        assert document["spec"]["template"]["metadata"]["labels"] == {"app": "a"}
    assert "$patch" in data["spec"]["template"], "the request itself is left as it is"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param(
            {"ports": [{"containerPort": 80}]}, {"ports": [{"containerPort": 80, "protocol": "TCP"}]}, id="port"
        ),
        pytest.param(
            {"env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]},
            {"env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name", "apiVersion": "v1"}}}]},
            id="field reference",
        ),
        pytest.param(
            {"livenessProbe": {"httpGet": {"port": 80}, "timeoutSeconds": 0, "periodSeconds": 5}},
            {"livenessProbe": PROBE | {"httpGet": {"port": 80, "path": "/", "scheme": "HTTP"}, "periodSeconds": 5}},
            id="probe",
        ),
        pytest.param(
            {"lifecycle": {"preStop": {"httpGet": {"port": 80, "path": "/x"}}}},
            {"lifecycle": {"preStop": {"httpGet": {"port": 80, "path": "/x", "scheme": "HTTP"}}}},
            id="lifecycle",
        ),
        pytest.param({"imagePullPolicy": "Never"}, {"imagePullPolicy": "Never"}, id="own pull policy"),
        pytest.param(
            {"image": "a@sha256:0"}, {"image": "a@sha256:0", "imagePullPolicy": "Always"}, id="digest: Always"
        ),
        pytest.param(
            {"resources": {"limits": {"cpu": "0.0005", "memory": "1Gi"}, "requests": {"cpu": "1500u"}}},
            {"resources": {"limits": {"cpu": "1m", "memory": "1Gi"}, "requests": {"cpu": "2m"}}},
            id="quantities round up to milli",
        ),
        pytest.param(
            {"resources": {"limits": {"cpu": "junk"}}}, {"resources": {"limits": {"cpu": "junk"}}}, id="no quantity"
        ),
    ],
)
def test_containers(given: dict[str, Any], expected: dict[str, Any]) -> None:
    assert defaulted({"containers": [given]})["containers"] == [CONTAINER | expected]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param({}, {"emptyDir": {}}, id="empty"),
        pytest.param({"hostPath": {"path": "/x"}}, {"hostPath": {"path": "/x", "type": ""}}, id="hostPath"),
        pytest.param({"secret": {"secretName": "s"}}, {"secret": {"secretName": "s", "defaultMode": 420}}, id="secret"),
        pytest.param({"configMap": {"defaultMode": 0}}, {"configMap": {"defaultMode": 0}}, id="mode 0 is a choice"),
        pytest.param(
            {"downwardAPI": {"items": [{"fieldRef": {"fieldPath": "f"}}]}},
            {"downwardAPI": {"items": [{"fieldRef": {"fieldPath": "f", "apiVersion": "v1"}}], "defaultMode": 420}},
            id="downward API",
        ),
        pytest.param(
            {"projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}},
            {
                "projected": {
                    "sources": [{"serviceAccountToken": {"path": "t", "expirationSeconds": 3600}}],
                    "defaultMode": 420,
                }
            },
            id="token",
        ),
    ],
)
def test_volumes(given: dict[str, Any], expected: dict[str, Any]) -> None:
    assert defaulted({"volumes": [{"name": "v"} | given]})["volumes"] == [{"name": "v"} | expected]


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("nginx", "Always"),
        ("nginx:latest", "Always"),
        ("nginx:1.25", "IfNotPresent"),
        ("host:5000/nginx", "Always"),
        ("host:5000/nginx:1", "IfNotPresent"),
        ("nginx@sha256:00", "IfNotPresent"),
        ("nginx:latest@sha256:00", "Always"),
    ],
)
def test_init_containers_follow_the_tag(image: str, policy: str) -> None:
    assert pull_policy(image) == policy
    assert defaulted({"initContainers": [{"image": image}]})["initContainers"][0]["imagePullPolicy"] == policy


def test_chosen_values_stay() -> None:
    spec = {"terminationGracePeriodSeconds": 0, "restartPolicy": "Never", "securityContext": {"runAsUser": 0}}
    assert defaulted(spec) == POD | spec


@pytest.mark.parametrize(("gate", "network", "expected"), [(True, True, 80), (False, True, None), (True, False, None)])
def test_host_ports_need_gate_and_host_network(gate: bool, network: bool, expected: int | None) -> None:
    spec = {"hostNetwork": network, "containers": [{"ports": [{"containerPort": 80}]}]}
    port = defaulted(spec, host_ports=gate)["containers"][0]["ports"][0]
    assert port.get("hostPort") == expected


def test_claim_template() -> None:
    claim: dict[str, Any] = {"metadata": {"name": "data"}}
    default_claim(claim)
    assert claim == {"metadata": {"name": "data", "creationTimestamp": None}, "status": {"phase": "Pending"}}
