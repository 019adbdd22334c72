"""Reports: decoded, checked, answered; and no message is sent on a node's behalf outside its inbox."""

import asyncio

import msgspec
import pytest

from flotilla_common.bus import subjects
from flotilla_common.bus.interface import BusError, Message
from flotilla_common.node import serving as serving_module
from flotilla_common.node.reports import PODS, Answer, PodReport
from flotilla_common.node.serving import Sender, serve_reports
from tests.support.fake_bus import FakeBus

SUBJECT = subjects.report("n.example", PODS, "default", "web-0")
REPORT = msgspec.json.encode(PodReport(uid="u1", runtime_containers_meta="{}"))


class Owner:
    """Answers reports, or leaves them to others."""

    def __init__(self, answer: Answer | None) -> None:
        self.answer = answer
        self.seen: list[tuple[Sender, PodReport]] = []

    async def judge(self, sender: Sender, report: PodReport) -> Answer | None:
        self.seen.append((sender, report))
        return self.answer


async def serving(answer: Answer | None) -> tuple[FakeBus, Owner]:
    bus, owner = FakeBus(), Owner(answer)
    bus.inbox = subjects.node_inbox("n.example")
    await serve_reports(bus, PODS, PodReport, owner.judge)
    return bus, owner


async def test_a_report_is_judged_with_its_sender() -> None:
    bus, owner = await serving(Answer(accepted=True, resource_version="7"))
    reply = msgspec.json.decode(await bus.request(SUBJECT, REPORT, 1), type=Answer)
    assert reply == Answer(accepted=True, resource_version="7")
    assert owner.seen == [(Sender("n.example", "default", "web-0"), PodReport(uid="u1", runtime_containers_meta="{}"))]


async def test_none_leaves_the_answer_to_another_replica() -> None:
    bus, _ = await serving(None)
    with pytest.raises(BusError):
        await bus.request(SUBJECT, REPORT, 1)


async def test_an_unreadable_report_is_refused() -> None:
    bus, owner = await serving(Answer(accepted=True))
    reply = msgspec.json.decode(await bus.request(SUBJECT, b'{"uid":7}', 1), type=Answer)
    assert not reply.accepted
    assert "unreadable" in reply.why
    assert not owner.seen


@pytest.mark.parametrize("inbox", ["kube.v1.core.pods.default", "_INBOX_node.other", "_INBOX_node.n_example2", ""])
async def test_an_answer_leaves_the_nodes_inbox_alone(inbox: str) -> None:
    bus, owner = await serving(Answer(accepted=True))
    [server] = bus.servers
    assert await server.on_request(Message(subject=SUBJECT, data=REPORT, reply=f"{inbox}.x")) is None
    assert not owner.seen


class Door:
    """The served reports, called by nodes at a time of its own."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        self.judged = 0
        self._bus = FakeBus()
        loop = asyncio.get_running_loop()
        monkeypatch.setattr(loop, "time", lambda: self.now)

    async def open(self) -> "Door":
        async def judge(sender: Sender, report: PodReport) -> Answer:
            self.judged += 1
            return Answer(accepted=True)

        await serve_reports(self._bus, PODS, PodReport, judge)
        return self

    async def tell(self, node: str, data: bytes = REPORT) -> Answer:
        [server] = self._bus.servers
        subject = subjects.report(node, PODS, "x", "web")
        message = Message(subject=subject, data=data, reply=f"{subjects.node_inbox(node)}.r")
        return msgspec.json.decode(await server.on_request(message) or b"", type=Answer)


async def test_a_node_may_tell_much_at_once_and_then_so_much_per_second(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving_module, "BURST", 3)
    monkeypatch.setattr(serving_module, "PER_SECOND", 2.0)
    door = await Door(monkeypatch).open()
    answers = [await door.tell("a") for _ in range(5)]
    assert [answer.accepted for answer in answers] == [True] * 3 + [False] * 2
    assert [answer.again for answer in answers[3:]] == [True] * 2
    assert (await door.tell("b")).accepted
    door.now += 1.0
    assert [(await door.tell("a")).accepted for _ in range(3)] == [True, True, False]


async def test_what_is_too_much_or_too_large_is_not_even_read(monkeypatch: pytest.MonkeyPatch) -> None:
    door = await Door(monkeypatch).open()
    large = await door.tell("a", b" " * (serving_module.REPORT_BYTES + 1) + REPORT)
    assert (large.accepted, large.again, door.judged) == (False, False, 0)
    assert "larger than" in large.why
    assert (await door.tell("a", b" " * (serving_module.REPORT_BYTES - len(REPORT)) + REPORT)).accepted
    monkeypatch.setattr(serving_module, "UNDER_WAY", 0)
    assert (await door.tell("a", b"unreadable")).again


async def test_one_node_does_not_keep_the_others_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving_module, "UNDER_WAY", 2)
    go = asyncio.Event()

    async def slow(sender: Sender, report: PodReport) -> Answer:
        await go.wait()
        return Answer(accepted=True)

    bus = FakeBus()
    await serve_reports(bus, PODS, PodReport, slow)
    [server] = bus.servers

    async def report(node: str) -> Answer:
        message = Message(
            subject=subjects.report(node, PODS, "x", "web"), data=REPORT, reply=f"{subjects.node_inbox(node)}.r"
        )
        return msgspec.json.decode(await server.on_request(message) or b"", type=Answer)

    waiting = [asyncio.create_task(report(node)) for node in ("a", "a", "b")]
    await asyncio.sleep(0)
    refused = await report("a")
    assert (refused.accepted, refused.again) == (False, True)
    go.set()
    assert [answer.accepted for answer in await asyncio.gather(*waiting)] == [True] * 3
    assert (await report("a")).accepted
