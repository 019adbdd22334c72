"""Objects named by nodes are read once, and for each node at a limited rate."""

import asyncio

import pytest

from flotilla_common.api.resources import POD, Resource
from flotilla_common.kube.interface import Unreachable
from flotilla_common.node import serving
from flotilla_common.node.serving import Lookups, TooOften

KEY = ("x", "web")


class Apiserver:
    """`uid`: of the pod that is there."""

    def __init__(self, uid: str = "") -> None:
        self.uid = uid
        self.asked: list[str] = []
        self.away = False
        self.held = ""
        self.lookups = Lookups(self.read)

    async def read(self, resource: Resource, namespace: str, name: str) -> object:
        self.asked.append(name)
        if self.away:
            raise Unreachable("away")
        self.held = self.uid
        return None

    async def find(self, uid: str, node: str = "n1", key: tuple[str, str] = KEY) -> str | None:
        return await self.lookups.find(node, POD, key, uid, lambda _: self.held if self.held == uid else None)


async def test_what_the_mirror_has_needs_no_question() -> None:
    it = Apiserver()
    it.held = "u1"
    assert await it.find("u1") == "u1"
    assert it.asked == []


async def test_the_agent_may_have_heard_of_it_first() -> None:
    it = Apiserver("u1")
    assert await it.find("u1") == "u1"
    assert it.asked == ["web"]


async def test_what_does_not_exist_is_asked_for_once() -> None:
    it = Apiserver("u2")
    assert [await it.find("u1") for _ in range(3)] == [None] * 3
    assert it.asked == ["web"]
    assert await it.find("u1", node="n2") is None
    assert it.asked == ["web"]


async def test_under_another_name_it_may_exist_all_the_same() -> None:
    """Or one node could have another one's objects denied."""
    it = Apiserver()
    assert await it.find("u1", key=("x", "other")) is None
    it.uid = "u1"
    assert await it.find("u1") == "u1"


async def test_without_an_answer_nothing_is_remembered() -> None:
    it = Apiserver("u1")
    it.away = True
    with pytest.raises(Unreachable):
        await it.find("u1")
    it.away = False
    assert await it.find("u1") == "u1"


async def test_a_node_that_makes_uids_up_does_not_keep_the_apiserver_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "LOOKUP_BURST", 3)
    now = 0.0
    monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: now)
    it = Apiserver()
    for number in range(3):
        assert await it.find(f"made-up-{number}") is None
    for _ in range(5):
        with pytest.raises(TooOften, match="node n1"):
            await it.find("made-up")
    assert len(it.asked) == 3
    it.uid = "u1"
    assert await it.find("u1", node="n2") == "u1"
    now = 1 / serving.LOOKUPS_PER_SECOND
    assert await it.find("made-up") is None
    with pytest.raises(TooOften):
        await it.find("made-up-too")


async def test_only_so_many_answers_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "REMEMBERED", 2)
    it = Apiserver()
    for uid in ("u1", "u2", "u3", "u3", "u2", "u1"):
        assert await it.find(uid) is None
    assert len(it.asked) == 4
