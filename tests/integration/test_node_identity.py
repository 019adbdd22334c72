"""On a real nats-server: a node's credentials allow its own subjects, and no others."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import msgspec
import pytest
import pytest_asyncio
from nats.aio.client import Client
from nats.aio.msg import Msg

from flotilla_cli.nats_config import BusUsers
from flotilla_common.api.resources import POD
from flotilla_common.bus import subjects
from flotilla_common.bus.credentials import read_credentials
from flotilla_common.bus.interface import BusError
from flotilla_common.bus.nats import NatsBus
from flotilla_common.clock import SystemClock
from flotilla_common.node.reports import PODS, Answer, FollowAnswer, FollowRequest, PodReport
from flotilla_common.node.serving import Sender, serve_reports
from flotilla_dev.cluster.nats import NatsServer, reload_users, start_nats
from flotilla_watcher.readers import serve_node_readers
from tests.support.broker import BusAt
from tests.support.cluster import eventually, programs

A, B = "node-a.example", "node-b.example"


class Bus:
    """A guarded bus with credentials for two nodes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.users = BusUsers(folder)
        self.files: dict[str, str] = {}
        for node in (A, B):
            self._write(node, f"{node}.creds")
        self.server: NatsServer
        self.clients: list[NatsBus] = []

    def _write(self, node: str, name: str) -> None:
        file = self.folder / name
        file.write_text(self.users.add_node(node, SystemClock()))
        self.files[node] = str(file)

    def renew(self, node: str) -> None:
        """Write new credentials into a new file, and reload the server."""
        self._write(node, f"{node}.renewed.creds")
        reload_users(self.server.process)

    def service(self, name: str) -> NatsBus:
        bus = NatsBus(BusAt(self.server.url, self.server.credentials), name=f"{name}/1", clock=SystemClock())
        self.clients.append(bus)
        return bus

    def agent(self, node: str) -> NatsBus:
        inbox = subjects.node_inbox(node)
        bus = NatsBus(BusAt(self.server.url, self.files[node]), name="agent", clock=SystemClock(), inbox_prefix=inbox)
        self.clients.append(bus)
        return bus

    async def intruder(self, node: str) -> tuple[Client, "Errors"]:
        """Connect a plain client with the node's credentials, which may try anything; return its errors, too."""
        client, errors = Client(), Errors()
        login = read_credentials(self.files[node])
        await client.connect(self.server.url, nkeys_seed_str=login.seed, error_cb=errors.add)
        return client, errors


@pytest_asyncio.fixture
async def bus(tmp_path: Path) -> AsyncIterator[Bus]:
    made = Bus(tmp_path)
    made.server = await start_nats(tmp_path, program=programs())
    yield made
    for client in made.clients:
        await client.close()
    await made.server.close(SystemClock(), grace=0)


async def test_nobody_gets_in_without_credentials(bus: Bus) -> None:
    stranger = NatsBus(BusAt(bus.server.url), name="stranger", clock=SystemClock())
    with pytest.raises(BusError):
        await stranger.ensure_stream(subjects.node_stream(POD))
    assert not stranger.connected
    await stranger.close()


class Published:
    """The copies of all nodes are there."""

    async def serve(self, node: str) -> None: ...


async def test_a_node_reads_its_own_copies_and_reports_on_them(bus: Bus) -> None:
    watcher, agent = bus.service("watcher"), bus.agent(A)
    await watcher.ensure_stream(subjects.node_stream(POD))
    await watcher.publish(subjects.node_object(A, POD, "x", "mine"), b"a")
    await watcher.publish(subjects.node_object(B, POD, "x", "other"), b"b")
    await serve_node_readers(watcher, {POD: Published()})
    seen: list[bytes] = []
    inbox = subjects.node_inbox(A) + ".r1"
    await agent.subscribe(inbox, lambda message: seen.append(message.data))
    request = msgspec.json.encode(FollowRequest(plural="pods", inbox=inbox))

    async def ask() -> FollowAnswer:
        subject = subjects.report(A, "follow", "", "pods")
        return msgspec.json.decode(await agent.request(subject, request, 2), type=FollowAnswer)

    answer = await until_answered(ask)
    assert answer.accepted
    await eventually(lambda: seen == [b"a"])
    await watcher.publish(subjects.node_object(B, POD, "x", "other"), b"b2")
    await watcher.publish(subjects.node_object(A, POD, "x", "mine"), b"a2")
    await eventually(lambda: seen == [b"a", b"a2"])


async def test_reports_come_with_the_name_of_their_node(bus: Bus) -> None:
    jobs, agent = bus.service("jobs"), bus.agent(A)
    senders: list[Sender] = []

    async def judge(sender: Sender, report: PodReport) -> Answer:
        senders.append(sender)
        return Answer(accepted=True)

    await serve_reports(jobs, PODS, PodReport, judge)

    async def ask() -> Answer:
        return msgspec.json.decode(await agent.request(subjects.report(A, PODS, "x", "p"), b"{}", 2), type=Answer)

    assert (await until_answered(ask)).accepted
    assert senders == [Sender(A, "x", "p")]


FORBIDDEN_TO_SAY = {
    "another node's report": subjects.report(B, PODS, "x", "p"),
    "a report of all nodes": "report.v1.>",
    "another node's copies": subjects.node_object(B, POD, "x", "p"),
    "its own copies": subjects.node_object(A, POD, "x", "p"),
    "an object": subjects.kube(POD, "x", "p"),
    "a marker": subjects.node_marker(POD),
    "its own marker": subjects.node_marker(POD, A),
    "an act": subjects.act("jobs", POD, "x", "p"),
    "a reason": subjects.why(POD, "x", "p"),
    "a heartbeat": subjects.heartbeat("jobs", "1"),
    "another node's inbox": subjects.node_inbox(B) + ".x",
    "a service's inbox": "_INBOX.x",
    "a consumer of its own copies": f"$JS.API.CONSUMER.CREATE.node_pods.c.node.v1.{subjects.token(A)}.pods.>",
    "any consumer": "$JS.API.CONSUMER.CREATE.node_pods",
    "a stored message": "$JS.API.STREAM.MSG.GET.node_pods",
    "a direct get": f"$JS.API.DIRECT.GET.node_pods.node.v1.{subjects.token(A)}.pods.x.p",
    "the names of streams": "$JS.API.STREAM.NAMES",
    "the deletion of a stream": "$JS.API.STREAM.DELETE.node_pods",
    "a flow control answer": "$JS.FC.node_pods.c.x",
    "a login": "$SYS.REQ.USER.AUTH",
}


async def test_a_node_cannot_say(bus: Bus) -> None:
    """Each is refused by the server, and none arrives anywhere."""
    watcher = bus.service("watcher")
    await watcher.ensure_stream(subjects.node_stream(POD))
    heard: list[str] = []
    operator = Client()
    seed = read_credentials(bus.server.credentials, "flotilla").seed
    await operator.connect(bus.server.url, nkeys_seed_str=seed)

    async def hear(message: Msg) -> None:
        if not message.subject.startswith("$JS.EVENT"):
            heard.append(message.subject)

    await operator.subscribe(">", cb=hear)
    await operator.flush()
    client, errors = await bus.intruder(A)
    for name, subject in FORBIDDEN_TO_SAY.items():
        await client.publish(subject, b"{}", reply=subjects.node_inbox(A) + ".r")
        await errors.one_more(name)
    await operator.flush()
    assert heard == []
    await client.close()
    await operator.close()


FORBIDDEN_TO_HEAR = {
    "another node's copies": subjects.node_filter(B, POD),
    "all copies": "node.v1.>",
    "its name's neighbours": "node.v1.*.pods.x.p",
    "another node's reports": f"report.v1.{subjects.token(B)}.>",
    "its own reports as their receiver": subjects.report_filter(PODS),
    "another node's answers": subjects.node_inbox(B) + ".>",
    "all answers": "_INBOX_node.>",
    "services' answers": "_INBOX.>",
    "objects": "kube.v1.>",
    "acts": "act.v1.>",
    "reasons": "why.v1.>",
    "logins": "$SYS.REQ.USER.AUTH",
    "everything": ">",
}


async def test_a_node_cannot_hear(bus: Bus) -> None:
    client, errors = await bus.intruder(A)

    async def hear(message: Msg) -> None:
        raise AssertionError(message.subject)

    for name, subject in FORBIDDEN_TO_HEAR.items():
        await client.subscribe(subject, cb=hear)
        await errors.one_more(name)
    await client.close()


async def test_a_node_cannot_have_another_nodes_copies_delivered(bus: Bus) -> None:
    watcher, agent = bus.service("watcher"), bus.agent(A)
    await watcher.ensure_stream(subjects.node_stream(POD))
    await serve_node_readers(watcher, {POD: Published()})
    subject = subjects.report(A, "follow", "", "pods")
    for inbox in (subjects.node_inbox(B) + ".x", "kube.v1.core.pods.x.p", subjects.node_inbox(A) + ".>", "_INBOX.x"):
        request = msgspec.json.encode(FollowRequest(plural="pods", inbox=inbox))

        async def ask(request: bytes = request) -> FollowAnswer:
            return msgspec.json.decode(await agent.request(subject, request, 2), type=FollowAnswer)

        answer = await until_answered(ask)
        assert not answer.accepted
        assert "inbox" in answer.why


async def test_new_credentials_replace_the_old_ones_at_once(bus: Bus) -> None:
    agent = bus.agent(A)
    await eventually(lambda: agent.connected)
    bus.renew(A)
    await eventually(lambda: not agent.connected)
    renewed = bus.agent(A)
    await eventually(lambda: renewed.connected)
    assert not agent.connected


class Errors:
    """The errors that the server sent to a client."""

    def __init__(self) -> None:
        self.violations: list[str] = []
        self._expected = 0

    async def add(self, error: Exception) -> None:
        if "permissions violation" in str(error).lower():
            self.violations.append(str(error))

    async def one_more(self, attempt: str) -> None:
        """Wait for the violation by an attempt."""
        self._expected += 1
        try:
            await eventually(lambda: len(self.violations) >= self._expected, 20)
        except TimeoutError:
            raise AssertionError(f"allowed: {attempt}; refused: {self.violations}") from None


async def until_answered(ask: Callable[[], Awaitable[Answer]]) -> Answer:
    """Repeat the request until both sides are connected."""
    async with asyncio.timeout(60):
        while True:
            try:
                return await ask()
            except BusError:
                await asyncio.sleep(0.1)
