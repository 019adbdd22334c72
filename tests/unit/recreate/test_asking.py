"""A pod that the mirror lacks is asked for before its request ends for good."""

import asyncio

from flotilla_common.kube.interface import ApiError, Unreachable
from flotilla_jobs.asking import Asking
from tests.support.fake_clock import FakeClock
from tests.unit.recreate.world import World, request_document

POD = ("ns", "p")


class Asked:
    """`answers`: what each read meets, an error or the uid of the pod that is there."""

    def __init__(self, *answers: Exception | str) -> None:
        self.answers = list(answers)
        self.held = ""
        self.reads = 0
        self.told: list[str] = []
        self.clock = FakeClock()
        self.asking = Asking(read=self._read, held=lambda _, uid: uid == self.held, clock=self.clock)

    def surely_gone(self, asker: str = "r") -> bool:
        return self.asking.surely_gone(POD, "p1", ("ns", asker), lambda _, name: self.told.append(name))

    async def settle(self) -> None:
        await asyncio.gather(*self.asking._asking.values())

    async def _read(self, namespace: str, name: str) -> object:
        self.reads += 1
        answer = self.answers.pop(0) if self.answers else ""
        if isinstance(answer, Exception):
            raise answer
        self.held = answer
        return None


async def test_gone_is_said_only_after_the_apiserver():
    asked = Asked()
    assert not asked.surely_gone()
    assert not asked.surely_gone()
    await asked.settle()
    assert (asked.reads, asked.told, asked.surely_gone()) == (1, ["r"], True)


async def test_everybody_who_asked_meanwhile_is_told():
    asked = Asked()
    for asker in ("one", "two", "one"):
        assert not asked.surely_gone(asker)
    await asked.settle()
    assert (asked.reads, asked.told) == (1, ["one", "two"])


async def test_a_namesake_is_not_the_pod():
    asked = Asked("p2")
    asked.surely_gone()
    await asked.settle()
    assert asked.surely_gone()


async def test_a_pod_that_the_mirror_had_not_heard_of_is_not_gone():
    asked = Asked("p1", "p1")
    asked.surely_gone()
    await asked.settle()
    assert (asked.told, asked.surely_gone()) == (["r"], False)
    await asked.settle()


async def test_it_asks_until_it_is_answered():
    asked = Asked(ApiError(503, "ServiceUnavailable", "later"), Unreachable("timeout"))
    asked.surely_gone()
    await asked.settle()
    assert (asked.reads, asked.clock.sleeps) == (3, [2.0, 2.0])


def test_meanwhile_nothing_is_done():
    world = World(request_document("app"), heard_of_pod=False)
    world.looked_up = False
    assert world.passes(10) == []
    assert world.codes() == ["ReadingPod"]
    world.looked_up = True
    assert world.passes() == ["request Completed: pod has gone", "request let go of the request"]


def test_a_pod_that_cannot_be_read_is_not_gone():
    world = World(request_document("app"), heard_of_pod=False)
    world.unreadable.add("p1")
    assert world.passes(10) == []


def test_a_pod_that_is_held_is_not_left_behind_because_the_mirror_lacks_it():
    world = World(request_document("app", strategy={"unreadyGracePeriodSeconds": 0}))
    world.report(phase="Recreating")
    world.delete_request()
    pod = world.pod
    world.delete_pod()
    world.looked_up = False
    assert world.passes() == []
    world.pods._deleted.clear()
    world.put("pods", pod)
    assert world.passes() == ["pod unready grace period is over", "request let go of the request"]
