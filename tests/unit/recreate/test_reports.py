"""Reports reach the status before they are answered, and only those that the node may make."""

import asyncio

import msgspec
import pytest

from flotilla_common.api.kinds.containerrecreaterequest.types import RECREATE_REQUEST, ContainerRecreateRequest
from flotilla_common.api.resources import Resource
from flotilla_common.control import report_buffer
from flotilla_common.control.report_buffer import ReportBuffer
from flotilla_common.kube.interface import ApiError, Unreachable
from flotilla_common.node.reports import RECREATE_REQUESTS, Answer, RecreateReport
from flotilla_common.node.serving import Sender
from flotilla_jobs.containerrecreate.controller import CONTROLLER, REQUESTS
from tests.testkit.documents import Json
from tests.unit.recreate.world import World, request_document, state

HERE = Sender("n", "ns", "r")
KEY = ("ns", "r")
REPORT = RecreateReport(uid="uid-r", phase="Recreating", states=[state("app", "Pending")])


class Replica:
    """An inbox over a world; planning happens when the test calls it."""

    def __init__(self, *requests: Json) -> None:
        self.world = World(*requests)
        self.read: list[str] = []
        self.unseen: Json | None = None
        self.trouble: Exception | None = None
        assert CONTROLLER.reports is not None
        self.context = self.world.context
        self.context.read = self._read  # type: ignore[method-assign]
        self.report_buffer: ReportBuffer[ContainerRecreateRequest, RecreateReport] = ReportBuffer(
            self.context, REQUESTS, CONTROLLER.reports
        )

    async def _read(self, resource: Resource, namespace: str, name: str) -> object:
        self.read.append(name)
        if self.trouble:
            raise self.trouble
        if self.unseen:
            self.world.put(RECREATE_REQUEST, self.unseen)
        return None

    async def hear(self, report: RecreateReport = REPORT, sender: Sender = HERE) -> "asyncio.Task[Answer | None]":
        task = asyncio.create_task(self.report_buffer.receive(sender, report))
        await asyncio.sleep(0)
        return task

    def plan(self) -> None:
        held = self.world.requests.get("ns", "r")
        assert held is not None
        latest = self.report_buffer.latest(held)
        if latest is not None:
            self.world.context.reports["r"] = latest
        self.world.passes()


@pytest.fixture
def replica() -> Replica:
    return Replica(request_document("app"))


async def test_the_answer_comes_after_the_write(replica: Replica):
    answer = await replica.hear()
    assert (replica.context.replanned, answer.done()) == ([KEY], False)
    replica.plan()
    version = replica.world.request()["metadata"]["resourceVersion"]
    assert await answer == Answer(accepted=True, resource_version=version)
    assert replica.world.status()["phase"] == "Recreating"
    assert replica.report_buffer._waiting == {}


async def test_a_repeated_report_is_accepted_without_a_pass(replica: Replica):
    first = await replica.hear()
    replica.plan()
    await first
    replica.context.replanned.clear()
    again = await (await replica.hear())
    assert again is not None
    assert (again.accepted, replica.context.replanned) == (True, [])


async def test_of_two_reports_the_newer_one_counts(replica: Replica):
    first = await replica.hear()
    newer = RecreateReport(uid="uid-r", phase="Recreating", states=[state("app", "Recreating", killed=True)])
    second = await replica.hear(newer)
    assert await first == Answer(why="superseded by a newer report about the same object", again=True)
    replica.plan()
    answer = await second
    assert answer is not None
    assert answer.accepted
    assert replica.world.status()["containerRecreateStates"][0]["isKilled"] is True


async def test_another_replica_answers(replica: Replica):
    replica.context.mine = False
    assert await (await replica.hear()) is None


async def test_a_shard_that_is_lost_meanwhile(replica: Replica):
    answer = await replica.hear()
    replica.context.mine = False
    replica.world.put(RECREATE_REQUEST, replica.world.request())
    assert await answer is None


@pytest.mark.parametrize(
    ("report", "sender", "why"),
    [
        pytest.param(REPORT, Sender("m", "ns", "r"), "the request is for node n", id="another node"),
        pytest.param(
            msgspec.structs.replace(REPORT, uid="other"), HERE, "there is no object with uid other", id="another uid"
        ),
        pytest.param(REPORT, Sender("n", "ns", "x"), "there is no object with uid uid-r", id="no request"),
        pytest.param(
            msgspec.structs.replace(REPORT, states=[state("db", "Pending")]),
            HERE,
            "container 'db' is not in the request",
            id="unknown container",
        ),
    ],
)
async def test_refused_for_good(replica: Replica, report: RecreateReport, sender: Sender, why: str):
    assert await (await replica.hear(report, sender)) == Answer(why=why)
    assert replica.context.replanned == []


async def test_a_request_that_the_agent_heard_of_first():
    replica = Replica()
    replica.unseen = request_document("app")
    answer = await replica.hear()
    await asyncio.sleep(0)
    assert (replica.read, replica.context.replanned) == (["r"], [KEY])
    replica.plan()
    told = await answer
    assert told is not None
    assert told.accepted


async def test_an_apiserver_that_does_not_tell():
    replica = Replica()
    replica.trouble = ApiError(500, "InternalError", "no quorum")
    assert await (await replica.hear()) == Answer(why="cannot read from the apiserver: no quorum", again=True)


async def test_a_request_that_goes_while_a_report_waits(replica: Replica):
    answer = await replica.hear()
    replica.world.requests.remove("ns", "r", "uid-r")
    assert await answer == Answer(why="there is no object with uid uid-r")


async def test_what_cannot_be_written_is_to_be_sent_again(replica: Replica, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(report_buffer, "WRITTEN_WITHIN", 0.01)
    assert await (await replica.hear()) == Answer(why="the status could not be written in time", again=True)
    assert replica.report_buffer._waiting == {}


async def test_a_report_about_an_earlier_namesake_is_not_planned_with(replica: Replica):
    answer = await replica.hear()
    namesake = request_document("app")
    namesake["metadata"]["uid"] = "uid-2"
    replica.world.put(RECREATE_REQUEST, namesake)
    held = replica.world.requests.get("ns", "r")
    assert isinstance(held, ContainerRecreateRequest)
    assert replica.report_buffer.latest(held) is None
    assert await answer == Answer(why="there is no object with uid uid-r")


async def test_an_apiserver_that_is_away_does_not_tell_either():
    replica = Replica()
    replica.trouble = Unreachable("timeout")
    assert await (await replica.hear()) == Answer(why="cannot read from the apiserver: timeout", again=True)


@pytest.mark.parametrize(
    ("sender", "report", "kept"),
    [
        pytest.param(HERE, REPORT, True, id="about a request that there is"),
        pytest.param(Sender("m", "ns", "r"), REPORT, False, id="of another node"),
        pytest.param(Sender("n", "ns", "x"), REPORT, False, id="about a request that there is not"),
    ],
)
def test_a_recorded_report_is_taken_in_as_it_was_then(
    replica: Replica, sender: Sender, report: RecreateReport, kept: bool
):
    replica.report_buffer.replay(sender, report)
    held = replica.world.requests.get("ns", "r")
    assert held is not None
    assert (replica.report_buffer.latest(held) == report) is kept
    assert (replica.context.replanned, replica.read) == ([], [])


def test_a_recorded_report_is_forgotten_once_the_status_says_it(replica: Replica):
    replica.report_buffer.replay(HERE, REPORT)
    replica.plan()
    held = replica.world.requests.get("ns", "r")
    assert held is not None
    assert held.status.phase == "Recreating"
    assert replica.report_buffer._waiting == {}
    replica.report_buffer.replay(HERE, REPORT)
    assert replica.report_buffer._waiting == {}
    replica.report_buffer.replay(HERE, RecreateReport(uid="uid-r", phase="Completed"))
    assert replica.report_buffer._waiting.keys() == {("ns", "r")}
    replica.world.requests.remove("ns", "r", "uid-r")
    assert replica.report_buffer._waiting == {}


def test_what_the_controller_answers():
    assert (CONTROLLER.answers, CONTROLLER.reports and CONTROLLER.reports.body) == (
        (RECREATE_REQUESTS,),
        RecreateReport,
    )
