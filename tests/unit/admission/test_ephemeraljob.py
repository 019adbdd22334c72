"""Validation of EphemeralJobs: each line of ephemeraljob.md §3 is a row, with Kubernetes' wording."""

from typing import Any

import pytest

from flotilla_common.api.admission.fields import Fault
from flotilla_common.api.kinds.ephemeraljob.api import check_types, faults_of, own_faults, stand_in
from tests.testkit.documents import Json

GOOD: Json = {
    "name": "dump",
    "image": "busybox:1.36",
    "imagePullPolicy": "IfNotPresent",
    "terminationMessagePolicy": "File",
    "targetContainerName": "cart",
    "command": ["sh", "-c", "ls /proc"],
}
LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and "
    "end with an alphanumeric character"
)
CANNOT = "Forbidden: cannot be set for an Ephemeral Container"


def job(*containers: Json, **spec: Any) -> Json:
    given = {"selector": {"matchLabels": {"app": "cart"}}, "template": {"ephemeralContainers": list(containers)}}
    meta = {"name": "dump", "namespace": "shop"}
    return {"apiVersion": "apps.kruise.io/v1alpha1", "kind": "EphemeralJob", "metadata": meta, "spec": given | spec}


def texts(*containers: Json) -> list[str]:
    return [str(fault) for fault in faults_of(job(*containers))]


def without(name: str) -> Json:
    return {key: value for key, value in GOOD.items() if key != name}


ROWS = [
    pytest.param(GOOD, [], id="the example"),
    pytest.param(without("name"), ["name: Required value"], id="no name"),
    pytest.param(GOOD | {"name": "A_b"}, [f'name: Invalid value: "A_b": {LABEL}'], id="no DNS label"),
    pytest.param(
        GOOD | {"name": "a" * 64},
        [f'name: Invalid value: "{"a" * 64}": must be no more than 63 characters'],
        id="a long name",
    ),
    pytest.param(GOOD | {"image": ""}, ["image: Required value"], id="no image"),
    pytest.param(
        GOOD | {"image": " busybox"},
        ['image: Invalid value: " busybox": must not have leading or trailing whitespace'],
        id="a blank before the image",
    ),
    pytest.param(
        without("terminationMessagePolicy"), ["terminationMessagePolicy: Required value"], id="no message policy"
    ),
    pytest.param(
        GOOD | {"terminationMessagePolicy": "Log"},
        ['terminationMessagePolicy: Unsupported value: "Log": supported values: "File", "FallbackToLogsOnError"'],
        id="an unknown message policy",
    ),
    pytest.param(GOOD | {"imagePullPolicy": ""}, ["imagePullPolicy: Required value"], id="no pull policy, row 23"),
    pytest.param(
        GOOD | {"imagePullPolicy": "Sometimes"},
        ['imagePullPolicy: Unsupported value: "Sometimes": supported values: "Always", "IfNotPresent", "Never"'],
        id="an unknown pull policy",
    ),
    pytest.param(
        GOOD | {"volumeMounts": [{"name": "v", "mountPath": "/v"}, {"name": "v", "subPath": "a", "subPathExpr": "b"}]},
        [f"volumeMounts[1].subPath: {CANNOT}", f"volumeMounts[1].subPathExpr: {CANNOT}"],
        id="parts of volumes",
    ),
    pytest.param(
        GOOD | {"ports": [], "resources": {}, "restartPolicy": None, "livenessProbe": None}, [], id="empty is not set"
    ),
    pytest.param(
        GOOD
        | {"args": ["-l"], "workingDir": "/", "env": [], "envFrom": [], "volumeDevices": [], "securityContext": {}}
        | {"terminationMessagePath": "/m", "stdin": True, "stdinOnce": True, "tty": True},
        [],
        id="all that may be set",
    ),
    *(
        pytest.param(GOOD | {name: value}, [f"{name}: {CANNOT}"], id=name)
        for name, value in {
            "ports": [{"containerPort": 80}],
            "resources": {"limits": {"cpu": "1"}},
            "livenessProbe": {},
            "readinessProbe": {"exec": {"command": ["a"]}},
            "startupProbe": {},
            "lifecycle": {},
            "restartPolicy": "Always",
            "resizePolicy": [{"resourceName": "cpu"}],
        }.items()
    ),
]


@pytest.mark.parametrize(("container", "expected"), ROWS)
def test_a_container(container: Json, expected: list[str]) -> None:
    assert texts(container) == [f"ephemeralContainers[0].{text}" for text in expected]


def test_a_name_that_is_there_twice() -> None:
    assert texts(GOOD, GOOD | {"name": "other"}, GOOD) == ['ephemeralContainers[2].name: Duplicate value: "dump"']


def test_no_containers_and_values_that_are_not_checked() -> None:
    assert texts() == []
    document = job(GOOD, selector={}, replicas=-1, parallelism=-1, activeDeadlineSeconds=-1)
    assert faults_of(document) == []


def test_what_the_apiserver_judges_comes_last_and_in_the_words_of_the_job() -> None:
    template = stand_in([GOOD, GOOD | {"env": [{"name": ""}], "volumeMounts": [{"name": "v", "mountPath": "/v"}]}])
    first, second = template["spec"]["containers"]
    assert second == {"name": "c1", "image": "none", "command": GOOD["command"], "env": [{"name": ""}]}
    assert first["name"] != second["name"]
    found = own_faults([Fault("spec.template.spec.containers[1].env[0].name", "Required value")])
    faults = faults_of(job(GOOD, GOOD), found)
    assert [fault.path for fault in faults] == ["ephemeralContainers[1].name", "ephemeralContainers[1].env[0].name"]


@pytest.mark.parametrize("spec", [{"paused": "yes"}, {"template": {"ephemeralContainers": ["a"]}}, {"replicas": "1"}])
def test_types(spec: Json) -> None:
    with pytest.raises(ValueError, match=r"\$\.spec"):
        check_types(job(**spec))
