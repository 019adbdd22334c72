"""A pod that the mirror lacks is looked up before its request ends for good."""

import asyncio

from flotilla_common.api.containerrecreaterequest import ContainerRecreateRequest
from flotilla_common.kube.interface import ApiError, Unreachable
from flotilla_jobs.containerrecreate.lookup import PodLookup
from tests.support.fake_clock import FakeClock
from tests.unit.recreate.world import World, pod_document, request_document


class Asked:
    """A lookup over a world; `answers` says what each read meets."""

    def __init__(self, *answers: Exception | str) -> None:
        self.world = World(request_document("app"), heard_of_pod=False)
        self.answers = list(answers)
        self.reads = 0
        self.clock = FakeClock()
        self.again: list[str] = []
        self.lookup = PodLookup(
            read=self._read, held=self._held, again=lambda _, name: self.again.append(name), clock=self.clock
        )

    async def _read(self, namespace: str, name: str) -> object:
        self.reads += 1
        answer = self.answers.pop(0) if self.answers else ""
        if isinstance(answer, Exception):
            raise answer
        if answer:
            self.world.put("pods", pod_document(uid=answer))
        return None

    def _held(self, namespace: str, name: str) -> str:
        pod = self.world.pods.get(namespace, name)
        return pod.metadata.uid if pod else ""

    @property
    def request(self) -> ContainerRecreateRequest:
        found = self.world.requests.get("ns", "r")
        assert found is not None
        return found

    async def settle(self) -> None:
        await asyncio.gather(*self.lookup._asking.values())


async def test_gone_is_said_only_after_the_apiserver():
    asked = Asked()
    assert not asked.lookup.surely_gone(asked.request)
    assert not asked.lookup.surely_gone(asked.request)
    await asked.settle()
    assert (asked.reads, asked.again) == (1, ["r"])
    assert asked.lookup.surely_gone(asked.request)
    asked.lookup.forget(asked.request)
    assert not asked.lookup.surely_gone(asked.request)
    await asked.settle()


async def test_a_namesake_is_not_the_pod():
    asked = Asked("p2")
    asked.lookup.surely_gone(asked.request)
    await asked.settle()
    assert asked.lookup.surely_gone(asked.request)


async def test_a_pod_that_the_mirror_had_not_heard_of_is_found():
    asked = Asked("p1")
    asked.lookup.surely_gone(asked.request)
    await asked.settle()
    assert asked.world.pods.get("ns", "p") is not None
    assert asked.again == ["r"]


async def test_it_asks_until_it_is_answered():
    asked = Asked(ApiError(503, "ServiceUnavailable", "later"), Unreachable("timeout"))
    asked.lookup.surely_gone(asked.request)
    await asked.settle()
    assert (asked.reads, asked.clock.sleeps) == (3, [2.0, 2.0])


def test_meanwhile_nothing_is_done():
    world = World(request_document("app"), heard_of_pod=False)
    world.looked_up = False
    assert world.passes(10) == []
    assert world.codes() == ["ReadingPod"]
    world.looked_up = True
    assert world.passes() == ["request Completed: pod has gone", "request let go of the request"]


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
