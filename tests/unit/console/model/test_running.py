"""The model of a bus that services and a watcher fill."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

import msgspec

from flotilla_common.api.documents import Json
from flotilla_common.api.errors import ApiError
from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.kinds.uniteddeployment.types import UNITED_DEPLOYMENT
from flotilla_common.api.resources import Resource
from flotilla_common.bus import subjects
from flotilla_common.bus.interface import Follow, OnMessage
from flotilla_console.model.model import Model
from flotilla_console.model.resources import DISRUPTION_BUDGET, NOT_ON_BUS, RESOURCES
from flotilla_console.model.sight import Sight
from tests.support.fake_bus import FakeBus, FakeFollow
from tests.support.fake_clock import FakeClock
from tests.testkit.apiserver import FakeApi
from tests.testkit.documents import typed
from tests.unit.console.model.worlds import Everything

_EPOCH = "0.a"


class Bus(FakeBus):
    """A bus that a watcher has filled."""

    async def subscribe(self, subject_filter: str, on_message: OnMessage) -> Follow:
        follow = FakeFollow("", [subject_filter], on_message, lambda: None)
        self.follows.append(follow)
        return follow

    async def fill(self, resource: Resource, *objects: Json) -> None:
        """Publish objects of a resource, and that these are all."""
        await self.ensure_stream(subjects.kube_stream(resource))
        for number, document in enumerate(objects, 1):
            meta = document["metadata"]
            headers = {"op": "ADDED", "rv": str(number), "uid": meta["uid"], "epoch": _EPOCH}
            body = msgspec.json.encode(document)
            await self.publish(subjects.kube(resource, meta["namespace"], meta["name"]), body, headers)
        marker = subjects.Marker(
            epoch=_EPOCH, state=subjects.SYNCED, rv="9", count=len(objects), layout=subjects.LAYOUT
        )
        await self.publish(subjects.kube_marker(resource), msgspec.json.encode(marker), {"epoch": _EPOCH})


@asynccontextmanager
async def _running(bus: Bus, api: FakeApi) -> AsyncGenerator[Sight]:
    model = Model(api=api.api, bus=bus, clock=FakeClock(), fallback_after=1e9)
    running = asyncio.create_task(model.run())
    try:
        async with asyncio.timeout(30):
            await model.synced()
        yield Sight(model, Everything())
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running


async def _filled(*missing: Resource) -> Bus:
    bus = Bus()
    clone_set = typed(CLONE_SET, "web", "shop", uid="uid-web", version=1)
    for resource in RESOURCES:
        if resource not in (*NOT_ON_BUS, *missing):
            await bus.fill(resource, *([clone_set] if resource == CLONE_SET else []))
    await bus.ensure_stream(subjects.WHY_STREAM)
    reason = {"state": "held", "code": "PausedByUser", "message": "paused"}
    record = msgspec.json.encode({"uid": "uid-web", "generation": 0, "reasons": [reason]})
    await bus.publish(subjects.why(CLONE_SET, "shop", "web"), record)
    return bus


async def test_objects_and_reasons_come_from_the_bus() -> None:
    async with _running(await _filled(), FakeApi()) as sight:
        (web,) = sight.workloads()
        assert (web.name, web.verdict.code) == ("web", "PausedByUser")


async def test_what_is_not_on_the_bus_comes_from_the_apiserver() -> None:
    budget = typed(DISRUPTION_BUDGET, "pdb", "shop", uid="uid-pdb", version=1)
    async with _running(await _filled(), FakeApi({DISRUPTION_BUDGET: [budget]})) as sight:
        assert [one.metadata.name for one in sight.stored(DISRUPTION_BUDGET)] == ["pdb"]


async def test_a_kind_that_is_not_installed_is_absent() -> None:
    api = FakeApi(errors={UNITED_DEPLOYMENT.plural: ApiError(404, "NotFound", "not found")})
    async with _running(await _filled(UNITED_DEPLOYMENT), api) as sight:
        assert [one.name for one in sight.workloads()] == ["web"]
        assert list(sight.stored(UNITED_DEPLOYMENT)) == []
