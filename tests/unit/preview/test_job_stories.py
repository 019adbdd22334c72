"""Plans of jobs: pods and containers that end, and the first run of a schedule."""

from copy import deepcopy
from typing import Any

import pytest

from flotilla_cli.preview.render import render
from flotilla_common.api.documents import Json
from flotilla_insight.preview.report import Report
from tests.unit.admission.test_advancedcronjob_defaults import BROADCAST, JOB, PULLS, cron_job
from tests.unit.admission.test_broadcastjob import job
from tests.unit.admission.test_ephemeraljob import GOOD
from tests.unit.admission.test_ephemeraljob import job as ephemeral_job
from tests.unit.preview.live import story_of

NODES: list[Json] = [
    {
        "metadata": {"name": f"n{number}", "uid": f"uid-n{number}", "resourceVersion": "1"},
        "status": {"allocatable": {"pods": "10"}},
    }
    for number in range(1, 4)
]
ENDING = deepcopy(BROADCAST)
ENDING["broadcastJobTemplate"]["spec"]["template"]["spec"]["restartPolicy"] = "Never"


async def story(kind: str, document: Json, **objects: list[Json]) -> Report:
    """Return the forecast for a document whose spec is new."""
    known = {"uid": "u", "resourceVersion": "5", "generation": 1, "creationTimestamp": "2026-03-01T12:59:00Z"}
    stored = document | {"metadata": document["metadata"] | known}
    return await story_of(kind, stored | {"spec": {}}, stored, {"Node": NODES, **objects})


def waves(told: Report, kind: str = "Pod") -> list[tuple[tuple[str, ...], list[str]]]:
    """Return the ends that each wave waits for, and its actions on objects of the kind."""
    return [
        (
            wave.ended,
            [f"{step.do} {step.alias or step.name} {step.node}".strip() for step in wave.steps if step.kind == kind],
        )
        for wave in told.waves
    ]


def codes(told: Report) -> list[str]:
    return [reason.code for reason in told.reasons]


async def test_a_broadcast_job_goes_from_node_to_node() -> None:
    told = await story("BroadcastJob", job(parallelism=2))
    assert waves(told) == [
        ((), ["create new pod 1 n1", "create new pod 2 n2"]),
        (("new pod 1", "new pod 2"), ["create new pod 3 n3"]),
    ]
    assert codes(told) == ["Completed"]
    assert (told.serving, told.totals.created) == (None, 3)
    assert told.totals.writes == 6  # a create and a first readiness for each
    assert "2. when new pod 1, new pod 2 have ended" in render(told, everything=False).plain


def pod(name: str, **rest: Any) -> Json:
    statuses = [{"name": "c", "image": "i:1", "ready": True, "state": {"running": {}}}]
    ready = [{"type": "Ready", "status": "True"}]
    meta = {"name": name, "namespace": "shop", "uid": f"uid-{name}", "resourceVersion": "7", "labels": {"app": "cart"}}
    spec: Json = {"nodeName": "n1", "containers": [{"name": "c", "image": "i:1"}]}
    status = {"phase": "Running", "conditions": ready, "containerStatuses": statuses}
    return {"metadata": meta, "spec": spec | rest.pop("spec", {}), "status": status | rest}


async def test_pods_that_run_today_end_too() -> None:
    mine = pod("job-x", spec={"restartPolicy": "Never"})
    labels = {"broadcastjob-name": "job", "broadcastjob-controller-uid": "u"}
    owner = {"apiVersion": "apps.kruise.io/v1beta1", "kind": "BroadcastJob", "name": "job", "uid": "u"}
    mine["metadata"] |= {"namespace": "n", "labels": labels, "ownerReferences": [owner | {"controller": True}]}
    told = await story("BroadcastJob", job(parallelism=1), Pod=[mine])
    assert waves(told)[0] == (("job-x",), ["create new pod 1 n2"])
    assert codes(told) == ["Completed"]


@pytest.mark.parametrize(
    ("schedule", "name", "later"),
    [("0 22 * * *", "a-1772402400", "9h later"), ("*/1 * * * *", "a-1772370000", "at once")],
)
async def test_the_first_run_of_a_schedule_and_no_other(schedule: str, name: str, later: str) -> None:
    told = await story("AdvancedCronJob", cron_job(ENDING, schedule=schedule))
    assert waves(told, "BroadcastJob") == [((), [f"create {name}"])]
    assert waves(told) == [((), [f"create new pod {number} n{number}" for number in (1, 2, 3)])]
    assert codes(told) == ["Starting", "Waiting"]
    assert f"1. {later}" in render(told, everything=False).plain


@pytest.mark.parametrize(
    ("template", "kind", "made"),
    [
        pytest.param(JOB, "Job", ["create a-1772370000"], id="a Job of Kubernetes"),
        pytest.param(PULLS, "ImagePullJob", ["create new job 1", "patch new job 1"], id="jobs of a list"),
    ],
)
async def test_runs_of_other_kinds(template: Json, kind: str, made: list[str]) -> None:
    assert waves(await story("AdvancedCronJob", cron_job(template)), kind) == [((), made)]


async def test_a_paused_schedule_starts_nothing() -> None:
    told = await story("AdvancedCronJob", cron_job(ENDING, paused=True))
    assert (waves(told), codes(told)) == ([], ["PausedByUser"])


async def test_an_ephemeral_job_goes_from_pod_to_pod() -> None:
    pods = [pod(name) for name in ("p1", "p2", "p3")]
    told = await story("EphemeralJob", ephemeral_job(GOOD, parallelism=2, ttlSecondsAfterFinished=60), Pod=pods)
    assert waves(told) == [((), ["inject p1 n1", "inject p2 n1"]), (("p1", "p2"), ["inject p3 n1"]), (("p3",), [])]
    text = render(told, everything=False).plain
    assert "inject into 2 pods: p1 (n1), p2 (n1): dump of busybox:1.36" in text
    assert "3. when p3 has ended, 60s later\n       delete EphemeralJob dump" in text
    assert told.serving is None


async def test_an_ephemeral_container_that_runs_today_runs_on() -> None:
    busy = pod("p1")
    marked = GOOD | {"env": [{"name": "KRUISE_EJOB_ID", "value": "u"}]}
    busy["spec"]["ephemeralContainers"] = [marked]
    busy["status"]["ephemeralContainerStatuses"] = [{"name": "dump", "state": {"running": {}}, "containerID": "c://1"}]
    told = await story("EphemeralJob", ephemeral_job(GOOD), Pod=[busy, pod("p2")])
    assert waves(told) == [((), [])]
    assert codes(told) == ["Running", "WaitingForParallelism"]
