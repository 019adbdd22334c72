"""The clock of the jobs service is set while jobs and requests are in progress.

Their limits are counted from times that the apiserver, or an earlier replica, wrote, as in Kubernetes' own controllers:
a clock that is an hour fast ends what has an hour left. No end may be before its beginning.
"""

from datetime import UTC, datetime, timedelta

import pytest

from flotilla_common.api.kinds.containerrecreaterequest.types import ContainerRecreateRequest
from flotilla_common.api.meta import ObjectMeta
from flotilla_common.node.reports import RecreateReport
from flotilla_jobs.containerrecreate.merge import merged
from flotilla_jobs.imagelistpull.plan import status_of as list_status
from tests.unit.imagepull.build import NOW, begun, job, list_job, planned, pulling, status_of, succeeded

JUMPS = pytest.mark.parametrize("hours", [-2, 0, 1], ids=["back", "right", "forward"])


@JUMPS
def test_a_job_ends_when_it_began_or_later(hours: int):
    now = NOW + timedelta(hours=hours)
    status = status_of(planned(job(status=begun()), [succeeded("n1")], now))
    assert status["message"] == "job has completed"
    assert begun()["startTime"] <= status["completionTime"]
    assert (status["completionTime"] == begun()["startTime"]) is (hours < 0)


@JUMPS
def test_a_deadline_is_counted_from_the_start_by_the_clock_that_there_is(hours: int):
    policy = {"type": "Always", "activeDeadlineSeconds": 1800}
    plan = planned(job(status=begun(), completionPolicy=policy), [pulling("n1")], NOW + timedelta(hours=hours))
    over = plan.status is not None and "completionTime" in plan.status.body["status"]
    assert over is (hours > 0)


@JUMPS
def test_a_list_ends_when_it_began_or_later(hours: int):
    one = list_job(status={"startTime": begun()["startTime"]}, images=[])
    status = list_status(one, [], NOW + timedelta(hours=hours))
    assert status.start_time is not None
    assert status.completion_time is not None
    assert status.start_time <= status.completion_time


@JUMPS
def test_a_request_ends_when_it_was_made_or_later(hours: int):
    made = datetime(2026, 3, 1, tzinfo=UTC)
    request = ContainerRecreateRequest(metadata=ObjectMeta(uid="u", creation_timestamp=made))
    report = RecreateReport(uid="u", resource_version="1", phase="Completed", message="", states=None)
    end = merged(request, report, made + timedelta(hours=hours)).completion_time
    assert end == max(made, made + timedelta(hours=hours))
