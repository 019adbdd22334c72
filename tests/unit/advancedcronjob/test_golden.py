"""An AdvancedCronJob and its runs as OpenKruise left them: no run is repeated."""

from datetime import UTC, datetime

from flotilla_common.api.kinds.advancedcronjob.types import AdvancedCronJob
from flotilla_common.api.kinds.broadcastjob.types import BroadcastJob
from flotilla_common.control.plan import Create, Plan
from flotilla_jobs.advancedcronjob.plan import plan
from flotilla_jobs.advancedcronjob.snapshot import AdvancedCronJobSnapshot
from tests.testkit.documents import Json, decoded
from tests.unit.workload.openkruise import documents, stored


def planned(document: Json, now: datetime) -> Plan:
    children = [one for one in documents("broadcastjobs") if one["metadata"].get("ownerReferences")]
    snapshot = AdvancedCronJobSnapshot(
        job=decoded(document, AdvancedCronJob),
        children=decoded(children, list[BroadcastJob]),
        taken=[child["metadata"]["name"] for child in children],
    )
    return plan(snapshot, now)


def test_what_was_run_is_not_run_again():
    result = planned(stored("advancedcronjobs"), datetime(2026, 11, 23, 7, 11, 30, tzinfo=UTC))
    assert result.stages == ()
    assert result.events == ()
    assert [reason.message for reason in result.reasons] == [
        "the next run is due at 2026-11-23T07:12:00Z (2026-11-23T15:12:00+08:00 in Asia/Shanghai)"
    ]


def test_not_even_when_its_status_is_lost():
    result = planned({**stored("advancedcronjobs"), "status": {}}, datetime(2026, 11, 23, 7, 11, 30, tzinfo=UTC))
    ((status,),) = result.stages[0].chains
    assert getattr(status, "body", {}) == {"status": stored("advancedcronjobs")["status"]}
    assert len(result.stages) == 1


def test_the_next_run_looks_like_those_before():
    result = planned(stored("advancedcronjobs"), datetime(2026, 11, 23, 7, 12, 0, tzinfo=UTC))
    ((create,),) = result.stages[0].chains
    assert isinstance(create, Create)
    assert create.name == "acj-1795417920"
    metadata, template = create.body["metadata"], stored("advancedcronjobs")["spec"]["template"]["broadcastJobTemplate"]
    before = next(one for one in documents("broadcastjobs") if one["metadata"]["name"] == "acj-1795417860")["metadata"]
    assert metadata["ownerReferences"] == before["ownerReferences"]
    assert metadata["annotations"] == {"apps.kruise.io/scheduled-at": "2026-11-23T07:12:00Z"}
    assert metadata["labels"] == before.get("labels", {})
    assert create.body["spec"] == template["spec"]
