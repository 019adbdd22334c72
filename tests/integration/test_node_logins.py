"""A real nats-server has the watcher authenticate agents by the apiserver (auth callout, TokenReview)."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import pytest_asyncio
from nats.aio.client import Client

from flotilla_cli.nats_config import authorization, new_user
from flotilla_common.bus import callout, subjects
from flotilla_common.bus.interface import Message
from flotilla_common.bus.nats import NatsBus
from flotilla_common.bus.tokens import ACCOUNT, KeyPair
from flotilla_common.clock import SystemClock
from flotilla_common.kube.interface import Unreachable
from flotilla_common.node.reports import PODS, Answer, PodReport
from flotilla_common.node.serving import Sender, serve_reports
from flotilla_dev.cluster.nats import NAME
from flotilla_dev.cluster.ports import free_ports
from flotilla_dev.cluster.processes import Processes
from flotilla_insight.services import bus_permissions
from flotilla_watcher import node_logins
from flotilla_watcher.node_logins import NodeLogins
from tests.support.broker import BusAt
from tests.support.cluster import eventually, programs

AGENTS = "system:serviceaccount:kruise-system:flotilla-nodeagent"
GOOD = {
    "authenticated": True,
    "audiences": ["flotilla-bus"],
    "user": {"username": AGENTS, "extra": {"authentication.kubernetes.io/node-name": ["node-a.example"]}},
}


class Reviews:
    """The apiserver's TokenReview."""

    def __init__(self) -> None:
        self.status: dict[str, Any] = GOOD
        self.asked: list[Any] = []
        self.away = False

    async def raw(self, method: str, path: str, body: bytes = b"", headers: Any = None) -> bytes:
        assert (method, path) == ("POST", "/apis/authentication.k8s.io/v1/tokenreviews")
        if self.away:
            raise Unreachable("away")
        self.asked.append(msgspec.json.decode(body)["spec"])
        return msgspec.json.encode({"kind": "TokenReview", "status": self.status})


class ObjectDecoder:
    """A nats-server that authenticates the services and delegates the authentication of all others."""

    def __init__(self, folder: Path, url: str, issuer: KeyPair) -> None:
        self.issuer = issuer
        self.folder = folder
        self.url = url
        self.reviews = Reviews()
        self.clients: list[NatsBus] = []
        self.answered = 0
        self.begin()

    def begin(self) -> None:
        """Start as a watcher with an empty cache."""
        self.logins = NodeLogins(
            api=self.reviews, clock=SystemClock(), issuer=self.issuer, account=AGENTS, audience="flotilla-bus"
        )

    async def answer(self, message: Message) -> bytes | None:
        """Return the watcher's answer to a server's request."""
        answer = await self.logins.answer(message)
        self.answered += 1
        return answer

    def bus(self, name: str, creds: str = "", node: str = "") -> NatsBus:
        inbox = subjects.node_inbox(node) if node else ""
        client = NatsBus(BusAt(self.url, creds), name=name, clock=SystemClock(), inbox_prefix=inbox)
        self.clients.append(client)
        return client

    def agent(self, token: str = "the-token") -> NatsBus:
        file = self.folder / "token"
        file.write_text(token)
        return self.bus("agent", str(file), "node-a.example")


@pytest_asyncio.fixture
async def door(tmp_path: Path) -> AsyncIterator[ObjectDecoder]:
    issuer, port = KeyPair.generate(ACCOUNT), free_ports(1)[0]
    seeds: dict[str, str] = {}
    users = []
    for service in ("watcher", "jobs"):
        seed, public = new_user()
        (tmp_path / f"{service}.seed").write_text(seed)
        seeds[service] = str(tmp_path / f"{service}.seed")
        users.append((public, bus_permissions()[service]))
    store = msgspec.json.encode(str(tmp_path / "store")).decode()
    config = (
        authorization(users, issuer.public) + f"host: 127.0.0.1\nport: {port}\njetstream {{ store_dir: {store} }}\n"
    )
    (tmp_path / "nats.conf").write_text(config)
    processes = Processes(tmp_path)
    processes.spawn(
        NAME, [str(programs()(NAME)), "--config", str(tmp_path / "nats.conf")], tmp_path / "log", bound=True
    )
    made = ObjectDecoder(tmp_path, f"nats://127.0.0.1:{port}", issuer)
    watcher = made.bus("watcher", seeds["watcher"])
    await watcher.serve(callout.SUBJECT, "watcher", made.answer)
    jobs = made.bus("jobs", seeds["jobs"])

    async def judge(sender: Sender, report: PodReport) -> Answer:
        return Answer(accepted=True, why=sender.node)

    await serve_reports(jobs, PODS, PodReport, judge)
    await eventually(lambda: watcher.connected and jobs.connected)
    yield made
    for client in made.clients:
        await client.close()
    await processes.stop([NAME], SystemClock(), grace=0)


async def test_a_token_of_an_agents_pod_opens_its_nodes_subjects(door: ObjectDecoder) -> None:
    agent = door.agent()
    await eventually(lambda: agent.connected)
    assert door.reviews.asked[0] == {"token": "the-token", "audiences": ["flotilla-bus"]}
    subject = subjects.report("node-a.example", PODS, "x", "p")
    answer = msgspec.json.decode(await agent.request(subject, b"{}", 2), type=Answer)
    assert answer == Answer(accepted=True, why="node-a.example")


async def test_it_opens_nothing_else(door: ObjectDecoder) -> None:
    errors: list[str] = []

    async def note(error: Exception) -> None:
        errors.append(str(error).lower())

    client = Client()
    await client.connect(door.url, token="the-token", error_cb=note)
    for subject in ("report.v1.node-b_example.pods.x.p", "kube.v1.core.pods.x.p", "$SYS.REQ.USER.AUTH"):
        await client.publish(subject, b"{}")
        about = f'publish to "{subject.lower()}"'
        await eventually(lambda about=about: any("permissions violation" in text and about in text for text in errors))
    await client.close()


REFUSED = {
    "not valid": {"authenticated": False, "error": "expired"},
    "for another audience": GOOD | {"audiences": ["https://kubernetes.default"]},
    "of another account": GOOD | {"user": GOOD["user"] | {"username": "system:serviceaccount:x:y"}},
    "bound to no node": GOOD | {"user": {"username": AGENTS}},
    "of an invalid node": GOOD | {"user": GOOD["user"] | {"extra": {"authentication.kubernetes.io/node-name": ["*"]}}},
}


async def test_tokens_that_open_nothing(door: ObjectDecoder) -> None:
    """They are not reviewed again and again either."""
    for number, (name, status) in enumerate(REFUSED.items(), start=1):
        door.reviews.status = status
        enough = door.answered + 3
        agent = door.agent(f"token-{number}")
        await eventually(lambda agent=agent, enough=enough: agent.connected or door.answered >= enough)
        assert not agent.connected, name
        assert len(door.reviews.asked) == number, name
        await agent.close()


async def test_many_refusals_end_at_the_door_and_tokens_that_were_good_get_in(
    door: ObjectDecoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of this comes from one address."""
    agent = door.agent()
    await eventually(lambda: agent.connected)
    monkeypatch.setattr(node_logins, "REFUSALS", 3)
    monkeypatch.setattr(node_logins, "REFUSALS_PER_SECOND", 0.0)
    door.begin()
    await agent.close()
    again = door.agent()
    await eventually(lambda: again.connected)
    door.reviews.status = REFUSED["not valid"]
    for number in range(6):
        stranger, before = door.agent(f"made-up-{number}"), door.answered
        await eventually(lambda stranger=stranger, before=before: stranger.connected or door.answered > before)
        assert not stranger.connected
        await stranger.close()
    assert [one["token"] for one in door.reviews.asked].count("the-token") == 2
    assert len({one["token"] for one in door.reviews.asked}) == 4
    door.reviews.status = GOOD
    back = door.agent()
    await eventually(lambda: back.connected)


async def test_a_client_without_a_token(door: ObjectDecoder) -> None:
    stranger = door.bus("stranger")
    assert not stranger.connected
    await SystemClock().sleep(1)
    assert not stranger.connected
    assert door.reviews.asked == []


async def test_an_apiserver_that_is_away_lets_nobody_in_until_it_is_back(door: ObjectDecoder) -> None:
    door.reviews.away = True
    agent = door.agent()
    assert not agent.connected
    await SystemClock().sleep(1)
    assert not agent.connected
    door.reviews.away = False
    await eventually(lambda: agent.connected)
