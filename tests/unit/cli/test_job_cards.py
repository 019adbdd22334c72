"""`flotilla get` of BroadcastJobs, AdvancedCronJobs and EphemeralJobs."""

from typing import Any

import msgspec
import pytest

from flotilla_insight.views.jobs import broadcast_job, cron_job
from flotilla_insight.views.pod_operations import ephemeral_job
from tests.testkit.documents import Json
from tests.unit.admission.test_advancedcronjob_defaults import BROADCAST
from tests.unit.admission.test_advancedcronjob_defaults import cron_job as cron_document
from tests.unit.admission.test_broadcastjob import job
from tests.unit.admission.test_ephemeraljob import GOOD
from tests.unit.admission.test_ephemeraljob import job as ephemeral_document
from tests.unit.workload import openkruise


def encoded(document: Json, **status: Any) -> bytes:
    return msgspec.json.encode(document | {"status": status})


def test_a_broadcast_job_that_runs() -> None:
    document = job(parallelism="40%", completionPolicy={"type": "Never"}, failurePolicy={"type": "Pause"})
    face = broadcast_job(encoded(document, phase="running", desired=5, active=2, succeeded=1))
    assert face.headline == "running: 1 of 5 nodes are done"
    assert dict(zip(face.columns, face.rows[0], strict=True)) == {
        "DESIRED": "5",
        "ACTIVE": "2",
        "SUCCEEDED": "1",
        "FAILED": "0",
        "PARALLELISM": "40%",
        "ENDS": "Never",
        "ON FAILURE": "Pause",
    }
    assert broadcast_job(encoded(document)).headline == "not reconciled yet"


def test_a_broadcast_job_that_has_ended() -> None:
    stored = openkruise.documents("broadcastjobs")[-1]
    face = broadcast_job(msgspec.json.encode(stored))
    assert face.headline == "completed: Job completed, 3 pods succeeded, 0 pods failed"
    unlimited = broadcast_job(msgspec.json.encode(openkruise.documents("broadcastjobs")[0]))
    assert unlimited.rows[0][4] == "-"


def test_an_advanced_cron_job() -> None:
    (stored,) = openkruise.documents("advancedcronjobs")
    face = cron_job(msgspec.json.encode(stored))
    assert face.headline == ("BroadcastJob at '*/1 * * * *' in Asia/Shanghai, last run of 2026-11-23T07:11:00Z")
    assert face.rows == []
    paused = encoded(cron_document(BROADCAST, paused=True), active=[{"name": "a-1647045420", "kind": "BroadcastJob"}])
    face = cron_job(paused)
    assert face.headline == "job at '*/1 * * * *', no run yet, paused"
    assert face.rows == [("a-1647045420", "BroadcastJob")]


@pytest.mark.parametrize(
    ("selector", "told"),
    [
        pytest.param({"matchLabels": {"app": "cart"}}, "pods of app=cart", id="labels"),
        pytest.param({}, "pods of all labels", id="all"),
        pytest.param({"matchLabels": {"a/b/c": "d"}}, "pods of a selector that cannot be read", id="unreadable"),
    ],
)
def test_an_ephemeral_job(selector: Json, told: str) -> None:
    document = ephemeral_document(GOOD, GOOD | {"name": "aid"}, selector=selector)
    face = ephemeral_job(encoded(document, phase="Running", match=3, running=1, succeeded=2))
    assert face.headline == f"Running: aid, dump for {told}"
    assert face.rows == [("3", "1", "2", "0", "0")]


def test_an_ephemeral_job_without_anything() -> None:
    assert (
        ephemeral_job(encoded(ephemeral_document())).headline == "not reconciled yet: no container for pods of app=cart"
    )
