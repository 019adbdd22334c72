"""The simulated apiserver beyond the contract: faults that it injects, and the history that it records."""

import asyncio
from collections.abc import Awaitable, Callable
from itertools import pairwise
from typing import TypeVar

import pytest

from flotilla_common.api.crds import manifests
from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.resources import CONFIG_MAP, NAMESPACE, POD
from flotilla_common.kube.interface import ApiError, Unreachable
from flotilla_common.settings import Settings
from tests.simulation.apiserver.client import SimulatedApi
from tests.simulation.apiserver.server import ApiServer
from tests.simulation.apiserver.webhooks import our_webhooks
from tests.simulation.apiserver.wire import Delivery, PlainWire, Request
from tests.simulation.contract.apiserver.harness import (
    JSON_PATCH,
    STATUS,
    Harness,
    cloneset,
    config_map,
    encode,
    meta,
    pod,
    refused,
    version_of,
)
from tests.simulation.history import History
from tests.simulation.loop import SimulatedClock, SimulatedLoop, run
from tests.support.fake_bus import FakeBus

T = TypeVar("T")


class Plane(Harness):
    """An apiserver alone."""

    def __init__(self, loop: SimulatedLoop) -> None:
        self.clock = SimulatedClock(loop)
        self.history = History()
        self.server = ApiServer(self.clock, self.history)
        for manifest in manifests():
            self.server.define(manifest)
        super().__init__(SimulatedApi(self.server, "user"), "shop")

    async def begin(self) -> None:
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}}
        await self.api.create(NAMESPACE, "", encode(body))


Story = Callable[[Plane], Awaitable[None]]
Play = Callable[[Story], None]


@pytest.fixture
def play() -> Play:
    def play(story: Story) -> None:
        async def main(loop: SimulatedLoop) -> None:
            plane = Plane(loop)
            await plane.begin()
            await story(plane)

        run(main)

    return play


class BadWire(PlainWire):
    """A wire that drops the next request or its reply, and changes watch events as configured."""

    lose = ""
    held: asyncio.Event | None = None
    cut: Exception | None = None

    async def carry(self, request: Request, serve: Callable[[], Awaitable[T]]) -> T:
        if self.lose == "request":
            raise Unreachable("lost", sent=False)
        reply = await super().carry(request, serve)
        if self.lose == "reply":
            raise Unreachable("lost")
        return reply

    async def deliver(self, request: Request, delivery: Delivery) -> bool:
        if self.cut is not None:
            raise self.cut
        if self.held is not None:
            await self.held.wait()
        return await super().deliver(request, delivery)


def test_a_watch_from_before_a_compaction_is_over(play: Play) -> None:
    async def story(plane: Plane) -> None:
        old = await plane.version()
        await plane.create(CONFIG_MAP, config_map("a"))
        plane.server.compact()
        watch = plane.api.watch(CONFIG_MAP, old).__aiter__()
        assert (await anext(watch)).type == "BOOKMARK"
        error = await refused(anext(watch))
        assert (error.code, error.reason) == (410, "Expired")
        async with plane.watching(CONFIG_MAP) as watched:
            await plane.create(CONFIG_MAP, config_map("b"))
            await watched.until(1)

    play(story)


def test_a_list_from_before_a_compaction_is_over(play: Play) -> None:
    async def story(plane: Plane) -> None:
        for name in "abc":
            await plane.create(CONFIG_MAP, config_map(name))
        page = await plane.api.list(CONFIG_MAP, "shop", limit=1)
        await plane.create(CONFIG_MAP, config_map("d"))
        plane.server.compact()
        error = await refused(plane.api.list(CONFIG_MAP, "shop", limit=1, token=page.next_token))
        assert (error.code, error.reason) == (410, "Expired")

    play(story)


def test_a_watcher_that_is_too_slow_loses_its_watch(play: Play) -> None:
    async def story(plane: Plane) -> None:
        wire = BadWire(plane.clock)
        slow = Plane.__new__(Plane)
        Harness.__init__(slow, SimulatedApi(plane.server, "slow", wire), "shop")
        wire.held = asyncio.Event()
        async with slow.watching(CONFIG_MAP) as watched:
            await plane.create(CONFIG_MAP, config_map("a"))
            await plane.clock.sleep(1)
            await plane.create(CONFIG_MAP, config_map("b"))
            await plane.create(CONFIG_MAP, config_map("c"))
            plane.server.compact()
            wire.held.set()
            await plane.clock.sleep(1)
            await plane.create(CONFIG_MAP, config_map("d"))
            await plane.clock.sleep(1)
        assert watched.told == [("ADDED", "a")]

    play(story)


@pytest.mark.parametrize("end", [Unreachable("cut"), ApiError(410, "Expired", "gone")], ids=["cut", "410"])
def test_a_watch_can_be_ended_by_the_wire(play: Play, end: Exception) -> None:
    async def story(plane: Plane) -> None:
        wire = BadWire(plane.clock)
        watch = SimulatedApi(plane.server, "watcher-0", wire).watch(CONFIG_MAP, await plane.version())
        await anext(watch.__aiter__())
        wire.cut = end
        await plane.create(CONFIG_MAP, config_map("a"))
        with pytest.raises(type(end)):
            await anext(watch.__aiter__())

    play(story)


def test_a_quiet_watch_hears_how_far_it_is(play: Play) -> None:
    async def story(plane: Plane) -> None:
        async with plane.watching(CONFIG_MAP) as watched:
            made = await plane.create(POD, pod("web"))
            await plane.clock.sleep(61)
        assert watched.bookmarks[-1] == meta(made)["resourceVersion"]
        assert watched.events == []

    play(story)


def test_what_is_recorded_of_a_lost_reply(play: Play) -> None:
    async def story(plane: Plane) -> None:
        wire = BadWire(plane.clock)
        api = SimulatedApi(plane.server, "cloneset-0", wire)
        for lose in ("request", "reply"):
            wire.lose = lose
            with pytest.raises(Unreachable):
                await api.create(CONFIG_MAP, "shop", encode(config_map(lose)))
        lost, unanswered = (call for call in plane.history.calls if call.writer == "cloneset-0")
        assert (lost.outcome, lost.revision, lost.index) == ("unreachable", 0, 0)
        assert (unanswered.outcome, unanswered.index) == ("unreachable", 1)
        (made,) = plane.history.by("cloneset-0")
        assert (made.name, made.revision, made.verb) == ("reply", unanswered.revision, "create")

    play(story)


def test_history_shares_what_did_not_change(play: Play) -> None:
    async def story(plane: Plane) -> None:
        await plane.create(POD, pod("web"))
        await plane.patch(POD, "web", {"metadata": {"labels": {"a": "b"}}})
        await plane.delete(POD, "web")
        versions = list(plane.history.of(POD, "shop", "web"))
        assert [version.verb for version in versions] == ["create", "update", "update", "delete"]
        assert [version.at for version in versions] == sorted(version.at for version in versions)
        for earlier, later in pairwise(versions):
            assert later.before is earlier.after
        assert versions[1].before is not None
        assert versions[1].after is not None
        assert versions[1].before["spec"] is versions[1].after["spec"]

    play(story)


def test_our_webhook_admits(play: Play) -> None:
    async def story(plane: Plane) -> None:
        plane.server.admission = webhooks = our_webhooks(plane.server, lambda _: FakeBus(), Settings())
        made = await plane.create(CLONE_SET, cloneset("web"))
        assert made["spec"]["revisionHistoryLimit"] == 10
        error = await refused(plane.create(CLONE_SET, cloneset("bad", spec={"replicas": -1})))
        assert error.code == 422
        assert error.message.startswith('admission webhook "vcloneset.kb.io" denied the request: spec.replicas')
        webhooks.reachable = False
        error = await refused(plane.create(CLONE_SET, cloneset("other")))
        assert (error.code, error.reason) == (500, "InternalError")
        assert 'failed calling webhook "mcloneset.kb.io"' in error.message
        counted = await plane.patch(CLONE_SET, "web", {"status": STATUS}, subresource="status")
        assert version_of(counted) > version_of(made)

    play(story)


def test_patches_that_meet_in_admission_are_both_applied(play: Play) -> None:
    async def story(plane: Plane) -> None:
        plane.server.admission = our_webhooks(plane.server, lambda _: FakeBus(), Settings())
        await plane.create(CLONE_SET, cloneset("web"))
        images = [{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "nginx:2"}]
        await asyncio.gather(
            plane.patch(CLONE_SET, "web", images, JSON_PATCH),
            plane.patch(CLONE_SET, "web", {"spec": {"replicas": 7}}),
            plane.patch(CLONE_SET, "web", {"metadata": {"labels": {"a": "b"}}}),
        )
        found = await plane.get(CLONE_SET, "web")
        assert found["spec"]["template"]["spec"]["containers"][0]["image"] == "nginx:2"
        assert (found["spec"]["replicas"], meta(found)["labels"], meta(found)["generation"]) == (7, {"a": "b"}, 3)

    play(story)


def test_a_protected_namespace_stays(play: Play) -> None:
    async def story(plane: Plane) -> None:
        plane.server.admission = our_webhooks(plane.server, lambda _: FakeBus(), Settings())
        await plane.patch(NAMESPACE, "shop", {"metadata": {"labels": {"policy.kruise.io/delete-protection": "Always"}}})
        error = await refused(plane.delete(NAMESPACE, "shop"))
        assert error.code == 403
        assert "forbidden by ResourcesProtectionDeletion" in error.message

    play(story)


def test_a_kind_can_be_taken_away(play: Play) -> None:
    async def story(plane: Plane) -> None:
        await plane.create(CLONE_SET, cloneset("web"))
        async with plane.watching(CLONE_SET) as watched:
            await plane.clock.sleep(0.1)
            plane.server.undefine(CLONE_SET)
            await plane.clock.sleep(0.1)
        assert watched.told == [("DELETED", "web")]
        assert (await refused(plane.get(CLONE_SET, "web"))).code == 404

    play(story)


def test_the_same_run_makes_the_same_history() -> None:
    def once() -> bytes:
        async def main(loop: SimulatedLoop) -> bytes:
            plane = Plane(loop)
            await plane.begin()
            await plane.create(CONFIG_MAP, {"metadata": {"generateName": "web-"}})
            await plane.create(POD, pod("web"))
            await plane.delete(POD, "web")
            return encode([plane.history.versions, plane.history.calls])

        return run(main)

    assert once() == once()
