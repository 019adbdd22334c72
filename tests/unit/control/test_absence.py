"""The apiserver is asked before an object that the mirror lacks is treated as deleted."""

import asyncio
from typing import cast

import pytest

from flotilla_common.api.resources import POD as THINGS
from flotilla_common.api.resources import Resource
from flotilla_common.control import reads
from flotilla_common.control.keystate import Key
from flotilla_common.control.reads import AbsenceCheck
from flotilla_common.kube.interface import ApiError, Unreachable
from flotilla_common.mirror.mirror import Mirror
from tests.support.fake_clock import FakeClock

POD = ("ns", "p")


class Asked:
    """`answers`: the result of each read, an error or the uid of the existing pod."""

    def __init__(self, *answers: Exception | str) -> None:
        self.answers = list(answers)
        self.held = ""
        self.reads = 0
        self.told: list[str] = []
        self.clock = FakeClock()
        self.check = AbsenceCheck(cast("Mirror", self), self.clock, lambda _, name: self.told.append(name))
        self.task = asyncio.ensure_future(self.check.run())

    def confirm_deleted(self, asker: str = "r") -> bool:
        return self.check.confirm_deleted(THINGS, POD, "p1", ("ns", asker))

    async def settle(self) -> None:
        for _ in range(20):
            await asyncio.sleep(0)

    def holds(self, resource: Resource, key: Key, uid: str) -> bool:
        return uid == self.held

    async def read(self, resource: Resource, namespace: str, name: str) -> object:
        self.reads += 1
        answer = self.answers.pop(0) if self.answers else ""
        if isinstance(answer, Exception):
            raise answer
        self.held = answer
        return None


async def test_gone_is_said_only_after_the_apiserver():
    asked = Asked()
    assert not asked.confirm_deleted()
    assert not asked.confirm_deleted()
    await asked.settle()
    assert (asked.reads, asked.told, asked.confirm_deleted()) == (1, ["r"], True)


async def test_everybody_who_asked_meanwhile_is_told():
    asked = Asked()
    for asker in ("one", "two", "one"):
        assert not asked.confirm_deleted(asker)
    await asked.settle()
    assert (asked.reads, asked.told) == (1, ["one", "two"])


async def test_a_namesake_is_not_the_pod():
    asked = Asked("p2")
    asked.confirm_deleted()
    await asked.settle()
    assert asked.confirm_deleted()


async def test_a_pod_that_the_mirror_had_not_heard_of_is_not_gone():
    asked = Asked("p1", "p1")
    asked.confirm_deleted()
    await asked.settle()
    assert (asked.told, asked.confirm_deleted()) == (["r"], False)
    await asked.settle()


async def test_it_asks_until_it_is_answered():
    asked = Asked(ApiError(503, "ServiceUnavailable", "later"), Unreachable("timeout"))
    asked.confirm_deleted()
    await asked.settle()
    assert (asked.reads, asked.clock.sleeps) == (3, [2.0, 2.0])


async def test_what_is_held_is_not_asked_for():
    """An object that exists but cannot be decoded would otherwise be read again and again."""
    asked = Asked()
    asked.held = "p1"
    assert not asked.confirm_deleted()
    await asked.settle()
    assert (asked.reads, asked.told) == (0, [])


async def test_only_so_many_answers_are_remembered(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(reads, "REMEMBERED", 2)
    asked = Asked()
    for uid in ("p1", "p2", "p3"):
        asked.check.confirm_deleted(THINGS, POD, uid, ("ns", "r"))
        await asked.settle()
    assert [uid for uid in ("p1", "p2", "p3") if asked.check.confirm_deleted(THINGS, POD, uid, ("ns", "r"))] == [
        "p2",
        "p3",
    ]
    await asked.settle()
