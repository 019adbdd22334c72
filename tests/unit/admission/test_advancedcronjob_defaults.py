"""Defaults of AdvancedCronJobs (advancedcronjob.md §3.1), and OpenKruise's stored form of the same manifest."""

import copy
import json
from typing import Any

import pytest

from flotilla_common.api.kinds.advancedcronjob.api import default_cron_job
from flotilla_common.api.versions import V1ALPHA1, V1BETA1
from flotilla_common.gates import Gates
from tests.testkit.documents import Json
from tests.unit.workload import openkruise

POD: Json = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "i:1"}]}}
JOB: Json = {"jobTemplate": {"spec": {"backoffLimit": 1, "template": POD}}}
BROADCAST: Json = {"broadcastJobTemplate": {"spec": {"template": POD}}}
PULLS: Json = {"imageListPullJobTemplate": {"spec": {"images": ["i:1"], "completionPolicy": {"type": "Always"}}}}


def cron_job(template: Json, version: str = V1BETA1, **spec: Any) -> Json:
    meta = {"name": "a", "namespace": "n"}
    given = {"schedule": "*/1 * * * *", "template": copy.deepcopy(template)} | spec
    return {"apiVersion": version, "kind": "AdvancedCronJob", "metadata": meta, "spec": given}


def defaulted(document: Json, old: Json | None = None, gates: str = "") -> Json:
    return default_cron_job(document, old, Gates.parse(gates))["spec"]


NUMBERS: Json = {"paused": False, "successfulJobsHistoryLimit": 3, "failedJobsHistoryLimit": 1}


@pytest.mark.parametrize("version", [V1ALPHA1, V1BETA1])
@pytest.mark.parametrize(
    ("template", "policy"), [(JOB, "Allow"), (BROADCAST, "Allow"), (PULLS, "Replace")], ids=["Job", "bcj", "images"]
)
def test_policy_and_numbers(template: Json, policy: str, version: str) -> None:
    spec = defaulted(cron_job(template, version, concurrencyPolicy=""))
    assert spec | {"template": None} == {
        "schedule": "*/1 * * * *",
        "template": None,
        "concurrencyPolicy": policy,
        **NUMBERS,
    }
    given = {
        "concurrencyPolicy": "Forbid",
        "paused": True,
        "successfulJobsHistoryLimit": 0,
        "failedJobsHistoryLimit": 0,
        "timeZone": "Asia/Tokyo",
        "startingDeadlineSeconds": 0,
    }
    assert defaulted(cron_job(template, version, **given)).items() >= given.items()


@pytest.mark.parametrize("template", [JOB, BROADCAST], ids=["Job", "BroadcastJob"])
def test_pod_templates(template: Json) -> None:
    (made,) = defaulted(cron_job(template))["template"].values()
    pod = made["spec"]["template"]
    assert pod["metadata"] == {"creationTimestamp": None, "labels": {"app": "a"}}
    assert (pod["spec"]["restartPolicy"], pod["spec"]["dnsPolicy"]) == ("Always", "ClusterFirst")
    assert pod["spec"]["containers"][0]["imagePullPolicy"] == "Always"


def test_what_a_job_may_leave_out_it_leaves_out() -> None:
    made = defaulted(cron_job(JOB))["template"]["jobTemplate"]
    assert {"spec": made["spec"] | {"template": POD}} == JOB["jobTemplate"]
    broadcast = defaulted(cron_job(BROADCAST))["template"]["broadcastJobTemplate"]
    assert broadcast | {"spec": {**broadcast["spec"], "template": POD}} == {
        "metadata": {},
        "spec": {"failurePolicy": {}, "template": POD},
    }


@pytest.mark.parametrize(
    ("old", "gates"),
    [
        pytest.param(cron_job(BROADCAST, paused=True), "", id="the template is not new"),
        pytest.param(None, "TemplateNoDefaults=true", id="switched off"),
    ],
)
def test_templates_that_stay_as_they_are(old: Json | None, gates: str) -> None:
    assert defaulted(cron_job(BROADCAST), old, gates)["template"] == BROADCAST


def test_any_change_of_the_template_brings_defaults() -> None:
    changed = {"broadcastJobTemplate": {"spec": {"paused": True, "template": POD}}}
    made = defaulted(cron_job(changed), cron_job(BROADCAST))["template"]["broadcastJobTemplate"]
    assert "dnsPolicy" in made["spec"]["template"]["spec"]


LIMITS = {"pullPolicy": {"timeoutSeconds": 600, "backoffLimit": 3}, "imagePullPolicy": "IfNotPresent"}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param(
            {"completionPolicy": {"activeDeadlineSeconds": 60}},
            {"completionPolicy": {"type": "Always", "activeDeadlineSeconds": 60}, **LIMITS},
            id="no type",
        ),
        pytest.param(
            {"completionPolicy": {}, "pullPolicy": {"timeoutSeconds": 0}, "imagePullPolicy": "Always"},
            {
                "completionPolicy": {"type": "Always"},
                "pullPolicy": {"timeoutSeconds": 0, "backoffLimit": 3},
                "imagePullPolicy": "Always",
            },
            id="no type, but others",
        ),
        pytest.param({"completionPolicy": {"type": "Always"}}, {"completionPolicy": {"type": "Always"}}, id="a type"),
        pytest.param({"completionPolicy": {"type": "Never"}}, {"completionPolicy": {"type": "Never"}}, id="another"),
    ],
)
def test_lists_of_images(given: Json, expected: Json) -> None:
    template = {"imageListPullJobTemplate": {"spec": {"images": ["i:1"]} | given}}
    made = defaulted(cron_job(template))["template"]["imageListPullJobTemplate"]["spec"]
    assert made == {"images": ["i:1"]} | expected


@pytest.mark.parametrize(("gates", "port"), [("", None), ("DefaultHostNetworkHostPortsInPodTemplates=true", 80)])
def test_host_ports(gates: str, port: int | None) -> None:
    pod = {"spec": {"hostNetwork": True, "containers": [{"name": "c", "ports": [{"containerPort": 80}]}]}}
    made = defaulted(cron_job({"jobTemplate": {"spec": {"template": pod}}}), gates=gates)["template"]["jobTemplate"]
    (found,) = made["spec"]["template"]["spec"]["containers"][0]["ports"]
    assert found.get("hostPort") == port


@pytest.mark.parametrize("template", [{}, {"jobTemplate": None}, {"jobTemplate": {}}, {"broadcastJobTemplate": {}}])
def test_templates_without_pods_are_left_to_validation(template: Json) -> None:
    made = defaulted(cron_job(template))["template"]
    assert "template" not in (made.get("jobTemplate") or {}).get("spec", {})


def test_the_manifest_becomes_what_openkruise_stored_and_stays_so() -> None:
    (stored,) = openkruise.documents("advancedcronjobs")
    applied = json.loads(stored["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"])
    assert defaulted(applied) == stored["spec"]
    assert defaulted(stored, stored) == stored["spec"]
