"""Defaults and validation of BroadcastJobs: each line of broadcastjob.md §3 is a row, with Kubernetes' wording."""

import json
from typing import Any

import pytest

from flotilla_common.api.admission.fields import Fault
from flotilla_common.api.kinds.broadcastjob.api import check_types, default_broadcast_job, faults_of
from flotilla_common.api.versions import V1ALPHA1, V1BETA1
from flotilla_common.gates import Gates
from tests.testkit.documents import Json
from tests.unit.workload import openkruise

CONTAINER = {"name": "c", "image": "i:1"}
TEMPLATE = {"metadata": {"labels": {"app": "a"}}, "spec": {"restartPolicy": "Never", "containers": [CONTAINER]}}
JUST_ALWAYS = "can just work with Always CompletionPolicyType"
RESTART = "spec.template.spec.restartPolicy: Invalid value: {}: pod restartPolicy can only be Never or OnFailure"
PRESET = '"broadcastjob-name" and "broadcastjob-controller-uid" are not allowed to preset in pod labels'


def job(version: str = V1BETA1, **spec: Any) -> Json:
    meta = {"name": "job", "namespace": "n"}
    return {"apiVersion": version, "kind": "BroadcastJob", "metadata": meta, "spec": {"template": TEMPLATE} | spec}


def defaulted(document: Json, old: Json | None = None, gates: str = "") -> Json:
    return default_broadcast_job(document, old, Gates.parse(gates))["spec"]


def texts(document: Json, name: str = "job") -> list[str]:
    return [str(fault) for fault in faults_of(document, name)]


DEFAULTS: Json = {
    "parallelism": 2147483647,
    "completionPolicy": {"type": "Always"},
    "failurePolicy": {"type": "FailFast"},
}
GIVEN: Json = {
    "parallelism": 0,
    "completionPolicy": {"type": "Never"},
    "failurePolicy": {"type": "Pause", "restartLimit": 3},
}


@pytest.mark.parametrize("version", [V1ALPHA1, V1BETA1])
@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param({}, DEFAULTS, id="nothing given"),
        pytest.param({"completionPolicy": {"type": ""}, "failurePolicy": None}, DEFAULTS, id="empty is absent"),
        pytest.param(
            {"completionPolicy": {"ttlSecondsAfterFinished": 0}},
            DEFAULTS | {"completionPolicy": {"type": "Always", "ttlSecondsAfterFinished": 0}},
            id="beside what is given",
        ),
        pytest.param(GIVEN, GIVEN, id="what is given stays"),
    ],
)
def test_defaults(version: str, given: Json, expected: Json) -> None:
    spec = defaulted(job(version, **given))
    del spec["template"]
    assert spec == expected


def test_pod_defaults() -> None:
    pod = defaulted(job(template={"spec": {"containers": [CONTAINER]}}))["template"]["spec"]
    assert (pod["restartPolicy"], pod["containers"][0]["imagePullPolicy"]) == ("Always", "Always")


@pytest.mark.parametrize(
    ("old", "gates"),
    [
        pytest.param(job(paused=True), "", id="the template is not new"),
        pytest.param(None, "TemplateNoDefaults=true", id="switched off"),
    ],
)
def test_templates_that_stay_as_they_are(old: Json | None, gates: str) -> None:
    assert defaulted(job(), old, gates)["template"] == TEMPLATE


def test_a_changed_template_gets_defaults() -> None:
    changed = job(template=TEMPLATE | {"metadata": {"labels": {"app": "b"}}})
    assert defaulted(changed, job())["template"]["spec"]["dnsPolicy"] == "ClusterFirst"


@pytest.mark.parametrize(("gates", "port"), [("", None), ("DefaultHostNetworkHostPortsInPodTemplates=true", 80)])
def test_host_ports(gates: str, port: int | None) -> None:
    pod = {"hostNetwork": True, "containers": [CONTAINER | {"ports": [{"containerPort": 80}]}]}
    (found,) = defaulted(job(template={"spec": pod}), gates=gates)["template"]["spec"]["containers"][0]["ports"]
    assert found.get("hostPort") == port


def test_the_manifest_becomes_what_openkruise_stored_and_stays_so() -> None:
    stored = next(one for one in openkruise.documents("broadcastjobs") if one["metadata"]["name"] == "bcj")
    applied = json.loads(stored["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"])
    assert defaulted(applied) == stored["spec"]
    assert defaulted(stored, stored) == stored["spec"]
    assert texts(stored) == []


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        pytest.param("my.job", "must consist of alphanumeric characters or '-'", id="a dot, row 35"),
        pytest.param("a" * 64, "must be no more than 63 characters", id="too long, row 35"),
        pytest.param("a" * 63, "", id="as long as it may be"),
    ],
)
def test_names(name: str, fault: str) -> None:
    assert texts(job(), name) == ([f'metadata.name: Invalid value: "{name}": {fault}'] if fault else [])


SPEC_ROWS = [
    pytest.param(
        {"completionPolicy": {"type": "Never", "activeDeadlineSeconds": 0, "ttlSecondsAfterFinished": 30}},
        [
            f"spec.completionPolicy.ttlSecondsAfterFinished: Invalid value: 30: {JUST_ALWAYS}",
            f"spec.completionPolicy.activeDeadlineSeconds: Invalid value: 0: {JUST_ALWAYS}",
        ],
        id="an end of what never ends, row 25",
    ),
    pytest.param(
        {"completionPolicy": {"type": "Always", "activeDeadlineSeconds": -1, "ttlSecondsAfterFinished": -1}},
        [],
        id="signs are not judged",
    ),
    pytest.param(
        {"parallelism": "many", "failurePolicy": {"type": "Other", "restartLimit": -1}, "completionPolicy": {}},
        [],
        id="neither are other values",
    ),
    pytest.param({"template": {"spec": {"restartPolicy": "Always"}}}, [RESTART.format('"Always"')], id="Always"),
    pytest.param({"template": {"spec": {}}}, [RESTART.format('""')], id="no restartPolicy and no defaults"),
    pytest.param({"template": {"spec": {"restartPolicy": "OnFailure"}}}, [], id="OnFailure"),
    pytest.param(
        {"template": TEMPLATE | {"metadata": {"labels": {"broadcastjob-name": "x"}}}},
        [f'spec.template.metadata.labels: Invalid value: {{"broadcastjob-name":"x"}}: {PRESET}'],
        id="a label of ours, row 36",
    ),
    pytest.param(
        {"template": TEMPLATE | {"metadata": {"labels": {"broadcastjob-controller-uid": "x"}}}},
        [f'spec.template.metadata.labels: Invalid value: {{"broadcastjob-controller-uid":"x"}}: {PRESET}'],
        id="the other one",
    ),
    pytest.param(
        {"template": TEMPLATE | {"metadata": {"labels": {"broadcastjob-name": ""}}}}, [], id="without a value"
    ),
]


@pytest.mark.parametrize(("spec", "expected"), SPEC_ROWS)
def test_spec(spec: Json, expected: list[str]) -> None:
    assert texts(job(**spec)) == expected


def test_the_default_of_restart_policies_is_refused_row_34() -> None:
    document = job() | {"spec": defaulted(job(template={"spec": {"containers": [CONTAINER]}}))}
    assert texts(document) == [RESTART.format('"Always"')]


def test_order() -> None:
    policy = {"type": "Never", "ttlSecondsAfterFinished": 1}
    document = job(completionPolicy=policy, template={"metadata": {"labels": {"broadcastjob-name": "x"}}})
    faults = faults_of(document, "a.b", [Fault("spec.template.spec.containers", "Required value")])
    assert [fault.path for fault in faults] == [
        "metadata.name",
        "spec.completionPolicy.ttlSecondsAfterFinished",
        "spec.template.spec.restartPolicy",
        "spec.template.metadata.labels",
        "spec.template.spec.containers",
    ]


@pytest.mark.parametrize("spec", [{"paused": "yes"}, {"completionPolicy": []}, {"parallelism": 1.5}])
def test_types(spec: Json) -> None:
    with pytest.raises(ValueError, match=r"\$\.spec"):
        check_types(job(**spec))
