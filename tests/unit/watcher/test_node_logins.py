"""Logins of node agents: requests to the apiserver, and cached answers."""

import asyncio
from typing import Any, cast

import msgspec
import pytest

from flotilla_common.bus import callout
from flotilla_common.bus.interface import Message
from flotilla_common.bus.tokens import ACCOUNT, USER, KeyPair, claims_of
from flotilla_common.kube.interface import Api, Unreachable
from flotilla_watcher import node_logins
from flotilla_watcher.node_logins import NODE_CLAIM, LoginCache, NodeLogins
from tests.support.fake_clock import FakeClock

SERVER, AGENTS = KeyPair.generate(USER), "system:serviceaccount:kruise-system:flotilla-nodeagent"


class Door:
    """`good`: tokens that are valid."""

    def __init__(self) -> None:
        self.good = {"good"}
        self.nodes = ["n1"]
        self.asked: list[str] = []
        self.away = False
        self.go = asyncio.Event()
        self.go.set()
        self.clock = FakeClock()
        self.logins = NodeLogins(
            api=cast("Api", self),
            clock=self.clock,
            issuer=KeyPair.generate(ACCOUNT),
            account=AGENTS,
            audience="flotilla-bus",
        )

    async def raw(self, method: str, path: str, body: bytes = b"", headers: Any = None) -> bytes:
        token = msgspec.json.decode(body)["spec"]["token"]
        self.asked.append(token)
        await self.go.wait()
        if self.away:
            raise Unreachable("away")
        user = {"username": AGENTS, "extra": {NODE_CLAIM: self.nodes}}
        status = {"authenticated": token in self.good, "audiences": ["flotilla-bus"], "user": user, "error": "no"}
        return msgspec.json.encode({"status": status})

    async def knock(self, token: str, host: str = "10.0.0.1") -> str:
        """Empty when the token opens the door, else why not."""
        asked = {
            "server_id": {"id": SERVER.public},
            "user_nkey": "U1",
            "client_info": {"host": host},
            "connect_opts": {"auth_token": token},
        }
        data = SERVER.sign({"iss": SERVER.public, "nats": asked}).encode()
        answer = await self.logins.answer(Message(subject=callout.SUBJECT, data=data))
        assert answer is not None
        return msgspec.json.decode(claims_of(answer.decode()))["nats"].get("error", "")


async def test_a_refused_token_is_not_judged_again_for_a_while() -> None:
    door = Door()
    first = await door.knock("bad")
    assert "not valid here" in first
    assert [await door.knock("bad", host) for host in ("10.0.0.1", "10.0.0.2")] == [first, first]
    assert door.asked == ["bad"]
    door.clock.time += node_logins.REFUSED_SECONDS
    door.good.add("bad")
    assert await door.knock("bad") == ""
    assert door.asked == ["bad", "bad"]


@pytest.mark.parametrize("nodes", [[], ["n1", "n2"], ["*"], ["n1.>"]])
async def test_neither_is_one_that_names_no_node(nodes: list[str]) -> None:
    door = Door()
    door.nodes = nodes
    assert [bool(await door.knock("good")) for _ in range(2)] == [True, True]
    assert door.asked == ["good"]


async def test_a_good_one_is_judged_every_time() -> None:
    """Its pod may be gone."""
    door = Door()
    assert [await door.knock("good") for _ in range(2)] == ["", ""]
    assert door.asked == ["good", "good"]


async def test_nothing_is_remembered_of_an_apiserver_that_is_away() -> None:
    door = Door()
    door.away = True
    assert "does not review" in await door.knock("good")
    door.away = False
    assert await door.knock("good") == ""


async def test_who_has_many_refused_has_no_more_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_logins, "REFUSALS", 3)
    door = Door()
    await door.knock("good")
    for number in range(10):
        assert await door.knock(f"made-up-{number}")
    assert len(door.asked) == 4
    door.good |= {"new", "newer"}
    assert "too many tokens from 10.0.0.1 were refused" in await door.knock("new")
    assert await door.knock("new", "10.0.0.2") == ""
    assert await door.knock("good") == ""  # behind the same address
    door.clock.time += 1 / node_logins.REFUSALS_PER_SECOND
    assert await door.knock("newer") == ""


async def test_a_token_that_is_good_no_more_is_as_any_other() -> None:
    memory = LoginCache()
    memory.good("token")
    for number in range(node_logins.REFUSALS):
        memory.refused(f"made-up-{number}", "host", 0.0, "no")
    assert memory.refusal("token", "host", 0.0) == ""
    memory.refused("token", "host", 0.0, "expired")
    assert memory.refusal("token", "host", 0.0) == "expired"


async def test_only_so_many_are_judged_at_a_time_and_none_in_vain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_logins, "REVIEWS_AT_ONCE", 2)
    door = Door()
    door.go.clear()
    door.good = {str(number) for number in range(4)}
    knocking = [asyncio.create_task(door.knock(token)) for token in sorted(door.good)]
    for _ in range(10):
        await asyncio.sleep(0)
    assert door.asked == ["0", "1"]
    door.clock.time += node_logins.NATS_TIMEOUT_SECONDS + 1
    door.go.set()
    answers = await asyncio.gather(*knocking)
    assert answers[:2] == ["", ""]
    assert all("too many logins at a time" in answer for answer in answers[2:])
    assert door.asked == ["0", "1"]


async def test_only_so_many_tokens_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_logins, "CACHED", 2)
    door = Door()
    for token in ("a", "b", "c", "c", "b", "a"):
        await door.knock(token)
    assert door.asked == ["a", "b", "c", "a"]
