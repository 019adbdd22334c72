"""Objects of jobs that create pods, and of the newest run of an AdvancedCronJob."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec
import pytest

from flotilla_common.api.kinds.advancedcronjob.types import ADVANCED_CRON_JOB
from flotilla_common.api.kinds.broadcastjob.types import BROADCAST_JOB
from flotilla_common.api.kinds.imagelistpulljob.types import IMAGE_LIST_PULL_JOB
from flotilla_common.api.resources import EVENT, JOB, NODE, POD, Resource
from flotilla_common.kube.interface import Api, ApiError
from flotilla_insight.views import view_of
from flotilla_insight.views.kindview import Related
from flotilla_insight.views.related import related_of
from tests.testkit.apiserver import FakeApi
from tests.testkit.documents import Json, metadata
from tests.unit.admission.test_advancedcronjob_defaults import BROADCAST, PULLS, cron_job
from tests.unit.admission.test_advancedcronjob_defaults import JOB as JOB_TEMPLATE
from tests.unit.admission.test_broadcastjob import job
from tests.unit.causes.build import NOW

NODES: list[Json] = [
    {"metadata": {"name": name}, "status": {"allocatable": {"pods": "10"}}} for name in ("n1", "n2", "n3", "n4")
]
NODES[3]["spec"] = {"unschedulable": True}

FORBIDDEN = ApiError(403, "Forbidden", "no")


def owned(name: str, uid: str, created: int = 0, **rest: Any) -> Json:
    """Return an object that the owner of the uid controls."""
    made = f"2026-03-01T11:00:{created:02}Z"
    owners = [{"uid": uid, "controller": True}]
    return {"metadata": metadata(name, "n", uid=f"uid-of-{name}", created=made, ownerReferences=owners), **rest}


def pod(name: str, node: str, phase: str, uid: str = "uid-of-job", **labels: str) -> Json:
    made = owned(name, uid, spec={"nodeName": node, "restartPolicy": "Never"}, status={"phase": phase})
    made["metadata"]["labels"] = labels or {"broadcastjob-name": "job"}
    return made


def broadcast_job(**status: Any) -> Json:
    document = job()
    document["metadata"] |= {"uid": "uid-of-job"}
    return document | {"status": status}


async def scope(resource: Resource, document: Json, api: FakeApi) -> Related:
    return await related_of(cast("Api", api), view_of(resource), msgspec.json.encode(document), NOW)


PODS = [pod("a", "n1", "Succeeded"), pod("b", "n2", "Running"), pod("other", "n3", "Running", uid="uid-of-namesake")]


async def test_pods_and_nodes_of_a_broadcast_job() -> None:
    found = await scope(BROADCAST_JOB, broadcast_job(), FakeApi({POD: PODS, NODE: NODES}))
    assert [one.metadata.name for one in found.pods] == ["a", "b"]
    assert found.served is not None
    assert (found.served.coverage.once, found.served.pods) == (True, found.pods)
    assert {one.metadata.name: found.served.coverage.why_not(one) for one in found.served.nodes} == {
        **dict.fromkeys(("n1", "n2", "n3"), ""),
        "n4": "is unschedulable",
    }


@pytest.mark.parametrize(("verdict", "pods"), [("Complete", []), ("Failed", ["a", "b"])])
async def test_a_broadcast_job_that_has_ended_wants_no_nodes(verdict: str, pods: list[str]) -> None:
    document = broadcast_job(conditions=[{"type": verdict, "status": "True"}])
    found = await scope(BROADCAST_JOB, document, FakeApi({POD: PODS}))
    assert ([one.metadata.name for one in found.pods], found.served) == (pods, None)


async def test_nodes_that_may_not_be_read() -> None:
    found = await scope(BROADCAST_JOB, broadcast_job(), FakeApi({POD: PODS}, errors={"nodes": FORBIDDEN}))
    assert (len(found.pods), found.served, found.denied) == (2, None, {"nodes"})


async def test_a_template_that_cannot_be_read_says_nothing_of_nodes() -> None:
    document = broadcast_job() | {"spec": {"template": {"spec": {"tolerations": "all"}}}}
    found = await scope(BROADCAST_JOB, document, FakeApi({POD: PODS, NODE: NODES}))
    assert (len(found.pods), found.served) == (2, None)


def of_cron_job(template: Json) -> Json:
    document = cron_job(template)
    document["metadata"] |= {"uid": "uid-of-cron"}
    return document


async def test_the_newest_broadcast_job_of_an_advanced_cron_job() -> None:
    older, newest = (owned(f"a-{created}", "uid-of-cron", created, spec={"template": {}}) for created in (1, 2))
    pods = [pod("x", "n1", "Failed", uid="uid-of-a-2", **{"broadcastjob-name": "a-2"})]
    api = FakeApi({BROADCAST_JOB: [newest, older, owned("foreign", "uid-else", 3)], POD: pods, NODE: NODES})
    found = await scope(ADVANCED_CRON_JOB, of_cron_job(BROADCAST), api)
    assert ([one.metadata.name for one in found.pods], found.served) == (["x"], None)


BACKOFF = {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "reached the limit"}
SUSPENDED = {"type": "Suspended", "status": "True", "reason": "JobSuspended", "message": "Job suspended"}
QUOTA = 'Error creating: pods "a-1-" is forbidden: exceeded quota: small'


def event(reason: str, message: str, at: int) -> Json:
    return {
        "reason": reason,
        "message": message,
        "lastTimestamp": f"2026-03-01T11:00:{at:02}Z",
        "metadata": {"namespace": "n"},
    }


@pytest.mark.parametrize(
    ("status", "pods", "expected"),
    [
        pytest.param({}, [], [("FailedCreate", f"the Job has no pods: {QUOTA}")], id="no pods"),
        pytest.param({}, ["Running"], [], id="a pod"),
        pytest.param(
            {"conditions": [BACKOFF]},
            [],
            [("BackoffLimitExceeded", "the Job has failed: reached the limit")],
            id="over",
        ),
        pytest.param(
            {"conditions": [SUSPENDED | {"message": ""}]},
            ["Running"],
            [("JobSuspended", "the Job is suspended: JobSuspended")],
            id="suspended",
        ),
        pytest.param({"conditions": [BACKOFF | {"type": "Complete"}]}, [], [], id="complete"),
        pytest.param({"conditions": [SUSPENDED | {"status": "False"}]}, ["Running"], [], id="resumed"),
    ],
)
async def test_a_job_of_kubernetes(status: Json, pods: list[str], expected: list[tuple[str, str]]) -> None:
    labels = {"batch.kubernetes.io/controller-uid": "uid-of-a-1"}
    events = [event("FailedCreate", "older", 1), event("FailedCreate", QUOTA, 3), event("SuccessfulCreate", "p", 4)]
    objects = {
        JOB: [owned("a-1", "uid-of-cron", status=status)],
        POD: [pod(f"p{index}", "n1", phase, uid="uid-of-a-1", **labels) for index, phase in enumerate(pods)],
        EVENT: events,
    }
    found = await scope(ADVANCED_CRON_JOB, of_cron_job(JOB_TEMPLATE), FakeApi(objects))
    assert [(one.cause.code, one.cause.message) for one in found.troubles] == expected
    assert {one.pods for one in found.troubles} <= {("a-1",)}
    assert len(found.pods) == len(pods)


async def test_events_that_may_not_be_read() -> None:
    api = FakeApi({JOB: [owned("a-1", "uid-of-cron")]}, errors={"events": FORBIDDEN})
    found = await scope(ADVANCED_CRON_JOB, of_cron_job(JOB_TEMPLATE), api)
    assert (found.troubles, found.denied) == ([], {"events"})


@pytest.mark.parametrize(
    ("template", "objects"),
    [
        pytest.param(BROADCAST, {}, id="no run yet"),
        pytest.param(PULLS, {IMAGE_LIST_PULL_JOB: [owned("a-1", "uid-of-cron")]}, id="a run without pods"),
    ],
)
async def test_nothing_belongs_to_it(template: Json, objects: Mapping[Resource, Sequence[Json]]) -> None:
    found = await scope(ADVANCED_CRON_JOB, of_cron_job(template), FakeApi(objects))
    assert (found.pods, found.troubles, found.served) == ((), (), None)
